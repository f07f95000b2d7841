"""What people read: every command of `context-ledger` on ledger files made of real entries, its words and exit
codes."""

# Whole outputs are compared, and tables are as wide as their values.
# ruff: noqa: E501

from __future__ import annotations

import io
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path

import orjson
import pytest

from otel_context_ledger import __version__, line, semconv
from otel_context_ledger import model as m
from otel_context_ledger.cli import checks, coverage, doctor, exporters, instrumentations, main, printing, reasons
from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.doctor import Seen, configuration, examine, known, report
from otel_context_ledger.cli.machine import Check, Machine, Plugin
from otel_context_ledger.config import Config
from otel_context_ledger.correctness.tools import check as tools_check
from otel_context_ledger.correctness.tools import schemas
from otel_context_ledger.ledger import Ledger
from otel_context_ledger.surfaces import facts
from otel_context_ledger.surfaces import find as find_surface

NOON = 1_793_707_200.0
GROUPS = {
    "self": m.SelfGroup, "task": m.TaskGroup, "model": m.ModelGroup, "context": m.ContextGroup, "cache": m.CacheGroup,
    "request": m.RequestGroup, "money": m.MoneyGroup, "checks": m.ChecksGroup,
}  # fmt: skip
DEFAULTS = {
    "started_at": NOON, "ledger_version": __version__, "session_id": "s-one", "request_kind": "agent",
    "provider_surface": "kimi_open_platform", "provider": "moonshot_ai", "api": "chat_completions", "model_id": "kimi-k3",
    "provider_verdict": "not_requested", "usage_source": "response",
}  # fmt: skip
FIRST = {
    "entry_id": "aa11", "input_tokens": 50_000, "cached_tokens": 0, "cache_miss_tokens": 50_000, "output_tokens": 400,
    "cache_report": "reported", "cache_outcome": "cold", "miss_cause": "cold_start", "miss_confidence": "observed",
    "miss_evidence": ("first_request",), "cost": m.CostAmount(0.15, "USD", "computed", "usd"), "duration": 4.0,
}  # fmt: skip
CLOCK = {
    "entry_id": "aa22", "started_at": NOON + 35, "input_tokens": 55_000, "cached_tokens": 12_288,
    "cache_miss_tokens": 42_712, "reusable_tokens": 12_300, "avoidable_tokens": 37_712, "output_tokens": 1_204,
    "reasoning_tokens": 300, "cache_report": "reported", "cache_outcome": "partial", "history_length": 41,
    "context_window": 1_048_576, "comparable_id": "aa11", "identity_changed": ("policy_wire",),
    "miss_cause": "volatile_prefix", "miss_detail": ("datetime", "second"),
    "miss_position": m.Position("system", 0, "environment", 31, "datetime"), "miss_evidence": ("local_diff",),
    "miss_confidence": "observed", "miss_significant": True, "miss_secondary": ("history_rewritten(pruned)",),
    "idle_seconds": 31.0, "cost": m.CostAmount(0.0123, "USD", "computed", "usd"), "cost_without_cache": 0.0456,
    "cost_avoidable": 0.0103, "duration": 8.2, "time_to_first_token": 0.83, "finish_reasons": ("tool_calls",),
}  # fmt: skip
UNREPORTED = {
    "entry_id": "bb33", "started_at": NOON + 60, "session_id": "s-two", "input_tokens": 1_000, "output_tokens": 10,
    "miss_cause": "not_reported", "miss_evidence": ("counters",), "miss_confidence": "observed",
    "cost": m.CostAmount(), "cost_missing": "price_missing:model",
}  # fmt: skip
FAILED = {
    "entry_id": "cc44", "started_at": NOON + 90, "error_type": "APIConnectionError", "call_end": "failed",
    "usage_source": "missing", "cost": m.CostAmount(), "cost_missing": "usage_missing",
}  # fmt: skip
QUOTA = {
    "entry_id": "dd55", "started_at": NOON + 120, "session_id": "s-three", "provider_surface": "kimi_code",
    "model_id": "k3", "input_tokens": 2_000, "cached_tokens": 1_990, "cache_miss_tokens": 10, "output_tokens": 20,
    "cache_report": "reported", "cache_outcome": "hit", "cost": m.CostAmount(unit="quota"),
    "cost_missing": "quota_surface",
}  # fmt: skip


def made(values: Mapping[str, object]) -> m.Entry:
    """An entry with these fields, each in the group that has it."""
    every = {**DEFAULTS, **values}
    groups = {
        name: kind(**{f.name: every.pop(f.name) for f in fields(kind) if f.name in every})
        for name, kind in GROUPS.items()
    }
    assert not every
    return m.Entry(**groups)


def written(path: Path, *calls: Mapping[str, object]) -> Path:
    """A ledger file of calls; the key `segments` is a call's trail."""
    rows = [
        line.write(made({k: v for k, v in call.items() if k != "segments"}), call.get("segments")) for call in calls
    ]
    path.write_bytes(b"".join(row + b"\n" for row in rows))
    return path


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterable[None]:
    """Every test runs in an empty directory, at UTC, with no variable of ours set."""
    for name in ("CONTEXT_LEDGER_FILE", "OTEL_CONTEXT_LEDGER_FILE", "CONTEXT_LEDGER_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command: (exit code, stdout, stderr)."""

    def run(*argv: str) -> tuple[int, str, str]:
        code = main(argv)
        out, err = capsys.readouterr()
        return code, out, err

    return run


# Finding the file and the call


@pytest.mark.parametrize("command", [["show"], ["explain", "LAST"], ["diff", "LAST", "LAST"], ["verify"]])
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "There is no ledger file x.jsonl; name one with --file or CONTEXT_LEDGER_FILE."),
        (b"", "x.jsonl is empty: no call has been recorded yet."),
        (
            b'{"kind": "outcome", "task": {"task_id": "T"}}\n',
            "x.jsonl holds no call, only 1 line of other kinds: no call has been recorded yet.",
        ),
        (b"\xff\xfe hello\nworld\n", "x.jsonl is no ledger file: 2 lines, and none of them is a ledger line."),
        (b'{"name": "someone else\'s"}\n', "x.jsonl is no ledger file: 1 line, and none of them is a ledger line."),
    ],
)
def test_unusable_file(run: Run, command: list[str], content: bytes | None, sentence: str) -> None:
    """A missing, empty or foreign file is one sentence and exit code 2."""
    if content is not None:
        Path("x.jsonl").write_bytes(content)
    assert run(*command, "--file", "x.jsonl") == (2, "", f"context-ledger: {sentence}\n")


def test_directory_as_file(run: Run, tmp_path: Path) -> None:
    """A directory in the place of the file is one sentence and exit code 2."""
    assert run("show", "--file", str(tmp_path)) == (
        2, "", f"context-ledger: {tmp_path} cannot be read: Is a directory.\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("no-such-id", "There is no call 'no-such-id' in ledger.jsonl; `context-ledger show` lists them."),
        ("", "There is no call '' in ledger.jsonl; `context-ledger show` lists them."),
        ("aa", "'aa' is the beginning of 2 calls (aa11, aa22): give more of it."),
        ("LAST-2", "LAST-2 is before the first of the 2 calls in ledger.jsonl."),
    ],
)
def test_unknown_call(run: Run, wanted: str, sentence: str) -> None:
    """An id that is unknown or ambiguous is one sentence and exit code 2."""
    written(Path("ledger.jsonl"), FIRST, CLOCK)
    assert run("explain", wanted) == (2, "", f"context-ledger: {sentence}\n")


@pytest.mark.parametrize(("wanted", "found"), [("LAST", "aa22"), ("last-1", "aa11"), ("aa2", "aa22"), ("aa11", "aa11")])
def test_named_call(run: Run, wanted: str, found: str) -> None:
    """A call is named from the end, by its id or by the beginning of its id."""
    written(Path("ledger.jsonl"), FIRST, CLOCK)
    code, out, _ = run("explain", wanted, "--json")
    assert (code, orjson.loads(out)["entry"]["self"]["entry_id"]) == (0, found)


def test_file_of_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an option the file is the one that CONTEXT_LEDGER_FILE names."""
    monkeypatch.setenv("CONTEXT_LEDGER_FILE", str(written(Path("mine.jsonl"), FIRST)))
    code, out, _ = run("show", "--json")
    assert (code, orjson.loads(out)["files"]) == (0, ["mine.jsonl"])


def test_rotated_files_come_first(run: Run) -> None:
    """Calls of rotated files are part of the ledger and older than those of the file itself."""
    written(Path("ledger.jsonl.1"), FIRST)
    written(Path("ledger.jsonl"), CLOCK)
    _, out, _ = run("show", "--json")
    assert [call["entry_id"] for call in orjson.loads(out)["calls"]] == ["aa11", "aa22"]


def test_regrouped_lines_are_read(run: Run) -> None:
    """A line whose fields another tool moved into other groups, or into none, says the same."""
    plain = orjson.loads(line.write(made(FIRST)))
    flat = {key: value for group in plain.values() if group for key, value in group.items()}
    Path("a.jsonl").write_bytes(orjson.dumps(plain))
    Path("b.jsonl").write_bytes(orjson.dumps({"resource": {}, "body": {"entry": flat}}))
    assert run("explain", "LAST", "--file", "a.jsonl") == run("explain", "LAST", "--file", "b.jsonl")


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["show", "--last", "0"], ["explain"], ["diff", "LAST"]])
def test_wrong_usage(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong usage is exit code 2."""
    with pytest.raises(SystemExit) as stopped:
        main(argv)
    assert stopped.value.code == 2


