"""The machine and the provider around the program: a repository, an environment and answers full of markers, and
everything that is left behind when the program has run."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.privacy.markers import mark
from tests.provider import Answer, Behaviour, Plan, Provider, Received, call
from tests.receiver import Receiver, receiving

ROOT = Path(__file__).parent.parent.parent
SIGNALS = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
}
OTHERS = ("com.anthropic.sdk.python",)
ECHOES = {"err-400-": 400, "err-429-": 429, "err-500-": 500}


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of some runs: `texts` are (attribute, text) of all that can be decoded, `raw` every byte sent or
    written, `made` the names of files that were not there before, `lines` those of calls, `planted` and `ended` what
    the program says of itself, `wire` what the provider got of it, `ledger` the ledger file."""

    texts: Sequence[tuple[str, str]]
    raw: Sequence[bytes]
    made: frozenset[str]
    lines: Sequence[Mapping[str, Any]]
    planted: frozenset[str]
    ended: Mapping[str, int]
    stderr: str
    wire: Sequence[bytes]
    ledger: bytes


PLACES_OF_MACHINE = frozenset({
    "machine.cwd", "machine.home", "machine.user", "machine.ledger", "machine.token", "machine.untracked",
    "machine.file", "machine.rule", "machine.rules",
    "git.remote.user", "git.remote.password", "git.remote.path", "git.branch", "git.author",
    "git.email", "git.message", "git.path", "named.agent",
})  # fmt: skip
PLACES_OF_ANSWER = frozenset({
    "answer.text", "answer.reasoning", "answer.arguments", "answer.call", "answer.tool", "answer.model", "answer.id",
    "answer.fingerprint", "answer.service_tier", "answer.route", "answer.finish_reason", "answer.verdict",
    "answer.header", "answer.extra", "answer.metadata", "answer.refusal",
})  # fmt: skip


def hostile() -> Plan:
    """A provider that repeats the whole request in its errors and has markers in all of its answers."""
    numbers = itertools.count()

    def plan(received: Received) -> Behaviour | None:
        status = next((code for start, code in ECHOES.items() if received.model.startswith(start)), None)
        if status is not None:
            return Behaviour(status=status, says=f"{received.headers} {received.body.decode()}")
        if received.model.startswith(("err-", "malformed", "stuck")):
            return None
        arguments = {"path": mark("answer.arguments")}
        # The stream helper of openai 3.57 for the Responses API raises where there are two of them.
        tools = (mark("answer.tool"), mark("sent.tool.name"))[: 1 if "input" in received.json else 2]
        calls = tuple(call(name, mark("answer.call"), **arguments) for name in tools)
        answer = Answer(f"It is {mark('answer.text')}.", f"Think {mark('answer.reasoning')}.", calls)
        headers = {"x-request-id": mark("answer.header"), "x-more": mark("answer.header")}
        extra = _told(received, answer, next(numbers))
        return Behaviour(answer=answer, extra=extra, headers=headers)

    return plan


def _told(received: Received, answer: Answer, number: int) -> dict[str, Any]:
    """Members of an answer; another host and another served model now and then, and nothing cached where a lifetime was
    asked for."""
    path, other = received.path.split("?", 1)[0], "-b" if number % 16 == 15 else ""
    common = {
        "id": mark("answer.id"),
        "model": mark("answer.model") + other,
        mark("answer.extra"): mark("answer.extra"),
    }
    if path.endswith("/messages"):
        verdict = {"cache_miss_reason": {"type": mark("answer.verdict")}}
        return common | {"stop_reason": mark("answer.finish_reason"), "diagnostics": verdict}
    common |= {"service_tier": mark("answer.service_tier"), "metadata": {"a": mark("answer.metadata")}}
    if path.endswith("/responses"):
        verdict = {"type": "cache_miss", "reason": mark("answer.verdict")}
        return common | {
            "incomplete_details": {"reason": mark("answer.finish_reason")},
            "prompt_cache_diagnostics": verdict,
        }
    message = {"role": "assistant", "content": answer.text, "reasoning_content": answer.reasoning}
    made = ({"name": one.name, "arguments": one.arguments} for one in answer.tool_calls)
    called = [{"id": mark("answer.call"), "type": "function", "function": one} for one in made]
    # What parses an answer for the program refuses calls of tools that it does not know.
    message |= {"refusal": mark("answer.refusal")} | ({"tool_calls": called} if received.json.get("tools") else {})
    choice = {"index": 0, "message": message, "delta": {}, "finish_reason": mark("answer.finish_reason")}
    if "prompt_cache_retention" in received.json:
        common |= {
            "usage": {"prompt_tokens": 9000, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 0}}
        }
    return common | {
        "system_fingerprint": mark("answer.fingerprint"),
        "provider": mark("answer.route") + other,
        "choices": [choice],
    }


def repository(folder: Path) -> Path:
    """A repository with markers in its remote, branch, commit, paths and files."""
    root = folder / mark("machine.cwd") / "work"
    (root / mark("git.path")).mkdir(parents=True)
    (root / mark("git.path") / "a.py").write_text(mark("machine.file"))
    rule = f"- Never touch {mark('machine.rule')} without a test."
    (root / "AGENTS.md").write_text(
        f"# {mark('machine.rules')}\n{rule} <!-- constraint: marked -->\n{'- Be brief. ' * 9}"
    )
    remote = (
        f"https://{mark('git.remote.user')}:{mark('git.remote.password')}@git.example/{mark('git.remote.path')}.git"
    )
    named = ("-c", f"user.name={mark('git.author')}", "-c", f"user.email={mark('git.email')}@a.example")
    for arguments in (
        ("init", "-q", "-b", mark("git.branch")),
        ("remote", "add", "origin", remote),
        ("add", "."),
        (*named, "commit", "-q", "-m", mark("git.message"), "--date=2026-01-01T00:00:00Z"),
    ):
        dated = os.environ | {"GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
        subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, env=dated)
    (root / f"{mark('machine.untracked')}.txt").write_text(mark("machine.untracked"))
    return root


