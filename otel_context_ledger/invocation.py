"""One model call in flight: begin, finish, fail; sync, async and streams alike. Everything that can go wrong in here is
caught by one guard, counted, and never reaches the program.

The whole architecture is one flow: surface → request → draft → recording → the call → response → entry → its views.
"""

from __future__ import annotations

import gc
import logging
import sys
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from otel_context_ledger import model as m
from otel_context_ledger import semconv as s
from otel_context_ledger import spelling
from otel_context_ledger.backlog import Backlog, Later
from otel_context_ledger.ledger import Draft, Ledger
from otel_context_ledger.mailbox import latest
from otel_context_ledger.records import changed, quick
from otel_context_ledger.surfaces import Surface
from otel_context_ledger.surfaces.events import mapping, plain
from otel_context_ledger.telemetry import Finished, Recording, Telemetry

MAX_KEPT_EVENTS = 512
MAX_COPIES = 100
MAX_PLACES = 20
# How long a call waits for the end of an earlier one that another thread is at. It may be held up by what the waiting
# one holds, where the garbage collector runs the program's finalisers in it.
MAX_SECONDS_BEHIND = 1.0
# Beyond it no exporter can write a number down.
MAX_NUMBER = 2**63
THREAD_BOUND = frozenset(
    {"_tkinter", "PyQt5", "PyQt6", "PySide2", "PySide6", "gi", "wx", "kivy", "pythoncom", "comtypes"}
)
_log = logging.getLogger("otel_context_ledger")


@quick
@dataclass(frozen=True, slots=True)
class Call:
    """What the seam saw of a call: where it goes, its body, and the few headers that name the client."""

    surface: Surface
    endpoint: str
    host: str
    port: int | None
    body: Mapping[str, object]
    client: str | None = None


Settle = Callable[[], m.Entry]
Keep = Callable[[Settle, Draft], None]
Find = Callable[[str, str, Mapping[str, object]], Surface | None]


class Guard:
    """The one guard: an error of ours is counted and said once, and the program goes on."""

    __slots__ = ("_desk", "_stage")

    def __init__(self, desk: Desk, stage: str) -> None:
        self._desk, self._stage = desk, stage

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception):
            return False
        self._desk.note(self._stage, error)
        return True


