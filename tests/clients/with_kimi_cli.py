"""kimi-cli, the real coding agent: one session of several turns with tools, a compaction, and a resumption.

A first run, without the ledger, makes the session; the bare and the watched run both resume a copy of it, so that its
id and the time in its system prompt are the same in both.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest

from tests.clients.laws import measured
from tests.clients.running import BIN, Place, Ran, run
from tests.provider import Answer, Behaviour, Provider, by_prompt, call, in_order

CONFIG = """
default_model = "m"
telemetry = false

[models.m]
provider = "p"
model = "kimi-k3"
max_context_size = 262144
capabilities = ["thinking"]

[providers.p]
type = "kimi"
base_url = "{url}/kimi/v1"
api_key = "test-key"
"""
DECLARED = """
[constraints]
G = {text = "app.py prints hi", kind = "goal"}
C1 = "Never touch migrations"
C2 = "Ask before publish.sh is run"
"""
SUMMARY = "app.py prints hi; migrations are not to be touched. " * 4
READ = Answer("I look.", "It is one file.", (call("ReadFile", "call_1", path="app.py"),))
SHELL = Answer("I run it.", "", (call("Shell", "call_2", command="cat rules.txt"),))
SCRIPT = by_prompt(
    {
        "ZEROTH": [Answer("Hello.")],
        "FIRST": [READ, SHELL, Answer("It prints hi.")],
        "SECOND": [READ, Answer("Nothing else.")],
        "compact this conversation": [Answer(SUMMARY)],
        "THIRD": [READ, Answer("Done.")],
        "FOURTH": [Answer("Still done.")],
        "FIFTH": [Answer("Done after all.")],
    }
)
TURNS = ("FIRST, what does app.py do?", "SECOND, look once more.", "/compact keep the rules", "THIRD, go on.")
COMPACTION = 5


@dataclass(frozen=True, slots=True)
class Session:
    """The same turns without and with the ledger, and with it two more processes of one turn each: one that resumes the
    session, and one whose provider fails until the SDK has given up and the agent has made a new client."""

    bare: Ran
    watched: Ran
    resumed: Ran
    retried: Ran
    root: Path


def turns(place: Place, provider: Provider, *texts: str, instrumented: bool = True) -> Ran:
    """One process that is told these things one after the other, continuing the session of its directory."""
    root = place.folder.parent
    (root / "kimi.toml").write_text(CONFIG.format(url=provider.url), "utf-8")
    begun = ["--continue"] if (root / "share" / "sessions").exists() else []
    line = [
        str(BIN / "python"), str(BIN / "kimi"), "--print", "--input-format", "stream-json", "--output-format",
        "stream-json", "--config-file", str(root / "kimi.toml"), "--thinking", *begun,
    ]  # fmt: skip
    told = "".join(json.dumps({"role": "user", "content": text}) + "\n" for text in texts)
    env = {"KIMI_SHARE_DIR": str(root / "share"), "HOME": str(root / "home")}
    env["CONTEXT_LEDGER_CONFIG"] = str(root / "context-ledger.toml")
    env["CONTEXT_LEDGER_REPOSITORY"] = "auto"
    return run(lambda _: line, place, provider, instrumented, told, **env)


def again(place: Place) -> Iterator[Provider]:
    """A fresh provider, beside the session as the first run left it."""
    root = place.folder.parent
    shutil.rmtree(root / "share")
    shutil.copytree(root / "begun", root / "share")
    with Provider(SCRIPT) as provider:
        yield provider


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    root = tmp_path_factory.mktemp("kimi")
    place = Place(root / "repo", SCRIPT)
    for name in ("repo", "home"):
        (root / name).mkdir()
    (place.folder / "app.py").write_text('print("hi")\n', "utf-8")
    (place.folder / "AGENTS.md").write_text("Never touch migrations.\n", "utf-8")
    (place.folder / "rules.txt").write_text("Be brief.\n", "utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=place.folder, check=True)
    (root / "context-ledger.toml").write_text(DECLARED, "utf-8")
    with Provider(SCRIPT) as provider:
        turns(place, provider, "ZEROTH, hello.", instrumented=False)
    shutil.copytree(root / "share", root / "begun")
    (bare,) = [turns(place, provider, *TURNS, instrumented=False) for provider in again(place)]
    for provider in again(place):
        watched = turns(place, provider, *TURNS)
        resumed = turns(place, provider, "FOURTH, and now?")
        provider.plan = in_order([Behaviour(status=500)] * 3)
        retried = turns(place, provider, "FIFTH, and once more?")
    return Session(bare, watched, resumed, retried, root)


def test_the_agent_is_unharmed(session: Session) -> None:
    """Its output, its exit code and every byte that it sends are the same with and without the ledger."""
    bare, watched = session.bare, session.watched
    assert (bare.code, len(bare.requests)) == (0, 8)
    assert (watched.stdout, watched.stderr, watched.code) == (bare.stdout, bare.stderr, bare.code)
    assert [request.wire for request in watched.requests] == [request.wire for request in bare.requests]


def test_the_turns_were_run(session: Session) -> None:
    """What was planned did happen: tools were called and answered, and the context was compacted."""
    told = [json.loads(line) for line in session.watched.stdout.splitlines()]
    steps = [[one["function"]["name"] for one in said.get("tool_calls", [])] or said["role"] for said in told]
    read, shell = [["ReadFile"], "tool"], [["Shell"], "tool"]
    assert steps == [*read, *shell, "assistant", *read, "assistant", "assistant", *read, "assistant"]
    assert told[8]["content"] == "The context has been compacted."


def test_every_tool_arrives(session: Session) -> None:
    """The tools, which the agent gives as a generator, are all in every request; the summarising one has none."""
    sent = [len(request.json.get("tools") or []) for request in session.watched.requests]
    assert sent == [0 if at == COMPACTION else 15 for at in range(8)]


def test_one_entry_per_call_with_the_providers_numbers(session: Session) -> None:
    """Input, cached and output tokens of each call are what the provider counted, also in the second process."""
    told = [(e["input_tokens"], e["cached_tokens"], e["output_tokens"]) for e in session.resumed.entries]
    assert (told, len(told)) == (session.resumed.counted, 9)


def test_the_compaction_is_recognised(session: Session) -> None:
    """The summarising call is told apart, and the call after it says that the history was compacted."""
    told = [(e["request_kind"], e["miss_cause"]) for e in session.resumed.entries]
    agent = ("agent", None)
    assert told == [
        ("agent", "cold_start"), *[agent] * 4, ("compaction", None), ("agent", "history_compacted"), agent, agent,
    ]  # fmt: skip
    place = {"segment": "message", "index": 1, "name": "user", "offset": None, "kind": "compacted"}
    assert session.resumed.entries[COMPACTION + 1]["miss_position"] == place


def test_the_compaction_is_audited(session: Session) -> None:
    """One event, from the calls alone: the prompts before and after it as the provider counted them, and of what was
    declared the goal is held by the summary, one rule by AGENTS.md in the system part, and the other one is lost."""
    (event,) = session.watched.compactions
    before, after = session.watched.requests[COMPACTION - 1], session.watched.requests[COMPACTION + 1]
    assert [event[name] for name in ("kind", "outcome", "number", "attempts", "tokens_before", "tokens_after")] == [
        "full", "done", 1, 1, before.prompt, after.prompt,
    ]  # fmt: skip
    assert [event[name] for name in ("validator_result", "recall_held", "recall_asked", "lost")] == [
        "fail", 2, 3, ["C2"],
    ]  # fmt: skip


def test_every_call_after_it_names_its_summary(session: Session) -> None:
    """Also in the process that resumes the session: the digest of the summary, that it is not to be trusted, and what
    follows from that; the summarising call says nothing of it."""
    (event,) = session.watched.compactions
    told = [(e["summary_hash"], e["compaction_event"], e["summary_trusted"]) for e in session.resumed.entries]
    after = (event["summary_hash"], event["compaction_event"], False)
    assert told == [*[(None, None, None)] * (COMPACTION + 1), *[after] * 3]
    reason = f"new_session: the summary of compaction {event['compaction_event']} failed its validation"
    advised = [any(text.startswith(reason) for text in e["advice"]) for e in session.resumed.entries]
    assert advised == [False] * (COMPACTION + 1) + [True] * 3


def test_the_files_that_it_reads_are_known(session: Session) -> None:
    """One by its own tool, one more by its shell, in every call from then on; none is called stale, and the rules file
    in its system part is the one on disk."""
    told = [e for e in session.watched.entries if e["request_kind"] == "agent"]
    files = [e["repository"]["counts"][0] for e in told]
    assert files[:5] == ["files=0", "files=1", "files=2", "files=2", "files=2"]
    verdicts = {e["repo_check"] for e in told}
    assert ("fresh" in verdicts, verdicts - {"fresh", "unknown"}, told[-1]["policy_check"]) == (
        True,
        set(),
        "consistent",
    )
    assert {e["repo_snapshot"] for e in told} <= {"pending", "git:unborn"}


def test_the_session_is_the_agents_own(session: Session) -> None:
    """All calls, the summarising one and the resumed one too, are in the session that the agent names by its cache key,
    and the agent's version is told."""
    fields = ("session_source", "client_version", "call_end", "ledger_error")
    told = {tuple(e[name] for name in fields) for e in session.resumed.entries}
    assert told == {("cache_key", "KimiCLI/1.50.0", "complete", None)}
    assert len({e["session_id"] for e in session.resumed.entries}) == 1