@pytest.mark.parametrize("argv", [["--help"], ["verify", "--help"]])
def test_help_documents_exit_codes(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Every help text ends with the exit codes."""
    with pytest.raises(SystemExit) as stopped:
        main(argv)
    codes = capsys.readouterr().out.split("exit codes:\n")[1]
    assert (stopped.value.code, codes) == (
        0,
        "  0  fine\n"
        "  1  verify, doctor or diagnose found something wrong\n"
        "  2  wrong usage, an unknown call, or a ledger file that is missing, empty or not ours\n",
    )


def test_the_viewer_has_exit_codes_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """It has no ledger file and finds nothing."""
    with pytest.raises(SystemExit):
        main(["dashboard", "--help"])
    assert capsys.readouterr().out.split("exit codes:\n")[1] == (
        "  0  it was ended with Ctrl-C\n"
        "  2  wrong usage, boards that cannot be read, or an address that cannot be served at\n"
    )


# show


def test_show(run: Run) -> None:
    """Unknown is `?` and counted apart, failed calls are seen, a provider's own cost is marked, quota is no money."""
    own = {**FIRST, "entry_id": "ee66", "started_at": NOON + 150, "cost": m.CostAmount(0.2, "USD", "provider", "usd")}
    written(Path("ledger.jsonl"), FIRST, CLOCK, UNREPORTED, FAILED, QUOTA, own)
    assert run("show") == (
        0,
        """\
time                 id    session  model      input  cached   missed  reused  checks     cause                                  cost
2026-11-03 12:00:00  aa11  s-one    kimi-k3   50,000       0   50,000     0 %  unchecked  cold_start                          $0.1500
2026-11-03 12:00:35  aa22  s-one    kimi-k3   55,000  12,288   42,712    22 %  unchecked  volatile_prefix(datetime, second)   $0.0123
2026-11-03 12:01:00  bb33  s-two    kimi-k3    1,000       ?        ?       ?  unchecked  not_reported                              ?
2026-11-03 12:01:30  cc44  s-one    kimi-k3        ?       ?        ?       ?  unchecked  failed: APIConnectionError                ?
2026-11-03 12:02:00  dd55  s-three  k3         2,000   1,990       10   >99 %  unchecked                                        quota
2026-11-03 12:02:30  ee66  s-one    kimi-k3   50,000       0   50,000     0 %  unchecked  cold_start                         $0.2000*
total                               6 calls  157,000  14,278  142,722     9 %  unchecked                                      $0.3623

input, cached and missed: sums over the 4 calls whose cached tokens are known; 2 unknown
input of all calls: 158,000 tokens over 5 calls; 1 unknown
cost: $0.3623 over 3 calls, $0.2000 of it as stated by the provider (*); 2 unknown
quota: 1 call, 2,000 input and 20 output tokens
not run to their end: 1 call
correctness: not checked; reuse does not show that the context was right.
""",
        "",
    )


def test_show_of_nothing_known(run: Run) -> None:
    """Totals over no known figure are unknown, not 0."""
    written(Path("ledger.jsonl"), FAILED)
    assert run("show") == (
        0,
        """\
time                 id    session  model    input  cached  missed  reused  checks     cause                       cost
2026-11-03 12:01:30  cc44  s-one    kimi-k3      ?       ?       ?       ?  unchecked  failed: APIConnectionError     ?
total                               1 call       ?       ?       ?       ?  unchecked                                 ?

input, cached and missed: sums over the 0 calls whose cached tokens are known; 1 unknown
input of all calls: ? tokens over 0 calls; 1 unknown
cost: ? over 0 calls; 1 unknown
not run to their end: 1 call
correctness: not checked; reuse does not show that the context was right.
""",
        "",
    )


def test_show_of_a_session(run: Run) -> None:
    """Calls are chosen by session, and of those the last ones."""
    written(Path("ledger.jsonl"), FIRST, UNREPORTED, CLOCK, FAILED)
    _, out, _ = run("show", "--session", "s-o", "--last", "2", "--json")
    assert [call["entry_id"] for call in orjson.loads(out)["calls"]] == ["aa22", "cc44"]


def test_show_of_an_unknown_session(run: Run) -> None:
    """A session that is not in the file is one sentence and exit code 2."""
    written(Path("ledger.jsonl"), FIRST)
    assert run("show", "--session", "s-9") == (2, "", "context-ledger: There is no session 's-9' in ledger.jsonl.\n")


def test_show_as_json(run: Run) -> None:
    """Programs get every value, `null` for what is unknown, and the totals with what they leave out."""
    written(Path("ledger.jsonl"), UNREPORTED)
    assert orjson.loads(run("show", "--json")[1]) == {
        "files": ["ledger.jsonl"],
        "calls": [
            {
                "entry_id": "bb33", "started_at": NOON + 60, "session_id": "s-two", "model_id": "kimi-k3",
                "input_tokens": 1000, "cached_tokens": None, "cache_miss_tokens": None, "cache_outcome": "unknown",
                "policy_check": None, "repo_check": None, "tools_check": None, "constraints_check": None,
                "state_check": None, "advice": [], "miss_cause": "not_reported", "miss_detail": [], "request_kind": "agent", "call_end": "complete",
                "error_type": None, "cost": None, "cost_currency": None, "cost_source": None, "cost_unit": None,
                "cost_missing": "price_missing:model",
            }
        ],
        "totals": {
            "calls": 1, "repeated": 0, "unfinished": 0, "without_usage": 0, "input": 1000, "input_unknown": 0,
            "measured": 0, "input_measured": None, "cached": None, "missed": None, "cached_share": None,
            "agent_cached_share": None, "cached_unknown": 1, "priced": 0, "dollars": None,
            "dollars_of_providers": None, "unpriced": 1, "quota_calls": 0, "quota_input": None, "quota_output": None,
            "checks": {},
        },
        "not_calls": 0,
    }  # fmt: skip


def test_show_survives_values_of_wrong_types(run: Run) -> None:
    """A value of the wrong type is unknown, and nothing that acts on a terminal is printed."""
    raw = orjson.loads(line.write(made({**FIRST, "model_id": "k3\x1b[2J", "session_id": "a\nb"})))
    raw["cache"] |= {"input_tokens": "many", "cached_tokens": [], "miss_detail": 5, "cache_miss_tokens": True}
    raw["self"]["started_at"] = 1e300
    raw["money"]["cost"] = "free"
    Path("ledger.jsonl").write_bytes(orjson.dumps(raw))
    code, out, _ = run("show")
    assert (code, out.splitlines()[1].split()) == (
        0, ["?", "aa11", "a\ufffdb", "k3\ufffd[2J", "?", "?", "?", "?", "unchecked", "cold_start", "?"],
    )  # fmt: skip


def test_show_of_numbers_beyond_64_bits(run: Run) -> None:
    """AR07: JSON knows no limit of a number's size: what a line holds is shown, in words and as a document."""
    raw = orjson.loads(line.write(made(FIRST)))
    raw["cache"]["input_tokens"] = 2**80
    Path("ledger.jsonl").write_text(json.dumps(raw) + "\n", "utf-8")
    code, out, _ = run("show", "--json")
    assert (code, [row["input_tokens"] for row in json.loads(out)["calls"]]) == (0, [2**80])
    assert run("show")[0] == 0


def test_show_counts_lines_that_cannot_be_read(run: Run) -> None:
    """A torn last line is left out and counted."""
    path = written(Path("ledger.jsonl"), FIRST)
    path.write_bytes(path.read_bytes() + b'{"self": {"entry_')
    assert run("show")[1].splitlines()[-1] == (
        "left out: 1 line that cannot be read; `context-ledger verify` says which"
    )


class Terminal(io.StringIO):
    """A terminal that keeps what it was sent."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("no_color", "red"), [(None, True), ("1", False)])
def test_colours_on_a_terminal(monkeypatch: pytest.MonkeyPatch, no_color: str | None, red: bool) -> None:
    """A terminal shows failures in red, unless NO_COLOR is set."""
    written(Path("ledger.jsonl"), FAILED)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)
    code = main(["show"])
    assert (code, "\x1b[31m" in terminal.getvalue()) == (0, red)


def test_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal without room shows fewer columns and the beginnings of ids, and cuts no figure."""
    written(Path("ledger.jsonl"), {**CLOCK, "entry_id": "0123456789abcdef"})
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["show"]) == 0
    assert [row.rstrip() for row in terminal.getvalue().splitlines()[:4]] == [
        "time            id         input  reused  checks     cause                cost",
        "11-03 12:00:35  01234567  55,000    22 %  unchecked  volatile_prefix(  $0.0123",
        "                                                     datetime,",
        "                                                     second)",
    ]


