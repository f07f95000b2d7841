"""Compactions through the SDK: what the ledger writes, exports and advises when calls and programs tell of them."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import openai
import pytest

from otel_context_ledger import compaction, constraint, session, store, validate_with
from otel_context_ledger import semconv as s
from otel_context_ledger.correctness.compaction.course import Rules
from otel_context_ledger.correctness.compaction.happenings import Begun, Called, Declared, Ended, Opened
from otel_context_ledger.correctness.compaction.manifest import Item, Manifest
from otel_context_ledger.correctness.constraints import Constraint, Match
from otel_context_ledger.correctness.policy import RulesFile
from otel_context_ledger.correctness.wording import Wording
from otel_context_ledger.courses import Asked, Courses, Scene, configured
from otel_context_ledger.mailbox import Letter, latest, mailbox
from tests.conftest import Ledger, Signals, flat
from tests.provider import Answer, Behaviour, Provider, always, call, in_order
from tests.test_processes import START, run

RULE = "Never edit files under migrations/"
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}]
SYSTEM = {"role": "system", "content": "You are an agent."}
SUMMARISER = {"role": "system", "content": "You are a helpful assistant that compacts conversation context."}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


HISTORY = [
    message
    for n in range(8)
    for message in (user(f"step {n}"), {"role": "assistant", "content": f"done {n} " + "word " * 40})
]


def summary(text: str) -> dict[str, Any]:
    """A summary as kimi-cli puts it into the history."""
    head = "<system>Previous context has been compacted. Here is the compaction output:</system>"
    return {"role": "user", "content": [{"type": "text", "text": head}, {"type": "text", "text": text}]}


@pytest.fixture(autouse=True)
def own_context() -> Iterator[None]:
    """No letters, and no session of another test's call."""
    mailbox.take()
    token = latest.set(None)
    yield
    latest.reset(token)
    mailbox.take()


class Agent:
    """An agent with a session of its own, on the simulated provider."""

    def __init__(self, provider: Provider, name: str = "s1") -> None:
        self.provider, self.name = provider, name

    def asks(self, messages: Sequence[Any], system: Mapping[str, Any] = SYSTEM, named: bool = True) -> Any:
        """One call, which names its session by the cache key."""
        own: dict[str, Any] = {"tools": TOOLS} if system is SYSTEM else {}
        own |= {"extra_body": {"prompt_cache_key": self.name}} if named else {}
        with openai.OpenAI(base_url=self.provider.url + "/kimi/v1", api_key="test-key", max_retries=0) as client:
            return client.chat.completions.create(model="kimi-k3", messages=[system, *messages], **own)

    def compacts(self, text: str, keep: Sequence[Any] = ()) -> None:
        """Two calls before a compaction in the form of kimi-cli, and one after it."""
        self.asks(HISTORY)
        self.asks([*HISTORY, user("go on")])
        self.asks([summary(text), *keep, user("go on")])


def settled(ledger: Ledger) -> list[dict[str, Any]]:
    return [event for event in ledger.compactions() if event["settled"]]


def test_a_compaction_that_nobody_told_of(provider: Provider, ledger: Ledger, signals: Signals) -> None:
    """A known form is enough: one line, one event, counted once; the next call says on which summary it builds, that it
    is not to be trusted, and what to do."""
    constraint("C1", RULE)
    Agent(provider).compacts("Goal: billing.")
    (event,) = settled(ledger)
    last = ledger.flat()[-1]
    assert [event[name] for name in ("kind", "outcome", "validator_result", "lost", "number")] == [
        "full", "done", "fail", ["C1"], 1,
    ]  # fmt: skip
    assert event["tokens_before"] > event["tokens_after"] > 0
    assert [last[name] for name in ("summary_hash", "compaction_event", "summary_trusted", "constraints_check")] == [
        event["summary_hash"], event["compaction_event"], False, "lost",
    ]  # fmt: skip
    assert (last["identity_changed"], event["identity_after"]) == (["summary"], last["context_identity"])
    assert [text.split(",")[0] for text in last["advice"] if text.startswith("new_session")] == [
        f"new_session: the summary of compaction {event['compaction_event']} failed its validation"
    ]
    (told,) = [found for found in signals.logged() if found.event_name == s.EVENT_COMPACTION]
    assert told.attributes[s.CONTEXT_LEDGER_COMPACTION_LOST] == ("C1",)
    assert [span.attributes.get(s.GEN_AI_CONVERSATION_COMPACTED) for span in signals.spans.get_finished_spans()] == [
        None, None, True,
    ]  # fmt: skip