class Desk:
    """Where calls are recorded: the ledger, the telemetry, and what is asked of the surroundings for each call.

    `ticks` gives monotonic seconds; `surroundings` makes the record of one call; `keep` takes finished entries to the
    ledger file; `find` says which surface a host, path and body belong to; `backlog` does what nobody waits for; `asks`
    says whether providers are asked for their own verdicts, which changes requests.
    """

    def __init__(
        self,
        ledger: Ledger,
        telemetry: Telemetry,
        surroundings: Callable[[], m.Surroundings],
        ticks: Callable[[], float],
        find: Find,
        backlog: Backlog,
        keep: Keep | None = None,
    ) -> None:
        self.ledger, self.telemetry, self.find, self.backlog, self.keep = ledger, telemetry, find, backlog, keep
        ledger.checking.note = self.note
        self.keep_compaction: Callable[[m.Compacted], None] | None = None
        self.surroundings, self.ticks = surroundings, ticks
        self.errors: dict[str, int] = {}
        self._said: dict[str, object] = {}
        self.awaited = self.asks = False
        self._open: weakref.WeakSet[Invocation] = weakref.WeakSet()
        self._closings: deque[Closing] = deque()
        self._guards: dict[str, Guard] = {}

    def guard(self, stage: str) -> Guard:
        """The guard around a step of ours."""
        return self._guards.get(stage) or self._guards.setdefault(stage, Guard(self, stage))

    def note(self, stage: str, error: Exception) -> None:
        """Counts an error of ours and says the first one of its stage once; never raises."""
        try:
            mine = object()
            if self._said.setdefault(stage, mine) is mine:  # of two threads one says it
                _log.warning("context ledger: %s failed with %s; the call is unaffected", stage, type(error).__name__)
                _log.debug("context ledger: %s at %s", stage, places(error))
            self.errors[stage] = self.errors.get(stage, 0) + 1
            self.telemetry.failed(stage)
        except Exception:  # noqa: BLE001
            return

    def begin(self, call: Call) -> Invocation | None:
        """The invocation of a call that is about to be made, or `None` when it could not be opened."""
        with self.guard("begin"):
            self.catch_up()
            invocation = Invocation(self, call)
            self._open.add(invocation)
            return invocation
        return None

    def conclude(self, invocation: Invocation, closing: Closing, calls: Sequence[m.Called]) -> None:
        """Leaves the entry of a call that ended, and all that is said of it, to the background. Inside a peer's span it
        is worked out at once: that span ends when the program gets its answer."""
        self._closings.append(closing)
        recording = invocation.recording
        if not recording.peer:
            self.telemetry.owe(recording)
            if self.backlog.take(partial(copy_context().run, self._conclude, invocation, closing, calls)):
                return
        self._conclude(invocation, closing, calls, self._leave)

    def _conclude(
        self, invocation: Invocation, closing: Closing, calls: Sequence[m.Called], leave: Leave | None = None
    ) -> None:
        try:
            with self.guard("finish"):
                self.catch_up()
                entry = closing()
                if entry is not None:
                    invocation.publish(entry(), calls, leave or self._say)
                self.tell()
        finally:
            self.telemetry.owe(invocation.recording, False)

    def catch_up(self) -> None:
        """Lets the ledger know the calls that ended, in the order of their ends: the next is compared with them."""
        while True:
            try:
                first = self._closings[0]
            except IndexError:
                return
            there = True
            with self.guard("finish"):
                there = first.there(MAX_SECONDS_BEHIND)
            if not there:
                return
            with suppress(ValueError):  # another thread has just taken it off
                self._closings.remove(first)

    def _leave(self, finished: Finished, settle: Settle) -> None:
        """Leaves the counting and the events of an entry to the background, if anybody listens."""
        if self._heard(finished):
            self.backlog.put(partial(self._say, finished, settle))

    def _heard(self, finished: Finished) -> bool:
        return finished.attributes is not None or self.awaited or self.telemetry.counting()

    def _say(self, finished: Finished, settle: Settle) -> None:
        if not self._heard(finished):
            return
        with self.guard("telemetry"):
            self.telemetry.say(finished.settled(settle()))
            self.telemetry.stand_by()
            if self.awaited:
                tidy()

    def tell(self) -> None:
        """Says what came to be known of compactions, in the file and to OpenTelemetry."""
        for told in self.ledger.checking.told():
            if self.keep_compaction is not None:
                with self.guard("store"):
                    self.keep_compaction(told)
            if told.settled:
                self.backlog.put(partial(self._say_compaction, told))

    def _say_compaction(self, told: m.Compacted) -> None:
        with self.guard("telemetry"):
            self.telemetry.tell_compaction(told)
            self.telemetry.stand_by()

    def settled(self, entry: m.Entry, draft: Draft, calls: Sequence[m.Called]) -> m.Entry:
        """The entry with the checks that nobody waits for; as it is where one of them fails."""
        with self.guard("checks"):
            return self.ledger.settled(entry, draft, calls)
        return entry

    def ended(self, invocation: Invocation) -> None:
        """An invocation has ended: it need not be ended at exit."""
        self._open.discard(invocation)

    def abandon(self) -> None:
        """Ends the calls that are still open when the program exits."""
        for invocation in self._still_open():
            invocation.left()

    def leave(self, now: float) -> None:
        """The program ends: so do its calls, and what was still to be seen of compactions will not be."""
        self.abandon()
        with self.guard("finish"):
            self.catch_up()
            self.ledger.checking.courses.close(now)
        self.tell()

    def disown(self) -> None:
        """In a forked child: the calls that are open are the parent's to end."""
        for invocation in self._still_open():
            invocation.disown()
        self._open.clear()
        self._closings.clear()
        self.ledger.checking.courses.disown()
        self.telemetry.stand_down()

    def _still_open(self) -> list[Invocation]:
        # Another thread may begin or end a call while the set is copied.
        copies = (_copied(self._open) for _ in range(MAX_COPIES))
        return next((found for found in copies if found is not None), [])