def test_a_reader_that_leaves() -> None:
    """A reader that closes the pipe early, as `head` does, is no error."""
    written(Path("ledger.jsonl"), *({**CLOCK, "entry_id": f"{number:016x}"} for number in range(1000)))
    command = [sys.executable, "-c", "import sys; from otel_context_ledger.cli import main; sys.exit(main(['show']))"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        first = process.stdout.readline()
        process.stdout.close()
        assert (first[:5], process.wait(30), process.stderr.read()) == (b"time ", 0, b"")


def test_json_is_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents are UTF-8 whatever the terminal's encoding, and people's text never fails on it."""
    written(Path("ledger.jsonl"), {**FIRST, "session_id": "größe"})
    told = []
    for argv in (["show", "--json"], ["show"]):
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
        assert main(argv) == 0
        sys.stdout.flush()
        told.append(raw.getvalue())
    assert orjson.loads(told[0])["calls"][0]["session_id"] == "größe"
    assert told[1].splitlines()[1].split()[3] == b"gr??e"


# explain


def test_explain(run: Run) -> None:
    """A call in plain words: what was reused, what changed, where, why, what it cost and what to do."""
    written(Path("ledger.jsonl"), FIRST, CLOCK)
    assert run("explain", "LAST") == (
        0,
        """\
call aa22: 2026-11-03 12:00:35, kimi-k3 on kimi_open_platform (chat_completions), session s-one

sent         55,000 tokens in 41 messages after the system part, 5 % of the context window.
answered     1,204 tokens (300 of them reasoning), in 8.2 s, the first one after 0.8 s, finish reason tool_calls.
reused       12,288 of 55,000 tokens reused (22 %).
correctness  not checked; reuse does not show that the context was right.
reusable     12,300 tokens, going by the unchanged part of the prefix.
compared     with call aa11 of 2026-11-03 12:00:00, 31 s after it ended.
changed      the system part as sent.
broke        at system part 0 (environment), character 31: a clock.
cause        volatile_prefix(datetime, second): The system part or a tool's text is the same but for a span that changes by itself.
also         history_rewritten(pruned): Messages that had been sent before were cut or left out.
evidence     observed (seen in what was sent or reported); from local_diff (the two requests compared).
provider     The provider was not asked for its reason.
cost         $0.0123 (at list prices), $0.0456 without any cache, $0.0103 of it avoidable.
to do        Move it out of the prefix into the last user message, or make it change less often (a date, not a clock).
""",
        "",
    )


def test_explain_what_is_unknown(run: Run) -> None:
    """What nobody reported is said to be unknown, with the reason; no estimate stands in for a count."""
    gone = {"comparable_id": "gone", "idle_seconds": 400.0, "identity_changed": None}
    silent = {"miss_detail": ("no_usage",), "miss_evidence": ("usage_missing",)}
    written(Path("ledger.jsonl"), {**UNREPORTED, **gone, **silent, "input_tokens": None, "output_tokens": None})
    assert run("explain", "bb33") == (
        0,
        """\
call bb33: 2026-11-03 12:01:00, kimi-k3 on kimi_open_platform (chat_completions), session s-two

sent         an unknown number of tokens: no usage was reported, and no estimate stands in for it.
answered     an unknown number of tokens.
reused       unknown: the provider did not report how many tokens it reused. That is not zero.
correctness  not checked; reuse does not show that the context was right.
compared     with call gone, 6 min 40 s after it ended, which is not in this file (rotated away, or written elsewhere).
changed      unknown: only digests of the earlier call are known.
cause        not_reported(no_usage): The answer brought no usage, so how much was reused is unknown, not zero.
evidence     observed (seen in what was sent or reported); from usage_missing (the answer came without usage).
provider     The provider was not asked for its reason.
cost         unknown: no price is known for this model; set one in [prices] of context-ledger.toml.
to do        Ask for usage where it is optional (stream_options.include_usage), or use a surface that reports it.
""",
        "",
    )


def test_explain_a_failed_call(run: Run) -> None:
    """Of a call that failed the error's type is said, and no cause is sought."""
    written(Path("ledger.jsonl"), FAILED)
    assert run("explain", "LAST")[1].splitlines()[2:] == [
        "sent         an unknown number of tokens: no usage was reported, and no estimate stands in for it.",
        "answered     an unknown number of tokens; the call did not run to its end (failed: APIConnectionError).",
        "reused       unknown: the provider did not report how many tokens it reused. That is not zero.",
        "correctness  not checked; reuse does not show that the context was right.",
        "compared     with no earlier call: none in the ledger shares its beginning.",
        "cause        none sought: the call did not run to its end.",
        "provider     The provider was not asked for its reason.",
        "cost         unknown: no usage was reported.",
    ]


def lines_of(run: Run, *labels: str) -> list[str]:
    """The sentences under these labels of the last call's explanation."""
    told = orjson.loads(run("explain", "LAST", "--json")[1])["explanation"]
    return [row["text"] for row in told if row["label"] in labels]


@pytest.mark.parametrize(
    ("verdict", "conflict", "sentence"),
    [
        ("tools_changed", True, 'The provider says "tools_changed". That contradicts ours; both stand.'),
        ("tools_changed", False, 'The provider says "tools_changed". That agrees with ours.'),
        ("pending", None, "The provider was asked for its reason and had none yet when it answered."),
        ("no_comparison", None, "The provider was asked for the first time, so it had nothing to compare with."),
        (
            "no_divergence",
            True,
            "The provider compared the requests and saw no difference. That contradicts ours; both stand.",
        ),
    ],
)
def test_explain_a_providers_verdict(run: Run, verdict: str, conflict: bool | None, sentence: str) -> None:
    """A provider's own verdict stands verbatim beside ours, and a conflict is said."""
    written(Path("ledger.jsonl"), {**CLOCK, "provider_verdict": verdict, "verdict_conflict": conflict})
    assert lines_of(run, "provider") == [sentence]


def test_explain_a_verdict_that_the_ledger_asked_for(run: Run) -> None:
    """That the question was ours is said, and so is the provider's own estimate."""
    own = {"provider_verdict": "system_changed", "verdict_requested_by": "ledger", "verdict_missed_tokens": 900}
    written(Path("ledger.jsonl"), {**CLOCK, **own, "verdict_conflict": False})
    assert lines_of(run, "provider") == [
        'The provider says "system_changed". It estimates 900 missed tokens. That agrees with ours. '
        "The ledger asked it to."
    ]


@pytest.mark.parametrize("end", ["closed", "cancelled", "abandoned", "unread"])
def test_explain_an_answer_that_was_not_read(run: Run, end: str) -> None:
    """Whoever did not read the answer to its usage is not told to ask for usage."""
    unread = {"call_end": end, "miss_detail": ("answer_not_read",), "miss_evidence": (f"call_end={end}",)}
    nothing = {"input_tokens": None, "output_tokens": None, "usage_source": "missing", "cost_missing": "usage_missing"}
    written(Path("ledger.jsonl"), {**UNREPORTED, **unread, **nothing})
    assert lines_of(run, "sent", "reused", "cause", "evidence", "cost", "to do") == [
        "an unknown number of tokens: the answer was not read to its usage, and no estimate stands in for it.",
        "unknown: the answer was not read to where the provider reports it. That is not zero.",
        "not_reported(answer_not_read): The answer was not read to its end, where the provider says how much it reused. "
        "That is unknown, not zero.",
        f"observed (seen in what was sent or reported); from call_end={end}.",
        "unknown: the answer was not read to its usage.",
        "Nothing if it was meant; read an answer to its end if its counts matter.",
    ]


def test_explain_a_prompt_that_shrank_and_got_dearer(run: Run) -> None:
    """CM34: an old tool result was cut, the prompt is 17 % smaller, and it cost 7.5 times as much."""
    before = {**FIRST, "input_tokens": 219_771, "cached_tokens": 219_140, "cost": m.CostAmount(0.243266, "USD")}
    cut = {"input_tokens": 182_410, "cached_tokens": 0, "cost": m.CostAmount(1.8308, "USD")}
    written(Path("ledger.jsonl"), before, {**CLOCK, **cut, "comparable_id": "aa11", "idle_seconds": None})
    assert lines_of(run, "compared") == [
        "with call aa11 of 2026-11-03 12:00:00. Its prompt is 17 % smaller, and it cost 7.5 times as much."
    ]


def test_explain_what_a_compaction_kept(run: Run) -> None:
    """CM36: 17,920 tokens are 10 % of the earlier prompt, 21,163 are 54 % of the new one; each whole is named."""
    before = {**FIRST, "input_tokens": 173_864, "cached_tokens": 171_520, "cost": m.CostAmount()}
    after = {"input_tokens": 39_083, "cached_tokens": 17_920, "miss_cause": "history_compacted", "miss_detail": ()}
    written(Path("ledger.jsonl"), before, {**CLOCK, **after, "comparable_id": "aa11", "idle_seconds": None})
    assert lines_of(run, "compared") == [
        "with call aa11 of 2026-11-03 12:00:00. Its prompt is 78 % smaller. "
        "Kept: 10 % of the earlier prompt; sent anew: 54 % of this one."
    ]


@pytest.mark.parametrize(
    ("money", "sentence"),
    [
        (
            {"cost": m.CostAmount(0.5, "USD", "provider", "usd", 0.4)},
            "$0.5000 (as the provider states; list prices give $0.4000).",
        ),
        ({"cost": m.CostAmount(unit="quota")}, "counts against the plan's quota; no dollars."),
        (
            {"cost": m.CostAmount(), "cost_missing": "price_missing:cache_write_1h"},
            "unknown: no rate for cache_write_1h tokens is known for this model.",
        ),
        (
            {"cost": m.CostAmount(), "cost_missing": "cached_tokens_not_reported"},
            "unknown: cached tokens cost less and their number was not reported.",
        ),
        ({"cost": None}, "unknown: ?."),
    ],
)
def test_explain_cost(run: Run, money: Mapping[str, object], sentence: str) -> None:
    """A cost says where it is from, and a missing one why it is missing."""
    written(Path("ledger.jsonl"), {**FIRST, **money})
    assert lines_of(run, "cost") == [sentence]


def test_explain_checks_and_flaws(run: Run) -> None:
    """Verdicts of the checks, advice, and flaws of the record itself are told as they are."""
    flawed = {
        "policy_check": "stale", "tools_check": "consistent", "advice": ("rebuild_context",), "truncated": True,
        "ledger_error": "unencodable:nan", "usage_flags": ("miss_conflict",),
    }  # fmt: skip
    written(Path("ledger.jsonl"), {**FIRST, **flawed})
    assert lines_of(run, "correctness", "advice", "record") == [
        "policy stale, tools consistent; not checked: repository, constraints, state.",
        "rebuild_context",
        "incomplete: unencodable:nan.",
        "incomplete: some of it was too large to keep.",
        "the reported counts are odd: miss_conflict.",
    ]


@pytest.mark.parametrize(
    ("changes", "paths", "sentences"),
    [
        (None, (), []),
        ((), (), []),
        (
            ("submodule=1", "lockfile=1", "untracked=2"),
            (),
            ["since the call it is compared with: 1 submodule, 1 lockfile, 2 untracked files."],
        ),
        (
            ("commit=1", "deleted=1", "changed=1"),
            ("deleted:a:b.py", "changed:c.py"),
            ["since the call it is compared with: another commit is checked out, 1 file gone, 1 file changed (deleted "
             "a:b.py, changed c.py)."],
        ),
    ],
)  # fmt: skip
def test_explain_a_repository_that_changed(
    run: Run, changes: tuple[str, ...] | None, paths: tuple[str, ...], sentences: list[str]
) -> None:
    """What differs from the comparable call's repository is one line, with paths where they are there."""
    written(Path("ledger.jsonl"), {**FIRST, "repo_changes": changes, "repo_paths": paths})
    assert lines_of(run, "repository") == sentences


def test_explain_constraints_and_history(run: Run) -> None:
    """What is lost, turned round or broken is said in sentences, and what to do about it although all was reused."""
    wrong = {
        "constraints_check": "lost", "state_check": "broken_tool_pair", "cache_outcome": "hit", "miss_cause": None,
        "constraints": m.Findings(("negated",), (), ("validator=wording@1", "lost=C2:none:0.84", "negated=C3:exact:0.8")),
        "state": m.Findings((), (), ("result_without_call=call_1", "call_without_result=call_2")),
    }  # fmt: skip
    written(Path("ledger.jsonl"), {**FIRST, **wrong})
    assert lines_of(run, "constraints", "history", "to do") == [
        "Put the constraint back where nothing is compacted: the system part or a rules file.",
        "Send calls of tools and their results together, or cut neither of them off.",
        "looked for by wording@1.",
        "C2 is in nothing that was sent (by none, 0.84 sure).",
        "C3 is turned into its opposite (by exact, 0.8 sure).",
        "the result of call call_1 is there, and the call is not.",
        "call call_2 has no result.",
    ]


def test_explain_how_a_constraint_was_found(run: Run) -> None:
    """Where the matcher says more than the verdict, that is what is said."""
    found = ("lost=C1:number:0.80", "uncertain=C2:context:0.50", "uncertain=C3:unseen:0.00", "uncertain=C4:sense:0.60")
    wrong = {"constraints_check": "lost", "constraints": m.Findings((), (), found)}
    written(Path("ledger.jsonl"), {**FIRST, **wrong})
    assert lines_of(run, "constraints") == [
        "C1 stands there with another number (by number, 0.80 sure).",
        "C2 stands there, where it may be taken back, narrowed or asked (by context, 0.50 sure).",
        "C3 may stand in what was not looked through (by unseen, 0.00 sure).",
        "C4 may be there in other words (by sense, 0.60 sure).",
    ]


def test_explain_a_call_on_a_summary(run: Run) -> None:
    """On which summary it builds, what of all that had to survive is there, and what was odd about the compaction."""
    path = written(Path("ledger.jsonl"), {**FIRST, "compaction_event": "c-1", "summary_trusted": False})
    fields = {
        "kind": "full", "validator": "wording@1", "recall_held": 2, "recall_asked": 3, "lost": ["C2"],
        "symptoms": ["constraint_lost"],
    }  # fmt: skip
    told = m.Compacted("s1", None, 0.0, True, {"compaction_event": "c-1", "settled": True, **fields})
    path.write_bytes(path.read_bytes() + line.write_compaction(told, "0.1.0", "xxh3", "host-1") + b"\n")
    assert lines_of(run, "summary") == [
        "the history before it gave way to a summary (compaction c-1): not to be trusted.",
        "of 3 items that had to survive, 2 did, by wording@1.",
        "lost by it: C2.",
        "odd about it: constraint lost.",
    ]
    written(Path("ledger.jsonl"), {**FIRST, "compaction_event": "c-1"})
    assert lines_of(run, "summary") == [
        "the history before it gave way to a summary (compaction c-1): nobody can tell."
    ]


DRIFTED = {
    "tools_check": "invalid_call",
    "tools": m.Findings(
        ("drift", "breaking", "argument_not_in_prompt_schema"),
        ("compared=12", "not_listed=1", "breaking=1", "calls_consistent=0/10", "calls_judged=1", "calls_invalid=1"),
        ("call=metrics:drift", "call=remove:argument_not_in_prompt_schema", "contract=search:endpoint,version(session)",
         "drift=metrics:breaking(property_renamed enum_value_removed*2)", "stale_seconds=40", "other_order=6/100"),
    ),
}  # fmt: skip


def test_explain_tools(run: Run) -> None:
    """What the verdict on the tools goes by is told in sentences: who is to blame, what changed, since when."""
    written(Path("ledger.jsonl"), {**FIRST, **DRIFTED})
    assert lines_of(run, "correctness", "tools") == [
        "tools invalid_call (drift, breaking, argument_not_in_prompt_schema); "
        "not checked: policy, repository, constraints, state.",
        "12 tools compared with the live registry; 1 not in the registry.",
        "a call of metrics is right by the schema that was sent and wrong by the live one: "
        "the drift is to blame, not the model.",
        "a call of remove has an argument that only the live schema declares.",
        "search has another endpoint and version now than when the session began.",
        "metrics, as sent, is not the live one: "
        "a property was renamed, a value of an enum is gone (2 times) (breaking).",
        "the registry had changed 40 s before this call.",
        "6 of the session's 100 calls had these tools in another order than most.",
        "consistent since the registry changed: 0 of 10 calls of this session.",
    ]
    assert lines_of(run, "to do")[-1] == "Ask the server for its tools again (tools/list) and send what it says."


def test_explain_unknown_tools(run: Run) -> None:
    """Without anything to compare with, the tools are unknown, with the reason; that proves nothing."""
    unknown = {"tools_check": "unknown", "tools": m.Findings(evidence=("reason=no_registry",))}
    written(Path("ledger.jsonl"), {**FIRST, **unknown})
    assert lines_of(run, "correctness", "tools") == [
        "tools unknown; not checked: policy, repository, constraints, state; "
        "reuse does not show that the context was right.",
        f"{checks.REASONS['no_registry']}.",
    ]


def test_show_sums_the_checks(run: Run) -> None:
    """Beside each reuse figure stands its check, and under the table in how many calls all was well."""
    sound = {"tools_check": "consistent", "tools": m.Findings()}
    unsure = {"tools_check": "unknown", "tools": m.Findings()}
    written(Path("ledger.jsonl"), {**FIRST, **DRIFTED}, {**CLOCK, **sound}, {**UNREPORTED, **unsure})
    out = run("show")[1].splitlines()
    at = out[0].index("checks"), out[0].index("cause")
    assert [row[slice(*at)].strip() for row in out[1:4]] == ["tools invalid_call", "1 right, 4 not judged", "unknown"]
    assert out[4][slice(*at)].strip() == "tools invalid_call"
    assert out[-1] == "tools: in order in 1 of the 2 calls whose verdict is known; 1 unknown"


def test_show_without_any_known_verdict(run: Run) -> None:
    """Where nothing was known of any call, no figure stands in for it."""
    written(Path("ledger.jsonl"), {**FIRST, "tools_check": "unknown", "tools": m.Findings()})
    assert run("show")[1].splitlines()[-1] == "tools: unknown in 1 call"


def test_every_kind_of_change_has_words() -> None:
    """Every kind of change that the comparison can name has words of its own."""
    source = Path(schemas.__file__).read_text("utf-8") + Path(tools_check.__file__).read_text("utf-8")
    kinds = set(re.findall(r'Change\(\s*"(\w+)"', source)) | set(re.findall(r'"(\w+_(?:added|set|dropped))"', source))
    assert "property_renamed" in kinds and kinds <= set(checks.KINDS)


@pytest.mark.parametrize(
    ("settings", "values", "found"),
    [
        (
            Config(), {},
            ("ok", "no manifest ([tools.<name>]), and no call with tools is in the ledger yet; "
             "a program says what is live with tool_registry(…)."),
        ),
        (
            Config(), {"tools_check": "unknown", "tools": m.Findings(evidence=("reason=no_registry",))},
            ("warning", "no manifest ([tools.<name>]); of the last call's tools nothing is known: "
             f"{checks.REASONS['no_registry']}."),
        ),
        (
            Config(tools={"search": {"server": "docs"}}), DRIFTED,
            ("ok", "the manifest has 1 contract; a live registry was known at the last call (12 compared)."),
        ),
        (
            Config(tools={"search": {"sever": "docs"}}), {},
            ("warning", "context-ledger.toml: [tools.search] 'sever' is none of server, endpoint, permission, "
             "side_effect, version, timeout; ignored."),
        ),
    ],
)  # fmt: skip
def test_doctor_says_what_tools_are_compared_with(
    settings: Config, values: Mapping[str, object], found: tuple[str, str]
) -> None:
    """Whether a manifest or a live registry is known, and what is wrong with the manifest."""
    call = Call(orjson.loads(line.write(made({**FIRST, **values}))))
    first = next(iter(doctor.tools(settings, [call])))
    assert (first.verdict, first.sentence) == found


def test_every_cause_has_words() -> None:
    """Every word of the closed list has a sentence and a remedy, and no other word has."""
    assert list(reasons.REASONS) == list(semconv.CAUSES)
    assert all(reason.meaning.endswith(".") and reason.remedy.endswith(".") for reason in reasons.REASONS.values())
    assert {cause for cause, _ in reasons.DETAILED} <= set(semconv.CAUSES)


def test_every_part_has_words() -> None:
    """Every part of an identity has a name that fits into a sentence."""
    assert set(reasons.PARTS) == set(semconv.MEMBERS[semconv.CONTEXT_LEDGER_PART])


@pytest.mark.parametrize("cause", semconv.CAUSES)
def test_every_cause_is_explained(run: Run, cause: str) -> None:
    """Each cause is explained with its sentence and its remedy."""
    written(Path("ledger.jsonl"), {**CLOCK, "miss_cause": cause, "miss_detail": (), "miss_secondary": ()})
    reason = reasons.REASONS[cause]
    assert lines_of(run, "cause", "to do") == [f"{cause}: {reason.meaning}", reason.remedy]


# diff


def rows(*segments: str) -> tuple[tuple[str, str, int, str], ...]:
    """Segments such as `tool:read:1` as rows of a trail; the last part makes the digest."""
    cut = (segment.split(":") for segment in segments)
    return tuple((kind, name, 10 * len(seed), f"xxh3:{seed.encode().hex():0<32}") for kind, name, seed in cut)


BASE = rows("tool:read:a", "tool:edit:b", "tool:run:c", "system:system:d", "message:user:e", "message:assistant:f")
TALK = {"history_range": "1-3", "history_length": 2, "segments": m.Trail(None, 0, BASE)}


def test_diff_of_an_extended_call(run: Run) -> None:
    """What two calls share is one row, also when the later one's line holds only what it added."""
    more = m.Trail("aa11", 6, rows("message:tool:g"))
    written(Path("ledger.jsonl"), {**FIRST, **TALK}, {**CLOCK, "segments": more, "history_range": "1-4"})
    assert run("diff", "aa11", "aa22") == (
        0,
        """\
A  aa11  2026-11-03 12:00:00  kimi-k3
B  aa22  2026-11-03 12:00:35  kimi-k3

       kind                 index  name  bytes  digest
same   6 segments the same                  60
added  message                  3  tool     10  67000000

6 same, 1 added. B extends A.
""",
        "",
    )


def test_diff_of_tools_and_messages(run: Run) -> None:
    """Moved, changed, added and removed segments are told apart, each with its place, size and digest."""
    after = rows("tool:run:c", "tool:read:a", "system:system:new", "message:user:e", "message:assistant:ff")
    changed = {"segments": m.Trail(None, 0, after), "history_range": "1-3", "model_id": "kimi-k2.6"}
    written(Path("ledger.jsonl"), {**FIRST, **TALK}, {**CLOCK, **changed})
    assert run("diff", "aa11", "aa22") == (
        0,
        """\
A  aa11  2026-11-03 12:00:00  kimi-k3
B  aa22  2026-11-03 12:00:35  kimi-k2.6

         kind     index  name         bytes  digest
moved    tool     2 → 0  run             10  63000000
same     tool     0 → 1  read            10  61000000
removed  tool         1  edit            10  62000000
changed  system       0  system     10 → 30  64000000 → 6e657700
same     message      1  user            10  65000000
changed  message      2  assistant  10 → 20  66000000 → 66660000

2 same, 2 changed, 1 moved, 1 removed. The common prefix ends at tool 0 (run).
model_id: kimi-k3 → kimi-k2.6
""",
        "",
    )


def test_diff_without_the_base(run: Run) -> None:
    """Where the call that told the beginning is gone, what is known is compared and the rest said to be unknown."""
    kept = {**FIRST, "comparable_id": "gone", "segments": m.Trail("gone", 30, rows("message:user:x"))}
    later = m.Trail("aa11", 31, rows("message:assistant:y"))
    fresh = {**TALK, "entry_id": "ff77"}
    written(Path("ledger.jsonl"), kept, {**CLOCK, "segments": later}, {**FIRST, **fresh})
    extended, apart = (run("diff", "aa11", other)[1].splitlines()[3:] for other in ("aa22", "ff77"))
    assert extended == [
        "       kind                  index  name       bytes  digest",
        "same   31 segments the same                        ?",
        "added  message                   1  assistant     10  79000000",
        "",
        "31 same, 1 added. B extends A.",
        "not known: what call gone told of its segments is no longer in the file",
    ]
    assert apart == [
        "         kind     index  name  bytes  digest",
        "removed  message      0  user     10  78000000",
        "",
        "0 same, 1 removed.",
        "not known: what call gone told of its segments is no longer in the file",
        "not compared: the first 30 segments",
    ]


def test_diff_of_serialization(run: Run) -> None:
    """Equal values that were sent as other bytes are named, since no digest of a segment shows them."""
    other = {**CLOCK, **TALK, "tool_wire_hash": "xxh3:2"}
    written(Path("ledger.jsonl"), {**FIRST, **TALK, "tool_wire_hash": "xxh3:1"}, other)
    assert run("diff", "aa11", "aa22")[1].splitlines()[-2:] == [
        "6 same. Both calls are made of the same segments.",
        "tools: the same values, sent as other bytes (tool_wire_hash differs)",
    ]


def test_diff_without_segments(run: Run) -> None:
    """A line without segments is one sentence and exit code 2."""
    written(Path("ledger.jsonl"), FIRST, CLOCK)
    assert run("diff", "aa11", "aa22") == (
        2, "", "context-ledger: The line of call aa11 (ledger.jsonl:1) holds no segments to compare.\n",
    )  # fmt: skip


def test_diff_as_json(run: Run) -> None:
    """Programs get every segment, the same ones too, with whole digests."""
    written(Path("ledger.jsonl"), {**FIRST, "segments": m.Trail(None, 0, rows("tool:read:a"))})
    segment = {"index": 0, "kind": "tool", "name": "read", "size": 10, "digest": "xxh3:61" + "0" * 30}
    assert orjson.loads(run("diff", "LAST", "LAST", "--json")[1]) == {
        "a": "aa11",
        "b": "aa11",
        "segments": [{"status": "same", "old": segment, "new": segment}],
        "not_known": 0,
        "summary": {"same": 1, "changed": 0, "moved": 0, "added": 0, "removed": 0},
        "beside": {},
    }


# verify


def conversation(path: Path, key: bytes | None = None) -> Path:
    """A ledger file of four calls as the ledger itself writes them: two extend, one has a clock, one fails."""
    ledger, lore = Ledger(facts.load(), __version__, digest_key=key), facts.load()
    surface = find_surface("api.moonshot.ai", "/v1/chat/completions", {}, lore)
    assert surface is not None
    tools = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("read", "run")]
    system, found = "It is 2026-11-03 12:00:01.", []
    for step in range(4):
        talk = [
            {"role": "user" if at % 2 == 0 else "assistant", "content": f"{at}" * 200} for at in range(2 * step + 1)
        ]
        system = system if step < 2 else "It is 2026-11-03 12:00:07."
        body = {"model": "kimi-k3", "tools": tools, "messages": [{"role": "system", "content": system}, *talk]}
        now = NOON + 20 * step
        draft = ledger.open(surface, "api.moonshot.ai", surface.read_request(body), m.Surroundings(f"{step:016x}", now))
        usage = {"prompt_tokens": 5000 + 500 * step, "completion_tokens": 9, "cached_tokens": 5000 * (step == 1)}
        ending = m.Ending("failed", "APIError") if step == 3 else m.Ending()
        answer = m.Response() if step == 3 else surface.read_response({"model": "kimi-k3", "usage": usage})
        found.append(line.write(ledger.close(draft, answer, ending, m.Timing(2.0), now + 2), ledger.trail(draft)))
    path.write_bytes(b"".join(row + b"\n" for row in found))
    return path


