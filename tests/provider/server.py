"""Owns the loopback HTTP side: receive, record, ask the cache and the script, send whole or in chunks."""

from __future__ import annotations

import dataclasses
import itertools
import json
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.provider import dialects
from tests.provider.behaviour import Behaviour, Plan, choose
from tests.provider.cache import CacheRules, Hit, PrefixCache
from tests.provider.dialects import Route
from tests.provider.record import Received, receive
from tests.provider.reply import Reply
from tests.provider.responses import Conversations
from tests.provider.script import Answer, Script, always
from tests.provider.tokens import Prompt, read_prompt
from tests.provider.usage import Counts
from tests.provider.verdicts import Verdicts

IDLE_SECONDS = 30.0


class Provider(ThreadingHTTPServer):
    """A provider on 127.0.0.1: `with Provider() as provider: OpenAI(base_url=f"{provider.url}/kimi/v1")`.

    `requests` holds what arrived, in order of arrival. Ids of answers count from `first` on: those of two providers are
    not the same.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        script: Script | None = None,
        plan: Plan | None = None,
        rules: CacheRules | None = None,
        port: int = 0,
        first: int = 1,
    ) -> None:
        self.requests: list[Received] = []
        self.script = script or always(Answer())
        self.plan = plan
        self.cache = PrefixCache(rules or CacheRules())
        self.conversations = Conversations()
        self.verdicts = Verdicts()
        self._numbers = itertools.count(first)
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Exchange)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Provider:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.shutdown()
        self.server_close()
        for connection in list(self._connections):
            _hang_up(connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is an ordinary event here; anything else is a defect and is shown."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    def reply(self, route: Route, received: Received, behaviour: Behaviour) -> Reply:
        """Compute the prompt, read and fill the cache, record the request and settle what will be answered."""
        body = received.json
        if route.api is dialects.RESPONSES:
            body = self.conversations.expand(body)
        prompt = read_prompt(body)
        hit = self.cache.use(body, prompt)
        answer = behaviour.answer or self.script(body)
        counts = _counts(prompt, hit, answer)
        seen = {"prompt": counts.prompt, "cached": counts.cached, "written": counts.written, "output": counts.output}
        self.requests.append(dataclasses.replace(received, **seen))
        number = next(self._numbers)
        told = {**self._verdict(route, body, number), **behaviour.extra}
        behaviour = dataclasses.replace(behaviour, extra=told)
        reply = Reply(number, route.vendor, body, counts, answer, behaviour)
        if route.api is dialects.RESPONSES:
            self.conversations.remember(reply)
        return reply

    def _verdict(self, route: Route, body: dict[str, Any], number: int) -> dict[str, Any]:
        """The provider's own verdict on a cache miss, where it has one: OpenAI's Responses and Anthropic's API."""
        if (route.api, route.vendor) == (dialects.RESPONSES, "openai"):
            found = self.verdicts.responses(body)
            self.verdicts.remember(f"resp_{number}", body)
            return found
        if (route.api, route.vendor) == (dialects.MESSAGES, "anthropic"):
            return self.verdicts.messages(f"msg_{number}", body)
        return {}


class _Exchange(BaseHTTPRequestHandler):
    """One connection, possibly with many requests."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = IDLE_SECONDS
    server: Provider

    def log_message(self, format: str, *args: Any) -> None:
        return

    def do_POST(self) -> None:
        received = self._received()
        route = dialects.find(self.path)
        behaviour = choose(self.server.plan, received)
        status = 404 if route is None else behaviour.status if received.json else 400
        if route is None or status >= 400:
            self.server.requests.append(received)
            error = (route.api if route else dialects.CHAT).error(status, behaviour.says)
            self._send(status, json.dumps(error).encode(), behaviour)
            return
        self._answer(route, self.server.reply(route, received, behaviour))

    def _received(self) -> Received:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        return receive(self.path, headers, raw)

    def _answer(self, route: Route, reply: Reply) -> None:
        behaviour = reply.behaviour
        if reply.body.get("stream"):
            self._stream(
                _broken(route.api.events(reply)) if behaviour.malformed else route.api.events(reply), behaviour
            )
            return
        time.sleep(behaviour.pause)
        payload = json.dumps(route.api.whole(reply)).encode()
        self._send(200, payload[: len(payload) // 2] if behaviour.malformed else payload, behaviour)

    def _send(self, status: int, payload: bytes, behaviour: Behaviour) -> None:
        self._head(status, "application/json", behaviour)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        if behaviour.drop_after is not None and status == 200:
            self.wfile.write(payload[: len(payload) // 2])
            self._drop()
            return
        self.wfile.write(payload)

    def _stream(self, frames: list[bytes], behaviour: Behaviour) -> None:
        self._head(200, "text/event-stream", behaviour)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for frame in frames[: behaviour.drop_after]:
            time.sleep(behaviour.pause)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
        if behaviour.drop_after is not None:
            self._drop()
            return
        self.wfile.write(b"0\r\n\r\n")

    def _head(self, status: int, content_type: str, behaviour: Behaviour) -> None:
        number = f"req-{len(self.server.requests)}"
        named = {"content-type": content_type, "x-request-id": number, "request-id": number}
        self.send_response(status)
        for name, value in (named | dict(behaviour.headers)).items():
            self.send_header(name, value)

    def _drop(self) -> None:
        self.close_connection = True
        _hang_up(self.connection)


def _counts(prompt: Prompt, hit: Hit, answer: Answer) -> Counts:
    output, reasoning = answer.output_tokens, answer.reasoning_tokens
    return Counts(len(prompt), hit.cached, hit.written, output, reasoning, prompt.ttl)


def _broken(frames: list[bytes]) -> list[bytes]:
    return [*frames[:-2], frames[-2][: len(frames[-2]) // 2] + b"\n\n", frames[-1]]


def _hang_up(connection: socket.socket) -> None:
    # Closing alone would not reach the peer: the file objects of the connection keep the descriptor open.
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
