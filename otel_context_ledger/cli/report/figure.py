"""A session's timeline as a picture: misses, compactions and identity changes above, input by source, checks below.

Everything of one column stands at the same x. Colour says nothing alone: sources are full, striped, pale or hatched,
checks differ in shape, misses in letter. Styles are the page's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from otel_context_ledger.cli import checks
from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.printing import count, moment, plural, share
from otel_context_ledger.cli.report.markup import Markup, element, number, trusted
from otel_context_ledger.cli.report.timeline import RIGHT, SOURCES, UNASKED, UNJUDGED, WRONG, Column
from otel_context_ledger.cli.show import cause

LEFT, EDGE, AREA = 98.0, 12.0, 930.0
WIDEST, NARROWEST_GAP = 46.0, 5.0
LANES = {"misses": 20.0, "compactions": 38.0, "identity": 54.0}
TOP, PLOT = 68.0, 116.0
BOTTOM = TOP + PLOT
STRIP, ROW = BOTTOM + 10, 15.0
HEIGHT = STRIP + ROW * len(checks.ORDER) + 18
MAX_TOLD = 3
BREAK = trusted("\n")
# Room that a letter needs, with that to the next.
LETTER = 8.0


@dataclass(frozen=True, slots=True)
class Frame:
    """Where columns stand, and which height is how many tokens."""

    columns: Sequence[Column]
    step: float
    most: float

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Frame:
        """The frame of some columns: as wide as they fit, as high as a round number above the highest."""
        return cls(columns, min(WIDEST, AREA / len(columns)), _round(max(column.mean for column in columns)))

    @property
    def width(self) -> float:
        """The whole picture's."""
        return max(LEFT + self.step * len(self.columns) + EDGE, 360.0)

    def left(self, at: int) -> float:
        """Where a column begins."""
        return LEFT + self.step * at

    def middle(self, at: int) -> float:
        """The middle of a column."""
        return self.left(at) + self.step / 2

    @property
    def bar(self) -> float:
        """How wide a column's bar is."""
        return self.step * 0.8 if self.step > NARROWEST_GAP else self.step

    def high(self, tokens: float) -> float:
        """How high so many tokens are."""
        return PLOT * tokens / self.most if self.most else 0.0


def drawn(columns: Sequence[Column], marks: Mapping[str, str], name: str, told: str) -> Markup:
    """The picture of some columns. `name` is its id on the page, `told` what it says in a sentence."""
    frame = Frame.of(columns)
    parts = (_axis(frame), _bars(frame), _misses(frame, marks), _events(frame), _strip(frame), _targets(frame))
    title = element("title", told, id=f"{name}-title")
    return element(
        "svg", title, *parts, class_="timeline", role="img", aria_labelledby=f"{name}-title", width=frame.width,
        height=HEIGHT, viewBox=f"0 0 {number(frame.width)} {number(HEIGHT)}",
    )  # fmt: skip


def _axis(frame: Frame) -> list[Markup]:
    """Lines and names: tokens at the left, the lanes, the numbers of calls below."""
    right = frame.width - EDGE
    found: list[Markup] = []
    for tokens in (0.0, frame.most / 2, frame.most) if frame.most else (0.0,):
        y = BOTTOM - frame.high(tokens)
        found.append(element("path", d=f"M{number(LEFT)} {number(y)}H{number(right)}", class_="grid"))
        found.append(_label(LEFT - 6, y + 4, _short(tokens)))
    found += [_label(LEFT - 6, y + 4, lane) for lane, y in LANES.items()]
    found += [_label(LEFT - 6, STRIP + ROW * row + 11, pillar) for row, pillar in enumerate(checks.ORDER)]
    return [*found, *_numbers(frame)]


def _numbers(frame: Frame) -> Iterator[Markup]:
    every = max(1, math.ceil(40 / frame.step))
    for at in range(0, len(frame.columns), every):
        yield _label(frame.middle(at), HEIGHT - 4, str(frame.columns[at].first), "middle")


def _label(x: float, y: float, text: str, anchor: str = "end") -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor)


