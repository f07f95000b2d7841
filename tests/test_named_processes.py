"""Names of processes in ledger lines, and whether who has such a name still runs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from otel_context_ledger import processes

KEY = b"k" * 32


@pytest.mark.skipif(os.name != "posix", reason="only there a process can be asked for without harm")
def test_who_still_runs() -> None:
    """Another process does until it was collected; this one is not asked for, since what it reads of itself is from an
    earlier run."""
    host = processes.this().rpartition("-")[0]
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        name = f"{host}-{other.pid}"
        during = processes.runs(None, name)
    assert (during, processes.runs(None, name), processes.runs(None, processes.this())) == (True, False, False)


@pytest.mark.parametrize("name", ["", "1", "elsewhere-1", f"{processes.this()}x", f"{processes.this(KEY)}"])
def test_of_whom_nothing_is_known(name: str) -> None:
    """A process of another host, of another digest key, or a name that is none."""
    assert processes.runs(None, name) is None


def test_a_name_tells_no_host() -> None:
    """It is a digest, keyed where all digests are."""
    assert processes.this() != processes.this(KEY)
    assert socket.gethostname() not in processes.this()
