package contextledgerconnector

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/sharing"
)

// side is the connector as one signal's pipelines see it.
type side struct {
	lease *sharing.Lease[*Config, *counter]
	next  consumer.Metrics
}

type tracesSide struct{ *side }

type logsSide struct{ *side }

func (s *side) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// Start lets the counter send on what it counts, through whichever side starts first.
func (s *side) Start(context.Context, component.Host) error { return s.lease.Value.start(s.next) }

// Shutdown sends on what was counted when the last side goes.
func (s *side) Shutdown(ctx context.Context) error {
	if !s.lease.Release() {
		return nil
	}
	return s.lease.Value.stop(ctx)
}

// ConsumeTraces counts the entries among the spans. It never fails: a record that cannot be read is none.
func (s tracesSide) ConsumeTraces(ctx context.Context, traces ptrace.Traces) error {
	counter, found := s.lease.Value, spare.Get().(*batch)
	var span ptrace.Span
	read := func() { found.next().readSpan(span) }
	for _, from := range traces.ResourceSpans().All() {
		found.from = counter.resource(from.Resource())
		for _, scope := range from.ScopeSpans().All() {
			for _, span = range scope.Spans().All() {
				if marked(span.Attributes()) {
					counter.guard(ctx, "read", read)
				}
			}
		}
	}
	counter.guard(ctx, "count", func() { counter.count(ctx, found) })
	found.release()
	return nil
}

// ConsumeLogs counts the entries among the log records. It never fails.
func (s logsSide) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	counter, found := s.lease.Value, spare.Get().(*batch)
	var record plog.LogRecord
	read := func() { found.next().readRecord(record) }
	for _, from := range logs.ResourceLogs().All() {
		found.from = counter.resource(from.Resource())
		for _, scope := range from.ScopeLogs().All() {
			for _, record = range scope.LogRecords().All() {
				if marked(record.Attributes()) && record.EventName() != semconv.EventIdentityChanged {
					counter.guard(ctx, "read", read)
				}
			}
		}
	}
	counter.guard(ctx, "count", func() { counter.count(ctx, found) })
	found.release()
	return nil
}

// batch has the entries that came together. One that was counted is used anew: what is known of a call takes more than
// a kilobyte.
type batch struct {
	from    []pair
	entries []*entry
	many    int
}

var spare = sync.Pool{New: func() any { return new(batch) }}

// mostSpare is how many entries a batch has at most that is laid aside.
const mostSpare = 1000

// next adds an entry of which nothing is known but its resource.
func (b *batch) next() *entry {
	if b.many == len(b.entries) {
		b.entries = append(b.entries, new(entry))
	}
	added := b.entries[b.many]
	added.from = b.from
	b.many++
	return added
}

// told gives the entries that could be read.
func (b *batch) told(yield func(*entry) bool) {
	for _, one := range b.entries[:b.many] {
		if one.read && !yield(one) {
			return
		}
	}
}

// release lays a batch aside, of which nothing is kept.
func (b *batch) release() {
	for _, counted := range b.entries[:b.many] {
		counted.clear()
	}
	b.from, b.many = nil, 0
	if len(b.entries) <= mostSpare {
		spare.Put(b)
	}
}

// resource gives the attributes of a resource that are taken over.
func (c *counter) resource(from pcommon.Resource) []pair {
	var found []pair
	for _, name := range c.config.ResourceAttributes {
		if value, ok := from.Attributes().Get(name); ok && value.AsString() != "" {
			found = append(found, pair{name, value.AsString()})
		}
	}
	return found
}
