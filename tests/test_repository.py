"""The repository snapshot on real repositories: what changes its identity, what does not, and how it says "unknown"."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from otel_context_ledger.checking import Checking, Pillars
from otel_context_ledger.correctness.manifest import LOCKFILES, MAX_ITEMS, Item, Manifest, Manifests, Moved, moved
from otel_context_ledger.correctness.repository import (
    GIT_ERROR,
    NO_GIT,
    NO_REPOSITORY,
    PENDING,
    TIMEOUT,
    UNBORN,
    WHOLE_FILE_BYTES,
    Snapshot,
    Watcher,
    take,
)

PATIENCE = 60.0

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

GIT_SETTINGS = {
    "user.name": "nobody",
    "user.email": "nobody@example.invalid",
    "init.defaultBranch": "main",
    "protocol.file.allow": "always",
    "commit.gpgSign": "false",
}


def configure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Git settings from the environment, none from the machine."""
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_COUNT", str(len(GIT_SETTINGS)))
    for number, (key, value) in enumerate(GIT_SETTINGS.items()):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", key)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", value)


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch)


def git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=directory, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make(directory: Path) -> Path:
    directory.mkdir(parents=True)
    git(directory, "init", "--quiet")
    (directory / "a.py").write_text("x = 1\n")
    (directory / "uv.lock").write_text("version = 1\n")
    (directory / ".gitignore").write_text("*.log\nyarn.lock\n")
    git(directory, "add", ".")
    git(directory, "commit", "--quiet", "-m", "first")
    return directory


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make(tmp_path / "repository")


def look(directory: Path) -> Snapshot:
    return take(directory, PATIENCE, lambda: 7.0)


def identity(directory: Path) -> str:
    return look(directory).identity


