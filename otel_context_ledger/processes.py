"""A process by a name that may stand in a ledger line, digest of its host and id there; and whether it still runs.

What ended is told from what somebody else is still at. A host is known by its name, which containers have each their
own; of a process of another one nothing is known.
"""

from __future__ import annotations

import os
import socket
from functools import lru_cache

from otel_context_ledger.canonical import digest, written

MAX_HOST = 12


def this(key: bytes | None = None) -> str:
    """The name of this process; `key` is that of all exported digests."""
    return f"{_host(key)}-{os.getpid()}"


def runs(key: bytes | None, name: str) -> bool | None:
    """Whether a process of that name runs beside this one; `None`: it cannot be told. One of this process's own id has
    ended: what it wrote was written by an earlier one, or before the ledger was started anew."""
    host, _, number = name.rpartition("-")
    if host != _host(key) or not number.isdecimal() or os.name != "posix":
        return None
    pid = int(number)
    return pid != os.getpid() and _answers(pid)


def _answers(pid: int) -> bool:
    """Signal 0 asks whether there is such a process (kill(2)); one of another user answers by refusing."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


@lru_cache(8)
def _host(key: bytes | None) -> str:
    return written(digest(socket.gethostname().encode("utf-8", "surrogatepass")), key=key).partition(":")[2][:MAX_HOST]
