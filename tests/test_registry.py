"""The registry: its shape, its names, how it covers the entry, and that what is generated from it is up to date."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
import subprocess
import sys
import typing
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
import yaml

from otel_context_ledger import environment_variables, model, semconv

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "spec" / "registry"
GROUPS = {"task", "model", "context", "cache", "request", "money", "checks", "compaction", "self"}
# Fields of an Entry outside its groups: they are there for metrics and for the standard names.
UNGROUPED = {
    "system_fingerprint",
    "sampling",
    "usage",
    "cost_components",
    "repo_head",
    "service_tier",
    "compacted",
    "odd",
}
# What a value can be, and the types that it then has.
HOLDS = {
    "count": {"int", "string"},
    "number": {"double"},
    "flag": {"boolean"},
    "word": {"string", "string[]"},
    "id": {"string"},
    "name": {"string"},
    "text": {"string"},
    "phrase": {"string", "string[]"},
    "digest": {"string", "string[]"},
}
COMPONENTS = {"sdk", "correctness", "collector", "diagnostics"}
TYPES = ["string", "int", "double", "boolean", "string[]", "int[]", "double[]", "boolean[]"]
PYTHON_TYPES = {"string": str, "int": int, "double": float, "boolean": bool, "string[]": list}
NAME = "^[a-z][a-z0-9]*(_[a-z0-9]+)*([.][a-z][a-z0-9]*(_[a-z0-9]+)*)+$"
TEXT = {"type": "string", "minLength": 3}
BRIEF = {"type": "string", "minLength": 3, "maxLength": 110}


def record(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """The JSON schema of an object that has these properties and no others."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def several(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1}


COMPONENT = record({"component": {"enum": sorted(COMPONENTS)}})
STABILITY = {"const": "development"}
MEMBER = record({"id": TEXT, "value": TEXT, "brief": TEXT, "annotations": COMPONENT}, ("annotations",))
NOTES = {
    "group": {"enum": sorted(GROUPS)},
    "field": TEXT,
    "cardinality": {"enum": ["bounded", "unbounded"]},
    "component": {"enum": sorted(COMPONENTS)},
    "privacy": record(
        {"holds": {"enum": sorted(HOLDS)}, "guessable": {"type": "boolean"}, "note": TEXT}, ("guessable", "note")
    ),
}
ATTRIBUTE = record(
    {
        "key": {"type": "string", "pattern": NAME},
        "type": {"anyOf": [{"enum": TYPES}, record({"members": several(MEMBER)})]},
        "brief": BRIEF,
        "note": TEXT,
        "examples": several({}),
        "stability": STABILITY,
        "annotations": record(NOTES, ("field",)),
    },
    ("note",),
)
REFERENCE = {"anyOf": [record({"ref": TEXT}), record({"ref_group": TEXT})]}
UPSTREAM = record(
    {
        "ref": {"type": "string", "pattern": NAME},
        "brief": BRIEF,
        "examples": several({}),
        "annotations": record(
            {
                "type": {"enum": TYPES},
                "source": {"enum": ["genai", "semconv"]},
                "cardinality": NOTES["cardinality"],
                "component": NOTES["component"],
                "privacy": NOTES["privacy"],
            }
        ),
    }
)
SIGNAL = {
    "name": {"type": "string", "pattern": NAME},
    "brief": BRIEF,
    "stability": STABILITY,
    "attributes": several(REFERENCE),
}
METRIC = record(
    {
        **SIGNAL,
        "instrument": {"enum": ["counter", "histogram", "updowncounter", "gauge"]},
        "unit": {"type": "string", "pattern": "^(s|By|1|[{][A-Za-z]+[}])$"},
        "annotations": record(
            {"component": NOTES["component"], "boundaries": several({"type": "number"})}, ("boundaries",)
        ),
    }
)
VARIABLE = record(
    {
        "name": {"type": "string", "pattern": "^CONTEXT_LEDGER_[A-Z_]+$"},
        "type": {"enum": ["boolean", "int", "string", "path", "map", "enum", "secret"]},
        "default": {"type": "string"},
        "forms": TEXT,
        "brief": BRIEF,
        "component": NOTES["component"],
    }
)
PUBLIC = {"id": TEXT, "visibility": {"const": "public"}, "brief": TEXT, "stability": STABILITY}
FORMAT = {"file_format": {"const": "definition/2"}}
SCHEMAS = {
    "manifest": record(
        {
            "name": TEXT,
            "description": TEXT,
            "schema_url": {"type": "string", "pattern": "^https://[^/]+/.+/[0-9]+[.][0-9]+[.][0-9]+$"},
            "stability": STABILITY,
            "dependencies": several(record({"schema_url": TEXT, "registry_path": {"type": "string", "pattern": "@"}})),
        }
    ),
    "attributes": record(
        {
            **FORMAT,
            "attributes": several(ATTRIBUTE),
            "attribute_groups": several(record({**PUBLIC, "attributes": several(UPSTREAM)})),
        }
    ),
    "events": record({**FORMAT, "events": several(record({**SIGNAL, "annotations": COMPONENT}))}),
    "metrics": record(
        {
            **FORMAT,
            "attribute_groups": several(
                record({"id": TEXT, "visibility": {"const": "internal"}, "attributes": several(REFERENCE)})
            ),
            "metrics": several(METRIC),
        }
    ),
    "environment": record(
        {
            **FORMAT,
            "attribute_groups": several(
                record({**PUBLIC, "note": TEXT, "annotations": record({"variables": several(VARIABLE)})})
            ),
        }
    ),
}


