"""The files for people with Docker, Grafana and Prometheus, as far as they can be tried without any of their images."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards import uids
from dashboards.rules import PATH
from tests import prometheus
from tests.test_stack import NONE_BUILT, OTELCOL

ROOT = Path(__file__).resolve().parents[1]
FILES = ROOT / "dashboards" / "provisioning"


def read(path: Path) -> Any:
    """A YAML file."""
    return yaml.safe_load(path.read_text("utf-8"))


COMPOSE = read(ROOT / "compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def mounts(service: str) -> Iterator[tuple[str, str]]:
    """(what of this repository or which volume, where) of all that a service has mounted."""
    for mount in SERVICES[service]["volumes"]:
        what, where = mount.removesuffix(":ro").split(":")
        yield what, where


def inside(service: str, path: str) -> Path:
    """The file of this repository that a service sees at a path."""
    for what, where in mounts(service):
        if what.startswith("./") and path.startswith(where):
            return ROOT / what / path[len(where) :].lstrip("/")
    raise LookupError(path)


def test_the_stack_has_a_collector_a_prometheus_a_grafana_and_a_store_of_traces() -> None:
    """Every image says its version: what was tried is what is started."""
    images = {name: service.get("image", "built here").partition(":")[0] for name, service in SERVICES.items()}
    assert images == {
        "collector": "built here",
        "prometheus": "prom/prometheus",
        "tempo": "grafana/tempo",
        "grafana": "grafana/grafana",
    }
    versions = [service["image"].partition(":")[2] for service in SERVICES.values() if "image" in service]
    assert [version for version in versions if not re.fullmatch(r"v?\d+\.\d+\.\d+", version)] == []


def test_nothing_of_the_stack_is_open_to_other_machines() -> None:
    """What agents tell, and a Grafana without a login, are for this machine alone."""
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert len(ports) == 4
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_everything_that_is_mounted_is_there() -> None:
    """A file that is missing would become an empty directory; a volume has to be declared."""
    mounted = [what for service in SERVICES for what, _ in mounts(service)]
    assert [what for what in mounted if what.startswith("./") and not (ROOT / what).exists()] == []
    assert {what for what in mounted if not what.startswith("./")} == set(COMPOSE["volumes"])


def test_grafana_finds_the_boards_their_metrics_and_the_traces() -> None:
    """The provider's path and the first page lead to the committed boards, the data sources to their services."""
    (provider,) = read(FILES / "grafana" / "dashboards" / "context-ledger.yaml")["providers"]
    folder = inside("grafana", provider["options"]["path"])
    assert folder == ROOT / "dashboards" / "dist"
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert inside("grafana", home) == folder / f"{uids.REUSE}.json"
    sources = read(FILES / "grafana" / "datasources" / "context-ledger.yaml")["datasources"]
    assert {one["type"]: one["url"] for one in sources} == {
        "prometheus": "http://prometheus:9090",
        "tempo": f"http://tempo:{read(FILES / 'tempo.yaml')['server']['http_listen_port']}",
    }
    assert {one["url"].split("/")[2].split(":")[0] for one in sources} <= set(SERVICES)
    metrics, traces = sources
    assert [one["datasourceUid"] for one in metrics["jsonData"]["exemplarTraceIdDestinations"]] == [traces["uid"]]
    assert metrics["jsonData"]["timeInterval"] == read(FILES / "prometheus.yml")["global"]["scrape_interval"]


def test_prometheus_takes_its_configuration_and_the_rules(tmp_path: Path) -> None:
    """promtool's word on the file, with the rules that the stack mounts where the file looks for them."""
    prometheus.need("promtool")
    text = (FILES / "prometheus.yml").read_text("utf-8")
    told = "/etc/prometheus/rules"
    assert inside("prometheus", f"{told}/{PATH.name}") == ROOT / "dashboards" / "dist" / PATH
    (tmp_path / "prometheus.yml").write_text(text.replace(told, str(inside("prometheus", told))), encoding="utf-8")
    assert "1 rule files found" in prometheus.promtool("check", "config", tmp_path / "prometheus.yml")


def test_prometheus_scrapes_what_the_collector_serves() -> None:
    """Two endpoints of one service: what it counts, and what it tells of itself."""
    config = read(FILES / "prometheus.yml")
    targets = {one["job_name"]: one["static_configs"][0]["targets"] for one in config["scrape_configs"]}
    assert targets == {"context-ledger": ["collector:9464"], "otelcol-context-ledger": ["collector:8888"]}
    text = (ROOT / "collector" / "configs" / "gateway.yaml").read_text("utf-8")
    assert re.findall(r"(?:PROMETHEUS_ENDPOINT:-0\.0\.0\.0:|SELF_PORT:-)(\d+)", text) == ["9464", "8888"]


@pytest.mark.skipif(not OTELCOL, reason=NONE_BUILT)
def test_the_collector_takes_its_configuration() -> None:
    """The built collector's word on the two files that the stack lays over each other."""
    command = SERVICES["collector"]["command"]
    config = [part if part.startswith("--") else str(inside("collector", part)) for part in command]
    environment = os.environ | SERVICES["collector"]["environment"]
    done = subprocess.run([OTELCOL, "validate", *config], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
