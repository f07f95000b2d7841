"""Owns what the model says in each turn of the example, so that a run is the same every time.

The simulated provider gives these steps as its answers. With a real engine whose weights are random, the agent takes
them in place of the answer: scripted steps, real cache. What tools return is never scripted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

TASK = (
    "Customers report that invoices are off by a cent or two against their pocket calculators, and that credit notes "
    "paid out in cash do not match the invoice. Some tests fail, too. Find the faults, fix them, and prove it."
)

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Step:
    """One answer of the model: its thoughts, the sentence before the tool calls, the calls as (name, arguments)."""

    thought: str
    text: str
    calls: tuple[Call, ...] = field(default_factory=tuple)

    def tool_calls(self, turn: int) -> list[dict[str, str]]:
        """The calls with ids that are unique in the run, arguments as the JSON text that a model writes."""
        return [
            {"id": f"call_{turn}_{place}", "name": name, "arguments": json.dumps(arguments)}
            for place, (name, arguments) in enumerate(self.calls)
        ]


def read(*paths: str) -> tuple[Call, ...]:
    """Several files read in one turn."""
    return tuple(("read", {"path": path}) for path in paths)


def tables(*regions: str) -> tuple[Call, ...]:
    """The generated tables of several regions read in one turn."""
    return read(*(f"tally/regions/{region}.py" for region in regions))


def tests(*words: str) -> Call:
    """The test runner, on everything or on the given test."""
    return ("run", {"command": ["python", "-m", "unittest", *words]})


def plan(*steps: str) -> Call:
    """The list of steps, each written as `state: text`."""
    split = (step.split(": ", 1) for step in steps)
    return ("plan", {"steps": [{"text": text, "state": state} for state, text in split]})


UNIT_OLD = "    return amount.quantize(SMALLEST_UNIT[currency], rounding=ROUND_HALF_EVEN)"
UNIT_NEW = "    return amount.quantize(SMALLEST_UNIT[currency], rounding=ROUND_HALF_UP)"
COIN_OLD = '    coins = int(amount / coin + Decimal("0.5"))'
COIN_NEW = "    coins = (amount / coin).quantize(Decimal(1), rounding=ROUND_HALF_UP)"
IMPORT_OLD = "from decimal import ROUND_HALF_EVEN, Decimal"
IMPORT_NEW = "from decimal import ROUND_HALF_UP, Decimal"
ROUNDING = "tally/rounding.py"
CREDIT_TEST = "tests.test_invoice.Totals.test_a_credit_note_in_cash_is_the_opposite"


def edit(path: str, old: str, new: str) -> Call:
    """One replacement in one file."""
    return ("edit", {"path": path, "old": old, "new": new})


STEPS: tuple[Step, ...] = (
    Step("I know nothing of the layout yet.", "I look at how the repository is laid out.", (("list", {"path": "."}),)),
    Step(
        "The rules come first; the invoice module is where amounts meet.",
        "I read the rules of the repository and the invoice module.",
        read("AGENTS.md", "tally/invoice.py", "tally/parsing.py"),
    ),
    Step("Now the failures, all of them.", "I reproduce the failures.", (tests(),)),
    Step(
        "Several failures are a cent too low on an exact half. I want to see what the tests demand.",
        "Halves seem to be rounded down; I read the tests and the rounding module.",
        read("tests/test_rounding.py", "tests/test_invoice.py", ROUNDING),
    ),
    Step(
        "Rates could be wrong as well, which would look the same in a total. The tables must be ruled out.",
        "Before I blame rounding I rule out the tax tables.",
        read("tally/regions/__init__.py", "tests/test_regions.py") + tables("ch", "de"),
    ),
    Step(
        "Both tables are complete. The neighbours that the report mentions are next.",
        "Two tables are in order; I look at more of those that customers use.",
        tables("at", "fr", "it"),
    ),
    Step(
        "Still no gap and no overlap.",
        "I look at the remaining tables with two reduced classes.",
        tables("be", "nl", "es"),
    ),
    Step(
        "The tables are right, so rounding it is. One test shows the cash fault alone.",
        "The tables are in order. I isolate the cash fault.",
        (tests(CREDIT_TEST),),
    ),
    Step(
        "Rounding must have one home. If the report rounds by itself, a fix in one place is not enough.",
        "I check that nothing rounds outside of the rounding module.",
        (("search", {"pattern": "quantize|round\\(|ROUND_"}), *read("tally/report.py")),
    ),
    Step(
        "Only the rounding module rounds. I can plan now.",
        "All rounding has one home. This is the plan.",
        (
            plan("doing: Round halves away from zero", "open: Round cash symmetrically", "open: Run all tests"),
            *tables("pl", "pt"),
        ),
    ),
    Step(
        "ROUND_HALF_UP of decimal is away from zero on a half, also for negative amounts.",
        "I round halves away from zero.",
        (edit(ROUNDING, IMPORT_OLD, IMPORT_NEW), edit(ROUNDING, UNIT_OLD, UNIT_NEW)),
    ),
    Step("That should leave the two cash tests.", "I run all tests.", (tests(),)),
    Step(
        "int() truncates towards zero, so adding a half is right for positive amounts only.",
        "Two cash tests are left; I read the module as it is now.",
        read(ROUNDING),
    ),
    Step(
        "quantize to whole coins with the same rounding is symmetric.",
        "I count coins with the same rounding.",
        (edit(ROUNDING, COIN_OLD, COIN_NEW),),
    ),
    Step(
        "Everything must pass now.",
        "I run all tests.",
        (tests(), plan("done: Round halves away from zero", "done: Round cash symmetrically", "done: Run all tests")),
    ),
    Step(
        "All 21 tests pass.",
        "`to_unit` in tally/rounding.py rounded halves to even, and `to_cash` added half a coin before it cut towards "
        "zero, which is wrong for money paid back. Both now round halves away from zero. All 21 tests pass; the "
        "runner's last line is `OK`.",
    ),
)