def generator() -> ModuleType:
    """tools/generate.py as a module, wherever the tests are started from."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "tools" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


GENERATE = generator()
REGISTRY = GENERATE.load()
OURS = {row["key"]: row for row in REGISTRY.attributes}
EVERY = OURS | {row["key"]: row for row in REGISTRY.upstream}


def leaves(kind: type, prefix: str = "") -> typing.Iterator[str]:
    """The dotted fields of a record, nested records opened."""
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        nested = [
            part for part in (hints[field.name], *typing.get_args(hints[field.name])) if dataclasses.is_dataclass(part)
        ]
        if nested:
            yield from leaves(typing.cast(type, nested[0]), f"{prefix}{field.name}.")
        else:
            yield prefix + field.name


def namespaces(names: typing.Iterable[str]) -> set[str]:
    return {name.rsplit(".", depth)[0] for name in names for depth in range(1, name.count(".") + 1)}


@pytest.mark.parametrize("name", SCHEMAS)
def test_file_has_the_shape_of_a_definition(name: str) -> None:
    """Every file is a `definition/2` (the manifest a manifest) with nothing missing and nothing unknown in it."""
    content = yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8"))
    problems = [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
        for error in jsonschema.Draft202012Validator(SCHEMAS[name]).iter_errors(content)
    ]
    assert problems == []


def test_folder_holds_these_files_only() -> None:
    """A file that no schema covers would be read by the generator and by Weaver unchecked."""
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.yaml" for name in SCHEMAS}


def test_names_are_unique() -> None:
    """No name is defined twice, and no two names share a constant."""
    rows = [*REGISTRY.attributes, *REGISTRY.upstream, *REGISTRY.events, *REGISTRY.metrics]
    constants = {name for block in GENERATE.names(REGISTRY) for name in block}
    variables = [row["name"] for row in REGISTRY.variables]
    assert (len(constants), len(set(variables))) == (len(rows), len(variables))


def test_no_attribute_is_a_namespace() -> None:
    """`x.y` and `x.y.z` are never both attributes; events and metrics are kinds of their own."""
    assert set(EVERY) & namespaces(EVERY) == set()


def test_no_metric_is_a_namespace() -> None:
    """The same for metrics among themselves."""
    metrics = {row["name"] for row in REGISTRY.metrics}
    assert metrics & namespaces(metrics) == set()


def test_ours_stand_under_our_prefix_and_upstream_ones_do_not() -> None:
    """Nothing of ours is put into a namespace of OpenTelemetry, and nothing of theirs is redefined."""
    named = [*OURS, *(row["name"] for row in (*REGISTRY.events, *REGISTRY.metrics))]
    assert [name for name in named if not name.startswith("context_ledger.")] == []
    prefixes = {row["key"].split(".")[0] for row in REGISTRY.upstream}
    assert prefixes == {"gen_ai", "openai", "server", "error", "vcs"}


def test_metric_names_hold_no_unit_and_no_total() -> None:
    """Units and `_total` are added by the translation to Prometheus."""
    endings = re.compile("_(total|seconds|bytes|ratio|usd)$")
    assert [row["name"] for row in REGISTRY.metrics if endings.search(row["name"])] == []


def test_metric_names_in_prometheus() -> None:
    """Dots become underscores, time and size units are spelled out, annotations vanish, counters end in _total."""
    got = {row["name"]: GENERATE.prometheus(row) for row in REGISTRY.metrics}
    assert got["context_ledger.calls"] == "context_ledger_calls_total"
    assert got["context_ledger.cost"] == "context_ledger_cost_total"
    assert got["context_ledger.time_to_first_token"] == "context_ledger_time_to_first_token_seconds"
    assert got["context_ledger.repeated_read"] == "context_ledger_repeated_read_bytes_total"


@pytest.mark.parametrize("key", EVERY)
def test_examples_have_the_type_of_the_attribute(key: str) -> None:
    """An example is a value that could be emitted; for an enumeration it is one of the members."""
    row = EVERY[key]
    words = {member["value"] for member in row["members"]}
    wrong = [
        one for one in row["examples"] if type(one) is not PYTHON_TYPES[row["type"]] or (words and one not in words)
    ]
    assert wrong == []


def test_enumerations_are_lower_snake_words_and_bounded() -> None:
    """A member's id is its value, written in lower case, and an enumeration can always be a label."""
    enumerations = {key: row for key, row in OURS.items() if row["members"]}
    members = [member for row in enumerations.values() for member in row["members"]]
    assert [m for m in members if m["id"] != m["value"] or not re.fullmatch("[a-z0-9]+(_[a-z0-9]+)*", m["value"])] == []
    assert [key for key, row in enumerations.items() if row["cardinality"] != "bounded"] == []