def test_verify_what_the_ledger_writes(run: Run) -> None:
    """The ledger's own lines are without a finding, and every prefix digest follows from the segments."""
    conversation(Path("ledger.jsonl"))
    assert run("verify") == (
        0, "4 calls in 1 file: nothing wrong.\nprefix digests recomputed from the segments: 4 calls\n", "",
    )  # fmt: skip


def test_verify_keyed_digests(run: Run) -> None:
    """Keyed digests cannot be followed, which is said and no finding."""
    conversation(Path("ledger.jsonl"), b"secret")
    assert run("verify") == (
        0,
        "4 calls in 1 file: nothing wrong.\n"
        "prefix digests not verifiable without the raw digests (they are keyed): 4 calls\n",
        "",
    )


def test_verify_after_rotation(run: Run) -> None:
    """Calls whose comparable call was rotated away are no finding."""
    whole = conversation(Path("whole.jsonl")).read_bytes().splitlines(keepends=True)
    Path("ledger.jsonl").write_bytes(b"".join(whole[1:]))
    assert run("verify") == (
        0,
        "3 calls in 1 file: nothing wrong.\n"
        "prefix digests recomputed from the segments: 2 calls\n"
        "prefix digests not verifiable, because a call before is no longer in the file: 1 call\n",
        "",
    )


