"""The settings of a process: the only reader of the environment and of `context-ledger.toml`.

Every variable `CONTEXT_LEDGER_X` may also be written `OTEL_CONTEXT_LEDGER_X`, which is what the flags of
`opentelemetry-instrument` set. A bad value is a sentence in `warnings` that contains it, and then the default.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from otel_context_ledger import thresholds

PREFIX = "CONTEXT_LEDGER_"
DEFAULT_TOML = "context-ledger.toml"
METRICS = ("sdk", "collector", "off")
MAX_POLICY_FILES = 32


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a user may set. `facts` and `prices` are tables of `context-ledger.toml`, over the shipped ones;
    `tools` its contracts of tools by their names, `constraints` what it declares by id, `compaction` its numbers for
    compactions, `advice` the numbers from which on something is told, `reads` its names of tools that read;
    `policy_files` are more rules files."""

    enabled: bool = True
    file: Path | None = None
    file_rotate_bytes: int = 64 * 2**20
    file_keep: int = 5
    surfaces: Mapping[str, str] = field(default_factory=dict)
    metrics: str = "sdk"
    digest_key: str | None = None
    max_sessions: int = 1000
    max_bytes: int = 64 * 2**20
    repository: str = "auto"
    task_id: str | None = None
    attempt_id: str | None = None
    session_id: str | None = None
    parent_session_id: str | None = None
    agent: str | None = None
    provider_diagnostics: bool = False
    config: Path | None = None
    tool_properties: bool = False
    repository_paths: bool = False
    prometheus_token: str | None = field(default=None, repr=False)
    facts: Mapping[str, object] = field(default_factory=dict)
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    tools: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    constraints: Mapping[str, object] = field(default_factory=dict)
    compaction: Mapping[str, float] = field(default_factory=dict)
    advice: thresholds.Thresholds = thresholds.DEFAULTS
    reads: Mapping[str, object] = field(default_factory=dict)
    policy_files: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def from_env(environ: Mapping[str, str]) -> Config:
    """The configuration of an environment. Never raises: what cannot be read is in `warnings`."""
    found: dict[str, object] = {}
    warnings: list[str] = []
    for name, (parse, forms) in _VARIABLES.items():
        variable = PREFIX + name.upper()
        raw = stated(environ, variable)
        if not raw:
            continue
        try:
            found[name] = parse(raw)
        except ValueError as error:
            shown = "the value" if name == "digest_key" else repr(raw)
            warnings.append(f"{variable}: {shown} is not {forms}; using the default{_because(error)}")
    advice: Mapping[str, float] = found.pop("advice", {})  # type: ignore[assignment]
    settings = replace(Config(), **found)  # type: ignore[arg-type]
    tables, more = _tables(settings.config)
    tables |= {name: value for name, value in found.items() if name in tables}
    settings = replace(settings, **tables, warnings=(*warnings, *more))  # type: ignore[arg-type]
    return replace(settings, advice=replace(settings.advice, **advice))  # type: ignore[arg-type]


def stated(environ: Mapping[str, str], variable: str) -> str:
    """What the environment says under a variable's name, `""` for nothing. A flag of opentelemetry-instrument sets the
    longer spelling, and a flag outranks the environment."""
    return environ.get(f"OTEL_{variable}", "").strip() or environ.get(variable, "").strip()


def digest_key() -> str | None:
    """The key of digests, for those who export one beside any ledger."""
    return stated(os.environ, f"{PREFIX}DIGEST_KEY") or None


def _because(error: ValueError) -> str:
    return f" ({error})" if str(error) else ""


