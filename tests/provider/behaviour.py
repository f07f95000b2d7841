"""Owns how a request is treated: answered, refused, cut off, or answered in a broken way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.provider.record import Received
from tests.provider.script import Answer

Report = Literal["full", "uncached", "absent", "null", "malformed"]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The treatment of one request; the default is a good answer.

    status        HTTP status; from 400 on, an error body of the dialect
    says          the message of that error
    drop_after    close the connection after this many events (of a plain answer: half way through the body)
    report        what the answer says about usage; `uncached` leaves the cache fields out
    null_choices  the content list of the answer is null
    malformed     the body, or the last event, is no JSON
    pause         seconds before every event
    answer        says this instead of the script's answer
    served        the model that the answer names; None names the requested one
    extra         more top-level fields of the answer, e.g. a provider's own cache diagnostics
    headers       more response headers
    """

    status: int = 200
    says: str | None = None
    drop_after: int | None = None
    report: Report = "full"
    null_choices: bool = False
    malformed: bool = False
    pause: float = 0.0
    answer: Answer | None = None
    served: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


GOOD = Behaviour()

BY_MODEL_PREFIX: dict[str, Behaviour] = {
    "err-500": Behaviour(status=500),
    "err-429": Behaviour(status=429),
    "err-400": Behaviour(status=400),
    "err-drop": Behaviour(drop_after=2),
    "no-usage": Behaviour(report="absent"),
    "null-usage": Behaviour(report="null"),
    "bad-usage": Behaviour(report="malformed"),
    "no-cache-report": Behaviour(report="uncached"),
    "null-choices": Behaviour(null_choices=True),
    "malformed": Behaviour(malformed=True),
    "slow": Behaviour(pause=0.05),
    "stuck": Behaviour(pause=0.5),
}

Plan = Callable[[Received], Behaviour | None]


def in_order(behaviours: Iterable[Behaviour | None]) -> Plan:
    """One behaviour per request in order of arrival; None, and the end of the list, mean no plan for it."""
    remaining = iter(behaviours)
    lock = threading.Lock()

    def plan(received: Received) -> Behaviour | None:
        with lock:
            return next(remaining, None)

    return plan


def choose(plan: Plan | None, received: Received) -> Behaviour:
    """The plan decides; where it does not, the prefix of the model's name does."""
    planned = plan(received) if plan else None
    if planned is not None:
        return planned
    named = (treatment for prefix, treatment in BY_MODEL_PREFIX.items() if received.model.startswith(prefix))
    return next(named, GOOD)