def places(error: BaseException) -> str:
    """Where an error came from, innermost first. Its text, and that of the error it came up in, may hold content."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    found = (f"{Path(code.co_filename).name}:{line} {code.co_name}" for code, line in reversed(frames[-MAX_PLACES:]))
    return ", ".join(found)


def tidy() -> None:
    """Collects young garbage in this thread, where no event loop runs, when a collection is near. A call's records
    bring it nearer, and it would else fall into the program's event loops more often than without them: a dead client
    of a closed loop that is finalised inside another one complains on stderr. Only for programs that await their calls,
    and never beside a toolkit whose objects must die in the thread that made them (decision 0014)."""
    nearest = gc.get_threshold()[0]
    if nearest and gc.isenabled() and 2 * gc.get_count()[0] > nearest and THREAD_BOUND.isdisjoint(sys.modules):
        gc.collect(0)


def _copied(calls: weakref.WeakSet[Invocation]) -> list[Invocation] | None:
    try:
        return list(calls)
    except RuntimeError:
        return None


_UNREAD = m.Response()
# The end of a call, made known to the ledger once, whoever needs it first, and what then makes its entry; `None`: it
# failed.
Closing = Later[Callable[[], m.Entry] | None]
Leave = Callable[[Finished, Settle], None]


class Invocation:
    """One call from its begin to its one end. Ends that come after the first are ignored."""

    def __init__(self, desk: Desk, call: Call) -> None:
        self._desk, self._surface = desk, call.surface
        around = desk.surroundings()
        self._began, self._now = desk.ticks(), around.now
        request = call.surface.read_request(call.body)
        if request.client_version is None and call.client is not None:
            request = changed(request, client_version=call.client)
        self.draft = desk.ledger.open(call.surface, call.endpoint, request, around)
        if self.draft.kind == "agent":
            latest.set(self.draft.link.session)
        desk.tell()
        self.recording: Recording = desk.telemetry.start(
            spelling.model(request.model), opening(call, self.draft), int(around.now * 1e9)
        )
        self._kept: list[object] = []
        self._first_token: float | None = None
        self._first_content: float | None = None
        self._thought = False
        self._dropped = False
        self._ended = False
        self._claimed = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Around the call itself: our span is current, and whatever it raises ends the entry and goes on up."""
        with self.guard("telemetry"):
            self.recording.enter()
        try:
            yield
        except BaseException as error:
            self.failed(error)
            raise
        finally:
            with self.guard("telemetry"):
                self.recording.leave()

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Around the loop over a stream's events, sync or async."""
        try:
            yield
        except GeneratorExit:
            self.dropped()
            raise
        except BaseException as error:
            self.failed(error)
            raise
        else:
            self.ended("complete")

    @property
    def asks(self) -> bool:
        """Whether the user wants providers to be asked for their own verdicts."""
        return self._desk.asks

    def question(self, body: Mapping[str, object]) -> Mapping[str, object] | None:
        """Members to add to the body so that the provider says why its cache missed; `None`: add nothing."""
        if self.draft.kind != "agent":
            return None
        return self._surface.question(body, self.draft.previous_response)

    def asked(self) -> None:
        """The question is in the request."""
        self.draft = changed(self.draft, asked="ledger", against=self.draft.previous_response)

    def see(self, event: object) -> None:
        """Looks at one event of a stream and keeps it if it says more than its text. Called for every event. One that
        says it is the last ends the entry before anybody else sees it: a peer may seal its span at that event."""
        try:
            if self._first_content is None:
                self._channel(event)
            if not self._kept or self._surface.keep(event):
                self._put(event)
                if self._surface.last(event):
                    self.ended("complete")
        except Exception as error:  # noqa: BLE001
            self._desk.note("stream", error)

    def _channel(self, event: object) -> None:
        channel = self._surface.channel(event)
        if channel is None:
            return
        now = self._desk.ticks() - self._began
        self._first_token = now if self._first_token is None else self._first_token
        self._thought = self._thought or channel == "reasoning"
        if channel == "text":
            self._first_content = now

    def _put(self, event: object) -> None:
        running = self._surface.running
        if len(self._kept) > 1 and running(self._kept[-1]) and running(event):
            self._kept[-1] = event
        elif len(self._kept) < MAX_KEPT_EVENTS:
            self._kept.append(event)
        else:
            self._kept[-1] = event
            self._dropped = True

    def guard(self, stage: str) -> Guard:
        """The desk's guard."""
        return self._desk.guard(stage)

    def asynchronous(self) -> None:
        """This call is awaited: event loops are at work in this program."""
        self._desk.awaited = True

    def claim(self) -> None:
        """A stream took charge of this call: it will say when it ends."""
        self._claimed = True

    def unclaimed(self) -> None:
        """What could have made a stream is gone: if it never did, the call is abandoned."""
        with self.guard("stream"):
            if not self._claimed:
                self.dropped()

    def answered(self, answer: object) -> None:
        """The call returned a whole answer as an object of the SDK."""
        self.answered_raw(lambda: plain(answer))

    def answered_raw(self, body: Callable[[], object]) -> None:
        """The call returned a whole answer, whose JSON `body` gives."""
        self._end(lambda: self._surface.read_response(mapping(body())), m.Ending("complete"))

    def failed(self, error: BaseException) -> None:
        """The call, or the loop over its stream, raised. A paid answer that an error carries is still read."""
        with self.guard("finish"):
            name, answer = type(error).__name__, None
            cancelled = not isinstance(error, Exception) or name == "CancelledError"
            with self.guard("response"):
                answer = getattr(error, "completion", None)
            how, said = "cancelled" if cancelled else "failed", ""
            with suppress(Exception):  # the text of an error may be the program's own code
                said = str(error)
            read = self._folded if answer is None else (lambda: self._surface.read_response(mapping(plain(answer))))
            self._end(read, m.Ending(how if answer is None else "complete", name, said=said))

    def dropped(self) -> None:
        """The stream was left or garbage collected. A collection may come at any moment, in the middle of our own work
        too, so that the entry is ended by another thread, never on the spot."""
        with self.guard("stream"):
            if not self._ended:
                self._desk.backlog.leave_behind(self.left)

    def disown(self) -> None:
        """This call is another process's: nothing is said of it here."""
        self._ended = True

    def left(self) -> None:
        """Ends a stream that nobody will read on: closed if any of it was read, else abandoned."""
        self.ended("closed" if self._kept else "abandoned")

    def ended(self, how: str) -> None:
        """The stream ended: complete, closed early, abandoned, or its answer stays unread."""
        with self.guard("finish"):
            self._end(self._folded, m.Ending(how))

    def _folded(self) -> m.Response:
        if not self._kept:
            return m.Response()
        body = self._surface.fold([mapping(plain(event)) for event in self._kept])
        return self._surface.read_response({**body, "thought": True} if self._thought else body)

    def _end(self, read: Callable[[], m.Response], ending: m.Ending) -> None:
        if self._ended:
            return
        self._ended = True
        desk = self._desk
        desk.ended(self)
        response, flaw = _UNREAD, None
        with desk.guard("response"):
            flaw = "response_unreadable"
            response = read()
            flaw = None
        with desk.guard("finish"):
            duration = desk.ticks() - self._began
            timing = m.Timing(duration, self._first_token, self._first_content)
            ending = changed(ending, truncated=self._dropped, counted_by=desk.telemetry.counter())
            now = self._now + duration
            self.recording.over, self.recording.ended = True, int(now * 1e9)
            desk.conclude(self, Later(partial(self._close, response, ending, timing, now, flaw)), response.calls)

    def _close(
        self, response: m.Response, ending: m.Ending, timing: m.Timing, now: float, flaw: str | None
    ) -> Callable[[], m.Entry] | None:
        with self._desk.guard("finish"):
            return self._desk.ledger.end(self.draft, response, ending, timing, now, flaw)
        return None

    def publish(self, entry: m.Entry, calls: Sequence[m.Called], leave: Leave) -> None:
        """Takes the entry to the file and onto its span; `leave` sees to the rest that is said of it."""
        desk = self._desk
        settle = Later(partial(desk.settled, entry, self.draft, calls))
        if desk.keep is not None:
            with desk.guard("store"):
                desk.keep(settle, self.draft)
        with desk.guard("telemetry"):
            leave(desk.telemetry.finish(entry, self.recording), settle)


