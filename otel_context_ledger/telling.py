"""How the outcome of a task gets into the ledger: from the program itself, or hours later from another process.

What follows from it is `outcomes`' business. Nothing here raises for what it is told.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from pathlib import Path
from threading import RLock
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, TypedDict, TypeVar

from otel_context_ledger import config, line, outcomes, store, tasks
from otel_context_ledger import model as m
from otel_context_ledger.names import named

if TYPE_CHECKING:
    from typing_extensions import Unpack

SECONDS = 5.0
MAX_TASKS = 1000
_log = logging.getLogger("otel_context_ledger")


class Evidence(TypedDict, total=False):
    """What can be said of how a task ended: true, false, or a word such as `passed` and `failed`; `None` says
    nothing."""

    success: bool | str | None
    tests: bool | str | None
    constraints: bool | str | None
    accepted: bool | str | None
    rolled_back: bool | str | None


Key = TypeVar("Key", bound=Hashable)
_Scope: TypeAlias = tuple[str, str | None]
Tell = Callable[[m.Outcome, bool, bool], None]


class Outlet:
    """Where the outcomes that this process tells go: to the ledger that runs in it, if one does."""

    def __init__(self) -> None:
        self._tell: Tell | None = None
        self._counted: OrderedDict[str, str] = OrderedDict()
        self._told: OrderedDict[_Scope, str] = OrderedDict()
        # A finaliser or signal handler may tell an outcome in the middle of another telling.
        self._lock = RLock()
        self._warned: set[str] = set()

    @property
    def is_open(self) -> bool:
        """Whether a ledger runs in this process."""
        return self._tell is not None

    def open(self, tell: Tell) -> None:
        """A ledger runs from now on; `tell` takes an outcome, whether to keep it, and whether to count it."""
        self._tell = tell

    def close(self) -> None:
        """It runs no longer."""
        self._tell = None

    def tell(self, told: m.Outcome, keep: bool = True) -> bool:
        """Hands an outcome to the running ledger, and whether there is one."""
        with self._lock:
            _remember(self._told, (told.task_id, told.attempt_id), told.outcome_id)
        if self._tell is None:
            return False
        self._tell(told, keep, self._ends(told))
        return True

    def warn(self, about: str) -> None:
        """One warning of each kind."""
        if about not in self._warned:
            self._warned.add(about)
            _log.warning("context ledger: outcome: %s", about)

    def renew_lock(self) -> None:
        """A free lock for a forked child, whose parent may have held the old one."""
        self._lock = RLock()

    def last(self, scope: _Scope) -> str | None:
        """The id of what this process told last of a task or an attempt."""
        return self._told.get(scope)

    def _ends(self, told: m.Outcome) -> bool:
        """Whether this is the end of a task that was not counted as such yet: a failed attempt is none."""
        if told.word == m.UNKNOWN or (told.word == outcomes.FAILURE and told.attempt_id is not None):
            return False
        with self._lock:
            return _remember(self._counted, told.task_id, told.word) != told.word


def _remember(found: OrderedDict[Key, str], key: Key, value: str) -> str | None:
    """Keeps a value as the latest of at most 1,000, and gives the one before."""
    before = found.pop(key, None)
    found[key] = value
    while len(found) > MAX_TASKS:
        found.popitem(last=False)
    return before


outlet = Outlet()


class Block:
    """What `outcome()` returns: around a block or a function it tells success at its end, and failure with the error's
    type where an error leaves it. It tells nothing where the program told an end inside, nor of what is cancelled or
    interrupted, and lets everything through."""

    __slots__ = ("_before", "_names")

    def __init__(self, task: object, attempt: object) -> None:
        self._names = (task, attempt)
        self._before: list[str | None] = []

    def __enter__(self) -> None:
        told = record(*self._names)
        self._before.append(outlet.last((told.task_id, told.attempt_id)) if told else None)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        before = self._before.pop() if self._before else None
        if kind is not None and (not issubclass(kind, Exception) or kind.__name__ == "CancelledError"):
            return
        told = record(*self._names, None if kind is None else kind.__name__, None, {"success": kind is None})
        if told is None or outlet.last((told.task_id, told.attempt_id)) == before:
            _publish(told)

    def __call__(self, function: tasks.Function) -> tasks.Function:
        """The function, of whatever kind, with the end of each of its calls told."""
        return tasks.around(function, whole=lambda: Block(*self._names))


def outcome(
    task: object = None,
    *,
    attempt: object = None,
    reason: object = None,
    outcome_id: object = None,
    **evidence: Unpack[Evidence],
) -> Block:
    """Says how a task ended: `outcome("TASK-8421", tests="passed", accepted=True)`. Returns at once and never raises
    for a value. With nothing to say yet, it tells the end of a block, `with outcome("TASK-8421"): …`, or of each call
    of a function, `@outcome("TASK-8421")`.

    Without `task` it is the one that holds here. Told inside of an attempt at that task, it is said of the attempt;
    `attempt=""` says it of the whole task. Of several that decide, the latest stands. An `outcome_id` that was used
    before makes this the same message again. `reason` goes into the ledger file and the event as it is, up to 256
    characters. Raises TypeError for a keyword that it does not know.
    """
    strange = next((name for name in evidence if name not in outcomes.EVIDENCE), None)
    if strange is not None:
        raise TypeError(f"outcome() got an unexpected keyword argument {strange!r}")
    for name, value in evidence.items():
        if value is not None and outcomes.flag(value) is None:
            outlet.warn(f"the value of {name} is neither true nor false nor a word for either; it says nothing")
    if reason is not None or any(value is not None for value in evidence.values()):
        _publish(record(task, attempt, reason, outcome_id, evidence))
    return Block(task, attempt)


def _publish(told: m.Outcome | None) -> None:
    if told is None:
        outlet.warn("no task is named, here or around it; it is not kept")
    elif not outlet.tell(told):
        _keep_alone(told)


def record(
    task: object,
    attempt: object,
    reason: object = None,
    outcome_id: object = None,
    evidence: Mapping[str, object] = MappingProxyType({}),
) -> m.Outcome | None:
    """What is told, now; `None` where no task is named."""
    here = tasks.current() if outlet.is_open else tasks.current(os.environ)
    about = named(task) or (here.task or "" if task is None else "")
    if not about:
        return None
    held = here.attempt if attempt is None and about == here.task else named(attempt)
    flags = {name: outcomes.flag(evidence.get(name)) for name in outcomes.EVIDENCE}
    return m.Outcome(
        named(outcome_id) or secrets.token_hex(8),
        time.time(),
        about,
        held or None,
        outcomes.decide(flags),
        reason=named(reason) or None,
        **flags,
    )


def keep(told: m.Outcome, path: Path, settings: config.Config) -> bool:
    """Appends an outcome to a ledger file, and whether that worked; waits for it at most 5 s."""
    from otel_context_ledger import __version__

    with contextlib.suppress(OSError):
        file = store.Store(path, settings.file_rotate_bytes, settings.file_keep)
        file.put(partial(line.write_outcome, told, __version__))
        file.close(SECONDS)
        return not file.lost
    return False


def _keep_alone(told: m.Outcome) -> None:
    settings = config.from_env(os.environ)
    if settings.file is None or not settings.enabled:
        outlet.warn("no ledger runs here and CONTEXT_LEDGER_FILE names no file; it is not kept")
    else:
        keep(told, settings.file, settings)