Damage = Callable[[dict], None]


def put(group: str, **values: object) -> Damage:
    """Sets fields of a group."""
    return lambda raw: raw[group].update(values)


def drop(group: str, name: str) -> Damage:
    """Takes a field out of a group."""
    return lambda raw: raw[group].pop(name)


@pytest.mark.parametrize(
    ("damage", "problems"),
    [
        (drop("cache", "idle_seconds"), ["idle_seconds is missing"]),
        (put("cache", new_field=1), ["new_field is not in the registry"]),
        (lambda raw: raw.update(prompt={"text": "be brief"}), ["prompt is not in the registry"]),
        (put("request", stream="yes"), ["stream is no boolean: 'yes'"]),
        (put("request", call_end=None), ["call_end is null"]),
        (put("task", request_kind="other"), ["request_kind is 'other', which is not in the registry"]),
        (put("request", output_tokens=-1), ["output_tokens is -1"]),
        (
            put("cache", cache_miss_tokens=7),
            ["cache_miss_tokens is 7, but 5500 input - 5000 cached is 500"],
        ),
        (
            put("cache", cached_tokens=None),
            [
                "cache_miss_tokens is 500, but cached_tokens is null",
                "cache_report is reported, but cached_tokens is null",
                "cache_outcome is hit, but cached is null and missed 500",
            ],
        ),
        (put("cache", cache_write_tokens=2000), ["cached_tokens + cache_write_tokens is 7000, more than input_tokens (5500)"]),
        (put("cache", cache_outcome="miss"), ["cache_outcome is miss, but cached is 5000 and missed 500"]),
        (put("cache", miss_detail=["x"]), ["there is no miss_cause, but miss_detail"]),
        (
            put("cache", miss_cause="bad_luck"),
            ["miss_cause is 'bad_luck', which is no cause"],
        ),
        (put("context", history_length=9), ["its segments are 3 messages, but history_length is 9"]),
        (
            put("context", prefix_locator=["x"]),
            ["prefix_locator holds 'x', which is not boundary:bytes:digest"],
        ),
        (
            put("context", prefix_locator=[f"0:{'9' * 5000}:x"]),
            [f"prefix_locator holds '0:{'9' * 5000}:x', which is not boundary:bytes:digest"],
        ),
    ],
)  # fmt: skip
def test_verify_finds(run: Run, damage: Damage, problems: list[str]) -> None:
    """Each thing wrong with a line is one finding with its place and id, and the exit code is 1."""
    lines = list(map(orjson.loads, conversation(Path("ledger.jsonl")).read_bytes().splitlines()))
    damage(lines[1])
    Path("ledger.jsonl").write_bytes(b"".join(orjson.dumps(raw) + b"\n" for raw in lines))
    code, out, _ = run("verify", "--json")
    found = [(item["place"], item["entry_id"], item["problem"]) for item in orjson.loads(out)["findings"]]
    assert (code, found) == (1, [("ledger.jsonl:2", f"{1:016x}", problem) for problem in problems])


