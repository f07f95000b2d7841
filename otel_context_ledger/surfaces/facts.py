"""Provider lore as data: the shipped `facts.toml` with the user's overrides laid over it."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one surface. A fact that nobody stated is `None`; `origins` says where each is from."""

    surface: str
    provider: str = "unknown"
    hosts: tuple[str, ...] = ()
    price: str | None = None
    unit: str = "usd"
    block: int | None = None
    minimum: int | None = None
    minimum_previous: bool = False
    retention: float | None = None
    write_lag: float = 5.0
    markers: bool = False
    caches: bool = True
    reasoning_replayed: bool = False
    retentions: Mapping[str, float] = field(default_factory=dict)
    retention_from: Mapping[str, float] = field(default_factory=dict)
    windows: Mapping[str, int] = field(default_factory=dict)
    diagnostics: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    def lifetime(self, asked: str | None, model: str | None = None) -> float | None:
        """Seconds that a cached prefix of a model lives, given what the request asked for."""
        newer = next((kept for first, kept in self.retention_from.items() if reaches(model or "", first)), None)
        usual = self.retention if newer is None else newer
        return self.retentions.get(asked, usual) if asked else usual

    def window(self, model: str | None) -> int | None:
        """The context window of a model in tokens."""
        return self.windows.get(model) if model else None


@dataclass(frozen=True, slots=True)
class Forms:
    """Fixed openings by which known clients' summarising calls and summaries are recognised."""

    system_openings: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    summary_openings: tuple[str, ...] = ()

    def ask(self, system: Iterable[str], said: Iterable[str]) -> bool:
        """Whether a call asks for a summary, going by the texts of its system part and by those of what its user says
        last. What a line only quotes, or a tool has read, is nobody's instruction."""
        opened = any(text.lstrip().startswith(self.system_openings) for text in system)
        return opened or any(_begins_line(form, text) for text in said for form in self.instructions)


def _begins_line(form: str, text: str) -> bool:
    at = text.find(form)
    return at >= 0 and text[:at].rstrip(" \t")[-1:] in ("", "\n")


@dataclass(frozen=True, slots=True)
class Lore:
    """Every surface's facts, the fixed forms of compaction, and the finish reasons of answers that are no success."""

    surfaces: Mapping[str, Facts]
    forms: Forms
    failed: frozenset[str] = frozenset()

    def of(self, surface: str) -> Facts:
        """The facts of a surface; an unknown one has none."""
        return self.surfaces.get(surface) or Facts(surface)


Table = Mapping[str, object]
_MODEL = re.compile(r"([a-z]+-)(\d+)(?:\.(\d+))?")


def reaches(model: str, first: str) -> bool:
    """Whether a model is of the same family as `first` and no older, going by the version in its name; every model
    reaches an empty `first`."""
    if not first:
        return True
    versions = [match.groups() for name in (model, first) if (match := _MODEL.match(name))]
    if len(versions) < 2 or versions[0][0] != versions[1][0]:
        return False
    own, least = ((int(major), int(minor or 0)) for _, major, minor in versions)
    return own >= least


def load(overrides: Table | None = None) -> Lore:
    """The shipped facts under the user's `[facts.<surface>]` tables; of a fact that is a table an override replaces
    the entries that it names.

    Raises `ValueError` naming the table and the value when an override is no fact or cannot be its value.
    """
    shipped = tomllib.loads(resources.files(__package__).joinpath("facts.toml").read_text("utf-8"))
    given = dict(overrides or {})
    surfaces = {
        name: _facts(name, table, _table(given.pop(name, {}), name)) for name, table in shipped["surface"].items()
    }
    surfaces |= {name: _facts(name, {}, _table(table, name)) for name, table in given.items()}
    forms = Forms(**{key: tuple(texts) for key, texts in shipped["compaction"].items()})
    return Lore(surfaces, forms, frozenset(shipped["endings"]["failed"]))


def _table(value: object, name: str) -> Table:
    if not isinstance(value, Mapping):
        raise ValueError(f"[facts.{name}] must be a table, got {value!r}")  # noqa: TRY004
    return value


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _word(value: object) -> bool:
    return isinstance(value, str)


def _texts(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(map(_text, value))


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _positive(value: object) -> bool:
    return _count(value) and value != 0


def _seconds(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf


def _table_of(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, Mapping) and all(_text(key) and fits(item) for key, item in value.items())


def _flag(value: object) -> bool:
    return isinstance(value, bool)


_FORMS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "provider": (_text, "a text"),
    "price": (_text, "a text"),
    "unit": (("usd", "quota").__contains__, "usd or quota"),
    "hosts": (_texts, "a list of texts"),
    "block": (_positive, "a whole number above 0"),
    "minimum": (_count, "a whole number"),
    "minimum_previous": (_flag, "true or false"),
    "retention": (_seconds, "a number of seconds"),
    "retentions": (_table_of(_seconds), "a table of seconds"),
    "retention_from": (_table_of(_seconds), "a table of seconds"),
    "write_lag": (_seconds, "a number of seconds"),
    "markers": (_flag, "true or false"),
    "caches": (_flag, "true or false"),
    "reasoning_replayed": (_flag, "true or false"),
    "windows": (_table_of(_positive), "a table of whole numbers above 0"),
    "diagnostics": (_table_of(_word), "a table of texts"),
}


def _facts(name: str, shipped: Table, override: Table) -> Facts:
    stated = shipped.get("facts")
    table = stated if isinstance(stated, Mapping) else {}
    values: dict[str, object] = {key: fact["value"] for key, fact in table.items()}
    origins = {key: f"{fact['origin']} ({fact['date']})" for key, fact in table.items()}
    for key, value in override.items():
        _check(name, key, value)
        origins[key] = "context-ledger.toml"
    values |= {key: value for key, value in shipped.items() if key != "facts"}
    values |= {key: _over(values.get(key), value) for key, value in override.items()}
    hosts = values.pop("hosts", ())
    return Facts(name, hosts=tuple(hosts) if isinstance(hosts, (list, tuple)) else (), origins=origins, **values)  # type: ignore[arg-type]


def _over(shipped: object, given: object) -> object:
    """An override in the place of a value; of a table it replaces the entries that it names."""
    return {**shipped, **given} if isinstance(shipped, Mapping) and isinstance(given, Mapping) else given


def _check(name: str, key: str, value: object) -> None:
    if key not in _FORMS:
        raise ValueError(f"[facts.{name}] {key} = {value!r} is not a fact; known are {', '.join(sorted(_FORMS))}")
    fits, form = _FORMS[key]
    if not fits(value):
        raise ValueError(f"[facts.{name}] {key} = {value!r} is not {form}")