def _bars(frame: Frame) -> list[Markup]:
    """One path for each source, and one for calls of unknown input: hatched up to the top, for it may be any number,
    and as wide as their share of a column's calls."""
    paths: dict[str, list[str]] = {name: [] for name in (*SOURCES, "unsized")}
    for at, column in enumerate(frame.columns):
        x, y = frame.left(at) + (frame.step - frame.bar) / 2, BOTTOM
        for name in SOURCES:
            high = frame.high(column.tokens[name] / column.sized) if column.sized else 0.0
            if high:
                y -= high
                paths[name].append(_box(x, y, frame.bar, high))
        if column.unsized:
            wide = max(2.0, frame.bar * column.unsized / len(column.calls))
            paths["unsized"].append(_box(x + frame.bar - wide, TOP, wide, y - TOP))
    return [_path(shapes, name) for name, shapes in paths.items() if shapes]


def _misses(frame: Frame, marks: Mapping[str, str]) -> list[Markup]:
    """A triangle for each miss, filled if it is significant; a cross where a call did not run to its end and nothing
    significant was missed; a ring for side calls, which have a context of their own."""
    found: list[Markup] = []
    y, half = LANES["misses"], min(5.0, frame.step / 2)
    for at, column in enumerate(frame.columns):
        x = frame.middle(at)
        if column.endings and not column.significant:
            found.append(_path([_cross(x, y + 2, 4)], "ended"))
        elif column.causes:
            shape = f"M{number(x - half)} {number(y - 1)}h{number(2 * half)}l{number(-half)} 8z"
            found.append(_path([shape], "miss" if column.significant else "slight"))
        elif len(column.sides) == len(column.calls):
            found.append(element("circle", cx=x, cy=y + 2, r=min(3.5, half), class_="side"))
    return [*found, *_letters(frame, marks)]


def _letters(frame: Frame, marks: Mapping[str, str]) -> Iterator[Markup]:
    """The letter of the leading cause where there is room for it, `+` if there are others."""
    free = 0.0
    for at, column in enumerate(frame.columns):
        names = list(column.causes)
        text = (marks.get(names[0], "") + ("+" if len(names) > 1 else "")) if names else ""
        room = LETTER * len(text) / 2
        if text and frame.middle(at) - room >= free:
            yield _label(frame.middle(at), LANES["misses"] - 3, text, "middle")
            free = frame.middle(at) + room


def _events(frame: Frame) -> list[Markup]:
    """A diamond where a compaction ended, filled if its summary failed its validation or it failed itself; a square
    where the identity changed."""
    found: list[Markup] = []
    for at, column in enumerate(frame.columns):
        x = frame.middle(at)
        if column.compactions:
            y, half = LANES["compactions"], min(5.5, max(3.0, frame.step / 2))
            shape = f"M{number(x)} {number(y - half)}l{number(half)} {number(half)}l{number(-half)} {number(half)}"
            bad = any(map(_failed, column.compactions))
            found.append(_path([f"{shape}l{number(-half)} {number(-half)}z"], "lossy" if bad else "compaction"))
            found.append(_path([f"M{number(frame.left(at))} {number(TOP)}V{number(STRIP + ROW * 5)}"], "cut"))
        if column.changes:
            half = min(4.0, max(1.5, frame.step / 2 - 0.5))
            found.append(_path([_box(x - half, LANES["identity"] - half, 2 * half, 2 * half)], "changed"))
    return found


def _failed(event: Call) -> bool:
    return event.text("compaction.validator_result") == "fail" or event.text("compaction.outcome") == "failed"


def _strip(frame: Frame) -> list[Markup]:
    """The checks: a cell for each pillar and column. Right is a low bar, wrong a whole cell with a cross, unjudged a
    hatched frame, not asked a dot. A column of several calls is divided as they are."""
    shapes: dict[str, list[str]] = {name: [] for name in (RIGHT, UNJUDGED, WRONG, "crossed", "unasked")}
    for at, column in enumerate(frame.columns):
        x = frame.left(at) + (frame.step - frame.bar) / 2
        for row, cell in enumerate(column.cells):
            y = STRIP + ROW * row + 1
            for name, shape in _cell(frame, cell, x, y):
                shapes[name].append(shape)
    return [_path(found, f"check {name}") for name, found in shapes.items() if found]


