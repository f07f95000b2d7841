"""`context-ledger dashboard`: the boards in a browser, without a Grafana; from a Prometheus, until Ctrl-C.

What is served and to whom is in `viewer/`; here are the options, what is said at the start, and the end.
"""

from __future__ import annotations

import sys
import webbrowser
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from pathlib import Path

import orjson

from otel_context_ledger.cli.calls import Unusable
from otel_context_ledger.cli.printing import Answer, Lines
from otel_context_ledger.cli.viewer import boards, upstream
from otel_context_ledger.cli.viewer.server import Viewer
from otel_context_ledger.config import Config

# 9464, the port of OpenTelemetry's Prometheus exporters, is our collector's.
PROMETHEUS, HOST, PORT = "http://127.0.0.1:9090", "127.0.0.1", 9480
# What Grafana takes where nobody says how often Prometheus scrapes.
SCRAPE_SECONDS = 15.0
GREETING_SECONDS = 3.0


def options(own: ArgumentParser) -> None:
    """Declares the options of the command."""
    own.add_argument(
        "--prometheus",
        metavar="URL",
        default=PROMETHEUS,
        help="the Prometheus to ask (default: %(default)s); http://user:password@host and "
        f"${upstream.TOKEN} (a bearer token) are sent to it alone, and the page never sees them",
    )
    own.add_argument(
        "--port",
        metavar="N",
        type=_port,
        default=PORT,
        help="the port to serve at; 0 takes any that is free (default: %(default)s)",
    )
    own.add_argument(
        "--host",
        metavar="H",
        default=HOST,
        help="an address of this machine to serve at (default: %(default)s, for this machine alone)",
    )
    own.add_argument("--open", action="store_true", help="open the page in a browser")
    own.add_argument("--boards", metavar="DIR", type=Path, help="boards of your own, as Grafana's dashboard JSON")
    own.add_argument(
        "--scrape-interval",
        metavar="SECONDS",
        type=_seconds,
        default=SCRAPE_SECONDS,
        help="how often Prometheus scrapes; rates look at four of them at least (default: %(default)g)",
    )


def answer(arguments: Namespace, settings: Config) -> Answer:
    """Serves the boards until Ctrl-C. Raises Unusable where there is nothing to serve or nowhere to serve it."""
    source = upstream.named(arguments.prometheus, settings.prometheus_token)
    shown = boards.load(arguments.boards)
    try:
        viewer = Viewer(arguments.host, arguments.port, shown, source, arguments.scrape_interval)
    except (OSError, OverflowError) as error:
        where = f"{arguments.host}, port {arguments.port}"
        why = getattr(error, "strerror", None) or str(error)
        raise Unusable(f"cannot serve at {where}: {why}; --port 0 takes any that is free") from error
    with viewer:
        try:
            _say(viewer, arguments.open)
            viewer.serve_forever()
        except KeyboardInterrupt:
            return Answer({}, [Lines(["", "Stopped."])])
    return Answer({}, [])


def _say(viewer: Viewer, browse: bool) -> None:
    print(f"The boards are at {viewer.address} (Ctrl-C ends it).", flush=True)
    for warning in _warnings(viewer):
        print(f"context-ledger: {warning}", file=sys.stderr, flush=True)
    if browse:
        webbrowser.open(viewer.address)


def _warnings(viewer: Viewer) -> Iterator[str]:
    if not upstream.loopback(viewer.host):
        yield f"whoever reaches {viewer.host} can read this Prometheus from here; there is no password."
    greeted = viewer.upstream.ask("/api/v1/query", [("query", "vector(1)")], GREETING_SECONDS)
    if not greeted.fine:
        yield f"{orjson.loads(greeted.body)['error']} The page is served meanwhile."


def _port(raw: str) -> int:
    if not raw.isdecimal() or int(raw) > 65535:
        raise ArgumentTypeError(f"{raw!r} is no port: a whole number up to 65535")
    return int(raw)


def _seconds(raw: str) -> float:
    try:
        seconds = float(raw)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 86400:
        raise ArgumentTypeError(f"{raw!r} is no number of seconds between 0.1 and 86400")
    return seconds
