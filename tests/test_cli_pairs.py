"""A reuse figure is never printed without its check beside it: whatever command prints it, in whatever form."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from otel_context_ledger import model as m
from otel_context_ledger.cli import checks, main, parser
from tests.test_cli import CLOCK, NOON, Run, Terminal, place, run, written
from tests.test_cli_tasks import told

__all__ = ["place", "run"]

# How each command is called; a command that is not here fails a test below.
COMMANDS = {
    "show": (), "explain": ("LAST",), "diff": ("LAST-1", "LAST"), "tasks": (), "diagnose": (), "verify": (),
    "report": (), "outcome": ("T-1", "--attempt", "1", "--constraints", "violated"), "doctor": (),
}  # fmt: skip
TRAIL = {"segments": {"base": None, "keep": 0, "add": [["system", "system", 9, f"xxh3:{'0' * 32}"]]}}
HELD = {
    **CLOCK, **TRAIL, "task_id": "T-1", "attempt_id": "1", "input_tokens": 60_007, "cached_tokens": 51_009,
    "cache_miss_tokens": 8_998, "context_window": 1_048_576, "constraints_check": "held", "constraints": m.Findings(),
    "tools_check": "unknown", "tools": m.Findings(), "prefix_locator": (), "history_length": 0,
    "avoidable_tokens": 8_003,
}  # fmt: skip
LOST = {
    **HELD, "entry_id": "aa33", "started_at": NOON + 70, "model_id": "kimi-k3.1", "constraints_check": "lost",
    "constraints": m.Findings(evidence=("lost=C1:none:0.86",)), "cached_tokens": 50_003, "cache_miss_tokens": 10_004,
    "miss_cause": "model_changed", "miss_detail": (), "comparable_id": "aa22", "avoidable_tokens": 9_001,
}  # fmt: skip
# What of these calls is reuse: tokens that were read, that were not, that could have been, and shares of them.
FIGURES = re.compile(
    r"\b(51,?009|50,?003|101,?012|8,?998|10,?004|19,?002|8,?003|9,?001|17,?004)\b|\b8[345] %|0\.8[345]\d+|\d % reused"
)
SAID = re.compile(r"\b(held|lost|violated|unknown|unchecked|[1-5] right|wrong context|in order)\b")
REUSE = ("cached", "reused", "missed")


def filled(path: Path = Path("ledger.jsonl")) -> None:
    """Two calls of one attempt, the second to another model and with a constraint lost, at more than 80 % each."""
    written(path, {**HELD, "comparable_id": None, "identity_changed": None}, LOST)
    told(path, m.Outcome("o1", NOON + 90, "T-1", "1", "failure", constraints=False))


@pytest.mark.parametrize("command", COMMANDS)
def test_numbers_beyond_any_count(run: Run, command: str) -> None:
    """A number that no float holds, or whose quotients none holds, is unknown, and no command ends on it."""
    filled()
    lines = [orjson.loads(row) for row in Path("ledger.jsonl").read_bytes().splitlines()]
    for line, number in zip(lines, (10**308, 10**305), strict=False):
        line.get("cache", {}).update(dict.fromkeys(("input_tokens", "cached_tokens", "avoidable_tokens"), number))
        line.get("request", {}).update(dict.fromkeys(("repeated_read_bytes", "duration"), number))
        line.get("cache", {})["input_tokens"] = 1
    Path("ledger.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    for form in ((), ("--json",)):
        assert run(command, *COMMANDS[command], *form)[0] in (0, 1)


def test_every_command_is_looked_at() -> None:
    """A new command comes with its arguments here; `dashboard` serves boards, and reads no ledger."""
    (commands,) = (action.choices for action in parser()._actions if action.choices)
    assert set(commands) == {*COMMANDS, "dashboard"}


@pytest.mark.parametrize("command", COMMANDS)
def test_lines_for_people(run: Run, command: str) -> None:
    """A line with a figure has a verdict in it, or is followed by that of its call; `explain` has the verdicts in the
    line after the figure, and above all others that are made of it."""
    filled()
    out = run(command, *COMMANDS[command])[1].splitlines()
    bare = [line for line in out if FIGURES.search(line) and not SAID.search(line)]
    if command == "explain":
        at = next(n for n, line in enumerate(out) if line.startswith("reused "))
        assert (FIGURES.search(out[at]) is not None, out[at + 1]) == (
            True, "correctness  tools unknown, constraints lost; not checked: policy, repository, state.",
        )  # fmt: skip
        assert not [line for line in out[:at] if line in bare]
    else:
        assert bare == []


@pytest.mark.parametrize("command", ["show", "tasks", "diagnose", "explain", "report"])
def test_these_commands_print_figures(run: Run, command: str) -> None:
    """The tests above and below look at something."""
    filled()
    assert FIGURES.search(run(command, *COMMANDS[command])[1])


@pytest.mark.parametrize("command", ["show", "tasks"])
@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_tables_on_a_terminal(monkeypatch: pytest.MonkeyPatch, command: str, width: int) -> None:
    """Where a table has room for a figure of reuse, it has room for the checks, and cuts no number."""
    filled()
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", "50")
    assert main([command]) == 0
    heads = [line.split() for line in terminal.getvalue().splitlines() if {"input", "cost"} <= set(line.split())]
    assert heads and all("checks" in head for head in heads if not set(REUSE).isdisjoint(head))
    numbers = {word for line in _plain(command) for word in line.split() if re.fullmatch(r"[$]?\d[\d,.]*", word)}
    shown = {
        word
        for line in terminal.getvalue().splitlines()
        for word in line.split()
        if re.fullmatch(r"[$]?\d[\d,.]*", word)
    }
    assert shown <= numbers


def _plain(command: str) -> list[str]:
    """The same where nothing is folded or left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", out := io.StringIO())
        main([command])
    return out.getvalue().splitlines()


@pytest.mark.parametrize("command", COMMANDS)
def test_documents_for_programs(run: Run, command: str) -> None:
    """An object with a figure has the checks as well; an entry has them in the group beside."""
    filled()
    document = orjson.loads(run(command, *COMMANDS[command], "--json")[1])
    assert [path for path, item, outer in _objects(document) if _reuses(item) and not _checked(item, outer)] == []


def _objects(value: Any, path: str = "", outer: Mapping[str, Any] | None = None) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(value, dict):
        yield path, value, outer or {}
        for name, inner in value.items():
            yield from _objects(inner, f"{path}.{name}", value)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner, f"{path}[]")


def _reuses(item: Mapping[str, Any]) -> bool:
    return any(
        name.startswith(("cached", "cache_miss")) and isinstance(value, (int, float)) for name, value in item.items()
    )


def _checked(item: Mapping[str, Any], outer: Mapping[str, Any]) -> bool:
    beside: Callable[[str], bool] = lambda name: name == "checks" or name in checks.CHECKS  # noqa: E731
    return any(map(beside, item)) or ("cache" in outer and any(map(beside, outer)))
