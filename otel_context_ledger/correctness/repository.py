"""The repository snapshot: which state of the code world a call was made in, as one digest.

Whether the files that the history read are still the same is left to other checks; how old a snapshot is, to the
caller; what differs between two, to `manifest`. Git runs in a background thread, is asked read-only questions, and
writes nothing into the repository. No value here holds a branch name, a remote or an absolute path.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import xxhash

from otel_context_ledger.correctness.looking import Looker
from otel_context_ledger.correctness.manifest import LOCKFILES, MISSING, Making, Manifest, Manifests

PENDING = "pending"
UNBORN = "git:unborn"
NO_GIT = "unavailable:no_git"
NO_REPOSITORY = "unavailable:no_repository"
TIMEOUT = "unavailable:timeout"
GIT_ERROR = "unavailable:git_error"

WHOLE_FILE_BYTES = 16 * 2**20
"""Of a larger file the size, the first half and the last half of this many bytes are hashed."""

# As it was at the start: gevent's, put in its place later, forks in Python, in the middle of this thread.
_Popen = subprocess.Popen
_BLOCK = 2**20
_REST = 10
_NESTING = 8

# fsmonitor may name a program of the repository's own choice, which a look must not run.
_GIT = ("git", "-c", "core.fsmonitor=false")
_PLACES = ("rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir")
_STATUS = (
    *("status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind"),
    *("--untracked-files=all", "--ignore-submodules=none", "--no-renames"),
)
_QUIET = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}
_KEPT = ("GIT_CONFIG", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH")

# Kind of record → spaces before its path (git-status(1), "Porcelain Format Version 2" and "Pathname Format Notes").
_SPACES_BEFORE_PATH = {b"1": 8, b"u": 10, b"?": 1}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a work tree.

    `identity` is `git:` and 32 hex digits, or one of the stated values of this module. `head` is the full commit id,
    None where there is none or nobody knows. `dirty` says whether git reports a change or an untracked file, None if
    unknown. `taken` is the clock's time at which the look began, 0 before the first one. `manifest` is what it was made
    of, where it has a commit.
    """

    identity: str
    head: str | None
    dirty: bool | None
    taken: float
    manifest: Manifest | None = field(default=None, compare=False, repr=False)


def take(directory: Path, timeout: float, clock: Callable[[], float] = time.time, ours: Path | None = None) -> Snapshot:
    """Look at the repository that `directory` is in, for at most about `timeout` seconds. Never raises. `ours` is the
    ledger file: it grows with each call, and is no part of the code world, nor are those that it was rotated to."""
    return _look(directory, timeout, clock, ours)[0]


class Watcher(Looker):
    """The latest snapshot of one repository, kept by one daemon thread, and in `manifests` what the last ones were made
    of.

    The full look is taken at the start, after a `poke`, and when HEAD, its branch or the index moved; never more often
    than every `min_interval` seconds, and with a rest of ten times the last look's own length, so that a huge
    repository costs at most a tenth of one core. Who asks for a look gets it without that rest.
    """

    name = "context-ledger-repository"

    def __init__(
        self,
        directory: Path,
        clock: Callable[[], float],
        min_interval: float = 3.0,
        timeout: float = 10.0,
        ours: Path | None = None,
    ) -> None:
        self._directory, self._ours = directory.absolute(), ours
        self._clock = clock
        self._min_interval = min_interval
        self._timeout = timeout
        self._latest = Snapshot(PENDING, None, None, 0.0)
        self.manifests = Manifests()
        super().__init__()

    def latest(self) -> Snapshot:
        """The last snapshot taken, at the cost of an attribute."""
        return self._latest

    def _fail(self) -> None:
        self._latest = Snapshot(GIT_ERROR, None, None, 0.0)

    def _look_again_and_again(self) -> None:
        while self._goes_on():
            began = time.monotonic()
            with self._look():
                found, places, marks = _look(self._directory, self._timeout, self._clock, self._ours)
                if found.manifest is not None:
                    self.manifests.keep(found.identity, found.manifest)
                self._latest = found
            self._rest(max(self._min_interval, _REST * (time.monotonic() - began)))
            while self._goes_on() and _marks(places) == marks:
                if self._wait_for_poke(self._min_interval):
                    break


@dataclass(frozen=True, slots=True)
class _Places:
    """The work tree's root, its own git directory, and the one it shares with other work trees."""

    root: Path
    git: Path
    common: Path


@dataclass(frozen=True, slots=True)
class _State:
    """What `git status` says: the commit (None before the first), and each record with the path it is about."""

    head: str | None
    records: tuple[tuple[bytes, bytes], ...]


class _UnavailableError(Exception):
    """No snapshot; the argument is the identity that says why."""


def _look(
    directory: Path, timeout: float, clock: Callable[[], float], ours: Path | None = None
) -> tuple[Snapshot, _Places | None, tuple[object, ...]]:
    """A snapshot, where it was taken, and the marks as they were before: a move during the look shows afterwards."""
    taken, deadline = clock(), time.monotonic() + timeout
    places: _Places | None = None
    marks: tuple[object, ...] = ()
    try:
        places = _places(directory, deadline)
        marks = _marks(places)
        state = _without(_state(places.root, deadline), places.root, ours)
        making = Making()
        identity = f"git:{_digest(places.root, state, deadline, _NESTING, making)}" if state.head else UNBORN
        manifest = making.made(state.head) if state.head else None
        snapshot = Snapshot(identity, state.head, bool(state.records), taken, manifest)
    except _UnavailableError as error:
        snapshot = Snapshot(str(error), None, None, taken)
    except (OSError, ValueError, RuntimeError):
        # RuntimeError: since Python 3.12 no process can be started once the interpreter goes down.
        snapshot = Snapshot(GIT_ERROR, None, None, taken)
    return snapshot, places, marks