def test_compactions_are_counted(provider: Provider, ledger: Ledger, signals: Signals) -> None:
    """By kind, trigger, outcome and result, with the tokens before and after, under the attributes of their calls."""
    before = counts(signals)
    with session("s1"), compaction(trigger="manual", tokens_before=9_000) as told:
        told.done("Goal: billing.", tokens_after=100)
    ledger.instrumentor.uninstrument()
    assert {
        key: value - before.get(key, 0) for key, value in counts(signals).items() if value > before.get(key, 0)
    } == {
        (s.METRIC_COMPACTIONS, "full", "manual", "done", None): 1,
        (s.METRIC_COMPACTION_TOKENS, "before"): 9_000,
        (s.METRIC_COMPACTION_TOKENS, "after"): 100,
    }


def counts(signals: Signals) -> dict[tuple[object, ...], float]:
    found: dict[tuple[object, ...], float] = {}
    points = signals.counted()
    names = ("kind", "trigger", "outcome", "validator_result")
    for own, value in points.get(s.METRIC_COMPACTIONS, []):
        key = tuple(own.get(f"context_ledger.compaction.{name}") for name in names)
        found[(s.METRIC_COMPACTIONS, *key)] = found.get((s.METRIC_COMPACTIONS, *key), 0) + value
    for own, value in points.get(s.METRIC_COMPACTION_TOKENS, []):
        side = s.METRIC_COMPACTION_TOKENS, own[s.CONTEXT_LEDGER_SIDE]
        found[side] = found.get(side, 0) + value
    return found


def test_a_compaction_that_is_told(provider: Provider, ledger: Ledger) -> None:
    """The program's word and the call that shows it are one event; what is under way is in the file before it ends."""
    constraint("C1", RULE)
    agent = Agent(provider)
    agent.asks(HISTORY)
    with compaction("c-7", trigger="manual") as told:
        agent.asks(HISTORY, SUMMARISER)
        assert [(event["compaction_event"], event["settled"]) for event in ledger.compactions()] == [("c-7", False)]
        told.done(f"Goal: billing. {RULE}.")
    agent.asks([summary(f"Goal: billing. {RULE}."), user("go on")])
    (event,) = settled(ledger)
    named = ("compaction_event", "trigger", "outcome", "validator_result", "attempts", "session_id")
    assert [event[name] for name in named] == ["c-7", "manual", "done", "pass", 1, ledger.flat()[0]["session_id"]]
    assert (event["summary_cost"] > 0, ledger.flat()[-1]["summary_trusted"]) == (True, True)


def test_a_summarising_call_that_names_no_session(provider: Provider, ledger: Ledger) -> None:
    """It belongs to the agent whose call came before it in the same context."""
    agent = Agent(provider)
    agent.asks(HISTORY)
    agent.asks(HISTORY, SUMMARISER, named=False)
    agent.asks([summary("Goal: billing."), user("go on")])
    assert [event["attempts"] for event in settled(ledger)] == [1]


def test_a_summarising_call_that_holds_the_history(provider: Provider, ledger: Ledger) -> None:
    """It belongs to the session whose history it holds, whoever called last."""
    one, other = Agent(provider), Agent(provider)
    instruction = user("You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary.")
    first = [user("one"), *HISTORY]
    one.asks(first, named=False)
    other.asks([user("other"), *HISTORY], named=False)
    one.asks([*first, instruction], named=False)
    one.asks([summary("Goal: billing."), *first[-2:], user("go on")], named=False)
    (event,) = settled(ledger)
    assert (event["attempts"], event["session_id"]) == (1, ledger.flat()[0]["session_id"])


