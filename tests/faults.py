"""Makes functions of this package fail, one at a time, and lists those that run while a program does.

Functions are found by watching which code runs, not by name, so that the walk follows the package as it changes. A
failing function keeps its identity: only its code is replaced, so that whoever holds it, fails.
"""

from __future__ import annotations

import gc
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import otel_context_ledger

FOLDER = str(Path(otel_context_ledger.__file__).parent)
# Parts of an expression or of a module, which fail with the function around them.
_INNER = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<module>"})


class InjectedError(Exception):
    """What a failing function raises."""


def reached(program: Callable[[], object]) -> list[types.CodeType]:
    """The functions of this package that run while `program` does."""
    with watched() as found:
        program()
    return list(found)


@contextmanager
def watched() -> Iterator[dict[types.CodeType, None]]:
    """The functions of this package that run inside, in this thread and any that starts, in the order of their first
    call."""
    found: dict[types.CodeType, None] = {}

    def watch(frame: types.FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(FOLDER) and code.co_name not in _INNER:
            found.setdefault(code)

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def named(code: types.CodeType) -> str:
    """How a function is called in a report: file, qualified name."""
    return f"{Path(code.co_filename).relative_to(FOLDER)}:{getattr(code, 'co_qualname', code.co_name)}"


def functions() -> list[types.FunctionType]:
    """Every function of this package that lives now: those defined inside others are made anew by them."""
    every = [thing for thing in gc.get_objects() if type(thing) is types.FunctionType]
    return [function for function in every if function.__code__.co_filename.startswith(FOLDER)]


@contextmanager
def failing(
    code: types.CodeType, among: list[types.FunctionType], error: type[BaseException] = InjectedError
) -> Iterator[list[str]]:
    """Inside, the function with this code raises `error` wherever it is called; yields the threads it was called in. An
    interrupt reaches the main thread alone, as Python has it."""
    calls: list[str] = []

    def fail() -> None:
        calls.append(threading.current_thread().name)
        if issubclass(error, Exception) or threading.current_thread() is threading.main_thread():
            raise error

    changed = []
    for function in among:
        before = function.__code__
        after = _without(before, code, fail) if before.co_filename == code.co_filename else before
        if after is not before:
            changed.append((function, before))
            function.__code__ = after
    try:
        yield calls
    finally:
        for function, before in changed:
            function.__code__ = before


def _without(code: types.CodeType, target: types.CodeType, fail: Callable[[], None]) -> types.CodeType:
    """The code with `target`, itself or a function defined inside of it, replaced by one that fails."""
    if code == target and code.co_firstlineno == target.co_firstlineno:
        return _raising(code, fail)
    inner = [_without(const, target, fail) if isinstance(const, types.CodeType) else const for const in code.co_consts]
    same = all(now is was for now, was in zip(inner, code.co_consts, strict=True))
    return code if same else code.replace(co_consts=tuple(inner))


def _raising(code: types.CodeType, fail: Callable[[], None]) -> types.CodeType:
    """Code that calls `fail`, takes any arguments and closes over the same names. The module of the function knows no
    `fail`, so that the call is compiled of a constant, which then gives its place to it."""
    closed = " = ".join(code.co_freevars)
    bound = f"    {closed} = None\n" if closed else ""
    body = f"        if 0:\n            {closed.replace(' = ', ', ') or 'pass'}\n        ('FAIL')()\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outer = compile(f"def outer():\n{bound}    def inner(*_args, **_kwargs):\n{body}", code.co_filename, "exec")
    inner = _last_code(_last_code(outer))
    return inner.replace(co_consts=tuple(fail if const == "FAIL" else const for const in inner.co_consts))


def _last_code(code: types.CodeType) -> types.CodeType:
    return [const for const in code.co_consts if isinstance(const, types.CodeType)][-1]
