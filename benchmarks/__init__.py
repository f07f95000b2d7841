"""What the ledger costs, as shares of what the SDK itself spends, measured side by side in one process and run.

`python -m benchmarks [--quick] [--json FILE] [--strict]`, or `make bench`. How to read the table:

- `SDK alone` is the thread CPU time of the SDK's own `create()` against a loopback provider, in another process, that
  answers a small canned reply; of a stream, that of one event. The start-up rows are the CPU time of whole processes.
- `added` is the thread CPU time that a call spends in us. It is measured directly: the method below our seam is
  replaced by a canned reply, everything of ours is real (span, event and metrics through OpenTelemetry's batch
  processors into exporters that drop them, ledger file on), and the caller's objects are rebuilt for each call as the
  SDK's transform does (new dicts, the same strings). The difference of two whole calls would drown in their noise.
- `share` is added / SDK alone. `bar` is the limit that we set ourselves. A bar in seconds depends on the machine, so
  nothing here fails a build unless `--strict` asks for it.
- Rounds are interleaved, every figure is the median over them, the garbage collector is on.
- `with threads` is the CPU time of the whole process: it adds writing the line and batching the signals.

*First sight* is a history that the ledger has never seen, *append* one that grew by two messages, *edit* one whose
first or middle message changed. Memory is that of a process that made ten calls in each of 3,000 sessions; what it
grows by over 1,000 more (`--quick`: a tenth of both) is a leak.
"""
