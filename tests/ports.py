"""Ports for servers that are told theirs: below those that the system gives to outgoing connections, one of which would
else take the port before the server does."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack, suppress

# Linux gives connections ports from 32768 on.
FIRST, AFTER = 12_000, 32_000


def free(count: int = 1) -> list[int]:
    """So many different ports of 127.0.0.1 at which nobody listens now."""
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < count:
            with suppress(OSError):
                held.enter_context(socket.create_server(("127.0.0.1", port := random.randrange(FIRST, AFTER))))
                found.append(port)
    return found
