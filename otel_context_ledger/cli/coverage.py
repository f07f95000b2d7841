"""Which libraries' model calls the ledger sees: a table by package and release, for `doctor` and for the README.

Calls are seen where they pass the one method of the `openai` and `anthropic` SDKs that is watched. What the packages do
is data, as found in their releases of 2026; `tests/clients` runs those that say `measured`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from otel_context_ledger.cli.machine import OK, WARNING, Check, Machine, release
from otel_context_ledger.config import Config

COVERED, PARTLY, NOT = "covered", "partly", "not"
TITLE = "coverage"
Release = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Library:
    """What is seen of the calls of a package, from its release `first` to before its release `before`.

    `missing` says which calls are not seen, or why none are; `instead` what to do to have them seen; `measured` which
    releases our tests run. What is said of others is read in their source.
    """

    package: str
    verdict: str
    missing: str = ""
    instead: str = ""
    first: Release = ()
    before: Release | None = None
    measured: str = ""

    def fits(self, version: str) -> bool:
        """Whether this is said of a release."""
        return self.first <= release(version) and (self.before is None or release(version) < self.before)

    @property
    def releases(self) -> str:
        """The releases that this is said of, as a requirement."""
        low = f">={_dotted(self.first)}" if self.first else ""
        high = f"<{_dotted(self.before)}" if self.before else ""
        return ",".join(filter(None, (low, high)))


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of call that is not seen whatever library makes it."""

    calls: str
    seen: str
    instead: str


SOCKETS = "Realtime, Live and `responses.connect` (websockets)"
COMPATIBLE = "call {} OpenAI-compatible endpoint with `openai`"
SDKS = (
    Library("openai", NOT, "there is no method to watch", "use >=1.26", before=(1,)),
    Library("openai", NOT, "never tried", "use >=1.26", first=(1,), before=(1, 26)),
    Library("openai", COVERED, SOCKETS, "`responses.create`", first=(1, 26), before=(4,), measured="1.26 to 3.57"),
    Library("anthropic", NOT, "never tried", "use >=0.49", before=(0, 49)),
    Library("anthropic", COVERED, first=(0, 49), before=(3,), measured="0.49 to 2.14"),
)
LIBRARIES = (
    Library("openai-agents", COVERED, "its realtime and voice agents", measured="0.24.0"),
    Library("langchain-openai", COVERED, measured="1.7.4"),
    Library("langchain-anthropic", COVERED),
    Library("pydantic-ai-slim", COVERED, "its models of other SDKs than `openai` and `anthropic`", measured="2.68.0"),
    Library("kosong", COVERED, "its Google provider", measured="0.56.0"),
    Library("kimi-cli", COVERED, before=(1, 51), measured="1.50.0"),
    Library("kimi-cli", NOT, "it runs nothing but a notice", "use 1.50.0", first=(1, 51)),
    Library(
        "litellm", PARTLY, "`litellm.responses` and the providers that it calls itself (Anthropic, Gemini, Bedrock, …)",
        "call `litellm.completion` with a provider that speaks OpenAI's dialect, or `openai` itself",
        measured="1.110.2",
    ),
    Library(
        "mini-swe-agent", PARTLY, "its models on `requests` (OpenRouter, Requesty, …) and on `litellm.responses`",
        "use its LiteLLM chat model",
    ),
    Library("google-genai", NOT, "", COMPATIBLE.format("Gemini's")),
    Library("google-generativeai", NOT, "", COMPATIBLE.format("Gemini's")),
    Library("langchain-google-genai", NOT, "", "call Gemini's OpenAI-compatible endpoint with `ChatOpenAI`"),
    Library("langchain-aws", NOT, "", "call Bedrock's OpenAI-compatible endpoint with `ChatOpenAI`"),
    Library("mistralai", NOT, "", COMPATIBLE.format("Mistral's")),
    Library("cohere", NOT, "", COMPATIBLE.format("Cohere's")),
    Library("groq", NOT, "", COMPATIBLE.format("Groq's")),
    Library("ollama", NOT, "", COMPATIBLE.format("Ollama's")),
    Library("claude-agent-sdk", NOT, "another program makes them, in Node", "call `anthropic` itself"),
)  # fmt: skip
# Packages for much else than model calls: that one is installed says nothing, so that it is named and no warning.
GENERAL = ("boto3", "httpx", "httpx2", "requests", "aiohttp", "websockets", "huggingface-hub")
KINDS = (
    Kind("`with_streaming_response`", "an entry without usage", "`with_raw_response`, or `stream=True`"),
    Kind(SOCKETS, "nothing", "`responses.create`"),
    Kind(
        "an HTTP client of one's own: `httpx`, `requests`, `aiohttp`, `boto3` (Bedrock), `huggingface-hub`", "nothing",
        "`openai` with a base URL",
    ),
    Kind("Assistants runs, batches: requests that carry no context", "nothing", "`responses.create`"),
    Kind("programs in other languages (kimi-code, Claude Code, Codex, Gemini CLI: Node, Rust)", "nothing", ""),
)  # fmt: skip


def coverage(machine: Machine, settings: Config) -> Iterator[Check]:
    """What is seen of the libraries that are installed, and what is seen of none."""
    yield from (check(row, machine) for row in LIBRARIES if _applies(row, machine))
    general = [package for package in GENERAL if package in machine.packages]
    direct = f" ({', '.join(general)})" if general else ""
    yield Check(
        TITLE,
        OK,
        f"whatever library makes them, not covered: with_streaming_response (an entry without usage), {SOCKETS}, calls "
        f"by an HTTP client of one's own{direct}, and other programs.".replace("`", ""),
    )


def check(row: Library, machine: Machine) -> Check:
    """A row of the table said of the installed release."""
    title, missing = f"{machine.titled(row.package)} is", row.missing
    sentence = {
        COVERED: f"{title} covered" + (f", except for {missing}" if missing else ""),
        PARTLY: f"{title} covered in part, not {missing}; way out: {row.instead}",
        NOT: f"{title} not covered" + (f" ({missing})" if missing else "") + f"; way out: {row.instead}",
    }[row.verdict]
    return Check(TITLE, OK if row.verdict == COVERED else WARNING, f"{sentence}.".replace("`", ""))


def table() -> list[str]:
    """Both tables as the README has them, in Markdown."""
    rows = [
        f"| {f'`{row.package}` {row.releases}'.strip()} | {_seen(row)} | {_unseen(row)} | {row.instead or '–'} |"
        for row in (*SDKS, *LIBRARIES)
    ]
    kinds = [f"| {kind.calls} | {kind.seen} | {kind.instead or '–'} |" for kind in KINDS]
    first, second = "| package | covered | not seen | instead |", "| whatever makes them | seen | instead |"
    return [first, "|---|---|---|---|", *rows, "", second, "|---|---|---|", *kinds]


def _seen(row: Library) -> str:
    word = {COVERED: "yes", PARTLY: "in part", NOT: "no"}[row.verdict]
    return f"{word} (tested: {row.measured})" if row.measured else word


def _unseen(row: Library) -> str:
    if row.verdict == NOT:
        return f"all calls: {row.missing}" if row.missing else "all calls"
    return row.missing or "–"


def _applies(row: Library, machine: Machine) -> bool:
    version = machine.packages.get(row.package)
    return version is not None and row.fits(version)


def _dotted(version: Release) -> str:
    return ".".join(map(str, version))
