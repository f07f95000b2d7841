"""What a name is: the text by which a program calls its task, attempt or session, within bounds and harmless to show.

Who carries names, and what they are written on, is left to others.
"""

from __future__ import annotations

from typing import TypeGuard, TypeVar
from uuid import UUID

from otel_context_ledger import config
from otel_context_ledger.canonical import digest, key_of, written
from otel_context_ledger.spelling import MAX_NAME, name

# Hexadecimal digits of the digest that stands for the end of a longer name.
DIGITS = 16
_CUT = "…"
Kind = TypeVar("Kind")


def real(value: object, kind: type[Kind]) -> TypeGuard[Kind]:
    """Whether a value is of a kind by its own type. A proxy only says so when it is asked for its class, if it does not
    raise there (werkzeug's outside of a request), and has nothing of the kind inside."""
    return issubclass(type(value), kind)


def named(value: object) -> str:
    """The name that a value stands for, `""` for none; never raises.

    Texts, whole numbers and UUIDs are names; nothing else is asked for its text, which may hold anything. What cannot
    be printed is replaced. Of more than 256 characters the first remain, with a digest of all: two long names that
    begin alike stay two, and one name is the same in every process that has the same digest key.
    """
    if real(value, str):
        text = str.__str__(value)
    elif real(value, UUID) or (real(value, int) and not real(value, bool)):
        text = _number(value)
    else:
        return ""
    text = text.strip()
    text = name(text, len(text))
    if len(text) <= MAX_NAME:
        return text
    return f"{text[: MAX_NAME - DIGITS - len(_CUT)]}{_CUT}{_told(text)}"


def _told(text: str) -> str:
    """The digest of a whole name, keyed like every other that leaves."""
    key = config.digest_key()
    return written(digest(text.encode()), key_of(key) if key else None).split(":")[1][:DIGITS]


def _number(value: UUID | int) -> str:
    """The text of an object with a fixed form. An int beyond 4,300 digits has none, and is no name."""
    try:
        return UUID.__str__(value) if real(value, UUID) else int.__repr__(value)
    except (ValueError, AttributeError):
        return ""
