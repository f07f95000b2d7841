"""A tool definition in any of the shapes in which programs hold it: MCP, OpenAI Chat and Responses, Anthropic.

Shapes read (MCP 2025-06-18 `tools/list`; SDK types of openai 3.57 and anthropic 2.14): `{name, inputSchema}`,
`{type: function, function: {name, parameters}}`, `{type: function, name, parameters}`, `{name, input_schema}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from otel_context_ledger.canonical import canonical, schema_form, wire

MAX_TOOLS = 1024
_SCHEMAS = ("inputSchema", "parameters", "input_schema")
# Types of definitions that carry a schema of the program's own; any other type is run by the provider.
_OWN = (None, "function", "custom")
_NOTHING: Mapping[str, object] = {}


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool with a schema of its own, of which `wire` are the bytes as they were written; `side_effect` is what an MCP
    server's hints say it does: read, write or destructive."""

    name: str
    description: str
    schema: Mapping[str, object]
    wire: bytes
    strict: bool = False
    side_effect: str | None = None

    def same(self, other: Definition) -> bool:
        """Whether description and schema are the same, however written."""
        if self.description != other.description:
            return False
        return self.wire == other.wire or canonical(schema_form(self.schema)) == canonical(schema_form(other.schema))


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools of one answer to `tools/list`; `partial` says that the server holds more of them back."""

    tools: tuple[Definition, ...]
    partial: bool = False


def read(value: object) -> Definition | None:
    """The definition in a tool of any shape; `None` for a builtin, which has no schema that could drift."""
    outer = _object(value)
    body = _object(outer["function"]) if isinstance(outer.get("function"), Mapping) else outer
    name, kind = body.get("name"), outer.get("type")
    if not isinstance(name, str) or not name or name.startswith("$") or kind not in _OWN:
        return None
    schema = next((body[key] for key in _SCHEMAS if isinstance(body.get(key), Mapping)), _NOTHING)
    described = body.get("description")
    words = described if isinstance(described, str) else ""
    kept = _object(schema)
    return Definition(name, words, kept, wire(kept), body.get("strict") is True, _side_effect(body))


def every(values: Iterable[object]) -> tuple[Definition, ...]:
    """The definitions among a request's tools."""
    return tuple(found for value in values if (found := read(value)) is not None)


def listing(value: object) -> Listing | None:
    """What an answer to `tools/list` says, given as it is: the result, the whole JSON-RPC answer, an object of the MCP
    SDK, or a bare list of tools. `None` where it is none of these; of more than `MAX_TOOLS` the first are taken."""
    plain = dumped(value)
    if isinstance(plain, Mapping) and isinstance(plain.get("result"), Mapping):
        plain = plain["result"]
    tools, more = (plain.get("tools"), plain.get("nextCursor")) if isinstance(plain, Mapping) else (plain, None)
    if isinstance(tools, (str, bytes)) or not isinstance(tools, Sequence):
        return None
    found = every(map(dumped, tools[:MAX_TOOLS]))
    return Listing(found, partial=bool(more) or len(tools) > MAX_TOOLS)


def dumped(value: object) -> object:
    """A pydantic model by the names that it has on the wire; anything else as it is."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", by_alias=True, exclude_none=True) if callable(dump) else value


def _side_effect(body: Mapping[str, object]) -> str | None:
    """What the hints of an MCP tool say; a tool that says nothing of it has none (MCP: hints are not to be trusted for
    safety; a change of one is still a change of the contract)."""
    hints = _object(body.get("annotations"))
    if hints.get("readOnlyHint") is True:
        return "read"
    if hints.get("destructiveHint") is True:
        return "destructive"
    return "write" if hints.get("destructiveHint") is False else None


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else _NOTHING
