"""Work that a call leaves behind, done in the order it came by one daemon thread: bounded, fork-safe, flushed at exit.

What the jobs do, and what is said of an error in one, is their owner's business: here a job that raises is lost.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
Job = Callable[[], None]
_Item = Job | threading.Event | None


# How long jobs may hold a caller up that does them itself.
MAX_SECONDS_HERE = 1.0
_PATCHERS = (("gevent.monkey", "is_module_patched", "threading"), ("eventlet.patcher", "is_monkey_patched", "thread"))


def greenlets() -> bool:
    """Whether the threads of this process are greenlets. One of ours would then stop all the others where it waits at
    what was made before, and a fork would run it in the child: so there are none of ours."""
    return any(getattr(sys.modules[module], asked)(part) for module, asked, part in _PATCHERS if module in sys.modules)


class Backlog:
    """Jobs that wait, at most `capacity` of them. The thread `name` starts with the first one; `leave` is called where
    it ends, and in a forked child, to which nothing of its parent's passes on. What a job itself puts is done right
    after it: whoever waits for the one has waited for the other, and none is lost where the other was taken."""

    def __init__(self, name: str, capacity: int, leave: Job = lambda: None) -> None:
        self._name, self._capacity, self._leave = name, capacity, leave
        self._closed = False
        self._empty()
        _backlogs.add(self)

    @property
    def lost(self) -> int:
        """Jobs not done: no room, given after `close`, or counted by their owner with `lose`."""
        return self._lost

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def put(self, job: Job) -> None:
        """Queue one job, or count it as lost where there is no room. Under gevent it is done before this returns."""
        self.leave_behind(job)
        if greenlets() and self._worker is None and not self._closed:
            self._work_here(time.monotonic() + MAX_SECONDS_HERE)

    def take(self, job: Job) -> bool:
        """Queue one job for the thread. Says no, and loses nothing, where there is no room, no thread or an end."""
        if self._follows(job):
            return True
        if self._closed or self._jobs.qsize() >= self._capacity or greenlets():
            return False
        self._jobs.put(job)
        if self._worker is None:
            self._start()
            if self._worker is None:
                self._work_here(time.monotonic() + MAX_SECONDS_HERE)
        return True

    def leave_behind(self, job: Job) -> None:
        """As `put`, and never done on the spot: for finalisers, which run in the middle of anything."""
        if self._follows(job):
            return
        if self._closed or self._jobs.qsize() >= self._capacity:
            self.lose(1)
            return
        self._jobs.put(job)
        if self._worker is None and not greenlets():
            self._start()

    def lose(self, jobs: int) -> None:
        """Count jobs as lost."""
        with self._lock:
            self._lost += jobs

    def flush(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until every job put before is done or counted as lost."""
        if self._closed:
            return self._jobs.empty()
        if self._worker is None:
            return self._work_here(time.monotonic() + timeout)
        if self._worker is threading.current_thread():
            return False
        reached = threading.Event()
        self._jobs.put(reached)
        return reached.wait(timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Do what waits for at most `timeout` seconds, count the rest as lost, and end the thread."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self._worker is None:
            self._work_here(time.monotonic() + timeout)
            self._leave()
        else:
            self._jobs.put(None)
            self._worker.join(timeout)
        self._discard()

    def _follows(self, job: Job) -> bool:
        """Whether this is put by a job: there is room for it, and at the end, too."""
        at_work = self._at_work
        if at_work is None or at_work[0] is not threading.current_thread():
            return False
        at_work[1].append(job)
        return True

    def _empty(self) -> None:
        # A finaliser may run inside these and enter them again: Queue and Lock would deadlock.
        self._jobs: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._at_work: tuple[threading.Thread, deque[Job]] | None = None
        self._lock = threading.RLock()
        self._worker: threading.Thread | None = None
        self._lost = 0

    def _start_over(self) -> None:
        """In a forked child: what waited belongs to the parent, whose thread does not exist here."""
        self._leave()
        self._empty()

    def _start(self) -> None:
        with self._lock:
            if self._worker is not None:
                return
            worker = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._worker = worker
            try:
                worker.start()
            except RuntimeError:
                # No more threads, or the interpreter is going down: `flush` and `close` work in their caller's thread.
                self._worker = None

    def _work(self) -> None:
        jobs = self._jobs
        while self._do(jobs.get()):
            pass
        with contextlib.suppress(Exception):
            self._leave()

    def _work_here(self, deadline: float) -> bool:
        with self._lock:
            while time.monotonic() < deadline:
                if self._jobs.empty():
                    return True
                self._do(self._jobs.get_nowait())
        return self._jobs.empty()

    def _do(self, item: _Item) -> bool:
        """Whether the thread goes on after this item. A separate call, so that the idle thread holds no job."""
        if item is None:
            return False
        if isinstance(item, threading.Event):
            item.set()
            return True
        jobs = deque((item,))
        self._at_work = threading.current_thread(), jobs
        while jobs:
            try:
                jobs.popleft()()
            except Exception:  # noqa: BLE001, PERF203 - the jobs behind it must be done all the same
                self.lose(1)
        self._at_work = None
        # What a finaliser put here in between.
        while jobs:
            self._jobs.put(jobs.popleft())
        return True

    def _discard(self) -> None:
        stopped = self._worker is None or not self._worker.is_alive()
        with contextlib.suppress(queue.Empty):
            while True:
                item = self._jobs.get_nowait()
                if isinstance(item, threading.Event):
                    item.set()
                elif item is not None:
                    self.lose(1)
        if not stopped:
            self._jobs.put(None)


class Later(Generic[T]):
    """A value that is worked out when it is first asked for, once, whichever thread asks."""

    __slots__ = ("_lock", "_value", "_work")

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Callable[[], T] | None = work
        self._lock = threading.Lock()

    def __call__(self) -> T:
        with self._lock:
            self._do()
        return self._value

    def there(self, timeout: float) -> bool:
        """Whether the value is there: worked out here, unless another thread is at it for longer than `timeout` s."""
        if not self._lock.acquire(timeout=timeout):
            return False
        try:
            self._do()
        finally:
            self._lock.release()
        return True

    def _do(self) -> None:
        if self._work is not None:
            self._value = self._work()
            self._work = None


_backlogs: weakref.WeakSet[Backlog] = weakref.WeakSet()


def _start_over_all() -> None:
    for backlog in list(_backlogs):
        backlog._start_over()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over_all)
