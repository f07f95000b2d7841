"""A loopback server that answers every request with the bytes it was given, and hangs up where it was told to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

HEAD_END = b"\r\n\r\n"


@dataclass
class Raw:
    """What is answered: the bytes of the whole response, sent in `pieces`, cut off after `cut` bytes if that is set."""

    url: str
    response: bytes = b""
    cut: int | None = None
    splits: tuple[int, ...] = ()


def whole(payload: bytes, content_type: str = "application/json", status: int = 200) -> bytes:
    """A response with its length."""
    head = (
        f"HTTP/1.1 {status} OK\r\ncontent-type: {content_type}\r\ncontent-length: {len(payload)}\r\nconnection: close"
    )
    return head.encode() + HEAD_END + payload


@contextmanager
def serving() -> Iterator[Raw]:
    """A server that runs as long as the block; what it answers may be changed between requests."""
    listening = socket.create_server(("127.0.0.1", 0))
    raw = Raw(f"http://127.0.0.1:{listening.getsockname()[1]}")
    threading.Thread(target=_serve, args=(listening, raw), daemon=True).start()
    try:
        yield raw
    finally:
        listening.close()


def _serve(listening: socket.socket, raw: Raw) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection:
            _answer(connection, raw)


def _answer(connection: socket.socket, raw: Raw) -> None:
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _read(connection)
        sent = raw.response[: raw.cut]
        edges = [0, *sorted(min(split, len(sent)) for split in raw.splits), len(sent)]
        for start, end in pairwise(edges):
            connection.sendall(sent[start:end])
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        return


def _read(connection: socket.socket) -> None:
    received = b""
    while HEAD_END not in received:
        received += connection.recv(65536)
    head, _, body = received.partition(HEAD_END)
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    left = int(lengths[0]) - len(body) if lengths else 0
    while left > 0:
        left -= len(connection.recv(65536))
