"""`context-ledger dashboard`: who is served what, and what is asked of Prometheus. What the page draws is in
test_viewer.py."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from otel_context_ledger.cli import main
from otel_context_ledger.cli.viewer import boards, upstream
from tests.viewer import NOBODY, asked, board, saying, serving, standing

FINE = b'{"status":"success","data":[]}'
SECRET = "open-sesame-4711"
COMMAND = [sys.executable, "-c", "import sys; from otel_context_ledger.cli import main; sys.exit(main())", "dashboard"]


def told(body: bytes) -> str:
    """The sentence of an error."""
    return str(json.loads(body)["error"])


def test_the_page_may_load_nothing_from_anywhere_else() -> None:
    """The policy names the page's own script and style by their digest and its own server, and nothing else."""
    with serving() as viewer:
        reply = asked(viewer, "/")
    policy = re.sub(r"'sha256-[\w+/=]+'", "DIGEST", reply.headers["content-security-policy"])
    assert policy == (
        "default-src 'none'; script-src DIGEST; style-src DIGEST; img-src data:; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")


def test_no_other_page_may_read_an_answer() -> None:
    """No reply allows another origin, and each forbids to guess its type or to keep it."""
    with serving() as viewer:
        replies = [
            asked(viewer, path, origin="http://evil.example")
            for path in ("/", "/viewer.json", "/none", "/api/v1/rules")
        ]
    for reply in replies:
        assert not [name for name in reply.headers if name.startswith("access-control")]
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/etc/passwd", "/../pyproject.toml", "/page.html", "/boards/", "/api", "/%2e%2e/"])
def test_nothing_but_the_page_is_served(path: str) -> None:
    """There are no files behind the server, only the page, its boards and questions."""
    with serving() as viewer:
        assert asked(viewer, path).status == 404


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "", "a@evil.example"],
)
def test_a_foreign_name_is_refused(host: str) -> None:
    """A name that somebody's DNS points to this machine reads neither page, boards nor Prometheus."""
    with serving() as viewer:
        replies = [asked(viewer, path, host=host) for path in ("/", "/viewer.json", "/api/v1/rules")]
    assert [reply.status for reply in replies] == [403] * 3
    assert host == "" or not any(host in reply.text for reply in replies)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9480", "127.0.0.1:80", "[::1]:9480", "localhost."])
def test_the_names_of_this_machine_are_known(host: str) -> None:
    """Any of loopback's names will do, on whatever port a tunnel brings it."""
    with serving() as viewer:
        assert asked(viewer, "/viewer.json", host=host).status == 200


def test_at_an_open_address_a_foreign_name_is_refused_still() -> None:
    """Who serves the network is reached by its addresses and its own name, not by any name."""
    with serving(host="0.0.0.0") as viewer:
        found = {
            host: asked(viewer, "/viewer.json", host=host).status
            for host in ("192.0.2.7", "evil.example", socket.gethostname())
        }
    assert found == {"192.0.2.7": 200, "evil.example": 403, socket.gethostname(): 200}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE"])
def test_only_get_is_answered(method: str) -> None:
    """Whatever else is asked for never reaches Prometheus."""
    with standing(saying(200, FINE)) as prometheus, serving(prometheus.url) as viewer:
        reply = asked(viewer, "/api/v1/query", method, None if method == "HEAD" else b"query=up")
    assert (reply.status, reply.headers["allow"], prometheus.paths) == (405, "GET", [])


def test_an_unknown_method_is_refused_without_repeating_it() -> None:
    """What http.server refuses by itself says nothing of the request."""
    with serving() as viewer:
        reply = asked(viewer, "/", "<B>")
    assert (reply.status, reply.text) == (501, "Not Implemented\n")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/admin/tsdb/delete_series",
        "/api/v1/admin/tsdb/snapshot",
        "/api/v1/status/config",
        "/api/v1/status/flags",
        "/api/v1/targets",
        "/api/v1/write",
        "/api/v1/read",
        "/api/v1/otlp/v1/metrics",
        "/api/v1/label/a/values/../../../admin",
        "/api/v1/label/a%2Fb/values",
        "/api/v1/query/",
        "/api/v1/query%2f..%2fadmin",
        "/api/v2/query",
        "/api/v1/label//values",
        "//evil.example/api/v1/query",
    ],
)
def test_what_does_not_read_series_is_refused(path: str) -> None:
    """Administration, configuration and everything that nobody named stay out of reach."""
    with standing(saying(200, FINE)) as prometheus, serving(prometheus.url) as viewer:
        assert asked(viewer, f"{path}?query=up").status in {403, 404}
    assert prometheus.paths == []