def opening(call: Call, draft: Draft) -> dict[str, object]:
    """What a sampler may want to know when our own span starts, and the request's standard attributes."""
    request = draft.request
    found: dict[str, object] = {
        s.GEN_AI_OPERATION_NAME: "chat",
        s.GEN_AI_PROVIDER_NAME: call.surface.provider,
        s.GEN_AI_REQUEST_MODEL: spelling.model(request.model),
        s.SERVER_ADDRESS: call.host,
        s.SERVER_PORT: call.port,
        s.GEN_AI_REQUEST_STREAM: True if request.stream else None,
        s.GEN_AI_REQUEST_REASONING_LEVEL: spelling.word(request.effort),
        s.GEN_AI_REQUEST_PREVIOUS_RESPONSE_ID: spelling.optional(request.previous_response),
        s.GEN_AI_CONVERSATION_ID: draft.link.session if draft.link.source == "conversation_id" else None,
        s.GEN_AI_AGENT_NAME: spelling.optional(draft.around.agent),
    }
    if call.surface.provider == "openai":
        found[s.OPENAI_API_TYPE] = call.surface.api
        found[s.OPENAI_REQUEST_SERVICE_TIER] = _told(request.settings.get("service_tier"))
    known = {key: value for key, value in found.items() if value is not None}
    return known | _sampling(request.sampling) | _output_type(request.settings)


