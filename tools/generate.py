"""Owns the step from spec/registry to what is written from it, with tools/templates: Python, Go, the reference page.
The collector's copy of the provider lore is written from facts.toml beside it.

`python tools/generate.py` writes; `--check` names the stale files and exits 1. tests/test_registry.py judges the names.
"""

from __future__ import annotations

import itertools
import json
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
FACTS = ROOT / "otel_context_ledger" / "surfaces" / "facts.toml"
UNITS = {"s": "_seconds", "By": "_bytes"}
SPELLED = {"AI": "AI", "API": "API", "ID": "ID", "OPENAI": "OpenAI", "SDK": "SDK", "VCS": "VCS"}
Row = Mapping[str, Any]
Parts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Registry:
    """The rows of the YAML files, annotations merged into them. Upstream attributes have `key` and `type` like ours, an
    enumeration has the type string and its values in `members`, a metric's `attributes` are all of its keys."""

    schema_url: str
    attributes: Sequence[Row]
    upstream: Sequence[Row]
    events: Sequence[Row]
    metrics: Sequence[Row]
    shared: Sequence[str]
    variables: Sequence[Row]


def load(folder: Path = ROOT / "spec" / "registry") -> Registry:
    """The registry in `folder`; raises KeyError where a file lacks a part."""
    files = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in sorted(folder.glob("*.yaml"))}
    groups = {group["id"]: group for file in files.values() for group in file.get("attribute_groups", ())}
    shared = [row["ref"] for row in groups["context_ledger.shared"]["attributes"]]
    return Registry(
        schema_url=files["manifest"]["schema_url"],
        attributes=[_attribute(row) for row in files["attributes"]["attributes"]],
        upstream=[_attribute(row) for row in groups["context_ledger.upstream"]["attributes"]],
        events=[{**row, **row["annotations"]} for row in files["events"]["events"]],
        metrics=[_measured(row, shared) for row in files["metrics"]["metrics"]],
        shared=shared,
        variables=groups["context_ledger.environment"]["annotations"]["variables"],
    )


def _attribute(row: Row) -> Row:
    words = {"type": "string", **row["type"]} if isinstance(row.get("type"), Mapping) else {"members": []}
    return {"key": row.get("ref"), **row, **row["annotations"], **words}


def _measured(row: Row, shared: Sequence[str]) -> Row:
    keys = [key for part in row["attributes"] for key in ([part["ref"]] if "ref" in part else shared)]
    return {**row, **row["annotations"], "attributes": keys}


def prometheus(metric: Row) -> str:
    """The metric's name in Prometheus, without the _bucket, _sum and _count of a histogram."""
    total = "_total" if metric["instrument"] == "counter" else ""
    return str(metric["name"]).replace(".", "_") + UNITS.get(metric["unit"], "") + total


def constant(name: str, kind: str = "") -> str:
    """The constant of a name; `kind` (EVENT, METRIC) takes the place of our prefix."""
    return (f"{kind}.{name.split('.', 1)[1]}" if kind else name).replace(".", "_").upper()


def names(registry: Registry) -> list[dict[str, str]]:
    """Constant to value for every name, in blocks: attributes, upstream attributes, events, metrics."""
    blocks = [{constant(row["key"]): row["key"] for row in rows} for rows in (registry.attributes, registry.upstream)]
    signals = {"EVENT": registry.events, "METRIC": registry.metrics}
    return blocks + [{constant(row["name"], kind): row["name"] for row in rows} for kind, rows in signals.items()]


def spread(head: str, items: Iterable[str], tail: str, pad: str = "    ") -> str:
    """Items in brackets, one a line, each with its comma."""
    return head + "".join(f"\n{pad}{item}," for item in items) + f"\n{pad[4:]}{tail}"


def group(items: Sequence[str], pad: str, before: int = 0) -> str:
    """A tuple inside `pad`, after `before` characters: on one line if that fits into 120 with its comma."""
    flat = f"({', '.join(items)}{',' * (len(items) == 1)})"
    return flat if len(pad) + before + len(flat) < 120 else spread("(", items, ")", pad + "    ")


