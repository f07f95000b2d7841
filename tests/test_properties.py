"""What holds for every input: of canonical forms, usage, streams, outlines and the lineage's bounds."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_context_ledger import canonical, surfaces
from otel_context_ledger import model as m
from otel_context_ledger.cost import components
from otel_context_ledger.ledger import Ledger, Limits
from otel_context_ledger.reuse import lineage, locator, volatility
from otel_context_ledger.reuse.identity import Policies, identify
from otel_context_ledger.reuse.segments import Memo, Outline, cut, unmarked
from otel_context_ledger.surfaces import anthropic_messages, compatible, facts, kimi, openai_chat, openai_responses
from otel_context_ledger.surfaces.usage import Table, read

often = settings(deadline=None, max_examples=60, database=None)
LORE = facts.load()
texts = st.text(st.characters(codec="utf-8"), max_size=12)
numbers = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))
leaves = st.one_of(st.none(), st.booleans(), numbers, texts)
json_values = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=16,
)
# Values that a program may put into a body although JSON has no form for them.
strange = st.one_of(
    st.binary(max_size=4), st.just(math.nan), st.just(math.inf), st.just("\ud800"), st.integers(2**64, 2**80),
    st.builds(object), st.frozensets(st.integers(), max_size=2), st.just(10**1300), st.dates(),
)  # fmt: skip
anything = st.recursive(
    st.one_of(leaves, strange),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner),
        st.dictionaries(st.one_of(texts, st.integers(), st.just("\udfff"), st.none()), inner, max_size=3),
    ),
    max_leaves=8,
)


def shuffled(value: Any) -> Any:
    """The value with every object's members in reverse order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


def plain(value: Any) -> str:
    """What a value says, written by the standard library alone."""

    def number(item: Any) -> Any:
        if isinstance(item, float) and item.is_integer() and abs(item) <= 2**53:
            return int(item)
        if isinstance(item, dict):
            return {key: number(inner) for key, inner in item.items()}
        return [number(inner) for inner in item] if isinstance(item, list) else item

    return json.dumps(number(value), sort_keys=True)


