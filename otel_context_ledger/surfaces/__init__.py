"""Which dialect a call speaks: surfaces are records of functions over JSON bodies, found by host and path.

Pure: no SDK, no network. A new provider is a file of differences, a row in `READERS` and a table in `facts.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial

from otel_context_ledger.model import UNKNOWN, Json, Request, Response
from otel_context_ledger.surfaces import (
    anthropic_messages,
    called,
    compatible,
    diagnostics,
    kimi,
    openai_chat,
    openai_responses,
)
from otel_context_ledger.surfaces.events import never
from otel_context_ledger.surfaces.facts import Facts, Lore

MAX_PLACES = 256
CHAT, RESPONSES, MESSAGES = "chat_completions", "responses", "messages"


@dataclass(frozen=True, slots=True)
class Surface:
    """One endpoint dialect of one provider. `keep`, `running`, `channel` and `last` look at one stream event: of
    `running` ones in a row the last says it all, after a `last` one nothing comes. `fold` makes the kept ones into the
    body that `read_response` reads. Members named in `unrendered` never reach the model. `compacts`: the call asks for
    a summary of what it sends, whatever that says."""

    name: str
    api: str
    facts: Facts
    read_request: Callable[[Json], Request]
    read_response: Callable[[Json], Response]
    keep: Callable[[object], bool]
    running: Callable[[object], bool]
    channel: Callable[[object], str | None]
    last: Callable[[object], bool]
    fold: Callable[[Iterable[Json]], Json]
    unrendered: frozenset[str] = frozenset()
    compacts: bool = False

    @property
    def provider(self) -> str:
        """The value of `gen_ai.provider.name`."""
        return self.facts.provider

    def question(self, body: Json, previous: str | None) -> Json | None:
        """Members that ask for the provider's own verdict, compared with its response `previous`; `None`: ask not."""
        return diagnostics.question(self.api, self.facts.diagnostics, body, previous)


_DIALECTS = {CHAT: openai_chat, RESPONSES: openai_responses, MESSAGES: anthropic_messages}
_UNRENDERED = {CHAT: frozenset[str](), RESPONSES: frozenset({"id", "status"}), MESSAGES: frozenset[str]()}
_COMPACTING = "/responses/compact"
_SUFFIXES = (
    ("/chat/completions", CHAT), ("/responses", RESPONSES), (_COMPACTING, RESPONSES), ("/messages", MESSAGES),
)  # fmt: skip
# Surfaces that read a dialect's answers in a way of their own.
READERS: Mapping[tuple[str, str], Callable[[Json], Response]] = {
    ("kimi_open_platform", CHAT): kimi.read_response,
    ("kimi_code", CHAT): kimi.read_response,
    ("deepseek", CHAT): compatible.read_deepseek,
    ("gemini", CHAT): compatible.read_gemini,
    ("x_ai", CHAT): compatible.read_x_ai,
    ("groq", CHAT): compatible.read_groq,
    ("openrouter", CHAT): compatible.read_openrouter,
    ("openai", CHAT): openai_chat.read_response,
    ("azure_openai", CHAT): openai_chat.read_response,
}


def find(host: str, path: str, body: Json, lore: Lore, named: Mapping[str, str] | None = None) -> Surface | None:
    """The surface of a call, or `None` when it is no model call that carries a context.

    `host` may hold a port; `named` maps hosts, with or without port, to surface names and outranks the known hosts. An
    unknown host with a known path, or with a body of `messages`, has the surface `unknown`.
    """
    return Directory(lore, named).find(host, path, body)


def misnomers(named: Mapping[str, str], lore: Lore) -> dict[str, str]:
    """Of the surface names that a user gave to hosts those that are none, by host, each as a sentence with the names
    that there are."""
    known = ", ".join(sorted(lore.surfaces))
    return {
        host: f"{name!r} (of {host}) is no known surface; known are {known}"
        for host, name in named.items()
        if name not in lore.surfaces
    }


class Directory:
    """Surfaces by host and path, each made once: a program calls few places many times."""

    def __init__(self, lore: Lore, named: Mapping[str, str] | None = None) -> None:
        self._lore, self._named = lore, named or {}
        self._known: dict[tuple[str, str, str], Surface] = {}

    def find(self, host: str, path: str, body: Json) -> Surface | None:
        """As the function `find`."""
        api = api_of(path, body)
        if api is None:
            return None
        key = (host, path, api)
        if key not in self._known:
            if len(self._known) >= MAX_PLACES:
                self._known.clear()
            made = make(name_of(host, path, self._lore, self._named), api, self._lore)
            self._known[key] = replace(made, compacts=_bare(path).endswith(_COMPACTING))
        return self._known[key]


def api_of(path: str, body: Json) -> str | None:
    """The dialect of a path, else of a body that holds messages."""
    clean = _bare(path)
    by_path = next((api for suffix, api in _SUFFIXES if clean.endswith(suffix)), None)
    if by_path:
        return by_path
    shaped = isinstance(body.get("messages"), (list, tuple)) and not clean.endswith(("/count_tokens", "/batches"))
    return CHAT if shaped and body.get("model") else None


def _bare(path: str) -> str:
    return path.split("?", 1)[0].rstrip("/")


def name_of(host: str, path: str, lore: Lore, named: Mapping[str, str]) -> str:
    """The surface name of a host, or `unknown`."""
    bare = host.lower().rsplit(":", 1)[0] if host.count(":") == 1 else host.lower()
    given = named.get(host.lower()) or named.get(bare)
    if given:
        return given
    return next((facts.surface for facts in lore.surfaces.values() if _serves(facts, bare, path)), UNKNOWN)


def _serves(facts: Facts, host: str, path: str) -> bool:
    return any(_matches(place, host, path) for place in facts.hosts)


def _matches(place: str, host: str, path: str) -> bool:
    wanted, _, prefix = place.partition("/")
    named = host == wanted or host.endswith("." + wanted) or fnmatchcase(host, wanted)
    return named and path.lstrip("/").startswith(prefix)


def make(name: str, api: str, lore: Lore) -> Surface:
    """The surface `name` speaking `api`."""
    dialect = _DIALECTS[api]
    default = compatible.read_any if api == CHAT else dialect.read_response
    return Surface(
        name=name,
        api=api,
        facts=lore.of(name),
        read_request=dialect.read_request,
        read_response=partial(_with_calls, READERS.get((name, api), default), api),
        keep=dialect.keep,
        running=openai_chat.running if api == CHAT else never,
        channel=dialect.channel,
        last=dialect.last,
        fold=dialect.fold,
        unrendered=_UNRENDERED[api],
    )


def _with_calls(read: Callable[[Json], Response], api: str, body: Json) -> Response:
    """An answer with its calls of tools. Of a folded stream only the Responses API has them whole: elsewhere arguments
    come in pieces, which are not kept; the next request's history holds them."""
    response = read(body)
    if not response.tool_calls:
        return response
    calls = called.answered(body)
    whole = not body.get("folded") or api == RESPONSES
    ids = tuple(call.call_id for call in calls if call.call_id)
    return replace(response, calls=calls if whole else (), called=ids, thought=called.thought(body))
