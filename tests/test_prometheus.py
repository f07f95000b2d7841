"""The Prometheus that other tests ask: over a past that was written, and over what it scrapes."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import prometheus
from .prometheus import Sample, Series
from .viewer import saying, standing

START = 1767258000
PAST = "# TYPE calls counter\n" + "".join(f"calls_total {i * 60} {START + i * 60}\n" for i in range(120)) + "# EOF\n"


def test_a_past_that_was_written_can_be_asked(tmp_path: Path) -> None:
    """A history with fixed times gives the same numbers on every machine and at any date."""
    prometheus.need("prometheus", "promtool")
    (tmp_path / "past.txt").write_text(PAST, "utf-8")
    blocks = prometheus.backfill(tmp_path / "past.txt", tmp_path / "blocks")
    with prometheus.running(tmp_path, blocks=blocks) as server:
        assert server.query("rate(calls_total[10m])", at=START + 3600) == [Sample({}, 1.0)]
        assert server.query_range("calls_total", START, START + 120, 60) == [
            Series({"__name__": "calls_total"}, [(START, 0.0), (START + 60, 60.0), (START + 120, 120.0)])
        ]


def test_targets_are_scraped_every_second(tmp_path: Path) -> None:
    """What an exporter shows can be asked for as soon as it was scraped once."""
    prometheus.need("prometheus")
    page = saying(200, b"# TYPE depth gauge\ndepth 3\n", content_type="text/plain; version=0.0.4")
    with (
        standing(page) as exporter,
        prometheus.running(tmp_path, targets={"demo": [exporter.host]}) as server,
    ):
        assert server.until("depth") == [Sample({"__name__": "depth", "instance": exporter.host, "job": "demo"}, 3.0)]


def test_a_query_that_prometheus_refuses_raises_its_words(tmp_path: Path) -> None:
    """A query that does not parse is an error with the reason, not an empty answer."""
    prometheus.need("prometheus")
    with prometheus.running(tmp_path) as server, pytest.raises(RuntimeError, match="parse error"):
        server.query("sum(")
