"""Token counts when nobody reported any: tiktoken if its vocabulary lies on this machine already, else bytes.

Nothing is ever downloaded: `tiktoken.get_encoding` would, so its file is looked for first. Never called on the hot path.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path

BYTES_PER_TOKEN = 4
# tiktoken names its cache files by the SHA-1 of the vocabulary's address (tiktoken.load.read_file_cached).
_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
VOCABULARIES = ("o200k_base", "cl100k_base")


@dataclass(frozen=True, slots=True)
class Count:
    """A token count and how it was made: `tiktoken:<vocabulary>` or `bytes`."""

    tokens: int
    source: str


def vocabulary(directory: Path | None) -> str | None:
    """The first known vocabulary whose file lies in tiktoken's cache directory."""
    if directory is None:
        return None
    files = {
        name: directory / sha1(_ADDRESS.format(name).encode(), usedforsecurity=False).hexdigest()
        for name in VOCABULARIES
    }
    return next((name for name, file in files.items() if file.is_file()), None)


def count(text: str, directory: Path | None = None) -> Count:
    """The tokens of a text; with no local vocabulary four bytes are one token."""
    found = vocabulary(directory)
    if found is None:
        return of_bytes(len(text.encode("utf-8", "replace")))
    import tiktoken

    return Count(len(tiktoken.get_encoding(found).encode_ordinary(text)), f"tiktoken:{found}")


def of_bytes(size: int) -> Count:
    """The tokens of so many bytes, estimated."""
    return Count(size // BYTES_PER_TOKEN, "bytes")
