"""What `doctor` says about instrumentation: ours, the SDKs it watches, and other ones.

Package names and what the packages do are data, as found in their releases of 2026.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from otel_context_ledger.cli import coverage
from otel_context_ledger.cli.machine import OK, PROBLEM, WARNING, Check, Machine
from otel_context_ledger.config import Config

OURS = "context_ledger"
GROUP = "opentelemetry_instrumentor"
SWITCH = "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"
EVERYTHING = "*"
NEIGHBOURS = "other instrumentations"


SDKS = tuple(row for row in coverage.SDKS if row.verdict == coverage.COVERED)
# Other instrumentations of model calls, and the SDK whose calls they make spans of.
PEERS = {
    "opentelemetry-instrumentation-genai-openai": "openai",
    "opentelemetry-instrumentation-openai-v2": "openai",
    "opentelemetry-instrumentation-openai": "openai",
    "openinference-instrumentation-openai": "openai",
    "elastic-opentelemetry-instrumentation-openai": "openai",
    "opentelemetry-instrumentation-genai-anthropic": "anthropic",
    "opentelemetry-instrumentation-anthropic": "anthropic",
    "openinference-instrumentation-anthropic": "anthropic",
    "opentelemetry-instrumentation-openai-agents": "openai-agents",
    "openinference-instrumentation-openai-agents": "openai-agents",
    "opentelemetry-instrumentation-langchain": "langchain",
    "openinference-instrumentation-langchain": "langchain",
    "openinference-instrumentation-litellm": "litellm",
    "openlit": "openai",
    "langfuse": "openai",
    "logfire": "openai",
}


@dataclass(frozen=True, slots=True)
class Clash:
    """An instrumentation that harms a library's calls, whether or not ours is there; seen with the release named."""

    instrumentation: str
    release: str
    library: str
    harm: str


CLASHES = (
    Clash(
        "opentelemetry-instrumentation-openai",
        "0.62.4",
        "kosong",
        "reads the tools before the SDK does, and leaves none in the calls",
    ),
)


def active(machine: Machine, settings: Config) -> Iterator[Check]:
    """Whether our instrumentation is registered and on."""
    off = _off(machine)
    if not any(plugin.name == OURS for plugin in machine.named(GROUP)):
        yield Check("instrumentation", PROBLEM, "not registered: pip install otel-context-ledger into this Python.")
    elif off & {OURS, EVERYTHING}:
        yield Check("instrumentation", PROBLEM, f"switched off by {SWITCH}; take {OURS} or {EVERYTHING} out of it.")
    elif not settings.enabled:
        yield Check("instrumentation", PROBLEM, "switched off by CONTEXT_LEDGER_ENABLED; unset it.")
    else:
        yield Check("instrumentation", OK, f"{OURS} is registered and on.")


def starter(machine: Machine, settings: Config) -> Iterator[Check]:
    """Whether `opentelemetry-instrument` is there to start a program with."""
    there = any(plugin.name == "opentelemetry-instrument" for plugin in machine.named("console_scripts"))
    title = machine.titled("opentelemetry-instrumentation")
    sentence = (
        f"installed ({title})." if there else "missing: pip install opentelemetry-instrumentation into this Python."
    )
    yield Check("opentelemetry-instrument", OK if there else PROBLEM, sentence)


def sdks(machine: Machine, settings: Config) -> Iterator[Check]:
    """Which SDKs can be watched."""
    if not any(sdk.package in machine.packages for sdk in SDKS):
        names = " or ".join(sdk.package for sdk in SDKS)
        yield Check("SDK", PROBLEM, f"none to watch: pip install {names} into this Python, if your program uses it.")
        return
    for sdk in SDKS:
        version = machine.packages.get(sdk.package)
        if version is None:
            yield Check("SDK", OK, f"{sdk.package} is not installed, so there is nothing of it to watch.")
        elif sdk.fits(version):
            yield Check("SDK", OK, f"{sdk.package} {version} is watched.")
        else:
            yield Check(
                "SDK", WARNING, f"{sdk.package} {version} was never tried with this version; use {sdk.releases}."
            )


def peers(machine: Machine, settings: Config) -> Iterator[Check]:
    """Which other instrumentations make spans of the same calls."""
    found = [package for package in PEERS if package in machine.packages]
    if not found:
        yield Check(NEIGHBOURS, OK, "none of model calls; the ledger starts a span of its own for each call.")
        return
    titles = ", ".join(machine.titled(package) for package in found)
    meaning = "where one has a span open for a call, the ledger writes onto it; a call is one entry in any case."
    yield Check(NEIGHBOURS, OK, f"{titles}: {meaning}")
    started = _started(machine)
    for sdk in dict.fromkeys(PEERS[package] for package in found):
        same = [package for package in found if PEERS[package] == sdk and package in started]
        if len(same) > 1:
            sentence = f"{' and '.join(same)} each count the tokens of one {sdk} call; uninstall all but one."
            yield Check(NEIGHBOURS, WARNING, sentence)


def clashes(machine: Machine, settings: Config) -> Iterator[Check]:
    """Which other instrumentations harm the calls of a library that is installed."""
    started = _started(machine)
    for clash in CLASHES:
        if clash.instrumentation in started and clash.library in machine.packages:
            harm = f"{machine.titled(clash.instrumentation)} {clash.harm} of {machine.titled(clash.library)}"
            way_out = f"uninstall it, or switch it off: {SWITCH}={started[clash.instrumentation]}"
            yield Check(NEIGHBOURS, PROBLEM, f"{harm} (seen with {clash.release}); {way_out}.")


def _started(machine: Machine) -> dict[str, str]:
    """The packages whose instrumentations are on, with the names by which they are switched off."""
    off = _off(machine)
    return {plugin.package: plugin.name for plugin in machine.named(GROUP) if not off & {plugin.name, EVERYTHING}}


def _off(machine: Machine) -> set[str]:
    return {word.strip() for word in machine.environ.get(SWITCH, "").split(",")}
