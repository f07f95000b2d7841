"""The queries of docs/clickhouse.md on the engine of ClickHouse, over the table that the collector's exporter makes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_context_ledger import semconv

chdb_session = pytest.importorskip(
    "chdb.session", reason="the engine is not installed; `nox -s clickhouse` installs it"
)
ROOT = Path(__file__).parents[2]
EXPORTER = "github.com/open-telemetry/opentelemetry-collector-contrib/exporter/clickhouseexporter"
VIEW, REUSED, CAUSES, SESSION, KNOWN = re.findall(
    r"```sql\n(.*?)```", (ROOT / "docs/clickhouse.md").read_text(encoding="utf-8"), re.DOTALL
)


def test_reuse_stands_beside_what_was_old(calls: Any) -> None:
    """Shares are of what was reported, by agent, each beside its checks; an entry that came twice is one call."""
    assert _rows(calls, REUSED) == [
        {
            "agent": "coder", "calls": 3, "unreported": 1, "reused": 0.667,
            "old_rules": 0, "old_files": 1, "lost_constraints": 0,
        },
        {
            "agent": "reviewer", "calls": 2, "unreported": 0, "reused": 0.0,
            "old_rules": 1, "old_files": 0, "lost_constraints": 1,
        },
    ]  # fmt: skip


def test_causes_are_ordered_by_what_they_cost(calls: Any) -> None:
    """What could have been read is added up by cause; where nobody knows it, it is not 0."""
    assert _rows(calls, CAUSES) == [
        {"cause": "tools_reordered", "confidence": "derived", "calls": 1, "avoidable_tokens": 12000},
        {"cause": "previous_unknown", "confidence": "inferred", "calls": 1, "avoidable_tokens": None},
    ]


def test_a_session_is_told_call_by_call(calls: Any) -> None:
    """What is unknown of a call is null, what was reported as 0 is 0."""
    assert [(row["input"], row["cached"], row["outcome"], row["cause"]) for row in _rows(calls, SESSION)] == [
        (15000, 0, "cold", ""),
        (30000, 30000, "hit", ""),
        (40000, None, "unknown", ""),
    ]


def test_hours_tell_how_many_sessions_are_known(calls: Any) -> None:
    """The share of calls of unknown sessions is told by the hour."""
    assert [row["unknown"] for row in _rows(calls, KNOWN)] == [0, 0.333]


@pytest.fixture
def calls(tmp_path: Path) -> Iterator[Any]:
    """The exporter's table with five entries (one of them twice), an aggregate and a span of something else."""
    session = chdb_session.Session(str(tmp_path))
    session.query("CREATE DATABASE otel")
    session.query(_table())
    for number, (at, attributes) in enumerate(_spans()):
        told = {"SpanAttributes": attributes, "Timestamp": at, "TraceId": f"t{number}", "ServiceName": "agents"}
        session.query(f"INSERT INTO otel.otel_traces FORMAT JSONEachRow {json.dumps(told)}")
    session.query(VIEW)
    yield session
    session.close()


def _table() -> str:
    """What the exporter makes, from its sources: its verbs are names, cluster, engine and lifetime."""
    if shutil.which("go") is None:
        pytest.skip("the table stands in the exporter's Go module; Go is not installed")
    found = subprocess.run(
        ["go", "mod", "download", "-json", EXPORTER],
        cwd=ROOT / "collector/distribution",
        check=False,
        capture_output=True,
        text=True,
    )
    if found.returncode:
        pytest.skip(f"the exporter's Go module cannot be had: {found.stderr}")
    text = (Path(json.loads(found.stdout)["Dir"]) / "internal/sqltemplates/traces_table.sql").read_text(
        encoding="utf-8"
    )
    lifetime = "TTL toDateTime(Timestamp) + toIntervalDay(30)"
    return text.replace("%q", "%s") % ('"otel"', '"otel_traces"', "", "MergeTree()", lifetime)


def _spans() -> list[tuple[str, dict[str, str]]]:
    """Spans by their time, with attributes as the exporter spells them: texts all of them."""
    first = _entry("e1", "coder", "s1", input_tokens=15000, cached_tokens=0, cache_outcome="cold")
    second = _entry(
        "e2", "coder", "s1", input_tokens=30000, cached_tokens=30000, cache_outcome="hit", repo_check="stale"
    )
    third = _entry("e3", "coder", "s1", input_tokens=40000, cache_outcome="unknown", cache_report="not_reported")
    other = _entry(
        "e4", "reviewer", "s2", input_tokens=12000, cached_tokens=0, cache_outcome="miss", miss_cause="tools_reordered",
        miss_confidence="derived", avoidable_tokens=12000, policy_check="missing", constraints_check="lost",
    )  # fmt: skip
    moved = _entry(
        "e5", "reviewer", "s3", input_tokens=20000, cached_tokens=0, cache_outcome="miss",
        miss_cause="previous_unknown", miss_confidence="inferred",
    )  # fmt: skip
    whole = _entry("", "coder", "s1", input_tokens=99999, cached_tokens=99999, aggregate="true")
    return [
        ("2026-12-01 10:00:00", first), ("2026-12-01 10:01:00", second), ("2026-12-01 10:01:00", second),
        ("2026-12-01 10:02:00", whole), ("2026-12-01 10:03:00", {"http.route": "/"}),
        ("2026-12-01 11:00:00", third), ("2026-12-01 11:01:00", other), ("2026-12-01 11:02:00", moved),
    ]  # fmt: skip


def _entry(entry: str, agent: str, session: str, **fields: object) -> dict[str, str]:
    told = {"entry_id": entry, "agent": agent, "session_id": session, "counted_by": "none", **fields}
    names = {f"context_ledger.{name}" for name in told}
    assert names <= {value for value in vars(semconv).values() if isinstance(value, str)}
    return {f"context_ledger.{name}": str(value) for name, value in told.items()}


def _rows(session: Any, query: str) -> list[dict[str, Any]]:
    settings = "SETTINGS output_format_json_quote_64bit_integers = 0"
    answer = str(session.query(f"{query.strip()} {settings}", "JSONEachRow"))
    return [json.loads(line) for line in answer.splitlines()]