@pytest.mark.parametrize(
    "path",
    [
        "query",
        "query_range",
        "query_exemplars",
        "series",
        "labels",
        "rules",
        "alerts",
        "metadata",
        "label/__name__/values",
    ],
)
def test_what_reads_is_handed_on(path: str) -> None:
    """A question arrives as it was asked, by GET, with its parameters."""
    asking = [
        ("query", 'up{a="b&c"} + 1'),
        ("match[]", "a"),
        ("match[]", "b"),
        ("start", "1"),
        ("end", "2"),
        ("step", "15"),
    ]
    with standing(saying(200, FINE)) as prometheus, serving(f"{prometheus.url}/prom/") as viewer:
        reply = asked(viewer, f"/api/v1/{path}?{urllib.parse.urlencode(asking)}")
    where, _, query = prometheus.paths[0].partition("?")
    assert (where, urllib.parse.parse_qsl(query)) == (f"/prom/api/v1/{path}", asking)
    assert (reply.status, reply.headers["content-type"], reply.body) == (200, "application/json", FINE)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("query=up&stats=all", 403),
        ("query=up&timeout=1h", 403),
        ("&".join(["match[]=a"] * 65), 400),
        (f"query={'a' * 17000}", 403),
        (f"query={'a' * 60000}", 414),
    ],
)
def test_a_question_is_bounded(query: str, status: int) -> None:
    """Parameters that no such question has, too many of them and too long ones are refused."""
    with standing(saying(200, FINE)) as prometheus, serving(prometheus.url) as viewer:
        assert asked(viewer, f"/api/v1/query?{query}").status == status
    assert prometheus.paths == []


def test_a_question_has_no_body() -> None:
    """A body is refused and the connection closed, so that nothing in it is taken for a request."""
    with serving() as viewer:
        reply = asked(viewer, "/viewer.json", body=b"GET /smuggled HTTP/1.1")
    assert (reply.status, reply.headers["connection"]) == (400, "close")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_page_cannot_ask(site: str) -> None:
    """A page from elsewhere may link here, but not have Prometheus asked, not even blindly."""
    with standing(saying(200, FINE)) as prometheus, serving(prometheus.url) as viewer:
        replies = [
            asked(viewer, path, sec_fetch_site=site) for path in ("/?board=a", "/viewer.json", "/api/v1/query?query=up")
        ]
    assert ([reply.status for reply in replies], prometheus.paths) == ([200, 403, 403], [])


@pytest.mark.parametrize(
    ("userinfo", "token", "header"),
    [
        ("me:open-sesame-4711@", None, f"Basic {base64.b64encode(f'me:{SECRET}'.encode()).decode()}"),
        ("m%40e:%3Aopen-sesame-4711@", "unused", f"Basic {base64.b64encode(f'm@e::{SECRET}'.encode()).decode()}"),
        ("", SECRET, f"Bearer {SECRET}"),
        ("", None, None),
    ],
)
def test_credentials_go_to_prometheus_alone(userinfo: str, token: str | None, header: str | None) -> None:
    """User and password of the URL, or a token, are sent to Prometheus; the page gets none of them."""
    with standing(saying(200, FINE)) as prometheus:
        url = prometheus.url.replace("://", f"://{userinfo}")
        with serving(url, token=token) as viewer:
            page = [asked(viewer, path) for path in ("/", "/viewer.json", "/api/v1/rules")]
    assert prometheus.headers[0].get("authorization") == header
    assert json.loads(page[1].body)["prometheus"] == prometheus.url
    assert not any(SECRET in reply.text or SECRET in str(reply.headers) for reply in page)


