"""The registry of this process, and what a program says to fill it. Saying something wrong is one warning, no error."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from otel_context_ledger.correctness.tools import contracts, definitions
from otel_context_ledger.correctness.tools.contracts import Contract
from otel_context_ledger.correctness.tools.registry import Registry

LIVE = Registry()
MAX_WARNED = 64
_warned: set[tuple[str, str]] = set()
_log = logging.getLogger("otel_context_ledger")


def tool_registry(listing: Any, server: str | None = None, **contract: Any) -> None:
    """Says what a tool server offers now: `tool_registry(await session.list_tools(), server="docs")`.

    `listing` is the answer to MCP's `tools/list` as it is (object, result or JSON-RPC answer) or a list of tools as
    OpenAI or Anthropic take them. Call it again whenever the server announces a change; it replaces what was said of
    this server before, and pages (`nextCursor`) add up. `contract` may name `version`, `endpoint`, `permission`,
    `side_effect` and `timeout` (seconds) of all of its tools. Never raises.
    """
    try:
        found = definitions.listing(listing)
        if found is None:
            _warn("tool_registry", f"{type(listing).__name__} is no list of tools")
            return
        LIVE.put(found, server, contracts.read(contract) if contract else Contract(), time.time())
    except Exception as error:  # noqa: BLE001 - the program goes on, whatever it gave us
        _warn("tool_registry", _why(error))


def tool_contracts(table: Mapping[str, Mapping[str, Any]]) -> None:
    """Says what tools do beside their schemas, by their names as they are sent:
    `tool_contracts({"deploy": {"server": "ops", "endpoint": "https://…", "permission": "write", "timeout": 30}})`.

    Members are `server`, `version`, `endpoint`, `permission`, `side_effect` and `timeout` (seconds), as in the tables
    `[tools.<name>]` of `context-ledger.toml`. What was said of other tools stays. Never raises.
    """
    try:
        LIVE.declare({str(name): contracts.read(members) for name, members in table.items()})
    except Exception as error:  # noqa: BLE001 - the program goes on, whatever it gave us
        _warn("tool_contracts", _why(error))


def _warn(about: str, why: str) -> None:
    """Once each: a server may be asked for its tools before every call."""
    if (about, why) not in _warned and len(_warned) < MAX_WARNED:
        _warned.add((about, why))
        _log.warning("context ledger: %s: %s; ignored", about, why)


def _why(error: Exception) -> str:
    """What was wrong, without what was given: unlike a configuration file it may be anybody's text."""
    if type(error) is ValueError:
        return f"no contract: its members are {', '.join(contracts.WORDS)}; texts, and seconds for the timeout"
    return type(error).__name__