def test_who_builds_on_a_summary(provider: Provider, ledger: Ledger) -> None:
    """Of the agents of a session only the one that was compacted does, as long as its history goes on from there: not
    a subagent, and not the history before it that a user takes up again."""
    constraint("C1", RULE)
    agent, short = Agent(provider), [summary("Goal: billing."), user("go on")]
    ok, sub = {"role": "assistant", "content": "ok"}, [user("Look for tests."), *HISTORY[:4]]
    agent.compacts("Goal: billing.")
    calls = (sub, [*short, ok, user("more")], [*sub, user("and docs")], [*HISTORY, user("no"), ok, user("again")])
    for messages in (*calls, [user("Something else.")], [*short, ok, user("more"), ok, user("on")]):
        agent.asks(messages)
    told = [(entry["summary_hash"] is not None, entry["summary_trusted"]) for entry in ledger.flat()[2:]]
    own, other = (True, False), (False, None)
    assert told == [own, other, own, other, other, other, own]


def test_a_call_that_was_too_long_is_why(provider: Provider, ledger: Ledger) -> None:
    """What the error says of lengths makes the compaction after it a reactive one; its text is kept nowhere."""
    agent = Agent(provider)
    agent.asks(HISTORY)
    provider.plan = in_order(
        [Behaviour(status=400, says="prompt is too long: 212230 tokens > 200000 maximum (PRIVATE)")]
    )
    with pytest.raises(openai.BadRequestError):
        agent.asks([*HISTORY, user("go on")])
    agent.asks([summary("Goal: billing."), user("go on")])
    assert [event["trigger"] for event in settled(ledger)] == ["reactive"]
    assert "PRIVATE" not in ledger.file.read_text()


def test_what_waits_at_the_end_is_told_as_it_is(provider: Provider, ledger: Ledger) -> None:
    """A summary that no call has shown when the process ends is settled then; what has not ended stays under way."""
    Agent(provider).asks(HISTORY)
    compaction("c-1").done("Goal: billing.")
    compaction("c-2").start()
    ledger.instrumentor.uninstrument()
    assert {event["compaction_event"]: event["settled"] for event in ledger.compactions()} == {
        "c-1": True, "c-2": False,
    }  # fmt: skip


def test_a_session_that_begins_with_the_history_of_another(provider: Provider, ledger: Ledger) -> None:
    """That it only grew says nothing of what was told in the new session, and nobody asked for a summary there."""
    Agent(provider, "s1").asks(HISTORY)
    with session("s2"):
        compaction("c-1").done()
        Agent(provider, "s2").asks([*HISTORY, user("go on")])
    (event,) = settled(ledger)
    assert (event["outcome"], event.get("reason"), event.get("attempts")) == ("done", None, None)


def test_another_process_goes_on(provider: Provider, ledger: Ledger) -> None:
    """After a restart the session's summary is still in force, and what never ended is told as orphaned."""
    agent = Agent(provider)
    agent.compacts("Goal: billing.")
    compaction("c-2").start()
    ledger.instrumentor.uninstrument()
    ledger.instrumentor.instrument()
    latest.set(None)
    agent.asks([summary("Goal: billing."), user("go on"), {"role": "assistant", "content": "ok"}, user("and then?")])
    first = settled(ledger)[0]
    assert [(e["compaction_event"], e["outcome"], e.get("reason")) for e in settled(ledger)[1:]] == [
        ("c-2", "orphaned", "process_ended")
    ]
    assert [(e["summary_hash"], e["identity_changed"]) for e in ledger.flat()[2:]] == [
        (first["summary_hash"], ["summary"]), (first["summary_hash"], None),
    ]  # fmt: skip


BEGINS = f"""
{START}
import os, subprocess, time
from otel_context_ledger import compaction
with client() as using:
    call(using)
    compaction("c-1").start()
    call(using)
    while not os.path.exists("ledger.jsonl") or '"c-1"' not in open("ledger.jsonl").read():
        time.sleep(0.01)
    starter, child = sys.argv[2], "import sys; exec(sys.argv[2])"
    subprocess.run([starter, sys.executable, "-c", child, sys.argv[1], sys.argv[3]], check=True)
"""
CALLS = f"{START}\nwith client() as using:\n    call(using)\n"