def test_credentials_are_in_no_error() -> None:
    """A Prometheus that is down, or wants others, is named without them."""
    down = upstream.named(f"http://me:{SECRET}@127.0.0.1:1").ask("/api/v1/rules", [])
    with standing(saying(401, b"no")) as prometheus:
        refused = upstream.named(prometheus.url, SECRET).ask("/api/v1/rules", [])
    assert told(down.body) == (
        "No Prometheus answers at http://127.0.0.1:1: start one (`prometheus --config.file=prometheus.yml`), or name "
        "another with --prometheus URL."
    )
    assert told(refused.body) == (
        f"{prometheus.url} wants other credentials: put a token into CONTEXT_LEDGER_PROMETHEUS_TOKEN, or user and "
        "password into the URL."
    )
    assert SECRET not in repr(upstream.named(f"http://me:{SECRET}@127.0.0.1:1", SECRET))


def test_a_redirect_is_not_followed() -> None:
    """Credentials are for the host that the user named."""
    with (
        standing(saying(200, FINE)) as elsewhere,
        standing(saying(302, b"", location=f"{elsewhere.url}/api/v1/rules")) as prometheus,
    ):
        reply = upstream.named(prometheus.url, SECRET).ask("/api/v1/rules", [])
    assert (
        told(reply.body)
        == f"{prometheus.url} sends elsewhere; name the address that it sends to with --prometheus URL."
    )
    assert (reply.status, elsewhere.paths) == (502, [])


def test_what_is_no_prometheus_is_told() -> None:
    """Another program at that address is not handed on to the page."""
    with (
        standing(saying(200, b"<html><script>alert(1)</script>")) as other,
        standing(saying(404, b"not here")) as empty,
    ):
        replies = [upstream.named(one.url).ask("/api/v1/rules", []) for one in (other, empty)]
    assert [(reply.status, told(reply.body)) for reply in replies] == [
        (502, f"What answers at {one.url} is no Prometheus; name another with --prometheus URL.")
        for one in (other, empty)
    ]


def test_the_words_of_prometheus_are_handed_on() -> None:
    """What Prometheus refuses it says best itself."""
    words = b'{"status":"error","errorType":"bad_data","error":"1:4: parse error"}'
    with standing(saying(400, words)) as prometheus, serving(prometheus.url) as viewer:
        reply = asked(viewer, "/api/v1/query?query=a+b")
    assert (reply.status, reply.body) == (400, words)


def test_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that would fill the memory is cut off, with a sentence."""
    monkeypatch.setattr(upstream, "MAX_BYTES", 2**20)

    def endless(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        try:
            while True:
                request.wfile.write(b'{"status":"success","data":"' + b"a" * 65536)
        except OSError:
            return

    with standing(endless) as prometheus:
        reply = upstream.named(prometheus.url).ask("/api/v1/rules", [])
    assert (reply.status, told(reply.body)) == (502, "The answer is larger than 1 MB; choose a shorter range.")


@pytest.mark.parametrize("begin", [b"", b'{"status":'])
def test_waiting_is_bounded(begin: bytes) -> None:
    """A Prometheus that accepts and says nothing, or never comes to an end, is waited for no longer than that."""

    def slow(request: BaseHTTPRequestHandler) -> None:
        try:
            if begin:
                request.send_response(200)
                request.end_headers()
            for _ in range(100):
                request.wfile.write(begin and b" ")
                time.sleep(0.05)
        except OSError:
            return

    with standing(slow) as prometheus:
        reply = upstream.named(prometheus.url).ask("/api/v1/rules", [], seconds=0.3)
    assert (reply.status, told(reply.body)) == (504, f"{prometheus.url} did not answer in 0.3 seconds.")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--prometheus", "nonsense"],
            "--prometheus: that is neither a URL nor host:port; one looks like http://127.0.0.1:9090",
        ),
        (["--prometheus", "ftp://a"], "--prometheus: a URL begins with http:// or https:// and has a host"),
        (
            ["--prometheus", f"http://me:{SECRET}@a:x"],
            "--prometheus: that is no URL; one looks like http://127.0.0.1:9090",
        ),
        (
            ["--prometheus", f"http://a/?token={SECRET}"],
            "--prometheus: the URL ends with the path; nothing follows a ? or #",
        ),
        (["--boards", "/nowhere"], "the boards in /nowhere cannot be read: No such file or directory"),
    ],
)
def test_a_wrong_option_is_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be used is said in a sentence without secrets, and nothing is served."""
    assert main(["dashboard", *arguments]) == 2
    assert capsys.readouterr().err == f"context-ledger: {sentence}\n"