def _told(value: object) -> str | None:
    return spelling.word(value) if isinstance(value, str) else None


def _sampling(given: Mapping[str, object]) -> dict[str, object]:
    """The sampling settings that are numbers, as they should be; a text in the place of one may say anything."""
    if not given:
        return {}
    pairs = ((key, given.get(name)) for name, key in SAMPLING.items())
    return {key: value for key, value in pairs if _number(value, s.TYPES[key])}


def _output_type(settings: Mapping[str, object]) -> dict[str, object]:
    """json or text, where the request says so."""
    if not settings:
        return {}
    wanted = mapping(settings.get("response_format")) or mapping(mapping(settings.get("text")).get("format"))
    kind = wanted.get("type")
    names = {"json_object": "json", "json_schema": "json", "text": "text"}
    return {s.GEN_AI_OUTPUT_TYPE: names[kind]} if isinstance(kind, str) and kind in names else {}


def _number(value: object, kind: str) -> bool:
    """Whether a value is a number of this type that an exporter can write down."""
    fits = (int,) if kind == "int" else (int, float)
    return isinstance(value, fits) and not isinstance(value, bool) and abs(value) < MAX_NUMBER


SAMPLING = {
    "max_tokens": s.GEN_AI_REQUEST_MAX_TOKENS,
    "temperature": s.GEN_AI_REQUEST_TEMPERATURE,
    "top_p": s.GEN_AI_REQUEST_TOP_P,
    "top_k": s.GEN_AI_REQUEST_TOP_K,
    "frequency_penalty": s.GEN_AI_REQUEST_FREQUENCY_PENALTY,
    "presence_penalty": s.GEN_AI_REQUEST_PRESENCE_PENALTY,
    "seed": s.GEN_AI_REQUEST_SEED,
    "n": s.GEN_AI_REQUEST_CHOICE_COUNT,
}
