"""Owns what may be asked of a Prometheus, and how: the endpoints that read, within bounds of size and time, with the
user's credentials and without ever showing them.

An error is told as Prometheus tells its own: `{"status": "error", "errorType": …, "error": a sentence}`.
"""

from __future__ import annotations

import base64
import ipaddress
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from email.message import Message
from http import HTTPStatus
from typing import IO, NoReturn, cast

import orjson

from otel_context_ledger.cli.calls import Unusable
from otel_context_ledger.config import PREFIX

TOKEN = f"{PREFIX}PROMETHEUS_TOKEN"
# https://prometheus.io/docs/prometheus/latest/querying/api/: what reads data, rules and alerts, and nothing of the
# server, its targets, its configuration or its administration.
READS = re.compile(
    r"/api/v1/(?:query|query_range|query_exemplars|series|labels|rules|alerts|metadata"
    r"|label/[a-zA-Z_][a-zA-Z0-9_]{0,127}/values)"
)
ANSWER = re.compile(rb'\s{0,16}\{\s{0,16}"status"\s{0,16}:')
PARAMETERS = frozenset({"query", "time", "start", "end", "step", "match[]", "limit", "metric", "type"})
SECONDS, MAX_BYTES, MAX_ASKED, AT_ONCE = 30.0, 32 * 2**20, 16 * 2**10, 8
CHUNK = 64 * 2**10
START = "start one (`prometheus --config.file=prometheus.yml`), or name another with --prometheus URL"


@dataclass(frozen=True, slots=True)
class Answered:
    """What is handed to the page: a status of HTTP and a JSON document."""

    status: int
    body: bytes

    @property
    def fine(self) -> bool:
        """Whether there is an answer, of whatever kind, from a Prometheus."""
        return self.status == HTTPStatus.OK


@dataclass(frozen=True, slots=True)
class Upstream:
    """A Prometheus at a URL. The URL has no credentials; what authorises is kept out of every text."""

    url: str
    authorization: str | None = field(default=None, repr=False)
    places: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(AT_ONCE), repr=False)

    def ask(self, path: str, parameters: list[tuple[str, str]], seconds: float = SECONDS) -> Answered:
        """The answer to one question; a sentence about what went wrong where there is none. Never raises."""
        refusal = _refusal(path, parameters)
        if refusal:
            return told(HTTPStatus.FORBIDDEN, "refused", refusal)
        if not self.places.acquire(timeout=seconds):
            return told(HTTPStatus.SERVICE_UNAVAILABLE, "busy", f"{AT_ONCE} questions are waiting for Prometheus.")
        try:
            return self._asked(path, parameters, seconds)
        finally:
            self.places.release()

    def _asked(self, path: str, parameters: list[tuple[str, str]], seconds: float) -> Answered:
        request = urllib.request.Request(f"{self.url}{path}?{urllib.parse.urlencode(parameters)}")
        request.add_header("accept", "application/json")
        if self.authorization:
            request.add_header("authorization", self.authorization)
        until = time.monotonic() + seconds
        try:
            with _opener(self.url).open(request, timeout=seconds) as answer:
                return self._read(answer, HTTPStatus.OK, until)
        except urllib.error.HTTPError as refused:
            with refused:
                return self._refused(refused, until)
        except TimeoutError:
            return told(HTTPStatus.GATEWAY_TIMEOUT, "timeout", f"{self.url} did not answer in {seconds:g} seconds.")
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                return told(HTTPStatus.GATEWAY_TIMEOUT, "timeout", f"{self.url} did not answer in {seconds:g} seconds.")
            return told(HTTPStatus.BAD_GATEWAY, "unreachable", f"No Prometheus answers at {self.url}: {START}.")

    def _refused(self, error: urllib.error.HTTPError, until: float) -> Answered:
        if error.code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            how = f"put a token into {TOKEN}, or user and password into the URL"
            return told(HTTPStatus.BAD_GATEWAY, "unauthorized", f"{self.url} wants other credentials: {how}.")
        if HTTPStatus.MULTIPLE_CHOICES <= error.code < HTTPStatus.BAD_REQUEST:
            sentence = f"{self.url} sends elsewhere; name the address that it sends to with --prometheus URL."
            return told(HTTPStatus.BAD_GATEWAY, "redirect", sentence)
        try:
            return self._read(cast("IO[bytes]", error), error.code, until)
        except OSError:
            return self._strange()

    def _read(self, answer: IO[bytes], status: int, until: float) -> Answered:
        parts, size = list[bytes](), 0
        while part := answer.read(CHUNK):
            parts.append(part)
            size += len(part)
            if size > MAX_BYTES:
                sentence = f"The answer is larger than {MAX_BYTES // 2**20} MB; choose a shorter range."
                return told(HTTPStatus.BAD_GATEWAY, "too_large", sentence)
            if time.monotonic() > until:
                raise TimeoutError
        body = b"".join(parts)
        return Answered(status, body) if _is_answer(body) else self._strange()

    def _strange(self) -> Answered:
        sentence = f"What answers at {self.url} is no Prometheus; name another with --prometheus URL."
        return told(HTTPStatus.BAD_GATEWAY, "no_prometheus", sentence)