@pytest.mark.parametrize(
    "arguments", [["--port", "70000"], ["--port", "-1"], ["--scrape-interval", "0"], ["--scrape-interval", "nan"]]
)
def test_a_number_out_of_range_is_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Ports and seconds have their range."""
    with pytest.raises(SystemExit) as wrong:
        main(["dashboard", *arguments])
    assert (wrong.value.code, arguments[1] in capsys.readouterr().err) == (2, True)


def test_a_token_that_no_header_may_carry_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token with a line break in it would be a header of its own."""
    monkeypatch.setenv("CONTEXT_LEDGER_PROMETHEUS_TOKEN", f"{SECRET}\r\nx: y")
    assert main(["dashboard"]) == 2
    assert (
        capsys.readouterr().err
        == "context-ledger: CONTEXT_LEDGER_PROMETHEUS_TOKEN holds a character that no header may carry\n"
    )


def test_a_port_that_is_taken_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence names the way out."""
    with serving() as viewer:
        port = viewer.server_address[1]
        assert main(["dashboard", "--port", str(port)]) == 2
    assert capsys.readouterr().err == (
        f"context-ledger: cannot serve at 127.0.0.1, port {port}: Address already in use; --port 0 takes any "
        "that is free\n"
    )


@pytest.mark.parametrize(
    ("name", "text"), [("a.json", "{"), ("b.json", "[]"), ("c.json", '{"panels": []}'), ("d.json", '{"uid": "a"}')]
)
def test_a_file_that_is_no_board_is_named(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder of boards is taken whole or not at all."""
    (tmp_path / name).write_text(text)
    assert main(["dashboard", "--boards", str(tmp_path)]) == 2
    assert (
        capsys.readouterr().err
        == f"context-ledger: {tmp_path / name} is no board: Grafana's classic dashboard JSON has a uid and panels\n"
    )


def test_a_folder_without_boards_is_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty folder would be an empty page."""
    assert main(["dashboard", "--boards", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"context-ledger: no board is in {tmp_path}; a board is Grafana's dashboard JSON, in a file that ends in "
        ".json\n"
    )


def test_the_boards_that_ship_are_shown_in_their_order() -> None:
    """The first one is the one that pairs reuse with correctness."""
    shipped = [str(one["uid"]) for one in boards.load()]
    assert shipped == [uid for uid in boards.ORDER if uid in shipped]
    assert shipped[0] == "context-ledger-reuse"


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C of another process")
def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    """It prints where the page is, warns that Prometheus is not there, serves all the same, and ends without a fuss."""
    (tmp_path / "a.json").write_text(json.dumps(board()))
    arguments = ["--port", "0", "--prometheus", NOBODY, "--boards", str(tmp_path)]
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout and process.stderr
    said, warned = process.stdout.readline(), process.stderr.readline()
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=30)
    assert re.fullmatch(r"The boards are at http://127\.0\.0\.1:\d+/ \(Ctrl-C ends it\)\.\n", said)
    assert warned == (
        f"context-ledger: No Prometheus answers at {NOBODY}: start one (`prometheus --config.file=prometheus.yml`), or "
        "name another with --prometheus URL. The page is served meanwhile.\n"
    )
    assert (rest, process.returncode) == (("\nStopped.\n", ""), 0)


def test_an_open_address_is_warned_of(tmp_path: Path) -> None:
    """Who serves others is told that they can read."""
    (tmp_path / "a.json").write_text(json.dumps(board()))
    arguments = ["--port", "0", "--prometheus", NOBODY, "--boards", str(tmp_path), "--host", "0.0.0.0"]
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    warned = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert (
        warned == "context-ledger: whoever reaches 0.0.0.0 can read this Prometheus from here; there is no password.\n"
    )
