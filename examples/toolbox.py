"""Owns the six tools of the example agent: their contracts as the model sees them, and what they do in a workspace."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
TEST_RUNNER = ("python", "-m", "unittest")
TEST_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Tool:
    """`apply` takes the workspace and the arguments, and returns the text that the model reads."""

    name: str
    description: str
    parameters: Schema
    apply: Callable[..., str]

    def definition(self) -> Schema:
        """The tool as a Chat Completions request lists it."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


def pause() -> None:
    """What tools of a real agent take between two calls: AGENT_PAUSE in seconds, nothing if it is unset."""
    time.sleep(float(os.environ.get("AGENT_PAUSE", "0")))


def perform(tool: Tool | None, workspace: Path, arguments: dict[str, Any]) -> str:
    """The tool's result, or one sentence that tells the model what went wrong."""
    if tool is None:
        return "error: no such tool"
    try:
        return tool.apply(workspace, **arguments)
    except (OSError, TypeError, ValueError, subprocess.TimeoutExpired) as error:
        return f"error: {str(error).replace(str(workspace), '.')}"


def _inside(workspace: Path, path: str) -> Path:
    target = (workspace / path).resolve()
    if not target.is_relative_to(workspace):
        raise ValueError(f"{path} is outside of the repository")
    return target


def _list(workspace: Path, path: str = ".", depth: int = 3) -> str:
    root = _inside(workspace, path)
    found = (file for file in sorted(root.rglob("*")) if "__pycache__" not in file.parts)
    near = (file for file in found if len(file.relative_to(root).parts) <= depth)
    return "\n".join(_listed(workspace, file) for file in near)


def _listed(workspace: Path, file: Path) -> str:
    name = file.relative_to(workspace).as_posix()
    return f"{name}/" if file.is_dir() else f"{name}  {file.stat().st_size} bytes"


def _read(workspace: Path, path: str, first: int = 1, count: int = 1000) -> str:
    lines = _inside(workspace, path).read_text(encoding="utf-8").splitlines()
    shown = lines[first - 1 : first - 1 + count]
    return "\n".join(f"{number:>4}  {line}" for number, line in enumerate(shown, first))


def _search(workspace: Path, pattern: str, glob: str = "**/*.py") -> str:
    wanted = re.compile(pattern)
    hits = [
        f"{file.relative_to(workspace).as_posix()}:{number}: {line.strip()}"
        for file in sorted(workspace.glob(glob))
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if wanted.search(line)
    ]
    return "\n".join(hits) or "no match"


def _edit(workspace: Path, path: str, old: str, new: str) -> str:
    target = _inside(workspace, path)
    text = target.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise ValueError(f"the text to replace occurs {text.count(old)} times in {path}")
    target.write_text(text.replace(old, new), encoding="utf-8")
    return f"edited {path}: replaced {len(old.splitlines())} line(s) by {len(new.splitlines())}"


def _run(workspace: Path, command: list[str]) -> str:
    if tuple(command[:3]) != TEST_RUNNER:
        raise ValueError(f"only {' '.join(TEST_RUNNER)} may be run")
    line = [sys.executable, *command[1:]]
    done = subprocess.run(line, cwd=workspace, capture_output=True, text=True, timeout=TEST_SECONDS, check=False)
    output = (done.stdout + done.stderr).replace(str(workspace), ".")
    return f"exit code {done.returncode}\n{output}"


def _plan(workspace: Path, steps: list[dict[str, str]]) -> str:
    return "\n".join(f"[{step['state']}] {step['text']}" for step in steps)