def _places(directory: Path, deadline: float) -> _Places:
    found = _git(directory, _PLACES, deadline).decode(sys.getfilesystemencoding(), "surrogateescape")
    root, git, common = found.removesuffix("\n").split("\n")
    return _Places(Path(root), Path(git), directory / common)


def _state(root: Path, deadline: float) -> _State:
    """Sorted records of `git status`: kind, index and work tree letters, submodule field, modes, blob ids, path."""
    head: str | None = None
    records: list[tuple[bytes, bytes]] = []
    output = _git(root, _STATUS, deadline)
    for record in output.split(b"\0"):
        kind = record[:1]
        if record.startswith(b"# branch.oid "):
            head = record[len(b"# branch.oid ") :].decode()
        elif kind in _SPACES_BEFORE_PATH:
            spaces = _SPACES_BEFORE_PATH[kind]
            records.append((record, record.split(b" ", spaces)[spaces]))
    if head is None:
        raise _UnavailableError(GIT_ERROR)
    return _State(None if head == "(initial)" else head, tuple(sorted(records)))


def _without(state: _State, root: Path, ours: Path | None) -> _State:
    if ours is None:
        return state
    name = os.fsencode(os.path.relpath(os.path.realpath(ours), os.path.realpath(root))).replace(
        os.fsencode(os.sep), b"/"
    )
    written = re.compile(re.escape(name) + rb"(\.\d+|\.lock)?")
    return _State(state.head, tuple(record for record in state.records if not written.fullmatch(record[1])))


def _digest(root: Path, state: _State, deadline: float, nesting: int, making: Making) -> str:
    """One digest of the commit, the records, what stands in the work tree at their paths, and the lockfiles, each of
    which `making` is told."""
    digest = xxhash.xxh3_128()
    parts = [(state.head or "").encode()]
    for record, path in state.records:
        parts += [record, content := _content(root / os.fsdecode(path), deadline, nesting)]
        making.note(path, record, content)
    for name in LOCKFILES:
        parts += [name.encode(), content := _content(root / name, deadline, 0)]
        making.note_lockfile(name.encode(), content)
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.hexdigest()


def _content(path: Path, deadline: float, nesting: int) -> bytes:
    """A digest of what stands at a path, modification times apart; `nesting` bounds repositories within each other."""
    if time.monotonic() > deadline:
        raise _UnavailableError(TIMEOUT)
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return b"link:" + xxhash.xxh3_128_digest(os.fsencode(path.readlink()))
        if stat.S_ISREG(status.st_mode):
            return b"file:" + _file_digest(path, deadline)
        if stat.S_ISDIR(status.st_mode) and nesting > 0 and (path / ".git").exists():
            return b"repository:" + _nested(path, deadline, nesting)
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    except OSError:
        return b"unreadable"
    return b"other"


def _nested(path: Path, deadline: float, nesting: int) -> bytes:
    """A submodule, or a repository inside that is not tracked: the outer record does not say which commit it is at."""
    try:
        state = _state(path, deadline)
        return _digest(path, state, deadline, nesting - 1, Making()).encode()
    except _UnavailableError as error:
        if str(error) == TIMEOUT:
            raise
        return b"unreadable"


def _file_digest(path: Path, deadline: float) -> bytes:
    digest = xxhash.xxh3_128()
    # Without blocking, should a pipe have taken the file's place since it was looked at.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        size = os.fstat(descriptor).st_size
        half = WHOLE_FILE_BYTES // 2
        ranges = [(0, size)] if size <= WHOLE_FILE_BYTES else [(0, half), (size - half, size)]
        for start, end in ranges:
            stream.seek(start)
            while (left := end - stream.tell()) > 0 and (block := stream.read(min(_BLOCK, left))):
                digest.update(block)
                if time.monotonic() > deadline:
                    raise _UnavailableError(TIMEOUT)
        digest.update(b":%d" % size)
    return digest.digest()


def _git(directory: Path, arguments: tuple[str, ...], deadline: float) -> bytes:
    """The output of one git command in a directory."""
    process = _started(directory, arguments)
    try:
        output, errors = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise _UnavailableError(TIMEOUT) from None
    finally:
        _end(process)
    if process.returncode:
        raise _UnavailableError(NO_REPOSITORY if b"not a git repository" in errors else GIT_ERROR)
    return output


def _started(directory: Path, arguments: tuple[str, ...]) -> subprocess.Popen[bytes]:
    try:
        return _Popen(
            [*_GIT, *arguments],
            cwd=directory,
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A group of its own: Ctrl-C is not for it, and its own children end with it.
            start_new_session=True,
        )
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        raise _UnavailableError(NO_GIT if directory.is_dir() else NO_REPOSITORY) from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what still runs, whole group, and wait for it; waiting for its pipes could take as long as it likes."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the variables that point git elsewhere, as they do inside a git hook, or make it talk."""
    kept = {key: value for key, value in environ.items() if not key.startswith("GIT_") or key.startswith(_KEPT)}
    return {**kept, **_QUIET}


def _marks(places: _Places | None) -> tuple[object, ...]:
    """What moves when HEAD, its branch or the index does: 0.03 ms, and no process."""
    return tuple(_marks_of(places)) if places is not None else ()


def _marks_of(places: _Places) -> Iterator[object]:
    head = b""
    with contextlib.suppress(OSError):
        head = (places.git / "HEAD").read_bytes()
    yield head
    branch = os.fsdecode(head.removeprefix(b"ref: ").strip())
    for path in (places.common / branch, places.common / "packed-refs", places.git / "index"):
        yield _mark(path)


def _mark(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
