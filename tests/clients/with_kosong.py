"""kosong, the layer under kimi-cli: its Kimi provider, streamed and plain, which hands the SDK its tools as a generator
that can be read once."""

from __future__ import annotations

from tests.clients.laws import Laws
from tests.clients.running import Pair, program


class TestStreamed(Laws):
    """`Kimi(stream=True)`."""

    package = "kosong"
    command = staticmethod(program("kosong_turns.py", "streamed"))
    causes = ("cold_start", None, None, None, "history_rewritten")
    efforts = ("max",) * 5
    sources = ("event",) * 5
    session_source = "cache_key"

    def test_every_tool_arrives(self, pair: Pair) -> None:
        """The tools, given as a generator, are all in every request."""
        sent = [[tool["function"]["name"] for tool in request.json["tools"]] for request in pair.watched.requests]
        assert sent == [["read", "remove"]] * 5

    def test_the_client_knows_its_cached_tokens(self, pair: Pair) -> None:
        """This client reads Kimi's own field, and the ledger agrees with it."""
        assert pair.watched.told["cached"] == [entry["cached_tokens"] for entry in pair.watched.entries]

    def test_the_miss_is_told_to_the_message(self, pair: Pair) -> None:
        """The cleared tool result is the place where the prefix broke."""
        last = pair.watched.entries[-1]
        place = {"segment": "message", "index": 3, "name": "tool", "offset": 0, "kind": "pruned"}
        assert (last["miss_detail"], last["miss_position"]) == (["pruned"], place)


class TestPlain(TestStreamed):
    """`Kimi(stream=False)`, which asks for the raw response."""

    package = "kosong"
    command = staticmethod(program("kosong_turns.py", "plain"))
    sources = ("response",) * 5
