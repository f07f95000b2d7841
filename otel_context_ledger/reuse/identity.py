"""Which version of each part a request is made of, and the two digests over them.

`context_identity` covers what the model was told and about which world; `cache_identity` leaves out what cannot change
the provider's prefix (the repository) and adds what can (the bytes as sent, cache key, tier, text format).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from otel_context_ledger.canonical import digest, digest_of
from otel_context_ledger.model import Request
from otel_context_ledger.records import quick
from otel_context_ledger.reuse.segments import Memo, Outline, Segment, inner_tools, texts
from otel_context_ledger.reuse.volatility import mask

CONTEXT_PARTS = ("provider_surface", "model", "effort", "policy", "repository", "tools", "summary")
CACHE_PARTS = (
    "provider_surface", "model", "effort", "policy_wire", "tools_wire", "summary", "cache_key", "service_tier",
    "text_format", "settings",
)  # fmt: skip
PARTS = tuple(dict.fromkeys((*CONTEXT_PARTS, *CACHE_PARTS)))
_FORMATS = ("response_format", "text", "verbosity")
_UNSETTLED = frozenset({None, "pending"})


@quick
@dataclass(frozen=True, slots=True)
class Identity:
    """The version of each part (`parts`, by the names of `PARTS`) and the two digests over them."""

    parts: Mapping[str, object]
    context: bytes
    cache: bytes

    def carrying(self, summary: object) -> Identity:
        """The same on another summary."""
        if self.parts["summary"] == summary:
            return self
        parts = {**self.parts, "summary": summary}
        return Identity(parts, *_digested(parts))

    def changed(self, earlier: Identity) -> tuple[str, ...]:
        """The parts that differ from an earlier call's; a repository not looked at yet is no change."""
        if self.context == earlier.context and self.cache == earlier.cache:
            return ()
        pairs = ((name, earlier.parts[name], self.parts[name]) for name in PARTS)
        return tuple(name for name, old, new in pairs if old != new and not (name == "repository" and _open(old, new)))


def _open(*snapshots: object) -> bool:
    return not _UNSETTLED.isdisjoint(snapshots)


class Policies:
    """Masked digests of system parts by their digest as sent: masking long texts is done once, not per call."""

    def __init__(self, entries: int = 256) -> None:
        self._entries = entries
        self._known: dict[bytes, bytes] = {}

    def masked(self, wire: bytes, system: tuple[Segment, ...]) -> bytes:
        """The digest of the system texts with volatile spans masked."""
        if wire not in self._known:
            if len(self._known) >= self._entries:
                self._known.pop(next(iter(self._known)))
            told = "\n".join(mask(texts(segment.value)) for segment in system)
            self._known[wire] = digest(told.encode("utf-8", "replace"))
        return self._known[wire]


def identify(
    request: Request, outline: Outline, surface: str, repository: str | None, policies: Policies, memo: Memo
) -> Identity:
    """The identity of a request, as far as it shows by itself: which summary it builds on is its session's to say."""
    tools, system = outline.of("tool"), outline.of("system")
    every = (*tools, *memo.segments("tool", inner_tools(outline))) if outline.carriers else tools
    wire = digest(b"".join(segment.wire for segment in system))
    parts: dict[str, object] = {
        "provider_surface": surface,
        "model": request.model,
        "effort": request.effort,
        "policy": policies.masked(wire, system) if system else None,
        "policy_wire": wire if system else None,
        "repository": repository,
        "tools": digest(b"".join(sorted(segment.digest for segment in every))) if every else None,
        "tools_wire": digest(b"".join(segment.wire for segment in every)) if every else None,
        "summary": None,
        "cache_key": request.cache_key,
        "service_tier": request.settings.get("service_tier"),
        "text_format": settings(request, only=_FORMATS),
        "settings": settings(request, without=(*_FORMATS, "service_tier")),
    }
    return Identity(parts, *_digested(parts))


def _digested(parts: Mapping[str, object]) -> tuple[bytes, bytes]:
    tier = parts["service_tier"]
    digests = _digests if tier is None or type(tier) is str else _digests.__wrapped__
    return digests(tuple(map(parts.__getitem__, PARTS)))


def settings(request: Request, only: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> bytes | None:
    """The digest of the chosen settings that were set, or `None` when none was."""
    if not request.settings:
        return None
    chosen = {k: v for k, v in request.settings.items() if (k in only if only else k not in without)}
    return digest_of(chosen) if chosen else None


@lru_cache(maxsize=256)
def _digests(values: tuple[object, ...]) -> tuple[bytes, bytes]:
    """The digests over the context's and the cache's parts, of which most calls have the same as the call before. Only
    the service tier may be no text: then it must not be looked up, because Python holds `1` and `True` to be equal."""
    parts = dict(zip(PARTS, values, strict=True))
    return _over(parts, CONTEXT_PARTS), _over(parts, CACHE_PARTS)


def _over(parts: Mapping[str, object], names: tuple[str, ...]) -> bytes:
    plain = [value.hex() if isinstance(value, bytes) else value for value in (parts[name] for name in names)]
    return digest_of(*plain)
