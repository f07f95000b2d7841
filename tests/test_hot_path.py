"""What a call does in the program's own thread while every check has something to look at: nothing that may wait for a
disk, another program or a log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, logging, os, pathlib, sys, threading, time
import openai
from openai import _base_client
from openai._models import FinalRequestOptions
from openai.types.chat import ChatCompletion
from otel_context_ledger import compaction, constraint, read, session, tool_registry
from otel_context_ledger.instrumentation import ContextLedgerInstrumentor

USAGE = {"prompt_tokens": 900, "completion_tokens": 9, "total_tokens": 909, "cached_tokens": 800}
ANSWER = ChatCompletion.model_validate({
    "id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": USAGE,
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}],
})
_base_client.SyncAPIClient.request = lambda self, *args, **kwargs: ANSWER
ledger = ContextLedgerInstrumentor()
ledger.instrument()

seen, watching = set(), [False]

def note(event):
    if watching[0] and threading.current_thread() is threading.main_thread():
        seen.add(event)

def noted(owner, name):
    function = getattr(owner, name)
    def around(*args, **kwargs):
        note(f"{owner.__name__}.{name}")
        return function(*args, **kwargs)
    setattr(owner, name, around)

class Listening(logging.Handler):
    def emit(self, record):
        note("logged")

# Python has no audit event for these.
for owner, names in ((os, ("stat", "lstat", "getcwd", "readlink", "fsync", "write", "read")), (time, ("sleep",))):
    for name in names:
        noted(owner, name)
logging.getLogger().addHandler(Listening())
sys.addaudithook(lambda event, _: None if event in PLAIN else note(event))
PLAIN = {"object.__getattr__", "object.__setattr__", "sys._getframe", "builtins.id"}
using = openai.OpenAI(api_key="none", base_url="https://api.moonshot.ai/v1")

def call(messages):
    body = {"model": "m", "messages": messages, "tools": TOOLS}
    options = FinalRequestOptions.construct(method="post", url="/chat/completions", json_data=body)
    watching[0] = True
    using.request(ChatCompletion, options, stream=False, stream_cls=None)
    watching[0] = False

def reading(number, name, **arguments):
    called = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [{"role": "assistant", "tool_calls": [called]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "x = 1\\n"}]

TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]
HISTORY = [{"role": "system", "content": "Be careful. " * 40}, {"role": "user", "content": "Fix it."}]
SUMMARY = "This session is being continued from a previous conversation. Never edit files under vendor/."
for round in range(2):
    # The first round imports what is needed once and starts the threads.
    seen.clear()
    with session(f"s{round}"):
        constraint("C1", "Never edit files under vendor/.")
        tool_registry(TOOLS, server="files")
        read("code.py")
        call(HISTORY)
        call([*HISTORY, *reading(1, "read_file", path="code.py")])
        call([*HISTORY, *reading(1, "read_file", path="code.py"), *reading(2, "bash", command="cat code.py")])
        with compaction(trigger="auto") as told:
            told.done(SUMMARY)
        call([HISTORY[0], {"role": "user", "content": SUMMARY}])
    assert ledger.flush(60)
print(json.dumps([sorted(seen), "tiktoken" in sys.modules]))
"""


@pytest.mark.parametrize("where", ["here", "named"])
def test_a_call_waits_for_nothing(where: str, tmp_path: Path) -> None:
    """No file is opened or looked at, no process started, nothing imported, logged or tokenised. Where relative paths
    begin is asked of the system where the program works in the repository itself, and may go elsewhere."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "AGENTS.md").write_text("- Never edit files under vendor/.\n" * 3, "utf-8")
    (tmp_path / "code.py").write_text("x = 1\n", "utf-8")
    settings = {
        "CONTEXT_LEDGER_FILE": str(tmp_path / "ledger.jsonl"),
        "CONTEXT_LEDGER_REPOSITORY": "auto" if where == "here" else str(tmp_path),
    }
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command, env=os.environ | settings, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    assert json.loads(done.stdout) == [["os.getcwd"] if where == "here" else [], False]
    lines = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text("utf-8").splitlines()]
    checks = [line["checks"] for line in lines if "kind" not in line][4:]
    assert {check["constraints_check"] for check in checks} <= {"held", "lost"}
    assert len(checks) == 4
