"""The ledger file as its users meet it: lines in, rotation, failures that cost lines but never a call, lines out."""

from __future__ import annotations

import gc
import json
import logging
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path

import orjson
import pytest

from otel_context_ledger.store import Line, Reading, Store, lines, read, tail

PATIENCE = 30.0
POSIX_ONLY = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
LINUX_ONLY = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


def numbered(number: int) -> Callable[[], bytes]:
    return partial(orjson.dumps, {"n": number})


def numbers(reading: Reading) -> list[object]:
    return [entry["n"] for entry in reading.entries]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store(path)
    yield opened
    opened.close(PATIENCE)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Holds a writer that serialises `held(gate)` until it is set."""
    event = threading.Event()
    yield event
    event.set()


def held(gate: threading.Event, reached: threading.Event) -> bytes:
    reached.set()
    gate.wait(PATIENCE)
    return b'{"n":0}'


def hold(store: Store, gate: threading.Event) -> None:
    reached = threading.Event()
    store.put(partial(held, gate, reached))
    assert reached.wait(PATIENCE)


class TestWriting:
    def test_lines_in_order(self, store: Store, path: Path):
        """Lines land in the file in the order in which they were put, one JSON object each."""
        for number in range(3):
            store.put(numbered(number))

        assert store.flush(PATIENCE)
        assert (path.read_bytes(), store.lost) == (b'{"n":0}\n{"n":1}\n{"n":2}\n', 0)

    def test_private_file_in_a_new_directory(self, tmp_path: Path):
        """A missing directory is made, and only the owner may read the file."""
        path = tmp_path / "a" / "b" / "ledger.jsonl"
        store = Store(path)
        store.put(numbered(1))
        store.close(PATIENCE)

        assert path.stat().st_mode & 0o777 == 0o600

    def test_relative_path_is_fixed_at_the_start(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        """A program that changes its directory later still writes to the file that was meant."""
        monkeypatch.chdir(tmp_path)
        store = Store(Path("ledger.jsonl"))
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        monkeypatch.chdir(elsewhere)
        store.put(numbered(1))
        store.close(PATIENCE)

        assert numbers(read(tmp_path / "ledger.jsonl")) == [1]

    def test_serialised_in_the_writers_thread(self, store: Store):
        """The caller's thread only queues: JSON is made in the one background thread."""
        threads: list[tuple[str, bool]] = []

        def line() -> bytes:
            current = threading.current_thread()
            threads.append((current.name, current.daemon))
            return b"{}"

        store.put(line)

        assert store.flush(PATIENCE)
        assert threads == [("context-ledger-store", True)]

    def test_no_thread_and_no_file_before_the_first_line(self, store: Store, path: Path):
        """A store that nobody writes to starts nothing and creates nothing."""
        running = {thread.name for thread in threading.enumerate()}

        assert store.flush(PATIENCE)
        assert ("context-ledger-store" in running, path.exists()) == (False, False)

    def test_file_taken_away(self, store: Store, path: Path):
        """When the file is moved away, as log rotation does, later lines start a new one at the path."""
        store.put(numbered(1))
        store.flush(PATIENCE)
        moved = path.rename(path.with_name("moved"))
        store.put(numbered(2))
        store.flush(PATIENCE)

        assert (numbers(read(moved)), numbers(read(path))) == ([1], [2])

    @LINUX_ONLY
    def test_descriptor_taken_over(self, store: Store, path: Path, tmp_path: Path):
        """A program that closes all descriptors and opens its own never finds ledger lines in it, nor it closed."""
        store.put(numbered(1))
        store.flush(PATIENCE)
        ours = next(int(fd.name) for fd in Path("/proc/self/fd").iterdir() if os.path.realpath(fd) == str(path))
        theirs = os.open(tmp_path / "theirs", os.O_RDWR | os.O_CREAT)
        os.dup2(theirs, ours)
        store.put(numbered(2))
        store.flush(PATIENCE)
        os.write(ours, b"theirs alone")
        os.close(ours)
        os.close(theirs)

        assert (numbers(read(path)), (tmp_path / "theirs").read_bytes()) == ([1, 2], b"theirs alone")


