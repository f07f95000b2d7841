"""Settings: what each variable accepts, and the sentence that a wrong value gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from otel_context_ledger import config, environment_variables
from otel_context_ledger.config import Config, from_env

REGISTRY = Path(__file__).parent.parent / "spec" / "registry" / "environment.yaml"


def test_defaults() -> None:
    """An empty environment gives the defaults and no warning."""
    assert from_env({}) == Config()


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({"CONTEXT_LEDGER_ENABLED": "false"}, {"enabled": False}),
        ({"CONTEXT_LEDGER_ENABLED": "0"}, {"enabled": False}),
        ({"CONTEXT_LEDGER_FILE": "a/b.jsonl"}, {"file": Path("a/b.jsonl")}),
        ({"OTEL_CONTEXT_LEDGER_FILE": "c.jsonl"}, {"file": Path("c.jsonl")}),
        ({"CONTEXT_LEDGER_FILE": "a.jsonl", "OTEL_CONTEXT_LEDGER_FILE": "c.jsonl"}, {"file": Path("c.jsonl")}),
        ({"CONTEXT_LEDGER_FILE": "", "OTEL_CONTEXT_LEDGER_FILE": "c.jsonl"}, {"file": Path("c.jsonl")}),
        ({"CONTEXT_LEDGER_FILE_KEEP": "2"}, {"file_keep": 2}),
        (
            {"CONTEXT_LEDGER_SURFACES": "127.0.0.1:80=kimi_code, Gate.Example=openai"},
            {"surfaces": {"127.0.0.1:80": "kimi_code", "gate.example": "openai"}},
        ),
        ({"CONTEXT_LEDGER_METRICS": "collector"}, {"metrics": "collector"}),
        ({"CONTEXT_LEDGER_MAX_SESSIONS": "5"}, {"max_sessions": 5}),
        ({"CONTEXT_LEDGER_SESSION_ID": "s"}, {"session_id": "s"}),
        ({"CONTEXT_LEDGER_REPOSITORY_PATHS": "yes"}, {"repository_paths": True}),
        ({"CONTEXT_LEDGER_FILE": ""}, {}),
    ],
)
def test_values(environ: Mapping[str, str], wanted: Mapping[str, object]) -> None:
    """A variable, also under the name that opentelemetry-instrument's flags set, becomes its setting."""
    assert from_env(environ) == replace(Config(), **wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("ENABLED", "maybe", "CONTEXT_LEDGER_ENABLED: 'maybe' is not true or false; using the default"),
        ("MAX_BYTES", "-1", "CONTEXT_LEDGER_MAX_BYTES: '-1' is not a whole number above 0; using the default"),
        ("METRICS", "both", "CONTEXT_LEDGER_METRICS: 'both' is not one of sdk, collector, off; using the default"),
        ("SURFACES", "x", "CONTEXT_LEDGER_SURFACES: 'x' is not host[:port]=surface,…; using the default (at 'x')"),
        ("FILE", "~nosuchuser/l.jsonl", "CONTEXT_LEDGER_FILE: '~nosuchuser/l.jsonl' is not a path; using the default"),
        ("CONFIG", "no.toml", "CONTEXT_LEDGER_CONFIG: there is no file 'no.toml'; using no file"),
    ],
)
def test_wrong_values(name: str, value: str, sentence: str) -> None:
    """A wrong value is one sentence that holds it and what is accepted, and then the default."""
    found = from_env({f"CONTEXT_LEDGER_{name}": value})
    assert found.warnings == (sentence,)


def test_toml(tmp_path: Path) -> None:
    """Facts and prices of context-ledger.toml are handed on; what is no table of them is a sentence."""
    file = tmp_path / "own.toml"
    file.write_text('facts.openai.block = 64\nprices.mine = {input = 1.0}\nprices.bad = {input = "dear"}\n', "utf-8")
    found = from_env({"CONTEXT_LEDGER_CONFIG": str(file)})
    assert (found.facts, found.prices) == ({"openai": {"block": 64}}, {"mine": {"input": 1.0}})
    assert found.warnings == (
        "own.toml: [prices.bad] {'input': 'dear'} is not a table of rates in USD per million tokens "
        "(input, cache_read, cache_write, cache_write_1h, cache_write_12h, output); ignored",
    )