def _object(required: list[str], **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _number(description: str, default: int) -> Schema:
    return {"type": "integer", "minimum": 1, "default": default, "description": description}


PATH = "Path relative to the root of the repository, with forward slashes. It must not lead out of the repository."

TOOLS = (
    Tool(
        "list",
        "List files and directories below a directory of the repository, sorted by path, one per line. Directories "
        "end with a slash, files are followed by their size in bytes. Caches of the interpreter are left out. Use it "
        "once at the start to learn how the repository is laid out, and again only after files were created. Do not "
        "use it to find a definition: that is what `search` is for. A directory that does not exist gives an empty "
        "result, not an error, so check the spelling of the path before you conclude that something is missing.",
        _object(
            [],
            path=_text(PATH + " The root itself is a single dot, which is also the default."),
            depth=_number("How many levels below the directory are listed. One lists its direct children only.", 3),
        ),
        _list,
    ),
    Tool(
        "read",
        "Read a text file and return it with line numbers, counted from one and followed by two spaces. The numbers "
        "are not part of the file: leave them out when you quote a line in `edit`. By default up to a thousand lines "
        "are returned, which is the whole file in nearly all cases; read longer files in pieces with `first` and "
        "`count`. Files are UTF-8. Several files can be read in one turn by calling the tool several times, which is "
        "faster than one after the other. Read a file again after it was edited, before you edit it once more.",
        _object(
            ["path"],
            path=_text(PATH),
            first=_number("Number of the first line to return.", 1),
            count=_number("How many lines to return at most.", 1000),
        ),
        _read,
    ),
    Tool(
        "search",
        "Search all files that match a glob for lines that match a regular expression (Python syntax, case "
        "sensitive, one line at a time). Each hit is returned as path, line number and the line without its leading "
        "white space. Use it to find where a name is defined and everywhere it is used before you change it. Escape "
        "parentheses, dots and brackets if you mean them literally. The result `no match` is a fact that you can "
        "rely on; it does not mean that the tool failed. Narrow the glob when there are too many hits.",
        _object(
            ["pattern"],
            pattern=_text("Regular expression, matched anywhere in a line."),
            glob=_text("Which files to look at, relative to the root. The default is all Python files: **/*.py"),
        ),
        _search,
    ),
    Tool(
        "edit",
        "Replace one exact piece of text in a file by another. The old text must occur exactly once in the file, "
        "white space and line ends included; if it occurs more often, give more of the lines around it. The rest of "
        "the file is left as it is, byte by byte. The tool refuses files outside of the repository. To insert, "
        "repeat the line before in both texts; to delete, leave the line out of the new text. After an edit, run the "
        "narrowest test that could prove it wrong. Do not use this tool to reformat code that you did not change.",
        _object(
            ["path", "old", "new"],
            path=_text(PATH),
            old=_text("The text to replace, exactly as it stands in the file, without line numbers."),
            new=_text("The text to put in its place."),
        ),
        _edit,
    ),
    Tool(
        "run",
        "Run the test runner of the standard library in the root of the repository and return its exit code and its "
        "whole output. Only commands that start with `python -m unittest` are allowed; there is no shell, so pipes, "
        "redirections and variables do not work. Run a single test by its dotted name while you look for a fault, "
        "and the whole suite before you report. Output is not cut, so the failing assertion with both values is "
        "always in it: read it before you look elsewhere. A run that takes longer than a minute is stopped.",
        _object(
            ["command"],
            command={
                "type": "array",
                "items": {"type": "string"},
                "minItems": 3,
                "description": 'The command as a list of words, for example ["python", "-m", "unittest", "-v"].',
            },
        ),
        _run,
    ),
    Tool(
        "plan",
        "Write the list of steps that the person sees while you work. Each call replaces the whole list. Write it "
        "after you have understood the task, keep it short (three to six steps), keep exactly one step in progress, "
        "and mark a step as done only when a command has proven it. Do not use it for tasks of a single step, do not "
        "put the reading of files on it, and do not repeat the list in the text that you write beside it.",
        _object(
            ["steps"],
            steps={
                "type": "array",
                "description": "All steps, in order.",
                "items": _object(
                    ["text", "state"],
                    text=_text("What will be done, in at most ten words."),
                    state={"type": "string", "enum": ["open", "doing", "done"], "description": "Where the step is."},
                ),
            },
        ),
        _plan,
    ),
)