class TestCanonical:
    @often
    @given(json_values)
    def test_key_order_is_ignored(self, value: Any) -> None:
        """The order of members is no part of a value."""
        assert canonical.digest_of(shuffled(value)) == canonical.digest_of(value)

    @often
    @given(json_values, json_values)
    def test_nothing_else_is_ignored(self, one: Any, other: Any) -> None:
        """Two values have one digest if and only if they say the same: `1` is not `true`, but it is `1.0`."""
        assert (canonical.digest_of(one) == canonical.digest_of(other)) == (plain(one) == plain(other))

    @often
    @given(st.lists(json_values, min_size=2, max_size=4), st.data())
    def test_list_order_counts(self, items: list[Any], data: st.DataObject) -> None:
        """The order of a list is a part of it."""
        moved = data.draw(st.permutations(items))
        assert (canonical.canonical(moved) == canonical.canonical(items)) == (plain(moved) == plain(items))

    @often
    @given(json_values)
    def test_the_form_is_json_and_its_own_form(self, value: Any) -> None:
        """The canonical form reads back as a value that has the same form."""
        raw = canonical.canonical(value)
        assert canonical.canonical(orjson.loads(raw)) == raw
        assert canonical.flaw(value) is None

    @often
    @given(anything)
    def test_never_raises(self, value: Any) -> None:
        """Whatever stands in a body has a canonical form, a form as sent, and a verdict on it."""
        assert json.loads(canonical.canonical(value)) == json.loads(canonical.canonical(copy.copy(value)))
        assert isinstance(canonical.wire(value), bytes)
        assert canonical.flaw(value) is None or canonical.flaw(value)
        assert isinstance(canonical.canonical(canonical.schema_form(value)), bytes)

    @pytest.mark.parametrize("kind", ["list", "dict", "wide"])
    def test_cycles_end(self, kind: str) -> None:
        """A value that contains itself, even many times over, is cut where it does."""
        loop: Any = [] if kind == "list" else {}
        links = {"list": [loop], "dict": {"a": loop}, "wide": {"a": loop, "b": [loop, loop], "c": {"d": loop}}}[kind]
        loop.extend(links) if isinstance(loop, list) else loop.update(links)
        assert b"\\u0000cut" in canonical.canonical(loop)
        assert canonical.flaw(loop) == "depth"

    @pytest.mark.parametrize("depth", [10, 230, 400, 50_000])
    def test_depth_ends(self, depth: int) -> None:
        """A value that nests deeper than any encoder goes has a form, and the flaw is named."""
        value: Any = 1.0
        for _ in range(depth):
            value = [value]
        assert canonical.canonical(value).startswith(b"[[[[")
        assert canonical.flaw(value) == (None if depth < canonical.MAX_DEPTH else "depth")

    @often
    @given(st.binary(max_size=8), st.binary(max_size=8))
    def test_bytes_are_told_apart(self, one: bytes, other: bytes) -> None:
        """A changed value that JSON has no form for is a change."""
        assert (canonical.canonical([one]) == canonical.canonical([other])) == (one == other)

    def test_not_a_number_is_not_null(self) -> None:
        """What an encoder writes as null is not null."""
        forms = {canonical.canonical([value]) for value in (None, math.nan, math.inf, -math.inf)}
        assert len(forms) == 4

    @often
    @given(st.lists(texts, max_size=5))
    def test_required_is_a_set(self, names: list[str]) -> None:
        """The names that a schema requires may come in any order."""
        one, other = {"required": names}, {"required": names[::-1]}
        assert canonical.schema_form(one) == canonical.schema_form(other)
        assert (canonical.schema_form({"enum": names}) == {"enum": names[::-1]}) == (names == names[::-1])

    @often
    @given(st.binary(max_size=16), st.binary(min_size=1, max_size=64))
    def test_keyed_digests_hide_the_bare_one(self, raw: bytes, key: bytes) -> None:
        """With a key, what is exported cannot be compared with a digest made without it."""
        exported = canonical.written(canonical.digest(raw), key)
        assert exported.startswith("b2k:")
        assert canonical.digest(raw).hex() not in exported


counts = st.integers(0, 10**7)
maybe = st.one_of(st.none(), counts)
TABLES = {
    "openai_chat": openai_chat.USAGE, "openai_responses": openai_responses.USAGE, "anthropic": anthropic_messages.USAGE,
    "kimi": kimi.USAGE, "deepseek": compatible.DEEPSEEK, "gemini": compatible.GEMINI, "any": compatible.ANY,
}  # fmt: skip


def placed(values: dict[tuple[str, ...], object]) -> dict[str, Any]:
    """Values at their paths, as a nested object."""
    body: dict[str, Any] = {}
    for path, value in values.items():
        inner = body
        for step in path[:-1]:
            inner = inner.setdefault(step, {})
        inner[path[-1]] = value
    return body


def ways(table: Table) -> list[tuple[str, ...]]:
    """The places of a table that do not lie inside one another."""
    every = dict.fromkeys(table.counts())
    return [path for path in every if not any(other[: len(path)] == path for other in every if other != path)]