def test_verify_finds_a_forged_segment(run: Run) -> None:
    """A segment that was changed after the fact breaks the prefix digests from there on, in later calls too."""
    raw = conversation(Path("ledger.jsonl")).read_bytes()
    digest = orjson.loads(raw.splitlines()[0])["segments"]["add"][2][3]
    Path("ledger.jsonl").write_bytes(raw.replace(digest.encode(), b"xxh3:" + b"0" * 32))
    code, out, _ = run("verify")
    told = [row.split(" says ")[0] for row in out.splitlines()]
    assert (code, told[0]) == (1, f"ledger.jsonl:1 {0:016x}: prefix_locator")


def test_verify_torn_foreign_and_double_lines(run: Run) -> None:
    """Torn and unreadable lines, lines that are none of ours and ids used twice are findings."""
    path = written(Path("ledger.jsonl"), FIRST, FIRST)
    path.write_bytes(path.read_bytes() + b'{"other": 1}\nunreadable\n{"self": {"ent')
    assert run("verify") == (
        1,
        "ledger.jsonl:5: a torn line: the file ends before it does\n"
        "ledger.jsonl:4: an unreadable line: it is no JSON object\n"
        "ledger.jsonl:3: no ledger line: it has no entry_id\n"
        "ledger.jsonl:2 aa11: its entry_id is that of ledger.jsonl:1\n"
        "2 calls in 1 file: 4 findings.\n"
        "prefix digests not verifiable, because the line holds no segments: 2 calls\n",
        "",
    )


def test_verify_a_lost_comparable_call(run: Run) -> None:
    """A comparable call that must be in the file, by the time at which it ended, and is not there is a finding."""
    written(Path("ledger.jsonl"), FIRST, {**CLOCK, "comparable_id": "lost", "idle_seconds": 5.0})
    assert run("verify")[1].splitlines()[0] == (
        "ledger.jsonl:2 aa22: its comparable call lost is not in the file, "
        "though it ended after the file's first line was written"
    )


def test_verify_lines_of_other_versions(run: Run) -> None:
    """Fields of lines that another version wrote are not held against this version's registry."""
    raw = orjson.loads(line.write(made({**FIRST, "ledger_version": "9.9"})))
    raw["cache"]["field_of_the_future"] = 1
    Path("ledger.jsonl").write_bytes(orjson.dumps(raw))
    assert run("verify") == (
        0,
        "1 call in 1 file: nothing wrong.\n"
        "prefix digests not verifiable, because the line holds no segments: 1 call\n"
        "fields not checked, because another version wrote the line: 1 call\n",
        "",
    )


