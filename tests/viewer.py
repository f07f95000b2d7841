"""What tests of `context-ledger dashboard` share: the server on a free port, what stands for a Prometheus that
misbehaves, and boards of a few panels."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from otel_context_ledger.cli.viewer import upstream
from otel_context_ledger.cli.viewer.server import Viewer

NOBODY = "http://127.0.0.1:1"
# 2026-01-01 09:00 and 10:00 UTC.
FROM, TO = 1767258000, 1767261600
SCRAPE = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@contextmanager
def serving(
    prometheus: str = NOBODY,
    *boards: dict[str, Any],
    token: str | None = None,
    host: str = "127.0.0.1",
    scrape: float = SCRAPE,
) -> Iterator[Viewer]:
    """A running server of boards."""
    viewer = Viewer(host, 0, list(boards) or [board()], upstream.named(prometheus, token), scrape)
    threading.Thread(target=viewer.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield viewer
    finally:
        viewer.shutdown()
        viewer.server_close()


def asked(viewer: Viewer, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Reply:
    """The reply to one request, whose path is sent as it is; header names have _ for -."""
    connection = http.client.HTTPConnection("127.0.0.1", viewer.server_address[1], timeout=30)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.putrequest(method, path, skip_host="host" in named)
        if body is not None:
            named["content-length"] = str(len(body))
        for name, value in named.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()


@dataclass(slots=True)
class Other:
    """A server in a Prometheus' place: what it was asked, path and headers."""

    url: str
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def host(self) -> str:
        """host:port."""
        return self.url.removeprefix("http://")


@contextmanager
def standing(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[Other]:
    """A server that answers as a function says."""

    class Asked(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.paths.append(self.path)
            seen.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer(self)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Asked)
    seen = Other(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()


def saying(status: int, body: bytes, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """Answers every request alike."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in {"content_length": str(len(body)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return answer


def board(*panels: dict[str, Any], uid: str = "board", title: str = "Board", **more: Any) -> dict[str, Any]:
    """A board of panels that stand below each other."""
    placed = [{"id": at, "gridPos": {"x": 0, "y": 8 * at, "w": 12, "h": 8}} | one for at, one in enumerate(panels, 1)]
    time = {"from": str(FROM * 1000), "to": str(TO * 1000)}
    return {"uid": uid, "title": title, "timezone": "utc", "refresh": "", "time": time, "panels": placed} | more


def panel(kind: str, title: str, *targets: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A panel of a kind; `defaults`, `overrides` and `options` go where Grafana has them."""
    config = {"defaults": more.pop("defaults", {}), "overrides": more.pop("overrides", [])}
    return {"type": kind, "title": title, "targets": list(targets), "fieldConfig": config, **more}


def target(expr: str, ref: str = "A", legend: str = "", *, instant: bool = False, **more: Any) -> dict[str, Any]:
    """A query."""
    return {"refId": ref, "expr": expr, "legendFormat": legend, "instant": instant, "range": not instant, **more}


def override(name: str, **properties: Any) -> dict[str, Any]:
    """An override by name; `custom_x` is the property custom.x."""
    listed = [{"id": key.replace("custom_", "custom."), "value": value} for key, value in properties.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": listed}
