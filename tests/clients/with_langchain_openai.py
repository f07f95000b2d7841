"""langchain-openai: Chat Completions and Responses, plain and streamed."""

from __future__ import annotations

from tests.clients.laws import Laws
from tests.clients.running import Pair, program
from tests.provider import CacheRules


class TestChatCompletions(Laws):
    """`ChatOpenAI` against Kimi, as a user writes it: with another base URL it asks for no usage in streams."""

    package = "langchain-openai"
    command = staticmethod(program("langchain_turns.py", "chat"))
    causes = ("cold_start", None, None, None, "volatile_prefix")
    efforts = ("low",) * 5
    sources = ("response", "response", "choice", "choice", "response")

    def test_the_client_itself_loses_the_cached_tokens(self, pair: Pair) -> None:
        """Kimi reports its cache hits where this client does not look: it knows of none, the ledger of all."""
        assert pair.watched.told["cached"] == [None] * 5

    def test_the_client_itself_loses_the_usage_of_streams(self, pair: Pair) -> None:
        """It asks for no usage in streams, which Kimi then puts into a choice: the client knows of none."""
        assert [told for at, told in enumerate(pair.watched.told["input"]) if at in (2, 3)] == [None] * 2


class TestResponses(Laws):
    """`ChatOpenAI(use_responses_api=True)` against OpenAI."""

    package = "langchain-openai"
    command = staticmethod(program("langchain_turns.py", "responses"))
    surface = "openai"
    rules = CacheRules(block=128, minimum=1024)
    causes = ("cold_start", None, None, None, "volatile_prefix")
    efforts = ("low",) * 5
