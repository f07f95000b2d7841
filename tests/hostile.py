"""Values that a program may put into a request, as recipes: a recipe prints what it makes, and makes it anew for every
use, because some can be used once only."""

from __future__ import annotations

import collections
import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pydantic
from hypothesis import strategies as st


class HostileError(Exception):
    """What hostile objects raise."""


class Raising:
    """An object that raises in one of its special methods."""


def raising(method: str) -> Any:
    def fail(*_: object) -> Any:
        raise HostileError(method)

    return type("Hostile", (Raising,), {method: fail})()


class Texts(str):
    """A text of a program's own, which lies about its length."""

    __slots__ = ()

    def __len__(self) -> int:
        return 7


class Members(dict):  # type: ignore[type-arg]
    """A dict that raises for members that it lacks, and counts what it is asked."""

    def get(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            raise HostileError("get")
        return self[key]


class Items(list):  # type: ignore[type-arg]
    """A list that cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise HostileError("__eq__")

    __hash__ = None  # type: ignore[assignment]


class Model(pydantic.BaseModel):
    """A message as a model, with a field that JSON does not know."""

    role: str = "user"
    content: str = "of a model"
    at: datetime.datetime = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


class Claiming:
    """A proxy that says it is a text, as werkzeug's do, and has nothing of one."""

    @property
    def __class__(self) -> Any:
        return str

    @__class__.setter
    def __class__(self, _: Any) -> None: ...


class Unbound:
    """A proxy that raises where it is asked what it is, as werkzeug's do outside of a request."""

    @property
    def __class__(self) -> Any:
        raise HostileError("__class__")

    @__class__.setter
    def __class__(self, _: Any) -> None: ...


class Refusing(str):
    """A text that cannot be compared, stripped or shown."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise HostileError("__eq__")

    def strip(self, *_: Any) -> str:
        raise HostileError("strip")

    def __str__(self) -> str:
        raise HostileError("__str__")


def cycle() -> Any:
    loop: dict[str, Any] = {"role": "user"}
    loop["content"] = [loop]
    return loop


def nested(depth: int) -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = [value]
    return value


def once(items: list[Any]) -> Iterator[Any]:
    yield from items


def broken(items: list[Any]) -> Iterator[Any]:
    yield from items
    raise HostileError("generator")


METHODS = (
    "__eq__",
    "__iter__",
    "__str__",
    "__repr__",
    "__len__",
    "__bool__",
    "__hash__",
    "__getattribute__",
    "__getattr__",
)
MAKERS: Mapping[str, Any] = {
    "model": Model,
    "cycle": cycle,
    "set": lambda: {1, "a"},
    "proxy": lambda: MappingProxyType({"role": "user", "content": "x"}),
    "ordered": lambda: collections.OrderedDict(content="x", role="user"),
    "counter": lambda: collections.Counter("aab"),
    "deque": lambda: collections.deque([{"role": "user", "content": "x"}]),
    "deep": lambda: nested(150),
    "too deep": lambda: nested(3000),
    "huge": lambda: 10**5000,
    "object": object,
    "class": lambda: Model,
    "claiming": Claiming,
    "unbound": Unbound,
    "refusing": lambda: Refusing("full"),
    "error": lambda: HostileError("prompt is too long: 212230 tokens > 200000 maximum"),
    "long": lambda: "rule " * 100_000,
    "memory": lambda: memoryview(b"raw"),
    **{method: (lambda method=method: raising(method)) for method in METHODS},
}


@dataclass(frozen=True)
class Made:
    """A value of one of the makers."""

    kind: str


@dataclass(frozen=True)
class Shaped:
    """Items in a container of some kind."""

    kind: str
    items: Any


_SHAPES: Mapping[str, Any] = {"once": once, "broken": broken, "members": Members, "items": Items, "tuple": tuple}


def make(recipe: Any) -> Any:
    """The value of a recipe, made anew."""
    if isinstance(recipe, Made):
        return MAKERS[recipe.kind]()
    if isinstance(recipe, Shaped):
        return _SHAPES[recipe.kind](make(recipe.items))
    if isinstance(recipe, dict):
        return {key: make(value) for key, value in recipe.items()}
    return [make(item) for item in recipe] if isinstance(recipe, list) else recipe


texts = st.one_of(st.text(max_size=8), st.sampled_from(["\ud800", "a\0b", "\U0001f600", "user", "system"]))
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), texts, st.binary(max_size=4), st.dates(),
    st.builds(Made, st.sampled_from(sorted(MAKERS))), texts.map(Texts),
)  # fmt: skip
WORDS = (
    "role", "content", "type", "text", "tools", "name", "function", "parameters", "tool_calls", "id", "usage", "effort",
    "reasoning_content", "cache_control", "metadata", "required", "enum", "description", "thinking", "budget_tokens",
)  # fmt: skip
keys = st.one_of(st.sampled_from(WORDS), texts, st.integers(0, 3), st.none(), st.just(b"key"))


def _wider(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists, objects = st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=4)
    return st.one_of(
        lists, objects, st.builds(Shaped, st.sampled_from(["once", "broken", "items", "tuple"]), lists),
        st.builds(Shaped, st.just("members"), objects),
    )  # fmt: skip


values = st.recursive(leaves, _wider, max_leaves=10)
json_leaves = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.text(max_size=8),
    st.floats(allow_nan=False, allow_infinity=False),
)  # fmt: skip
members = st.one_of(st.sampled_from(WORDS), st.text(max_size=5))
jsons = st.recursive(
    json_leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(members, inner, max_size=4)),
    max_leaves=10,
)
