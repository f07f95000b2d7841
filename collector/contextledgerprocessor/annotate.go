package contextledgerprocessor

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/normalise"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// ambiguousRule is how the name of a rule begins that could not settle what the input tokens include.
const ambiguousRule = "ambiguous:"

// record is a span or log record that tells of a call, a compaction, or the end of a task.
type record struct {
	call  call.Call
	kind  normalise.Kind
	attrs pcommon.Map
}

// records has those that were written down, to be used anew: what is known of a call takes more than a kilobyte.
var records = sync.Pool{New: func() any { return new(record) }}

func (r *record) reset() {
	r.call.Reset()
	r.kind, r.attrs = normalise.None, pcommon.Map{}
}

// sighted are the records of a batch that tell of something.
type sighted struct {
	found []*record
	spare *record
}

// unread is in the place of the dialect of a record that could not be read.
const unread = "*"

// read keeps what a step reads into a record, where it is told of anything, and gives its dialect. One that breaks tells of
// nothing.
func (d *desk) read(
	ctx context.Context, into *sighted, attrs pcommon.Map, step func(*call.Call) (normalise.Kind, string),
) string {
	if into.spare == nil {
		into.spare = records.Get().(*record)
	}
	dialect, whole := unread, false
	d.guard(ctx, "read", func() {
		into.spare.kind, dialect = step(&into.spare.call)
		whole = true
	})
	switch {
	case !whole:
		into.spare.reset()
	case into.spare.kind != normalise.None:
		into.spare.attrs = attrs
		into.found, into.spare = append(into.found, into.spare), nil
	}
	return dialect
}

// stained is a span or log record from which text is to be taken away when all is written, and the dialect that it had when
// it came.
type stained[R any] struct {
	record  R
	dialect string
}

// done lays the records aside for the next batch.
func (s *sighted) done() {
	for _, used := range s.found {
		used.reset()
		records.Put(used)
	}
	if s.spare != nil {
		records.Put(s.spare)
	}
}

// processTraces annotates the spans that tell of calls, and takes content away where it is to.
func (d *desk) processTraces(ctx context.Context, traces ptrace.Traces) (ptrace.Traces, error) {
	var seen sighted
	var dirty []stained[ptrace.Span]
	for _, from := range traces.ResourceSpans().All() {
		for _, scope := range from.ScopeSpans().All() {
			reader := d.reader.Spans(scope.Scope())
			for _, span := range scope.Spans().All() {
				dialect := d.read(ctx, &seen, span.Attributes(), func(into *call.Call) (normalise.Kind, string) {
					return reader.Span(span, into)
				})
				if d.config.Content.Remove && d.remover.stains(span, dialect) {
					dirty = append(dirty, stained[ptrace.Span]{span, dialect})
				}
			}
		}
	}
	d.annotate(ctx, seen.found)
	for _, one := range dirty {
		d.remover.cleanSpan(one.record, one.dialect)
	}
	seen.done()
	return traces, nil
}

// processLogs does the same with log records.
func (d *desk) processLogs(ctx context.Context, logs plog.Logs) (plog.Logs, error) {
	var seen sighted
	var dirty []stained[plog.LogRecord]
	for _, from := range logs.ResourceLogs().All() {
		for _, scope := range from.ScopeLogs().All() {
			reader := d.reader.Logs(scope.Scope())
			for _, line := range scope.LogRecords().All() {
				dialect := d.read(ctx, &seen, line.Attributes(), func(into *call.Call) (normalise.Kind, string) {
					return reader.Log(line, into)
				})
				if d.config.Content.Remove {
					dirty = append(dirty, stained[plog.LogRecord]{line, dialect})
				}
			}
		}
	}
	d.annotate(ctx, seen.found)
	for _, one := range dirty {
		d.remover.cleanRecord(one.record, one.dialect)
	}
	seen.done()
	return logs, nil
}

