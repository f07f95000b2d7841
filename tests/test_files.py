"""Files that a history read, in real work trees, looked at by a real thread, through the SDKs."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from xxhash import xxh3_64_intdigest

from otel_context_ledger import read, session
from otel_context_ledger import semconv as s
from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.verdicts import of_files
from otel_context_ledger.correctness.files import MAX_BYTES, MAX_WANTED, RACY_SECONDS, Shelf
from otel_context_ledger.correctness.looks import MISSING, OTHER, OUTSIDE, Looks, Shelved
from otel_context_ledger.correctness.repository import take
from tests.conftest import Ledger, Signals
from tests.provider import Provider
from tests.test_repository import configure, git, make

PATIENCE = 60.0

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture(autouse=True)
def git_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with `a.py` (`x = 1`) in a first commit."""
    return make(tmp_path / "repository")


def eventually(happened: Callable[[], Any]) -> Any:
    """What is true in the end, however busy the machine is."""
    until = time.monotonic() + PATIENCE
    while not (found := happened()):
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)
    return found


class TestShelf:
    @pytest.fixture
    def shelf(self, repository: Path) -> Iterator[Shelf]:
        """A shelf over the repository, that looks often."""
        running = Shelf(repository, time.time, ["docs/rules.md"], min_interval=0.01, idle=0.02)
        running.start()
        yield running
        running.stop(PATIENCE)

    def looks(self, shelf: Shelf, path: Path) -> Looks:
        shelf.want(str(path))
        return eventually(lambda: shelf.latest().files.get(str(path)))

    def digests(self, shelf: Shelf, path: Path) -> list[int | None]:
        return [span.digest for span in shelf.latest().files[str(path)].spans]

    def test_a_touched_file_is_the_same(self, shelf: Shelf, repository: Path):
        """RS03: other times of the same bytes are no change."""
        first = self.looks(shelf, repository / "a.py")
        os.utime(repository / "a.py", (1, 1))
        time.sleep(0.1)
        self.looks(shelf, repository / "a.py")
        assert self.digests(shelf, repository / "a.py") == [first.spans[0].digest]

    def test_other_bytes_under_the_same_size_and_time(self, shelf: Shelf, repository: Path):
        """RS04: the content decides, also long after the last change."""
        path = repository / "a.py"
        then = path.stat()
        self.looks(shelf, path)
        time.sleep(RACY_SECONDS + 0.3)
        path.write_text("x = 2\n")
        os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))
        assert path.stat().st_size == then.st_size
        eventually(lambda: len(self.digests(shelf, path)) == 2)

    def test_gone_and_back(self, shelf: Shelf, repository: Path):
        """A file that is deleted and written again has three states, of which the last is the first."""
        path = repository / "a.py"
        self.looks(shelf, path)
        path.unlink()
        eventually(lambda: self.digests(shelf, path)[-1] == MISSING)
        path.write_text("x = 1\n")
        eventually(lambda: len(self.digests(shelf, path)) == 3)
        assert self.digests(shelf, path)[0] == self.digests(shelf, path)[2]

    def test_where_a_file_lies(self, shelf: Shelf, repository: Path, tmp_path: Path):
        """A file of another work tree and one of none are told apart, and neither is read."""
        other = make(tmp_path / "other") / "a.py"
        (tmp_path / "loose.py").write_text("x")
        found = [self.looks(shelf, path) for path in (other, tmp_path / "loose.py")]
        assert [(one.place, one.spans[-1].digest) for one in found] == [(OTHER, None), (OUTSIDE, None)]

    def test_a_link_out_of_the_repository(self, shelf: Shelf, repository: Path, tmp_path: Path):
        """A link is what it points to: what lies outside is not read through it."""
        (tmp_path / "secret").write_text("s")
        (repository / "link").symlink_to(tmp_path / "secret")
        assert self.looks(shelf, repository / "link").place == OUTSIDE

    @pytest.mark.parametrize("kind", ["directory", "pipe", "unreadable name"])
    def test_what_is_no_file(self, shelf: Shelf, repository: Path, kind: str):
        """Something else in a file's place is unknown, and holds up nothing."""
        path = repository / "b.py"
        make_it = {"directory": Path.mkdir, "pipe": os.mkfifo, "unreadable name": lambda _: None}
        make_it[kind](path)
        wanted = Path(f"{path}{'n' * 300}") if kind == "unreadable name" else path
        assert self.looks(shelf, wanted).spans[-1].digest in (None, MISSING)

    def test_nobody_lets_the_writer_of_a_pipe_go_on(self, shelf: Shelf, repository: Path):
        """A pipe is never opened: whoever waits for its reader still waits after it was looked at."""
        path = repository / "pipe"
        os.mkfifo(path)
        writer = subprocess.Popen(["sh", "-c", 'echo x > "$0"', str(path)])
        try:
            assert [self.looks(shelf, path).spans[-1].digest, *self.digests(shelf, path)] == [None, None]
            shelf.want(str(path))
            shelf.poke()
            self.looks(shelf, repository / "a.py")
            assert writer.poll() is None
        finally:
            writer.kill()
            writer.wait()

    def test_a_pipe_for_a_git_directory(self, tmp_path: Path):
        """Whatever stands in the place of `.git` holds up nothing."""
        os.mkfifo(tmp_path / ".git")
        (tmp_path / "a.py").write_text("x")
        shelf = Shelf(tmp_path, time.time)
        shelf.start()
        found = self.looks(shelf, tmp_path / "a.py")
        shelf.stop(PATIENCE)
        assert (found.spans[-1].lines, shelf.latest().shared_git_dir) == (1, False)

    def test_a_directory_that_is_closed(self, shelf: Shelf, repository: Path):
        """Where nobody may look it is not known whether a file is there: it is not called deleted."""
        path = repository / "closed" / "a.py"
        path.parent.mkdir()
        path.write_text("x")
        self.looks(shelf, path)
        path.parent.chmod(0)
        try:
            if os.access(path, os.F_OK):
                pytest.skip("this user may look everywhere")
            eventually(lambda: len(self.digests(shelf, path)) == 2)
            assert self.digests(shelf, path)[-1] is None
        finally:
            path.parent.chmod(0o700)

    def test_a_link_that_is_set_anew(self, shelf: Shelf, repository: Path, tmp_path: Path):
        """Where a link points to is looked at each time: another file of the repository is other content, one outside
        is not read."""
        (repository / "v2.py").write_text("x = 2\n")
        (tmp_path / "secret").write_text("s")
        link = repository / "now.py"
        link.symlink_to("a.py")
        first = self.looks(shelf, link)
        self.set_link(link, "v2.py")
        eventually(lambda: len(self.digests(shelf, link)) == 2)
        self.set_link(link, str(tmp_path / "secret"))
        eventually(lambda: shelf.latest().files[str(link)].place == OUTSIDE)
        assert first.real == str((repository / "a.py").resolve())
        assert self.digests(shelf, link)[-1] is None

    def set_link(self, link: Path, target: str) -> None:
        other = link.with_name("other link")
        other.symlink_to(target)
        other.replace(link)

    def test_a_repository_that_goes_and_comes_back(self, shelf: Shelf, repository: Path):
        """When it is gone that is said, and no file in it is judged; back again it is as before."""
        first = self.looks(shelf, repository / "a.py")
        away = repository.with_name("away")
        repository.rename(away)
        eventually(lambda: shelf.latest().rooted is False)
        away.rename(repository)
        eventually(lambda: shelf.latest().rooted)
        eventually(lambda: self.digests(shelf, repository / "a.py")[-1] == first.spans[0].digest)

    def test_a_repository_that_is_made_later(self, tmp_path: Path):
        """A directory that becomes a repository is one from then on."""
        shelf = Shelf(tmp_path, time.time, min_interval=0.01, idle=0.02)
        shelf.start()
        eventually(lambda: shelf.latest().rooted is False)
        git(tmp_path, "init", "--quiet")
        eventually(lambda: shelf.latest().rooted)
        shelf.stop(PATIENCE)

    def test_a_look_that_is_asked_for(self, repository: Path):
        """AR18: whoever asks for a look waits for no rest, and is told when all that is wanted was looked at."""
        shelf = Shelf(repository, time.time, min_interval=600, idle=600)
        shelf.start()
        assert shelf.ask()(PATIENCE)
        for text in ("x = 2\n", "x = 3\n"):
            shelf.want(str(repository / "a.py"))
            (repository / "a.py").write_text(text)
            assert shelf.ask()(PATIENCE)
            assert shelf.latest().files[str(repository / "a.py")].spans[-1].digest == xxh3_64_intdigest(text.encode())
        shelf.stop(PATIENCE)

    def test_a_look_that_nobody_takes(self, repository: Path):
        """AR18: before the start and after the end whoever asks is told that nobody looks, without waiting."""
        shelf = Shelf(repository, time.time)
        before = shelf.ask()(0)
        shelf.start()
        shelf.stop(PATIENCE)
        assert (before, shelf.ask()(0)) == (False, False)

    def test_what_nobody_looks_at_any_more_is_not_told(self, repository: Path):
        """When no round comes to its end, what was seen before is too old to be a verdict on now."""
        shelf = Shelf(repository, time.time, min_interval=0.01, idle=0.02, patience=0.1)
        shelf.start()
        self.looks(shelf, repository / "a.py")
        shelf.stop(PATIENCE)
        eventually(lambda: shelf.latest() == Shelved())

    def test_a_huge_file(self, shelf: Shelf, repository: Path):
        """A file that is larger than the limit is not read, and unknown."""
        with (repository / "huge.bin").open("wb") as stream:
            stream.truncate(MAX_BYTES + 1)
        assert self.looks(shelf, repository / "huge.bin").spans[-1].digest is None

    def test_the_root_from_below(self, repository: Path):
        """A path that a client means from the root on is found when the program works below it."""
        (repository / "below").mkdir()
        shelf = Shelf(repository / "below", time.time)
        shelf.start()
        found = self.looks(shelf, repository / "below" / "a.py")
        shelf.stop(PATIENCE)
        assert found.spans[-1].lines == 1

    def test_no_repository(self, tmp_path: Path):
        """Without a repository that is said, and rules files of the working directory are still read."""
        (tmp_path / "AGENTS.md").write_text("Never push to main.\n")
        shelf = Shelf(tmp_path, time.time)
        shelf.start()
        known = eventually(lambda: shelf.latest().rules and shelf.latest())
        shelf.stop(PATIENCE)
        assert (known.rooted, [file.name for file in known.rules]) == (False, ["AGENTS.md"])

    def test_rules_files_and_their_versions(self, shelf: Shelf, repository: Path):
        """Rules files come with their names in the project and each state they were seen in."""
        (repository / "docs").mkdir()
        (repository / "docs" / "rules.md").write_text("Write tests first.\n")
        (repository / "AGENTS.md").write_text("Never push to main.\n")
        eventually(lambda: len(shelf.latest().rules) == 2)
        (repository / "AGENTS.md").write_text("Never push to master.\n")
        eventually(lambda: len(shelf.latest().rules[0].versions) == 2)
        agents, own = shelf.latest().rules
        assert [version.lines for version in agents.versions] == [("never push to main.",), ("never push to master.",)]
        assert (agents.name, own.name) == ("AGENTS.md", "docs/rules.md")

    def test_a_rules_file_is_as_old_as_it_says(self, shelf: Shelf, repository: Path):
        """The state that a process finds is there since the file was written, and not since somebody looked."""
        file = repository / "docs" / "rules.md"
        file.parent.mkdir()
        written = repository / "draft.md"
        written.write_text("Write tests first.\n")
        os.utime(written, (1_000_000.0, 1_000_000.0))
        written.rename(file)
        (rules,) = eventually(lambda: shelf.latest().rules)
        assert rules.current.since == 1_000_000.0

    def test_a_copied_work_tree(self, repository: Path, tmp_path: Path):
        """RS06: a linked work tree is sound; its copy still has the original's git directory, which is a warning."""
        git(repository, "worktree", "add", "--quiet", str(tmp_path / "linked"))
        shutil.copytree(tmp_path / "linked", tmp_path / "copy")
        assert [self.shared(tmp_path / name) for name in ("linked", "copy", "repository")] == [False, True, False]

    def shared(self, directory: Path) -> bool:
        shelf = Shelf(directory, time.time)
        shelf.start()
        eventually(lambda: shelf.latest().rooted)
        shelf.stop(PATIENCE)
        return shelf.latest().shared_git_dir

    @pytest.mark.parametrize("gitfile", ["gitdir: /nowhere/at/all\n", "\0\xff", ""])
    def test_a_git_directory_that_is_not_there(self, tmp_path: Path, gitfile: str):
        """RS07: without an object store files are looked at all the same."""
        (tmp_path / ".git").write_text(gitfile, "latin-1")
        (tmp_path / "a.py").write_text("x")
        shelf = Shelf(tmp_path, time.time)
        shelf.start()
        found = self.looks(shelf, tmp_path / "a.py")
        shelf.stop(PATIENCE)
        assert (found.spans[-1].lines, shelf.latest().shared_git_dir) == (1, False)

    def test_bounded(self, shelf: Shelf, repository: Path):
        """However many files are wanted, the latest so many are looked at."""
        for at in range(0, MAX_WANTED + 200, 100):
            for number in range(at, at + 100):
                shelf.want(str(repository / f"{number}.py"))
            eventually(lambda at=at: str(repository / f"{at}.py") in shelf.latest().files)
        eventually(lambda: len(shelf.latest().files) <= MAX_WANTED)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_a_forked_child_looks_itself(self, shelf: Shelf, repository: Path):
        """The thread is the parent's; a child's poke starts one of its own."""
        self.looks(shelf, repository / "a.py")

        def child(found: Any) -> None:
            shelf.want(str(repository / "uv.lock"))
            shelf.poke()
            found.put(bool(self.looks(shelf, repository / "uv.lock").spans))

        context = multiprocessing.get_context("fork")
        found = context.SimpleQueue()
        process = context.Process(target=child, args=(found,))
        process.start()
        process.join(PATIENCE)
        assert (process.exitcode, found.empty() or found.get()) == (0, True)


