"""`context-ledger doctor`: whether the ledger is active in this Python and set up right, one sentence for each check.

What is said of instrumentations, libraries and exporters has its own modules; here are the settings, the file and the
facts.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from otel_context_ledger import surfaces, tokens
from otel_context_ledger.cli import calls as c
from otel_context_ledger.cli import checks, coverage, exporters, instrumentations
from otel_context_ledger.cli.machine import OK, PROBLEM, WARNING, Check, Machine, here
from otel_context_ledger.cli.printing import Answer, Column, Lines, Sheet, plural, size, styled
from otel_context_ledger.config import PREFIX, VARIABLES, Config
from otel_context_ledger.correctness.tools import contracts
from otel_context_ledger.cost import Prices
from otel_context_ledger.model import UNKNOWN
from otel_context_ledger.surfaces import facts

STYLES = {OK: "green", WARNING: "yellow", PROBLEM: "bold red"}
COLUMNS = (Column("check"), Column("verdict"), Column("what was found", fold=True))
# Where tiktoken keeps vocabularies (tiktoken.load.read_file_cached).
CACHE_VARIABLES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
CACHE_NAME = "data-gym-cache"
MAX_NAMED = 8


@dataclass(frozen=True, slots=True)
class Seen:
    """The models of a ledger file, as (surface, model), with the endpoints of unknown surfaces."""

    models: tuple[tuple[str, str], ...] = ()
    strangers: tuple[str, ...] = ()


def answer(arguments: Namespace, settings: Config) -> Answer:
    """Every check of this environment."""
    return report(examine(here(os.environ), settings, c.path_of(arguments, settings)))


def report(checks: Iterable[Check]) -> Answer:
    """The answer that checks add up to."""
    found = list(checks)
    numbers = {verdict: sum(check.verdict == verdict for check in found) for verdict in (PROBLEM, WARNING)}
    rows = [(check.name, styled(check.verdict, STYLES[check.verdict]), check.sentence) for check in found]
    summary = f"{plural(numbers[PROBLEM], 'problem')}, {plural(numbers[WARNING], 'warning')}."
    document = {"checks": [asdict(check) for check in found], "problems": numbers[PROBLEM]}
    return Answer(document, [Sheet(COLUMNS, rows), Lines(["", summary])], numbers[PROBLEM] > 0)


def examine(machine: Machine, settings: Config, path: Path) -> Iterator[Check]:
    """The checks of a machine with these settings and this ledger file, in the order in which one would look."""
    yield Check("python", OK, f"{machine.python} in {machine.prefix}; everything below is about this one.")
    for check in CHECKS:
        yield from check(machine, settings)
    yield from configuration(machine, settings)
    yield from file(settings, path)
    lore, complaints = _lore(settings)
    yield from complaints
    yield from known(settings, lore, _seen(path), time.time())
    yield from tools(settings, _calls(path))
    yield vocabulary(machine)


CHECKS: tuple[Callable[[Machine, Config], Iterator[Check]], ...] = (
    instrumentations.active,
    instrumentations.starter,
    instrumentations.sdks,
    coverage.coverage,
    instrumentations.peers,
    instrumentations.clashes,
    exporters.mode,
    exporters.reach,
)


def configuration(machine: Machine, settings: Config) -> Iterator[Check]:
    """What is wrong with the variables and with context-ledger.toml."""
    found = [*settings.warnings, *_unread(machine), *_unnamed(settings)]
    yield from (Check("configuration", WARNING, f"{text}.") for text in found)
    if not found:
        yield Check("configuration", OK, "every value that is set was understood.")
    if settings.provider_diagnostics:
        asked = "requests to OpenAI (Responses) and Anthropic get a member that asks for their own verdict on a miss"
        yield Check("requests", OK, f"{asked}; {PREFIX}PROVIDER_DIAGNOSTICS=0 leaves every request as it is.")


def _unread(machine: Machine) -> Iterator[str]:
    for name in sorted(machine.environ):
        bare = name.removeprefix("OTEL_")
        if bare.startswith(PREFIX) and bare not in VARIABLES:
            yield f"{name} is set, but nothing reads it; the variables are {', '.join(VARIABLES)}"


def _unnamed(settings: Config) -> Iterator[str]:
    lore, _ = _lore(settings)
    yield from (f"{PREFIX}SURFACES: {text}" for text in surfaces.misnomers(settings.surfaces, lore).values())
    shipped, reached = facts.load().surfaces, set(settings.surfaces.values())
    for name in settings.facts:
        if name not in shipped and name not in reached and not lore.of(name).hosts:
            yield f"context-ledger.toml: [facts.{name}] is of no use, for no host is of that surface; give it hosts"


def file(settings: Config, path: Path) -> Iterator[Check]:
    """Whether the ledger file can be written and read, and has room to grow."""
    if settings.file is None:
        yield Check(
            "ledger file", WARNING, f"CONTEXT_LEDGER_FILE is not set, so none is written; this is about {path}."
        )
    place = next((at for at in (path, *path.absolute().parents) if at.exists()), path)
    if path.exists() and not path.is_file():
        yield Check("ledger file", PROBLEM, f"{path} is no file; name another in CONTEXT_LEDGER_FILE.")
        return
    if not os.access(place, os.W_OK):
        yield Check("ledger file", PROBLEM, f"{path} cannot be written; make {place} writable, or name another file.")
        return
    yield _contents(path)
    free, most = shutil.disk_usage(place).free, settings.file_rotate_bytes * (settings.file_keep + 1)
    room = f"{size(free)} are free, and the ledger may grow to {size(most)}"
    if free < most:
        yield Check("disk", WARNING, f"{room}; make room, or lower CONTEXT_LEDGER_FILE_KEEP.")
    else:
        yield Check("disk", OK, f"{room}.")


def _contents(path: Path) -> Check:
    if not path.exists():
        return Check("ledger file", OK, f"{path} is not there yet; the first call creates it.")
    try:
        book = c.read(path)
    except c.Unusable as refusal:
        return Check("ledger file", PROBLEM, str(refusal))
    foreign = c.alien(book)
    if foreign:
        return Check("ledger file", PROBLEM, f"{foreign} Name another in CONTEXT_LEDGER_FILE.")
    if book.strange:
        sentence = f"{path}: {plural(book.strange, 'line')} cannot be read; `context-ledger verify` says which."
        return Check("ledger file", WARNING, sentence)
    return Check("ledger file", OK, f"{path}: {plural(len(book.calls), 'call')} in {plural(len(book.files), 'file')}.")


def _lore(settings: Config) -> tuple[facts.Lore, list[Check]]:
    try:
        return facts.load(settings.facts), []
    except ValueError as error:
        return facts.load(), [Check("configuration", WARNING, f"context-ledger.toml: {error}; the shipped facts hold.")]


def _calls(path: Path) -> tuple[c.Call, ...]:
    try:
        return c.read(path).calls
    except c.Unusable:
        return ()


def _seen(path: Path) -> Seen:
    found = _calls(path)
    pairs = [(call.text("provider_surface") or UNKNOWN, call.text("model_id")) for call in found]
    strangers = [call.text("endpoint") for call in found if call.text("provider_surface") == UNKNOWN]
    return Seen(
        tuple(dict.fromkeys((surface, model) for surface, model in pairs if model)),
        tuple(dict.fromkeys(endpoint for endpoint in strangers if endpoint)),
    )


def known(settings: Config, lore: facts.Lore, seen: Seen, now: float) -> Iterator[Check]:
    """Whether the surfaces, prices and context windows of the models in the ledger are known."""
    if not seen.models:
        yield Check("facts", OK, "no model is in the ledger yet, so there are no prices or windows to look for.")
        return
    if seen.strangers:
        names = _some(seen.strangers)
        yield Check("surfaces", WARNING, f"unknown: {names}; name them: CONTEXT_LEDGER_SURFACES=host[:port]=surface,…")
    prices = Prices(settings.prices)
    priced, unpriced = list[str](), list[str]()
    windows, boundless = list[str](), list[str]()
    for surface, model in seen.models:
        own, name = lore.of(surface), f"{model} ({surface})"
        card = prices.card(own.price, model, now)
        if own.unit != "quota":
            (unpriced if card is None else priced).append(name)
        window = own.window(model) or (card.window if card else None)
        (boundless if window is None else windows).append(f"{name}: {window:,}" if window else name)
    yield _listed("prices", priced, unpriced, "set them in [prices.<model>] of context-ledger.toml")
    yield _listed("context windows", windows, boundless, "set them in [facts.<surface>.windows] of context-ledger.toml")


def _listed(name: str, there: list[str], missing: list[str], way_out: str) -> Check:
    have = f"known for {_some(there)}" if there else "none known"
    if missing:
        return Check(name, WARNING, f"{have}; unknown for {_some(missing)}: {way_out}.")
    return Check(name, OK, f"{have}." if there else "none needed: every model is paid for with quota.")


def _some(names: Iterable[str]) -> str:
    every = list(names)
    rest = f" and {len(every) - MAX_NAMED} more" if len(every) > MAX_NAMED else ""
    return ", ".join(every[:MAX_NAMED]) + rest


def tools(settings: Config, calls: Iterable[c.Call]) -> Iterator[Check]:
    """Whether there is anything that the tools of requests can be held against: a manifest, a live registry."""
    declared, bad = contracts.declared(settings.tools)
    yield from (Check("tools", WARNING, f"context-ledger.toml: {text}.") for text in bad)
    manifest = f"the manifest has {plural(len(declared), 'contract')}" if declared else "no manifest ([tools.<name>])"
    last = next((call for call in reversed(tuple(calls)) if call.text("tools_check")), None)
    if last is None:
        way = "" if declared else "; a program says what is live with tool_registry(…)"
        yield Check("tools", OK, f"{manifest}, and no call with tools is in the ledger yet{way}.")
    elif last.text("tools_check") == UNKNOWN:
        words = checks.REASONS.get(checks.reason(last), "it could not be compared")
        yield Check("tools", WARNING, f"{manifest}; of the last call's tools nothing is known: {words}.")
    else:
        compared = checks.counts(last).get("compared", "0")
        seen = f"a live registry was known at the last call ({compared} compared)" if compared != "0" else "no registry"
        yield Check("tools", OK, f"{manifest}; {seen}.")


def vocabulary(machine: Machine) -> Check:
    """Whether sizes that nobody reported can be told in tokens."""
    given = next((machine.environ[name] for name in CACHE_VARIABLES if name in machine.environ), None)
    directory = Path(tempfile.gettempdir()) / CACHE_NAME if given is None else (Path(given) if given else None)
    found = tokens.vocabulary(directory)
    if found is None:
        return Check(
            "vocabulary", OK, "none of tiktoken's is on this machine; estimates take four bytes for one token."
        )
    return Check("vocabulary", OK, f"{found} is on this machine; nothing is downloaded.")
