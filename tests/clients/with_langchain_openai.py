"""langchain-openai: Chat Completions and Responses, plain and streamed."""

from __future__ import annotations

from tests.clients.laws import Laws
from tests.clients.running import Pair, program
from tests.provider import CacheRules


class TestChatCompletions(Laws):
    """`ChatOpenAI` against Kimi, as a user writes it: with another base URL it asks for no usage in streams."""

    command = staticmethod(program("langchain_turns.py", "chat"))
    causes = ("cold_start", None, None, None, "volatile_prefix")
    efforts = ("low",) * 5

    def test_the_client_itself_loses_the_cached_tokens(self, pair: Pair) -> None:
        """Kimi reports its cache hits where this client does not look: it knows of none, the ledger of all."""
        assert pair.watched.told["cached"] == [None] * 5


class TestResponses(Laws):
    """`ChatOpenAI(use_responses_api=True)` against OpenAI."""

    command = staticmethod(program("langchain_turns.py", "responses"))
    surface = "openai"
    rules = CacheRules(block=128, minimum=1024)
    causes = ("cold_start", None, None, None, "volatile_prefix")
    efforts = ("low",) * 5