def test_check_verdicts_are_the_words_of_the_checks() -> None:
    """`context_ledger.verdict` on a metric says what the five checks say on an entry."""
    words = {key: set(semconv.MEMBERS[key]) for key in OURS if key.endswith("_check")}
    assert len(words) == 5
    assert set(semconv.MEMBERS[semconv.CONTEXT_LEDGER_VERDICT]) == set().union(*words.values())


def test_digests_say_whether_they_can_be_guessed() -> None:
    """Every digest has the mark, and so has the name of a session, which can be the digest of a cache key."""
    names = re.compile("_hash$|_identity$|compaction[.]identity_|repo_snapshot$|prefix_locator$|digest_scheme$")
    digests = {key for key, row in OURS.items() if row["privacy"]["holds"] == "digest"}
    marked = {row["privacy"]["holds"] for row in EVERY.values() if "guessable" in row["privacy"]}
    assert (digests, marked) == (set(filter(names.search, OURS)), {"digest", "name"})
    assert {key for key in digests if "guessable" not in OURS[key]["privacy"]} == set()


def test_every_attribute_says_what_it_gives_away() -> None:
    """What a value holds fits its type; a word of a list is a word; where more than a number or a word leaves, it is
    said whose it is or of what. docs/privacy.md is written from this."""
    wrong = {key for key, row in EVERY.items() if row["type"] not in HOLDS[row["privacy"]["holds"]]}
    listed = {key for key, row in EVERY.items() if row["members"] and row["privacy"]["holds"] != "word"}
    told = ("id", "name", "text", "phrase", "digest")
    silent = {key for key, row in EVERY.items() if row["privacy"]["holds"] in told and "note" not in row["privacy"]}
    assert (wrong, listed, silent) == (set(), set(), set())


