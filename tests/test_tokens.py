"""Token counts where nobody reported any: a vocabulary is used only if it lies here already, whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_context_ledger import tokens


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("abc", 0), ("abcd", 1), ("a" * 4000, 1000), ("日本語で書く", 4), ("half \ud83d", 1)]
)
def test_without_a_vocabulary_bytes_are_counted(text: str, count: int) -> None:
    """Four bytes of UTF-8 are one token, and the source says that it was bytes that were counted."""
    assert tokens.count(text) == tokens.Count(count, "bytes")


def test_no_vocabulary_in_the_directory(tmp_path: Path) -> None:
    """Nothing is fetched into an empty directory."""
    assert tokens.count("abcdefgh", tmp_path) == tokens.Count(2, "bytes")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", tokens.VOCABULARIES)
def test_damaged_vocabulary(name: str, tmp_path: Path) -> None:
    """A file that is not what tiktoken expects is left alone: tiktoken would delete it and download another."""
    file = tokens.file_of(name, tmp_path)
    file.write_bytes(b"IQ== 0\n")
    assert tokens.vocabulary(tmp_path) is None
    assert tokens.count("abcdefgh", tmp_path) == tokens.Count(2, "bytes")
    assert file.read_bytes() == b"IQ== 0\n"
