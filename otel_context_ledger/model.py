"""The vocabulary: frozen records that travel between the rooms, with no behaviour beyond totals.

Every value that nobody reported is `None`; a reported zero is `0`. Tokens are counts, times seconds, sizes bytes.
What the fields of `Entry` are called outside this process is the business of `spec/registry`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from otel_context_ledger.records import quick

Json = Mapping[str, object]

UNKNOWN = "unknown"
# Messages that one trail spells out; what is beyond is left to the prefix digests.
MAX_TRAIL = 4096
# How an answer says that it is whole, in the words of the dialects.
TURN_ENDS = (("stop",), ("end_turn",), ("completed",))


@quick
@dataclass(frozen=True, slots=True)
class Request:
    """A model call as its surface read it. `messages` starts after the leading system messages; its first element
    stands at index `offset` of the list that was sent. `breakpoints` counts cache markers by segment kind.
    `diagnostics_against` is the response that the provider is asked to compare this request with. `whole` is false
    where the provider keeps the history, or a part of it, and the request adds to that."""

    model: str | None = None
    tools: Sequence[object] = ()
    system: Sequence[object] = ()
    messages: Sequence[object] = ()
    offset: int = 0
    settings: Mapping[str, object] = field(default_factory=dict)
    sampling: Mapping[str, object] = field(default_factory=dict)
    effort: str | None = None
    effort_in_band: str | None = None
    cache_key: str | None = None
    conversation: str | None = None
    previous_response: str | None = None
    retention: str | None = None
    breakpoints: Mapping[str, int] = field(default_factory=dict)
    diagnostics_asked: bool = False
    diagnostics_against: str | None = None
    stream: bool = False
    client_version: str | None = None
    whole: bool = True


@quick
@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens in exclusive classes. `unreported` holds the whole input when the provider did not say what was cached."""

    uncached: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    unreported: int | None = None
    write_5m: int | None = None
    write_1h: int | None = None
    write_30m: int | None = None
    write_12h: int | None = None
    output: int | None = None
    reasoning: int | None = None
    source: str = "missing"
    flags: tuple[str, ...] = ()
    provider_cost: float | None = None

    @property
    def input(self) -> int | None:
        """Every prompt token of the call, cached ones included."""
        cached, written = self.cache_read, self.cache_write
        if self.uncached is None and cached is None and written is None and self.unreported is None:
            return None
        return (self.uncached or 0) + (cached or 0) + (written or 0) + (self.unreported or 0)

    @property
    def missed(self) -> int | None:
        """Prompt tokens that were not read from the cache; `None` when the provider did not report reuse."""
        if self.cache_read is None:
            return None
        return (self.uncached or 0) + (self.cache_write or 0) + (self.unreported or 0)


@quick
@dataclass(frozen=True, slots=True)
class Called:
    """A call of a tool that a model made; `arguments` as the dialect has them, a JSON text or a value."""

    name: str
    arguments: object = None
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """What came back, without its text. `verdict` is the provider's own word on a cache miss, verbatim;
    `verdict_tokens` and `verdict_reusable` are its estimates of what was missed and of what could have been reused.
    `compacted` is the provider's id of a summary that it put in the place of the history while it answered, `cleared`
    are the tokens of tool calls and their results that it took out of the prompt before the model saw it.
    `calls` are the calls of tools whose arguments are there whole, for the checks alone, which let go of them; `called`
    are the ids of all of them, `thought` says that reasoning came with them."""

    usage: Usage = field(default_factory=Usage)
    response_id: str | None = None
    model: str | None = None
    finish_reasons: tuple[str, ...] = ()
    tool_calls: int | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    route: str | None = None
    retention: str | None = None
    verdict: str | None = None
    verdict_tokens: int | None = None
    verdict_reusable: int | None = None
    compacted: str | None = None
    cleared: int | None = None
    calls: tuple[Called, ...] = field(default=(), compare=False, repr=False)
    called: tuple[str, ...] = field(default=(), compare=False, repr=False)
    thought: bool = field(default=False, compare=False, repr=False)

    @property
    def turn_ended(self) -> bool:
        """Whether the answer hands over to the user."""
        return not self.tool_calls and self.finish_reasons[:1] in TURN_ENDS


