"""Owns the variables of the boards: which there are, what they offer, and how a query refers to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from grafana_foundation_sdk.builders import dashboard as d
from grafana_foundation_sdk.models import common as cm
from grafana_foundation_sdk.models import dashboard as dm

from otel_context_ledger import semconv as s

from .promql import AGENT, MODEL, View, name
from .thresholds import Threshold

DATASOURCE = cm.DataSourceRef(type_val="prometheus", uid="${datasource}")
WHOSE, WHICH = f'{AGENT}=~"$agent"', f'{MODEL}=~"$model"'
# Headlines follow the time picker as a whole, graphs their own resolution.
RANGE = View("increase", "$__range", WHOSE, of_calls=WHICH)
RATE = View("rate", "$__rate_interval", WHOSE, of_calls=WHICH)
COLLECTORS = 'job=~"$job",instance=~"$instance"'

Built: TypeAlias = d.DatasourceVariable | d.QueryVariable | d.CustomVariable


@dataclass(frozen=True, slots=True)
class Choice:
    """A variable that offers the values of a label, several of them at a time, all of them at first."""

    name: str
    label: str
    series: str
    values_of: str

    def build(self) -> Built:
        asked = f"label_values({self.series}, {self.values_of})"
        return (
            d.QueryVariable(self.name)
            .label(self.label)
            .datasource(DATASOURCE)
            .query({"query": asked, "refId": self.name})
            .multi(True)
            .include_all(True)
            # Also what has no such label at all: `.+` would lose the calls of agents without a name.
            .all_value(".*")
            .refresh(dm.VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(dm.VariableSort.ALPHABETICAL_ASC)
            .current(dm.VariableOption(text="All", value="$__all", selected=True))
        )


AGENTS = Choice("agent", "Agent", name(s.METRIC_CALLS), AGENT)
MODELS = Choice("model", "Model", f'{name(s.METRIC_CALLS)}{{{AGENT}=~"$agent"}}', MODEL)


@dataclass(frozen=True, slots=True)
class Source:
    """The choice of the Prometheus that is asked."""

    def build(self) -> Built:
        default = dm.VariableOption(text="default", value="default", selected=True)
        return d.DatasourceVariable("datasource").label("Data source").type("prometheus").current(default)


@dataclass(frozen=True, slots=True)
class Floor:
    """A threshold that the user sets, with its usual value chosen."""

    of: Threshold

    def build(self) -> Built:
        offered = sorted({self.of.value, *self.of.others})
        options = [_option(value, chosen=value == self.of.value) for value in offered]
        return (
            d.CustomVariable(self.of.name)
            .label(self.of.label)
            .values(",".join(f"{value:g}" for value in offered))
            .options(options)
            .allow_custom_value(True)
            .current(_option(self.of.value, chosen=True))
        )


def _option(value: float, *, chosen: bool) -> dm.VariableOption:
    return dm.VariableOption(text=f"{value:g}", value=f"{value:g}", selected=chosen)


Variable = Source | Choice | Floor
