"""What a program tells of its compactions and constraints, until the ledger takes it at its next call.

Nobody waits here and nothing is looked at: telling costs the program an append to a bounded queue. What is told while
no ledger runs is dropped, except for declarations: they hold for the process, whichever ledger runs in it.
"""

from __future__ import annotations

import contextlib
from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass, replace

from otel_context_ledger.correctness.compaction.happenings import Declared, Ended, Happening
from otel_context_ledger.correctness.compaction.manifest import updated

MAX_WAITING = 1024
MAX_DECLARED = 512
# Beyond so many letters summaries wait without their texts, each of which may have a megabyte.
MAX_TEXTS = 32


@dataclass(frozen=True, slots=True)
class Letter:
    """A happening with the session and task around it; without a session it is about whichever the ledger knows here.
    A declaration without one is about all of them."""

    session: str | None
    task: str | None
    happening: Happening


class Mailbox:
    """Letters in the order they came. `lost` counts those for which there was no room."""

    def __init__(self) -> None:
        self._waiting: deque[Letter] = deque(maxlen=MAX_WAITING)
        self._declared: dict[tuple[str | None, str], Letter] = {}
        self._open = False
        self.lost = 0

    def open(self) -> None:
        """A ledger runs from now on: it is told what was declared, to it or to one before it."""
        self._open = True
        self._waiting.extend(list(self._declared.values()))

    def close(self) -> None:
        """It runs no longer."""
        self._open = False

    def put(self, letter: Letter) -> None:
        """Leaves a letter; of too many the oldest is lost."""
        if isinstance(letter.happening, Declared):
            self._keep(letter, letter.happening)
        elif not self._open:
            return
        self.lost += len(self._waiting) == MAX_WAITING
        self._waiting.append(letter if len(self._waiting) < MAX_TEXTS else _lean(letter))

    def _keep(self, letter: Letter, told: Declared) -> None:
        key = letter.session, told.item.id
        before = self._declared.get(key)
        known = before.happening.item if before and isinstance(before.happening, Declared) else None
        self._declared[key] = replace(letter, happening=replace(told, item=updated(known, told.item)))
        while len(self._declared) > MAX_DECLARED:
            self._declared.pop(next(iter(self._declared)), None)

    def forget(self) -> None:
        """Nothing was declared, and nothing waits."""
        self._declared.clear()
        self._waiting.clear()

    def take(self) -> tuple[Letter, ...]:
        """All letters that wait. Cheap where there are none."""
        found: list[Letter] = []
        with contextlib.suppress(IndexError):  # another thread may take the last one
            while self._waiting:
                found.append(self._waiting.popleft())
        return tuple(found)

    def renew(self) -> None:
        """A forked child knows what was declared; the rest is its parent's to tell."""
        kept = [letter for letter in self._waiting if isinstance(letter.happening, Declared)]
        self._waiting = deque(kept, maxlen=MAX_WAITING)


def _lean(letter: Letter) -> Letter:
    told = letter.happening
    return replace(letter, happening=replace(told, summary=None)) if isinstance(told, Ended) else letter


mailbox = Mailbox()
# The session of the last call in this context, as far as the program named none.
latest: ContextVar[str | None] = ContextVar("context_ledger_latest_session", default=None)
