package contextledgerconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

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
	var found batch
	for _, from := range traces.ResourceSpans().All() {
		found.from = s.lease.Value.resource(from.Resource())
		for _, scope := range from.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				s.lease.Value.guard(ctx, "read", func() { found.take(readSpan(span)) })
			}
		}
	}
	s.lease.Value.guard(ctx, "count", func() { s.lease.Value.count(ctx, &found) })
	found.release()
	return nil
}

// ConsumeLogs counts the entries among the log records. It never fails.
func (s logsSide) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	var found batch
	for _, from := range logs.ResourceLogs().All() {
		found.from = s.lease.Value.resource(from.Resource())
		for _, scope := range from.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				s.lease.Value.guard(ctx, "read", func() { found.take(readRecord(record)) })
			}
		}
	}
	s.lease.Value.guard(ctx, "count", func() { s.lease.Value.count(ctx, &found) })
	found.release()
	return nil
}

// batch has the entries that came together, each with its resource.
type batch struct {
	from    []pair
	entries []*entry
	sources [][]pair
}

func (b *batch) take(found *entry) {
	if found != nil {
		b.entries = append(b.entries, found)
		b.sources = append(b.sources, b.from)
	}
}

func (b *batch) release() {
	for _, counted := range b.entries {
		counted.release()
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