def test_toml_of_the_correctness_wing(tmp_path: Path) -> None:
    """Constraints and the numbers of compaction are handed on; what is neither is a sentence."""
    file = tmp_path / "own.toml"
    file.write_text(
        'constraints.C1 = "x"\nconstraints.C2.kind = "goal"\ncompaction = {ratio = 0.85, loop = "3"}\n', "utf-8"
    )
    found = from_env({"CONTEXT_LEDGER_CONFIG": str(file)})
    assert (found.constraints, found.compaction) == ({"C1": "x"}, {"ratio": 0.85})
    assert found.warnings == (
        "own.toml: [constraints.C2] {'kind': 'goal'} is not a text, or a table with one; ignored",
        "own.toml: [compaction.loop] '3' is not a number; ignored",
    )


@pytest.mark.parametrize(
    ("text", "variable", "wanted", "warnings"),
    [
        ("paths = true", "", True, ()),
        ("paths = true", "false", False, ()),
        ("paths = false", "true", True, ()),
        ("paths = 1", "", False, ("own.toml: [repository.paths] 1 is not true or false; ignored",)),
    ],
)
def test_paths_of_the_repository(tmp_path: Path, text: str, variable: str, wanted: bool, warnings: tuple[str, ...]):
    """`[repository] paths` of the file that is named opts in, and the variable goes before it."""
    file = tmp_path / "own.toml"
    file.write_text(f"[repository]\n{text}\n", "utf-8")
    found = from_env({"CONTEXT_LEDGER_CONFIG": str(file), "CONTEXT_LEDGER_REPOSITORY_PATHS": variable})
    assert (found.repository_paths, found.warnings) == (wanted, warnings)


def test_a_repository_does_not_opt_in_for_its_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A context-ledger.toml that is only found in the working directory makes no path leave, and says so."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "context-ledger.toml").write_text("[repository]\npaths = true\n", "utf-8")
    found = from_env({})
    assert (found.repository_paths, found.warnings) == (
        False,
        ("context-ledger.toml: [repository.paths] counts only in a file that CONTEXT_LEDGER_CONFIG names; ignored",),
    )


def test_unreadable_toml(tmp_path: Path) -> None:
    """A file that is no TOML is a sentence, not an error."""
    file = tmp_path / "own.toml"
    file.write_text("not toml", "utf-8")
    (warning,) = from_env({"CONTEXT_LEDGER_CONFIG": str(file)}).warnings
    assert warning.startswith("own.toml: not readable as TOML (")


def test_a_file_that_cannot_be_opened_is_named_without_its_place(tmp_path: Path) -> None:
    """PR08: the sentence about a file that the system refuses holds its name and the reason, and no directory."""
    (tmp_path / "own.toml").mkdir()
    (warning,) = from_env({"CONTEXT_LEDGER_CONFIG": str(tmp_path / "own.toml")}).warnings
    assert warning == "own.toml: not readable as TOML (Is a directory); using no file"


def test_every_variable_is_in_the_registry() -> None:
    """What the configuration reads is what the registry documents and `opentelemetry-instrument` offers."""
    groups = {g["id"]: g for g in yaml.safe_load(REGISTRY.read_text("utf-8"))["attribute_groups"]}
    rows = groups["context_ledger.environment"]["annotations"]["variables"]
    documented = {row["name"] for row in rows if row.get("component", "sdk") == "sdk"}
    offered = {name for name in dir(environment_variables) if name.startswith("OTEL_")}
    assert set(config.VARIABLES) == documented
    assert offered == {f"OTEL_{row['name']}" for row in rows}
