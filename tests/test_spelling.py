"""How texts of others are spelled where they leave: bounded, printable, on one line; and that two stay two."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_context_ledger import spelling
from otel_context_ledger.canonical import key_of, written

WHOLE = ("kimi-k3", "ft:gpt-4o:org::id", "anthropic/claude:beta", "Amazon Bedrock", "模型-7", "a" * 256)
CUT = {
    "line\nbreak": "line\ufffdbreak",
    "\x1b[31mred": "\ufffd[31mred",
    "right\u202eleft": "right\ufffdleft",
    "lone \ud800": "lone \ufffd",
    "a" * 300: "a" * 256,
}
PATHS = {
    "/home/someone/models/tiny.gguf": "tiny.gguf",
    "~/models/tiny/": "tiny",
    "C:\\Users\\someone\\tiny.gguf": "tiny.gguf",
    "file:///srv/someone/tiny.gguf": "tiny.gguf",
    "\\\\server\\someone\\tiny.gguf": "tiny.gguf",
    "/": "other",
}


@pytest.mark.parametrize("text", WHOLE)
def test_a_name_that_can_be_read_is_kept(text: str) -> None:
    """What is printable and no longer than the bound is spelled as it is."""
    assert (spelling.name(text), spelling.model(text), spelling.session(text, written)) == (text, text, text)


@pytest.mark.parametrize(("text", "spelled"), CUT.items())
def test_a_name_that_acts_is_made_harmless(text: str, spelled: str) -> None:
    """Line breaks, control and direction characters and lone surrogates are replaced, and what is too long is cut."""
    assert spelling.name(text) == spelled


@pytest.mark.parametrize(("text", "spelled"), PATHS.items())
def test_a_model_named_by_its_path(text: str, spelled: str) -> None:
    """Servers of local models call a model by its file; only the last part of an absolute path is told."""
    assert spelling.model(text) == spelled


@pytest.mark.parametrize("text", ["tool_calls", "2.1.0", "in-memory", "budget:1024", "24h", "RateLimitError", "a" * 64])
def test_a_word_is_kept(text: str) -> None:
    """Finish reasons, versions, lifetimes, efforts and class names are words."""
    assert spelling.word(text) == text


@pytest.mark.parametrize("text", ["two words", "a" * 65, "../up", "line\nbreak", "größe", "{}", "/root"])
def test_what_is_no_word_is_other(text: str) -> None:
    """A text in the place of a word is not told, not even in part."""
    assert spelling.word(text) == "other"


def test_an_unknown_word_stays_unknown() -> None:
    """Nothing reported is nothing, never `other`."""
    assert (spelling.word(None), spelling.word(""), spelling.optional(None), spelling.model(None)) == (
        None,
        "",
        None,
        None,
    )


def test_a_list_of_words_is_bounded() -> None:
    """An answer with very many finish reasons fills no entry."""
    assert spelling.words(["stop", "two words"] * 100) == ("stop", "other") * 32


@given(st.text(min_size=1, max_size=600), st.text(min_size=1, max_size=600))
def test_every_text_comes_out_bounded_and_two_sessions_stay_two(one: str, other: str) -> None:
    """Whatever it is, a name is printable and at most 256 characters long, and sessions are not merged by it."""
    names = [spelling.session(text, written) for text in (one, other)]
    assert all(len(name) <= spelling.MAX_NAME and name.isprintable() for name in names)
    assert (names[0] == names[1]) == (one == other)


def test_a_long_key_counts_whole() -> None:
    """Two keys that differ only after 64 bytes make two digests; a key that is no text at all is a key."""
    keys = [key_of(text) for text in ("k" * 70 + "1", "k" * 70 + "2", "k" * 64, "\udcff")]
    assert len({written(b"\0" * 16, key) for key in keys}) == 4
