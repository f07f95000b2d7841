"""The only module that touches SDKs: four shells around the one method that every model call of `openai` and
`anthropic` passes (`_base_client.SyncAPIClient.request` and its async twin), and the instrumentor that puts them there.

Below the seam nothing of the caller's is touched: bodies are already lists and dicts, results keep their types.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import multiprocessing.util
import os
import random
import re
import time
import types
import weakref
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, get_args, get_origin
from urllib.parse import urlsplit

import orjson
import wrapt
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]

from otel_context_ledger import (
    __version__,
    config,
    line,
    processes,
    spelling,
    store,
    surfaces,
    tasks,
    telemetry,
    telling,
)
from otel_context_ledger import model as m
from otel_context_ledger.backlog import Backlog, greenlets
from otel_context_ledger.canonical import digest, key_of, scheme, written
from otel_context_ledger.checking import STAGE, Note, Pillars
from otel_context_ledger.correctness import accesses, declarations, reads, repository
from otel_context_ledger.correctness.compaction.course import Rules
from otel_context_ledger.correctness.compaction.manifest import NOTHING
from otel_context_ledger.correctness.examination import Examiner, World
from otel_context_ledger.correctness.files import Shelf
from otel_context_ledger.correctness.looking import Looker
from otel_context_ledger.correctness.policy import RulesFile
from otel_context_ledger.correctness.tools import check, contracts, live
from otel_context_ledger.courses import Courses, configured
from otel_context_ledger.declaring import chosen
from otel_context_ledger.invocation import Call, Desk, Invocation, Settle
from otel_context_ledger.ledger import Draft, Ledger, Limits
from otel_context_ledger.mailbox import latest, mailbox
from otel_context_ledger.names import named
from otel_context_ledger.surfaces import facts
from otel_context_ledger.surfaces.events import mapping, pick

SDKS = ("openai", "anthropic")
SEAM = "_base_client"
CLASSES = ("SyncAPIClient", "AsyncAPIClient")
RAW_HEADER = "x-stainless-raw-response"
_INVOCATION = "_context_ledger_invocation"
CLIENT_HEADERS = ("user-agent", "x-msh-version")
MAX_RESTORED_BYTES = 1 << 20
FLUSH_SECONDS = 5.0
# Lines that may wait for a slow disk; each keeps its request's outline alive.
MAX_WAITING = 1000
MAX_WRAPPERS = 16
# A product and version, as in `KimiCLI/1.50.0`, `Agents/Python 0.24.0` or `2.1.0`; the rest of such a header may name
# the user's machine, so that a version apart has at most three numbers, one less than an address.
_PRODUCT = re.compile(r"[\w.-]{1,40}(?:/[\w.-]{1,24})?(?: \d{1,6}(?:\.\d{1,6}){1,2}(?= |$))?", re.ASCII)
_SENTINELS = ("NotGiven", "Omit")
_log = logging.getLogger("otel_context_ledger")
# Seeded by the system once and in each forked child, and not the program's own generator: a program that seeds that one
# would give the calls of all its runs the same ids.
_ids = random.Random()


class ContextLedgerInstrumentor(BaseInstrumentor):  # type: ignore[misc,unused-ignore]
    """Keeps a ledger line for every model call of this process. Reversible; configured by the environment alone."""

    _desk: Desk | None = None
    _hooked: bool = False
    _stop: Callable[[], None] | None = None
    _file: store.Store | None = None
    _lookers: Sequence[Looker] = ()

    def instrumentation_dependencies(self) -> Collection[str]:
        """None: SDKs are patched when the program imports them."""
        return ()

    def _instrument(self, **kwargs: Any) -> None:
        """Never raises: an error here would keep the program's other instrumentations from starting."""
        try:
            self._start()
        except Exception as error:  # noqa: BLE001
            _log.warning("context ledger: start failed with %s; nothing is recorded", type(error).__name__)
            _log.debug("context ledger: start", exc_info=error)

    def _start(self) -> None:
        settings = config.from_env(os.environ)
        if not settings.enabled:
            return
        for warning in settings.warnings:
            _log.warning("context ledger: %s", warning)
        self._desk, self._file, self._lookers, self._stop = assemble(settings)
        if not self._hooked:
            self._hooked = True
            for sdk in SDKS:
                wrapt.register_post_import_hook(self._patch, f"{sdk}.{SEAM}")
        else:
            for module in loaded():
                self._patch(module)

    def flush(self, timeout: float = FLUSH_SECONDS) -> bool:
        """Waits at most `timeout` seconds until every finished entry is in the file and said to OpenTelemetry."""
        desk = self._desk
        if desk is None:
            return True
        with desk.guard("store"):
            said = desk.backlog.flush(timeout)
            return (self._file is None or self._file.flush(timeout)) and said
        return False

    def look(self, timeout: float = FLUSH_SECONDS) -> bool:
        """Has the repository, the rules files and the files that calls spoke of looked at now, and waits at most
        `timeout` seconds for it: a call that is made or ends afterwards knows what is there. Says whether all were
        looked at; `True` where `CONTEXT_LEDGER_REPOSITORY` is off."""
        desk, deadline = self._desk, time.monotonic() + timeout
        if desk is None:
            return True
        with desk.guard("checks"):
            taken = [looker.ask() for looker in self._lookers]
            return all(wait(deadline - time.monotonic()) for wait in taken)
        return False

    def _uninstrument(self, **kwargs: Any) -> None:
        desk, stop = self._desk, self._stop
        self._desk = self._stop = self._file = None
        self._lookers = ()
        if desk is None:
            return
        with desk.guard("instrument"):
            for module in loaded():
                for name in CLASSES:
                    _unwrap(getattr(module, name, None))
        if stop is not None:
            with desk.guard("exit"):
                stop()

    def _patch(self, module: Any) -> None:
        """Runs inside the program's import of an SDK."""
        if self._desk is None:
            return
        with self._desk.guard("instrument"):
            _load_prices()
            for name, shell in zip(CLASSES, (self._request, self._arequest), strict=True):
                owner = getattr(module, name, None)
                if owner is not None and not isinstance(owner.__dict__.get("request"), _Seam):
                    _seat(owner, _Seam(owner.request, shell))

    def _request(
        self, wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        invocation = self._begin(instance, args, kwargs)
        if invocation is None:
            return wrapped(*args, **kwargs)
        with invocation.guard("begin"):
            args, kwargs = _with_question(args, kwargs, invocation)
        with invocation.watching():
            result = wrapped(*args, **self._with_shell(args, kwargs, invocation))
        self._deliver(invocation, result, kwargs)
        return result

    async def _arequest(
        self, wrapped: Callable[..., Awaitable[Any]], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        invocation = self._begin(instance, args, kwargs)
        if invocation is None:
            return await wrapped(*args, **kwargs)
        invocation.asynchronous()
        with invocation.guard("begin"):
            args, kwargs = _with_question(args, kwargs, invocation)
        with invocation.watching():
            result = await wrapped(*args, **self._with_shell(args, kwargs, invocation))
        self._deliver(invocation, result, kwargs)
        return result

    def _begin(self, client: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Invocation | None:
        desk = self._desk
        if desk is None:
            return None
        with desk.guard("begin"):
            if desk.telemetry.silenced():
                return None
            call = read_call(client, args[1] if len(args) > 1 else kwargs.get("options"), desk.find)
            if call is None:
                return None
            return desk.begin(call)
        return None

    def _with_shell(self, args: tuple[Any, ...], kwargs: dict[str, Any], invocation: Invocation) -> dict[str, Any]:
        """The call's arguments, with the stream class replaced by one that watches its events."""
        stream_cls = kwargs.get("stream_cls")
        if not kwargs.get("stream") or stream_cls is None:
            return kwargs
        with invocation.guard("stream"):
            shell = watched(stream_cls)
            raw = shell is not stream_cls and is_raw(args[1] if len(args) > 1 else kwargs.get("options"))
            return {**kwargs, "stream_cls": bound(shell, invocation) if raw else shell}
        return kwargs

    def _deliver(self, invocation: Invocation, result: Any, kwargs: dict[str, Any]) -> None:
        """Ends the entry of a whole answer, or leaves that to the stream."""
        with invocation.guard("deliver"):
            if not kwargs.get("stream"):
                _answer(invocation, result)
            elif hasattr(type(result), _INVOCATION):
                attach(result, invocation)
            elif hasattr(result, "http_response") and hasattr(result, "parse"):
                _later(invocation, result)
            else:
                invocation.ended("unread")


class _Seam(wrapt.FunctionWrapper):  # type: ignore[misc,type-arg,unused-ignore]
    """Our wrapper around `request`, told apart from anyone else's."""

    def __call__(self, client: Any, *args: Any, **kwargs: Any) -> Any:
        """Called past any class, by a peer's function that holds the method and passes the client itself."""
        return self.__get__(client, type(client))(*args, **kwargs)


def loaded() -> Iterator[Any]:
    """The seam modules that the program has imported."""
    import sys

    names = (f"{sdk}.{SEAM}" for sdk in SDKS)
    return (sys.modules[name] for name in names if name in sys.modules)


def _unwrap(owner: Any) -> None:
    if owner is not None and isinstance(owner.__dict__.get("request"), _Seam):
        _seat(owner, owner.__dict__["request"].__wrapped__)


def _seat(owner: Any, method: Any) -> None:
    """Sets `request`, and puts it in the place of the former one wherever a peer's wrapper around the method of a
    derived client (`OpenAI.request`) holds that: a peer that was there first would else go past it."""
    former = owner.__dict__["request"]
    owner.request = method
    for derived in _descendants(owner):
        if "request" in derived.__dict__:
            with contextlib.suppress(Exception):  # a wrapper of another make stays as it is
                _replace(derived.__dict__["request"], former, method)


def _descendants(owner: Any) -> Iterator[Any]:
    for derived in type.__subclasses__(owner):
        yield derived
        yield from _descendants(derived)


_WRAPPERS = (types.FunctionType, wrapt.FunctionWrapper)


def _replace(held: Any, former: Any, method: Any, depth: int = MAX_WRAPPERS) -> None:
    """Follows a chain of wrappers, of `wrapt` or of `functools`, down to the method that they were put around."""
    if held is method or not depth:
        return
    for cell in getattr(held, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # an empty cell
            if cell.cell_contents is former:
                cell.cell_contents = method
            elif isinstance(cell.cell_contents, _WRAPPERS):
                _replace(cell.cell_contents, former, method, depth - 1)
    below = getattr(held, "__wrapped__", None)
    if below is former:
        held.__wrapped__ = method
    elif below is not None:
        _replace(below, former, method, depth - 1)


def read_call(client: Any, options: Any, find: Callable[[str, str, Mapping[str, object]], Any]) -> Call | None:
    """What the seam sees of a call, or `None` when it is no model call that carries a context."""
    body = options.json_data
    if not isinstance(body, dict) or str(options.method).lower() != "post":
        return None
    sent = _sent(options)
    host, port, path = _place(str(options.url), str(client.base_url))
    endpoint = f"{host}:{port}" if port else host
    surface = find(endpoint, path, sent)
    if surface is None:
        return None
    name = _client_name(client, options)
    return Call(surface, spelling.name(endpoint), spelling.name(host), port, sent, name)


@lru_cache(maxsize=256)
def _place(url: str, base: str) -> tuple[str, int | None, str]:
    """Host, port and path of a call to `url`, which may be relative to `base`."""
    where = urlsplit(url)
    if not where.netloc:
        root = urlsplit(base)
        where = root._replace(path=f"{root.path.rstrip('/')}/{where.path.lstrip('/')}")
    return where.hostname or "", where.port, where.path


def _sent(options: Any) -> dict[str, object]:
    """The members of the body that will be sent: those of `extra_body` outrank the others."""
    members = {**options.json_data, **mapping(pick(options, "extra_json"))}
    return {name: value for name, value in members.items() if type(value).__name__ not in _SENTINELS}


def _client_name(client: Any, options: Any) -> str | None:
    """The calling program's own version header, if it set one."""
    given = {**mapping(pick(client, "_custom_headers")), **mapping(pick(options, "headers"))}
    if not given:
        return None
    named = {key.lower(): value for key, value in given.items() if isinstance(key, str)}
    found = (_PRODUCT.match(value) for key in CLIENT_HEADERS if isinstance(value := named.get(key), str))
    return next((match.group() for match in found if match), None)


def _with_question(
    args: tuple[Any, ...], kwargs: dict[str, Any], invocation: Invocation
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The call's arguments, with the question for the provider's own verdict in a copy of its options if the user wants
    it asked. The program's own objects stay as they are."""
    if not invocation.asks:
        return args, kwargs
    options = args[1] if len(args) > 1 else kwargs["options"]
    extra, question = mapping(pick(options, "extra_json")), invocation.question(_sent(options))
    if question is None:
        return args, kwargs
    changed = options.model_copy()
    if extra.keys() & question.keys():
        changed.extra_json = {**extra, **question}
    else:
        changed.json_data = {**options.json_data, **question}
    invocation.asked()
    return ((args[0], changed, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "options": changed})


def is_raw(options: Any) -> bool:
    """Whether the program asked for the raw response, from which it may make a stream later."""
    return any(str(name).lower() == RAW_HEADER for name in mapping(pick(options, "headers")))


def _answer(invocation: Invocation, result: Any) -> None:
    # An answer may have any member that a provider likes, a `status_code` too, and pydantic is slow to say that it has
    # none: a model is never asked whether it is a response.
    if hasattr(type(result), "__pydantic_fields__"):
        invocation.answered(result)
        return
    raw = getattr(result, "http_response", None)
    response = raw if raw is not None else (result if hasattr(result, "status_code") else None)
    if response is None:
        invocation.answered(result)
    elif response.is_closed:
        invocation.answered_raw(lambda: orjson.loads(response.content))
    else:
        invocation.ended("unread")


def _later(invocation: Invocation, result: Any) -> None:
    """A raw response whose stream is made when the program asks for it, if it ever does."""
    if getattr(result, "_stream_cls", None) is None:
        invocation.ended("unread")
    else:
        weakref.finalize(result, invocation.unclaimed)


@lru_cache(maxsize=64)
def watched(stream_cls: Any) -> Any:
    """A subclass of the SDK's stream class, of the same name, that shows its events to the invocation attached to it;
    a class without `__stream__` is left as it is."""
    origin = get_origin(stream_cls) or stream_cls
    if not hasattr(origin, "__stream__"):
        return stream_cls
    body = _asynchronous(origin) if hasattr(origin, "__aiter__") else _synchronous(origin)
    names = {name: getattr(origin, name) for name in ("__module__", "__qualname__", "__doc__")}
    body |= {**names, "__orig_bases__": _bases(stream_cls, origin), _INVOCATION: None}
    return types.new_class(origin.__name__, (origin,), {}, lambda namespace: namespace.update(body))


def _bases(stream_cls: Any, origin: Any) -> tuple[Any, ...]:
    """The generic base from which the SDK reads the type of the events, for its own class and for a program's."""
    for base in getattr(origin, "__orig_bases__", ()):
        sdk = get_origin(base)
        if sdk is not None and hasattr(sdk, "__stream__"):
            given = get_args(stream_cls)
            return (sdk[given] if given and base.__parameters__ else base,)
    return (stream_cls,)


def attach(stream: Any, invocation: Invocation) -> None:
    """Gives a stream its invocation. Anthropic iterates a copy of the stream, which copies the attribute too."""
    setattr(stream, _INVOCATION, invocation)
    weakref.finalize(stream, invocation.dropped)


def bound(stream_cls: Any, invocation: Invocation) -> Any:
    """A subclass for one call, whose stream attaches itself: a raw response makes its stream when it is asked to."""
    origin = get_origin(stream_cls) or stream_cls

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        origin.__init__(self, *args, **kwargs)
        with invocation.guard("stream"):
            invocation.claim()
            attach(self, invocation)

    names = {name: getattr(origin, name) for name in ("__module__", "__qualname__", "__doc__")}
    body = {**names, "__init__": __init__, "__orig_bases__": origin.__orig_bases__}
    return types.new_class(origin.__name__, (origin,), {}, lambda namespace: namespace.update(body))


def _synchronous(origin: Any) -> dict[str, Any]:
    def __stream__(self: Any) -> Iterator[Any]:
        invocation = getattr(self, _INVOCATION)
        if invocation is None:
            yield from origin.__stream__(self)
            return
        with invocation.streaming():
            for event in origin.__stream__(self):
                invocation.see(event)
                yield event

    def close(self: Any) -> None:
        origin.close(self)
        _closed(self)

    return {"__stream__": __stream__, "close": close}


def _asynchronous(origin: Any) -> dict[str, Any]:
    async def __stream__(self: Any) -> Any:
        invocation = getattr(self, _INVOCATION)
        if invocation is None:
            async for event in origin.__stream__(self):
                yield event
            return
        with invocation.streaming():
            async for event in origin.__stream__(self):
                invocation.see(event)
                yield event

    async def close(self: Any) -> None:
        await origin.close(self)
        _closed(self)

    return {"__stream__": __stream__, "close": close}


def _closed(stream: Any) -> None:
    invocation = getattr(stream, _INVOCATION)
    if invocation is not None:
        invocation.ended("closed")


def assemble(settings: config.Config) -> tuple[Desk, store.Store | None, Sequence[Looker], Callable[[], None]]:
    """The desk of this process, its ledger file, who looks at its repository, and what undoes them."""
    lore, watcher, shelf = _lore(settings), _watcher(settings), _shelf(settings)
    key = key_of(settings.digest_key) if settings.digest_key else None
    limits = Limits(settings.max_sessions, settings.max_bytes, settings.advice)
    moved = partial(watcher.manifests.moved, paths=settings.repository_paths) if watcher is not None else None
    pillars = Pillars(_tools(settings), _examiner(settings, shelf), _courses(settings, shelf, key), moved)
    ledger = Ledger(lore, __version__, limits, settings.prices, key, pillars)
    file = _file(settings, ledger)
    given = (settings.session_id, settings.task_id, settings.attempt_id, settings.parent_session_id)
    tasks.inherit(tasks.Names(*(named(name) or None for name in given)))
    around = partial(_surroundings, settings, ledger.checking.heard, watcher, shelf)
    keep = partial(_keep, file, ledger) if file else None
    find = surfaces.Directory(lore, _named(settings, lore)).find
    backlog = Backlog("context-ledger-signals", MAX_WAITING)
    speaking = telemetry.Telemetry(__version__, settings.metrics, backlog.flush)
    desk = Desk(ledger, speaking, around, time.perf_counter, find, backlog, keep)
    desk.asks = settings.provider_diagnostics
    if file is not None:
        desk.keep_compaction = partial(_keep_compaction, file, key)
    mailbox.open()
    if hasattr(os, "register_at_fork"):
        held = weakref.ref(desk)
        os.register_at_fork(before=partial(_catch_up, held), after_in_child=_renew(held))
    for waiting in (backlog, file):
        if waiting is not None:
            multiprocessing.util.register_after_fork(waiting, _flush_at_worker_end)
    telling.outlet.open(partial(_tell, desk, file, settings.agent))
    leave = partial(_leave, desk, file)
    speaking.met = partial(_leave_first, leave)
    speaking.met()
    lookers = [one for one in (watcher, shelf) if one is not None]
    return desk, file, lookers, partial(_stop, leave, desk, file, lookers)


def _leave_first(leave: Callable[[], None]) -> None:
    """Runs `leave` before every exit hook there is, those of a tracer provider that has come since included."""
    atexit.unregister(leave)
    atexit.register(leave)


def _lore(settings: config.Config) -> facts.Lore:
    try:
        return facts.load(settings.facts)
    except ValueError as error:
        _log.warning("context ledger: context-ledger.toml: %s; using the shipped facts", error)
        return facts.load()


def _named(settings: config.Config, lore: facts.Lore) -> dict[str, str]:
    """The user's surface names by host, without those that are none."""
    wrong = surfaces.misnomers(settings.surfaces, lore)
    for sentence in wrong.values():
        _log.warning("context ledger: CONTEXT_LEDGER_SURFACES: %s; going by the host", sentence)
    return {host: name for host, name in settings.surfaces.items() if host not in wrong}


def _tools(settings: config.Config) -> check.Tools:
    declared, bad = contracts.declared(settings.tools)
    for sentence in bad:
        _log.warning("context ledger: context-ledger.toml: %s", sentence)
    return check.Tools(live.LIVE, declared, settings.tool_properties, settings.max_sessions)


def _file(settings: config.Config, ledger: Ledger) -> store.Store | None:
    if settings.file is None:
        return None
    try:
        ledger.restore(store.tail(settings.file, MAX_RESTORED_BYTES).entries)
    except Exception as error:  # noqa: BLE001 - lines of anybody's making; what they break is the restart alone
        _log.debug("context ledger: no earlier ledger to restore from", exc_info=error)
    return store.Store(settings.file, settings.file_rotate_bytes, settings.file_keep, MAX_WAITING)


def _flush_at_worker_end(waiting: Backlog | store.Store) -> None:
    """A forked worker of `multiprocessing` ends without running exit hooks."""
    first = isinstance(waiting, Backlog)  # it gives the file its lines
    multiprocessing.util.Finalize(waiting, waiting.flush, args=(FLUSH_SECONDS,), exitpriority=11 if first else 10)


def _watcher(settings: config.Config) -> repository.Watcher | None:
    if settings.repository == "off" or greenlets():
        return None
    watcher = repository.Watcher(_directory(settings), time.time, ours=settings.file)
    watcher.start()
    return watcher


def _shelf(settings: config.Config) -> Shelf | None:
    """What looks at the files that a history read and at rules files; it belongs to the repository."""
    if settings.repository == "off" or greenlets():
        return None
    shelf = Shelf(_directory(settings), time.time, settings.policy_files)
    reads.SAID.want = shelf.want
    shelf.start()
    return shelf


def _directory(settings: config.Config) -> Path:
    """Where the program works."""
    return Path.cwd() if settings.repository in ("auto", "off") else Path(settings.repository)


def _examiner(settings: config.Config, shelf: Shelf | None) -> Examiner:
    names, bad = accesses.lexicon(settings.reads)
    for sentence in bad:
        _log.warning("context ledger: context-ledger.toml: %s", sentence)
    if shelf is None:
        return Examiner(_nowhere, chosen, reads.Reader(names, _working_directory))
    base = _working_directory if settings.repository == "auto" else partial(str, shelf.directory)
    return Examiner(partial(_world, shelf), chosen, reads.Reader(names, base, shelf.want))


def _working_directory() -> str:
    """Where relative paths begin now, for a program may go elsewhere; empty if that is gone."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _nowhere() -> World:
    return World(time.time(), said=reads.SAID.of)


def _world(shelf: Shelf) -> World:
    known = shelf.latest()
    return World(time.time(), known.rules, files=known, said=reads.SAID.of)


def _courses(settings: config.Config, shelf: Shelf | None, key: bytes | None) -> Courses:
    """What is known of compactions: what the settings declare, and the numbers by which something is odd."""
    limits, thresholds, strange = configured(settings.compaction)
    for name in strange:
        _log.warning("context ledger: context-ledger.toml: [compaction] has no %s; ignored", named(name))
    declared = NOTHING.joined(declarations.in_table(settings.constraints))
    rules = Rules(chosen, partial(_exported, key), declared, limits, thresholds)
    spell = partial(spelling.session, export=partial(written, key=key))
    files = partial(_rules_files, shelf) if shelf is not None else tuple
    return Courses(rules, settings.max_sessions, mailbox.take, files, spell, partial(processes.runs, key))


def _rules_files(shelf: Shelf) -> tuple[RulesFile, ...]:
    return shelf.latest().rules


def _exported(key: bytes | None, text: str) -> str:
    return written(digest(text.encode("utf-8", "surrogatepass")), key=key)


def _catch_up(held: weakref.ref[Desk]) -> None:
    """Before a fork: the child knows all calls that have ended."""
    desk = held()
    if desk is not None:
        with desk.guard("instrument"):
            desk.catch_up()


def _renew(desk: weakref.ref[Desk]) -> Callable[[], None]:
    def renew() -> None:
        _ids.seed()
        found = desk()
        if found is not None:
            with found.guard("instrument"):
                found.ledger.renew_lock()
                telling.outlet.renew_lock()
                reads.SAID.renew_lock()
                mailbox.renew()
                found.disown()

    return renew


def _load_prices() -> None:
    """Loads the price list (0.1 to 0.2 s) right after the SDK, in the thread that imports it: at the end of a call it
    would hold that call up, and beside a call the SDK may meet a half imported module (openai 2 looks at `httpx2`)."""
    with contextlib.suppress(Exception):
        from genai_prices.data_snapshot import get_snapshot

        get_snapshot()


def _close(desk: Desk, file: store.Store | None) -> None:
    """Streams still open end their entries, then signals and file get what waits. Outcomes that are told later still,
    by the program's own exit hooks, go to the file without us."""
    telling.outlet.close()
    with desk.guard("exit"):
        desk.leave(time.time())
    mailbox.close()
    for waiting in (desk.backlog, file):
        if waiting is not None:
            with desk.guard("exit"):
                waiting.close(FLUSH_SECONDS)


def _leave(desk: Desk, file: store.Store | None) -> None:
    """At exit: everything is closed, and the exporters get what they still hold."""
    with desk.guard("exit"):
        _close(desk, file)
    with desk.guard("exit"):
        desk.telemetry.drain()


def _stop(leave: Callable[[], None], desk: Desk, file: store.Store | None, lookers: Sequence[Looker]) -> None:
    atexit.unregister(leave)
    tasks.inherit(tasks.Names())
    _close(desk, file)
    reads.SAID.want = reads.unwanted
    for looker in lookers:
        looker.stop()


def _tell(desk: Desk, file: store.Store | None, agent: str | None, told: m.Outcome, keep: bool, counted: bool) -> None:
    """An outcome that was told in this process: its line, its event, its measurement."""
    if keep and file is not None:
        with desk.guard("store"):
            _put(file, partial(line.write_outcome, told, __version__))
    with desk.guard("telemetry"):
        desk.backlog.put(partial(_say, desk, told, agent, counted))


def _say(desk: Desk, told: m.Outcome, agent: str | None, counted: bool) -> None:
    with desk.guard("telemetry"):
        desk.telemetry.tell(told, agent, counted)
        desk.telemetry.stand_by()


def _keep(file: store.Store, ledger: Ledger, settle: Settle, draft: Draft) -> None:
    _put(file, lambda: line.write(settle(), ledger.trail(draft)))


def _keep_compaction(file: store.Store, key: bytes | None, told: m.Compacted) -> None:
    _put(file, partial(line.write_compaction, told, __version__, scheme(key), processes.this(key)))


def _put(file: store.Store, text: Callable[[], bytes]) -> None:
    before = file.lost
    file.put(text)
    # A line that comes after the end, as of a daemon thread while the program exits, is lost and counted: no error.
    if file.lost > before and not file.closed:
        raise OverflowError("the ledger file does not keep up; a line was lost")


def _surroundings(
    settings: config.Config, note: Note, watcher: repository.Watcher | None, shelf: Shelf | None
) -> m.Surroundings:
    now, names = time.time(), tasks.current()
    snapshot = _snapshot(note, watcher, shelf)
    return m.Surroundings(
        entry_id=f"{_ids.getrandbits(64):016x}",
        now=now,
        session=names.session,
        conversation=telemetry.conversation(),
        task=names.task,
        attempt=names.attempt,
        agent=settings.agent,
        parent=names.parent,
        repo_snapshot=snapshot.identity if snapshot else ("off" if watcher is None else None),
        repo_age=max(0.0, now - snapshot.taken) if snapshot and snapshot.taken else None,
        repo_head=snapshot.head if snapshot else None,
        latest=latest.get(),
    )


def _snapshot(note: Note, watcher: repository.Watcher | None, shelf: Shelf | None) -> repository.Snapshot | None:
    """The repository as it was seen last, to be looked at again soon."""
    try:
        return _looked_at(watcher, shelf)
    except Exception as error:  # noqa: BLE001 - a call has its entry without it
        note(STAGE, error)
        return None


def _looked_at(watcher: repository.Watcher | None, shelf: Shelf | None) -> repository.Snapshot | None:
    snapshot = watcher.latest() if watcher is not None else None
    if not greenlets():
        for looker in (watcher, shelf):
            if looker is not None:
                looker.poke()
    return snapshot