def environment(folder: Path, provider: Provider, receiver: Receiver) -> dict[str, str]:
    """Every variable that a shell and its secrets set, and the ledger with all signals on."""
    home = folder / mark("machine.home")
    temporary = folder / "tmp"
    for directory in (home, temporary):
        directory.mkdir(exist_ok=True)
    port = provider.server_port
    return {
        **{f"OTEL_{signal}_EXPORTER": "otlp" for signal in ("TRACES", "METRICS", "LOGS")},
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_PYTHON_LOGGING_AUTO_INSTRUMENTATION_ENABLED": "true",
        "CONTEXT_LEDGER_FILE": str(folder / mark("machine.ledger") / "ledger.jsonl"),
        "CONTEXT_LEDGER_SURFACES": f"127.0.0.1:{port}=kimi_open_platform,localhost:{port}=openai",
        "CONTEXT_LEDGER_AGENT": mark("named.agent"),
        "HOME": str(home),
        "USER": mark("machine.user"),
        "LOGNAME": mark("machine.user"),
        "TMPDIR": str(temporary),
        "OPENAI_API_KEY": mark("machine.token"),
        "ANTHROPIC_API_KEY": mark("machine.token"),
        "GITHUB_TOKEN": mark("machine.token"),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
    }


def runs(folder: Path, times: int = 1, *arguments: str, **settings: str) -> Left:
    """The program, so many times one after the other over the same ledger file, and what is left then."""
    root = repository(folder)
    bin_ = Path(sys.executable).parent
    with Provider(plan=hostile()) as provider, receiving() as receiver:
        variables = os.environ | environment(folder, provider, receiver) | settings
        before = _files(folder)
        command = [str(bin_ / "opentelemetry-instrument"), str(bin_ / "python"), "-m", "tests.privacy.program"]
        command += [provider.url, *arguments]
        done = [
            subprocess.run(command, cwd=root, env=variables, capture_output=True, text=True, check=True, timeout=300)
            for _ in range(times)
        ]
        messages = [message for path, kind in SIGNALS.items() for message in ours(receiver.bodies.get(path, []), kind)]
        wire = [f"{r.path}\n{r.headers}".encode() + r.body for r in provider.requests]
    said = [json.loads(run.stdout) for run in done]
    stderr = "".join(run.stderr for run in done)
    made = [path for path in _files(folder) if before.get(path) != path.stat().st_mtime_ns]
    files = [path.read_bytes() for path in made]
    lines = [json.loads(line) for line in _ledger(folder).read_bytes().splitlines()]
    texts = [pair for message in messages for pair in decoded(message)]
    texts += [pair for line in lines for pair in spelled(line)]
    entries = [line for line in lines if "kind" not in line]
    raw = [*(message.SerializeToString() for message in messages), *files, stderr.encode()]
    names = frozenset(path.name for path in made)
    planted = frozenset(place for one in said for place in one["planted"])
    return Left(texts, raw, names, entries, planted, said[0]["ended"], stderr, wire, _ledger(folder).read_bytes())


def _ledger(folder: Path) -> Path:
    return folder / mark("machine.ledger") / "ledger.jsonl"


def _files(folder: Path) -> dict[Path, int]:
    """Every file that could have been left or changed, and when it was: beside the ledger, in the repository with its
    git directory, among temporary files and in the user's home."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def ours(bodies: Sequence[bytes], kind: Any) -> Iterator[Any]:
    """What arrived, without what other instrumentations said: the anthropic SDK's own spans hold the URL."""
    for raw in bodies:
        message = kind.FromString(raw)
        for resource in getattr(message, message.DESCRIPTOR.fields[0].name):
            scopes = getattr(resource, resource.DESCRIPTOR.fields_by_number[2].name)
            kept = [scope for scope in scopes if scope.scope.name not in OTHERS]
            del scopes[:]
            scopes.extend(kept)
        yield message


def decoded(message: Any, name: str | None = None) -> Iterator[tuple[str, str]]:
    """Every text of a message with the name of its attribute, or of the message and field that it is in."""
    if message.DESCRIPTOR.name == "KeyValue":
        yield "key", message.key
        yield from decoded(message.value, message.key.removeprefix("context_ledger."))
        return
    for field, value in message.ListFields():
        for one in [value] if isinstance(value, (str, bytes, Message)) or not hasattr(value, "__len__") else value:
            if isinstance(one, Message):
                yield from decoded(one, name)
            else:
                text = one.hex() if isinstance(one, bytes) else str(one)
                yield name or f"{message.DESCRIPTOR.name.lower()} {field.name}", text


# What the line of a compaction has beside the registry's fields of one.
BESIDE = ("compaction_event", "begun", "ended", "settled")


def spelled(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Every text of a ledger line with its attribute's name, which is its place in its group."""
    if isinstance(value, dict):
        yield from (pair for key, item in value.items() for pair in spelled(item, (*path, key)))
    elif isinstance(value, list):
        yield from (pair for item in value for pair in spelled(item, path))
    elif value is not None:
        own = path if path[0] == "compaction" and path[-1] not in BESIDE else path[1:]
        yield ("segments" if path[0] == "segments" else ".".join(own) or path[0]), str(value)