// annotate judges the calls in the order in which they began, for a span comes when it ends, and writes down what was
// found.
func (d *desk) annotate(ctx context.Context, found []*record) {
	gap := d.arrived(ctx) // a batch without calls, too, is no gap in its queue
	if len(found) == 0 {
		return
	}
	now := time.Now()
	slices.SortStableFunc(found, func(a, b *record) int { return a.call.Place.Start.Compare(b.call.Place.Start) })
	d.guard(ctx, "fold", func() { fold(found) })
	counts := newCounts()
	for _, told := range found {
		told.call.Place.Gap = gap
		d.guard(ctx, "judge", func() {
			if told.kind != normalise.Outcome {
				d.state.Observe(&told.call, now)
			}
			counts.add(told)
			told.write()
		})
	}
	d.tell(ctx, counts)
}

// fold makes an aggregate of each record that another one tells better: a call is told once, whoever else tells of it.
func fold(found []*record) {
	var calls []*call.Call
	var at []int
	for i := range found {
		if found[i].kind == normalise.Call {
			calls, at = append(calls, &found[i].call), append(at, i)
		}
	}
	for i, repeats := range normalise.Repeated(calls) {
		if repeats {
			found[at[i]].kind, found[at[i]].call.Origin.Aggregate = normalise.Aggregate, true
		}
	}
}

// write puts what is known onto the record. An entry of ours that nothing was found out about stays as it is.
func (r *record) write() {
	if r.kind == normalise.Outcome || r.ours() && r.call.Verdict.By != semconv.JudgedByCollector {
		return
	}
	if r.call.Origin.CountedBy == "" && r.kind != normalise.Aggregate {
		r.call.Origin.CountedBy = semconv.CountedByNone
	}
	if _, told := r.attrs.Get(semconv.ContextLedgerPrefixLocator); told {
		r.call.Context.Locator = r.call.Context.Locator[:0] // it is the longest part of an entry, and stays as it was told
	}
	if r.call.Verdict.By == semconv.JudgedByCollector {
		r.call.Withdraw(r.attrs)
	}
	if r.kind == normalise.Call && !r.ours() {
		r.call.WriteAll(r.attrs)
	} else {
		r.call.Write(r.attrs)
	}
}

func (r *record) ours() bool { return r.call.Origin.Dialect == normalise.Ours }

// counts are of a batch what the processor tells of calls in its own telemetry: by dialect, how many there are and of how
// many the input is ambiguous; by cause and judge, their verdicts.
type counts struct {
	calls, ambiguous map[string]int64
	verdicts         map[[2]string]int64
	overfull         int64
}

func newCounts() *counts {
	return &counts{calls: map[string]int64{}, ambiguous: map[string]int64{}, verdicts: map[[2]string]int64{}}
}

func (c *counts) add(told *record) {
	if told.kind != normalise.Call {
		return
	}
	dialect := told.call.Origin.Dialect
	c.calls[dialect]++
	if strings.HasPrefix(told.call.Origin.Rule, ambiguousRule) {
		c.ambiguous[dialect]++
	}
	if overfull(&told.call.Usage) {
		c.overfull++
	}
	c.verdicts[[2]string{told.call.Verdict.Cause, told.call.Verdict.By}]++
}

// tell counts in the processor's own telemetry.
func (d *desk) tell(ctx context.Context, found *counts) {
	for dialect, many := range found.calls {
		d.telemetry.ProcessorContextLedgerCalls.Add(ctx, many, d.words.dialect(dialect))
	}
	for dialect, many := range found.ambiguous {
		d.telemetry.ProcessorContextLedgerAmbiguous.Add(ctx, many, d.words.dialect(dialect))
	}
	if found.overfull > 0 {
		d.telemetry.ProcessorContextLedgerInvariantViolations.Add(ctx, found.overfull)
	}
	for said, many := range found.verdicts {
		d.telemetry.ProcessorContextLedgerVerdicts.Add(ctx, many, d.words.verdict(said[0], said[1]))
	}
}

// overfull tells whether more was read from and written to the cache than was sent: then there is no rest of the input.
func overfull(usage *call.Usage) bool {
	return usage.Input != nil && usage.Uncached() == nil && usage.Unreported() == nil
}