class TestLoss:
    def test_overflow_is_counted(self, path: Path, gate: threading.Event):
        """With the queue full further lines are dropped and counted, and the caller never waits."""
        store = Store(path, capacity=3)
        hold(store, gate)
        for number in range(1, 6):
            store.put(numbered(number))
        gate.set()
        store.close(PATIENCE)

        assert (numbers(read(path)), store.lost) == ([0, 1, 2, 3], 2)

    def test_not_writable(self, store: Store, path: Path, caplog: pytest.LogCaptureFixture):
        """A directory in the file's place costs lines and one warning, and later lines are written once it is gone."""
        path.mkdir()
        for number in range(3):
            store.put(numbered(number))
        store.flush(PATIENCE)
        path.rmdir()
        store.put(numbered(3))
        store.flush(PATIENCE)

        assert (numbers(read(path)), store.lost) == ([3], 3)
        assert [(r.name, r.levelno, r.getMessage()) for r in caplog.records] == [
            (
                "otel_context_ledger",
                logging.WARNING,
                "context ledger: ledger.jsonl: not_writable (Is a directory): lines are lost until it can be written; "
                "point CONTEXT_LEDGER_FILE at a file in a writable place",
            )
        ]

    def test_no_directory_possible(self, tmp_path: Path, caplog: pytest.LogCaptureFixture):
        """A file where the directory should be is one more way of not being writable."""
        (tmp_path / "a").write_bytes(b"")
        store = Store(tmp_path / "a" / "ledger.jsonl")
        store.put(numbered(1))
        store.close(PATIENCE)

        assert (store.lost, len(caplog.records)) == (1, 1)

    @LINUX_ONLY
    def test_disk_full(self, caplog: pytest.LogCaptureFixture):
        """A full disk costs lines and one warning that says so; the device itself is never rotated away."""
        store = Store(Path("/dev/full"), rotate_bytes=1)
        for number in range(3):
            store.put(numbered(number))
        store.close(PATIENCE)

        assert store.lost == 3
        assert [record.getMessage() for record in caplog.records] == [
            "context ledger: full: disk_full (No space left on device): lines are lost until there is room; "
            "free some, or point CONTEXT_LEDGER_FILE at another disk"
        ]
        assert Path("/dev/full").exists()

    @POSIX_ONLY
    def test_line_cut_by_a_full_disk(self, path: Path):
        """What a full disk let through of a line stays torn, and the next line that fits starts on its own line."""
        program = """
            import resource, signal, sys
            from pathlib import Path
            from otel_context_ledger.store import Store

            store = Store(Path(sys.argv[1]))
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (12, hard))
            for number in range(3):
                store.put(lambda number=number: b'{"n":%d}' % number)
            store.flush(30)
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            store.put(lambda: b'{"n":3}')
            store.close(30)
            print(store.lost)
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), str(path)], capture_output=True, text=True, check=True
        )

        assert (done.stdout, path.read_bytes()) == ("2\n", b'{"n":0}\n{"n"\n{"n":3}\n')
        assert read(path) == Reading(({"n": 0}, {"n": 3}), 1, (path,))
        assert done.stderr.count("disk_full") == 1

    def test_after_a_crash(self, store: Store, path: Path):
        """Half a line that another process left behind spoils only itself."""
        path.write_bytes(b'{"n":1}\n{"n":')
        store.put(numbered(2))
        store.flush(PATIENCE)

        assert read(path) == Reading(({"n": 1}, {"n": 2}), 1, (path,))

    def test_line_that_cannot_be_made(self, store: Store, path: Path, caplog: pytest.LogCaptureFixture):
        """An error while a line is made costs that line alone, and the warning holds none of the error's text."""

        def broken() -> bytes:
            raise KeyError("a secret")

        for line in (broken, broken, numbered(1)):
            store.put(line)
        store.flush(PATIENCE)

        assert (numbers(read(path)), store.lost) == ([1], 2)
        assert [record.getMessage() for record in caplog.records] == [
            "context ledger: ledger.jsonl: not_serialisable (KeyError): that line is lost; please report it"
        ]

    def test_after_close(self, store: Store, path: Path):
        """Lines that come after `close` are counted as lost and not written."""
        store.put(numbered(1))
        store.close(PATIENCE)
        store.put(numbered(2))

        assert (numbers(read(path)), store.lost, store.flush(PATIENCE)) == ([1], 1, True)

    def test_close_gives_up(self, path: Path, gate: threading.Event):
        """A writer that hangs does not hold `close`: what still waits is lost and counted, and never written late."""
        store = Store(path)
        hold(store, gate)
        store.put(numbered(1))
        store.put(numbered(2))
        store.close(timeout=0.01)
        lost = store.lost
        gate.set()
        for thread in threading.enumerate():
            if thread.name == "context-ledger-store":
                thread.join(PATIENCE)

        assert (lost, numbers(read(path))) == (2, [0])

    def test_flush_gives_up(self, store: Store, gate: threading.Event):
        """`flush` says that it did not get to the end in time."""
        hold(store, gate)

        assert not store.flush(0.01)


