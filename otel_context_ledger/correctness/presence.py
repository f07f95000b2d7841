"""Where the constraints of a session stand in what its requests send, remembered so that an append costs its own texts.

A text is looked through once for each constraint; how each stood in the texts of a history so far goes on with it. No
lock is held while a validator looks: it may be the program's own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from otel_context_ledger.correctness import constraints as c
from otel_context_ledger.correctness.text import Text
from otel_context_ledger.correctness.wording import stands
from otel_context_ledger.model import Check, Findings
from otel_context_ledger.records import quick

MAX_MATCHES = 1 << 14
# More texts than these are looked through as one.
MAX_TEXTS = 64
SYSTEM = -1
ELSEWHERE = "reason=history_at_provider"
"""A part of what the model gets is kept by the provider, or sealed by it."""
Sent = tuple[bytes, str]
_HELD = c.Match("held", "exact", 1.0)


@quick
@dataclass(frozen=True, slots=True)
class Standing:
    """How the constraints of a history stand in it: the first place at which each stands word for word (`held`; -1 is
    the system part), else the best match in its messages so far, by `validator`."""

    declared: tuple[c.Constraint, ...] = ()
    held: Mapping[str, int] | None = None
    best: Mapping[str, c.Match] | None = None
    validator: str = ""

    def missing(self) -> list[c.Constraint]:
        """Those that do not stand word for word."""
        return [one for one in self.declared if one.id not in (self.held or ())]

    def unlooked(self) -> Standing:
        """The same, where messages were not looked through yet."""
        return Standing(self.declared, self.held)


NOTHING = Standing()


@quick
@dataclass(frozen=True, slots=True)
class Texts:
    """What a request says to the model: its system part, the messages that are new in it, and all that are known, of
    which the new ones are a part. `gone`: earlier ones are not kept. `whole`: nothing else reaches the model."""

    system: Sequence[Sent] = ()
    fresh: Sequence[Sent] = ()
    known: Sequence[Sent] = ()
    gone: bool = False
    whole: bool = True


class Presence:
    """Looks for constraints in texts. Every method may be called from any thread."""

    def __init__(self, validator: c.Validator) -> None:
        self._validator = validator
        self._matches: OrderedDict[tuple[str, c.Constraint, bytes], c.Match] = OrderedDict()
        self._places: OrderedDict[tuple[c.Constraint, bytes], bool] = OrderedDict()
        self.renew_lock()

    def renew_lock(self) -> None:
        """A free lock for a forked child, whose parent may have held the old one."""
        self._lock = Lock()

    def placed(
        self,
        declared: tuple[c.Constraint, ...],
        before: Standing,
        system: Sequence[Sent],
        told: Sequence[tuple[int, bytes, str]],
    ) -> Standing:
        """Where each constraint stands word for word: as before, in the system part, or in messages by their places."""
        if not declared:
            return NOTHING
        same = before.declared == declared
        found = {name: at for name, at in (before.held or {}).items() if at != SYSTEM} if same else {}
        missing = [one for one in declared if one.id not in found]
        found |= {one.id: SYSTEM for one in missing if any(self._stands(one, key, text) for key, text in system)}
        for at, _, text in told:
            found |= {one.id: at for one in missing if one.id not in found and stands(one, text)}
        return Standing(declared, found, before.best if same else None, before.validator)

    def _stands(self, one: c.Constraint, key: bytes, text: str) -> bool:
        """As `stands`, for a text that every request sends again."""
        known = self._places.get((one, key))
        if known is None:
            known = stands(one, text)
            with self._lock:
                self._places[one, key] = known
                while len(self._places) > MAX_MATCHES:
                    self._places.popitem(last=False)
        return known

    def unread(self, standing: Standing, texts: Texts) -> int:
        """Characters that are still to be looked through for the constraints that do not stand word for word."""
        missing, who = standing.missing(), self._who()
        if not missing:
            return 0
        best = _best(standing, who)
        some = missing[-1]
        new = (*texts.system, *(texts.fresh if all(one.id in best for one in missing) else texts.known))
        return sum(len(text) for key, text in new if (who, some, key) not in self._matches)

    def judged(self, standing: Standing, texts: Texts) -> tuple[Check, Standing]:
        """The verdict on all constraints, and how they stand in the messages so far."""
        who = self._who()
        best, found = dict(_best(standing, who)), {one.id: _HELD for one in standing.declared}
        made: dict[tuple[int, bytes], Text] = {}
        for one in standing.missing():
            floor = best.get(one.id, c.UNSEEN if texts.gone else c.NOWHERE)
            looked = self._looked(one, who, texts.fresh if one.id in best else texts.known, made)
            best[one.id] = max((floor, *looked), key=c.rank)
            found[one.id] = max((best[one.id], *self._looked(one, who, texts.system, made)), key=c.rank)
        check = c.judge(standing.declared, c.Recall(found, who))
        if not texts.whole and check.verdict != "held":
            check = Check("not_verifiable", Findings((), check.findings.counts[:1], (f"validator={who}", ELSEWHERE)))
        return check, Standing(standing.declared, standing.held, best, who)

    def _looked(
        self, one: c.Constraint, who: str, texts: Sequence[Sent], made: dict[tuple[int, bytes], Text]
    ) -> Iterator[c.Match]:
        """How one stands in each of some texts; `made` are those that were taken apart for another one."""
        if len(texts) > MAX_TEXTS:
            every = len(texts), b""
            if every not in made:
                made[every] = Text(".\n".join(text for _, text in texts))
            yield self._validator.match(one, made[every])
            return
        for key, text in texts:
            known = self._matches.get((who, one, key))
            if known is None:
                if (1, key) not in made:
                    made[1, key] = Text(text)
                known = self._validator.match(one, made[1, key])
                self._keep((who, one, key), known)
            yield known

    def _keep(self, key: tuple[str, c.Constraint, bytes], match: c.Match) -> None:
        with self._lock:
            self._matches[key] = match
            while len(self._matches) > MAX_MATCHES:
                self._matches.popitem(last=False)

    def _who(self) -> str:
        return f"{self._validator.name}@{self._validator.version}"


def _best(standing: Standing, who: str) -> Mapping[str, c.Match]:
    return standing.best if standing.best is not None and standing.validator == who else {}
