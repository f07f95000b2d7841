"""What the ledger and other instrumentations of the OpenAI SDK cost, side by side in one run.

`python -m benchmarks.peers [--quick] [--only NAME,…] [--json FILE]`, or `make bench-peers`. Each contestant runs in a
process and an environment of its own (`environments`, versions pinned, under `.cache/peers`). How to read the table:

- `added` is the thread CPU time of the caller, `with threads` the CPU time of the whole process, flushing included, for
  one call. Both are measured directly: what lies below the contestant's own wrapper is replaced by a canned answer, the
  rest is real. Spans go through OpenTelemetry's batch processor into an exporter that drops them.
- All get the same calls: a conversation of 10, 200 or 2,000 messages that grows by two a call, its containers new for
  each call as the SDK makes them. Making those is not counted.
- `share` is added / what the bare SDK's own `create()` takes on the thread for a request of that size, measured against
  a loopback provider in another process.
- `event` is what one event of a stream takes more than without the contestant, its part of what happens at the end
  included; the share beside it is of the bare SDK's own time for an event.
- Rounds are interleaved: every round asks every contestant in turn. Figures are medians over rounds.

`content` says whether prompts and answers are recorded; langfuse and logfire cannot leave them out. The ledger never
records them. It is measured with all it does (span, metrics, event, ledger file), and with its span alone, which is
what OpenInference, langfuse and logfire make.
"""