class TestUsage:
    @pytest.mark.parametrize("dialect", TABLES)
    @often
    @given(total=counts, cached=maybe, written=maybe, output=maybe)
    def test_classes_sum_to_the_input(
        self, dialect: str, total: int, cached: int | None, written: int | None, output: int | None
    ) -> None:
        """The exclusive classes make up the prompt: the reported total, or the sum of disjoint reports."""
        table = TABLES[dialect]
        given_: dict[tuple[str, ...], object] = {table.total[0]: total}
        given_ |= {table.cache_read[0]: cached} if cached is not None else {}
        known = bool(table.cache_write) and written is not None
        given_ |= {table.cache_write[0]: written} if known else {}
        given_ |= {table.output[0]: output} if output is not None else {}
        usage = read(placed(given_), table)
        parts = (cached or 0) + ((written or 0) if known else 0)
        repeated = table.disjoint and bool(cached) and known and bool(written) and total == parts
        disjoint = (table.disjoint and not repeated) or (not table.disjoint and parts > total)
        assert usage.input == (total + parts if disjoint else total)
        assert usage.cache_read == cached
        assert usage.missed == (None if cached is None or usage.input is None else usage.input - cached)

    @pytest.mark.parametrize("dialect", TABLES)
    @often
    @given(data=st.data())
    def test_any_report_is_read_without_error(self, dialect: str, data: st.DataObject) -> None:
        """Whatever stands where counts belong: no class is negative, and an unknown total makes no known miss."""
        table = TABLES[dialect]
        value = st.one_of(maybe, st.just(-1), st.booleans(), st.floats(), texts, st.lists(counts, max_size=2), strange)
        chosen = data.draw(st.dictionaries(st.sampled_from([*ways(table), *table.cost]), value))
        usage = read(placed(chosen), table)
        classes = (usage.uncached, usage.cache_read, usage.cache_write, usage.unreported, usage.output, usage.write_1h)
        assert all(number is None or 0 <= number < 2**55 for number in classes)
        assert usage.provider_cost is None or (usage.provider_cost >= 0 and math.isfinite(usage.provider_cost))
        assert all(number >= 0 for number in components(usage).values())
        assert usage.missed is None or (usage.input is not None and 0 <= usage.missed <= usage.input)

    @often
    @given(anything)
    def test_any_body_is_read_without_error(self, body: Any) -> None:
        """A request, an answer or an event of any shape is read as far as it goes, in every dialect."""
        for api in ("chat_completions", "responses", "messages"):
            surface = surfaces.make("unknown", api, LORE)
            wrapped = {"usage": body, "choices": body, "output": body, "content": body, "diagnostics": body}
            wrapped |= {"messages": body, "tools": body, "input": body, "system": body, "thinking": body, "id": body}
            wrapped |= {"timings": body, "metadata": body, "conversation": body, "prompt_cache_diagnostics": body}
            assert isinstance(surface.read_response(wrapped), m.Response)
            assert isinstance(surface.read_request(wrapped), m.Request)
            assert surface.channel(body) in (None, "text", "reasoning", "tool")
            assert isinstance(
                surface.read_response(surface.fold([wrapped, {"message": body, "delta": body}])), m.Response
            )


