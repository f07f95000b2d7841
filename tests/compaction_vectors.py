"""How vectors of compactions are run: from what happens in a session to its compactions as plain JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import orjson

from otel_context_ledger.correctness.compaction import failures
from otel_context_ledger.correctness.compaction import happenings as h
from otel_context_ledger.correctness.compaction.course import Course, Rules, Thresholds
from otel_context_ledger.correctness.compaction.event import Compaction, Limits
from otel_context_ledger.correctness.compaction.fold import fold
from otel_context_ledger.correctness.compaction.manifest import Item, Manifest
from otel_context_ledger.correctness.compaction.summary import find
from otel_context_ledger.correctness.constraints import Constraint
from otel_context_ledger.correctness.history import steps


def fold_all(course: Course, happened: Iterable[h.Happening], rules: Rules) -> tuple[Course, tuple[Compaction, ...]]:
    """The course of a session after several happenings in their order, and all that is told of them."""
    told: list[Compaction] = []
    for happening in happened:
        course, more = fold(course, happening, rules)
        told += more
    return course, tuple(told)


def run(given: Mapping[str, Any], openings: tuple[str, ...]) -> Any:
    """The compactions of a session as they are told for the last time (`events`), every time (`told`), and what the
    session remembers (`course`). An `error` alone → the failure it tells of; `messages` → their summary."""
    if "error" in given:
        failure = failures.read(given["error"])
        return failure and {**asdict(failure), "usage": failure.usage}
    if "messages" in given:
        found = find(steps(given["messages"]), openings)
        return found and asdict(found)
    course, told = fold_all(Course(), happenings(given["happenings"]), rules_of(given))
    events = [spoken(event) for event in told if event.settled]
    kept = {**asdict(course), "carried": course.carried, "under_way": [event.id for event in course.begun]}
    return {"events": events, "told": [spoken(event) for event in told], "course": kept}


def rules_of(given: Mapping[str, Any]) -> Rules:
    """The process's own constraints and limits. A digest is written as the text that it is of, to be read."""
    return Rules(
        digest=lambda text: f"digest({text})",
        declared=Manifest(tuple(item(name, told) for name, told in given.get("constraints", {}).items())),
        limits=Limits(**given.get("limits", {})),
        thresholds=Thresholds(**given.get("thresholds", {})),
    )


def item(name: str, told: Mapping[str, Any]) -> Item:
    own = {key: told[key] for key in ("supersedes", "severity", "kind") if key in told}
    return Item(Constraint(name, told.get("text", ""), **own), told.get("status"), tuple(told.get("evidence", ())))


def happenings(given: Iterable[Mapping[str, Any]]) -> list[h.Happening]:
    """The happenings of a vector, a second apart unless they say when. `each` stands for `times` runs of a list, in
    whose texts `{n}` is the number of the run."""
    found: list[h.Happening] = []
    for told in given:
        for number in range(1, told.get("times", 1) + 1):
            for one in orjson.loads(orjson.dumps(told.get("each", [told])).replace(b"{n}", str(number).encode())):
                found.append(happening({"at": float(len(found)), **one}))
    return found


def happening(told: Mapping[str, Any]) -> h.Happening:
    made: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in told.items()}
    kind = made.pop("is")
    if kind == "declared":
        return h.Declared(made["at"], item(made["id"], made))
    if "error" in made:
        made["failure"] = failures.read(made.pop("error"))
    if "limits" in made:
        made["limits"] = Limits(**made["limits"])
    if "rewrite" in made:
        made["rewrite"] = h.Rewrite(**made["rewrite"])
    record: h.Happening = KINDS[kind](**made)
    return record


KINDS: Mapping[str, Any] = {
    "begun": h.Begun, "ended": h.Ended, "summarised": h.Summarised, "opened": h.Opened, "called": h.Called,
    "resumed": h.Resumed, "closed": h.Closed,
}  # fmt: skip


def spoken(event: Compaction) -> dict[str, Any]:
    """A compaction in the words of the registry, with what follows from its fields."""
    audit = event.audit
    return {
        **asdict(event),
        "tokens_before": event.before.tokens,
        "tokens_after": event.after.tokens,
        "estimated": [event.before.estimated, event.after.estimated],
        "reduction": event.reduction,
        "usage": event.usage,
        "validator": audit and audit.validator,
        "validator_result": audit and audit.result,
        "recall": audit and audit.recall(),
        "recall_of": {kind: audit.recall(kind) for kind in ("rule", "goal", "todo")} if audit else None,
        "lost": audit and audit.lost,
        "unsure": audit and audit.unsure,
        "matches": {s.item.id: {**asdict(s.match), "via": s.via} for s in audit.standings} if audit else None,
        "trusted": event.trusted,
        "symptoms": {symptom.name: list(symptom.evidence) for symptom in event.symptoms},
        "severity": {symptom.name: symptom.severity for symptom in event.symptoms},
    }
