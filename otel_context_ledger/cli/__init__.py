"""The command line `context-ledger`: which commands there are, their options and exit codes.

What a command says is its own module's business; each has `answer`, which makes an `Answer` of the ledger file and the
settings and prints nothing. Wrong input is one sentence on stderr, never a traceback.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from otel_context_ledger import __version__, config
from otel_context_ledger.cli import dashboard, diagnose, diff, doctor, explain, outcome, report, show, tasks, verify
from otel_context_ledger.cli.calls import Unusable
from otel_context_ledger.cli.printing import Answer, write

FINE, FOUND, REFUSED = 0, 1, 2
EXIT_CODES = """exit codes:
  0  fine
  1  verify, doctor or diagnose found something wrong
  2  wrong usage, an unknown call, or a ledger file that is missing, empty or not ours"""
SERVER_EXIT_CODES = """exit codes:
  0  it was ended with Ctrl-C
  2  wrong usage, boards that cannot be read, or an address that cannot be served at"""
Command: TypeAlias = Callable[[argparse.Namespace, config.Config], Answer]
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
ONE_CALL = "LAST, LAST-1, …, an entry id or the beginning of one"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; like any argparse program it raises SystemExit for wrong usage."""
    arguments = parser().parse_args(argv)
    try:
        answer = arguments.answer(arguments, config.from_env(os.environ))
        write(answer, arguments.json)
    except Unusable as refusal:
        print(f"context-ledger: {refusal}", file=sys.stderr)
        return REFUSED
    except BrokenPipeError:
        # The reader of our output has seen enough (`| head`); what Python still holds goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    return FOUND if answer.found else FINE


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    whole = argparse.ArgumentParser(
        prog="context-ledger",
        description="What the context of each model call was made of, what the cache did with it, and why.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"context-ledger {__version__}")
    commands = whole.add_subparsers(metavar="command", required=True)
    showing = _command(commands, "show", "a table of calls with totals", show.answer)
    showing.add_argument("--session", metavar="S", help="only the calls of the session with this id or beginning")
    showing.add_argument("--last", metavar="N", type=_positive, help="only the last N calls")
    explaining = _command(commands, "explain", "one call in plain words", explain.answer)
    explaining.add_argument("call", metavar="CALL", help=ONE_CALL)
    comparing = _command(commands, "diff", "two calls, segment by segment", diff.answer)
    comparing.add_argument("a", metavar="A", help=ONE_CALL)
    comparing.add_argument("b", metavar="B", help=ONE_CALL)
    counting = _command(commands, "tasks", "what each task cost, how it ended, and what a success costs", tasks.answer)
    counting.add_argument("--task", metavar="T", help="only the task with this id, or those that begin so")
    looking = _command(commands, "diagnose", "sixteen symptoms: found, not found, or not to be told", diagnose.answer)
    _choosing(looking)
    _reporting(_command(commands, "report", "one page: reuse and correctness side by side", report.answer))
    _telling(_command(commands, "outcome", "say how a task ended, now or hours later", outcome.answer))
    _command(commands, "verify", "whether the ledger file is whole and consistent", verify.answer)
    _command(commands, "doctor", "whether the ledger is active and set up right here", doctor.answer)
    serving = _alone(commands, "dashboard", "the boards in a browser, from a Prometheus", dashboard.answer)
    serving.epilog = SERVER_EXIT_CODES
    dashboard.options(serving)
    return whole


def _command(commands: Commands, name: str, brief: str, answer: Command) -> argparse.ArgumentParser:
    """A command that answers from the ledger file."""
    own = _alone(commands, name, brief, answer)
    own.add_argument(
        "--file", metavar="PATH", type=Path, help="the ledger file (default: $CONTEXT_LEDGER_FILE, else ledger.jsonl)"
    )
    own.add_argument("--json", action="store_true", help="print one JSON document")
    return own


def _alone(commands: Commands, name: str, brief: str, answer: Command) -> argparse.ArgumentParser:
    own = commands.add_parser(
        name,
        help=brief,
        description=f"{brief[0].upper()}{brief[1:]}.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    own.set_defaults(answer=answer, json=False)
    return own


def _choosing(own: argparse.ArgumentParser) -> None:
    own.add_argument("--task", metavar="T", help="only the calls of the task with this id or beginning")
    own.add_argument("--session", metavar="S", help="only the calls of the session with this id or beginning")
    own.add_argument("--since", metavar="WHEN", help="only calls that began since then: 2h, 7d, 2026-11-30T14:00")


def _reporting(own: argparse.ArgumentParser) -> None:
    own.add_argument("ledger", metavar="LEDGER", type=Path, nargs="*", help="ledger files, instead of --file")
    own.add_argument("--html", metavar="OUT", help="write it as one page of HTML to this file; - is the output")
    own.add_argument(
        "--limit-sessions", metavar="N", type=_positive, default=report.SESSIONS,
        help="show the timelines of so many sessions, the worst first (default: %(default)s)",
    )  # fmt: skip
    _choosing(own)


def _telling(own: argparse.ArgumentParser) -> None:
    own.add_argument("task", metavar="TASK", help="the task, as the program named it")
    own.add_argument("--attempt", metavar="A", help="only of this attempt; without it, of the whole task")
    own.add_argument("--reason", metavar="TEXT", help="why, in your words; it is kept as it is")
    own.add_argument("--id", metavar="ID", help="the same id again is the same outcome, however often it is delivered")
    for name, (yes, no) in outcome.OPTIONS.items():
        either = own.add_mutually_exclusive_group()
        for option, value in ((yes, True), (no, False)):
            if option:
                either.add_argument(option, dest=name, action="store_const", const=value, default=None)
    own.add_argument("--tests", choices=("passed", "failed"), help="whether the tests passed")
    own.add_argument("--constraints", choices=("kept", "violated"), help="whether the declared constraints were kept")


def _positive(raw: str) -> int:
    if not raw.isdecimal() or int(raw) < 1:
        raise argparse.ArgumentTypeError(f"{raw!r} is not a whole number above 0")
    return int(raw)