def python(registry: Registry) -> Parts:
    own = {constant(row["key"]): row for row in registry.attributes}
    lists = {name: [json.dumps(m["value"]) for m in row["members"]] for name, row in own.items() if row["members"]}
    entry = (f'({name}, "{row["group"]}", "{row["field"]}")' for name, row in own.items() if "field" in row)
    values = (f"{name}: {group(words, '    ', len(name) + 2)}" for name, words in lists.items())
    types = (f'{constant(row["key"])}: "{row["type"]}"' for row in (*registry.attributes, *registry.upstream))
    tables = (
        spread("ENTRY_FIELDS: tuple[tuple[str, str, str], ...] = (", entry, ")"),
        spread("CAUSES: tuple[str, ...] = (", lists["CONTEXT_LEDGER_MISS_CAUSE"], ")"),
        spread("MEMBERS: dict[str, tuple[str, ...]] = {", values, "}"),
        spread("TYPES: dict[str, str] = {", types, "}"),
        spread("METRICS: dict[str, Metric] = {", map(_metric, registry.metrics), "}"),
    )
    blocks = ["\n".join(f'{name} = "{text}"' for name, text in block.items()) for block in names(registry)]
    return {"names": "\n\n".join(blocks), "tables": "\n\n".join(tables)}


def _metric(metric: Row) -> str:
    own, pad = constant(metric["name"], "METRIC"), " " * 8
    keys = group([constant(key) for key in metric["attributes"]], pad)
    limits = group([str(limit) for limit in metric.get("boundaries", ())], pad)
    texts = (json.dumps(metric[part]) for part in ("instrument", "unit", "brief"))
    return spread(f"{own}: Metric(", (own, *texts, keys, limits), ")", pad)


def environment(registry: Registry) -> Parts:
    texts = (
        f'OTEL_{row["name"]} = "OTEL_{row["name"]}"\n"""{row["brief"]}\n\nAlso read as `{row["name"]}`. '
        f'Accepted: {row["forms"]}. Default: {row["default"] or "unset"}.\n"""'
        for row in registry.variables
    )
    return {"variables": "\n\n".join(texts)}


def go(registry: Registry) -> Parts:
    own = {row["key"]: [member["value"] for member in row["members"]] for row in registry.attributes}
    members = "\n".join(f"\t{exported(key)}: {{\n{_listed(words, 2)}\n\t}}," for key, words in own.items() if words)
    values = (
        {constant(f"{row['key'].split('.', 1)[1]}.{member['id']}"): member["value"] for member in row["members"]}
        for row in registry.attributes
        if row["members"]
    )
    return {
        "names": "\n\n".join(map(_aligned, names(registry))),
        "values": "\n\n".join(map(_aligned, values)),
        "causes": _listed(own["context_ledger.miss_cause"], 1),
        "members": members,
        "metrics": "\n".join(map(_instrument, registry.metrics)),
    }


def exported(name: str, kind: str = "") -> str:
    """The Go constant of a name, as `constant` has the Python one."""
    return _joined(constant(name, kind))


def _joined(name: str) -> str:
    return "".join(SPELLED.get(word, word.title()) for word in name.split("_"))


def _listed(words: Iterable[str], depth: int) -> str:
    """Go strings, one a line."""
    return "\n".join(f"{chr(9) * depth}{json.dumps(word)}," for word in words)


def _instrument(metric: Row) -> str:
    """A metric as an element of a Go map, its fields' values in one column."""
    own = exported(metric["name"], "METRIC")
    fields = {
        "Name": own,
        "Kind": json.dumps(metric["instrument"]),
        "Unit": json.dumps(metric["unit"]),
        "Description": json.dumps(metric["brief"]),
        "Attributes": f"[]string{{{', '.join(map(exported, metric['attributes']))}}}",
        "Boundaries": f"[]float64{{{', '.join(map(str, metric.get('boundaries', ())))}}}",
    }
    lines = (f"\t\t{name + ':':12} {text}," for name, text in fields.items() if text != "[]float64{}")
    return "\n".join((f"\t{own}: {{", *lines, "\t},"))


def _aligned(block: Mapping[str, str]) -> str:
    """Go constants with their equals signs in one column, as gofmt wants them."""
    spelled = {_joined(name): text for name, text in block.items()}
    return "\n".join(f'\t{name:{max(map(len, spelled))}} = "{text}"' for name, text in spelled.items())


