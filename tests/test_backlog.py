"""The thread that does what calls leave behind."""

from __future__ import annotations

import threading
import time
from contextlib import closing

from otel_context_ledger.backlog import Backlog


def test_a_job_that_raises_is_lost_alone() -> None:
    """AR04: the jobs behind one that raises are done by the same thread, and the one is counted as lost."""
    done: list[str] = []

    def fail() -> None:
        done.append(threading.current_thread().name)
        raise RuntimeError

    with closing(Backlog("worker", 10)) as backlog:
        backlog.put(fail)
        backlog.put(lambda: done.append(threading.current_thread().name))
        assert backlog.flush(60)
        assert (done, backlog.lost) == (["worker", "worker"], 1)


class Family:
    """A job of a full backlog that puts two more, once it is let."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.begun, self.gate = threading.Event(), threading.Event()
        self.backlog = Backlog("worker", 1)
        self.backlog.put(self.parent)
        self.begun.wait(60)
        self.backlog.put(lambda: self.done.append("next"))

    def parent(self) -> None:
        self.begun.set()
        self.gate.wait(60)
        assert self.backlog.take(lambda: self.done.append("taken"))
        self.backlog.put(lambda: self.done.append("put"))


def test_what_a_job_puts_is_done_right_after_it() -> None:
    """AR17: whoever waits for a job has waited for what it puts, for which there is always room."""
    family = Family()
    with closing(family.backlog) as backlog:
        threading.Thread(target=family.gate.set).start()
        assert backlog.flush(60)
        assert (family.done, backlog.lost) == (["taken", "put", "next"], 0)


def test_what_a_job_puts_at_the_end_is_done() -> None:
    """AR17: a job that was taken before the end loses nothing of what it puts then."""
    family = Family()
    closes = threading.Thread(target=family.backlog.close, args=(60,))
    closes.start()
    while not family.backlog.closed:
        time.sleep(0.001)
    family.gate.set()
    closes.join()
    assert (family.done, family.backlog.lost) == (["taken", "put", "next"], 0)
