"""How a program tells of a compaction of its own: around a block, around a function, or by calls.

Nothing here raises for what it is told, and nothing waits: the ledger takes it from the mailbox. What is made of it is
the business of `correctness.compaction`.
"""

from __future__ import annotations

import contextlib
import logging
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict

from otel_context_ledger import tasks
from otel_context_ledger.correctness.compaction import failures
from otel_context_ledger.correctness.compaction.event import (
    DONE,
    FAILED,
    KINDS,
    SKIPPED,
    TRIGGERS,
    UNKNOWN_LIMITS,
    Limits,
)
from otel_context_ledger.correctness.compaction.happenings import Begun, Ended, Happening
from otel_context_ledger.mailbox import Letter, latest, mailbox
from otel_context_ledger.names import named, real
from otel_context_ledger.spelling import word

if TYPE_CHECKING:
    from typing_extensions import Unpack

MAX_SUMMARY = 1 << 20
MAX_COUNT = 2**53
_RANGE = re.compile(r"\d{1,9}-\d{1,9}")
_log = logging.getLogger("otel_context_ledger")
_warned: set[str] = set()


@dataclass(frozen=True, slots=True)
class Plan:
    """What is told of a compaction before it: see `Told`."""

    id: str | None = None
    kind: str = KINDS[0]
    trigger: str | None = None
    tokens: int | None = None
    source_range: str | None = None
    limits: Limits = UNKNOWN_LIMITS


class Compacting:
    """A compaction under way: inside a `with` block, inside each call of the function that it decorates, or from
    `start()` to `done()`, `skip()` or `fail()`. The first of these ends it, and what comes later is not heard."""

    __slots__ = ("_begun", "_over", "_plan", "id")

    def __init__(self, plan: Plan) -> None:
        self._plan, self._begun, self._over = plan, False, False
        self.id = plan.id or f"c-{secrets.token_hex(6)}"

    def start(self) -> Compacting:
        """It begins."""
        if not self._begun:
            self._begun, plan = True, self._plan
            told = self.id, plan.kind, plan.trigger, plan.tokens, plan.source_range, plan.limits
            _tell(lambda: Begun(time.time(), *told))
        return self

    def done(self, summary: object = None, *, tokens_after: object = None) -> None:
        """The history was replaced, by `summary` if it is a text; `tokens_after` is what the client counts now. The
        text is read once, when the ledger looks for what was declared, and only its digest is kept."""
        self._end(lambda: _done(self.id, summary, tokens_after))

    def skip(self, reason: object = None) -> None:
        """Nothing was removed."""
        self._end(lambda: Ended(time.time(), self.id, SKIPPED, _reason(reason)))

    def fail(self, reason: object = None) -> None:
        """It failed: `reason` is an exception, the text of an error, or a word. Of texts only what they say of lengths
        is kept."""
        self._end(lambda: _failed(self.id, reason))

    def __enter__(self) -> Compacting:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is None:
            self.done()
        else:
            self.fail(error)

    def __call__(self, function: tasks.Function) -> tasks.Function:
        """The function, of whatever kind, with a compaction around each of its calls."""
        return tasks.around(function, whole=lambda: Compacting(replace(self._plan, id=None)))

    def _end(self, told: Callable[[], Happening]) -> None:
        if not self._over:
            self.start()
            self._over = True
            _tell(told)


class Told(TypedDict, total=False):
    """What can be told of a compaction before it. `kind` is full, micro, partial_from, partial_up_to or provider;
    `trigger` auto, manual, reactive or window_downshift; `tokens_before` what the client counts; `source_range` the
    first and last index of the messages replaced, `(1, 119)` or `"1-119"`; `threshold` where the client compacts, a
    share of `window` (tokens) up to 1, or else tokens."""

    kind: str | None
    trigger: str | None
    tokens_before: int | None
    source_range: str | tuple[int, int] | None
    threshold: float | None
    window: int | None


def compaction(id: object = None, **told: Unpack[Told]) -> Compacting:
    """Tells of a compaction: `with compaction(trigger="auto", tokens_before=212_039) as c: … c.done(summary)`, or
    `@compaction(trigger="auto")`, or `c = compaction().start()` and later `c.done(summary)`, `c.skip("nothing_to_do")`,
    `c.fail(error)`. Leaving the block means done, an error that leaves it means failed.

    `id` joins what is told in several places. Never raises for a value; without a ledger in this process nothing comes
    of it. Raises TypeError for a keyword that it does not know.
    """
    strange = next((name for name in told if name not in Told.__annotations__), None)
    if strange is not None:
        raise TypeError(f"compaction() got an unexpected keyword argument {strange!r}")
    plan = Plan()
    with contextlib.suppress(Exception):  # an error of ours is none of the program's
        plan = _plan(id, told)
    return Compacting(plan)


def _plan(name: object, told: Told) -> Plan:
    return Plan(
        named(name) or None,
        _one_of("kind", KINDS, told.get("kind")) or KINDS[0],
        _one_of("trigger", TRIGGERS, told.get("trigger")),
        _count(told.get("tokens_before")),
        _range(told.get("source_range")),
        _limits(told.get("threshold"), told.get("window")),
    )


def _tell(happening: Callable[[], Happening]) -> None:
    with contextlib.suppress(Exception):  # an error of ours is none of the program's
        here = tasks.current()
        mailbox.put(Letter(here.session or latest.get(), here.task, happening()))


def _done(name: str, summary: object, after: object) -> Ended:
    text = str.__str__(summary)[:MAX_SUMMARY] if real(summary, str) else None
    return Ended(time.time(), name, DONE, None, text, _count(after))


def _failed(name: str, reason: object) -> Ended:
    failure = failures.read(_text(reason))
    known = failure.reason if failure else type(reason).__name__ if real(reason, BaseException) else None
    # A text of several words is an error's, and may quote anything.
    said = named(reason).lower() if known is None and real(reason, str) else None
    return Ended(time.time(), name, FAILED, known or word(said), failure=failure)


def _one_of(name: str, words: tuple[str, ...], value: object) -> str | None:
    said = str.__str__(value) if real(value, str) else None
    if value is None or said in words:
        return said
    if name not in _warned:
        _warned.add(name)
        _log.warning("context ledger: compaction: the %s is none of %s; it says nothing", name, ", ".join(words))
    return None


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None


def _range(value: object) -> str | None:
    if (real(value, tuple) or real(value, list)) and len(value) == 2:
        first, last = map(_count, value)
        return None if first is None or last is None else f"{first}-{last}"
    return str.__str__(value) if real(value, str) and _RANGE.fullmatch(value) else None


def _limits(threshold: object, window: object) -> Limits:
    number = threshold if type(threshold) in (int, float) else None
    if isinstance(number, (int, float)) and 0 < number <= 1:
        return Limits(_count(window) or None, float(number))
    return Limits(_count(window) or None, None, _count(number) or None)


def _text(reason: object) -> str:
    """The text of an error, as far as it has one: that may be the program's own code."""
    if real(reason, str):
        return str.__str__(reason)
    if real(reason, BaseException):
        with contextlib.suppress(Exception):
            return str(reason)
    return ""


def _reason(reason: object) -> str | None:
    return word("_".join(named(reason).lower().split())) if real(reason, str) else None
