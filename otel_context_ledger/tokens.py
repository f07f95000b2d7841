"""Token counts when nobody reported any: tiktoken if its vocabulary lies on this machine already, else bytes.

Nothing is ever downloaded. tiktoken would: a vocabulary whose file is missing, and one whose file is damaged, which it
deletes first. So the file is looked at before tiktoken is asked for it. Never called on the hot path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha1, sha256
from pathlib import Path

BYTES_PER_TOKEN = 4
# tiktoken names its cache files by the SHA-1 of the vocabulary's address (tiktoken.load.read_file_cached).
_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
# The SHA-256 that tiktoken expects of each file (tiktoken_ext.openai_public of tiktoken 0.14).
VOCABULARIES: Mapping[str, str] = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}


@dataclass(frozen=True, slots=True)
class Count:
    """A token count and how it was made: `tiktoken:<vocabulary>` or `bytes`."""

    tokens: int
    source: str


def file_of(name: str, directory: Path) -> Path:
    """Where tiktoken keeps a vocabulary below its cache directory."""
    return directory / sha1(_ADDRESS.format(name).encode(), usedforsecurity=False).hexdigest()


def vocabulary(directory: Path | None) -> str | None:
    """The first known vocabulary whose file lies whole in `directory`, which must be the one that tiktoken uses."""
    if directory is None:
        return None
    return next((name for name in VOCABULARIES if _whole(name, file_of(name, directory))), None)


def _whole(name: str, file: Path) -> bool:
    try:
        return sha256(file.read_bytes()).hexdigest() == VOCABULARIES[name]
    except OSError:
        return False


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
