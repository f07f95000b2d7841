"""Which task, attempt and session a call belongs to, when the program says so.

The names travel in the OpenTelemetry context, not in baggage, which would send them to the provider; into threads by
`carry`, into child processes by their environment. What becomes of them is the ledger's business.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from opentelemetry import context as otel

from otel_context_ledger import config
from otel_context_ledger import environment_variables as e
from otel_context_ledger.names import named
from otel_context_ledger.records import quick

# The last scopes that ended here: an OTel context from inside of one may still be restored after it.
MAX_ENDED = 64
_KEYS = {kind: otel.create_key(f"context_ledger.{kind}") for kind in ("session", "task", "attempt")}
_FLAGS = {
    "task": e.OTEL_CONTEXT_LEDGER_TASK_ID,
    "attempt": e.OTEL_CONTEXT_LEDGER_ATTEMPT_ID,
    "session": e.OTEL_CONTEXT_LEDGER_SESSION_ID,
    "parent": e.OTEL_CONTEXT_LEDGER_PARENT_SESSION_ID,
}
_VARIABLES = {kind: flag.removeprefix("OTEL_") for kind, flag in _FLAGS.items()}
Function = TypeVar("Function", bound=Callable[..., Any])


@quick
@dataclass(frozen=True, slots=True)
class Names:
    """What the program called the session, task and attempt around this call; `parent` is the session that opened this
    one."""

    session: str | None = None
    task: str | None = None
    attempt: str | None = None
    parent: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    """One name that holds, inside of `outer`; `""` says that none does. An attempt is one at `task`, or at whichever
    task is opened inside; a session was opened by `parent`."""

    name: str
    outer: _Frame | None
    task: str | None = None
    parent: str | None = None


_inherited = Names()
_ended: ContextVar[tuple[_Frame, ...]] = ContextVar("context_ledger_ended", default=())


class Scope:
    """A name that holds inside a `with` block, inside each call of the function that it decorates, or from `start()` to
    `stop()`. Never raises of its own; a value that is no name means that no name holds."""

    __slots__ = ("_frames", "_kind", "_name", "_parent")

    def __init__(self, kind: str, name: object, parent: object = None) -> None:
        self._kind, self._name, self._parent = kind, named(name), named(parent)
        self._frames: list[_Frame] = []

    def start(self) -> Scope:
        """The name holds from here on, in this thread or asyncio task and in what it starts."""
        here = otel.get_current()
        frame = self._frame(_held(here, self._kind), _resolved(here, _inherited))
        self._frames.append(frame)
        otel.attach(otel.set_value(_KEYS[self._kind], frame, here))
        return self

    def stop(self) -> None:
        """The name that held before holds again, in whatever order scopes are stopped. Once is enough."""
        here = otel.get_current()
        held = here.get(_KEYS[self._kind])
        try:
            frame = held if isinstance(held, _Frame) and held in self._frames else self._frames[-1]
            self._frames.remove(frame)
        except (IndexError, ValueError):  # stopped already, here or by another thread
            return
        # Who attached a context inside of this scope and detaches it later, a stream's span say, restores this scope.
        _ended.set((*_ended.get(), frame)[-MAX_ENDED:])
        if held is frame:
            otel.attach(otel.set_value(_KEYS[self._kind], _holding(frame.outer), here))

    def __enter__(self) -> Scope:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __call__(self, function: Function) -> Function:
        """The function with this name around each of its calls: plain, async, generator or async generator."""
        return around(function, lambda: Scope(self._kind, self._name, self._parent))

    def _frame(self, outer: _Frame | None, held: Names) -> _Frame:
        if self._kind == "attempt":
            return _Frame(self._name, outer, task=held.task)
        if self._kind == "session":
            opened_by = held.session if held.session != self._name else held.parent
            return _Frame(self._name, outer, parent=self._parent or opened_by)
        return _Frame(self._name, outer)


def session(name: object, *, parent: object = None) -> Scope:
    """Calls inside belong to the session `name`: `with session("s-1"): …`, `@session("s-1")`, or
    `session("s-1").start()` … `.stop()`. Inside of another session it is that one's child, unless `parent` says else.
    """
    return Scope("session", name, parent)


def task(name: object) -> Scope:
    """Calls inside belong to the task `name`. An attempt that was opened at another task holds no longer."""
    return Scope("task", name)


def attempt(name: object) -> Scope:
    """Calls inside belong to the attempt `name` at their task."""
    return Scope("attempt", name)


def current(environ: Mapping[str, str] | None = None) -> Names:
    """The names that hold here: those of the program, else those that the process inherited, or those of `environ`."""
    return _resolved(otel.get_current(), _inherited if environ is None else _named_in(environ))


def inherit(names: Names) -> None:
    """The names of every call of this process for which the program names none."""
    global _inherited  # noqa: PLW0603
    _inherited = names


def carry(function: Function) -> Function:
    """The function with the names that hold here, and no others, wherever it is called: `pool.submit(carry(work))`.

    Threads and executors start without the caller's names, except through `asyncio.to_thread` and
    `contextvars.copy_context().run`, which bring the whole context. Can be pickled if the function can, so that it may
    go to a pool of processes too.
    """
    names = current()
    shell = around(function, lambda: _holding_all(names))
    if inspect.iscoroutinefunction(shell) or inspect.isgeneratorfunction(shell) or inspect.isasyncgenfunction(shell):
        return shell
    carried: Any = Carried(function, names)
    return carried  # type: ignore[no-any-return]


class Carried:
    """A plain function that is called under names that held elsewhere."""

    def __init__(self, function: Callable[..., Any], names: Names) -> None:
        self._function, self._names = function, names
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with _holding_all(self._names):
            return self._function(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return Carried, (self._function, self._names)


def child_environment(environ: Mapping[str, str] | None = None, *, session: object = None) -> dict[str, str]:
    """The environment of a child process whose calls belong to the task, attempt and session of here; with `session`,
    to a session of that name, which this one has opened. The rest is `environ`, by default that of this process; raises
    TypeError if that is no mapping."""
    if environ is not None and not isinstance(environ, Mapping):
        raise TypeError("child_environment() takes a mapping, or nothing for this process's own environment")
    base = os.environ if environ is None else environ
    held = current(base)
    own = named(session)
    if own and own != held.session:
        held = Names(own, held.task, held.attempt, held.session)
    # The spelling that a flag sets outranks the other one, so that neither of the old values may stay.
    ours = {*_VARIABLES.values(), *_FLAGS.values()}
    found = {name: value for name, value in base.items() if name not in ours}
    known = {variable: getattr(held, kind) for kind, variable in _VARIABLES.items()}
    return found | {variable: name for variable, name in known.items() if name}


def _named_in(environ: Mapping[str, str]) -> Names:
    return Names(**{kind: named(config.stated(environ, name)) or None for kind, name in _VARIABLES.items()})


def _held(here: Mapping[str, object], kind: str) -> _Frame | None:
    found = here.get(_KEYS[kind])
    return _holding(found) if isinstance(found, _Frame) else None


def _holding(frame: _Frame | None) -> _Frame | None:
    """The innermost of these scopes that did not end here."""
    ended = _ended.get()
    while frame is not None and frame in ended:
        frame = frame.outer
    return frame


def _resolved(here: Mapping[str, object], inherited: Names) -> Names:
    session, task, attempt = (_held(here, kind) for kind in _KEYS)
    at = inherited.task if task is None else task.name or None
    if attempt is not None:
        of, name = attempt.task, attempt.name or None
    else:
        of, name = inherited.task, inherited.attempt
    tried = name if of in (None, at) else None
    if session is not None:
        return Names(session.name or None, at, tried, session.parent)
    return Names(inherited.session, at, tried, inherited.parent)


def _holding_all(names: Names) -> AbstractContextManager[object]:
    every = ExitStack()
    every.enter_context(Scope("session", names.session, names.parent))
    every.enter_context(Scope("task", names.task))
    every.enter_context(Scope("attempt", names.attempt))
    return every


Open = Callable[[], AbstractContextManager[object]]


def around(function: Function, scope: Open = nullcontext, whole: Open = nullcontext) -> Function:
    """The function, of whatever kind it is, with `scope` around everything that it runs, and `whole` around each of its
    calls: of a generator the first is left while its consumer runs, the second holds from first step to last."""
    kinds: tuple[tuple[Callable[[object], bool], Callable[[Any, Open, Open], Any]], ...] = (
        (inspect.isasyncgenfunction, _async_generator),
        (inspect.iscoroutinefunction, _coroutine),
        (inspect.isgeneratorfunction, _generator),
    )
    made: Callable[[Any, Open, Open], Any] = next((make for fits, make in kinds if fits(function)), _plain)
    shell: Function = made(function, scope, whole)
    return shell


def _plain(function: Callable[..., Any], scope: Open, whole: Open) -> Callable[..., Any]:
    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with whole(), scope():
            return function(*args, **kwargs)

    return inside


def _coroutine(function: Callable[..., Any], scope: Open, whole: Open) -> Callable[..., Any]:
    @functools.wraps(function)
    async def inside(*args: Any, **kwargs: Any) -> Any:
        with whole(), scope():
            return await function(*args, **kwargs)

    return inside


def _generator(function: Callable[..., Any], scope: Open, whole: Open) -> Callable[..., Any]:
    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with whole():
            return (yield from _steps(function(*args, **kwargs), scope))

    return inside


def _steps(running: Any, scope: Open) -> Generator[Any, Any, Any]:
    """Everything that a generator yields, is sent and is thrown, with the scope around each of its steps."""
    step: Callable[[], Any] = functools.partial(next, running)
    while True:
        try:
            with scope():
                item = step()
        except StopIteration as end:
            return end.value
        try:
            step = functools.partial(running.send, (yield item))
        except GeneratorExit:
            with scope():
                running.close()
            raise
        except BaseException as error:  # noqa: BLE001 - it is the generator's own to deal with
            step = functools.partial(running.throw, error)


def _async_generator(function: Callable[..., Any], scope: Open, whole: Open) -> Callable[..., Any]:
    @functools.wraps(function)
    async def inside(*args: Any, **kwargs: Any) -> Any:
        running = function(*args, **kwargs)
        step: Callable[[], Any] = running.__anext__
        with whole():
            while True:
                try:
                    with scope():
                        item = await step()
                except StopAsyncIteration:
                    return
                try:
                    step = functools.partial(running.asend, (yield item))
                except GeneratorExit:
                    with scope():
                        await running.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001 - it is the generator's own to deal with
                    step = functools.partial(running.athrow, error)

    return inside
