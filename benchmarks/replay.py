"""What takes the place of a provider and of a backend in a measurement: a stream of recorded events, and an exporter
that keeps nothing. Imports the OpenAI SDK alone: it also runs in the environments of other instrumentations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from openai import Stream

_T = TypeVar("_T")


class Replay(Stream[_T]):  # type: ignore[misc]
    """A stream of events that cost nothing to make."""

    events: tuple[Any, ...] = ()

    def __init__(self) -> None:
        self._iterator = self.__stream__()

    def __stream__(self) -> Iterator[Any]:
        yield from self.events

    def close(self) -> None:
        return


class Nowhere:
    """An exporter that keeps nothing, of spans as of log records."""

    def export(self, batch: Any) -> None:
        return

    def shutdown(self) -> None:
        return

    def force_flush(self, timeout_millis: int = 0) -> bool:
        return True
