"""What the tool servers of this process offer now, as the program told, and the contracts of their tools.

Readers take a `View`, which never changes; a listing that says nothing new makes no new one, so that a server that
reconnects is no change (case CM14).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock

from otel_context_ledger.correctness.tools.contracts import NONE, Contract
from otel_context_ledger.correctness.tools.definitions import Definition, Listing

MAX_SERVERS = 256
MAX_CONTRACTS = 1024
# Tools of all servers together, those that are offered no more included.
MAX_TOOLS = 4096
# How clients name the tool of a server that they pass on: mcp__docs__search, docs.search, docs__search, docs_search, …
_PREFIXES = ("mcp__{}__", "{}.", "{}__", "{}_", "{}-", "{}:", "{}/")


@dataclass(frozen=True, slots=True)
class Live:
    """A tool as its server offers it now, and since when. `definition` is `None` of one that is offered no more; `late`
    is said of one that a server offered only when it was asked again."""

    server: str | None
    definition: Definition | None
    since: float
    late: bool = False


@dataclass(frozen=True, slots=True)
class Server:
    """A tool server: its tools by their names, what it says of all of them, and whether more pages are to come."""

    tools: Mapping[str, Live]
    contract: Contract
    partial: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """The registry at one moment: servers by their names, and contracts by the names of tools as they are sent.
    `revision` tells views apart."""

    revision: int = 0
    servers: Mapping[str | None, Server] = field(default_factory=dict)
    contracts: Mapping[str, Contract] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        """Whether there is anything to compare with."""
        return bool(self.servers or self.contracts)

    def find(self, name: str, server: str | None = None) -> Live | None:
        """The tool that is sent as `name`, its own name or one with its server's before it. `None` where nobody offers
        it, or where two servers do and it is not known which of them is meant (`server`)."""
        plain = [self.servers[owner].tools.get(name) for owner in self.servers if server in (None, owner)]
        found = [live for live in plain if live] or [*self._passed_on(name, server)]
        offered = [live for live in found if live.definition is not None] or found
        return offered[0] if len(offered) == 1 else None

    def _passed_on(self, name: str, server: str | None) -> Iterator[Live]:
        for owner, known in self.servers.items():
            if owner and server in (None, owner) and owner in name:
                rests = (name[len(p) :] for prefix in _PREFIXES if name.startswith(p := prefix.format(owner)))
                yield from (known.tools[rest] for rest in rests if rest in known.tools)

    def contract(self, name: str, live: Live | None) -> Contract:
        """The contract of the tool that is sent as `name`: what is stated of it, of its server, and its own hints."""
        own = self.contracts.get(name, NONE)
        if live is None:
            return own
        return own.over(self._stated(live.server, live.definition.side_effect if live.definition else None))

    def _stated(self, server: str | None, effect: str | None) -> Contract:
        own = self.servers[server].contract
        return (
            own if own is NONE and effect is None and server is None else own.over(Contract(server, side_effect=effect))
        )


class Registry:
    """The live tools of a process. Every method may be called from any thread."""

    def __init__(self) -> None:
        self.renew_lock()
        self.view = View()

    def renew_lock(self) -> None:
        """A free lock for a forked child, whose parent may have held the old one."""
        self._lock = Lock()

    def put(self, listing: Listing, server: str | None, contract: Contract, now: float) -> bool:
        """Takes what a server offers now in place of what it offered before; whether that was anything new. Pages of
        one listing add up: all but the last are partial."""
        with self._lock:
            view = self.view
            known = view.servers.get(server)
            before = known.tools if known else {}
            offered = {tool.name: _live(tool, before.get(tool.name), server, known, now) for tool in listing.tools}
            whole = not listing.partial and not (known and known.partial)
            rest = ((name, live) for name, live in before.items() if name not in offered)
            kept = {name: _gone(live, now) if whole else live for name, live in rest}
            found = Server({**kept, **offered}, contract, listing.partial)
            if known == found or not self._room(found, server):
                return False
            same = known is not None and (known.tools, known.contract) == (found.tools, found.contract)
            self.view = View(view.revision + (not same), {**view.servers, server: found}, view.contracts)
            return not same

    def declare(self, contracts: Mapping[str, Contract]) -> bool:
        """Takes contracts of tools by their names, in place of what was stated of these before; whether that is new."""
        with self._lock:
            view = self.view
            found = {**view.contracts, **contracts}
            if found == view.contracts or len(found) > MAX_CONTRACTS:
                return False
            self.view = View(view.revision + 1, view.servers, found)
            return True

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self.view = View(self.view.revision + 1)

    def _room(self, found: Server, server: str | None) -> bool:
        others = [known for name, known in self.view.servers.items() if name != server]
        tools = len(found.tools) + sum(len(known.tools) for known in others)
        return len(others) < MAX_SERVERS and tools <= MAX_TOOLS


def _live(tool: Definition, before: Live | None, server: str | None, known: Server | None, now: float) -> Live:
    known_as = before.definition if before else None
    if before is not None and known_as is not None and _alike(known_as, tool):
        return before
    late = before.late if before is not None else known is not None and not known.partial
    return Live(server, tool, now, late)


def _alike(one: Definition, other: Definition) -> bool:
    return (one.strict, one.side_effect) == (other.strict, other.side_effect) and one.same(other)


def _gone(live: Live, now: float) -> Live:
    return live if live.definition is None else Live(live.server, None, now, live.late)


def passed_on(tool: str, server: str | None) -> tuple[str, ...]:
    """The names under which a client may send a server's tool."""
    return (tool, *(prefix.format(server) + tool for prefix in _PREFIXES)) if server else (tool,)
