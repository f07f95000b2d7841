"""The thread that does what calls leave behind."""

from __future__ import annotations

import threading
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
