"""What differs between a request and its comparable call, in the order of rendering: tools, system part, messages.

Each function returns a `Cause` or `None`; who is to blame for lost tokens is decided in `attribution`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import orjson

from otel_context_ledger.canonical import canonical, wire
from otel_context_ledger.model import Cause, Position
from otel_context_ledger.reuse import volatility
from otel_context_ledger.reuse.lineage import Head, Link, named_role
from otel_context_ledger.reuse.segments import Outline, Segment, named, texts, unmarked

MAX_NAMES = 8
# Sections of a system text that are known by their tag or heading; other headings are content and never named.
_SECTIONS = (
    ("mcp_instructions", re.compile(r"mcp[ _-]?(?:server[ _-]?)?instructions", re.I)),
    ("memory", re.compile(r"\bmemor(?:y|ies)\b", re.I)),
    ("rules", re.compile(r"\b(?:rules|agents\.md|claude\.md|kimi\.md)\b", re.I)),
    ("environment", re.compile(r"\b(?:environment|env)\b", re.I)),
)
_HEADING = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+[^\n]*|<[A-Za-z_][\w -]*>)", re.M)
_REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "redacted_thinking")


def tools(old: Sequence[Segment], new: Sequence[Segment]) -> Cause | None:
    """How the tool list changed: another set, another order, another text or schema, other bytes."""
    if [tool.wire for tool in old] == [tool.wire for tool in new]:
        return None
    before, after = {tool.name: tool for tool in old}, {tool.name: tool for tool in new}
    added, removed = [n for n in after if n not in before], [n for n in before if n not in after]
    if added or removed:
        return _tool_set(old, new, added, removed)
    changed = next((n for n in after if before[n].digest != after[n].digest), None)
    if changed is not None:
        return _tool_text(before[changed], after[changed])
    at = next(n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a.wire != b.wire)
    if [tool.name for tool in old] != [tool.name for tool in new]:
        return _tool_order(old, new, at)
    offset = _first_difference(wire(old[at].value), wire(new[at].value))
    where = Position("tool", at, new[at].name, offset, "serialization")
    return Cause("tools_serialization_changed", position=where, evidence=("local_diff",))


def _tool_order(old: Sequence[Segment], new: Sequence[Segment], at: int) -> Cause:
    places = {tool.name: tool.index for tool in old}
    moved = [f"moved={tool.name}:{places[tool.name]}>{tool.index}" for tool in new if places[tool.name] != tool.index]
    group = _moved_group(old, new)
    evidence = ("local_diff", *([f"moved_group={group}"] if group else []), *moved[:MAX_NAMES])
    where = Position("tool", new[at].index, new[at].name, kind="reordered")
    return Cause("tools_reordered", position=where, evidence=evidence)


def _moved_group(old: Sequence[Segment], new: Sequence[Segment]) -> str | None:
    """The tool server whose tools moved to the end together: what a reconnect does (case CM08)."""
    server = _server(new[-1].name)
    if server is None or server == _server(old[-1].name):
        return None
    own = [tool.name for tool in new if _server(tool.name) == server]
    return server if own == [tool.name for tool in new[-len(own) :]] else None


def _tool_set(old: Sequence[Segment], new: Sequence[Segment], added: list[str], removed: list[str]) -> Cause:
    detail = (*(["added"] if added else []), *(["removed"] if removed else []))
    size = min(len(old), len(new))
    at = next((n for n in range(size) if old[n].digest != new[n].digest), size)
    name = new[at].name if at < len(new) else old[at].name
    servers = sorted({server for tool in (*added, *removed) if (server := _server(tool))})
    named = [
        f"{word}={','.join(names[:MAX_NAMES])}" for word, names in (("added", added), ("removed", removed)) if names
    ]
    evidence = ("local_diff", *named, *(f"server={server}" for server in servers[:MAX_NAMES]))
    return Cause("tools_changed", detail, Position("tool", at, name, kind=detail[0]), evidence)


def _server(tool: str) -> str | None:
    """The tool server in a name such as `mcp__late__search` or `late.search`."""
    parts = tool.split("__")
    if len(parts) >= 3 and parts[0] == "mcp":
        return parts[1]
    return tool.split(".", 1)[0] if "." in tool else None


def _tool_text(old: Segment, new: Segment) -> Cause:
    before, after = _definition(old.value), _definition(new.value)
    words = str(before.get("description") or ""), str(after.get("description") or "")
    others = [{k: v for k, v in d.items() if k != "description"} for d in (before, after)]
    described = canonical(others[0]) == canonical(others[1])
    offset = volatility.common(*words) if described else _first_byte(old.value, new.value)
    volatile = volatility.compare(*words) if described else None
    if volatile:
        return _volatile(volatile, Position("tool", new.index, new.name, volatile.offset, volatile.kind))
    kind = "description" if described else "schema"
    return Cause("tools_changed", (kind,), Position("tool", new.index, new.name, offset, kind), ("local_diff",))


def _definition(tool: object) -> Mapping[str, object]:
    body = tool if isinstance(tool, Mapping) else {}
    function = body.get("function")
    return function if isinstance(function, Mapping) else body


def system(old: Sequence[Segment], new: Sequence[Segment]) -> tuple[Cause, ...]:
    """How the system part changed: in volatile spans, in what it says, in both; each at its first place. A client's
    version in it comes last, for what it brought along says more."""
    pairs = list(zip(old, new, strict=False))
    found = [_system_text(a, b) for a, b in pairs if a.digest != b.digest]
    if len(old) != len(new):
        kind, block = ("added", new[len(old)]) if len(new) > len(old) else ("removed", old[len(new)])
        where = Position("system", len(pairs), section(texts(block.value), 0), kind=kind)
        found.append(Cause("policy_changed", (kind,), where, ("local_diff",)))
    named: dict[str, Cause] = {}
    for cause in found:
        named.setdefault(cause.name, cause)
    return tuple(sorted(named.values(), key=lambda cause: cause.name == "client_version_changed"))


def _system_text(old: Segment, new: Segment) -> Cause:
    before, after = texts(old.value), texts(new.value)
    volatile = volatility.compare(before, after)
    offset = volatile.offset if volatile else volatility.common(before, after)
    kind = volatile.kind if volatile else "text"
    where = Position("system", new.index, section(after, offset), offset, kind)
    if volatile is None:
        return Cause("policy_changed", (), where, ("local_diff",))
    if kind == "client_version":
        return Cause("client_version_changed", position=where, evidence=("local_diff",))
    return _volatile(volatile, where)


def _volatile(found: volatility.Volatile, where: Position) -> Cause:
    """A date moves once a day, which costs one miss per session and day (case CM04)."""
    also = tuple(kind for kind in found.also if kind != "client_version")
    detail = (found.kind, *([found.grain] if found.grain else []), *also)
    daily = ("severity=low", "expected_per_day=1") if detail == ("date", "day") else ()
    return Cause("volatile_prefix", detail, where, ("local_diff", *daily))


def section(text: str, offset: int) -> str | None:
    """The known section of a system text that a character stands in, by the last tag or heading before it."""
    last = next((m.group() for m in reversed(list(_HEADING.finditer(text, 0, offset + 1)))), "")
    return next((name for name, pattern in _SECTIONS if pattern.search(last)), None)


def history(link: Link, head: Head, new: Outline, summaries: tuple[str, ...]) -> Cause | None:
    """How the messages changed before the comparable call's end. Appending changes nothing, and neither does taking
    back the end of the history: what was taken back is not asked for again."""
    if link.relation not in ("rewrites", "rewinds", "departs"):
        return None
    old = head.outline
    at, end_old = link.shared, len(old.messages) - link.tail
    end_new = link.tail_at if link.tail else min(len(new.messages), max(end_old, at + 1))
    before, after = old.messages[at:end_old], new.messages[at:end_new]
    index = at + new.offset
    if _compacted(before, after, summaries, link.relation):
        where = Position("message", index, named(after[0]) if after else None, kind="compacted")
        return Cause("history_compacted", (), where, ("local_diff", f"removed={len(before)}"))
    if link.relation == "rewinds":
        return None
    kind, offset = _rewrite(before, after)
    name = named(after[0]) if after else None
    return Cause("history_rewritten", (kind,), Position("message", index, name, offset, kind), ("local_diff",))


def pruned_beside(link: Link, head: Head, new: Outline) -> Cause | None:
    """A message pruned in place in the same pass that compacted the history before it."""
    old = head.outline
    if not link.tail:
        return None
    at_old, at_new = len(old.messages) - link.tail - 1, link.tail_at - 1
    if at_old < link.shared or at_new <= link.shared:
        return None
    a, b = old.messages[at_old], new.messages[at_new]
    if named_role(a) != named_role(b) or new.sizes[at_new] >= old.sizes[at_old]:
        return None
    where = Position("message", at_new + new.offset, named(b), kind="pruned")
    return Cause("history_rewritten", ("pruned",), where, ("local_diff",))


def _compacted(before: Sequence[object], after: Sequence[object], summaries: tuple[str, ...], relation: str) -> bool:
    """Whether a run of messages gave way to a summary: a known opening, or at least three for one much shorter one."""
    opened = any(texts(message).lstrip().startswith(summaries) for message in after[:4]) if summaries else False
    if opened and len(after) <= len(before):
        return True
    sizes = sum(len(canonical(m)) for m in after), sum(len(canonical(m)) for m in before)
    return (
        relation == "rewrites"
        and len(before) >= 3
        and 1 <= len(after) <= max(1, len(before) // 3)
        and 2 * sizes[0] < sizes[1]
    )


def _rewrite(before: Sequence[object], after: Sequence[object]) -> tuple[str, int | None]:
    """What kind of rewrite it was, and the first differing character of the first message's text."""
    if not before or not after:
        thoughts = bool(before) and all(named_role(m) == "reasoning" for m in before)
        return ("reasoning_dropped" if thoughts else "pruned" if before else "edited"), None
    first = texts(before[0]), texts(after[0])
    offset = volatility.common(*first) if first[0] != first[1] else None
    if len(before) != len(after):
        return ("pruned" if len(after) < len(before) else "edited"), offset
    kinds = [_changed(a, b) for a, b in zip(before, after, strict=True)]
    if sorted(map(canonical, before)) == sorted(map(canonical, after)):
        answers = all(named_role(m) in ("tool", "function_call_output") for m in before)
        return ("tool_results_reordered" if answers else "reordered"), offset
    return next(kind for kind in kinds if kind), offset