def test_every_entry_field_has_exactly_one_attribute() -> None:
    """The groups of `model.Entry` and the registry cover each other; the difference is printed by group and field."""
    hints = typing.get_type_hints(model.Entry)
    groups = {name: hints[name] for name in (field.name for field in dataclasses.fields(model.Entry)) if name in GROUPS}
    fields = [f"{name}.{leaf}" for name, kind in groups.items() for leaf in leaves(kind)]
    covered = [f"{row['group']}.{row['field']}" for row in REGISTRY.attributes if "field" in row]
    assert {
        "in the model only": sorted(set(fields) - set(covered)),
        "in the registry only": sorted(set(covered) - set(fields)),
        "in the registry twice": sorted({path for path in covered if covered.count(path) > 1}),
    } == {"in the model only": [], "in the registry only": [], "in the registry twice": []}


def test_entry_has_no_other_fields() -> None:
    """What stands in an Entry outside its groups is known here, so that no new group is forgotten."""
    assert {field.name for field in dataclasses.fields(model.Entry)} - GROUPS == UNGROUPED


def test_attribute_of_a_field_is_named_like_the_field() -> None:
    """The key is the prefix and the field, so that file, span and record speak of one thing by one name."""
    assert [key for key, row in OURS.items() if row.get("field", key[15:]) != key.removeprefix("context_ledger.")] == []


def pairs(value: Any) -> typing.Iterator[tuple[str, Any]]:
    """Every member of a value of any depth."""
    if isinstance(value, dict):
        yield from value.items()
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from pairs(item)


def test_words_of_vectors_are_members() -> None:
    """US07: where a vector wants a word of a closed list, the registry has it; where usage was is one of them."""
    listed = {
        row["annotations"].get("field", key): {member["value"] for member in row["members"]}
        for key, row in OURS.items()
        if row["members"]
    }
    cases = [
        case
        for file in (ROOT / "spec/vectors").rglob("*.json")
        for case in json.loads(file.read_text("utf-8"))["cases"]
    ]
    wanted = [pair for case in cases for pair in pairs(case["want"])]
    usages = [value for name, value in wanted if name == "usage" and isinstance(value, dict)]
    wanted += [("usage_source", usage["source"]) for usage in usages if "source" in usage]
    found = {(name, word) for name, word in wanted if name in listed and isinstance(word, str)}
    assert {"usage_source", "miss_cause", "cache_report", "call_end"} <= {name for name, _ in found}
    assert {(name, word) for name, word in found if word not in listed[name]} == set()


def test_model_defaults_are_members() -> None:
    """Where a record starts with a word, the word is in the list of its attribute."""
    defaults = {
        f"context_ledger.{field.name}": field.default
        for name, kind in typing.get_type_hints(model.Entry).items()
        if name in GROUPS
        for field in dataclasses.fields(kind)
        if isinstance(field.default, str)
    }
    assert {k: v for k, v in defaults.items() if k in semconv.MEMBERS and v not in semconv.MEMBERS[k]} == {}


def test_signals_refer_to_known_attributes() -> None:
    """Every reference of an event or a metric is defined, and none is repeated."""
    groups = {"context_ledger.upstream", "context_ledger.shared"}
    for row in REGISTRY.events:
        keys = [part["ref"] for part in row["attributes"] if "ref" in part]
        assert (row["name"], sorted(set(keys) - set(EVERY)), len(keys)) == (row["name"], [], len(set(keys)))
        assert {part["ref_group"] for part in row["attributes"] if "ref_group" in part} <= groups
    for metric in semconv.METRICS.values():
        assert (metric.name, set(metric.attributes) - set(EVERY)) == (metric.name, set())
        assert len(metric.attributes) == len(set(metric.attributes))


