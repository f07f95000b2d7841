"""Owns whether a board has the shape that Grafana's own types give it: its frame, and the options of its panels.

The schemas are in schema/. What a query to Prometheus looks like is in no package of Grafana's that may be used here:
its keys are listed below.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator, ValidationError

SCHEMAS = Path(__file__).parent / "schema"
QUERY = {
    "expr": str,
    "legendFormat": str,
    "refId": str,
    "format": str,
    "instant": bool,
    "range": bool,
    "exemplar": bool,
}
# Settings of Prometheus' data source, for which Grafana's type of an annotation has no place.
ANNOTATION = ("expr", "step", "titleFormat", "textFormat")

Json = Mapping[str, Any]


@cache
def _validator(name: str) -> Draft7Validator | None:
    path = SCHEMAS / f"{name}.json"
    return Draft7Validator(json.loads(path.read_text("utf-8"))) if path.exists() else None


def faults(document: Json) -> list[str]:
    """Where a board has another shape, each as a path and what is wrong there."""
    framed = {**document, "annotations": {"list": [_bare(one) for one in document["annotations"]["list"]]}}
    found = list(_broken("dashboard", framed, "board"))
    for panel in document["panels"]:
        where = f"panel {panel['id']}"
        found += _broken(f"{panel['type']}.options", panel.get("options", {}), f"{where} options")
        custom = panel.get("fieldConfig", {}).get("defaults", {}).get("custom", {})
        found += _broken(f"{panel['type']}.field", custom, f"{where} custom")
        found += [f"{where}: {what}" for target in panel.get("targets", ()) for what in _query(target)]
    return found


def _bare(annotation: Json) -> Json:
    return {key: value for key, value in annotation.items() if key not in ANNOTATION}


def _broken(schema: str, value: Any, where: str) -> Iterator[str]:
    validator = _validator(schema)
    for error in validator.iter_errors(value) if validator else ():
        deepest = _deepest(error)
        path = "/".join(map(str, deepest.absolute_path))
        yield f"{where} {path}: {deepest.message[:200]}"


def _deepest(error: ValidationError) -> ValidationError:
    """Of what does not fit into any of several shapes, what is wrong with the one that it fits best."""
    while error.context:
        error = max(error.context, key=lambda one: len(one.absolute_path))
    return error


def _query(target: Json) -> Iterator[str]:
    for key, value in target.items():
        if key not in QUERY or not isinstance(value, QUERY[key]):
            yield f"query {target.get('refId')}: {key} is {value!r}"
