"""Quick records behave as the dataclasses that they are."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, field, replace
from inspect import signature

import pytest

from otel_context_ledger.records import changed, quick


@dataclass(frozen=True, slots=True)
class Plain:
    self: int
    names: tuple[str, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)


@quick
@dataclass(frozen=True, slots=True)
class Quick:
    self: int
    names: tuple[str, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)


def test_a_quick_record_is_made_like_a_plain_one() -> None:
    """By position or name, with defaults and with a fresh value from each factory."""
    assert [str(signature(kind)).count("=") for kind in (Plain, Quick)] == [2, 2]
    made = [(r.self, r.names, r.counts) for r in (Quick(1), Quick(self=1, names=("a",)), Quick(1, ("a",), {"a": 1}))]
    assert made == [(1, (), {}), (1, ("a",), {}), (1, ("a",), {"a": 1})]
    assert Quick(1).counts is not Quick(1).counts


def test_a_quick_record_is_frozen() -> None:
    """Nobody changes one; a changed copy is another record, and equals what `replace` gives."""
    record = Quick(1, ("a",))
    with pytest.raises(FrozenInstanceError):
        record.names = ()  # type: ignore[misc]
    assert changed(record, names=("b",)) == replace(record, names=("b",)) == Quick(1, ("b",))
    assert (record, hash(Quick(1, counts=())) == hash(Quick(1, counts=()))) == (Quick(1, ("a",)), True)  # type: ignore[arg-type]