def _changed(old: object, new: object) -> str | None:
    if canonical(unmarked(old)) == canonical(unmarked(new)):
        return None
    a, b = _without_reasoning(old), _without_reasoning(new)
    if canonical(a) == canonical(b):
        return "reasoning_dropped" if len(canonical(new)) < len(canonical(old)) else "edited"
    if canonical(_parsed(old)) == canonical(_parsed(new)):
        return "serialization"
    return "pruned" if _shrank(old, new) else "edited"


def _shrank(old: object, new: object) -> bool:
    """Whether a tool's answer got shorter, or what a user said lost at least half of its text."""
    if named_role(old) in ("tool", "function_call_output"):
        return len(canonical(new)) < len(canonical(old))
    return named_role(old) == "user" and 2 * len(texts(new)) <= len(texts(old))


def _without_reasoning(message: object) -> object:
    if not isinstance(message, Mapping):
        return message
    content = message.get("content")
    kept = {k: v for k, v in message.items() if k not in _REASONING}
    if isinstance(content, (list, tuple)):
        kept["content"] = [p for p in content if not (isinstance(p, Mapping) and p.get("type") in _REASONING)]
    return kept


def _parsed(value: object) -> object:
    """A message with every string that holds a JSON object replaced by that object."""
    if isinstance(value, Mapping):
        return {key: _parsed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_parsed(item) for item in value]
    if isinstance(value, str) and value[:1] in "{[" and value[:1]:
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def settings(old: Mapping[str, object], new: Mapping[str, object]) -> tuple[str, ...]:
    """The names of the settings that differ."""
    return tuple(name for name in dict.fromkeys((*old, *new)) if canonical(old.get(name)) != canonical(new.get(name)))


