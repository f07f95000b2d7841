"""Owns who is served what: the page, its boards, and answers of Prometheus; nothing to a stranger.

A stranger is who asks under a name that is not this machine's (a foreign name that was made to point here), from
another page, or by any method but GET. The page may load nothing from anywhere else, and no other page may read it.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import re
import socket
import socketserver
import sys
import threading
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any

import orjson

from otel_context_ledger import __version__
from otel_context_ledger.cli.viewer.upstream import MAX_ASKED, Upstream, loopback

PAGE = "page.html"
IDLE_SECONDS, CONNECTIONS, MAX_FIELDS = 30.0, 64, 64
MAX_PATH = MAX_ASKED * 3 + 256
TEXT, HTML, JSON = "text/plain; charset=utf-8", "text/html; charset=utf-8", "application/json"
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}
INLINE = re.compile(rb"<(script|style)>(.*?)</\1>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Content:
    """Something that is served: a status, its type and its bytes."""

    status: int
    kind: str
    body: bytes


class Viewer(ThreadingHTTPServer):
    """A server of the page, of boards and of a Prometheus' answers; `address` is where a browser finds it.

    Raises OSError where the host or port cannot be had.
    """

    daemon_threads = True
    request_queue_size = 32

    def __init__(
        self, host: str, port: int, boards: list[dict[str, Any]], upstream: Upstream, scrape_interval: float
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.host, self.upstream = host, upstream
        page = resources.files(__package__).joinpath(PAGE).read_bytes()
        about = {
            "version": __version__,
            "prometheus": upstream.url,
            "scrapeInterval": scrape_interval,
            "boards": boards,
        }
        self.policy = policy(page)
        self.contents: Mapping[str, Content] = {
            "/": Content(HTTPStatus.OK, HTML, page),
            "/viewer.json": Content(HTTPStatus.OK, JSON, orjson.dumps(about)),
        }
        self._places = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__((host, port), _Request)

    @property
    def address(self) -> str:
        """The URL of the page."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_address[1]}/"

    def knows(self, named: str) -> bool:
        """Whether a Host header may be one of ours. A name that an attacker's DNS points here never is."""
        name = (urllib.parse.urlsplit(f"//{named}").hostname or "").rstrip(".")
        if loopback(name):
            return True
        if loopback(self.host):
            return False
        return _literal(name) or name in {self.host.lower(), socket.gethostname().lower()}

    def server_bind(self) -> None:
        """Binds without asking DNS for the machine's name, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.host, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """One thread for each connection, of which there are only so many."""
        if self._places.acquire(timeout=IDLE_SECONDS):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """A connection from its begin to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that leaves is no error; whatever else it was, the others are served."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            print(f"context-ledger: a request failed: {type(error).__name__}", file=sys.stderr)


def policy(page: bytes) -> str:
    """The page's Content-Security-Policy: its own script and style, questions to its own server, and nothing else."""
    hashes = {"script": list[str](), "style": list[str]()}
    for kind, text in INLINE.findall(page):
        hashes[kind.decode()].append(f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'")
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(hashes['script'])}",
            f"style-src {' '.join(hashes['style'])}",
            "img-src data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def _literal(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _said(status: HTTPStatus, sentence: str) -> Content:
    return Content(status, TEXT, f"{sentence}\n".encode())


class _Request(BaseHTTPRequestHandler):
    """One connection; a request is answered or refused in `_content`."""

    server: Viewer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "context-ledger", ""
    timeout = IDLE_SECONDS

    def log_message(self, *_: object) -> None:
        return

    def do_GET(self) -> None:
        self._send(self._content())

    def _refuse(self) -> None:
        self.close_connection = True
        self._send(_said(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET: nothing is changed from here."), allow="GET")

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _refuse

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server itself refuses, as plain text that repeats nothing of the request."""
        self.close_connection = True
        self._send(_said(HTTPStatus(code), HTTPStatus(code).phrase))

    def _content(self) -> Content:
        refusal = self._stranger()
        if refusal:
            return refusal
        path, _, query = self.path.partition("?")
        if path in self.server.contents:
            return self.server.contents[path]
        if path.startswith("/api/"):
            return self._asked(path, query)
        return _said(HTTPStatus.NOT_FOUND, f"Nothing is here; the page is at {self.server.address}.")

    def _stranger(self) -> Content | None:
        hosts = self.headers.get_all("host") or []
        if len(hosts) != 1 or not self.server.knows(hosts[0]):
            return _said(HTTPStatus.FORBIDDEN, f"The page is served at {self.server.address} and under no other name.")
        # Every browser of today says where a request comes from; a link to the page from elsewhere is welcome.
        here = self.headers.get("sec-fetch-site", "none") in {"none", "same-origin"}
        if not here and self.path.partition("?")[0] != "/":
            return _said(HTTPStatus.FORBIDDEN, "Only the page itself may ask for this.")
        if len(self.path) > MAX_PATH:
            return _said(HTTPStatus.REQUEST_URI_TOO_LONG, "The question is too long.")
        if self.headers.get("content-length", "0") != "0" or "transfer-encoding" in self.headers:
            self.close_connection = True
            return _said(HTTPStatus.BAD_REQUEST, "A question has no body.")
        return None

    def _asked(self, path: str, query: str) -> Content:
        try:
            parameters = urllib.parse.parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_FIELDS)
        except ValueError:
            return _said(HTTPStatus.BAD_REQUEST, f"A question has {MAX_FIELDS} parameters at most.")
        answer = self.server.upstream.ask(path, parameters)
        return Content(answer.status, JSON, answer.body)

    def _send(self, content: Content, **more: str) -> None:
        self.send_response(content.status)
        headers = {"content-type": content.kind, "content-length": str(len(content.body)), **HEADERS, **more}
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-security-policy", self.server.policy)
        if self.close_connection:
            self.send_header("connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content.body)
