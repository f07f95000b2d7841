"""Every vector file of `spec/vectors`, run the same way: an input, what must come of it, and why."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from otel_context_ledger.cli.symptoms import CANNOT_TELL, FOUND, NOT_FOUND, SYMPTOMS
from tests.vectors import RUNNERS

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "spec" / "vectors"
# What only a collector sees; collector/internal/ledger runs them.
COLLECTOR = "collector"


def cases() -> Iterator[Any]:
    for file in sorted(FOLDER.rglob("*.json")):
        kind = file.relative_to(FOLDER).with_suffix("").as_posix()
        for case in json.loads(file.read_text("utf-8"))["cases"]:
            yield pytest.param(kind, case, id=f"{kind}:{case['name']}")


def of_process() -> Iterator[Any]:
    """The vectors that a process can run: those of a collector are about calls that others made."""
    return (parameter for parameter in cases() if parameter.values[0].split("/", maxsplit=1)[0] != COLLECTOR)


@pytest.mark.parametrize(("kind", "case"), of_process())
def test_vector(kind: str, case: Mapping[str, Any]) -> None:
    """The input gives what the vector wants."""
    assert case["why"].strip(), "a vector without its reason"
    runner = RUNNERS[kind.split("/", maxsplit=1)[0]]
    assert runner(case["input"], case["want"]) == case["want"]


def test_every_case_has_its_vector() -> None:
    """Each CM, AC, AT, RS, TS and CP case that needs neither collector, log import nor threads is named by a vector."""
    named = (part for parameter in cases() for part in parameter.values[1]["name"].split())
    wanted = {"CM": CAUSES, "AC": ACCOUNTS, "AT": TASKS, "TS": TOOLS, "RS": REPOSITORY, "CP": COMPACTIONS}
    assert set(named) >= {f"{kind}{number:02d}" for kind, numbers in wanted.items() for number in numbers}


def test_every_symptom_has_its_vectors() -> None:
    """Each symptom of `diagnose` is found in one vector, not found in another, and not to be told in a third."""
    known = [parameter.values[1] for parameter in cases() if parameter.values[0] == "diagnose"]
    shown = {(case["input"]["symptom"], case["want"]["verdict"]) for case in known}
    assert shown == {(one.id, verdict) for one in SYMPTOMS for verdict in (FOUND, NOT_FOUND, CANNOT_TELL)}


CAUSES = [
    1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23, 24, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,
    36, 37, 38, 40, 41, 42, 44, 46, 47, 48, 49, 51, 52, 53, 54,
]  # fmt: skip
# AC21 is in test_calls; AC25 waits for the import of other clients' logs.
ACCOUNTS = [
    1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 22, 23, 24, 26, 27, 28, 29, 30, 31, 32, 33, 34,
]  # fmt: skip
TASKS = [1, 2, 3, 4, 5, 6, 7, 8, 12]
REPOSITORY = [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13]
TOOLS = [1, 2, 3, 4, 5, 6, 8, 9, 10]
COMPACTIONS = [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26]


def rows() -> list[list[str]]:
    """The rows of `spec/cases.md`, headings and rules left out."""
    lines = (ROOT / "spec" / "cases.md").read_text("utf-8").splitlines()
    split = [line.strip("|").split(" | ") for line in lines if re.match(r"\| [A-Z]{2}\d\d \|", line)]
    return [[cell.strip() for cell in row] for row in split]


def written(file: Path) -> Iterator[str]:
    """The tests of a file as `held by` names them."""
    for node in ast.parse(file.read_text("utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        owner = [node.name] if isinstance(node, ast.ClassDef) else []
        names = [one.name for one in inner if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
        yield from ("::".join([file.relative_to(ROOT).as_posix(), *owner, name]) for name in names)


def written_in_go() -> Iterator[str]:
    """The tests of the collector, and the records of other instrumentations that it is held to."""
    for file in (ROOT / "collector").rglob("*_test.go"):
        yield from (f"{file.name}::{name}" for name in re.findall(r"^func (Test\w+)", file.read_text("utf-8"), re.M))
    for file in (ROOT / "collector").rglob("testdata/*.yaml"):
        said = yaml.safe_load(file.read_text("utf-8"))
        yield from (f"{file.name}: {row['name']}" for row in said if isinstance(said, list))


def test_every_case_of_our_own_is_held() -> None:
    """Each row of `spec/cases.md` is whole, has an id of its own, and is held by vectors and tests that exist."""
    found = rows()
    vectors = {f"{kind}.json: {case['name']}" for kind, case in (parameter.values for parameter in cases())}
    known = vectors | {name for file in (ROOT / "tests").rglob("*.py") for name in written(file)} | {*written_in_go()}
    held = {row[0]: re.findall("`([^`]+)`", row[-1]) for row in found}
    assert {row[0] for row in found if len(row) != 5 or not all(row)} == set()
    assert len(held) == len(found) > 0
    assert {number for number, holders in held.items() if not holders} == set()
    assert {(number, holder) for number, holders in held.items() for holder in holders if holder not in known} == set()
