"""How a program declares what must stay in the context (rules, the goal, todos), and who tells whether it does.

What is declared inside of a session holds for it, everything else for the process. Looking for it is `correctness`'.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Sequence
from contextvars import ContextVar
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, TypedDict

from otel_context_ledger import tasks
from otel_context_ledger.correctness import declarations
from otel_context_ledger.correctness.compaction.happenings import Declared
from otel_context_ledger.correctness.compaction.manifest import Item
from otel_context_ledger.correctness.constraints import VERDICTS, Constraint, Match, Validator
from otel_context_ledger.correctness.wording import Wording
from otel_context_ledger.mailbox import Letter, mailbox
from otel_context_ledger.names import named
from otel_context_ledger.spelling import word

if TYPE_CHECKING:
    from typing_extensions import Unpack

# A validator that asks a model from threads of its own is seen by the ledger as a program, whose calls it would judge.
MAX_AT_ONCE = 8
_log = logging.getLogger("otel_context_ledger")
_warned: set[str] = set()


class Said(TypedDict, total=False):
    """What can be said of a constraint. `supersedes` is the id of the one that it replaces; `kind` is rule, goal or
    todo; `severity` high or low; `terms` are words that no rewording can do without. A goal or todo has a `status`,
    active or done, and `evidence`, one name or several of what shows it."""

    supersedes: str | None
    kind: str
    severity: str
    terms: Sequence[str]
    status: str | None
    evidence: str | Sequence[str] | None


def constraint(id: object, text: object = None, **said: Unpack[Said]) -> None:
    """Declares what must stay in the context and survive every compaction: `constraint("C1", "Never edit x/")`,
    `constraint("T1", "rename the queue", kind="todo")`, later `constraint("T1", status="done", evidence="pytest-41")`.

    Returns at once and never raises for a value; the text stays in this process. Raises TypeError for a keyword that it
    does not know.
    """
    strange = next((name for name in said if name not in Said.__annotations__), None)
    if strange is not None:
        raise TypeError(f"constraint() got an unexpected keyword argument {strange!r}")
    with contextlib.suppress(Exception):  # an error of ours is none of the program's
        _declare(declarations.item(id, text, said))


def _declare(item: Item | None) -> None:
    if item is not None and (item.constraint.text or item.status or item.evidence):
        here = tasks.current()
        mailbox.put(Letter(here.session, here.task, Declared(time.time(), item)))
    elif "text" not in _warned:
        _warned.add("text")
        _log.warning("context ledger: constraint: it has no id, or neither text nor status; it is not kept")


class Chosen:
    """The validator that the program chose, ours until then. What it raises, or answers that is no match, makes nothing
    of ours fail: the constraint is `uncertain`, by the matcher `failed`. What it calls its matcher is one word. It may
    make calls that the ledger sees, which it is not asked about again; more than `MAX_AT_ONCE` at a time it is not
    asked for either (`busy`)."""

    def __init__(self) -> None:
        self._validator: Validator = Wording()
        self._asking: ContextVar[bool] = ContextVar("context_ledger_asking", default=False)
        self._free = BoundedSemaphore(MAX_AT_ONCE)

    def choose(self, validator: Validator) -> None:
        """From now on this one tells."""
        self._validator = validator

    @property
    def name(self) -> str:
        """What it calls itself."""
        return self._said("name") or type(self._validator).__name__

    @property
    def version(self) -> str:
        """The version that it says it is."""
        return self._said("version") or "0"

    def _said(self, what: str) -> str:
        with contextlib.suppress(Exception):
            return named(getattr(self._validator, what, None))
        return ""

    def match(self, constraint: Constraint, text: str) -> Match:
        """How it says that `constraint` stands in `text`."""
        if type(self._validator) is Wording:
            return self._validator.match(constraint, text)
        if self._asking.get() or not self._free.acquire(blocking=False):
            return Match("uncertain", "busy", 0.0)
        token = self._asking.set(True)
        try:
            return self._asked(constraint, text)
        finally:
            self._asking.reset(token)
            self._free.release()

    def _asked(self, constraint: Constraint, text: str) -> Match:
        with contextlib.suppress(Exception):
            found = self._validator.match(constraint, text)
            if type(found) is Match and found.verdict in VERDICTS and 0 <= found.confidence <= 1:
                return Match(str(found.verdict), word(found.matcher) or "other", float(found.confidence))
        return Match("uncertain", "failed", 0.0)


chosen = Chosen()


def validate_with(validator: Validator) -> None:
    """Has `validator` tell, in this process, whether constraints stand in texts: an object with `name`, `version` and
    `match(constraint, text)`, which gives a `Match`. Its name and version are written into what it judged. It is called
    while the program waits for its call, so it must be quick; it must not keep the text."""
    chosen.choose(validator)
