"""Why a summarising call was refused, read from the text of its error by the forms of `failures.toml`.

Only a word and token counts come of it; the text itself, which may quote the prompt, is not kept.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_TEXT = 1 << 14
# A prompt that leaves a tenth of the window fits: it is the output asked for that does not.
FITS_AT = 0.9
PROMPT_TOO_LONG, INVALID_MAX_TOKENS = "prompt_too_long", "invalid_max_tokens"
# Refusals that a shorter history answers.
OVERFLOWS = (PROMPT_TOO_LONG, "request_too_large")
_FORMS = tuple(
    (form["reason"], re.compile(form["says"], re.IGNORECASE | re.DOTALL))
    for form in tomllib.loads(
        resources.files("otel_context_ledger").joinpath("correctness/compaction/failures.toml").read_text("utf-8")
    )["form"]
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A refusal: its reason, and the token counts that the error named (limit, prompt, tools, output, requested)."""

    reason: str
    tokens: Mapping[str, int]

    @property
    def prompt(self) -> int | None:
        """Tokens of the prompt, tools included."""
        given = self.tokens.get("prompt")
        return None if given is None else given + self.tokens.get("tools", 0)

    @property
    def usage(self) -> float | None:
        """The share of the window that the prompt filled."""
        limit = self.tokens.get("limit")
        return round(self.prompt / limit, 3) if limit and self.prompt is not None else None


def read(text: str) -> Failure | None:
    """The refusal that an error's text tells of; `None` where it is about something else."""
    for reason, form in _FORMS:
        if found := form.search(text[:MAX_TEXT]):
            counts = {name: int(digits.replace(",", "")) for name, digits in found.groupdict().items() if digits}
            return _judged(Failure(reason, counts))
    return None


def _judged(failure: Failure) -> Failure:
    usage, output = failure.usage, failure.tokens.get("output")
    if failure.reason == PROMPT_TOO_LONG and output and usage is not None and usage <= FITS_AT:
        return Failure(INVALID_MAX_TOKENS, failure.tokens)
    return failure
