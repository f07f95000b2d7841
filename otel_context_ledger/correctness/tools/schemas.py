"""What changed between two JSON Schemas of one tool, and what that means for a caller who knows only the first.

breaking: a call that is right by the first may be wrong by the second. additive: every call right by the first is right
by the second, which allows more. cosmetic: both allow the same. What cannot be told apart counts as breaking (spec,
"Tools"). Property names stand in `Change.path` and are the caller's to keep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from otel_context_ledger.canonical import canonical, wire

BREAKING, ADDITIVE, COSMETIC = "breaking", "additive", "cosmetic"
LEVELS = (BREAKING, ADDITIVE, COSMETIC)
MAX_NODES = 2_000
MAX_DEPTH = 64
_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_ONE = {name: frozenset({name}) for name in _TYPES}
# Keywords that a larger value, or a smaller one, makes stricter.
_LOWER = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"})
_UPPER = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"})
# Rules that are only compared as a whole: setting one narrows, dropping one widens, changing one may break.
_RULES = frozenset({
    "pattern", "format", "multipleOf", "uniqueItems", "not", "if", "then", "else", "patternProperties", "propertyNames",
    "contains", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties", "unevaluatedItems",
    "allOf", "anyOf", "oneOf",
})  # fmt: skip
_WORDS = ("title", "examples", "example", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType")
_COMPARED = frozenset({
    "$schema", "$id", "$comment", "$ref", "$defs", "definitions", "type", "nullable", "enum", "const", "properties",
    "required", "additionalProperties", "items", "prefixItems", "description", "default",
    *_LOWER, *_UPPER, *_RULES, *_WORDS,
})  # fmt: skip
_MERGED = frozenset({"properties", "required", "$defs", "definitions"})
# Booleans before numbers, which they are to Python.
_JSON: tuple[tuple[type, str], ...] = (
    (bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"), (Mapping, "object"),
)  # fmt: skip
_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "example", "deprecated"})
Schema = Mapping[str, object]
_ANY: Schema = {}
_NEVER: Schema = {"not": {}}


class TooLarge(Exception):
    """The schemas have more nodes than one comparison may look at."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: its kind, what it means, and the property that it is about."""

    kind: str
    level: str
    path: tuple[str, ...] = ()
    renamed: str | None = None


def compare(old: object, new: object, budget: Budget | None = None) -> tuple[Change, ...]:
    """The changes from `old` to `new`, in the order of their places. Raises `TooLarge`."""
    left = budget or Budget()
    plain = b'"$ref"' not in wire(old) + wire(new)
    try:
        return tuple(dict.fromkeys(_Pair(Document(old), Document(new), left, plain).node(old, new, ())))
    except RecursionError:
        raise TooLarge from None


def worst(levels: Iterator[str] | Sequence[str]) -> str | None:
    """The gravest of these levels; `None` of none."""
    found = set(levels)
    return next((level for level in LEVELS if level in found), None)


def strict(schema: object, nullable: bool, depth: int = 0) -> object:
    """A schema as clients write it for OpenAI's strict mode: every object closed, every property required, and, for
    some clients, `nullable` where it was optional."""
    if depth > MAX_DEPTH or not isinstance(schema, (Mapping, list)):
        return schema
    if isinstance(schema, list):
        return [strict(item, nullable, depth + 1) for item in schema]
    found = {key: strict(value, nullable, depth + 1) for key, value in schema.items() if key != "properties"}
    given = schema.get("properties")
    if isinstance(given, Mapping):
        needed = _names(schema.get("required"))
        inner = {name: strict(value, nullable, depth + 1) for name, value in given.items()}
        optional = {name: {"anyOf": [node, {"type": "null"}]} for name, node in inner.items() if name not in needed}
        found["properties"] = {**inner, **optional} if nullable else inner
        found |= {"additionalProperties": False, "required": sorted(map(str, given))}
    return found


@dataclass(slots=True)
class Budget:
    """How many pairs of nodes may still be looked at."""

    nodes: int = MAX_NODES

    def spend(self) -> None:
        self.nodes -= 1
        if self.nodes < 0:
            raise TooLarge