def chunks(text: str, cuts: list[int]) -> list[str]:
    """A text in pieces."""
    edges = [0, *sorted(min(cut_, len(text)) for cut_ in cuts), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


NAMED = {"id": "c1", "model": "m", "system_fingerprint": "fp"}


@st.composite
def deltas(draw: st.DrawFn) -> tuple[list[dict[str, Any]], int]:
    """The deltas of a stream, cut anywhere, and how many tools it calls."""
    cuts = st.lists(st.integers(0, 40), max_size=8)
    found: list[dict[str, Any]] = [{"role": "assistant"}]
    for channel in ("reasoning_content", "content"):
        found += [{channel: piece} for piece in chunks(draw(st.text(max_size=40)), draw(cuts))]
    arguments = draw(st.lists(st.text(max_size=20), max_size=3))
    for index, argument in enumerate(arguments):
        start = {"index": index, "id": f"t{index}", "function": {"name": "f", "arguments": ""}}
        pieces = [{"index": index, "function": {"arguments": piece}} for piece in chunks(argument, draw(cuts))]
        found += [{"tool_calls": [call]} for call in (start, *pieces)]
    return found, len(arguments)


@st.composite
def chat_answers(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The chunks of a stream, and the whole answer that says the same."""
    pieces, calls = draw(deltas())
    reason = draw(st.sampled_from(["stop", "length", "tool_calls"]))
    chunks_: list[dict[str, Any]] = [
        {**NAMED, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in pieces
    ]
    chunks_.append({**NAMED, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    message = {"tool_calls": [{"id": f"t{index}"} for index in range(calls)]}
    body: dict[str, Any] = {**NAMED, "choices": [{"index": 0, "message": message, "finish_reason": reason}]}
    where = draw(st.sampled_from(["own chunk", "last chunk", "nowhere"]))
    usage = {"prompt_tokens": draw(counts), "completion_tokens": draw(counts)}
    if where != "nowhere":
        body["usage"] = usage
    if where == "last chunk":
        chunks_[-1]["usage"] = usage
    if where == "own chunk":
        chunks_.append({**NAMED, "choices": [], "usage": usage})
    return chunks_, body


class TestStreams:
    @pytest.mark.parametrize("name", ["openai", "kimi_open_platform", "deepseek", "gemini", "unknown"])
    @often
    @given(chat_answers())
    def test_chat_stream_cut_anywhere_gives_the_plain_answer(
        self, name: str, answer: tuple[list[dict[str, Any]], dict[str, Any]]
    ) -> None:
        """However a stream is cut into chunks, what is read of it is what is read of the whole answer."""
        events, body = answer
        dialect = surfaces.make(name, "chat_completions", LORE)
        kept = [event for number, event in enumerate(events) if number == 0 or dialect.keep(event)]
        whole, folded = dialect.read_response(body), dialect.read_response(dialect.fold(kept))
        source = whole.usage.source
        assert replace(folded, usage=replace(folded.usage, source=source)) == whole


message_texts = st.sampled_from(["a", "b", "c", "é", "long " * 9, "\ud800"])
messages = st.one_of(
    st.builds(
        lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "assistant"]), message_texts
    ),
    st.builds(lambda text: {"role": "user", "content": [{"type": "text", "text": text}]}, message_texts),
    st.builds(
        lambda n: {"role": "tool", "content": "r", "n": n}, st.sampled_from([1, 1.0, True, 2, None, 1.5, math.nan])
    ),
    st.builds(
        lambda mark: {"role": "user", "content": "m", **mark}, st.sampled_from([{}, {"cache_control": {"a": 1}}])
    ),
    st.builds(lambda ident: {"type": "item", "text": "i", **ident}, st.sampled_from([{}, {"id": "x"}, {"id": "y"}])),
    st.just({"role": "system", "tools": [{"name": "late"}]}),
    st.sampled_from(["text", None, 3]),
)
histories = st.lists(messages, max_size=10)
UNRENDERED = st.sampled_from([frozenset[str](), frozenset({"id", "status"})])


def outline(
    history: list[Any], unrendered: frozenset[str] = frozenset(), previous: Outline | None = None, **more: Any
) -> Outline:
    request = m.Request(system=more.get("system", ["S"]), tools=more.get("tools", []), messages=list(history))
    return cut(request, unrendered, Memo(), previous)


def rendered(message: Any, unrendered: frozenset[str]) -> Any:
    """A message without the members that never reach the model."""
    return {k: v for k, v in message.items() if k not in unrendered} if isinstance(message, dict) else message


class TestOutlines:
    @often
    @given(histories, histories)
    def test_equal_prefix_is_equal_prefix_digests(self, one: list[Any], other: list[Any]) -> None:
        """Two histories share as many leading prefix digests as they share leading messages, and no more."""
        a, b = outline(one), outline(other)
        shared = lineage.common(a.digests, b.digests)
        assert lineage.common(a.prefix, b.prefix) == shared
        assert all(x not in b.prefix for x in a.prefix[shared:])

    @often
    @given(histories, st.sampled_from([[], ["S"], ["S", "T"]]), st.sampled_from([[], ["S"], ["S", "T"]]))
    def test_the_header_is_below_every_prefix(self, history: list[Any], one: list[str], other: list[str]) -> None:
        """With another header no prefix is the same, with the same header all are."""
        a, b = outline(history, system=one), outline(history, system=other)
        assert (a.root == b.root) == (one == other)
        assert (a.prefix == b.prefix) == (one == other or not history)

    @often
    @given(histories, histories, UNRENDERED, st.booleans())
    def test_the_previous_outline_only_saves_work(
        self, history: list[Any], before: list[Any], unrendered: frozenset[str], same_header: bool
    ) -> None:
        """An outline is the same whatever outline it is cut against, but for what is in no digest: a message's cache
        markers and unrendered ids may be those of the earlier one, and then it stays under watch."""
        previous = outline(before, unrendered, system=["S"] if same_header else ["T"])
        alone, beside = outline(history, unrendered), outline(history, unrendered, previous)
        assert replace(beside, messages=[], loose=alone.loose) == replace(alone, messages=[])
        told = (
            [canonical.canonical(unmarked(rendered(item, unrendered))) for item in shape.messages]
            for shape in (alone, beside)
        )
        assert next(told) == next(told)

    @often
    @given(histories, st.data())
    def test_no_change_of_the_callers_lists_is_missed(self, history: list[Any], data: st.DataObject) -> None:
        """The caller's own objects, changed in place after a call, are another history at the next one."""
        mine = copy.deepcopy([item for item in history if isinstance(item, dict)])
        previous = outline(mine)
        if mine:
            at = data.draw(st.integers(0, len(mine) - 1))
            mine[at]["content"] = data.draw(st.sampled_from(["new", 1, True, ["x"]]))
        assert outline(mine, previous=previous).digests == outline(copy.deepcopy(mine)).digests

    @often
    @given(st.integers(0, 5000))
    def test_locator_is_bounded_and_reaches_the_header(self, size: int) -> None:
        """At most 24 boundaries, the newest first, the header last, each once."""
        got = locator.boundaries(size)
        assert (got[0], got[-1]) == (size, 0)
        assert len(got) <= locator.MAX_ENTRIES
        assert list(got) == sorted(set(got), reverse=True)

    @often
    @given(st.integers(0, 3000), st.integers(0, 8))
    def test_appending_keeps_boundaries_to_align_by(self, size: int, added: int) -> None:
        """After a turn is appended the locators still share a boundary near the older request's end."""
        shared = set(locator.boundaries(size)) & set(locator.boundaries(size + added))
        assert max(shared) >= size - 2 * locator.DENSE


# What masks are made of, and what may stand between: of paragraphs, a sentence that no mask knows.
fragments = st.sampled_from(
    [
        "2026-03-06", "10:00:01", "10:00", "UTC", "Z", "at", "Monday", "March", "5", "2026", "status:", "clean",
        "branch:", "main", "M a/b.py", "?? c.txt", "M  d -> e.x", "recent commits:", "0123abc fix", "turn", "number",
        "request", "3", "of", "4", "nonce", "=", "deadbeef1", "/home/a/b", "C:\\a b", "12", "tokens", "left",
    ]
)  # fmt: skip
gaps = st.sampled_from([" ", " ", "\n", "\n", "\n\nBe brief. ", "\n\n\nBe brief.\n", ", ", "\t"])
moments = st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1))