def named(url: str, token: str | None = None) -> Upstream:
    """The Prometheus at a URL, whose user and password are sent as they are told. Raises Unusable for what is no URL of
    one; the sentence has none of the URL's secrets."""
    try:
        parts = urllib.parse.urlsplit(url.strip() if "://" in url else f"http://{url.strip()}")
        host, port = parts.hostname, parts.port
    except ValueError:
        _unusable("--prometheus: that is no URL; one looks like http://127.0.0.1:9090")
    if parts.scheme not in {"http", "https"} or not host:
        _unusable("--prometheus: a URL begins with http:// or https:// and has a host")
    if "://" not in url and port is None:
        _unusable("--prometheus: that is neither a URL nor host:port; one looks like http://127.0.0.1:9090")
    if parts.query or parts.fragment:
        _unusable("--prometheus: the URL ends with the path; nothing follows a ? or #")
    place = f"[{host}]" if ":" in host else host
    shown = f"{parts.scheme}://{place}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    return Upstream(shown, _authorization(parts, token))


def told(status: int, kind: str, sentence: str) -> Answered:
    """An error in the form of Prometheus' own."""
    return Answered(status, orjson.dumps({"status": "error", "errorType": kind, "error": sentence}))


def loopback(host: str) -> bool:
    """Whether a host is this machine and nobody else's."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def _authorization(parts: urllib.parse.SplitResult, token: str | None) -> str | None:
    if parts.username is not None:
        pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"
    if token is None:
        return None
    if not (token.isascii() and token.isprintable()):
        _unusable(f"{TOKEN} holds a character that no header may carry")
    return f"Bearer {token}"


def _unusable(sentence: str) -> NoReturn:
    raise Unusable(sentence) from None


def _refusal(path: str, parameters: list[tuple[str, str]]) -> str:
    """Why this is not asked, or nothing."""
    if not READS.fullmatch(path):
        return "Only what reads series, rules and alerts is asked of Prometheus."
    if strange := {name for name, _ in parameters} - PARAMETERS:
        return f"{len(strange)} parameters that no such question has."
    if sum(len(name) + len(value) for name, value in parameters) > MAX_ASKED:
        return f"The question is longer than {MAX_ASKED // 2**10} KB."
    return ""


def _is_answer(body: bytes) -> bool:
    # The document may be large, and it is the page that reads it.
    return ANSWER.match(body) is not None


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows nobody: credentials are for the host that the user named."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


def _opener(url: str) -> urllib.request.OpenerDirector:
    """What opens a URL: by the proxy of the environment, unless it is on this machine."""
    here = loopback(urllib.parse.urlsplit(url).hostname or "")
    return urllib.request.build_opener(_Stay, *([urllib.request.ProxyHandler({})] if here else []))
