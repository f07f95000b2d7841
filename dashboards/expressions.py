"""Owns what can be read from a PromQL expression of a board: its series, its windows, its divisions, its labels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import promql_parser as p

# Windows that no expression has by itself, so that it is seen which variable stood there.
RATE, RANGE = timedelta(seconds=7), timedelta(seconds=11)
_STANDING_FOR = {"$__rate_interval": "7s", "$__interval": "7s", "$__range": "11s"}
_VARIABLE = re.compile(r"\$(?!__)([a-z_]+)")
_LABEL_IN_LEGEND = re.compile(r"\{\{(\w+)\}\}")
_EXCLUDING = (p.MatchOp.NotEqual, p.MatchOp.NotRe)
_SPELLED = re.compile(r"\((?:_\w+)\)\?")


@dataclass(frozen=True, slots=True)
class Matcher:
    """What a label of a series has to be, or must not be."""

    label: str
    values: tuple[str, ...]
    excludes: bool


@dataclass(frozen=True, slots=True)
class Selector:
    """A series that is asked for: its metric, without endings that depend on a version, and its matchers."""

    metric: str
    matchers: tuple[Matcher, ...]

    def picks(self, label: str, value: str) -> bool:
        """Whether this one value of a label is asked for by itself."""
        return Matcher(label, (value,), excludes=False) in self.matchers


def variables(text: str) -> set[str]:
    """The variables of a board that a text names."""
    return set(_VARIABLE.findall(text))


def legend_labels(legend: str) -> set[str]:
    """The labels that a legend names."""
    return set(_LABEL_IN_LEGEND.findall(legend))


def parsed(expr: str) -> p.Expr:
    """The expression with its variables filled in. Raises ValueError for what is no PromQL."""
    for name, window in _STANDING_FOR.items():
        expr = expr.replace(name, window)
    # A threshold is a number; every other variable stands between quotation marks.
    return p.parse(re.sub(r"\$\w+_(?:floor|ceiling)\b", "0.5", expr))


def nodes(expr: p.Expr) -> Iterator[p.Expr]:
    """An expression and all that it is made of."""
    yield expr
    for child in _children(expr):
        yield from nodes(child)


def _children(expr: p.Expr) -> list[p.Expr]:
    if isinstance(expr, p.BinaryExpr):
        return [expr.lhs, expr.rhs]
    if isinstance(expr, p.Call):
        return list(expr.args)
    if isinstance(expr, p.MatrixSelector):
        return [expr.vector_selector]
    inner = getattr(expr, "expr", None)
    return [] if inner is None else [inner]


def selectors(expr: p.Expr) -> list[Selector]:
    """Every series that is asked for."""
    return [_selector(node) for node in nodes(expr) if isinstance(node, p.VectorSelector)]


def _selector(node: p.VectorSelector) -> Selector:
    told = [
        Matcher(one.name, tuple(one.value.split("|")), excludes=one.op in _EXCLUDING) for one in node.matchers.matchers
    ]
    spelled = next((one.value for one in node.matchers.matchers if one.name == "__name__"), "")
    rest = tuple(matcher for matcher in told if matcher.label != "__name__")
    return Selector(node.name or _SPELLED.sub("", spelled), rest)


def windows(expr: p.Expr) -> list[timedelta]:
    """Every window over which something is asked."""
    return [node.range for node in nodes(expr) if isinstance(node, p.MatrixSelector)]


def unguarded(expr: p.Expr) -> list[str]:
    """Whatever is divided by and could be 0."""
    divisions = [node for node in nodes(expr) if isinstance(node, p.BinaryExpr) and str(node.op) == "/"]
    return [str(node.rhs) for node in divisions if not _above_zero(node.rhs)]


def _above_zero(expr: p.Expr) -> bool:
    bare = _bare(expr)
    return isinstance(bare, p.NumberLiteral) or (isinstance(bare, p.BinaryExpr) and str(bare.op) == ">")


def _bare(expr: p.Expr) -> p.Expr:
    return _bare(expr.expr) if isinstance(expr, p.ParenExpr) else expr


def grouped(expr: p.Expr) -> set[str]:
    """All labels by which something is told apart."""
    found = [node.modifier for node in nodes(expr) if isinstance(node, p.AggregateExpr) and node.modifier]
    return {label for modifier in found for label in modifier.labels}


def labels(expr: p.Expr) -> set[str] | None:
    """The labels of an expression's result; None where it has all of its series'."""
    expr = _bare(expr)
    if isinstance(expr, p.AggregateExpr):
        return set(expr.modifier.labels) if expr.modifier else set()
    if isinstance(expr, p.BinaryExpr):
        return _both(labels(expr.lhs), labels(expr.rhs))
    if isinstance(expr, p.Call):
        found = [labels(argument) for argument in expr.args if not _literal(argument)]
        return found[0] if found else set()
    return set() if isinstance(expr, p.NumberLiteral) else None


def _both(left: set[str] | None, right: set[str] | None) -> set[str] | None:
    return left or right


def _literal(expr: p.Expr) -> bool:
    return isinstance(expr, p.NumberLiteral | p.StringLiteral)
