"""Two calls of `litellm.responses`, which litellm makes by an HTTP client of its own."""

from __future__ import annotations

import sys

import litellm

for _ in range(2):
    answer = litellm.responses(
        model="openai/gpt-5",
        input="FIRST, look at the parser.",
        api_base=f"{sys.argv[1]}/openai/v1",
        api_key="test-key",
    )
print(answer.usage.input_tokens)
