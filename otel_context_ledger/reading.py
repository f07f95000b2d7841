"""How a program says that it put a file into the context, where no tool call in the history shows it."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

from otel_context_ledger import tasks
from otel_context_ledger.correctness.accesses import absolute
from otel_context_ledger.correctness.reads import SAID

_warned: set[str] = set()
_log = logging.getLogger("otel_context_ledger")


def read(path: str | os.PathLike[str]) -> None:
    """Says that the file at `path` was read whole, just now, and that what it held is in the context of this session
    from here on. From then on the check of the repository tells whether it still holds that; say it again after each
    new read. Costs no look at the disk, and never raises.
    """
    try:
        found = absolute(os.fsdecode(path), str(Path.cwd()))
        if found is not None:
            SAID.say(tasks.current().session, found, time.time())
    except Exception as error:  # noqa: BLE001 - the program goes on, whatever it gave us
        if "read" not in _warned:
            _warned.add("read")
            _log.warning("context ledger: read: a path cannot be used (%s); ignored", type(error).__name__)