class TestIdentity:
    def test_clean(self, repository: Path):
        """A clean work tree: digest of 32 hex digits, the full commit id, not dirty, the clock's time."""
        snapshot = look(repository)

        assert snapshot == Snapshot(snapshot.identity, git(repository, "rev-parse", "HEAD"), False, 7.0)
        assert snapshot.identity.startswith("git:")
        assert len(bytes.fromhex(snapshot.identity[4:])) == 16

    def test_same_content_elsewhere(self, repository: Path, tmp_path: Path):
        """The same commit and work tree in another directory has the same identity: no absolute path is in it."""
        git(tmp_path, "clone", "--quiet", str(repository), "copy")
        (repository / "new.py").write_text("y")
        (tmp_path / "copy" / "new.py").write_text("y")

        assert look(repository) == look(tmp_path / "copy")

    def test_from_below(self, repository: Path):
        """From any directory of the work tree it is the same snapshot of the whole repository."""
        below = repository / "b" / "c"
        below.mkdir(parents=True)
        (repository / "a.py").write_text("x = 2\n")

        assert look(below) == look(repository)

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param(lambda root: (root / "a.py").write_text("x = 2\n"), id="edited"),
            pytest.param(lambda root: (root / "a.py").unlink(), id="deleted"),
            pytest.param(lambda root: (root / "a.py").chmod(0o755), id="mode"),
            pytest.param(lambda root: (root / "new.py").write_text("y"), id="untracked"),
            pytest.param(lambda root: (root / "a b\n\u00e9.py").write_text("y"), id="untracked-odd-name"),
            pytest.param(lambda root: (root / "link").symlink_to("a.py"), id="untracked-link"),
            pytest.param(lambda root: (root / "uv.lock").write_text("version = 2\n"), id="lockfile"),
            pytest.param(lambda root: git(root, "rm", "--quiet", "--cached", "a.py"), id="index"),
        ],
    )
    def test_change(self, repository: Path, change: Callable[[Path], object]):
        """Every change of the code world changes the identity, makes it dirty and leaves the commit."""
        before = look(repository)
        change(repository)
        after = look(repository)

        assert (after.identity != before.identity, after.dirty, after.head) == (True, True, before.head)

    def test_ignored_lockfile(self, repository: Path):
        """A lockfile counts even where git ignores it; for git the work tree stays clean."""
        assert "yarn.lock" in LOCKFILES
        before = look(repository)
        (repository / "yarn.lock").write_text("version 1\n")
        (repository / "other.log").write_text("noise")
        after = look(repository)

        assert (after.identity != before.identity, after.dirty) == (True, False)

    def test_ignored_file(self, repository: Path):
        """Other ignored files are not part of it."""
        before = look(repository)
        (repository / "other.log").write_text("noise")

        assert look(repository) == before

    @pytest.mark.parametrize("name", ["a.py", "new.py"])
    def test_content_decides(self, repository: Path, name: str):
        """Two edits of the same size and modification time are two states."""
        path = repository / name
        found = []
        for text in ("x = 2\n", "x = 3\n"):
            path.write_text(text)
            os.utime(path, (1, 1))
            found.append(identity(repository))

        assert found[0] != found[1]

    def test_touch(self, repository: Path):
        """Modification times and a refreshed index change nothing, in a clean and in a dirty work tree."""
        found = [identity(repository)]
        os.utime(repository / "a.py", (1, 1))
        found.append(identity(repository))
        git(repository, "update-index", "--refresh")
        found.append(identity(repository))
        (repository / "uv.lock").write_text("version = 2\n")
        dirty = [identity(repository)]
        os.utime(repository / "uv.lock", (1, 1))
        dirty.append(identity(repository))

        assert (len(set(found)), len(set(dirty))) == (1, 1)

    def test_reset_and_edit_again(self, repository: Path):
        """The same edit after a reset is the same state."""
        found = []
        for _ in range(2):
            (repository / "a.py").write_text("x = 2\n")
            found.append(identity(repository))
            git(repository, "reset", "--quiet", "--hard")
            found.append(identity(repository))

        assert (found[:2] == found[2:], found[0] != found[1]) == (True, True)

    def test_switch_away_and_back(self, repository: Path):
        """Another branch with other content is another state, and back is the same one as before (RS02)."""
        first = look(repository)
        git(repository, "checkout", "--quiet", "-b", "other")
        same_commit = look(repository)
        (repository / "a.py").write_text("x = 2\n")
        git(repository, "commit", "--quiet", "-am", "second")
        second = look(repository)
        git(repository, "checkout", "--quiet", "main")

        assert (same_commit, look(repository)) == (first, first)
        assert (second.identity != first.identity, second.head != first.head, second.dirty) == (True, True, False)

    def test_conflict(self, repository: Path):
        """A merge that stopped in a conflict is a dirty state like any other."""
        git(repository, "checkout", "--quiet", "-b", "other")
        (repository / "a.py").write_text("x = 2\n")
        git(repository, "commit", "--quiet", "-am", "second")
        git(repository, "checkout", "--quiet", "main")
        (repository / "a.py").write_text("x = 3\n")
        git(repository, "commit", "--quiet", "-am", "third")
        before = look(repository)
        subprocess.run(["git", "merge", "other"], cwd=repository, capture_output=True, check=False)
        conflict = look(repository)
        (repository / "a.py").write_text("x = 23\n")

        assert (conflict.dirty, conflict.head) == (True, before.head)
        assert len({before.identity, conflict.identity, identity(repository)}) == 3

    def test_submodule(self, repository: Path, tmp_path: Path):
        """A submodule counts with its commit and its own changes, staged outside or not."""
        inner = make(tmp_path / "inner")
        git(repository, "submodule", "--quiet", "add", str(inner), "sub")
        git(repository, "commit", "--quiet", "-m", "with submodule")
        inside = repository / "sub"
        found = [look(repository)]
        for text in ("x = 2\n", "x = 3\n"):
            (inside / "a.py").write_text(text)
            found.append(look(repository))
        for message in ("one", "two"):
            git(inside, "commit", "--quiet", "--allow-empty", "-am", message)
            found.append(look(repository))

        assert [snapshot.dirty for snapshot in found] == [False, True, True, True, True]
        assert len({snapshot.identity for snapshot in found}) == len(found)
        assert {snapshot.head for snapshot in found} == {found[0].head}

    def test_repository_inside(self, repository: Path):
        """A repository inside that nobody tracks counts with its commit."""
        inner = make(repository / "inner")
        before = look(repository)
        git(inner, "commit", "--quiet", "--allow-empty", "-m", "second")

        assert look(repository).identity != before.identity

    def test_large_file(self, repository: Path):
        """Beyond the cap the size, the start and the end of a file count."""
        path = repository / "large"
        sizes = (WHOLE_FILE_BYTES + 2, WHOLE_FILE_BYTES + 3)
        found = []
        for size in sizes:
            with path.open("wb") as stream:
                stream.truncate(size)
            found.append(identity(repository))
        for place in (0, sizes[1] - 1):
            with path.open("r+b") as stream:
                stream.seek(place)
                stream.write(b"x")
            found.append(identity(repository))

        assert len(set(found)) == 4

    def test_work_tree(self, repository: Path):
        """A linked work tree is a repository of its own state."""
        before = look(repository)
        git(repository, "worktree", "add", "--quiet", str(repository.parent / "tree"))
        tree = repository.parent / "tree"
        (tree / "a.py").write_text("x = 2\n")

        assert (look(repository), look(tree).dirty) == (before, True)

    def test_environment_of_a_hook(self, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        """Inside a git hook of another repository the directory still decides, and tracing changes nothing."""
        before = look(repository)
        other = make(tmp_path / "other")
        monkeypatch.setenv("GIT_DIR", str(other / ".git"))
        monkeypatch.setenv("GIT_WORK_TREE", str(other))
        monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
        monkeypatch.setenv("GIT_TRACE", "1")

        assert look(repository) == before

    def test_nothing_is_written(self, repository: Path):
        """A look leaves every file in the repository as it was, the index too."""
        os.utime(repository / "a.py", (1, 1))

        def state() -> dict[str, int]:
            return {str(file): file.stat().st_mtime_ns for file in repository.rglob("*")}

        before = state()
        look(repository)

        assert state() == before

    def test_no_program_of_the_repository_runs(self, repository: Path, tmp_path: Path):
        """A repository that names a file system monitor does not get it run by a look."""
        program = tmp_path / "monitor"
        program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
        program.chmod(0o755)
        git(repository, "config", "core.fsmonitor", str(program))
        look(repository)

        assert not (tmp_path / "ran").exists()


def differs(before: Snapshot, now: Snapshot, paths: bool = True) -> Moved | None:
    assert before.manifest is not None
    assert now.manifest is not None
    return moved(before.manifest, now.manifest, paths)


@pytest.fixture
def composed(repository: Path, tmp_path: Path) -> Path:
    """A clean repository with a submodule."""
    inner = make(tmp_path / "inner")
    git(repository, "submodule", "--quiet", "add", str(inner), "lib/sub")
    git(repository, "commit", "--quiet", "-m", "with submodule")
    return repository


class TestManifest:
    def test_untracked_submodule_and_lockfile(self, composed: Path):
        """RS08: a new file, a submodule that moved and a lockfile that changed are told by kind, and on request by
        their paths from the root of the work tree."""
        before = look(composed)
        (composed / "src").mkdir()
        (composed / "src" / "new.py").write_text("y")
        git(composed / "lib" / "sub", "commit", "--quiet", "--allow-empty", "-m", "moved")
        (composed / "uv.lock").write_text("version = 2\n")
        now = look(composed)

        counts = ("submodule=1", "lockfile=1", "untracked=1")
        assert differs(before, now, paths=False) == Moved(counts)
        assert differs(before, now) == Moved(counts, ("submodule:lib/sub", "lockfile:uv.lock", "untracked:src/new.py"))

    @pytest.mark.parametrize(
        ("change", "wanted"),
        [
            pytest.param(lambda root: (root / "a.py").write_text("x = 2\n"), ["changed:a.py"], id="edited"),
            pytest.param(lambda root: (root / "a.py").chmod(0o755), ["changed:a.py"], id="mode"),
            pytest.param(lambda root: (root / "a.py").unlink(), ["deleted:a.py"], id="deleted"),
            pytest.param(lambda root: (root / "uv.lock").unlink(), ["deleted:uv.lock"], id="lockfile-deleted"),
            pytest.param(
                lambda root: (root / "yarn.lock").write_text("1"), ["lockfile:yarn.lock"], id="ignored-lockfile"
            ),
            pytest.param(lambda root: (root / "b.py").unlink(), ["deleted:b.py"], id="untracked-gone"),
            pytest.param(lambda root: (root / "b.py").write_text("y"), ["untracked:b.py"], id="untracked-edited"),
            pytest.param(lambda root: git(root, "add", "b.py"), ["staged:b.py"], id="untracked-staged"),
            pytest.param(lambda root: (root / "c.py").write_text("x = 1\n"), ["restored:c.py"], id="restored"),
            pytest.param(lambda root: git(root, "add", "c.py"), ["staged:c.py"], id="staged"),
            pytest.param(lambda root: git(root, "rm", "-q", "--cached", "a.py"), ["changed:a.py"], id="unindexed"),
            pytest.param(
                lambda root: (git(root, "add", "b.py"), (root / "b.py").unlink()), ["deleted:b.py"], id="staged-gone"
            ),
            pytest.param(
                lambda root: ((root / "d.py").write_text("z"), git(root, "add", "d.py"), (root / "d.py").unlink()),
                ["staged:d.py"],
                id="came-and-went",
            ),
            pytest.param(
                lambda root: ((root / "d.py").write_text("z"), git(root, "add", "d.py")), ["added:d.py"], id="added"
            ),
        ],
    )
    def test_kinds(self, repository: Path, change: Callable[[Path], object], wanted: list[str]):
        """Each change of a dirty work tree has its kind, whatever stood there before."""
        (repository / "c.py").write_text("x = 1\n")
        git(repository, "add", "c.py")
        git(repository, "commit", "--quiet", "-m", "second")
        (repository / "c.py").write_text("x = 2\n")
        (repository / "b.py").write_text("x")
        before = look(repository)
        change(repository)
        now = look(repository)

        assert differs(before, now) == Moved((f"{wanted[0].split(':')[0]}=1",), tuple(wanted))
        assert now.identity != before.identity

    def test_another_commit(self, repository: Path):
        """Of another commit's files only those are told that both snapshots know: a change that was committed is none,
        and the other files may differ in ways that nobody has looked at."""
        (repository / "a.py").write_text("x = 2\n")
        (repository / "b.py").write_text("y")
        before = look(repository)
        git(repository, "add", "a.py")
        git(repository, "commit", "--quiet", "-m", "second")
        (repository / "b.py").write_text("z")
        (repository / "uv.lock").write_text("version = 2\n")
        (repository / "c.py").write_text("new, or of the commit before")

        assert differs(before, look(repository)) == Moved(
            ("commit=1", "lockfile=1", "untracked=1"), ("lockfile:uv.lock", "untracked:b.py")
        )

    def test_a_lockfile_of_another_commit(self, repository: Path):
        """At the root it is known across commits too whether a lockfile is there: one that the other commit does not
        have is gone, and one that was gone before has not changed."""
        git(repository, "rm", "--quiet", "uv.lock")
        git(repository, "commit", "--quiet", "-m", "without")
        without = look(repository)
        git(repository, "checkout", "--quiet", "HEAD~1")
        clean = look(repository)
        (repository / "uv.lock").write_text("version = 2\n")
        dirty = look(repository)
        (repository / "uv.lock").unlink()
        gone = look(repository)

        assert [differs(*pair) for pair in ((clean, without), (dirty, without), (gone, without), (without, gone))] == [
            Moved(("commit=1", "deleted=1"), ("deleted:uv.lock",)),
            Moved(("commit=1", "deleted=1"), ("deleted:uv.lock",)),
            Moved(("commit=1",)),
            Moved(("commit=1",)),
        ]

    def test_a_comparison_that_fails(self):
        """An error in it is counted as one of the checks, and what differs is unknown."""

        def fails(before: str, now: str) -> Moved | None:
            raise LookupError

        heard: list[tuple[str, type[Exception]]] = []
        checking = Checking(Pillars(moved=fails))
        checking.note = lambda stage, error: heard.append((stage, type(error)))

        assert (checking.moved("a", "b"), checking.moved(None, "b"), heard) == (None, None, [("checks", LookupError)])

    def test_odd_names(self, repository: Path):
        """A path is told on one line, within 256 characters, whatever its bytes."""
        before = look(repository)
        (repository / "a\n\x1b[31m\u202e.py").write_text("y")
        (repository / os.fsdecode(b"b\xff.py")).write_text("y")
        deep = repository / ("c" * 200) / ("d" * 200)
        deep.mkdir(parents=True)
        (deep / "e.py").write_text("y")
        found = differs(before, look(repository))

        assert found == Moved(
            ("untracked=3",),
            (
                "untracked:a\ufffd\ufffd[31m\ufffd.py", "untracked:b\ufffd.py",
                f"untracked:{'c' * 200}/{'d' * 55}",
            ),
        )  # fmt: skip

    def test_bounds(self, repository: Path):
        """Sixteen paths are told; of more than 4,096 files those beyond are counted as left out, and then no file is
        told that only one snapshot knows."""
        before = look(repository)
        for number in range(20):
            (repository / f"{number:04}.py").write_text("y")
        few = look(repository)
        told = differs(before, few)
        for number in range(20, MAX_ITEMS + 10):
            (repository / f"{number:04}.py").write_text("")
        (repository / "0001.py").write_text("z")
        many = differs(few, look(repository))

        assert told == Moved(("untracked=20",), tuple(f"untracked:{number:04}.py" for number in range(16)))
        assert many == Moved(("untracked=1", "left_out=10"), ("untracked:0001.py",))

    @pytest.mark.parametrize(
        ("most", "items", "known"), [(9, 99, "9231"), (3, 99, "231"), (9, 6, "231"), (9, 5, "31"), (9, 0, "1")]
    )
    def test_memory_is_bounded(self, most: int, items: int, known: str):
        """The latest snapshots are remembered, as many as together have no more paths than may be; the last one always
        is, and one that is taken again is the last one."""
        manifests = Manifests(most, items)
        every = {str(n): Manifest("c", {b"%d" % at: Item("changed", b"") for at in range(n)}) for n in (9, 1, 2, 3)}
        for name in "91231":
            manifests.keep(name, every[name])

        assert "".join(name for name in "9231" if manifests.moved(name, "1", paths=False) or name == "1") == known


class TestStatedValues:
    def test_unborn(self, tmp_path: Path):
        """Before the first commit there is a repository without a state (RS07)."""
        git(tmp_path, "init", "--quiet")
        empty = look(tmp_path)
        (tmp_path / "a.py").write_text("x")

        assert (empty, look(tmp_path)) == (Snapshot(UNBORN, None, False, 7.0), Snapshot(UNBORN, None, True, 7.0))

    def test_no_repository(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        """A directory outside of any repository, and one that does not exist."""
        monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

        assert look(tmp_path) == Snapshot(NO_REPOSITORY, None, None, 7.0)
        assert look(tmp_path / "missing") == Snapshot(NO_REPOSITORY, None, None, 7.0)

    def test_link_to_a_missing_store(self, tmp_path: Path):
        """A work tree whose git directory is gone says so and does not raise (RS07)."""
        (tmp_path / ".git").write_text("gitdir: /nowhere/at/all\n")

        assert look(tmp_path) == Snapshot(NO_REPOSITORY, None, None, 7.0)

    def test_no_object_store(self, repository: Path):
        """A repository that lost its objects is git's error, not ours (RS07)."""
        shutil.rmtree(repository / ".git" / "objects")
        (repository / ".git" / "objects").mkdir()

        assert look(repository) == Snapshot(GIT_ERROR, None, None, 7.0)

    def test_no_work_tree(self, tmp_path: Path):
        """A bare repository has no work tree to look at."""
        git(tmp_path, "init", "--quiet", "--bare")

        assert look(tmp_path) == Snapshot(GIT_ERROR, None, None, 7.0)

    def test_no_git(self, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        """No git program on the path."""
        (tmp_path / "empty").mkdir()
        monkeypatch.setenv("PATH", str(tmp_path / "empty"))

        assert look(repository) == Snapshot(NO_GIT, None, None, 7.0)

    def test_timeout(self, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        """A git that hangs is killed together with what it started, even if that holds the pipes open."""
        slow = tmp_path / "bin" / "git"
        slow.parent.mkdir()
        slow.write_text(f"#!/bin/sh\nsleep 600 &\necho $! >'{tmp_path}/pid'\nwait\n")
        slow.chmod(0o755)
        monkeypatch.setenv("PATH", f"{slow.parent}{os.pathsep}{os.environ['PATH']}")

        assert take(repository, 2.0, lambda: 7.0) == Snapshot(TIMEOUT, None, None, 7.0)
        assert seen(lambda: not alive(int((tmp_path / "pid").read_text())))

    def test_null_in_the_path(self):
        """A path that no system call takes is an error of git's as well."""
        assert look(Path("a\0b")) == Snapshot(GIT_ERROR, None, None, 7.0)


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be collected by its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def seen(condition: Callable[[], bool]) -> bool:
    """Whether a condition comes true within a time that no busy machine exceeds."""
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture
def watcher(repository: Path) -> Iterator[Watcher]:
    watching = Watcher(repository, lambda: 7.0, min_interval=0.05)
    yield watching
    watching.stop(PATIENCE)


class TestWatcher:
    def test_pending(self, watcher: Watcher):
        """Before the first look the snapshot says that it is pending; a poke alone starts nothing."""
        watcher.poke()

        assert watcher.latest() == Snapshot(PENDING, None, None, 0.0)
        assert "context-ledger-repository" not in {thread.name for thread in threading.enumerate()}

    def test_first_look(self, watcher: Watcher, repository: Path):
        """Once started it takes the first look by itself, in a daemon thread."""
        watcher.start()
        watcher.start()

        assert seen(lambda: watcher.latest() == look(repository))
        assert [thread.daemon for thread in threading.enumerate() if "repository" in thread.name] == [True]

    def test_edit_after_poke(self, watcher: Watcher, repository: Path):
        """An edit shows after a poke, and again after the next."""
        watcher.start()
        for text in ("x = 2\n", "x = 3\n"):
            (repository / "a.py").write_text(text)
            want = look(repository)
            watcher.poke()
            assert seen(lambda want=want: watcher.latest() == want)

    def test_a_look_that_is_asked_for(self, repository: Path):
        """AR18: whoever asks for a look waits for no rest before it."""
        watcher = Watcher(repository, lambda: 7.0, min_interval=600)
        watcher.start()
        for text in ("x = 2\n", "x = 3\n"):
            (repository / "a.py").write_text(text)
            assert watcher.ask()(PATIENCE)
            assert watcher.latest() == look(repository)
        watcher.stop(PATIENCE)

    def test_a_look_that_fails(self, repository: Path):
        """Whoever asks for a look that comes to an unforeseen end is told so, and so is who asks for the next one."""
        watcher = Watcher(repository, lambda: next(iter([])), min_interval=0.05)
        watcher.start()
        assert [watcher.ask()(PATIENCE) for _ in range(2)] == [False, False]
        watcher.stop(PATIENCE)

    def test_what_moved(self, watcher: Watcher, repository: Path):
        """Two snapshots that it took can be compared later, by their identities; one that it did not take cannot, and
        what is the same is so without a look."""
        watcher.start()
        assert seen(lambda: watcher.latest() == look(repository))
        before = watcher.latest().identity
        (repository / "a.py").write_text("x = 2\n")
        watcher.poke()
        now = identity(repository)
        assert seen(lambda: watcher.latest().identity == now)

        unknown = f"git:{'0' * 32}"
        pairs = [(before, now), (now, now), (unknown, unknown), (before, unknown), (PENDING, PENDING), (UNBORN, UNBORN)]
        assert [watcher.manifests.moved(*pair, paths=True) for pair in pairs] == [
            Moved(("changed=1",), ("changed:a.py",)), Moved(), Moved(), None, None, None,
        ]  # fmt: skip

    def test_commit_without_poke(self, watcher: Watcher, repository: Path):
        """A moved HEAD, branch or index shows without a poke."""
        watcher.start()
        assert seen(lambda: watcher.latest() == look(repository))
        git(repository, "commit", "--quiet", "--allow-empty", "-m", "second")

        assert seen(lambda: watcher.latest().head == git(repository, "rev-parse", "HEAD"))

    def test_ledger_file(self, repository: Path):
        """The ledger file in the work tree, its lock and what it was rotated to are not the code world: they grow with
        each call. A file beside them that only begins alike is."""
        before = identity(repository)
        for name in ("ledger.jsonl", "ledger.jsonl.1", "ledger.jsonl.lock"):
            (repository / name).write_text("{}\n")
        spared = take(repository, PATIENCE, lambda: 7.0, repository / "ledger.jsonl")
        (repository / "ledger.jsonl.py").write_text("x = 1\n")
        other = take(repository, PATIENCE, lambda: 7.0, repository / "ledger.jsonl")

        assert (spared.identity, spared.dirty, other.dirty) == (before, False, True)
        assert before not in (other.identity, identity(repository))

    def test_repository_made_later(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        """A directory that becomes a repository is found after a poke."""
        monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
        watcher = Watcher(tmp_path, lambda: 7.0, min_interval=0.05)
        watcher.start()
        assert seen(lambda: watcher.latest().identity == NO_REPOSITORY)
        git(tmp_path, "init", "--quiet")
        watcher.poke()

        assert seen(lambda: watcher.latest().identity == UNBORN)
        watcher.stop(PATIENCE)

    def test_stop_and_start(self, watcher: Watcher, repository: Path):
        """Stopped it keeps its last snapshot and does not answer pokes; started again it goes on."""
        watcher.start()
        assert seen(lambda: watcher.latest() == look(repository))
        before = watcher.latest()
        watcher.stop(PATIENCE)
        (repository / "a.py").write_text("x = 2\n")
        watcher.poke()
        stopped = (watcher.latest(), "context-ledger-repository" in {t.name for t in threading.enumerate()})
        watcher.start()

        assert stopped == (before, False)
        assert seen(lambda: watcher.latest() == look(repository))

    def test_clock_that_fails(self, repository: Path):
        """Even an error outside of git ends in a stated value, and the next poke tries again."""
        moments = iter([])
        watcher = Watcher(repository, lambda: next(moments), min_interval=0.05)
        watcher.start()

        assert seen(lambda: watcher.latest() == Snapshot(GIT_ERROR, None, None, 0.0))
        moments = iter([7.0] * 1000)
        assert seen(lambda: watcher.poke() or watcher.latest() == look(repository))
        watcher.stop(PATIENCE)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_fork(self, watcher: Watcher, repository: Path):
        """A forked child keeps the snapshot and watches on from its first poke."""
        watcher.start()
        assert seen(lambda: watcher.latest() == look(repository))
        before = watcher.latest()
        child = os.fork()
        if child == 0:
            same = watcher.latest() == before
            (repository / "a.py").write_text("x = 2\n")
            watcher.poke()
            os._exit(0 if same and seen(lambda: watcher.latest() == look(repository)) else 1)

        assert os.waitpid(child, 0)[1] == 0

    def test_exit(self, repository: Path, tmp_path: Path):
        """A program ends at once and silently although a look is under way that would last minutes."""
        slow = tmp_path / "bin" / "git"
        slow.parent.mkdir()
        slow.write_text(f"#!/bin/sh\necho $$ >'{tmp_path}/pid'\nexec sleep 600\n")
        slow.chmod(0o755)
        program = f"""
            import time
            from pathlib import Path
            from otel_context_ledger.correctness.repository import Watcher

            watcher = Watcher(Path({str(repository)!r}), time.time, timeout=600)
            watcher.start()
            while not (pid := Path({str(tmp_path)!r}, "pid")).exists() or not pid.read_text().strip():
                time.sleep(0.01)
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            env={**os.environ, "PATH": f"{slow.parent}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            timeout=300,
            check=False,
        )
        os.kill(int((tmp_path / "pid").read_text()), 9)

        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
