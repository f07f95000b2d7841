"""The ledger file: JSON lines appended by a background thread, rotated by size, read back with what is torn counted.

What a line says is left to the ledger, and whether there is a file at all to the configuration. Several processes may
append to one file: each line is one `write` on a descriptor opened with O_APPEND, which no other write can split.
"""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import orjson

from otel_context_ledger.backlog import Backlog

if sys.platform != "win32":
    import fcntl

ROTATE_BYTES = 64 * 2**20
KEEP = 5
CAPACITY = 10_000
ATTEMPTS = 50

_log = logging.getLogger("otel_context_ledger")

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_CONSEQUENCES = {
    "not_writable": "lines are lost until it can be written; point CONTEXT_LEDGER_FILE at a file in a writable place",
    "disk_full": "lines are lost until there is room; free some, or point CONTEXT_LEDGER_FILE at another disk",
    "not_rotated": "it grows past its limit until its directory lets it be renamed",
    "not_serialisable": "that line is lost; please report it",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line that is not blank: its file, its number counted from 1, its entry, or None if it is not a JSON object,
    and whether it lacks its line break, as only the last line of a file can that was not written to its end."""

    file: Path
    number: int
    entry: Mapping[str, object] | None
    unended: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """Entries oldest first, how many lines that are not blank were not a JSON object, and the files looked at."""

    entries: tuple[Mapping[str, object], ...]
    skipped: int
    files: tuple[Path, ...]


class Store:
    """Lines on their way to the ledger file.

    `rotate_bytes` is the size in bytes beyond which a file is not continued (processes that write at that very moment
    may still add a line each); `keep` is how many rotated files stay beside it; `capacity` bounds the lines that wait.
    Nothing here raises for a file that cannot be written: each kind of failure is logged once, and every line not
    written is counted in `lost`.
    """

    def __init__(
        self, path: Path, rotate_bytes: int = ROTATE_BYTES, keep: int = KEEP, capacity: int = CAPACITY
    ) -> None:
        self._warnings = _Warnings(path.name)
        self._file = _Appender(path.absolute(), rotate_bytes, keep, self._warnings)
        self._backlog = Backlog("context-ledger-store", capacity, leave=self._file.close)

    @property
    def lost(self) -> int:
        """Lines this process gave and that were not written: no room in the queue, no file, or given after `close`."""
        return self._backlog.lost

    @property
    def closed(self) -> bool:
        """Whether it was ended: lines are lost from then on."""
        return self._backlog.closed

    def put(self, line: Callable[[], bytes]) -> None:
        """Queue one line. `line` is called later, in the writer's thread, and gives JSON without a line break."""
        self._backlog.put(partial(self._write, line))

    def flush(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until every line put before is written or counted as lost."""
        return self._backlog.flush(timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Write what waits for at most `timeout` seconds, count the rest as lost, and end the writer's thread."""
        self._backlog.close(timeout)

    def _write(self, line: Callable[[], bytes]) -> None:
        try:
            text = line()
        except Exception as error:  # noqa: BLE001 - one bad line must not end the thread that writes all others
            self._backlog.lose(1)
            self._warnings.once("not_serialisable", type(error).__name__)
            return
        try:
            self._file.append(text)
        except OSError as error:
            self._backlog.lose(1)
            self._warnings.once("disk_full" if error.errno in _DISK_FULL else "not_writable", _reason(error))
        except Exception as error:  # noqa: BLE001 - a path that no system call takes, as one with a null character
            self._backlog.lose(1)
            self._warnings.once("not_writable", type(error).__name__)


def lines(path: Path, include_rotated: bool = True) -> Iterator[Line]:
    """Every line that is not blank, oldest first, one at a time.

    Raises, at the first step, FileNotFoundError if there is no file, and any other OSError of a file that cannot be
    read.
    """
    with contextlib.ExitStack() as stack:
        for file, stream in _opened(path, include_rotated, stack):
            yield from _parsed(file, stream)


def read(path: Path, include_rotated: bool = True) -> Reading:
    """The whole ledger in memory, rotated files included. Raises like `lines`."""
    with contextlib.ExitStack() as stack:
        opened = _opened(path, include_rotated, stack)
        return _reading([(file, list(_parsed(file, stream))) for file, stream in opened])


def tail(path: Path, max_bytes: int) -> Reading:
    """The entries in the last `max_bytes` bytes of the ledger, and no more than that read from disk.

    The line that the limit cuts through is left out and not counted as skipped. Raises like `lines`.
    """
    found: list[tuple[Path, list[Line]]] = []
    left = max_bytes
    with contextlib.ExitStack() as stack:
        for file, stream in reversed(_opened(path, True, stack)):
            if left <= 0:
                break
            size = stream.seek(0, os.SEEK_END)
            found.append((file, list(_parsed(file, _ending(stream, size, left)))))
            left -= size
    return _reading(found[::-1])


class _Warnings:
    """One warning for each kind of failure of one file, however often it happens."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._given: set[str] = set()

    def once(self, kind: str, reason: str) -> None:
        """`reason` holds no path: the log may be exported."""
        if kind not in self._given:
            self._given.add(kind)
            _log.warning("context ledger: %s: %s (%s): %s", self._name, kind, reason, _CONSEQUENCES[kind])


class _Appender:
    """The open file: one line per `append`, in the file that stands at the path at that moment."""

    def __init__(self, path: Path, rotate_bytes: int, keep: int, warnings: _Warnings) -> None:
        self._path = path
        self._rotate_bytes = rotate_bytes
        self._keep = keep
        self._warnings = warnings
        self._descriptor = -1
        self._inode: _Inode | None = None
        # The file and its size as our last line left it: while nobody else writes, its end need not be read again.
        self._left: tuple[_Inode | None, int] | None = None
        self._attempts = ATTEMPTS

    def append(self, line: bytes) -> None:
        """Write the line whole or raise OSError; a part that a full disk let through stays as a torn line."""
        status = self._current() or self._open()
        if self._is_full(status, len(line) + 1):
            status = self._rotate(len(line) + 1) or status
        start = b"\n" if self._is_torn(status) else b""
        text = b"%b%b\n" % (start, line)
        if os.write(self._descriptor, text) < len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._left = self._inode, status.st_size + len(text)

    def close(self) -> None:
        # Forgotten before it is closed: a child forked in between must not close a number that is somebody else's.
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0 and _inode_of(descriptor) == self._inode:
            os.close(descriptor)

    def _current(self) -> os.stat_result | None:
        """The state of the open file, or None if it is no longer the one at the path.

        Asked of the descriptor each time, because a program that turns itself into a daemon closes all descriptors,
        and then the number may stand for a file of its own.
        """
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        return status if _inode(status) == self._inode == _inode_of(self._descriptor) else None

    def _open(self) -> os.stat_result:
        self.close()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self._path, flags, 0o600)
        status = os.fstat(descriptor)
        self._inode = _inode(status)
        self._descriptor = descriptor
        return status

    def _is_full(self, status: os.stat_result, room: int) -> bool:
        return stat.S_ISREG(status.st_mode) and status.st_size > 0 and status.st_size + room > self._rotate_bytes

    def _is_torn(self, status: os.stat_result) -> bool:
        """Whether the last byte is not a line break: this process, another one or a power cut left half a line."""
        if not stat.S_ISREG(status.st_mode) or status.st_size == 0 or (self._inode, status.st_size) == self._left:
            return False
        os.lseek(self._descriptor, -1, os.SEEK_END)
        return os.read(self._descriptor, 1) != b"\n"

    def _rotate(self, room: int) -> os.stat_result | None:
        """The state of the file to write to, or None if another process keeps the lock.

        Then the line goes to the file that is open, which may just have been rotated: it is not lost there.
        """
        try:
            with _locked(self._path.with_name(f"{self._path.name}.lock"), self._attempts) as held:
                # A process that was stopped with the lock in its hands must cost the others one wait, not one per line.
                self._attempts = ATTEMPTS if held else 1
                if not held:
                    return None
                status = self._current()
                if status is not None and self._is_full(status, room):
                    self._shift()
        except OSError as error:
            self._warnings.once("not_rotated", _reason(error))
        return self._current() or self._open()

    def _shift(self) -> None:
        self.close()
        if self._keep <= 0:
            self._path.unlink()
            return
        files = [self._path]
        while len(files) < self._keep and _rotated(self._path, len(files)).exists():
            files.append(_rotated(self._path, len(files)))
        for number in range(len(files), 0, -1):
            files[number - 1].replace(_rotated(self._path, number))


_Inode = tuple[int, int]


if sys.platform == "win32":

    def _acquire(descriptor: int) -> None:
        """No lock: Windows does not rename an open file, so that two processes never rotate the same one."""

    _release = _acquire
else:

    def _acquire(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(descriptor: int) -> None:
        # Closing is not enough: a child forked meanwhile would keep the lock through its copy of the descriptor.
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _acquired(descriptor: int, attempts: int) -> bool:
    """Whether the lock came within so many attempts, a millisecond apart."""
    for attempt in range(attempts):
        time.sleep(0.001 * bool(attempt))
        with contextlib.suppress(BlockingIOError):
            _acquire(descriptor)
            return True
    return False


@contextlib.contextmanager
def _locked(path: Path, attempts: int) -> Iterator[bool]:
    """Hold the lock of a rotation, or yield False if another process keeps it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    held = False
    try:
        held = _acquired(descriptor, attempts)
        yield held
    finally:
        if held:
            _release(descriptor)
        os.close(descriptor)


def _inode(status: os.stat_result) -> _Inode:
    return status.st_dev, status.st_ino


def _inode_of(descriptor: int) -> _Inode | None:
    try:
        return _inode(os.fstat(descriptor))
    except OSError:
        return None


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _rotated(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _numbers(path: Path) -> list[int]:
    """The numbers of the rotated files beside `path`, and one more in case they are being renamed now."""
    start = f"{path.name}."
    endings = [file.name[len(start) :] for file in path.parent.iterdir() if file.name.startswith(start)]
    found = sorted(int(ending) for ending in endings if ending.isascii() and ending.isdigit())
    return [*found, found[-1] + 1] if found else [1]


def _opened(path: Path, include_rotated: bool, stack: contextlib.ExitStack) -> list[tuple[Path, BinaryIO]]:
    """The ledger's files, oldest first, all open before the first is read.

    Opened newest first and told apart by inode: a rotation meanwhile only moves a file to a number that is still to
    come, so that none is missed and none is met twice.
    """
    opened: dict[_Inode, tuple[Path, BinaryIO]] = {}
    numbers = _numbers(path) if include_rotated and path.parent.is_dir() else []
    for file in [path, *(_rotated(path, number) for number in numbers)]:
        with contextlib.suppress(FileNotFoundError):
            stream = stack.enter_context(file.open("rb"))
            opened.setdefault(_inode(os.fstat(stream.fileno())), (file, stream))
    if not opened:
        raise FileNotFoundError(errno.ENOENT, "there is no ledger file", str(path))
    return list(opened.values())[::-1]


def _parsed(file: Path, texts: Iterable[bytes]) -> Iterator[Line]:
    for number, text in enumerate(texts, 1):
        if text.strip():
            yield Line(file, number, _entry(text), not text.endswith(b"\n"))


def _entry(text: bytes) -> Mapping[str, object] | None:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _ending(stream: BinaryIO, size: int, limit: int) -> Iterable[bytes]:
    """The whole lines in the last `limit` bytes of a file of `size` bytes."""
    if size <= limit:
        stream.seek(0)
        return io.BytesIO(stream.read(size))
    # One byte more: if it is a line break, the first line within the limit is whole.
    stream.seek(size - limit - 1)
    return io.BytesIO(stream.read(limit + 1).partition(b"\n")[2])


def _reading(found: list[tuple[Path, list[Line]]]) -> Reading:
    met = [line.entry for _, parsed in found for line in parsed]
    entries = tuple(entry for entry in met if entry is not None)
    return Reading(entries, len(met) - len(entries), tuple(file for file, _ in found))