def _first_byte(old: object, new: object) -> int:
    return _first_difference(canonical(old), canonical(new))


def _first_difference(a: bytes, b: bytes) -> int:
    """The number of leading bytes that are the same, found by halving: most of a long message is often the same."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low


def intact_bytes(link: Link, head: Head, new: Outline) -> int:
    """How many bytes of whole segments the request shares with the comparable call's rendering from its start."""
    old, size = head.outline, 0
    for a, b in zip(old.header, new.header, strict=False):
        if a.digest != b.digest:
            return size
        size += a.size
    return old.size(link.shared) if len(old.header) == len(new.header) else size


def shared_bytes(link: Link, head: Head, new: Outline) -> int:
    """How many bytes of the comparable call's rendering the request shares from its start."""
    old, size = head.outline, 0
    for a, b in zip(old.header, new.header, strict=False):
        if a.digest != b.digest:
            return size + _first_byte(a.value, b.value)
        size += a.size
    if len(old.header) != len(new.header):
        return size
    edge = old.size(link.shared)
    if link.relation in ("extends", "repeats", "continues") or link.shared >= min(len(old.messages), len(new.messages)):
        return edge
    return edge + _first_byte(old.messages[link.shared], new.messages[link.shared])


def called(message: object) -> Iterator[str]:
    """The names of the tools that a message calls, in the spelling of any dialect."""
    body = message if isinstance(message, Mapping) else {}
    parts = (body.get("tool_calls"), body.get("content"), [body])
    for call in (item for part in parts if isinstance(part, (list, tuple)) for item in part):
        name = _definition(call).get("name")
        if isinstance(name, str):
            yield name