class TestVolatility:
    @often
    @given(st.lists(st.tuples(fragments, gaps), max_size=24))
    def test_masking_by_paragraph_is_masking(self, parts: list[tuple[str, str]]) -> None:
        """A text is masked like the whole of it, although paragraphs that were seen before are not looked at again."""
        text = "".join(word + gap for word, gap in parts)
        assert volatility.mask(text) == volatility._sought(text)

    def test_a_clock_costs_its_own_paragraph(self) -> None:
        """AR12: of a long prompt whose clock moved, the one paragraph with the clock is looked through and no other."""
        rules = [f"Rule {number}: be careful." for number in range(40)]
        volatility.mask("\n\n".join([*rules, "It is 10:00:01 UTC."]))
        before = volatility._kept.cache_info().misses
        masked = volatility.mask("\n\n".join([*rules, "It is 10:00:41 UTC."]))
        assert volatility._kept.cache_info().misses - before == 1
        assert masked == volatility.mask("\n\n".join([*rules, "It is 10:00:01 UTC."]))

    @pytest.mark.parametrize(
        "text", ["1," * 100_000, f"status:{' ' * 50_000}x", "turn 1" + ".1" * 50_000, "M " * 50_000, "=" * 50_000]
    )
    def test_a_text_without_end(self, text: str) -> None:
        """AR14: what looks like the beginning of a span again and again stands as it is, after one pass over it."""
        assert volatility.mask(text) == text

    @often
    @given(texts, texts)
    def test_equal_masks_or_nothing(self, one: str, other: str) -> None:
        """A volatile difference is one between texts that are equal once masked, and it starts where they part."""
        found = volatility.compare(one, other)
        assert (found is not None) == (one != other and volatility.mask(one) == volatility.mask(other))
        assert found is None or found.offset == volatility.common(one, other)

    @often
    @given(texts, texts, moments, moments)
    def test_two_clocks(self, before: str, after: str, one: Any, other: Any) -> None:
        """Whatever stands around a clock, another clock in its place is volatile."""
        old, new = (f"{before}\n{moment:%Y-%m-%d %H:%M:%S}\n{after}" for moment in (one, other))
        found = volatility.compare(old, new)
        assert (found is None) == (old == new)


