"""Tools as sent against tools as live: what holds for every schema, what a program may say, and the whole way through
the SDKs."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import jsonschema
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import otel_context_ledger
from otel_context_ledger import model as m
from otel_context_ledger import semconv as s
from otel_context_ledger import tool_contracts, tool_registry
from otel_context_ledger.correctness.tools import calls, contracts, definitions, live, schemas
from otel_context_ledger.correctness.tools.check import MAX_SEEN, Sent, Tools
from otel_context_ledger.correctness.tools.contracts import Contract
from otel_context_ledger.correctness.tools.registry import Registry
from otel_context_ledger.correctness.tools.schemas import ADDITIVE, BREAKING, COSMETIC
from tests.conftest import Ledger, Signals
from tests.provider import Provider
from tests.provider.script import Answer, always, call
from tests.test_properties import anything, shuffled
from tests.ways import RULES

often = settings(deadline=None, max_examples=150, database=None)
NAMES = ("path", "limit", "mode", "tags")
scalars = st.one_of(
    st.just({"type": "string"}), st.just({"type": "boolean"}), st.just({"type": ["string", "null"]}),
    st.builds(lambda low, size: {"type": "integer", "minimum": low, "maximum": low + size}, st.integers(0, 3),
              st.integers(0, 3)),
    st.builds(lambda values: {"enum": values}, st.lists(st.sampled_from(["a", "b", 1, True, None]), min_size=1,
                                                         unique_by=json.dumps)),
    st.builds(lambda most: {"type": "string", "maxLength": most}, st.integers(0, 3)),
)  # fmt: skip


def objects(inner: Any) -> Any:
    """Schemas of objects over these schemas of properties, open or closed."""
    properties = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    return st.builds(
        lambda found, needed, closed: {
            "type": "object", "properties": found, "required": sorted(set(found) & needed),
            **({"additionalProperties": False} if closed else {}),
        },
        properties, st.sets(st.sampled_from(NAMES)), st.booleans(),
    )  # fmt: skip


nodes = st.recursive(
    scalars,
    lambda inner: st.one_of(
        objects(inner),
        st.builds(lambda item: {"type": "array", "items": item}, inner),
        st.builds(lambda one, other: {"anyOf": [one, other]}, inner, inner),
    ),
    max_leaves=5,
)
tools = objects(nodes)
values = st.recursive(
    st.sampled_from(["", "a", "b", "abcd", 0, 1, 2, 5, True, False, None]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=5,
)  # fmt: skip


def levels(old: Any, new: Any) -> set[str]:
    return {change.level for change in schemas.compare(old, new)}


# The comparison of two schemas


@often
@given(tools)
def test_a_schema_equals_itself_however_written(schema: Any) -> None:
    """Nothing changed between a schema and the same with its members, and what it requires, in another order."""
    other = shuffled(schema)
    other["required"] = list(reversed(schema["required"]))
    assert schemas.compare(schema, other) == ()


@often
@given(tools, nodes)
def test_an_optional_property_more_is_additive(schema: Any, node: Any) -> None:
    """A server that takes one property more breaks no caller, and one that takes it back does."""
    wider = copy.deepcopy(schema)
    wider["properties"]["added"] = node
    assert (levels(schema, wider), levels(wider, schema)) == ({ADDITIVE}, {BREAKING})


@often
@given(tools)
def test_words_are_cosmetic(schema: Any) -> None:
    """Another description or title of anything in it changes no call."""
    told = copy.deepcopy(schema)
    for node in (told, *told["properties"].values()):
        node |= {"description": "Says what it is.", "title": "T"}
    assert levels(schema, told) == {COSMETIC}


def declared(schema: Any, value: Any) -> bool:
    """Whether a value has no member that its schema does not declare; what becomes of those nobody promised."""
    return calls.undeclared(schema, value) == 0


@often
@given(tools, tools, values)
def test_what_is_not_breaking_breaks_no_call(old: Any, new: Any, value: Any) -> None:
    """Of two schemas between which nothing breaks, the second takes every declared value that the first takes: by the
    judgement of another validator."""
    validator = jsonschema.Draft202012Validator
    if BREAKING not in levels(old, new) and validator(old).is_valid(value) and declared(old, value):
        assert validator(new).is_valid(value)


@often
@given(tools, st.sampled_from(NAMES), nodes, values)
def test_one_property_changed(old: Any, name: str, node: Any, value: Any) -> None:
    """The same where the two differ in one property only, so that many of them do not break."""
    new = copy.deepcopy(old)
    new["properties"][name] = node
    found = {name: value}
    validator = jsonschema.Draft202012Validator
    if BREAKING not in levels(old, new) and validator(old).is_valid(found) and declared(old, found):
        assert validator(new).is_valid(found)


@often
@given(tools, tools)
def test_additive_one_way_is_breaking_the_other_way(old: Any, new: Any) -> None:
    """What allows more one way allows less the other way."""
    if ADDITIVE in levels(old, new) and BREAKING not in levels(old, new):
        assert BREAKING in levels(new, old)


@often
@given(anything, anything)
def test_nothing_given_as_a_schema_raises(old: Any, new: Any) -> None:
    """Whatever a server calls a schema is compared, or found too large."""
    try:
        found = schemas.compare(old, new)
    except schemas.TooLarge:
        return
    assert all(change.level in schemas.LEVELS for change in found)


def wide(kind: str) -> dict[str, Any]:
    return {"type": "object", "properties": {f"p{n}": {"type": kind} for n in range(schemas.MAX_NODES + 1)}}


def deep(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {"type": kind}
    for _ in range(120):
        found = {"type": "array", "items": found}
    return found


def endless(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object"}
    found["properties"] = {"kind": {"type": kind}, "again": found}
    return found


@pytest.mark.parametrize("schema", [wide, deep, endless])
def test_a_comparison_is_bounded(schema: Any) -> None:
    """A schema with more nodes than one comparison looks at is too large, and so is one that is too deep or endless."""
    with pytest.raises(schemas.TooLarge):
        schemas.compare(schema("string"), schema("integer"))


# Shapes


SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


@pytest.mark.parametrize(
    "shape",
    [
        {"name": "search", "description": "Searches.", "inputSchema": SCHEMA},
        {"type": "function", "function": {"name": "search", "description": "Searches.", "parameters": SCHEMA}},
        {"type": "function", "name": "search", "description": "Searches.", "parameters": SCHEMA},
        {"name": "search", "description": "Searches.", "input_schema": SCHEMA},
        {"type": "custom", "name": "search", "description": "Searches.", "input_schema": SCHEMA},
    ],
)
def test_every_shape_is_the_same_tool(shape: dict[str, Any]) -> None:
    """MCP, OpenAI Chat, OpenAI Responses and Anthropic spell one definition."""
    found = definitions.read(shape)
    assert found is not None
    known = definitions.read({"name": "search", "description": "Searches.", "inputSchema": shuffled(SCHEMA)})
    assert known is not None
    assert (found.name, found.schema, found.same(known), found.wire == known.wire) == ("search", SCHEMA, True, False)


@pytest.mark.parametrize(
    "builtin", [{"type": "web_search"}, {"type": "web_search_20250305", "name": "web_search"},
                {"type": "builtin_function", "function": {"name": "$web_search"}}, "text", None, {}],
)  # fmt: skip
def test_a_builtin_is_no_definition(builtin: object) -> None:
    """What the provider runs has no schema of the program's that could drift."""
    assert definitions.read(builtin) is None