def _flag(raw: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if raw.lower() not in words:
        raise ValueError
    return words[raw.lower()]


def _positive(raw: str) -> int:
    if not raw.isdecimal() or int(raw) < 1:
        raise ValueError
    return int(raw)


def _one_of(words: tuple[str, ...]) -> Callable[[str], str]:
    def parse(raw: str) -> str:
        if raw.lower() not in words:
            raise ValueError
        return raw.lower()

    return parse


def _hosts(raw: str) -> Mapping[str, str]:
    """`host[:port]=surface,…`"""
    pairs = [item.strip().partition("=") for item in raw.split(",") if item.strip()]
    bad = next((host for host, equals, surface in pairs if not (host and equals and surface)), None)
    if bad is not None:
        raise ValueError(f"at {bad!r}")
    return {host.strip().lower(): surface.strip() for host, _, surface in pairs}


def _path(raw: str) -> Path:
    try:
        return Path(raw).expanduser()
    except RuntimeError as error:  # nobody of that name has a home here
        raise ValueError from error


_COUNT = (_positive, "a whole number above 0")
_TEXT: tuple[Callable[[str], object], str] = (str, "a text")
_VARIABLES: Mapping[str, tuple[Callable[[str], object], str]] = {
    "enabled": (_flag, "true or false"),
    "file": (_path, "a path"),
    "file_rotate_bytes": _COUNT,
    "file_keep": _COUNT,
    "surfaces": (_hosts, "host[:port]=surface,…"),
    "metrics": (_one_of(METRICS), f"one of {', '.join(METRICS)}"),
    "digest_key": _TEXT,
    "max_sessions": _COUNT,
    "max_bytes": _COUNT,
    "repository": _TEXT,
    "task_id": _TEXT,
    "attempt_id": _TEXT,
    "session_id": _TEXT,
    "parent_session_id": _TEXT,
    "agent": _TEXT,
    "provider_diagnostics": (_flag, "true or false"),
    "config": (_path, "a path"),
    "tool_properties": (_flag, "true or false"),
    "repository_paths": (_flag, "true or false"),
    "prometheus_token": _TEXT,
    "advice": (thresholds.stated, "threshold=number,…"),
}
VARIABLES = tuple(PREFIX + name.upper() for name in _VARIABLES)


def _tables(path: Path | None) -> tuple[dict[str, object], tuple[str, ...]]:
    """The tables of the TOML file that are ours to hand on, and what was wrong with it."""
    file = path or Path(DEFAULT_TOML)
    try:
        raw = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}, (f"{PREFIX}CONFIG: there is no file {str(path)!r}; using no file",) if path else ()
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        return {}, (f"{file.name}: not readable as TOML ({reason}); using no file",)
    found: dict[str, object] = {}
    wrong: list[str] = []
    for name, (fits, forms) in _TABLES.items():
        found[name], bad = _table(raw, name, fits, forms)
        wrong += bad
    given, bad = _table(raw, "advice", lambda value: True, "a number")
    found["advice"], bad_advice = thresholds.read(given)
    found["policy_files"], bad_files = _policy_files(raw)
    found["repository_paths"], bad_paths = _repository_paths(raw, path is not None)
    return found, tuple(f"{file.name}: {text}" for text in (*wrong, *bad, *bad_advice, *bad_files, *bad_paths))


def _policy_files(raw: Mapping[str, object]) -> tuple[tuple[str, ...], list[str]]:
    """`[policy] files = ["docs/rules.md"]`"""
    table, bad = _table(raw, "policy", lambda files: isinstance(files, list), "a list of paths")
    found = table.get("files", [])
    paths = tuple(path for path in found if isinstance(path, str) and path) if isinstance(found, list) else ()
    return paths[:MAX_POLICY_FILES], bad


def _repository_paths(raw: Mapping[str, object], chosen: bool) -> tuple[bool, list[str]]:
    """`[repository] paths = true`, which makes content leave: its user says so, not a file that came with the work tree
    and was only found there."""
    table, bad = _table(raw, "repository", lambda value: isinstance(value, bool), "true or false")
    wanted = table.get("paths") is True
    if wanted and not chosen:
        bad.append(f"[repository.paths] counts only in a file that {PREFIX}CONFIG names; ignored")
    return wanted and chosen, bad


RATES = ("input", "cache_read", "cache_write", "cache_write_1h", "cache_write_12h", "output")


def _is_card(card: object) -> bool:
    return isinstance(card, dict) and all(
        name in RATES and isinstance(rate, (int, float)) and not isinstance(rate, bool) and rate >= 0
        for name, rate in card.items()
    )


def _is_constraint(told: object) -> bool:
    text = told.get("text") if isinstance(told, dict) else told
    return isinstance(text, str) and bool(text.strip())


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf


_TABLES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "facts": (lambda card: isinstance(card, dict), "a table of facts"),
    "prices": (_is_card, f"a table of rates in USD per million tokens ({', '.join(RATES)})"),
    "tools": (lambda contract: isinstance(contract, dict), "a table of a tool's contract"),
    "reads": (lambda table: isinstance(table, dict), "a table of names"),
    "constraints": (_is_constraint, "a text, or a table with one"),
    "compaction": (_is_number, "a number"),
}


def _table(
    raw: Mapping[str, object], name: str, fits: Callable[[object], bool], forms: str
) -> tuple[dict[str, object], list[str]]:
    table = raw.get(name, {})
    if not isinstance(table, dict):
        return {}, [f"{name} = {table!r} is not a table; ignored"]
    bad = [f"[{name}.{key}] {value!r} is not {forms}; ignored" for key, value in table.items() if not fits(value)]
    return {key: value for key, value in table.items() if fits(value)}, bad