@pytest.mark.parametrize("segments", [{"base": 1}, {"base": None, "keep": 10**15, "add": []}, [], "x"])
def test_verify_malformed_segments(run: Run, segments: object) -> None:
    """Segments of another form are a finding, and nothing breaks on them."""
    raw = orjson.loads(line.write(made(FIRST)))
    Path("ledger.jsonl").write_bytes(orjson.dumps({**raw, "segments": segments}))
    assert run("verify")[1].splitlines()[0] == (
        "ledger.jsonl:1 aa11: its segments are not of the form {base, keep, add: [[kind, name, bytes, digest], …]}"
    )


def test_verify_a_circle(run: Run) -> None:
    """Calls whose segments extend each other in a circle end, and are a finding where nothing can be kept."""
    first = {**FIRST, "comparable_id": "aa22", "segments": m.Trail("aa22", 1, ())}
    written(Path("ledger.jsonl"), first, {**CLOCK, "segments": m.Trail("aa11", 1, ())})
    assert run("verify")[0] == 1


# doctor

OURS = Plugin("opentelemetry_instrumentor", "context_ledger", "otel-context-ledger")
STARTER = Plugin("console_scripts", "opentelemetry-instrument", "opentelemetry-instrumentation")
DISTRO = (
    Plugin("opentelemetry_distro", "distro", "opentelemetry-distro"),
    Plugin("opentelemetry_configurator", "configurator", "opentelemetry-distro"),
)
EXPORTERS = tuple(
    Plugin(f"opentelemetry_{signal}_exporter", name, "opentelemetry-exporter-otlp")
    for signal in exporters.SIGNALS
    for name in ("otlp_proto_grpc", "otlp_proto_http")
)
PACKAGES = {"openai": "3.57.0", "opentelemetry-instrumentation": "0.66b2", "opentelemetry-distro": "0.66b2"}
BARE = Machine({}, PACKAGES, (OURS, STARTER), "3.11.7", "/venv")
FULL = replace(BARE, plugins=(OURS, STARTER, *DISTRO, *EXPORTERS))
EXTRA = "pip install 'otel-context-ledger[otlp]'"
NEVER = (
    "whatever library makes them, not covered: with_streaming_response (an entry without usage), Realtime, Live and "
    "responses.connect (websockets), calls by an HTTP client of one's own{}, and other programs."
)


def test_doctor_of_a_healthy_machine() -> None:
    """With a file and no SDK configured everything is fine, and each check says what was found."""
    file = written(Path("ledger.jsonl"), CLOCK, QUOTA)
    found = [check for check in examine(BARE, Config(file=file), file) if check.name not in ("disk", "vocabulary")]
    assert found == [
        Check("python", "ok", "3.11.7 in /venv; everything below is about this one."),
        Check("instrumentation", "ok", "context_ledger is registered and on."),
        Check("opentelemetry-instrument", "ok", "installed (opentelemetry-instrumentation 0.66b2)."),
        Check("SDK", "ok", "openai 3.57.0 is watched."),
        Check("SDK", "ok", "anthropic is not installed, so there is nothing of it to watch."),
        Check("coverage", "ok", NEVER.format("")),
        Check(
            "other instrumentations",
            "ok",
            "none of model calls; the ledger starts a span of its own for each call.",
        ),
        Check(
            "mode",
            "ok",
            "file only: no SDK is configured, so spans, metrics and events go nowhere unless the program does it; "
            f"to let OTEL_* decide: {EXTRA}.",
        ),
        Check("configuration", "ok", "every value that is set was understood."),
        Check("ledger file", "ok", "ledger.jsonl: 2 calls in 1 file."),
        Check("prices", "ok", "known for kimi-k3 (kimi_open_platform)."),
        Check(
            "context windows",
            "ok",
            "known for kimi-k3 (kimi_open_platform): 1,048,576, k3 (kimi_code): 1,048,576.",
        ),
        Check(
            "tools",
            "ok",
            "no manifest ([tools.<name>]), and no call with tools is in the ledger yet; "
            "a program says what is live with tool_registry(…).",
        ),
    ]


