"""What a sentence says, beside its words: whether it negates, takes something back, or narrows it.

Told by lists of words in `words.toml`, which is all that this module knows of any language. What stands for the same in
two spellings is `normal`. What follows for a constraint is left to `constraints`.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MARKUP = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "`": "", "*": "", "_": " ", "–": "-", "—": "-"})
_WORDS = tomllib.loads(resources.files(__package__).joinpath("words.toml").read_text("utf-8"))
LIGHT = frozenset(_WORDS["light"])
NEGATIONS = frozenset(_WORDS["negations"])
FILLERS = frozenset(_WORDS["fillers"])
# Scripts that set no spaces between words.
_UNSPACED = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]"
_ANY_UNSPACED = re.compile(_UNSPACED)


def _any_of(words: Iterable[str]) -> str:
    """A pattern for any of some words or phrases, the longest first; whole words where the script sets spaces."""
    longest = sorted(words, key=len, reverse=True)
    spaced = "|".join(re.escape(word) for word in longest if not _ANY_UNSPACED.match(word))
    other = "|".join(re.escape(word) for word in longest if _ANY_UNSPACED.match(word))
    return rf"(?<![\w-])(?:{spaced})(?![\w-])" + (f"|(?:{other})" if other else "")


_TURNS = re.compile(rf"(?:{_any_of(_WORDS['neutral'])})|(?P<turn>{_any_of(NEGATIONS)})")
_REVOKING = re.compile(_any_of(_WORDS["revoking"]))
_NARROWING = re.compile(rf"[\s,(\"']*(?:{_any_of(_WORDS['narrowing'])})")
_CLAUSE = re.compile(rf",\s|[，、]|\s-\s|\s(?={_any_of(_WORDS['joining'])})")


def normal(text: str) -> str:
    """A text without markup, case and differences of spacing and of composed letters; what two spellings of the same
    words have in common."""
    plain = text if text.isascii() else unicodedata.normalize("NFC", text)
    return " ".join(plain.translate(_MARKUP).casefold().split())


def vocabulary(table: str) -> Mapping[str, Sequence[str]]:
    """A table of `words.toml`: lists of words by what they say."""
    return {name: tuple(words) for name, words in _WORDS[table].items()}


def negative(told: str) -> bool:
    """An odd number of negating words in a text of normal form; in `no more than` and the like there is none."""
    return sum(found["turn"] is not None for found in _TURNS.finditer(told)) % 2 == 1


def revoked(told: str) -> bool:
    """Whether a text says that something is not in force."""
    return _REVOKING.search(told) is not None


def narrowed(rest: str) -> bool:
    """Whether what comes after a statement begins with a word that takes a part of it back."""
    return _NARROWING.match(rest) is not None


def clause(lead: str) -> str:
    """The last clause of what stands before a statement: a negation before it may belong to something else."""
    return _CLAUSE.split(lead)[-1]


def unspaced(letter: str) -> bool:
    """Whether a character is of a script that sets no spaces between words."""
    return _ANY_UNSPACED.match(letter) is not None
