"""litellm: `completion`, plain and streamed; `responses`, which goes round the SDK."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.clients.laws import TURNS, Laws
from tests.clients.running import BIN, Pair, Place, program, twice


class TestMoonshot(Laws):
    """`litellm.completion("moonshot/…")` against Kimi."""

    package = "litellm"
    command = staticmethod(program("litellm_turns.py", "moonshot/kimi-k3"))
    causes = ("cold_start", None, None, None, "tools_changed")
    efforts = (None,) * 5
    hashes = (0, 0, 0, 0, 1)

    def test_the_client_itself_loses_the_cached_tokens(self, pair: Pair) -> None:
        """Kimi reports its cache hits where this client does not look: it knows of none, the ledger of all."""
        assert [one["cached"] for one in pair.watched.told["calls"]] == [None] * 5

    def test_the_client_prices_hits_as_misses(self, pair: Pair) -> None:
        """The calls that were served from the cache cost this client more than five times what they cost."""
        told = [one["cost"] for one in pair.watched.told["calls"]]
        ours = [entry["cost"]["amount"] for entry in pair.watched.entries]
        assert [theirs > 5 * own for theirs, own in zip(told, ours, strict=True)] == [False, True, True, True, False]


class TestOpenai(Laws):
    """`litellm.completion("openai/…")` with Kimi's base URL."""

    package = "litellm"
    command = staticmethod(program("litellm_turns.py", "openai/kimi-k3"))
    causes = ("cold_start", None, None, None, "tools_changed")
    efforts = (None,) * 5
    hashes = (0, 0, 0, 0, 1)


def test_responses_are_not_covered_and_doctor_says_so(tmp_path: Path) -> None:
    """`litellm.responses` makes its calls unharmed and unseen, as `context-ledger doctor` says beforehand."""
    pair = twice(program("litellm_responses.py"), Place(tmp_path, TURNS, "openai"))
    assert (pair.watched.stdout, pair.watched.stderr, pair.watched.code) == ("15\n", "", 0)
    assert [r.wire for r in pair.watched.requests] == [r.wire for r in pair.bare.requests]
    assert (len(pair.watched.requests), pair.watched.entries) == (2, ())
    line = [str(BIN / "context-ledger"), "doctor", "--json", "--file", str(tmp_path / "none.jsonl")]
    said = json.loads(subprocess.run(line, capture_output=True, text=True, check=False, timeout=60).stdout)
    (found,) = [one for one in said["checks"] if "litellm.responses" in one["sentence"]]
    assert (found["name"], found["verdict"]) == ("coverage", "warning")
