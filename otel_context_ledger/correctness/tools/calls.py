"""Whether a call that a model made fits the schema that it was shown and the one in force now, and whom to blame.

`jsonschema` judges. It is imported here at the first call that is judged, which is never on a thread of the program;
it looks nothing up elsewhere, and runs no regular expression of a schema, for one of these can hold a process up.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import orjson

from otel_context_ledger.correctness.tools.definitions import Definition
from otel_context_ledger.correctness.tools.schemas import MAX_DEPTH, Document
from otel_context_ledger.model import Called

MAX_ARGUMENTS = 256 * 1024
MAX_SCHEMA = 256 * 1024
MAX_VALIDATORS = 256
MAX_ERRORS = 16
UNDECLARED = "argument_not_in_prompt_schema"
STALE = "stale_client_schema"
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Fit:
    """How arguments stand to a schema: whether they are right by it (`None`: that cannot be told), whether undeclared
    members are all that is wrong, and how many members it does not declare."""

    right: bool | None = None
    only_undeclared: bool = False
    undeclared: int = 0


@dataclass(frozen=True, slots=True)
class Opinion:
    """What is said of one call. `blame` is `drift` (right by what was sent, wrong by what is live) or `model` (wrong by
    what was sent); `tags` are the words for arguments that only the live schema explains."""

    tool: str
    blame: str | None = None
    tags: tuple[str, ...] = ()
    judged: bool = True


class Judge:
    """Judges calls; validators are kept by the bytes of their schemas."""

    def __init__(self) -> None:
        self._ready: OrderedDict[bytes, Any] = OrderedDict()

    def opinion(self, called: Called, sent: Definition | None, live: Definition | None) -> Opinion:
        """What is to be said of a call of a tool; either definition may be unknown."""
        if sent is None:
            return Opinion(called.name, judged=False)
        arguments = parsed(called.arguments)
        if not isinstance(arguments, Mapping):
            too_long = arguments is _MISSING
            return Opinion(called.name, None if too_long else "model", judged=not too_long)
        shown = self._fit(sent, arguments)
        now = shown if live is None or live.wire == sent.wire else self._fit(live, arguments)
        return _weighed(called.name, shown, now)

    def _fit(self, tool: Definition, arguments: Mapping[str, object]) -> Fit:
        if len(tool.wire) > MAX_SCHEMA:
            return Fit()
        try:
            errors = list(islice(self._validator(tool).iter_errors(arguments), MAX_ERRORS))
            kinds = {error.validator for error in errors}
            return Fit(not errors, kinds == {"additionalProperties"}, undeclared(tool.schema, arguments))
        except Exception:  # noqa: BLE001 - a schema may be no schema, refer to nothing, or nest without end
            return Fit()

    def _validator(self, tool: Definition) -> Any:
        found = self._ready.pop(tool.wire, None) or _validator(tool.schema)
        self._ready[tool.wire] = found
        while len(self._ready) > MAX_VALIDATORS:
            self._ready.popitem(last=False)
        return found


def _weighed(tool: str, shown: Fit, now: Fit) -> Opinion:
    if shown.right is None or now.right is None:
        return Opinion(tool, judged=False)
    if shown.right and not now.right:
        return Opinion(tool, "drift")
    if not shown.right and not now.right:
        return Opinion(tool, "model")
    explained = shown.undeclared > now.undeclared
    if shown.right:
        return Opinion(tool, None, (UNDECLARED,) if explained else ())
    return Opinion(tool, None, (UNDECLARED,) if shown.only_undeclared else (STALE,))


def parsed(arguments: object) -> object:
    """A call's arguments as a value: some dialects send them as JSON text, and none at all as an empty one."""
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    if len(arguments) > MAX_ARGUMENTS:
        return _MISSING
    try:
        return orjson.loads(arguments) if arguments.strip() else {}
    except orjson.JSONDecodeError:
        return None


def undeclared(schema: object, arguments: object) -> int:
    """How many members of the arguments a schema does not declare."""
    return _undeclared(Document(schema), schema, arguments, 0)


def _undeclared(document: Document, node: object, value: object, depth: int) -> int:
    body = document.resolved(node)
    if depth > MAX_DEPTH:
        return 0
    if isinstance(value, list):
        inner = body.get("items")
        return sum(_undeclared(document, inner, item, depth + 1) for item in value) if isinstance(inner, Mapping) else 0
    properties = body.get("properties")
    if not isinstance(value, Mapping) or not isinstance(properties, Mapping) or "patternProperties" in body:
        return 0
    others = [name for name in value if name not in properties]
    inside = (_undeclared(document, properties[name], value[name], depth + 1) for name in value if name in properties)
    return (0 if isinstance(body.get("additionalProperties"), Mapping) else len(others)) + sum(inside)


def _validator(schema: Mapping[str, object]) -> Any:
    from jsonschema import validators
    from referencing import Registry

    kind = _quiet(validators.validator_for(schema, default=validators.Draft202012Validator))
    return kind(schema, registry=Registry())


@lru_cache(maxsize=16)
def _quiet(kind: Any) -> Any:
    """A validator class that leaves regular expressions alone."""
    from jsonschema import validators

    closed = kind.VALIDATORS.get("additionalProperties", _nothing)

    def additional(validator: Any, rule: object, instance: object, schema: Mapping[str, object]) -> Any:
        return None if "patternProperties" in schema else closed(validator, rule, instance, schema)

    silent = dict.fromkeys(("pattern", "patternProperties", "propertyNames"), _nothing)
    extend: Any = validators.extend
    return extend(kind, {**silent, "additionalProperties": additional})


def _nothing(validator: Any, rule: object, instance: object, schema: object) -> None:
    return None