@quick
@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds from the start of the call; `first_*` are `None` when the call did not stream."""

    duration: float | None = None
    first_token: float | None = None
    first_content: float | None = None


@quick
@dataclass(frozen=True, slots=True)
class Ending:
    """How a call ended: complete, failed, cancelled, closed (early), abandoned (never read to the end), unread; whether
    events of its stream were left out, and who counts it. `said` is the text of the error, of which only what it says
    of lengths is kept."""

    how: str = "complete"
    error_type: str | None = None
    truncated: bool = False
    counted_by: str = "none"
    said: str = field(default="", repr=False)


@quick
@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the process knows about a call beside its body: ids set by the program, the repository, the clock. `latest`
    is the session of the last call of an agent in this context."""

    entry_id: str
    now: float
    session: str | None = None
    conversation: str | None = None
    task: str | None = None
    attempt: str | None = None
    agent: str | None = None
    parent: str | None = None
    repo_snapshot: str | None = None
    repo_age: float | None = None
    repo_head: str | None = None
    latest: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class Position:
    """Where a prefix broke: the segment kind, its index in what was sent, its name, the first differing character
    (of a text) or byte (of a canonical form), and what kind of change it was. Never the text itself."""

    segment: str
    index: int | None = None
    name: str | None = None
    offset: int | None = None
    kind: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class Cause:
    """Why tokens were not reused: a word of the closed list, its details, what it was derived from, how sure it is."""

    name: str
    detail: tuple[str, ...] = ()
    position: Position | None = None
    evidence: tuple[str, ...] = ()
    confidence: str = "observed"


@quick
@dataclass(frozen=True, slots=True)
class Cost:
    """Money or quota. `source` is provider or computed; `unit` is usd or quota; an amount that is `None` says why in
    `missing`."""

    amount: float | None = None
    currency: str | None = None
    source: str | None = None
    unit: str | None = None
    without_cache: float | None = None
    avoidable: float | None = None
    computed: float | None = None
    missing: str | None = None
    components: Mapping[str, float] = field(default_factory=dict)