# The whole way


class Agent:
    """A small agent: a conversation that grows, and tools that it runs itself."""

    def __init__(self, provider: Provider, ledger: Ledger, system: str = "You are an agent.") -> None:
        self.url, self.ledger, self.calls = f"{provider.url}/kimi/v1", ledger, 0
        self.said: list[dict[str, Any]] = [{"role": "system", "content": system}, {"role": "user", "content": "Fix."}]

    def runs(self, name: str, result: str, **arguments: Any) -> Agent:
        """The model called a tool, whose result is sent with the next call."""
        self.calls += 1
        made = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"c{self.calls}", "type": "function", "function": made}
        self.said.append({"role": "assistant", "content": None, "tool_calls": [call]})
        self.said.append({"role": "tool", "tool_call_id": f"c{self.calls}", "content": result})
        return self

    def asks(self) -> dict[str, Any]:
        """One call; its entry's fields."""
        with openai.OpenAI(base_url=self.url, api_key="test-key", max_retries=0) as client:
            client.chat.completions.create(model="kimi-k3", messages=self.said)  # type: ignore[arg-type]
        return self.ledger.flat()[-1]

    def asks_until(self, verdict: str, field: str = "repo_check") -> dict[str, Any]:
        """Asks again and again until an entry has this verdict."""
        return eventually(lambda: (entry := self.asks())[field] == verdict and entry)