@pytest.mark.skipif(os.name != "posix", reason="asks for processes")
def test_two_processes_on_one_session(provider: Provider, tmp_path: Path) -> None:
    """CP15: what a process that still runs has under way is told of by none of the others; once it has ended, the next
    one tells that it never came to an end."""
    starter = str(Path(sys.executable).parent / "opentelemetry-instrument")
    told: list[list[Any]] = []
    for program, given in ((BEGINS, [starter, CALLS]), (CALLS, [])):
        ended = run(provider, tmp_path, program, given=given, CONTEXT_LEDGER_SESSION_ID="s1")
        assert ended.code == 0
        lines = store.read(tmp_path / "ledger.jsonl").entries
        rows: list[Any] = [line["compaction"] for line in lines if line.get("kind") == "compaction"]
        told.append([len(provider.requests), *[(row["compaction_event"], row.get("outcome")) for row in rows]])
    assert told == [[3, ("c-1", None)], [4, ("c-1", None), ("c-1", "orphaned")]]


@pytest.mark.parametrize(
    ("writer", "began", "outcome"),
    [("here-1", 0.0, "orphaned"), ("there-1", 0.0, None), (None, 0.0, None), ("there-1", -4000.0, "orphaned")],
)
def test_when_a_compaction_of_another_process_is_over(writer: str | None, began: float, outcome: str | None) -> None:
    """If its process has ended, at once; if that cannot be told, after an hour."""
    courses = Courses(runs={"here-1": False}.get)
    event = {"compaction_event": "c-1", "begun": began, "settled": False}
    own = {"digest_scheme": "xxh3", "process": writer}
    courses.restore([{"self": own, "task": {"session_id": "s1"}, "compaction": event}], "xxh3")
    courses.arrive("s1", Scene(), 60.0)
    assert [told.row["outcome"] for told in courses.told()] == ([outcome] if outcome else [])