@quick
@dataclass(frozen=True, slots=True)
class TaskGroup:
    task_id: str | None = None
    attempt_id: str | None = None
    session_id: str | None = None
    session_source: str | None = None
    parent_session_id: str | None = None
    request_kind: str | None = None
    agent: str | None = None
    fork_of: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class ModelGroup:
    provider_surface: str = UNKNOWN
    provider: str = UNKNOWN
    endpoint: str | None = None
    api: str | None = None
    model_id: str | None = None
    model_served: str | None = None
    model_version: str = UNKNOWN
    reasoning_effort: str | None = None
    reasoning_effort_requested: str | None = None
    client_version: str | None = None
    context_window: int | None = None
    route: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class ContextGroup:
    policy_hash: str | None = None
    policy_wire_hash: str | None = None
    tool_schema_hash: str | None = None
    tool_wire_hash: str | None = None
    tool_contract_hash: str | None = None
    repo_snapshot: str | None = None
    repo_age: float | None = None
    summary_hash: str | None = None
    summary_trusted: bool | None = None
    compaction_event: str | None = None
    history_range: str | None = None
    history_length: int | None = None
    context_identity: str | None = None
    cache_identity: str | None = None
    identity_changed: tuple[str, ...] | None = None
    comparable_id: str | None = None
    prefix_locator: tuple[str, ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class CacheGroup:
    cache_report: str = "not_reported"
    input_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_5m_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    cache_write_30m_tokens: int | None = None
    cache_write_12h_tokens: int | None = None
    cache_miss_tokens: int | None = None
    reusable_tokens: int | None = None
    avoidable_tokens: int | None = None
    cache_outcome: str = UNKNOWN
    miss_cause: str | None = None
    miss_detail: tuple[str, ...] = ()
    miss_secondary: tuple[str, ...] = ()
    miss_evidence: tuple[str, ...] = ()
    miss_confidence: str | None = None
    miss_significant: bool | None = None
    miss_position: Position | None = None
    idle_seconds: float | None = None
    retention_seconds: float | None = None
    provider_verdict: str | None = None
    verdict_requested_by: str | None = None
    verdict_missed_tokens: int | None = None
    verdict_reusable_tokens: int | None = None
    verdict_conflict: bool | None = None


@quick
@dataclass(frozen=True, slots=True)
class RequestGroup:
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    time_to_first_token: float | None = None
    time_to_first_content: float | None = None
    duration: float | None = None
    finish_reasons: tuple[str, ...] = ()
    response_id: str | None = None
    tool_calls: int | None = None
    repeated_read_bytes: int | None = None
    error_type: str | None = None
    call_end: str = "complete"
    stream: bool = False
    usage_source: str = "missing"
    usage_flags: tuple[str, ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class CostAmount:
    amount: float | None = None
    currency: str | None = None
    source: str | None = None
    unit: str | None = None
    computed: float | None = None


@quick
@dataclass(frozen=True, slots=True)
class MoneyGroup:
    cost: CostAmount | None = None
    cost_without_cache: float | None = None
    cost_avoidable: float | None = None
    cost_missing: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class Findings:
    """What a check goes by: the words that narrow its verdict, its counts (`name=number`) and its evidence."""

    detail: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class Check:
    """One pillar's look at a call: its verdict and findings, and what it advises."""

    verdict: str
    findings: Findings = field(default_factory=Findings)
    advice: tuple[str, ...] = ()


# By pillar: its verdict's name in an entry, and the word with which it says that nothing is wrong. Then the words that
# say that it could not tell.
PILLARS: Mapping[str, str] = {
    "policy": "policy_check", "repository": "repo_check", "tools": "tools_check", "constraints": "constraints_check",
    "state": "state_check",
}  # fmt: skip
RIGHT: Mapping[str, str] = {
    "policy": "consistent", "repository": "fresh", "tools": "consistent", "constraints": "held", "state": "compatible",
}  # fmt: skip
SOUND = frozenset(RIGHT.values())
UNJUDGED = ("unknown", "not_verifiable", "unavailable", "uncertain")


@dataclass(frozen=True, slots=True)
class ChecksGroup:
    """The correctness wing's verdicts, each with its findings beside it; `None` until that wing has looked. How the
    repository differs from that of the comparable call is in `repo_changes`, `None` if that is not known."""

    policy_check: str | None = None
    repo_check: str | None = None
    tools_check: str | None = None
    constraints_check: str | None = None
    state_check: str | None = None
    policy: Findings | None = None
    repository: Findings | None = None
    tools: Findings | None = None
    constraints: Findings | None = None
    state: Findings | None = None
    repo_changes: tuple[str, ...] | None = None
    repo_paths: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class SelfGroup:
    entry_id: str = ""
    started_at: float | None = None
    ledger_version: str = ""
    ledger_error: str | None = None
    truncated: bool = False
    counted_by: str = "none"
    digest_scheme: str = "xxh3"


@quick
@dataclass(frozen=True, slots=True)
class Trail:
    """The segments that this call added to its comparable call, for the ledger file alone: `keep` segments are the
    comparable call's first ones, `add` holds (kind, name, bytes, digest) for the rest."""

    base: str | None = None
    keep: int = 0
    add: tuple[tuple[str, str, int, str], ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class Entry:
    """One ledger line: everything that its views (span, event, metrics, file, command line) need. `compacted` says that
    its history was seen to be compacted since the call before, `odd` what was odd about compactions that it settled."""

    self: SelfGroup
    task: TaskGroup
    model: ModelGroup
    context: ContextGroup
    cache: CacheGroup
    request: RequestGroup
    money: MoneyGroup
    checks: ChecksGroup = field(default_factory=ChecksGroup)
    sampling: Mapping[str, object] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    cost_components: Mapping[str, float] = field(default_factory=dict)
    repo_head: str | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    compacted: bool = False
    odd: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compacted:
    """What is told of a compaction: a ledger line of its own, which may come again under its id with more, `settled`
    the last time. `row` has its fields by the registry's names without `context_ledger.compaction.`, its id and its
    times; `provider` and what follows are those of the session's last call. `at` is in seconds since the Unix epoch."""

    session: str | None
    task: str | None
    at: float
    settled: bool
    row: Mapping[str, object]
    provider: str | None = None
    surface: str | None = None
    model: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What somebody said of how a task, or one attempt at it, ended: a ledger line of its own, which may come hours
    after the calls and from another process. `word` is what follows from it alone: success, failure or unknown."""

    outcome_id: str
    told_at: float
    task_id: str
    attempt_id: str | None = None
    word: str = UNKNOWN
    success: bool | None = None
    tests: bool | None = None
    constraints: bool | None = None
    accepted: bool | None = None
    rolled_back: bool | None = None
    reason: str | None = None