@dataclass(frozen=True, slots=True)
class Document:
    """A whole schema, in which references are looked up."""

    root: object

    def resolved(self, node: object) -> Schema:
        """A node as an object, its local references followed and its `allOf` laid over it."""
        body: Schema = _NEVER if node is False else _map(node)
        if "$ref" not in body and "allOf" not in body:
            return body
        for _ in range(MAX_DEPTH):
            target = body.get("$ref")
            if not isinstance(target, str):
                break
            body = {**_map(self._find(target)), **{key: value for key, value in body.items() if key != "$ref"}}
        whole: Schema | None = {key: value for key, value in body.items() if key != "allOf"}
        for part in _list(body.get("allOf")):
            whole = _overlaid(whole, self.resolved(part))
        return body if whole is None else whole

    def _find(self, target: str) -> object:
        found = self.root
        for step in target.removeprefix("#").strip("/").split("/") if target.startswith("#") else ("",):
            if step:
                found = _map(found).get(step.replace("~1", "/").replace("~0", "~"))
        return found


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two schemas under comparison; `inside` are the pairs of referring nodes that are being looked at already. Where
    nothing refers anywhere (`plain`), nodes of the same bytes are the same."""

    old: Document
    new: Document
    budget: Budget
    plain: bool
    inside: set[tuple[bytes, bytes]] = field(default_factory=set)

    def node(self, old: object, new: object, path: tuple[str, ...]) -> Iterator[Change]:
        self.budget.spend()
        if len(path) > MAX_DEPTH:
            raise TooLarge
        if self.plain and wire(old) == wire(new):
            return
        if _refers(old) or _refers(new):
            place = canonical(old), canonical(new)
            if place in self.inside:
                return
            self.inside.add(place)
        a, b = self.old.resolved(old), self.new.resolved(new)
        yield from _words(a, b, path)
        before, after = _branches(self.old, a), _branches(self.new, b)
        if len(before) == len(after) == 1:
            yield from self.single(before[0], after[0], path)
        else:
            yield from self._union(_split(before), _split(after), path)

    def _union(self, before: Sequence[Schema], after: Sequence[Schema], path: tuple[str, ...]) -> Iterator[Change]:
        """Every old alternative must be allowed by a new one; if every new one was allowed by an old one as well, the
        two allow the same, however they are spelled."""
        found = [change for one in before for change in self._closest(one, after, path)]
        narrowed = any(change.level == BREAKING for change in found)
        back = _Pair(self.new, self.old, self.budget, self.plain, self.inside)
        beyond = any(BREAKING in {c.level for c in back._closest(one, before, path)} for one in after)
        yield from (change for change in found if change.level == COSMETIC or narrowed or beyond)
        if beyond and all(change.level == COSMETIC for change in found):
            yield Change("type_widened", ADDITIVE, path)

    def _closest(self, one: Schema, others: Sequence[Schema], path: tuple[str, ...]) -> tuple[Change, ...]:
        """What changes from one alternative to that of the others which is closest to it."""
        near = (tuple(self.single(one, other, path)) for other in others if _types(one) & _types(other))
        return min(near, key=_rank, default=(Change("type_narrowed", BREAKING, path),))

    def single(self, a: Schema, b: Schema, path: tuple[str, ...]) -> Iterator[Change]:
        """The changes of two schemas without alternatives."""
        yield from _kinds(a, b, path)
        yield from _values(a, b, path)
        yield from _limits(a, b, path)
        yield from _rules(a, b, path)
        if "object" in _types(a) & _types(b):
            yield from self._members(a, b, path)
        if "array" in _types(a) & _types(b):
            yield from self._items(a, b, path)

    def _members(self, a: Schema, b: Schema, path: tuple[str, ...]) -> Iterator[Change]:
        old, new = _map(a.get("properties")), _map(b.get("properties"))
        needed, needs = _names(a.get("required")), _names(b.get("required"))
        gone, come = [n for n in old if n not in new], [n for n in new if n not in old]
        for name, other in _renamed(a, b, gone, come):
            gone.remove(name)
            come.remove(other)
            yield Change("property_renamed", BREAKING, (*path, name), other)
        yield from (Change("property_removed", BREAKING, (*path, name)) for name in gone)
        for name in come:
            must = name in needs
            kind = "required_property_added" if must else "property_added"
            yield Change(kind, BREAKING if must else ADDITIVE, (*path, name))
        for name in old:
            if name not in new:
                continue
            if (name in needed) != (name in needs):
                must = name in needs
                kind = "property_made_required" if must else "property_made_optional"
                yield Change(kind, BREAKING if must else ADDITIVE, (*path, name))
            yield from self.node(old[name], new[name], (*path, name))
        for name in sorted((needed ^ needs) - old.keys() - new.keys()):
            yield Change("required_changed", BREAKING if name in needs else ADDITIVE, (*path, name))
        yield from self._open(a.get("additionalProperties", True), b.get("additionalProperties", True), path)

    def _open(self, old: object, new: object, path: tuple[str, ...]) -> Iterator[Change]:
        """Whether undeclared properties are allowed, and what they must be."""
        if (old is False) != (new is False):
            yield Change("object_opened" if old is False else "object_closed", ADDITIVE if old is False else BREAKING,
                         path)  # fmt: skip
        elif old is not new:
            yield from self.node(old, new, (*path, "*"))

    def _items(self, a: Schema, b: Schema, path: tuple[str, ...]) -> Iterator[Change]:
        # In older drafts a list of `items` is what `prefixItems` is now.
        old, new = ((_list(s.get("prefixItems")) or _list(s.get("items"))) for s in (a, b))
        rest_old, rest_new = (s.get("items", True) if not isinstance(s.get("items"), list) else True for s in (a, b))
        for at, (one, other) in enumerate(zip_longest(old, new)):
            first, second = one if at < len(old) else rest_old, other if at < len(new) else rest_new
            yield from self.node(first, second, (*path, f"[{at}]"))
        if rest_old is not rest_new:
            yield from self.node(rest_old, rest_new, (*path, "[]"))


def _refers(node: object) -> bool:
    return "$ref" in _map(node)


def _rank(changes: Sequence[Change]) -> tuple[int, int]:
    level = worst([change.level for change in changes])
    return (len(LEVELS) - LEVELS.index(level) if level else 0, len(changes))


def _branches(document: Document, body: Schema) -> list[Schema]:
    """The alternatives of a schema, those inside alternatives included; a list of types is one schema."""
    alternatives = _list(body.get("anyOf")) or _list(body.get("oneOf"))
    if not alternatives:
        return [body]
    rest = {key: value for key, value in body.items() if key not in ("anyOf", "oneOf") and key not in _ANNOTATIONS}
    found = [_overlaid(rest, document.resolved(one)) for one in alternatives]
    whole = [one for one in found if one is not None]
    if len(whole) < len(found):
        return [body]
    whole = [branch for one in whole for branch in _branches(document, one)]
    if all(set(one) <= {"type", "title", "description"} for one in whole):
        return [{"type": sorted(frozenset().union(*map(_types, whole)))}]
    return whole


def _split(bodies: Sequence[Schema]) -> list[Schema]:
    """One schema for each type, so that a list of types and `anyOf` are the same."""
    return [one for body in bodies for one in (_by_type(body) if len(_list(body.get("type"))) > 1 else [body])]


def _by_type(body: Schema) -> Iterator[Schema]:
    for kind in sorted(_types(body)):
        values = [value for value in _list(body.get("enum")) if _type_of(value) == kind]
        yield {**body, "type": kind, **({"enum": values} if "enum" in body else {})}


def _type_of(value: object) -> str:
    return next((name for kind, name in _JSON if isinstance(value, kind)), "null")


def _types(body: Schema) -> frozenset[str]:
    """The types that a schema allows, written or implied; `number` includes `integer`."""
    given = body.get("type")
    if isinstance(given, str) and given != "number" and "nullable" not in body:
        return _ONE.get(given) or frozenset({given})
    names = {given} if isinstance(given, str) else {n for n in _list(given) if isinstance(n, str)}
    if not names:
        return _TYPES
    more = {"integer"} if "number" in names else set[str]()
    return frozenset(names | more | ({"null"} if body.get("nullable") is True else set()))


def _kinds(a: Schema, b: Schema, path: tuple[str, ...]) -> Iterator[Change]:
    old, new = _types(a), _types(b)
    if old - new:
        yield Change("type_changed" if new - old else "type_narrowed", BREAKING, path)
    elif new - old:
        yield Change("type_widened", ADDITIVE, path)


def _values(a: Schema, b: Schema, path: tuple[str, ...]) -> Iterator[Change]:
    old, new = _allowed(a), _allowed(b)
    if old is None or new is None:
        if old is not new:
            yield Change("enum_dropped" if new is None else "enum_set", ADDITIVE if new is None else BREAKING, path)
        return
    if set(old) - set(new):
        yield Change("enum_value_removed", BREAKING, path)
    if set(new) - set(old):
        yield Change("enum_value_added", ADDITIVE, path)
    elif old != new and set(old) == set(new):
        yield Change("enum_reordered", COSMETIC, path)


def _allowed(body: Schema) -> list[bytes] | None:
    """The values of `enum` or `const` in their canonical forms."""
    if "const" in body:
        return [canonical(body["const"])]
    return [canonical(value) for value in _list(body["enum"])] if "enum" in body else None


def _limits(a: Schema, b: Schema, path: tuple[str, ...]) -> Iterator[Change]:
    for names, sign in ((_LOWER, 1), (_UPPER, -1)):
        for name in names if not (names.isdisjoint(a) and names.isdisjoint(b)) else ():
            old, new = _number(a.get(name)), _number(b.get(name))
            if old == new:
                continue
            stricter = old is None or (new is not None and sign * (new - old) > 0)
            yield Change("limit_narrowed" if stricter else "limit_widened", BREAKING if stricter else ADDITIVE, path)


def _rules(a: Schema, b: Schema, path: tuple[str, ...]) -> Iterator[Change]:
    for name in () if _RULES.isdisjoint(a) and _RULES.isdisjoint(b) else sorted(_RULES & (a.keys() | b.keys())):
        if name not in b:
            yield Change("rule_dropped", ADDITIVE, path)
        elif name not in a or canonical(a[name]) != canonical(b[name]):
            yield Change("rule_changed" if name in a else "rule_added", BREAKING, path)


def _words(a: Schema, b: Schema, path: tuple[str, ...]) -> Iterator[Change]:
    """Differences that no value can violate. What an omitted argument means is part of the contract, so that another
    default breaks; a default that is only stated or no longer stated does not."""
    if a.get("description") != b.get("description"):
        yield Change("description", COSMETIC, path)
    if "default" in a and "default" in b and canonical(a["default"]) != canonical(b["default"]):
        yield Change("default_changed", BREAKING, path)
    elif ("default" in a) != ("default" in b):
        yield Change("annotation", COSMETIC, path)
    others = [name for name in {**a, **b} if name in _WORDS or name not in _COMPARED]
    if any(canonical(a.get(name)) != canonical(b.get(name)) for name in others):
        yield Change("annotation", COSMETIC, path)


def _renamed(a: Schema, b: Schema, gone: Sequence[str], come: Sequence[str]) -> list[tuple[str, str]]:
    """Properties that went while one of the same form came: the same schema but for its words, required alike."""
    old, new = _map(a.get("properties")), _map(b.get("properties"))
    needed, needs = _names(a.get("required")), _names(b.get("required"))
    free, found = list(come), []
    for name in gone:
        form = _form(old[name]), name in needed
        other = next((c for c in free if (_form(new[c]), c in needs) == form), None)
        if other is not None:
            free.remove(other)
            found.append((name, other))
    return found


def _form(node: object) -> bytes:
    bare = {key: value for key, value in node.items() if key not in _ANNOTATIONS} if isinstance(node, Mapping) else node
    return canonical(bare)


def _overlaid(body: Schema | None, part: Schema) -> Schema | None:
    """Two schemas that must both hold, as one; `None` where they speak of the same thing in different words."""
    if body is None:
        return None
    both = (body.keys() & part.keys()) - _MERGED - _ANNOTATIONS
    if any(canonical(body[name]) != canonical(part[name]) for name in both):
        return None
    found = {**body, **part}
    for name in _MERGED - {"required"}:
        old, new = _map(body.get(name)), _map(part.get(name))
        if any(canonical(old[key]) != canonical(new[key]) for key in old.keys() & new.keys()):
            return None
        if old or new:
            found[name] = {**old, **new}
    if "required" in found:
        found["required"] = sorted(_names(body.get("required")) | _names(part.get("required")))
    return found


def _names(value: object) -> frozenset[str]:
    return frozenset(name for name in _list(value) if isinstance(name, str))


def _number(value: object) -> float | None:
    """A limit; draft 4 writes `exclusiveMinimum: true`, which is none."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _map(value: object) -> Mapping[str, object]:
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, (list, tuple)) else ()
