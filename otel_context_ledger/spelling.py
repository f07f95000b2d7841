"""How a text that somebody else chose is spelled where it leaves the process: short, printable, on one line.

A program, a provider or a tool server may put anything into an id, a model's name or a finish reason. A *name* keeps
what can be read of it; a *word* of a closed or nearly closed list is such a word or `other`. Which field is which is up
to those who fill it; texts that are content are never spelled at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from otel_context_ledger.canonical import digest

MAX_NAME = 256
MAX_WORDS = 64
OTHER = "other"
_UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:+-]{0,63}", re.ASCII)
# The beginnings of a path of a machine: servers of local models call a model by the file that it is in.
_PATH = re.compile(r"[/~\\]|[A-Za-z]:[/\\]|file:")
_DIGITS = 16


def name(text: str, most: int = MAX_NAME) -> str:
    """At most `most` characters of a text, those that are no visible part of one line replaced."""
    if len(text) <= most and text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else _UNPRINTABLE for sign in text[:most])


def model(text: str | None) -> str | None:
    """A model's name; of a path on the machine only the last part, for the rest may name a user."""
    if not text:
        return None
    if _PATH.match(text):
        text = re.split(r"[/\\]", text.rstrip("/\\"))[-1] or OTHER
    return name(text)


def session(text: str, export: Callable[[bytes], str]) -> str:
    """A session's name; one that had to be changed ends in a digest, so that two sessions stay two."""
    spelled = name(text)
    if spelled == text:
        return text
    told = export(digest(text.encode("utf-8", "surrogatepass"))).split(":")[1]
    return f"{spelled[: MAX_NAME - _DIGITS - 1]}~{told[:_DIGITS]}"


def word(text: str | None) -> str | None:
    """A word such as `tool_calls`, `2.1.0` or `in-memory`; whatever is none is `other`."""
    return text if not text or _WORD.fullmatch(text) else OTHER


def words(texts: Iterable[str]) -> tuple[str, ...]:
    """The first words of a list."""
    return tuple(word(text) or OTHER for text, _ in zip(texts, range(MAX_WORDS), strict=False))


def optional(text: str | None) -> str | None:
    """A name that may not be there."""
    return name(text) if text else None