def test_what_was_declared_holds_for_the_ledger_that_starts_anew(provider: Provider, ledger: Ledger) -> None:
    """Constraints are declared for the process, or for a session of it, and not for one run of the instrumentation."""
    constraint("C1", RULE)
    with session("s1"):
        constraint("T1", "rename the queue", kind="todo")
        Agent(provider).asks([user("Fix it.")])
        constraint("T1", status="done")
    ledger.instrumentor.uninstrument()
    constraint("C2", "Ask before each deployment")
    ledger.instrumentor.instrument()
    with session("s1"):
        Agent(provider).asks([user(f"Fix it. {RULE}. Ask before each deployment.")])
        with compaction() as told:
            told.done(f"{RULE}. Ask before each deployment.")
    Agent(provider, "s2").asks([user("Fix it.")])
    checks = [(entry["constraints_check"], entry["constraints"]["counts"][0]) for entry in ledger.flat()]
    assert checks == [("lost", "declared=1"), ("held", "declared=2"), ("lost", "declared=2")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_tells_nothing_of_its_parents(provider: Provider, ledger: Ledger) -> None:
    """What waits when a process forks is told once, by the parent."""
    Agent(provider).asks(HISTORY)
    compaction("c-1").done("Goal: billing.")
    Agent(provider).asks(HISTORY)
    child = os.fork()
    if child == 0:
        try:
            ledger.instrumentor.uninstrument()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    ledger.instrumentor.uninstrument()
    assert [event["compaction_event"] for event in settled(ledger)] == ["c-1"]


class Judge:
    """A validator that asks a model, through a client that the ledger watches, from another thread."""

    name, version = "judge", "1"

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def match(self, constraint: Constraint, text: str) -> Match:
        asking = threading.Thread(target=self._agent.asks, args=([user("Is it there?")],))
        asking.start()
        asking.join(20)
        return Match("uncertain" if asking.is_alive() else "held", "model", 0.9)


def test_a_validator_that_asks_a_model(provider: Provider, ledger: Ledger) -> None:
    """The ledger holds no lock while a program's own validator tells, so that its calls go through; they are calls of
    the program, and what they are asked about in turn has an end."""
    validate_with(Judge(Agent(provider, "judge")))
    try:
        with session("s1"):
            constraint("C1", RULE)
        with session("s1"):
            Agent(provider).compacts("Goal: billing.")
    finally:
        validate_with(Wording())
    (event,) = settled(ledger)
    assert (event["validator"], event["validator_result"]) == ("judge@1", "pass")
    assert [e["constraints"]["evidence"] for e in ledger.flat() if e["session_id"] == "s1"] == [
        ["validator=judge@1"]
    ] * 3


def test_a_constraint_holds_where_it_was_declared(provider: Provider, ledger: Ledger) -> None:
    """Inside of a session for that one, elsewhere for all; each call is held against what holds for it."""
    with session("s1"):
        constraint("C1", RULE)
        Agent(provider).asks([user(f"Fix it. {RULE}."), user("go on")])
    with session("s2"):
        Agent(provider).asks([user("Fix it.")])
        constraint("C2", "Ask before each deployment")
    constraint("C3", "Fix it")
    with session("s1"):
        Agent(provider).asks([user("Fix it.")])
    assert [entry["constraints_check"] for entry in ledger.flat()] == ["held", None, "lost"]
    assert ledger.flat()[-1]["constraints"]["counts"] == ["declared=2", "lost=1", "uncertain=0"]


def test_declared_outside_of_the_program(
    settings: Path, signals: Signals, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Constraints of context-ledger.toml hold for every session; a number that nothing goes by is one warning."""
    file = tmp_path / "context-ledger.toml"
    file.write_text(f'[constraints]\nC1 = "{RULE}"\n[compaction]\nwindow = 1000\nloops = 4\n')
    monkeypatch.setenv("CONTEXT_LEDGER_CONFIG", str(file))
    running = Ledger(settings)
    with caplog.at_level(logging.WARNING):
        running.instrumentor.instrument()
    try:
        Agent(provider).asks([user(RULE)])
        assert running.flat()[0]["constraints_check"] == "held"
    finally:
        running.instrumentor.uninstrument()
    assert [record.getMessage() for record in caplog.records] == [
        "context ledger: context-ledger.toml: [compaction] has no loops; ignored"
    ]


def test_many_compactions_in_one_turn(provider: Provider, ledger: Ledger) -> None:
    """CP26: the third is told, with the advice to give this model a threshold of its own."""
    provider.script = always(Answer(tool_calls=(call("read"),)))
    agent = Agent(provider)
    agent.asks(HISTORY)
    for number in range(3):
        short = [summary(f"Goal: billing, part {number}."), user("go on")]
        agent.asks(short)
        agent.asks([*short, *HISTORY])
    told = [text for entry in ledger.flat() for text in entry["advice"] if "frequent" in text]
    assert [event.get("symptoms") for event in settled(ledger)][2] == ["frequent_compaction"]
    assert told[0].split(" hit_ratio")[0] == "larger_window: frequent compactions, in_turn=3"


TEXT = "Goal: billing."


def test_a_word_on_work_goes_to_where_it_was_declared() -> None:
    """A todo of the whole process that a session tells done is done."""
    letters = [
        Letter(None, None, Declared(0.0, Item(Constraint("T1", "rename the queue", kind="todo"), "active"))),
        Letter("s1", None, Declared(1.0, Item(Constraint("T1", ""), "done", ("pytest-41",)))),
    ]
    courses = Courses(take=lambda: [letters.pop(0) for _ in list(letters)])
    courses.arrive("s1", Scene(), 0.0)
    assert courses.asked("s1").todos == 0


def test_rules_files_mark_constraints() -> None:
    """A marked line declares; what the program says of the same id outranks it, and a line that is gone declares
    nothing."""
    marked = RulesFile("AGENTS.md").changed(f"- {RULE} <!-- constraint: C1 -->\n", 0.0)
    files: list[tuple[RulesFile, ...]] = [(marked,)]
    letters: list[Letter] = []
    courses = Courses(take=lambda: [letters.pop() for _ in list(letters)], files=lambda: files[-1])
    courses.arrive("s1", Scene(), 0.0)
    first = courses.asked("s1")
    letters.append(Letter(None, None, Declared(0.0, Item(Constraint("C1", "Edit nothing")))))
    courses.arrive("s1", Scene(), 0.0)
    then = courses.asked("s1")
    files.append((marked.changed("- Be kind\n", 1.0),))
    courses.arrive("s1", Scene(), 0.0)
    letters.clear()
    assert [one.rules for one in (first, then, courses.asked("s1"))] == [
        (Constraint("C1", RULE),), (Constraint("C1", "Edit nothing"),), (Constraint("C1", "Edit nothing"),),
    ]  # fmt: skip


def test_the_settings_of_compactions() -> None:
    """What the client goes by, when something is odd, and what is neither."""
    limits, thresholds, strange = configured({"window": 262144.0, "ratio": 0.85, "loop": 4.0, "early": 0.5, "x": 1.0})
    assert (limits.window, limits.ratio, limits.tokens, thresholds.loop, thresholds.early, strange) == (
        262144, 0.85, None, 4, 0.5, ("x",),
    )  # fmt: skip


def test_sessions_are_bounded() -> None:
    """The least recently used session goes first, and what waits in it is told as it is."""
    courses = Courses(most=2)
    courses.arrive("s1", Scene(model="m1"), 0.0)
    courses.fold("s1", Ended(1.0, "c-1", summary=TEXT))
    courses.told()
    for name in ("s2", "s3"):
        courses.arrive(name, Scene(), 0.0)
    assert [(one.session, one.settled, one.model, one.row["outcome"]) for one in courses.told()] == [
        ("s1", True, "m1", "done")
    ]
    assert courses.course("s1").count == 0


def test_two_calls_of_a_session_at_once() -> None:
    """What one thread folds while another one is at it is not lost."""
    courses = Courses(Rules(declared=Manifest((Item(Constraint("C1", RULE)),))))
    courses.arrive("s1", Scene(), 0.0)

    def compacts(number: int) -> None:
        courses.fold("s1", Begun(1.0, f"c-{number}"))
        courses.fold("s1", Ended(2.0, f"c-{number}", summary=TEXT))
        courses.fold("s1", Opened(3.0, f"e-{number}", extends=False))
        courses.fold("s1", Called(4.0, 10))

    threads = [threading.Thread(target=compacts, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    over = {one.row["compaction_event"] for one in courses.told() if one.settled}
    assert (over, courses.course("s1").count) == ({f"c-{number}" for number in range(6)}, 6)


def test_what_another_thread_folds_meanwhile_is_kept() -> None:
    """Who is at a session, and what was asked of it, are noted beside its course and never put an older one back."""
    courses = Courses()

    class Late(Scene):
        """A scene that takes its time to be compared: meanwhile another thread folds."""

        def __eq__(self, other: object) -> bool:
            courses.fold("s1", Ended(1.0, "c-1", summary=TEXT))
            return False

        __hash__ = Scene.__hash__

    courses.arrive("s1", Late(), 0.0)
    courses.arrive("s1", Late(), 0.0)
    assert courses.course("s1").waiting


def test_what_was_asked_is_made_once() -> None:
    """As long as nothing new is declared it is the same object, at the cost of a look."""
    courses = Courses(Rules(declared=Manifest((Item(Constraint("C1", RULE)),))))
    courses.fold("s1", Declared(0.0, Item(Constraint("C2", TEXT))))
    found = courses.asked("s1")
    assert (found is courses.asked("s1"), len(found.rules), courses.asked("s2").rules) == (
        True, 2, (Constraint("C1", RULE),),
    )  # fmt: skip
    assert Courses().asked("s1") == Asked()


def test_lines_of_another_key_tell_nothing(provider: Provider, ledger: Ledger) -> None:
    """Digests that were made otherwise are no digests of ours: the session begins anew."""
    Agent(provider).compacts(TEXT)
    lines = ledger.lines()
    same, other = Courses(), Courses()
    same.restore(lines, "xxh3")
    other.restore(lines, "b2k:1")
    name = flat(ledger.entries()[0])["session_id"]
    assert [one.arrive(name, Scene(), 0.0).count for one in (same, other)] == [1, 0]
