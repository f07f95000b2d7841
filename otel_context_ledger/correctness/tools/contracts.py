"""What a tool does beside its schema: whose it is, where it runs, what it may do. Values never leave but as digests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from otel_context_ledger.canonical import digest_of

MAX_TEXT = 1024
# A field of a contract → the word that a verdict has for its change; another server is another place behind the name.
WORDS: Mapping[str, str] = {
    "server": "endpoint", "endpoint": "endpoint", "permission": "permission", "side_effect": "side_effect",
    "version": "version", "timeout": "timeout",
}  # fmt: skip
# The words whose change alone makes the verdict; the others stand in the evidence.
GRAVE = ("endpoint", "permission", "side_effect")
# Usual words for what MCP's hints say.
_EFFECTS: Mapping[str, str] = {
    "none": "read", "readonly": "read", "read_only": "read", "read-only": "read", "writes": "write", "reads": "read",
    "delete": "destructive", "deletes": "destructive",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Contract:
    """One tool's contract; `None` is not stated. `timeout` is in seconds."""

    server: str | None = None
    version: str | None = None
    endpoint: str | None = None
    permission: str | None = None
    side_effect: str | None = None
    timeout: float | None = None

    def over(self, other: Contract) -> Contract:
        """This contract, with what it leaves open taken from another."""
        if self is NONE or other is NONE:
            return other if self is NONE else self
        pairs = zip(self._values(), other._values(), strict=True)
        return Contract(*(theirs if own is None else own for own, theirs in pairs))  # type: ignore[arg-type]

    def changed(self, earlier: Contract) -> tuple[str, ...]:
        """The words of `WORDS` for the fields that both state and state differently."""
        pairs = zip(_NAMES, self._values(), earlier._values(), strict=True)
        return tuple(dict.fromkeys(WORDS[name] for name, now, then in pairs if None not in (now, then) and now != then))

    @property
    def stated(self) -> bool:
        """Whether anything is stated."""
        return any(value is not None for value in self._values())

    def _values(self) -> tuple[str | float | None, ...]:
        return self.server, self.version, self.endpoint, self.permission, self.side_effect, self.timeout


_NAMES = tuple(field.name for field in fields(Contract))
NONE = Contract()


def read(table: Mapping[str, object]) -> Contract:
    """The contract in a table such as `{server = "docs", permission = ["fs.read"], timeout = 30}`.

    Raises `ValueError` naming a member that is none of a contract, or that has no such value.
    """
    found: dict[str, object] = {}
    for name, value in table.items():
        if name not in WORDS:
            raise ValueError(f"{name!r} is none of {', '.join(WORDS)}")
        found[name] = _seconds(value) if name == "timeout" else _text(name, value)
    return Contract(**found)  # type: ignore[arg-type]


def declared(tables: Mapping[str, Mapping[str, object]]) -> tuple[dict[str, Contract], tuple[str, ...]]:
    """The contracts of `[tools.<name>]` tables, and a sentence about each table that is none."""
    found: dict[str, Contract] = {}
    bad: list[str] = []
    for name, table in tables.items():
        contract = _read(table)
        if isinstance(contract, Contract):
            found[name] = contract
        else:
            bad.append(f"[tools.{name}] {contract}; ignored")
    return found, tuple(bad)


def _read(table: Mapping[str, object]) -> Contract | str:
    try:
        return read(table)
    except ValueError as error:
        return str(error)


def digest(contracts: Mapping[str, Contract]) -> bytes | None:
    """The digest of tools' contracts by their names; `None` where nothing is stated of any."""
    stated = {name: contract._values() for name, contract in contracts.items() if contract.stated}
    return digest_of(stated) if stated else None


def _text(name: str, value: object) -> str:
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        value = ",".join(sorted(value))
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ValueError(f"{name} is no text of at most {MAX_TEXT} characters")
    return _EFFECTS.get(value.lower(), value.lower()) if name == "side_effect" else value


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise ValueError("timeout is no number of seconds")
    return float(value)