def calls_of(draw: st.DataObject) -> list[tuple[str | None, list[Any]]]:
    session = st.sampled_from([None, *"abcdefgh"])
    history = st.lists(
        st.sampled_from([{"role": r, "content": c * 40} for r in ("user", "assistant") for c in "xyz"]), max_size=6
    )
    return draw.draw(st.lists(st.tuples(session, history), max_size=40))


class TestBounds:
    @often
    @given(st.data(), st.integers(1, 4), st.sampled_from([1, 10_000, 10**9]))
    def test_lineage_stays_within_sessions_and_bytes(self, data: st.DataObject, sessions: int, size: int) -> None:
        """However calls come, the lineage keeps no more sessions and bytes than it may, the newest head at least."""
        kept, memo, policies = lineage.Lineage(sessions, size), Memo(), Policies()
        for number, (session, history) in enumerate(calls_of(data)):
            shape = outline(history)
            request = m.Request(model="m", messages=history)
            identity = identify(request, shape, "unknown", None, policies, memo)
            name = session or f"s{number}"
            kept.put(
                lineage.Head(f"e{number}", name, "host", "chat_completions", shape, identity, request, float(number)),
                None,
            )
            heads = list(kept.heads())
            assert kept.sessions <= sessions
            assert len(heads) == 1 or sum(map(lineage.weight, heads)) <= size
            assert heads[-1].entry_id == f"e{number}"
            assert all(sum(head.session == other.session for head in heads) <= lineage.MAX_HEADS for other in heads)

    @often
    @given(st.data(), st.integers(1, 3))
    def test_ledger_stays_within_sessions(self, data: st.DataObject, sessions: int) -> None:
        """A ledger that only ever sees new conversations remembers as many as it may and answers every call."""
        surface = surfaces.make("unknown", "chat_completions", LORE)
        ledger = Ledger(LORE, "test", Limits(sessions, 10**6))
        for number, (session, history) in enumerate(calls_of(data)):
            request = surface.read_request({"model": "m", "messages": history})
            draft = ledger.open(surface, "host", request, m.Surroundings(f"e{number}", float(number), session=session))
            usage = m.Usage(uncached=number, cache_read=number, output=1)
            entry = ledger.close(draft, m.Response(usage=usage), m.Ending(), m.Timing(), number + 0.5)
            assert ledger.sessions <= sessions
            assert entry.cache.input_tokens == 2 * number