class Listed:
    """An object as an MCP SDK returns it: a pydantic model by its method."""

    def __init__(self, **members: Any) -> None:
        self.members = members

    def model_dump(self, mode: str, by_alias: bool, exclude_none: bool) -> dict[str, Any]:
        return self.members


TOOL = {"name": "search", "description": "Searches.", "inputSchema": SCHEMA}


@pytest.mark.parametrize(
    "listing", [{"tools": [TOOL]}, {"jsonrpc": "2.0", "id": 1, "result": {"tools": [TOOL]}}, [TOOL], (TOOL,),
                Listed(tools=[TOOL]), [Listed(**TOOL)]],
)  # fmt: skip
def test_a_listing_is_taken_as_it_is(listing: object) -> None:
    """The result, the whole answer, an SDK's object, or the bare list."""
    found = definitions.listing(listing)
    assert found is not None and [tool.name for tool in found.tools] == ["search"]


def test_pages_add_up() -> None:
    """Tools of one listing in several pages are all live, and only the last page ends it."""
    registry, names = Registry(), ("a", "b", "c")
    for n, name in enumerate(names):
        page = {"tools": [{**TOOL, "name": name}], **({"nextCursor": str(n)} if n < 2 else {})}
        found = definitions.listing(page)
        assert found is not None
        registry.put(found, "docs", Contract(), float(n))
    assert [name for name in names if registry.view.find(name)] == ["a", "b", "c"]


