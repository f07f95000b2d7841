"""Owns the marks on the graphs of a board: what happened when."""

from __future__ import annotations

from dataclasses import dataclass, replace

from grafana_foundation_sdk.builders import dashboard as d

from otel_context_ledger import semconv as s

from .promql import AGENT, label
from .variables import DATASOURCE, RATE

# Fine enough that a mark stands where it happened in a run of a minute.
STEP = "15s"
HAPPENED = replace(RATE, over="increase")
# An edit of the repository is an agent's work, and no reason for the provider's cache to miss; another summary is a
# compaction, which has a mark of its own.
REASONS = tuple(part for part in s.MEMBERS[s.CONTEXT_LEDGER_PART] if part not in ("repository", "summary"))


@dataclass(frozen=True, slots=True)
class Annotation:
    """A mark where an expression has a value above 0; title and text may name its labels."""

    name: str
    expr: str
    colour: str
    title: str
    text: str
    shown: bool = True

    def hidden(self) -> Annotation:
        """The same, only after it was switched on: what happens all the time would cover the graphs."""
        return replace(self, shown=False)

    def build(self) -> d.AnnotationQuery:
        asked = d.AnnotationQuery().name(self.name).enable(self.shown).datasource(DATASOURCE).icon_color(self.colour)
        return asked.expr(self.expr).step(STEP).title_format(self.title).text_format(self.text)


def alerts(where: str) -> Annotation:
    """Alerts of ours that fire, of whom a board shows."""
    firing = f'ALERTS{{alertstate="firing",alertname=~"ContextLedger.+"{where}}}'
    return Annotation("Alerts", firing, "red", "{{alertname}}", f"{{{{{AGENT}}}}}")


# An alert about no agent in particular is shown as well.
ALERTS = alerts(f',{AGENT}=~"$agent|"')
COMPACTIONS = Annotation(
    "Compactions",
    f"{HAPPENED.per(s.GEN_AI_AGENT_NAME).total(s.METRIC_COMPACTIONS)} > 0",
    "purple",
    "Compaction",
    f"{{{{{AGENT}}}}}",
)
IDENTITY = Annotation(
    "Identity changes",
    HAPPENED.per(s.GEN_AI_AGENT_NAME, s.CONTEXT_LEDGER_PART).total(
        s.METRIC_IDENTITY_CHANGES, {s.CONTEXT_LEDGER_PART: REASONS}
    )
    + " > 0",
    "yellow",
    f"{{{{{label(s.CONTEXT_LEDGER_PART)}}}}} changed",
    f"{{{{{AGENT}}}}}",
)