def test_nothing_of_the_agent_is_in_the_ledger(session: Session) -> None:
    """No prompt, rule, file, path, cache key or device of the agent is in the ledger file, though all were sent."""
    first = session.watched.requests[0]
    headers = ("x-msh-device-id", "x-msh-device-name", "authorization")
    texts = ["Kimi Code CLI", "Never touch", "app.py", "test-key", str(session.root), first.json["prompt_cache_key"]]
    texts += [first.headers[name] for name in headers]
    sent = first.body.decode() + json.dumps(first.headers)
    assert [text for text in texts if text not in sent] == []
    written = (session.root / "repo.jsonl").read_text("utf-8")
    assert [text for text in texts if text in written] == []


def test_the_tools_keep_their_hash(session: Session) -> None:
    """The same tools have the same hash in every call that has any, in both processes."""
    told = [e["tool_schema_hash"] for e in session.resumed.entries]
    assert told.pop(COMPACTION) is None
    assert (len(set(told)), told[0][:5]) == (1, "xxh3:")


def test_the_coverage_table_names_this_release() -> None:
    """What `doctor` and the README call tested is the release that is tested here."""
    assert measured("kimi-cli") == metadata.version("kimi-cli")


def test_a_call_that_failed_and_was_made_again(session: Session) -> None:
    """The SDK's attempts are one call that failed; the agent's own second try, by a client made anew, is another, which
    is served from the cache and blames nothing."""
    assert (session.retried.code, json.loads(session.retried.stdout)["content"]) == (0, "Done after all.")
    fields = ("call_end", "error_type", "input_tokens", "cached_tokens", "miss_cause", "session_id")
    failed, made = [tuple(e[name] for name in fields) for e in session.retried.entries[9:]]
    name, last = session.watched.entries[0]["session_id"], session.retried.requests[-1]
    assert failed == ("failed", "InternalServerError", None, None, None, name)
    assert made == ("complete", None, last.prompt, session.resumed.requests[-1].prompt, None, name)