# What a program may say


@pytest.fixture
def registry() -> Iterator[Registry]:
    """The registry of this process, emptied before and after."""
    live.LIVE.clear()
    yield live.LIVE
    live.LIVE.clear()


@often
@given(anything, anything)
def test_nothing_said_raises(listing: Any, server: Any) -> None:
    """Whatever a program says of its tools, it goes on."""
    live.LIVE.clear()
    tool_registry(listing, server)
    tool_registry({"tools": listing}, server=server, timeout=server)
    tool_contracts(listing)
    live.LIVE.clear()


NO_CONTRACT = (
    "no contract: its members are server, endpoint, permission, side_effect, version, timeout; texts, and seconds for "
    "the timeout"
)


def test_nonsense_is_one_warning(
    registry: Registry, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no listing or no contract is said once, without its text, and changes nothing."""
    monkeypatch.setattr(live, "_warned", set())
    for _ in range(3):
        tool_registry("private")
        tool_contracts({"search": {"sever": "docs"}})
        tool_registry([TOOL], server="docs", timeout="soon")
    assert [record.getMessage() for record in caplog.records] == [
        "context ledger: tool_registry: str is no list of tools; ignored",
        f"context ledger: tool_contracts: {NO_CONTRACT}; ignored",
        f"context ledger: tool_registry: {NO_CONTRACT}; ignored",
    ]
    assert registry.view.known is False


def test_the_registry_is_bounded() -> None:
    """More servers, tools and contracts than anybody has are not taken."""
    registry = Registry()
    for n in range(400):
        found = definitions.listing([{**TOOL, "name": f"t{n}.{k}"} for k in range(20)])
        assert found is not None
        registry.put(found, f"s{n}", Contract(), 0.0)
    registry.declare({f"t{n}": Contract(server="a") for n in range(2000)})
    kept = registry.view.servers.values()
    assert (sum(len(server.tools) for server in kept) <= 4096, len(registry.view.contracts)) == (True, 0)


def test_a_view_is_whole_while_others_write() -> None:
    """Threads that say what is live while calls are looked at never show a half-made registry."""
    registry, stop = Registry(), threading.Event()
    pages = [definitions.listing([{**TOOL, "name": name} for name in names]) for names in ("ab", "abc")]

    def write() -> None:
        while not stop.is_set():
            for page in pages:
                assert page is not None
                registry.put(page, "docs", Contract(), 0.0)

    writer = threading.Thread(target=write)
    writer.start()
    seen = {tuple(sorted(n for n in "abc" if view.find(n))) for view in (registry.view for _ in range(2000))}
    stop.set()
    writer.join()
    assert seen <= {(), ("a", "b"), ("a", "b", "c")}


def test_contracts_of_a_bad_table_are_sentences() -> None:
    """Each table that is no contract is said with what is wrong in it; the others hold."""
    tables = {"a": {"server": "docs", "permission": ["fs.write", "fs.read"], "side_effect": "readonly"}, "b": {"x": 1}}
    found, bad = contracts.declared(tables)
    assert found == {"a": Contract(server="docs", permission="fs.read,fs.write", side_effect="read")}
    assert bad == ("[tools.b] 'x' is none of server, endpoint, permission, side_effect, version, timeout; ignored",)


# What a check costs and keeps


def sent(names: list[str], looked: list[str]) -> Sent:
    """Tools by their names; `looked` notes each time that their definitions are asked for."""

    def values() -> list[object]:
        looked.append("values")
        return [{**TOOL, "name": name} for name in names]

    joined = ",".join(names).encode()
    return Sent(joined, ",".join(sorted(names)).encode(), lambda: tuple(names), values)


def test_the_same_tools_are_compared_once() -> None:
    """As long as neither tools nor registry change, definitions are read and compared once, in any number of sessions;
    a changed registry makes them be compared anew."""
    registry, looked = Registry(), list[str]()
    pillar, given_tools = Tools(registry), sent(["search", "read"], looked)
    found = definitions.listing([TOOL])
    assert found is not None
    registry.put(found, "docs", Contract(), 0.0)
    verdicts = {pillar.look(given_tools, f"s{n % 3}", float(n)).check.verdict for n in range(30)}
    assert (verdicts, looked) == ({"consistent"}, ["values"])
    registry.declare({"read": Contract(server="fs")})
    pillar.look(given_tools, "s0", 41.0)
    assert looked == ["values", "values"]


def test_without_anything_to_compare_with_definitions_are_never_read() -> None:
    """A program that says nothing of its tools pays nothing for them."""
    looked = list[str]()
    look = Tools(Registry()).look(sent(["search"], looked), "s", 0.0)
    assert (look.check.verdict, looked) == ("unknown", [])


@pytest.mark.parametrize(
    ("count", "width", "reason"), [(300, 3, None), (600, 1, "too_many_tools"), (300, 60, "schema_too_large")]
)
def test_a_first_sight_is_bounded(count: int, width: int, reason: str | None) -> None:
    """Three hundred drifted tools are compared; what is beyond a bound is unknown, with the reason."""

    def broad(kind: str, n: int) -> dict[str, Any]:
        inner = {f"p{k}": {"type": kind} for k in range(width)}
        return {**TOOL, "name": f"t{n}", "inputSchema": {"type": "object", "properties": inner}}

    registry = Registry()
    found = definitions.listing([broad("integer", n) for n in range(count)])
    assert found is not None
    registry.put(found, "docs", Contract(), 0.0)
    offered = Sent(b"w", b"s", tuple, lambda: [broad("number", n) for n in range(count)])
    check = Tools(registry).look(offered, "s", 0.0).check
    assert (check.verdict, check.findings.evidence[:1] == (f"reason={reason}",)) == (
        ("drift", False) if reason is None else ("unknown", True)
    )
    assert len(check.findings.evidence) < 16


def test_sessions_are_bounded() -> None:
    """The session that was used least recently is forgotten first."""
    pillar = Tools(Registry(), sessions=10)
    for n in range(100):
        pillar.look(sent(["a", "b"], []), f"s{n}", 0.0)
    assert len(pillar._tracks) == 10


def test_what_was_judged_is_bounded_over_all_sessions() -> None:
    """TO05: more sessions that each call more tools leave no more behind than there may be of all of them together."""
    pillar = Tools(Registry(), sessions=10)
    offered = sent(["a", "b"], [])
    for session in range(10):
        look = pillar.look(offered, f"s{session}", 0.0)
        pillar.judged(look, offered, [], [m.Called("a", "{}", f"c{n}") for n in range(MAX_SEEN // 5)])
    assert len(pillar._seen) == MAX_SEEN


@often
@given(st.lists(anything, max_size=4), st.lists(anything, max_size=4), anything)
def test_nothing_sent_raises(values: list[Any], listed: list[Any], arguments: Any) -> None:
    """Whatever a program sends as its tools beside whatever a server lists, a verdict comes of it."""
    registry = Registry()
    found = definitions.listing(listed)
    assert found is not None
    registry.put(found, "docs", Contract(), 0.0)
    pillar = Tools(registry, names=True)
    offered = Sent(b"w", b"s", tuple, lambda: values)
    look = pillar.look(offered, "s", 1.0)
    check = pillar.judged(look, offered, [m.Called("read", arguments)], [m.Called("a", arguments)])
    assert {look.check.verdict, check.verdict} <= set(s.MEMBERS[s.CONTEXT_LEDGER_TOOLS_CHECK])


# Whom to blame for a call


STRICT = {**SCHEMA, "additionalProperties": False}
WIDE = {"type": "object", "properties": {"q": {"type": ["string", "array"]}}, "required": ["q"]}


def definition(schema: dict[str, Any]) -> definitions.Definition:
    found = definitions.read({**TOOL, "inputSchema": schema})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("shown", "now", "arguments", "blame", "tags"),
    [
        (SCHEMA, None, '{"q":"a"}', None, ()),
        (SCHEMA, None, '{"q":1}', "model", ()),
        (SCHEMA, None, "{broken", "model", ()),
        (SCHEMA, None, "[]", "model", ()),
        ({"type": "object"}, None, "", None, ()),
        (WIDE, SCHEMA, '{"q":["a"]}', "drift", ()),
        (SCHEMA, WIDE, '{"q":["a"]}', None, ("stale_client_schema",)),
        (SCHEMA, WIDE, '{"q":1}', "model", ()),
        (STRICT, {**SCHEMA, "properties": {**SCHEMA["properties"], "n": {}}}, '{"q":"a","n":1}', None,
         ("argument_not_in_prompt_schema",)),
        ({"type": "object", "properties": {"q": {"pattern": "(a+)+$"}}}, None, json.dumps({"q": "a" * 40 + "!"}), None,
         ()),
        ({"$ref": "https://elsewhere.example/schema.json"}, None, "{}", None, ()),
        ({"type": "nonsense"}, None, "{}", None, ()),
    ],
)  # fmt: skip
def test_who_is_to_blame(
    shown: dict[str, Any], now: dict[str, Any] | None, arguments: str, blame: str | None, tags: tuple[str, ...]
) -> None:
    """Right as shown and wrong now: the drift. Wrong as shown: the model, unless what is live explains it. What cannot
    be judged (a schema elsewhere, or none) is nobody's fault, and no expression of a schema is run."""
    live_now = definition(now) if now else None
    found = calls.Judge().opinion(m.Called("search", arguments), definition(shown), live_now)
    assert (found.blame, found.tags) == (blame, tags)


@often
@given(anything, anything)
def test_judging_never_raises(schema: Any, arguments: Any) -> None:
    """Whatever the schema and the arguments are."""
    body = {"name": "t", "inputSchema": schema if isinstance(schema, dict) else {"properties": schema}}
    found = definitions.read(body)
    assert found is not None
    assert calls.Judge().opinion(m.Called("t", arguments), found, None).blame in (None, "model")


# The whole way


LIVE = {"type": "object", "properties": {"lookback": {"type": "string"}}, "required": ["lookback"]}
SHOWN = {"type": "object", "properties": {"timespan": {"type": "string"}}, "required": ["timespan"]}
ASKED = {"type": "function", "function": {"name": "metrics", "description": "Reads metrics.", "parameters": SHOWN}}
SERVED = {"name": "metrics", "description": "Reads metrics.", "inputSchema": LIVE}


def ask(provider: Provider, messages: list[dict[str, Any]], stream: bool = False) -> Any:
    with openai.OpenAI(base_url=f"{provider.url}/kimi/v1", api_key="test-key", max_retries=0) as client:
        tools_: Any = [ASKED]
        given_: Any = messages
        found = client.chat.completions.create(model="kimi-k3", messages=given_, tools=tools_, stream=stream)
        return [*found] if stream else found.choices[0].message.model_dump(exclude_none=True)


@pytest.mark.usefixtures("registry")
def test_drift_through_the_sdk(provider: Provider, ledger: Ledger, signals: Signals) -> None:
    """TS01 through the SDK: the returned call is judged after the program has its answer; the line, the event and the
    metric say that the drift is to blame, the span says what was known when it ended, and no property is named."""
    provider.script = always(Answer(tool_calls=(call("metrics", timespan="1h"),)))
    tool_registry({"tools": [SERVED]}, server="obs", endpoint="https://obs.example/mcp")
    ask(provider, [{"role": "system", "content": RULES}, {"role": "user", "content": "How busy are we?"}])
    (entry,) = ledger.entries()
    (span,) = signals.spans.get_finished_spans()
    event = next(e for e in signals.logged() if e.event_name == s.EVENT_ENTRY)
    drifted = "drift=metrics:breaking(property_renamed)"
    found = entry["checks"]
    assert (found["tools_check"], found["tools"]["detail"], found["tools"]["evidence"][:2]) == (
        "invalid_call", ["drift", "breaking"], ["call=metrics:drift", drifted],
    )  # fmt: skip
    assert (event.attributes[s.CONTEXT_LEDGER_TOOLS_CHECK], span.attributes[s.CONTEXT_LEDGER_TOOLS_CHECK]) == (
        "invalid_call", "drift",
    )  # fmt: skip
    assert span.attributes[s.CONTEXT_LEDGER_TOOLS_EVIDENCE][0] == drifted
    points = signals.counted()[s.METRIC_CHECKS]
    mine = [(a[s.CONTEXT_LEDGER_PILLAR], a[s.CONTEXT_LEDGER_VERDICT]) for a, n in points if n]
    assert ("tools", "invalid_call") in mine
    said = json.dumps(entry) + json.dumps(dict(event.attributes)) + json.dumps(dict(span.attributes))
    assert [word for word in ("timespan", "lookback", "obs.example") if word in said] == []


@pytest.mark.usefixtures("registry")
def test_a_streamed_call_is_judged_when_it_comes_back(provider: Provider, ledger: Ledger) -> None:
    """A streamed call's arguments are whole only in the next request; there it is judged, and once."""
    provider.script = always(Answer(tool_calls=(call("metrics", timespan="1h"),)))
    tool_registry([SERVED], server="obs")
    told: list[dict[str, Any]] = [{"role": "system", "content": RULES}, {"role": "user", "content": "Busy?"}]
    ask(provider, told, stream=True)
    made = {"id": "call_1", "type": "function", "function": {"name": "metrics", "arguments": '{"timespan":"1h"}'}}
    told += [{"role": "assistant", "content": "", "tool_calls": [made]}]
    told += [{"role": "tool", "tool_call_id": "call_1", "content": "invalid params"}]
    ask(provider, told, stream=True)
    ask(provider, [*told, {"role": "user", "content": "Again?"}], stream=True)
    assert [entry["tools_check"] for entry in ledger.flat()] == ["drift", "invalid_call", "drift"]


@pytest.mark.usefixtures("registry")
def test_a_flipped_side_effect_under_a_full_hit(provider: Provider, ledger: Ledger) -> None:
    """The prompt is reused whole while what stands behind a tool has changed: the contract's hash moves, the schema's
    does not, and the verdict stands beside the hit."""
    told = [{"role": "system", "content": RULES}, {"role": "user", "content": "Clean up."}]
    for effect in ("read", "destructive"):
        tool_contracts({"metrics": {"server": "obs", "side_effect": effect}})
        ask(provider, told)
    first, second = ledger.flat()
    assert (second["cache_outcome"], second["tools_check"], second["tools"]["detail"]) == (
        "hit", "contract_changed", ["side_effect"],
    )  # fmt: skip
    assert first["tool_schema_hash"] == second["tool_schema_hash"]
    assert first["tool_contract_hash"] != second["tool_contract_hash"]


def test_the_manifest_is_read_from_the_toml(
    provider: Provider, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any, registry: Registry
) -> None:
    """`[tools.<name>]` of context-ledger.toml is compared with what is live, and property names are told on request."""
    file = tmp_path / "mine.toml"
    file.write_text('[tools.metrics]\nserver = "billing"\ntimeout = 30\n', "utf-8")
    monkeypatch.setenv("CONTEXT_LEDGER_CONFIG", str(file))
    monkeypatch.setenv("CONTEXT_LEDGER_TOOL_PROPERTIES", "true")
    tool_registry([SERVED], server="obs")
    running = Ledger(settings)
    running.instrumentor.instrument()
    try:
        ask(provider, [{"role": "user", "content": "Busy?"}])
        (entry,) = running.flat()
    finally:
        running.instrumentor.uninstrument()
    assert (entry["tools_check"], entry["tools"]["detail"]) == ("contract_changed", ["endpoint", "breaking"])
    assert entry["tools"]["evidence"][:2] == [
        "contract=metrics:endpoint(manifest)", "drift=metrics:breaking(property_renamed -timespan +lookback)",
    ]  # fmt: skip


def test_jsonschema_is_not_imported_until_a_call_is_judged() -> None:
    """Neither the package nor a look at tools imports the validator."""
    program = (
        "import sys, otel_context_ledger; from otel_context_ledger import instrumentation;"
        "otel_context_ledger.tool_registry([{'name': 'a', 'inputSchema': {}}]); print('jsonschema' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_public_names() -> None:
    """What a program may say of its tools is part of the public API."""
    assert {"tool_registry", "tool_contracts"} <= set(otel_context_ledger.__all__)