class TestRotation:
    def test_by_size(self, path: Path):
        """No file passes the limit, the newest files stay, and reading gives them oldest first."""
        store = Store(path, rotate_bytes=16, keep=2)
        for number in range(7):
            store.put(numbered(number))
        store.close(PATIENCE)

        files = (path.with_name("ledger.jsonl.2"), path.with_name("ledger.jsonl.1"), path)
        assert read(path) == Reading(tuple({"n": number} for number in range(2, 7)), 0, files)
        assert [file.stat().st_size for file in files] == [16, 16, 8]
        assert sorted(file.name for file in path.parent.iterdir()) == [
            "ledger.jsonl",
            "ledger.jsonl.1",
            "ledger.jsonl.2",
            "ledger.jsonl.lock",
        ]

    def test_long_line(self, path: Path):
        """A line longer than the limit has a file of its own instead of none."""
        store = Store(path, rotate_bytes=4, keep=5)
        for number in range(3):
            store.put(numbered(number))
        store.close(PATIENCE)

        assert numbers(read(path)) == [0, 1, 2]
        assert numbers(read(path, include_rotated=False)) == [2]

    def test_keep_none(self, path: Path):
        """With `keep=0` a full file makes room for the next one and leaves nothing."""
        store = Store(path, rotate_bytes=16, keep=0)
        for number in range(3):
            store.put(numbered(number))
        store.close(PATIENCE)

        assert numbers(read(path)) == [2]

    def test_impossible(self, path: Path, caplog: pytest.LogCaptureFixture):
        """Where the file cannot be renamed it grows on: one warning, no line lost."""
        (path.with_name("ledger.jsonl.1") / "in the way").mkdir(parents=True)
        store = Store(path, rotate_bytes=8, keep=1)
        for number in range(3):
            store.put(numbered(number))
        store.close(PATIENCE)

        assert (numbers(read(path, include_rotated=False)), store.lost) == ([0, 1, 2], 0)
        assert [record.getMessage() for record in caplog.records] == [
            "context ledger: ledger.jsonl: not_rotated (Is a directory): "
            "it grows past its limit until its directory lets it be renamed"
        ]

    def test_many_processes(self, path: Path):
        """Four processes that write and rotate one file at once lose and repeat no line, and rotate no young file."""
        spawn = multiprocessing.get_context("spawn")
        start = spawn.Barrier(4)
        writers = [spawn.Process(target=write_many, args=(path, who, start)) for who in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(120)

        reading = read(path)
        written = [(entry["who"], entry["n"]) for entry in reading.entries]
        assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]
        assert sorted(written) == [(who, number) for who in range(4) for number in range(500)]
        assert (reading.skipped, len(reading.files) > 20) == (0, True)
        assert min(file.stat().st_size for file in reading.files[:-1]) > 900


def write_many(path: Path, who: int, start: Barrier) -> None:
    store = Store(path, rotate_bytes=1000, keep=10_000)
    start.wait(60)
    for number in range(500):
        store.put(partial(orjson.dumps, {"who": who, "n": number}))
    store.close(60)
    sys.exit(store.lost)


@POSIX_ONLY
class TestFork:
    def test_child_starts_empty(self, store: Store, path: Path, gate: threading.Event):
        """What waits in the parent is written once, by the parent; the child writes its own with its own thread."""
        hold(store, gate)
        store.put(numbered(1))
        child = os.fork()
        if child == 0:
            store.put(numbered(2))
            os._exit(0 if store.flush(PATIENCE) and store.lost == 0 else 1)
        status = os.waitpid(child, 0)[1]
        gate.set()
        store.flush(PATIENCE)

        assert (status, numbers(read(path))) == (0, [2, 0, 1])

    def test_both_rotate(self, path: Path):
        """Parent and child share no descriptor and no lock: both rotate the file and lose nothing."""
        store = Store(path, rotate_bytes=50, keep=1000)
        store.put(numbered(0))
        store.flush(PATIENCE)
        child = os.fork()
        for number in range(1, 101):
            store.put(numbered(-number if child == 0 else number))
        store.close(PATIENCE)
        if child == 0:
            os._exit(store.lost)
        status = os.waitpid(child, 0)[1]

        assert (status, store.lost) == (0, 0)
        assert sorted(numbers(read(path))) == list(range(-100, 101))


