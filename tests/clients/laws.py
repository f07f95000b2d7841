"""What holds for every client: an unharmed program, and one right line for each call."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from typing import ClassVar

import pytest

from otel_context_ledger.cli.coverage import LIBRARIES
from tests.clients.running import Command, Pair, Place, twice
from tests.provider import Answer, CacheRules, Script, by_prompt, call


def said(mark: str, *, tool: bool = True) -> list[Answer]:
    """What the model says after a user's message: first it reads a file, if it may, then it answers."""
    done = Answer(f"{mark} is done.")
    read = Answer("I look first.", "The file names it.", (call("read", f"call_{mark.lower()}", path="src/parser.py"),))
    return [read, done] if tool else [done]


TURNS = by_prompt({"FIRST": said("FIRST"), "SECOND": said("SECOND"), "THIRD": said("THIRD", tool=False)})


class Laws:
    """A client's test class states its program and what its calls must be told as; the tests are here.

    `package` is the client's; `causes`, `efforts`, `sources` (of the usage) and `hashes` (which list of tools it was,
    from 0) have one value for each call, in order; `client` holds for all of them.
    """

    package: ClassVar[str]
    command: ClassVar[Command]
    surface: ClassVar[str] = "kimi_open_platform"
    script: ClassVar[Script] = staticmethod(TURNS)
    rules: ClassVar[CacheRules | None] = None
    causes: ClassVar[Sequence[str | None]]
    session_source: ClassVar[str] = "lineage"
    efforts: ClassVar[Sequence[str | None]]
    sources: ClassVar[Sequence[str]] = ("response", "response", "event", "event", "response")
    client: ClassVar[str | None] = None
    hashes: ClassVar[Sequence[int]] = (0,) * 5

    @pytest.fixture(scope="class")
    def pair(self, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
        """The program without and with the ledger, run once for the class."""
        own = request.cls
        return twice(own.command, Place(tmp_path_factory.mktemp("client"), own.script, own.surface, own.rules))

    def test_the_program_is_unharmed(self, pair: Pair) -> None:
        """Output, exit code and the bytes on the wire are the same with and without the ledger, and it says nothing."""
        bare, watched = pair.bare, pair.watched
        assert (bare.code, bare.stderr) == (0, "")
        assert (watched.stdout, watched.stderr, watched.code) == (bare.stdout, bare.stderr, bare.code)
        assert [r.wire for r in watched.requests] == [r.wire for r in bare.requests]

    def test_the_program_did_its_turns(self, pair: Pair) -> None:
        """What was planned did happen: each turn ended with the answer that the model had for it."""
        assert pair.watched.told["said"] == [f"{mark} is done." for mark in ("FIRST", "SECOND", "THIRD")]

    def test_one_entry_per_call_with_the_providers_numbers(self, pair: Pair) -> None:
        """Input, cached and output tokens of each call are what the provider counted."""
        told = [(e["input_tokens"], e["cached_tokens"], e["output_tokens"]) for e in pair.watched.entries]
        assert told == pair.watched.counted

    def test_usage_is_found_where_the_provider_puts_it(self, pair: Pair) -> None:
        """In a plain answer, in an event of the stream, or, where no stream usage was asked for, in a choice."""
        assert [e["usage_source"] for e in pair.watched.entries] == list(self.sources)

    def test_the_planted_miss_alone_has_a_cause(self, pair: Pair) -> None:
        """Each call has the cause that it was given, and no call that was served from the cache has any."""
        assert [e["miss_cause"] for e in pair.watched.entries] == list(self.causes)

    def test_the_calls_are_one_session_of_one_client(self, pair: Pair) -> None:
        """All calls are in one session, found the way this client allows, with its effort, and were read whole."""
        fields = ("reasoning_effort", "session_source", "client_version", "request_kind", "call_end", "ledger_error")
        alike = (self.session_source, self.client, "agent", "complete", None)
        told = [tuple(e[name] for name in fields) for e in pair.watched.entries]
        assert told == [(effort, *alike) for effort in self.efforts]
        assert len({e["session_id"] for e in pair.watched.entries}) == 1

    def test_the_tools_keep_their_hash(self, pair: Pair) -> None:
        """The same tools have the same hash in every call, in whatever order they were sent, and others another."""
        told = [e["tool_schema_hash"] for e in pair.watched.entries]
        assert [list(dict.fromkeys(told)).index(one) for one in told] == list(self.hashes)
        assert None not in told

    def test_the_coverage_table_names_this_release(self) -> None:
        """What `doctor` and the README call tested is the release that is tested here."""
        assert measured(self.package) == metadata.version(self.package)


def measured(package: str) -> str:
    """The release of a package that the coverage table calls tested, of the rows that speak of the installed one."""
    (row,) = [one for one in LIBRARIES if one.package == package and one.fits(metadata.version(package))]
    return row.measured
