"""pydantic-ai: Chat Completions, Responses and Messages, plain and streamed."""

from __future__ import annotations

from tests.clients.laws import Laws
from tests.clients.running import Pair, program
from tests.provider import CacheRules


class TestChatCompletions(Laws):
    """`OpenAIChatModel` against Kimi."""

    package = "pydantic-ai-slim"
    command = staticmethod(program("pydantic_turns.py", "chat"))
    rules = CacheRules(scope=("model", "reasoning_effort"))
    causes = ("cold_start", None, None, None, "effort_changed")
    efforts = ("low",) * 4 + ("high",)
    client = "pydantic-ai/2.68.0"

    def test_the_client_itself_loses_the_cached_tokens(self, pair: Pair) -> None:
        """Kimi reports its cache hits where this client does not look: it says 0 of each call, the ledger knows."""
        assert pair.watched.told["cached"] == [0] * 5


class TestResponses(Laws):
    """`OpenAIResponsesModel` against OpenAI."""

    package = "pydantic-ai-slim"
    command = staticmethod(program("pydantic_turns.py", "responses"))
    surface = "openai"
    rules = CacheRules(scope=("model", "reasoning"), block=128, minimum=1024)
    causes = ("cold_start", None, None, None, "effort_changed")
    efforts = ("low",) * 4 + ("high",)
    client = "pydantic-ai/2.68.0"


class TestMessages(Laws):
    """`AnthropicModel` against Kimi's Claude-compatible path."""

    package = "pydantic-ai-slim"
    command = staticmethod(program("pydantic_turns.py", "messages"))
    rules = CacheRules(scope=("model", "output_config"))
    causes = ("cold_start", None, None, None, "effort_changed")
    efforts = ("low",) * 4 + ("high",)
    client = "pydantic-ai/2.68.0"