class TestEnd:
    def test_closed_store_is_collected(self, path: Path):
        """Neither the fork hook nor the thread keeps a closed store alive."""
        store = Store(path)
        store.put(numbered(1))
        store.close(PATIENCE)
        gone = weakref.ref(store)
        del store
        gc.collect()

        assert gone() is None

    def test_written_at_exit(self, path: Path):
        """`close` registered with `atexit` writes what waits, also what comes when no thread can start any more."""
        program = """
            import atexit, sys
            from pathlib import Path
            from otel_context_ledger.store import Store

            store, late = Store(Path(sys.argv[1])), Store(Path(sys.argv[1]))
            atexit.register(late.close, 60)
            atexit.register(late.put, lambda: b'{"n":100}')
            atexit.register(store.close, 60)
            for number in range(100):
                store.put(lambda number=number: b'{"n":%d}' % number)
        """
        subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(path)], check=True, timeout=60)

        assert numbers(read(path)) == list(range(101))

    def test_exit_without_close(self, path: Path):
        """A program that never closes the store still ends, even with a line that hangs."""
        program = """
            import sys, threading
            from pathlib import Path
            from otel_context_ledger.store import Store

            Store(Path(sys.argv[1])).put(lambda: threading.Event().wait() and b"")
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), str(path)], capture_output=True, check=True, timeout=60
        )

        assert (done.stdout, done.stderr) == (b"", b"")


class TestReading:
    def test_missing(self, path: Path):
        """No file at all is an error of its own, whatever reads it."""
        for reader in (read, partial(tail, max_bytes=10), lambda file: list(lines(file))):
            with pytest.raises(FileNotFoundError):
                reader(path)

    def test_missing_directory(self, path: Path):
        """No directory is no file."""
        with pytest.raises(FileNotFoundError):
            read(path / "below" / "ledger.jsonl")

    def test_empty(self, path: Path):
        """An empty file is a ledger without entries."""
        path.write_bytes(b"")

        assert (read(path), tail(path, 10)) == (Reading((), 0, (path,)), Reading((), 0, (path,)))

    def test_foreign(self, path: Path):
        """Of a file that is no ledger every line that is not blank is counted, and nothing is made of it."""
        path.write_bytes(b"# Title\n\n[1]\n\x00\xff\nlast")

        assert read(path) == Reading((), 4, (path,))

    def test_places(self, path: Path):
        """`lines` names the place of each line, torn ones included, oldest file first."""
        older = path.with_name("ledger.jsonl.1")
        older.write_bytes(b'{"n":1}\n')
        path.write_bytes(b'\n{"n":\n{"n":2}\n')

        assert list(lines(path)) == [Line(older, 1, {"n": 1}), Line(path, 2, None), Line(path, 3, {"n": 2})]

    def test_rotated_in_the_order_of_numbers(self, path: Path):
        """File 10 is older than file 9, other names beside the ledger are not part of it, and gaps do not matter."""
        for number in (10, 9, 2):
            path.with_name(f"ledger.jsonl.{number}").write_bytes(json.dumps({"n": number}).encode())
        path.with_name("ledger.jsonl.bak").write_bytes(b"{}")
        path.with_name("ledger.jsonl-3").write_bytes(b"{}")

        assert numbers(read(path)) == [10, 9, 2]

    def test_tail_leaves_out_the_cut_line(self, path: Path):
        """The line through which the limit cuts is left out and is not torn."""
        path.write_bytes(b'{"n":1}\n{"n":2}\n{"n":3}\n')

        assert [(numbers(tail(path, size)), tail(path, size).skipped) for size in (7, 8, 15, 16, 24, 99)] == [
            ([], 0),
            ([3], 0),
            ([3], 0),
            ([2, 3], 0),
            ([1, 2, 3], 0),
            ([1, 2, 3], 0),
        ]

    def test_tail_counts_torn_lines(self, path: Path):
        """A torn line that is whole within the limit counts, at the very end too."""
        path.write_bytes(b'{"n":1}\n{"n"\n{"n":3}\n{"n":')

        assert tail(path, 20) == Reading(({"n": 3},), 2, (path,))

    def test_tail_goes_on_in_rotated_files(self, path: Path):
        """Just after a rotation the end of the ledger reaches into the older file."""
        older = path.with_name("ledger.jsonl.1")
        older.write_bytes(b'{"n":1}\n{"n":2}\n')
        path.write_bytes(b'{"n":3}\n')

        assert tail(path, 16) == Reading(({"n": 2}, {"n": 3}), 0, (older, path))
        assert tail(path, 8) == Reading(({"n": 3},), 0, (path,))
