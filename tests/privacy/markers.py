"""The markers: what is planted, what of it may leave the process and why, and how it is searched for.

A marker is named after the place where it is planted. Whatever is not in `MAY_LEAVE` must not be found in anything that
the ledger wrote or sent, not even eight characters of it, not in another case, in base64, in hex or backwards.
"""

from __future__ import annotations

import base64
import hashlib
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

SIZE = 28
WINDOW = 8
DIGITS_WINDOW = 12
HEX_WINDOW = 16
_LETTERS = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True)
class Exported:
    """The attributes that hold a marker by design, without the prefix `context_ledger.`, and the reason."""

    names: tuple[str, ...]
    why: str


_SERVED = ("model_served", "gen_ai.response.model", "miss_evidence")
# A provider may name the model as it was asked for.
_MODEL = ("model_id", "gen_ai.request.model", "span name", "advice", *_SERVED)
_SESSION = ("session_id", "parent_session_id", "fork_of", "gen_ai.conversation.id", "repository.evidence")
_TOOL = ("miss_position.name", "miss_evidence", "segments", "tools.evidence", "advice")
_RESPONSE = ("response_id", "gen_ai.response.id", "gen_ai.request.previous_response.id")
_EFFORT = (
    "reasoning_effort",
    "reasoning_effort_requested",
    "gen_ai.request.reasoning.level",
    "miss_evidence",
    "advice",
)
_FOUND = ("constraints.evidence", "compaction.lost", "compaction.uncertain", "compaction.evidence")
_DECLARED = (*_FOUND, "advice")
_FINISH = ("finish_reasons", "gen_ai.response.finish_reasons")

MAY_LEAVE: Mapping[str, Exported] = {
    "sent.model": Exported(_MODEL, "which model was asked for is what cost and cache depend on"),
    "sent.effort": Exported(_EFFORT, "another effort is another prompt; a word"),
    "sent.service_tier": Exported(("openai.request.service_tier",), "a standard attribute; a word"),
    "sent.seed": Exported(("gen_ai.request.seed",), "a standard attribute; a number, and only if it is one"),
    "sent.retention": Exported(("miss_evidence",), "a lifetime that was asked for explains a miss; a word"),
    "sent.tool.name": Exported(_TOOL, "a reordered or changed tool is named, or nobody can mend it"),
    "sent.tool.added": Exported(_TOOL, "the same"),
    "sent.call.id": Exported(
        ("state.evidence", "compaction.evidence"),
        "a broken pair of call and result is named, or nobody can mend it",
    ),
    "sent.previous_response": Exported(("gen_ai.request.previous_response.id",), "a standard attribute; an id"),
    "sent.conversation": Exported(_SESSION, "the request's own name for the conversation; an id"),
    "sent.metadata.session_id": Exported(_SESSION, "the same"),
    "sent.user_agent": Exported(("client_version",), "product and version, the first word of the header"),
    "named.session": Exported(_SESSION, "the program names it in order to find it again"),
    "named.task": Exported(("task_id",), "the same"),
    "named.attempt": Exported(("attempt_id",), "the same"),
    "named.outcome": Exported(("outcome.id", "outcome_id"), "the program names it in order to tell it again"),
    "named.reason": Exported(("outcome.reason", "reason"), "the program says it for being read"),
    "named.constraint": Exported(_DECLARED, "what was lost is named, or nobody can put it back; an id"),
    "named.work": Exported(_DECLARED, "the same"),
    "named.evidence": Exported(("compaction.evidence",), "the program names what shows that work is done"),
    "named.compaction": Exported(("compaction_event", "compaction.evidence", "advice"), "joins what is told of it"),
    "named.failure": Exported(("compaction.reason",), "the program's word for why a compaction failed"),
    "named.validator": Exported(("constraints.evidence", "compaction.validator"), "it says who judged"),
    "named.agent": Exported(("agent", "gen_ai.agent.name"), "the same, in CONTEXT_LEDGER_AGENT"),
    "named.error_class": Exported(("error_type", "error.type"), "the class of an error, never its text"),
    "named.value_class": Exported(("ledger_error",), "the class of a value that JSON has no form for"),
    "answer.model": Exported(_SERVED, "the model that answered is what is paid for"),
    "answer.id": Exported(_RESPONSE, "the provider's id joins an entry with the provider's logs, and two calls"),
    "answer.finish_reason": Exported(_FINISH, "a standard attribute; a word"),
    "answer.service_tier": Exported(("openai.response.service_tier",), "a standard attribute; a word"),
    "answer.fingerprint": Exported(("openai.response.system_fingerprint",), "a standard attribute; an id"),
    "answer.route": Exported(("route", "miss_evidence"), "another host has another cache"),
    "answer.verdict": Exported(("provider_verdict",), "the provider's own word on a miss"),
}


def mark(place: str) -> str:
    """The marker of a place: letters and digits, the same in every process."""
    raw = hashlib.sha256(place.encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in raw[:SIZE])


def number(place: str) -> int:
    """A marker where only a number fits: sixteen digits."""
    return 10**15 + int.from_bytes(hashlib.sha256(place.encode()).digest()[:6], "big")


def traces(place: str) -> frozenset[bytes]:
    """Every run of bytes that would give a place's marker away."""
    text = mark(place)
    found = {
        run for spelled in (text, text.lower(), text.upper(), text[::-1]) for run in _runs(spelled.encode(), WINDOW)
    }
    found.update(_runs(str(number(place)).encode(), DIGITS_WINDOW))
    for raw in (text.encode(), str(number(place)).encode()):
        found.update(_runs(raw.hex().encode(), HEX_WINDOW))
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            # Its place in a group of three bytes decides a text's base64, and its neighbours the ends of it.
            found.update(run for shift in range(3) for run in _runs(encode(b"\0" * shift + raw)[4:-4], WINDOW))
    return frozenset(found)


def _runs(text: bytes, size: int) -> Iterator[bytes]:
    return (text[at : at + size] for at in range(len(text) - size + 1))


def found(places: Iterable[str], texts: Iterable[bytes]) -> set[str]:
    """The places whose marker, or a part of it in some spelling, is in one of the texts."""
    seen: set[bytes] = set()
    for text in set(texts):
        for size in (WINDOW, DIGITS_WINDOW, HEX_WINDOW):
            seen.update(_runs(text, size))
    return {place for place in places if not traces(place).isdisjoint(seen)}
