"""Owns how a metric of the registry is asked for in PromQL: names, labels, and only values that the registry lists.

What boards and rules ask is in measures.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from otel_context_ledger import semconv

UNITS = {"s": "_seconds", "By": "_bytes"}
FLAG = ("true", "false")
# Of calls whose agent or model nobody named.
NAMELESS = "(no name)"


@dataclass(frozen=True, slots=True)
class AllBut:
    """All values of an attribute but these: those too that a later version adds."""

    values: tuple[str, ...]


Picks = Mapping[str, Sequence[str] | AllBut]


def label(key: str) -> str:
    """An attribute's name as Prometheus spells it."""
    return key.replace(".", "_")


AGENT, MODEL = label(semconv.GEN_AI_AGENT_NAME), label(semconv.GEN_AI_REQUEST_MODEL)


def name(metric: str) -> str:
    """A metric's name in Prometheus, without the _bucket, _sum and _count of a histogram. Raises KeyError for a name
    that the registry lacks."""
    told = semconv.METRICS[metric]
    return label(told.name) + UNITS.get(told.unit, "") + ("_total" if told.kind == "counter" else "")


# Every series of the registry's metrics, with its metric.
SERIES = {
    name(metric) + ending: metric
    for metric, told in semconv.METRICS.items()
    for ending in (("_bucket", "_sum", "_count") if told.kind == "histogram" else ("",))
}


def picked(metric: str, picks: Picks, besides: str = "") -> str:
    """The matchers of one metric, in braces, after those that come from outside. Raises ValueError where the metric has
    no such attribute or the registry no such value."""
    matchers = [*(_matcher(metric, key, values) for key, values in picks.items()), *([besides] if besides else [])]
    return f"{{{','.join(matchers)}}}" if matchers else ""


def _matcher(metric: str, key: str, wanted: Sequence[str] | AllBut) -> str:
    values, one, several = (wanted.values, "!=", "!~") if isinstance(wanted, AllBut) else (wanted, "=", "=~")
    if key not in semconv.METRICS[metric].attributes:
        raise ValueError(f"{metric} has no attribute {key}")
    known = FLAG if semconv.TYPES[key] == "boolean" else semconv.MEMBERS.get(key)
    if known and (strange := set(values) - set(known)):
        raise ValueError(f"{key} is never {', '.join(sorted(strange))}; it is one of {', '.join(known)}")
    return f'{label(key)}{one if len(values) == 1 else several}"{"|".join(values)}"'


@dataclass(frozen=True, slots=True)
class View:
    """Over what time and of whom something is asked: `increase` or `rate`, a window ("30m", "$__range"), matchers that
    every series has to meet, the labels that stay, and how long ago ("1d"). `of_calls`: matchers that the ends of tasks
    need not meet, of which nobody says for which model they are."""

    over: str
    window: str
    where: str = ""
    by: Sequence[str] = ()
    ago: str = ""
    of_calls: str = ""

    def per(self, *keys: str) -> View:
        """The same with these attributes told apart."""
        return replace(self, by=tuple(map(label, keys)))

    def total(self, metric: str, picks: Picks | None = None) -> str:
        """What a counter went up by, as a sum."""
        return f"{self.heading} ({self.over}({name(metric)}{self.matching(metric, picks)}{self.time}))"

    def matching(self, metric: str, picks: Picks | None) -> str:
        """The matchers that the series of a metric have to meet, in braces."""
        besides = (self.where, "" if metric == semconv.METRIC_TASKS else self.of_calls)
        return picked(metric, picks or {}, ",".join(filter(None, besides)))

    def quantile(self, share: float, metric: str, picks: Picks | None = None) -> str:
        """A quantile of a histogram."""
        wanted = replace(self, by=("le", *self.by))
        series = f"{name(metric)}_bucket{self.matching(metric, picks)}{self.time}"
        return f"histogram_quantile({share:g}, {wanted.heading} ({self.over}({series})))"

    @property
    def time(self) -> str:
        return f"[{self.window}] offset {self.ago}" if self.ago else f"[{self.window}]"

    @property
    def heading(self) -> str:
        return f"sum by ({', '.join(self.by)})" if self.by else "sum"


def share(part: str, whole: str) -> str:
    """A ratio of two sums: nothing where there was no whole, 0 where there was one and nothing of it in the part."""
    return f"({part} or {whole} * 0) / ({whole} > 0)"


def counted(part: str, whole: str) -> str:
    """A sum that is 0 where there was a whole and nothing of it in the part, and nothing where there was no whole."""
    return f"({part} or {whole} * 0) and {whole} > 0"


def whole(expr: str) -> str:
    """A number of things, without the parts of one that `increase` makes of them at the ends of a window."""
    return f"round({expr})"


def either(one: str, other: str) -> str:
    """The sum of two sums of which one may be missing."""
    return f"(({one} or {other} * 0) + ({other} or {one} * 0))"


def named(expr: str, key: str, word: str = NAMELESS) -> str:
    """The same, with a word where the series has no such label: calls of an agent that nobody named."""
    return f'label_replace({expr}, "{label(key)}", "{word}", "{label(key)}", "")'
