"""Provider lore as data: the shipped `facts.toml` with the user's overrides laid over it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
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
    retentions: Mapping[str, float] = field(default_factory=dict)
    windows: Mapping[str, int] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    def lifetime(self, asked: str | None) -> float | None:
        """Seconds that a cached prefix lives, given what the request asked for."""
        return self.retentions.get(asked, self.retention) if asked else self.retention

    def window(self, model: str | None) -> int | None:
        """The context window of a model in tokens."""
        return self.windows.get(model) if model else None


@dataclass(frozen=True, slots=True)
class Forms:
    """Fixed openings by which known clients' summarising calls and summaries are recognised."""

    system_openings: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    summary_openings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lore:
    """Every surface's facts, and the fixed forms of compaction."""

    surfaces: Mapping[str, Facts]
    forms: Forms

    def of(self, surface: str) -> Facts:
        """The facts of a surface; an unknown one has none."""
        return self.surfaces.get(surface) or Facts(surface)


Table = Mapping[str, object]


def load(overrides: Table | None = None) -> Lore:
    """The shipped facts under the user's `[facts.<surface>]` tables.

    Raises `ValueError` naming the table and the value when an override has the wrong type.
    """
    shipped = tomllib.loads(resources.files(__package__).joinpath("facts.toml").read_text("utf-8"))
    given = dict(overrides or {})
    surfaces = {
        name: _facts(name, table, _table(given.pop(name, {}), name)) for name, table in shipped["surface"].items()
    }
    surfaces |= {name: _facts(name, {}, _table(table, name)) for name, table in given.items()}
    return Lore(surfaces, Forms(**{key: tuple(texts) for key, texts in shipped["compaction"].items()}))


def _table(value: object, name: str) -> Table:
    if not isinstance(value, Mapping):
        raise ValueError(f"[facts.{name}] must be a table, got {value!r}")  # noqa: TRY004
    return value


_KINDS: dict[str, type | tuple[type, ...]] = {
    "provider": str, "price": str, "unit": str, "block": int, "minimum": int, "minimum_previous": bool,
    "retention": (int, float), "write_lag": (int, float), "markers": bool, "retentions": dict, "windows": dict, "hosts": list,
}  # fmt: skip


def _facts(name: str, shipped: Table, override: Table) -> Facts:
    stated = shipped.get("facts")
    table = stated if isinstance(stated, Mapping) else {}
    values: dict[str, object] = {key: fact["value"] for key, fact in table.items()}
    origins = {key: f"{fact['origin']} ({fact['date']})" for key, fact in table.items()}
    values |= {key: value for key, value in shipped.items() if key != "facts"} | dict(override)
    for key, value in override.items():
        if key not in _KINDS or not isinstance(value, _KINDS[key]):
            raise ValueError(f"[facts.{name}] {key} = {value!r} is not a fact; known are {', '.join(sorted(_KINDS))}")
        origins[key] = "context-ledger.toml"
    hosts = values.pop("hosts", ())
    return Facts(name, hosts=tuple(hosts) if isinstance(hosts, (list, tuple)) else (), origins=origins, **values)  # type: ignore[arg-type]
