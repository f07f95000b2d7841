"""Calls of earlier processes, as their ledger lines tell of them: lineage that survives a restart without any text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from otel_context_ledger.model import Cause, Position
from otel_context_ledger.reuse import locator
from otel_context_ledger.reuse.segments import Outline

# Exported parts in the order of rendering, with the cause that a difference in them names.
_PARTS = (
    ("model_id", "model_changed"),
    ("tool_schema_hash", "tools_changed"),
    ("tool_wire_hash", "tools_reordered"),
    ("policy_hash", "policy_changed"),
    ("policy_wire_hash", "volatile_prefix"),
    ("reasoning_effort", "effort_changed"),
)


@dataclass(frozen=True, slots=True)
class Trace:
    """One earlier call: its session, exported hashes, reported prompt size and the boundaries of its locator."""

    entry_id: str
    session: str
    fields: Mapping[str, object]
    boundaries: Mapping[int, tuple[int, str]]
    tokens: int | None
    closed: float

    @property
    def end(self) -> int:
        """The last boundary: how many messages it had."""
        return max(self.boundaries, default=0)


@dataclass(frozen=True, slots=True)
class Found:
    """A trace that a request continues, the last boundary that they share, and the place of the request's first message
    in what was sent."""

    trace: Trace
    shared: int
    offset: int = 0

    @property
    def whole(self) -> bool:
        """Whether the request extends the whole earlier call."""
        return self.shared == self.trace.end

    def causes(self, now: Mapping[str, object]) -> tuple[Cause, ...]:
        """What differs, told from hashes alone."""
        then = self.trace.fields
        differing = [
            Cause(cause, ("resume",), evidence=(f"{part}_differs",), confidence="inferred")
            for part, cause in _PARTS
            if then.get(part) != now.get(part)
        ]
        if not self.whole:
            where = Position("message", self.shared + self.offset, kind="resume")
            differing.append(Cause("history_rewritten", ("resume",), where, ("locator",), "inferred"))
        return tuple(_without_shadows(differing))


def _without_shadows(found: Sequence[Cause]) -> Iterable[Cause]:
    """A changed text changes its bytes too: the weaker word beside the stronger one says nothing."""
    names = {cause.name for cause in found}
    shadows = {"tools_reordered": "tools_changed", "volatile_prefix": "policy_changed"}
    return (cause for cause in found if shadows.get(cause.name) not in names)


class Traces:
    """The earlier calls by session and by the digest of their last boundaries."""

    def __init__(self, lines: Iterable[Mapping[str, object]] = (), scheme: str = "xxh3") -> None:
        self._by_session: dict[str, Trace] = {}
        self._by_digest: dict[str, Trace] = {}
        for line in lines:
            trace = read(line)
            if trace is not None and trace.fields.get("digest_scheme", scheme) == scheme:
                self._by_session[trace.session] = trace
                self._by_digest |= {
                    digest: trace for at, (_, digest) in trace.boundaries.items() if at >= trace.end - 1
                }

    def __len__(self) -> int:
        return len(self._by_session)

    def find(self, names: Sequence[str], outline: Outline, export: Callable[[bytes], str]) -> Found | None:
        """The earlier call that a request continues: by a session that the program names, else by its prefix."""
        named = next((self._by_session[name] for name in names if name in self._by_session), None)
        if named is not None:
            return Found(named, _shared(named, outline, export), outline.offset)
        for link in reversed(outline.prefix):
            trace = self._by_digest.get(_short(export(link)))
            if trace is not None:
                return Found(trace, _shared(trace, outline, export), outline.offset)
        return None


def _shared(trace: Trace, outline: Outline, export: Callable[[bytes], str]) -> int:
    chain = (outline.root, *outline.prefix)
    same = (
        at for at, (_, digest) in trace.boundaries.items() if at < len(chain) and _short(export(chain[at])) == digest
    )
    return max(same, default=0)


def _short(exported: str) -> str:
    return locator.spell(0, 0, exported).rsplit(":", 1)[1]


def read(line: Mapping[str, object]) -> Trace | None:
    """A trace from a ledger line, or `None` when the line is no finished call of an agent."""
    groups = {name: value for name, value in line.items() if isinstance(value, Mapping)}
    flat: dict[str, object] = {key: item for group in groups.values() for key, item in group.items()}
    session, entry, started, tokens = (flat.get(k) for k in ("session_id", "entry_id", "started_at", "input_tokens"))
    usable = flat.get("request_kind") == "agent" and flat.get("error_type") is None
    if (
        not usable
        or not isinstance(session, str)
        or not isinstance(entry, str)
        or not isinstance(started, (int, float))
    ):
        return None
    located = flat.get("prefix_locator")
    parts = [found for item in (located if isinstance(located, list) else []) if (found := locator.read(str(item)))]
    duration = flat.get("duration")
    closed = started + (duration if isinstance(duration, (int, float)) else 0.0)
    boundaries = {at: (size, digest) for at, size, digest in parts}
    return Trace(entry, session, flat, boundaries, tokens if isinstance(tokens, int) else None, closed)