def _cell(frame: Frame, cell: Mapping[str, int], x: float, y: float) -> Iterator[tuple[str, str]]:
    asked = sum(cell.values()) - cell.get(UNASKED, 0)
    if not asked:
        yield "unasked", _box(x + frame.bar / 2 - 0.8, y + ROW / 2 - 1.8, 1.6, 1.6)
        return
    room, bottom = ROW - 3, y + ROW - 3
    high = {name: room * cell.get(name, 0) / asked for name in (WRONG, UNJUDGED, RIGHT)}
    # However few of many calls are wrong, it is seen.
    high[WRONG] = max(high[WRONG], 3.0) if high[WRONG] else 0.0
    high[RIGHT] = min(high[RIGHT], room - high[WRONG]) * (0.5 if cell.get(RIGHT) == asked else 1.0)
    for name in (WRONG, UNJUDGED, RIGHT):
        if high[name] > 0:
            bottom -= high[name]
            yield name, _box(x, max(bottom, y), frame.bar, high[name])
    if cell.get(WRONG) == asked and frame.bar >= 6:
        yield "crossed", _cross(x + frame.bar / 2, y + ROW / 2 - 1.5, 3)


def _targets(frame: Frame) -> Iterator[Markup]:
    """What a pointer that rests on a column is told."""
    for at, column in enumerate(frame.columns):
        shape = _box(frame.left(at), 2, frame.step, HEIGHT - 20)
        lines = [part for line in told(column) for part in (line, BREAK)]
        yield element("path", element("title", *lines[:-1]), d=shape, class_="target")


def told(column: Column) -> Iterator[str]:
    """A column in words, a line each."""
    first, last = column.calls[0], column.calls[-1]
    several = first is not last
    which = f"calls {column.first} to {column.first + len(column.calls) - 1}" if several else f"call {column.first}"
    ids = f"{first.entry_id} to {last.entry_id}" if several else first.entry_id
    yield f"{which}: {ids}, {moment(first.number('started_at'))}"
    yield _sized(column)
    yield from _checked(column)
    yield from (f"miss: {name}" for name in _named(column))
    yield from (compacted(event) for event in column.compactions)
    if column.changes:
        yield f"identity changed: {', '.join(column.changes)}"
    yield from column.endings[:MAX_TOLD]
    yield from (f"side call: {kind}" for kind in dict.fromkeys(column.sides))


def _sized(column: Column) -> str:
    whole = sum(column.tokens.values())
    sizes = [f"{name.replace('_', ' ')} {tokens:,}" for name, tokens in column.tokens.items() if tokens]
    known = f"input {whole:,}: {', '.join(sizes)}" if column.sized else "input unknown"
    if column.sized and not column.tokens["unreported"]:
        known += f" ({share(column.tokens['cache_read'], whole)} read)"
    return known + (f"; unknown of {plural(column.unsized, 'call')}" if column.unsized and column.sized else "")


def _checked(column: Column) -> Iterator[str]:
    if len(column.calls) == 1:
        yield "; ".join(checks.told(column.calls[0]))
    else:
        yield checks.beside(column.calls)


def _named(column: Column) -> Iterable[str]:
    if len(column.calls) == 1:
        return [named] if (named := cause(column.calls[0])) else []
    return [f"{name} ({plural(number, 'call')})" for name, number in column.causes.items()]


def compacted(event: Call) -> str:
    """A compaction in words."""
    kind, ended = event.text("compaction.kind"), event.text("compaction.outcome") or "end unknown"
    before, after = (count(event.count(f"compaction.tokens_{side}")) for side in ("before", "after"))
    held, asked = event.count("compaction.recall_held"), event.count("compaction.recall_asked")
    told = [f"compaction {event.text('compaction_event')} ({kind or '?'}, {ended}): {before} to {after} tokens"]
    told += [f"{held} of {plural(asked, 'item')} that had to survive did"] if asked and held is not None else []
    return ", ".join([*told, *(f"lost {name}" for name in event.words("compaction.lost") or ())])


def _path(shapes: Iterable[str], class_: str) -> Markup:
    return element("path", d="".join(shapes), class_=class_)


def _box(x: float, y: float, width: float, height: float) -> str:
    return f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h{number(-width)}z"


def _cross(x: float, y: float, half: float) -> str:
    left, top, size = number(x - half), number(y - half), number(2 * half)
    return f"M{left} {top}l{size} {size}M{left} {number(y + half)}l{size} -{size}"


def _round(most: float) -> float:
    """A round number of tokens that is not below."""
    if most <= 0:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(most))
    return next(unit * factor for factor in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if unit * factor >= most)


def _short(tokens: float) -> str:
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if tokens >= size:
            return f"{tokens / size:.1f}".removesuffix(".0") + unit
    return number(tokens)