def table(head: str, rows: Iterable[Sequence[str]]) -> str:
    cells = head.split(" | ")
    return "\n".join(f"| {' | '.join(line)} |" for line in (cells, ["---"] * len(cells), *rows))


def _attributes(rows: Iterable[Row]) -> str:
    return table("Attribute | Type | Meaning | Example | Cardinality | Guessable | From", (
        [f"`{row['key']}`", row["type"], row["brief"], f"`{json.dumps(row['examples'][0])}`", row["cardinality"],
         _guessable(row), row["component"]]
        for row in rows
    ))  # fmt: skip


def _guessable(row: Row) -> str:
    return {True: "yes", False: "no", None: ""}[row["privacy"].get("guessable")]


def _private(rows: Iterable[Row]) -> str:
    return table("Attribute | Holds | Whose, or of what | Guessable | From", (
        [f"`{row['key']}`", row["privacy"]["holds"], row["privacy"].get("note", ""), _guessable(row), row["component"]]
        for row in rows
    ))  # fmt: skip


def privacy(registry: Registry) -> Parts:
    rows = (*registry.attributes, *registry.upstream)
    groups = itertools.groupby(registry.attributes, lambda row: row["group"])
    kinds = {name: [row for row in rows if row["privacy"]["holds"] == name] for name in ("name", "id")}
    guessed = [f"`{row['key']}`" for row in rows if row["privacy"].get("guessable")]
    return {
        "groups": "\n\n".join(f"### {name.title()}\n\n{_private(rows)}" for name, rows in groups),
        "upstream": _private(registry.upstream),
        "guessable": textwrap.fill(", ".join(guessed), 118, break_long_words=False, break_on_hyphens=False),
        "names": str(len(kinds["name"])),
        "ids": str(len(kinds["id"])),
        "attributes": str(len(rows)),
    }


def docs(registry: Registry) -> Parts:
    metrics = (
        [f"`{row['name']}`", f"`{prometheus(row)}`", row["instrument"], f"`{row['unit']}`", row["brief"],
         ", ".join(f"`{key}`" for key in row["attributes"] if key not in registry.shared), row["component"]]
        for row in registry.metrics
    )  # fmt: skip
    events = ([f"`{row['name']}`", row["brief"], row["component"]] for row in registry.events)
    settings = ([f"`{v['name']}`", v["default"] or "unset", v["forms"], v["brief"]] for v in registry.variables)
    values = ([f"`{row['key']}`", f"`{m['value']}`", m["brief"]] for row in registry.attributes for m in row["members"])
    groups = itertools.groupby(registry.attributes, lambda row: row["group"])
    return {
        "groups": "\n\n".join(f"## {name.title()}\n\n{_attributes(rows)}" for name, rows in groups),
        "values": table("Attribute | Value | Meaning", values),
        "upstream": _attributes(registry.upstream),
        "events": table("Event | Meaning | From", events),
        "shared": ", ".join(f"`{key}`" for key in registry.shared),
        "metrics": table("Metric | In Prometheus | Kind | Unit | Meaning | Own labels | From", metrics),
        "variables": table("Variable | Default | Accepted | Meaning", settings),
    }


def lore(registry: Registry) -> Parts:
    """The shipped facts as JSON, which Go reads without a library; the order of tables and entries is kept."""
    shipped = tomllib.loads(FACTS.read_text("utf-8"))
    return {"facts": json.dumps(shipped, indent=1, ensure_ascii=False)}


TARGETS: Mapping[str, Callable[[Registry], Parts]] = {
    "otel_context_ledger/semconv.py": python,
    "otel_context_ledger/environment_variables.py": environment,
    "collector/internal/semconv/semconv.go": go,
    "collector/internal/facts/facts.json": lore,
    "docs/attributes.md": docs,
    "docs/privacy.md": privacy,
}


def render(registry: Registry, target: str) -> str:
    """The text of one generated file."""
    template = (ROOT / "tools" / "templates" / f"{Path(target).name}.txt").read_text("utf-8")
    return Template(template).substitute(TARGETS[target](registry), schema_url=registry.schema_url)


def main(registry: Registry, check: bool) -> int:
    texts = {ROOT / target: render(registry, target) for target in TARGETS}
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        print("stale:" if check else "writing:", path.relative_to(ROOT))
        if not check:
            path.write_text(texts[path], "utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(load(), check="--check" in sys.argv[1:]))
