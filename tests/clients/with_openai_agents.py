"""openai-agents: Chat Completions and Responses, plain and streamed."""

from __future__ import annotations

from tests.clients.laws import Laws
from tests.clients.running import Pair, program
from tests.provider import CacheRules


class TestChatCompletions(Laws):
    """`OpenAIChatCompletionsModel` against Kimi."""

    package = "openai-agents"
    command = staticmethod(program("agents_turns.py", "chat"))
    causes = ("cold_start", None, None, None, "tools_reordered")
    efforts = ("high",) * 5
    client = "Agents/Python 0.24.0"
    sources = ("response", "response", "choice", "choice", "response")

    def test_the_client_itself_loses_the_cached_tokens(self, pair: Pair) -> None:
        """Kimi reports its cache hits where this client does not look: it says 0 of each call, the ledger knows."""
        assert pair.watched.told["cached"] == [0] * 5

    def test_the_client_itself_loses_the_usage_of_streams(self, pair: Pair) -> None:
        """It asks for no usage in streams, which Kimi then puts into a choice: the client knows of none."""
        assert [told for at, told in enumerate(pair.watched.told["input"]) if at in (2, 3)] == [0] * 2


class TestResponses(Laws):
    """`OpenAIResponsesModel` against OpenAI."""

    package = "openai-agents"
    command = staticmethod(program("agents_turns.py", "responses"))
    surface = "openai"
    rules = CacheRules(block=128, minimum=1024)
    causes = ("cold_start", None, None, None, "tools_reordered")
    efforts = ("high",) * 5
    client = "Agents/Python 0.24.0"