@pytest.fixture
def watched(settings: Path, signals: Signals, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """The instrumented process, at work in the repository."""
    monkeypatch.setenv("CONTEXT_LEDGER_REPOSITORY", str(repository))
    running = Ledger(settings)
    running.instrumentor.instrument()
    yield running
    running.instrumentor.uninstrument()


def test_a_branch_switched_by_the_shell(provider: Provider, watched: Ledger, repository: Path) -> None:
    """RS01, RS02: after a checkout of another branch the file that was read is stale, and after the way back fresh."""
    git(repository, "checkout", "--quiet", "-b", "other")
    (repository / "a.py").write_text("x = 2\n")
    git(repository, "commit", "--quiet", "-am", "other")
    git(repository, "checkout", "--quiet", "main")
    agent = Agent(provider, watched).runs("ReadFile", "     1\tx = 1\n", path="a.py")
    before = agent.asks_until("fresh")
    git(repository, "checkout", "--quiet", "other")
    there = agent.asks_until("stale")
    git(repository, "checkout", "--quiet", "main")
    back = agent.asks_until("fresh")
    assert [entry["repository"]["counts"] for entry in (before, there, back)] == [
        ["files=1", "fresh=1/1"], ["files=1", "fresh=0/1", "stale=1", "deleted=0"], ["files=1", "fresh=1/1"],
    ]  # fmt: skip
    assert there["repository"]["evidence"] == ["external_change=1"]
    eventually(lambda: agent.asks()["repo_snapshot"] == before["repo_snapshot"])


def test_what_a_program_has_looked_at(provider: Provider, watched: Ledger, repository: Path) -> None:
    """AR18: after a look that a program asked for and waited for, its next call tells the repository as it is."""
    agent, told = Agent(provider, watched), []
    for text in ("x = 2\n", "x = 3\n"):
        (repository / "a.py").write_text(text)
        assert watched.instrumentor.look(PATIENCE)
        told.append(agent.asks()["repo_snapshot"])
    assert told == [take_after(repository, text) for text in ("x = 2\n", "x = 3\n")]


def take_after(repository: Path, text: str) -> str:
    (repository / "a.py").write_text(text)
    return take(repository, PATIENCE, time.time).identity


def changes(provider: Provider, watched: Ledger, root: Path) -> list[dict[str, Any]]:
    """The entries of an agent in whose repository a file is added, the submodule moves and the lockfile changes, up to
    the one after which all three were told of."""
    agent = Agent(provider, watched)
    eventually(lambda: agent.asks()["repo_snapshot"].startswith("git:"))
    (root / "secret-name.py").write_text("y")
    git(root / "sub", "commit", "--quiet", "--allow-empty", "-m", "moved")
    (root / "uv.lock").write_text("version = 2\n")

    def told() -> list[dict[str, Any]]:
        agent.asks()
        found = [entry for entry in watched.flat() if entry["repo_changes"]]
        return found if len({word for entry in found for word in entry["repo_changes"]}) == 3 else []

    return [*eventually(told)]


@pytest.fixture
def composed(repository: Path, tmp_path: Path) -> Path:
    """The repository with a submodule."""
    git(repository, "submodule", "--quiet", "add", str(make(tmp_path / "inner")), "sub")
    git(repository, "commit", "--quiet", "-m", "with submodule")
    return repository


def test_changes_by_count(provider: Provider, composed: Path, watched: Ledger, signals: Signals) -> None:
    """RS08: an entry says how many files of which kind changed since the comparable call; no name of one is in the
    ledger file, in an event, on a span or in a metric."""
    entries = changes(provider, watched, composed)
    assert {word for entry in entries for word in entry["repo_changes"]} == {"submodule=1", "lockfile=1", "untracked=1"}
    assert {path for entry in entries for path in entry["repo_paths"]} == set()
    spans = [dict(span.attributes or {}) for span in signals.spans.get_finished_spans()]
    events = [dict(event.attributes or {}) for event in signals.logged()]
    left = watched.file.read_text("utf-8") + repr((spans, events, signals.counted()))
    assert [name for name in ("secret-name", "uv.lock", str(composed)) if name in left] == []
    assert any(s.CONTEXT_LEDGER_REPO_CHANGES in event for event in events)


def test_changes_by_name(
    provider: Provider, settings: Path, composed: Path, monkeypatch: pytest.MonkeyPatch, signals: Signals
) -> None:
    """RS08: who opted in gets the paths too."""
    monkeypatch.setenv("CONTEXT_LEDGER_REPOSITORY", str(composed))
    monkeypatch.setenv("CONTEXT_LEDGER_REPOSITORY_PATHS", "true")
    running = Ledger(settings)
    running.instrumentor.instrument()
    try:
        entries = changes(provider, running, composed)
    finally:
        running.instrumentor.uninstrument()
    assert {path for entry in entries for path in entry["repo_paths"]} == {
        "submodule:sub", "lockfile:uv.lock", "untracked:secret-name.py",
    }  # fmt: skip
    assert {len(entry["repo_paths"]) - len(entry["repo_changes"]) for entry in entries} == {0}


def test_a_formatter_after_the_own_write(provider: Provider, watched: Ledger, repository: Path) -> None:
    """RS12: the agent's own write keeps its knowledge fresh; what a formatter makes of it weighs little."""
    (repository / "a.py").write_text("y=1\n")
    agent = Agent(provider, watched).runs("WriteFile", "File successfully overwritten.", path="a.py", content="y=1\n")
    own = agent.asks_until("fresh")
    (repository / "a.py").write_text("y = 1\n")
    formatted = agent.asks_until("stale")
    assert (own["repository"]["detail"], formatted["repository"]["detail"]) == ([], ["low"])


def test_two_agents_and_one_file(provider: Provider, watched: Ledger, repository: Path) -> None:
    """RS11: who writes on a state that another session has replaced is told so, and by whom it was."""
    one, other = Agent(provider, watched), Agent(provider, watched)
    with session("A"):
        one.runs("ReadFile", "     1\tx = 1\n", path="a.py").asks_until("fresh")
    (repository / "a.py").write_text("x = 7\n")
    with session("B"):
        other.runs("WriteFile", "File successfully overwritten.", path="a.py", content="x = 7\n").asks_until("fresh")
    with session("A"):
        one.asks_until("stale")
        (repository / "a.py").write_text("y = 7\n")
        wrote = one.runs(
            "StrReplaceFile", "File successfully edited.", path="a.py", edit={"old": "x", "new": "y"}
        ).asks()
    assert (wrote["repo_check"], wrote["repository"]["detail"], wrote["repository"]["evidence"]) == (
        "stale", ["stale_write"], ["writer=B"],
    )  # fmt: skip


def test_one_file_by_two_paths(provider: Provider, watched: Ledger, repository: Path) -> None:
    """What was read through a link is the file that it points to; its edit beside the link is the agent's own."""
    (repository / "AGENTS.md").write_text("Be brief, and say nothing that is not asked.\n")
    (repository / "CLAUDE.md").symlink_to("AGENTS.md")
    text = "Be long, and say everything that comes to mind.\n"
    agent = Agent(provider, watched).runs("Read", "Be brief.", file_path="CLAUDE.md")
    agent.asks_until("fresh")
    again = agent.runs("Read", "Be brief.", file_path="AGENTS.md").asks_until("fresh")
    (repository / "AGENTS.md").write_text(text)
    edited = agent.runs("Write", "Written.", file_path="AGENTS.md", content=text).asks_until("fresh")
    (repository / "AGENTS.md").write_text("Be yourself.\n")
    changed = agent.asks_until("stale")
    assert {entry["repository"]["counts"][0] for entry in (again, edited, changed)} == {"files=1"}


def test_what_the_program_says_it_has_read(provider: Provider, watched: Ledger, repository: Path) -> None:
    """`read(path)` is for reads that no tool call shows; it holds for the session that it was said in."""
    agent = Agent(provider, watched)
    with session("S"):
        read(repository / "a.py")
        agent.asks_until("fresh")
        (repository / "a.py").write_text("x = 2\n")
        agent.asks_until("stale")
    with session("other"):
        elsewhere = Agent(provider, watched).asks()
    assert elsewhere["repository"]["evidence"] == ["reason=nothing_read"]


@pytest.mark.parametrize("path", [None, 7, "\0", b"\xff", object()])
def test_nothing_said_of_a_read_raises(path: Any) -> None:
    """Nonsense is a warning at most."""
    with session("nonsense"):
        assert read(path) is None


def test_rules_on_disk_and_in_the_prompt(provider: Provider, watched: Ledger, repository: Path) -> None:
    """The whole way of a rules file: in the prompt as on disk, then edited on disk, and named in the entry."""
    (repository / "AGENTS.md").write_text("# Rules\n\n- Never edit files under migrations.\n")
    agent = Agent(provider, watched, "You are an agent.\n# Rules\n\n- Never edit files under migrations.\n")
    agent.asks_until("consistent", "policy_check")
    (repository / "AGENTS.md").write_text(
        "# Rules\n\n- Never edit files under migrations.\n- Answer in English only.\n"
    )
    stale = agent.asks_until("stale", "policy_check")
    assert [word.partition(":")[0] for word in stale["policy"]["evidence"]] == ["stale=AGENTS.md"]


def test_repeated_reads_are_measured(provider: Provider, watched: Ledger, signals: Signals) -> None:
    """RS10 through the SDK: the entry, its span and the metric have the bytes that were there already."""
    result = "     1\tx = 1\n"
    agent = Agent(provider, watched).runs("ReadFile", result, path="a.py")
    agent.asks()
    entry = agent.runs("ReadFile", result, path="a.py").asks()
    span = signals.spans.get_finished_spans()[-1]
    found = (entry["repeated_read_bytes"], span.attributes[s.CONTEXT_LEDGER_REPEATED_READ_BYTES])
    assert found == (len(result), len(result))
    assert sum(value for _, value in signals.counted()[s.METRIC_REPEATED_READ]) >= len(result)


def test_repeated_reads_in_tokens() -> None:
    """RS10: what stood in the history already is told in bytes, and in tokens by the request's own bytes for each; of a
    call that reported none, in bytes alone."""
    told = {"request": {"repeated_read_bytes": 1000}, "context": {"prefix_locator": ["3:4000:aa", "1:100:bb"]}}
    counted = told | {"cache": {"input_tokens": 500}}
    assert [[*of_files(Call(line))][-1] for line in (told, counted)] == [
        "1,000 bytes of what was read stood in the history already.",
        "1,000 bytes of what was read stood in the history already, about 125 tokens.",
    ]


def test_no_name_of_a_file_leaves(provider: Provider, watched: Ledger, signals: Signals, repository: Path) -> None:
    """Neither names nor paths of files that were read are in the line, the span or the event."""
    (repository / "marker_name.py").write_text("marker_text = 1\n")
    agent = Agent(provider, watched).runs("ReadFile", "     1\tmarker_text = 1\n", path=f"{repository}/marker_name.py")
    entry = agent.asks_until("fresh")
    said = json.dumps(entry) + "".join(json.dumps(dict(span.attributes)) for span in signals.spans.get_finished_spans())
    said += "".join(json.dumps(dict(event.attributes)) for event in signals.logged())
    assert [word for word in ("marker_name", "marker_text", str(repository)) if word in said] == []


def test_an_agent_that_has_a_shell_alone(provider: Provider, watched: Ledger, repository: Path) -> None:
    """What `sed` printed is known like any read; the agent's own patch by the shell is no change by others, and what
    another one does to the file afterwards is told."""
    (repository / "a.py").write_text("x = 1\ny = 1\n")
    agent = Agent(provider, watched).runs("exec_command", "x = 1\n", cmd="sed -n '1,1p' a.py", workdir=str(repository))
    read = agent.asks_until("fresh")
    (repository / "a.py").write_text("x = 2\ny = 1\n")
    patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch\nEOF"
    patched = agent.runs("exec_command", "Exit code: 0\nOutput:\nSuccess.", cmd=patch).asks_until("fresh")
    (repository / "a.py").write_text("x = 3\ny = 1\n")
    changed = agent.asks_until("stale")
    told = ["files=1", "fresh=1/1", "partial=1"]
    assert [entry["repository"]["counts"] for entry in (read, patched)] == [told, told]
    assert (changed["repository"]["detail"], changed["repository"]["evidence"][0]) == (["low"], "external_change=1")


def test_a_program_that_goes_elsewhere(
    provider: Provider, settings: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path begins where the program works now, not where it began: a file of the same name there is not
    taken for it."""
    (repository / "sub").mkdir()
    (repository / "sub" / "a.py").write_text("y = 1\n")
    monkeypatch.setenv("CONTEXT_LEDGER_REPOSITORY", "auto")
    monkeypatch.chdir(repository)
    running = Ledger(settings)
    running.instrumentor.instrument()
    try:
        monkeypatch.chdir(repository / "sub")
        agent = Agent(provider, running).runs("ReadFile", "     1\ty = 1\n", path="a.py")
        agent.asks_until("fresh")
        (repository / "sub" / "a.py").write_text("y = 2\n")
        stale = agent.asks_until("stale")
    finally:
        running.instrumentor.uninstrument()
    assert stale["repository"]["counts"] == ["files=1", "fresh=0/1", "stale=1", "deleted=0"]


def test_tools_of_the_users_own(
    provider: Provider, settings: Path, repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """[reads] and [policy] of context-ledger.toml name tools, arguments and rules files."""
    file = tmp_path / "mine.toml"
    file.write_text(
        '[reads.tools]\nfetch = "read"\n[reads.arguments]\npath = ["what"]\n[policy]\nfiles = ["rules.txt"]\n'
    )
    (repository / "rules.txt").write_text("Never edit files under migrations.\n")
    monkeypatch.setenv("CONTEXT_LEDGER_CONFIG", str(file))
    monkeypatch.setenv("CONTEXT_LEDGER_REPOSITORY", str(repository))
    running = Ledger(settings)
    running.instrumentor.instrument()
    try:
        entry = Agent(provider, running).runs("fetch", "x = 1", what="a.py").asks_until("fresh")
    finally:
        running.instrumentor.uninstrument()
    assert (entry["policy_check"], entry["policy"]["evidence"]) == ("missing", ["missing=rules.txt"])


def test_without_a_repository(
    provider: Provider, settings: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """RS07: where there is no repository the call is made and the verdict says so."""
    (tmp_path / "bare").mkdir()
    monkeypatch.setenv("CONTEXT_LEDGER_REPOSITORY", str(tmp_path / "bare"))
    running = Ledger(settings)
    running.instrumentor.instrument()
    try:
        entry = Agent(provider, running).runs("ReadFile", "     1\tx", path="a.py").asks_until("unavailable")
    finally:
        running.instrumentor.uninstrument()
    assert entry["repository"]["evidence"] == ["reason=no_repository"]
