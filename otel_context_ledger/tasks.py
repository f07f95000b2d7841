"""Which task, attempt and session a call belongs to, when the program says so.

The names travel in the OpenTelemetry context, not in baggage, which would send them to the provider.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from opentelemetry import context as otel

from otel_context_ledger.records import quick

_SESSION = otel.create_key("context_ledger.session")
_TASK = otel.create_key("context_ledger.task")
_ATTEMPT = otel.create_key("context_ledger.attempt")


@quick
@dataclass(frozen=True, slots=True)
class Names:
    """What the program called the session, task and attempt around this call."""

    session: str | None = None
    task: str | None = None
    attempt: str | None = None


def session(name: str) -> AbstractContextManager[None]:
    """Calls inside belong to the session `name`: `with session("s-1"): …`, or as a decorator."""
    return _scope(_SESSION, name)


def task(name: str) -> AbstractContextManager[None]:
    """Calls inside belong to the task `name`."""
    return _scope(_TASK, name)


def attempt(name: str) -> AbstractContextManager[None]:
    """Calls inside belong to the attempt `name` of their task."""
    return _scope(_ATTEMPT, name)


def current() -> Names:
    """The names that hold here."""
    return Names(*(_text(otel.get_value(key)) for key in (_SESSION, _TASK, _ATTEMPT)))


@contextmanager
def _scope(key: str, name: str) -> Iterator[None]:
    token = otel.attach(otel.set_value(key, name))
    try:
        yield
    finally:
        otel.detach(token)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