def test_metrics_have_bounded_attributes_only() -> None:
    """No id, hash, path or count is ever a label."""
    used = {(metric.name, key) for metric in semconv.METRICS.values() for key in metric.attributes}
    assert {(name, key) for name, key in used if EVERY[key]["cardinality"] != "bounded"} == set()


def test_sdk_metrics_use_sdk_attributes() -> None:
    """What is emitted now does not wait for a label of a later component."""
    now = [row for row in REGISTRY.metrics if row["component"] == "sdk"]
    assert {key for row in now for key in row["attributes"] if EVERY[key]["component"] != "sdk"} == set()


def test_entry_event_carries_the_whole_entry() -> None:
    """The event is the record: every attribute that stands in an Entry, the compaction that led to it, and what a
    collector adds on the way."""
    event = next(row for row in REGISTRY.events if row["name"] == semconv.EVENT_ENTRY)
    keys = {part["ref"] for part in event["attributes"] if "ref" in part}
    added = {key for key, row in OURS.items() if row["component"] == "collector"}
    assert keys == {key for key, _, _ in semconv.ENTRY_FIELDS} | {semconv.CONTEXT_LEDGER_COMPACTION_EVENT} | added


def test_every_attribute_is_used() -> None:
    """An attribute that no event and no metric carries has no place here."""
    events = {part["ref"] for row in REGISTRY.events for part in row["attributes"] if "ref" in part}
    metrics = {key for metric in semconv.METRICS.values() for key in metric.attributes}
    assert set(OURS) - events - metrics == set()


def test_flags_are_the_environment_variables() -> None:
    """Each variable is an attribute `OTEL_<name>` that holds its own name, as opentelemetry-instrument wants it."""
    flags = {name: getattr(environment_variables, name) for name in dir(environment_variables) if name[0] != "_"}
    assert flags == {f"OTEL_{row['name']}": f"OTEL_{row['name']}" for row in REGISTRY.variables}


def test_environment_variables_are_those_that_are_read() -> None:
    """The registry documents what the configuration reads, and marks as later what it does not read yet."""
    config = pytest.importorskip("otel_context_ledger.config")
    now = {row["name"] for row in REGISTRY.variables if row["component"] == "sdk"}
    assert now == set(config.VARIABLES)


def test_environment_variables_are_on_the_reference_page() -> None:
    """A user finds every variable with its default and its accepted forms."""
    page = (ROOT / "docs" / "attributes.md").read_text("utf-8")
    missing = [
        v["name"]
        for v in REGISTRY.variables
        if f"| `{v['name']}` | {v['default'] or 'unset'} | {v['forms']} |" not in page
    ]
    assert missing == []


@pytest.mark.parametrize("target", GENERATE.TARGETS)
def test_generated_file_is_up_to_date(target: str) -> None:
    """The committed file is what the generator would write; otherwise run `python tools/generate.py`."""
    assert (ROOT / target).read_text("utf-8") == GENERATE.render(REGISTRY, target)


def test_check_passes_on_a_fresh_tree() -> None:
    """`--check` says nothing and succeeds when nothing is stale."""
    run = subprocess.run(
        [sys.executable, "tools/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_check_names_a_stale_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--check` exits 1 and names the file that differs, and leaves it as it is."""
    for target in GENERATE.TARGETS:
        (tmp_path / target).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / target).write_text(GENERATE.render(REGISTRY, target), "utf-8")
    (tmp_path / "docs" / "attributes.md").write_text("old", "utf-8")
    (tmp_path / "tools").symlink_to(ROOT / "tools")
    monkeypatch.setattr(GENERATE, "ROOT", tmp_path)
    assert GENERATE.main(REGISTRY, check=True) == 1
    assert capsys.readouterr().out == "stale: docs/attributes.md\n"
    assert (tmp_path / "docs" / "attributes.md").read_text("utf-8") == "old"