@pytest.mark.parametrize(
    ("machine", "settings", "sentence"),
    [
        (
            replace(BARE, plugins=()),
            Config(),
            "not registered: pip install otel-context-ledger into this Python.",
        ),
        (
            replace(BARE, environ={"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "flask, context_ledger"}),
            Config(),
            "switched off by OTEL_PYTHON_DISABLED_INSTRUMENTATIONS; take context_ledger or * out of it.",
        ),
        (BARE, Config(enabled=False), "switched off by CONTEXT_LEDGER_ENABLED; unset it."),
    ],
)
def test_doctor_sees_what_is_off(machine: Machine, settings: Config, sentence: str) -> None:
    """An instrumentation that is not there or switched off is a problem with its way out."""
    assert list(instrumentations.active(machine, settings)) == [Check("instrumentation", "problem", sentence)]


def test_doctor_sees_sdks() -> None:
    """An SDK out of range is a warning, none at all a problem."""
    old = replace(BARE, packages={"openai": "1.3.0"})
    assert [list(instrumentations.sdks(machine, Config())) for machine in (old, replace(BARE, packages={}))] == [
        [
            Check("SDK", "warning", "openai 1.3.0 was never tried with this version; use >=1.26,<4."),
            Check("SDK", "ok", "anthropic is not installed, so there is nothing of it to watch."),
        ],
        [Check("SDK", "problem", "none to watch: pip install openai or anthropic into this Python, if your program uses it.")],
    ]  # fmt: skip


def test_doctor_sees_other_instrumentations() -> None:
    """Other instrumentations are named with what they mean; two for one SDK are a warning."""
    names = ("opentelemetry-instrumentation-openai-v2", "openinference-instrumentation-openai")
    plugins = (OURS, *(Plugin("opentelemetry_instrumentor", "openai", name) for name in names))
    machine = replace(BARE, packages=dict.fromkeys(names, "1.0"), plugins=plugins)
    assert list(instrumentations.peers(machine, Config())) == [
        Check(
            "other instrumentations",
            "ok",
            "opentelemetry-instrumentation-openai-v2 1.0, openinference-instrumentation-openai 1.0: where one has a span "
            "open for a call, the ledger writes onto it; a call is one entry in any case.",
        ),
        Check(
            "other instrumentations",
            "warning",
            "opentelemetry-instrumentation-openai-v2 and openinference-instrumentation-openai each count the tokens of "
            "one openai call; uninstall all but one.",
        ),
    ]


@pytest.mark.parametrize(("off", "found"), [("", 1), ("openai", 0), ("*", 0)])
def test_doctor_sees_what_harms_a_client(off: str, found: int) -> None:
    """An instrumentation that takes the tools out of a client's calls is a problem, until it is switched off."""
    name = "opentelemetry-instrumentation-openai"
    machine = replace(
        BARE,
        environ={"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": off},
        packages={name: "0.62.4", "kosong": "0.56.0"},
        plugins=(OURS, Plugin("opentelemetry_instrumentor", "openai", name)),
    )
    sentence = (
        "opentelemetry-instrumentation-openai 0.62.4 reads the tools before the SDK does, and leaves none in the calls "
        "of kosong 0.56.0 (seen with 0.62.4); uninstall it, or switch it off: "
        "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=openai."
    )
    assert (
        list(instrumentations.clashes(machine, Config()))
        == [Check("other instrumentations", "problem", sentence)] * found
    )


@pytest.mark.parametrize(
    ("package", "version", "verdict", "sentence"),
    [
        (
            "openai-agents",
            "0.24.0",
            "ok",
            "openai-agents 0.24.0 is covered, except for its realtime and voice agents.",
        ),
        (
            "litellm",
            "1.110.2",
            "warning",
            "litellm 1.110.2 is covered in part, not litellm.responses and the providers that it calls itself "
            "(Anthropic, Gemini, Bedrock, …); way out: call litellm.completion with a provider that speaks OpenAI's "
            "dialect, or openai itself.",
        ),
        (
            "google-genai",
            "1.0",
            "warning",
            "google-genai 1.0 is not covered; way out: call Gemini's OpenAI-compatible endpoint with openai.",
        ),
        ("kimi-cli", "1.50.0", "ok", "kimi-cli 1.50.0 is covered."),
        (
            "kimi-cli",
            "1.52.0",
            "warning",
            "kimi-cli 1.52.0 is not covered (it runs nothing but a notice); way out: use 1.50.0.",
        ),
    ],
)
def test_doctor_says_what_is_seen_of_a_library(package: str, version: str, verdict: str, sentence: str) -> None:
    """A library is covered, in part or not, by its release, with the calls that are not seen and the way out."""
    machine = replace(BARE, packages={package: version, "boto3": "1.40.0"})
    assert list(coverage.coverage(machine, Config())) == [
        Check("coverage", verdict, sentence),
        Check("coverage", "ok", NEVER.format(" (boto3)")),
    ]


@pytest.mark.parametrize(
    ("package", "version"), [("openai", "0.28.1"), ("openai", "1.25.2"), ("openai", "4.0"), ("anthropic", "0.48.0")]
)
def test_doctor_warns_of_sdks_out_of_range(package: str, version: str) -> None:
    """SDKs older or newer than what was tried are warnings that name the releases that are watched."""
    found = next(
        c for c in instrumentations.sdks(replace(BARE, packages={package: version}), Config()) if version in c.sentence
    )
    span = {"openai": ">=1.26,<4", "anthropic": ">=0.49,<3"}[package]
    assert found == Check("SDK", "warning", f"{package} {version} was never tried with this version; use {span}.")


def test_every_release_has_one_row() -> None:
    """No two rows of the coverage table speak of one release of a package."""
    rows = (*coverage.SDKS, *coverage.LIBRARIES)
    versions = ("0.1", "0.49", "1.0", "1.26", "1.51", "2.0", "3.57", "9.9")
    told = [(row.package, version) for row in rows for version in versions if row.fits(version)]
    assert len(told) == len(set(told))


@pytest.mark.parametrize(
    ("machine", "settings", "checks"),
    [
        (
            BARE,
            Config(),
            [("warning", f"nothing is kept unless the program sets up an SDK: set CONTEXT_LEDGER_FILE, or {EXTRA}.")],
        ),
        (
            replace(BARE, environ={"OTEL_TRACES_EXPORTER": "otlp"}),
            Config(file=Path("x")),
            [("warning", f"OTEL_TRACES_EXPORTER is set, but nothing here reads it: {EXTRA}.")],
        ),
        (
            FULL,
            Config(),
            [("ok", "the OTEL_* variables decide (opentelemetry-distro 0.66b2): traces: otlp; metrics: otlp; logs: otlp.")],
        ),
        (
            replace(FULL, environ=dict.fromkeys(("OTEL_TRACES_EXPORTER", "OTEL_LOGS_EXPORTER"), "none") | {"OTEL_METRICS_EXPORTER": "prometheus"}),
            Config(),
            [
                (
                    "ok",
                    "the OTEL_* variables decide (opentelemetry-distro 0.66b2): "
                    "traces: none; metrics: prometheus; logs: none.",
                ),
                ("problem", f"no exporter 'prometheus' for metrics is installed: {EXTRA}."),
            ],
        ),
        (
            replace(FULL, environ={"OTEL_SDK_DISABLED": "true"}),
            Config(),
            [("warning", "file only: OTEL_SDK_DISABLED is true; unset it to let OTEL_* decide.")],
        ),
    ],
)  # fmt: skip
def test_doctor_says_which_mode_is_in_force(machine: Machine, settings: Config, checks: list[tuple[str, str]]) -> None:
    """Either only the file is written, or the OTEL_* variables decide; what contradicts that is named."""
    assert list(exporters.mode(machine, settings)) == [Check("mode", *check) for check in checks]


def test_doctor_reaches_an_endpoint() -> None:
    """An endpoint that answers is fine; no credential of it is printed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        machine = replace(FULL, environ={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://me:secret@127.0.0.1:{port}"})
        found = list(exporters.reach(machine, Config()))
    assert found == [Check("exporter", "ok", f"traces, metrics, logs: 127.0.0.1:{port} answers.")]


def test_doctor_finds_a_dead_endpoint() -> None:
    """An endpoint that was chosen and does not answer is a problem with its way out."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    environ = {
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"127.0.0.1:{port}", "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
    }  # fmt: skip
    assert list(exporters.reach(replace(FULL, environ=environ), Config())) == [
        Check(
            "exporter",
            "problem",
            f"traces: nothing answers at 127.0.0.1:{port} (Connection refused); start a collector there, "
            "set OTEL_EXPORTER_OTLP_ENDPOINT, or set OTEL_TRACES_EXPORTER … to none.",
        )
    ]


def test_doctor_asks_nobody_without_exporters() -> None:
    """Where no OTLP exporter is in force nothing is connected to."""
    machine = replace(BARE, environ={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    assert list(exporters.reach(machine, Config())) == []


def test_doctor_says_when_requests_are_changed() -> None:
    """That requests get a question for the provider is said, with the way out; without it nothing is said."""
    found = list(configuration(BARE, Config(provider_diagnostics=True)))
    assert [check.name for check in found] == ["configuration", "requests"]
    assert found[1].sentence.endswith("CONTEXT_LEDGER_PROVIDER_DIAGNOSTICS=0 leaves every request as it is.")


def test_doctor_repeats_warnings_of_the_configuration() -> None:
    """Values that were not understood, variables that nothing reads and unknown surfaces are warnings."""
    settings = Config(warnings=("CONTEXT_LEDGER_METRICS: 'x' is wrong",), surfaces={"gw.example": "kimmi"})
    machine = replace(BARE, environ={"CONTEXT_LEDGER_FIEL": "x", "OTEL_CONTEXT_LEDGER_FILE": "y"})
    first, second, third = configuration(machine, settings)
    assert (first.sentence, second.sentence[:56], third.sentence[:66]) == (
        "CONTEXT_LEDGER_METRICS: 'x' is wrong.",
        "CONTEXT_LEDGER_FIEL is set, but nothing reads it; the va",
        "CONTEXT_LEDGER_SURFACES: 'kimmi' (of gw.example) is no known surfa",
    )


def test_doctor_names_facts_of_no_surface() -> None:
    """A table of facts for a surface that no host is of, as a misspelt one, is a warning; others are not."""
    house = {"house": {"hosts": ["gw.example"]}, "named": {"block": 1}, "openai": {"block": 64}}
    settings = Config(facts={**house, "kimi_cod": {"block": 1}}, surfaces={"gw2.example": "named"})
    assert [check.sentence for check in configuration(BARE, settings)] == [
        "context-ledger.toml: [facts.kimi_cod] is of no use, for no host is of that surface; give it hosts."
    ]


@pytest.mark.parametrize("content", [b"\xff\xfe hello\nworld\n", b'{"name": "someone else\'s"}\n[1]'])
def test_doctor_of_a_file_that_is_no_ledger(content: bytes) -> None:
    """A file in which no line is a ledger line is a problem that says so."""
    path = Path("notes.txt")
    path.write_bytes(content)
    assert next(doctor.file(Config(file=path), path)) == Check(
        "ledger file",
        "problem",
        "notes.txt is no ledger file: 2 lines, and none of them is a ledger line. Name another in CONTEXT_LEDGER_FILE.",
    )


def test_doctor_names_what_has_no_price() -> None:
    """A model without a price or window, and a surface that is not known, are warnings with their way out."""
    seen = Seen((("unknown", "house-model"),), ("gw.example:8080",))
    assert list(known(Config(), facts.load(), seen, NOON)) == [
        Check(
            "surfaces",
            "warning",
            "unknown: gw.example:8080; name them: CONTEXT_LEDGER_SURFACES=host[:port]=surface,…",
        ),
        Check(
            "prices",
            "warning",
            "none known; unknown for house-model (unknown): set them in [prices.<model>] of context-ledger.toml.",
        ),
        Check(
            "context windows",
            "warning",
            "none known; unknown for house-model (unknown): "
            "set them in [facts.<surface>.windows] of context-ledger.toml.",
        ),
    ]


@pytest.mark.parametrize(("verdict", "code"), [("ok", False), ("warning", False), ("problem", True)])
def test_doctor_is_wrong_only_with_a_problem(verdict: str, code: bool) -> None:
    """Warnings do not make the exit code 1, problems do."""
    answer = report([Check("thing", verdict, "So it is.")])
    assert (answer.found, list(answer.parts[0].lines())[1].split()) == (code, ["thing", verdict, "So", "it", "is."])


def test_doctor_runs_here(run: Run) -> None:
    """The command looks at this very Python and prints its checks as a document."""
    _, out, _ = run("doctor", "--json")
    told = orjson.loads(out)["checks"]
    assert {"python", "instrumentation", "mode", "ledger file", "vocabulary"} <= {check["name"] for check in told}


# printing


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 10, "0 %"), (1, 1000, "<1 %"), (999, 1000, ">99 %"), (10, 10, "100 %"), (None, 10, "?"), (0, 0, "?")],
)
def test_share(part: int | None, whole: int, text: str) -> None:
    """0 and 100 percent are said only of nothing and of everything."""
    assert printing.share(part, whole) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0.0, "$0.0000"), (1234.5, "$1,234.5000"), (0.00042, "$0.000420"), (1e-9, "<$0.000001"), (None, "?")],
)
def test_money(amount: float | None, text: str) -> None:
    """An amount keeps enough figures to differ from nothing."""
    assert printing.money(amount) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.83, "0.8 s"), (59.6, "60 s"), (61, "1 min 1 s"), (7260, "2 h 1 min")])
def test_span(seconds: float, text: str) -> None:
    """A duration is told in the units that matter."""
    assert printing.span(seconds) == text
