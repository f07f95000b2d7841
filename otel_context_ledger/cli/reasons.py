"""The words for causes: what each means, what to do about it, and how places and parts are called in a sentence.

Which cause a call has is decided elsewhere; every word of `semconv.CAUSES` has a row here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_SPELLED = re.compile(r"(\w+)(?:\(([^)]*)\))?")


@dataclass(frozen=True, slots=True)
class Reason:
    """A cause in a sentence, and what to do about it in one."""

    meaning: str
    remedy: str


NOTHING = "Nothing: everything that could be reused was."
REASONS: dict[str, Reason] = {
    "cold_start": Reason(
        "This is the first request of its line of calls, so nothing of it was cached yet.",
        "Nothing: the next call can reuse this one.",
    ),
    "below_minimum": Reason(
        "The prompt was shorter than the shortest that the provider caches.",
        "Nothing: it will be cached once it is longer.",
    ),
    "model_changed": Reason(
        "Another model was asked for, and every model has a cache of its own.",
        "Stay with one model within a session, or count on one full prompt for each switch.",
    ),
    "effort_changed": Reason(
        "Another reasoning effort was asked for, and the provider renders it before the messages.",
        "Keep one effort within a session; give quick questions a session of their own.",
    ),
    "settings_changed": Reason(
        "A setting that is rendered into the prompt changed.",
        "Keep these settings as they are for the whole session.",
    ),
    "client_version_changed": Reason(
        "The client program changed its version and may write requests differently now.",
        "Nothing: count on one full prompt after an update.",
    ),
    "cache_key_changed": Reason(
        "The cache key changed, which sends the call to a machine that need not hold the prefix.",
        "Send the same cache key for the whole session.",
    ),
    "route_changed": Reason(
        "Another route (machine or upstream provider) served the call, and its cache did not hold the prefix.",
        "Pin the upstream provider at your gateway, or send the same cache key for the whole session.",
    ),
    "policy_changed": Reason(
        "The system part says something else than before.",
        "If that was meant, count on one full prompt; else find out what rewrites it, and put rules that change last.",
    ),
    "volatile_prefix": Reason(
        "The system part or a tool's text is the same but for a span that changes by itself.",
        "Move it out of the prefix into the last user message, or make it change less often (a date, not a clock).",
    ),
    "tools_changed": Reason(
        "The tools changed.",
        "Fix the list of tools when the session starts; let tools that come late be loaded by a message.",
    ),
    "tools_reordered": Reason(
        "The same tools were sent in another order.",
        "Sort the tools by name before every call.",
    ),
    "tools_serialization_changed": Reason(
        "The same tools were sent in the same order but as other bytes, such as keys in another order.",
        "Build the tool definitions once and send the same objects with every call.",
    ),
    "history_compacted": Reason(
        "Earlier messages gave way to a summary.",
        "Nothing if it was time to compact; if it happens often, compact later and more at once.",
    ),
    "history_rewritten": Reason(
        "Messages that had been sent before were changed.",
        "Only append to the history; collect changes and make them all at once when you compact.",
    ),
    "cache_breakpoint_missing": Reason(
        "The request carried no cache marker at its end, and this provider caches nothing without one.",
        "Put a cache marker on the last block of the last message.",
    ),
    "retention_expired": Reason(
        "More time passed since the call before than the provider keeps a prefix.",
        "Ask for a longer retention if pauses like this one are usual.",
    ),
    "retention_changed": Reason(
        "What was written to the cache got another lifetime than before and had to be written anew.",
        "Ask for one lifetime throughout a session.",
    ),
    "granularity": Reason(
        "The provider reuses whole blocks or checkpoints, and the rest lay between two of them.",
        "Nothing: this is how the provider counts.",
    ),
    "provider_unexplained": Reason(
        "The prefix was unchanged, long enough and recent enough, and the provider still did not reuse it.",
        "Nothing in the request explains it; if it lasts, report it to the provider with the response id.",
    ),
    "previous_unknown": Reason(
        "The call continues one that this ledger has never seen.",
        "Let all processes of an agent write one ledger file, or name the session explicitly.",
    ),
    "not_reported": Reason(
        "The provider did not say how much it reused. That is unknown, not zero.",
        "Switch the report on if the server has one (vLLM: --enable-prompt-tokens-details), or use another.",
    ),
}
# What a cause's first detail makes of it, where that is another sentence or another remedy.
DETAILED: dict[tuple[str, str], Reason] = {
    ("not_reported", "answer_not_read"): Reason(
        "The answer was not read to its end, where the provider says how much it reused. That is unknown, not zero.",
        "Nothing if it was meant; read an answer to its end if its counts matter.",
    ),
    ("not_reported", "no_usage"): Reason(
        "The answer brought no usage, so how much was reused is unknown, not zero.",
        "Ask for usage where it is optional (stream_options.include_usage), or use a surface that reports it.",
    ),
    ("cold_start", "concurrent"): Reason(
        "The call that it could have reused was still running when it began.",
        "Let the first of a burst of calls begin its answer before you send the others.",
    ),
    ("cold_start", "write_not_visible"): Reason(
        "The call that it could have reused had only just ended, and a new prefix can be read some seconds later.",
        "Nothing: the next call can reuse it.",
    ),
    ("model_changed", "served"): Reason(
        "The provider served another model under the same name.",
        "Ask for a model with a fixed version if the provider has one.",
    ),
    ("tools_changed", "added"): Reason("Tools were added.", REASONS["tools_changed"].remedy),
    ("tools_changed", "removed"): Reason("Tools were removed.", REASONS["tools_changed"].remedy),
    ("tools_changed", "description"): Reason(
        "The description of a tool changed.",
        "Keep tool descriptions constant; put what changes into a message.",
    ),
    ("tools_changed", "schema"): Reason(
        "The schema of a tool changed.",
        "Keep tool schemas constant within a session.",
    ),
    ("policy_changed", "expected"): Reason(
        "The agent edited its own memory, which stands in the system part.",
        "Nothing if that was meant; else keep memory after the history.",
    ),
    ("history_rewritten", "pruned"): Reason(
        "Messages that had been sent before were cut or left out.",
        "Prune seldom and much at once, and the latest messages first: everything after the first cut is sent anew.",
    ),
    ("history_rewritten", "reordered"): Reason(
        "Messages that had been sent before were put in another order.",
        "Keep the order in which messages were first sent.",
    ),
    ("history_rewritten", "tool_results_reordered"): Reason(
        "The results of parallel tool calls were sent in another order than before.",
        "Sort tool results by the order of their calls before the first time that you send them.",
    ),
    ("history_rewritten", "reasoning_dropped"): Reason(
        "Reasoning that had been sent back before was left out.",
        "Send reasoning back with every call, or never.",
    ),
    ("history_rewritten", "serialization"): Reason(
        "A message was sent with the same meaning but other bytes, such as a tool call's arguments encoded anew.",
        "Send the strings back as they were received.",
    ),
    ("history_rewritten", "fork_wake"): Reason(
        "A fork that had finished its turn was called again, and its history was not read from the cache.",
        "Start a new fork from the parent instead of waking an old one.",
    ),
    ("policy_changed", "fork_lineage_lost"): Reason(
        "A fork inherited the history but has another system text, so nothing of the parent could be reused.",
        "Give the fork the parent's system text and tools, and put its role into its first message.",
    ),
    ("provider_unexplained", "evicted"): Reason(
        "What was read is what this prompt shares with another call in between, as if that one had taken its place.",
        "Give the server room for more conversations (llama.cpp: more slots, --cache-ram), or send them one by one.",
    ),
    ("provider_unexplained", "hit_plateau"): Reason(
        "Nothing changed, and the hit stays at the same count call after call.",
        "Look at what stands at that many tokens: the provider may render it anew at each call.",
    ),
}
CONFIDENCE = {"observed": "seen in what was sent or reported", "inferred": "the likeliest of what is possible"}
EVIDENCE = {
    "local_diff": "the two requests compared",
    "counters": "the reported token counts",
    "provider_reported": "the provider's own word",
    "first_request": "no earlier call shares its beginning",
    "in_flight": "the earlier call had not ended",
    "prefix_intact": "the prefix is unchanged",
    "previous_response_unknown": "it names a response that is not in the ledger",
    "locator": "digests of prefixes",
    "requested_unchanged": "the same model was asked for",
    "call_between": "another call went to the same place in between",
    "usage_missing": "the answer came without usage",
}
CHANGES = {
    "datetime": "a clock", "time": "a clock", "date": "a date", "epoch": "a clock (seconds since 1970)",
    "client_version": "the client's version", "uuid": "a UUID", "nonce": "a random token", "counter": "a counter",
    "path": "a path",
    "repo_status": "the state of the repository", "reordered": "another order", "added": "something added",
    "removed": "something removed", "description": "another description", "schema": "another schema",
    "serialization": "other bytes for the same value", "text": "another text", "compacted": "a summary",
    "rewound": "taken back from here", "pruned": "cut or left out", "edited": "edited",
    "tool_results_reordered": "results in another order", "reasoning_dropped": "reasoning left out",
    "resume": "an earlier process's call",
}  # fmt: skip
# Kinds of change whose place is a byte of the canonical form; all others are characters of a text.
IN_BYTES = ("schema", "serialization")
PARTS = {
    "provider_surface": "the provider surface", "model": "the model", "effort": "the reasoning effort",
    "policy": "the system text", "policy_wire": "the system part as sent", "repository": "the repository",
    "tools": "the tools", "tools_wire": "the tools as sent", "summary": "the summary", "cache_key": "the cache key",
    "service_tier": "the service tier", "text_format": "the output format", "settings": "settings",
}  # fmt: skip


def reason(cause: str, details: Sequence[str] = ()) -> Reason | None:
    """The sentence and remedy of a cause; a word that this version does not know has none."""
    found = next((DETAILED[cause, detail] for detail in details if (cause, detail) in DETAILED), None)
    return found or REASONS.get(cause)


def spelled(word: str) -> tuple[str, tuple[str, ...]]:
    """The cause and its details in a word such as `history_rewritten(pruned)`."""
    found = _SPELLED.fullmatch(word)
    if found is None:
        return word, ()
    return found[1], tuple(part.strip() for part in (found[2] or "").split(",") if part.strip())
