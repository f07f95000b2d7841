package contextledgerprocessor

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// sessionNames are attributes by which a record that is no call may say to which session it belongs.
var sessionNames = []string{semconv.ContextLedgerSessionID, semconv.GenAIConversationID, "session.id",
	"conversation.id"}

// tracesPartitioner sends the spans of each session on by themselves, the session in the metadata of the request.
type tracesPartitioner struct {
	seat
	next consumer.Traces
}

// ConsumeTraces splits the spans by session. Every part is sent on, whatever becomes of the others.
func (p *tracesPartitioner) ConsumeTraces(ctx context.Context, traces ptrace.Traces) error {
	var parts parts[tracesPart]
	for i, from := range traces.ResourceSpans().All() {
		for j, scope := range from.ScopeSpans().All() {
			reader := p.desk().reader.Spans(scope.Scope())
			for _, span := range scope.Spans().All() {
				var session string
				p.desk().guard(ctx, "read", func() {
					var found call.Call
					reader.Span(span, &found)
					session = found.Task.Session
				})
				part := parts.of(sessionKey(session, span.Attributes(), span.TraceID()), newTracesPart)
				span.MoveTo(part.list(i, j, from, scope).AppendEmpty())
			}
		}
	}
	return parts.send(func(key string, part *tracesPart) error {
		return p.next.ConsumeTraces(p.desk().addressed(ctx, key), part.data)
	})
}

// logsPartitioner does the same with log records.
type logsPartitioner struct {
	seat
	next consumer.Logs
}

// ConsumeLogs splits the records by session, as ConsumeTraces does with spans.
func (p *logsPartitioner) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	var parts parts[logsPart]
	for i, from := range logs.ResourceLogs().All() {
		for j, scope := range from.ScopeLogs().All() {
			reader := p.desk().reader.Logs(scope.Scope())
			for _, record := range scope.LogRecords().All() {
				var session string
				p.desk().guard(ctx, "read", func() {
					var found call.Call
					reader.Log(record, &found)
					session = found.Task.Session
				})
				part := parts.of(sessionKey(session, record.Attributes(), record.TraceID()), newLogsPart)
				record.MoveTo(part.list(i, j, from, scope).AppendEmpty())
			}
		}
	}
	return parts.send(func(key string, part *logsPart) error {
		return p.next.ConsumeLogs(p.desk().addressed(ctx, key), part.data)
	})
}

// sessionKey gives the session of a record: that of the call it tells of, else what it says itself, else its trace. A
// record without any of these has none.
func sessionKey(session string, attrs pcommon.Map, trace pcommon.TraceID) string {
	if session != "" {
		return session
	}
	for _, name := range sessionNames {
		if value, ok := attrs.Get(name); ok && value.Type() == pcommon.ValueTypeStr && value.Str() != "" {
			return value.Str()
		}
	}
	if trace.IsEmpty() {
		return ""
	}
	return hex.EncodeToString(trace[:])
}

// addressed gives a context with the session in the metadata of the client, beside what is there. Without a session a
// client's own word under that name is taken away: it would send records of many sessions to one place.
func (d *desk) addressed(ctx context.Context, session string) context.Context {
	info := client.FromContext(ctx)
	metadata := map[string][]string{}
	for key := range info.Metadata.Keys() {
		metadata[key] = info.Metadata.Get(key)
	}
	delete(metadata, d.metadataKey)
	if session != "" {
		metadata[d.metadataKey] = []string{session}
	}
	info.Metadata = client.NewMetadata(metadata)
	return client.NewContext(ctx, info)
}

// parts has the parts of a batch by session, in the order in which the sessions came.
type parts[P any] struct {
	keys  []string
	byKey map[string]*P
}

func (p *parts[P]) of(key string, create func() *P) *P {
	if found, ok := p.byKey[key]; ok {
		return found
	}
	if p.byKey == nil {
		p.byKey = map[string]*P{}
	}
	made := create()
	p.byKey[key] = made
	p.keys = append(p.keys, key)
	return made
}

// maxSending is how many parts of a batch are on their way at once: each may wait for a queue to have it.
const maxSending = 32

// send sends every part. If any was refused for now the error is not permanent, so that the batch comes again: parts
// that were taken come twice then, which the ledger and the connector notice.
func (p *parts[P]) send(next func(string, *P) error) error {
	errs := make([]error, len(p.keys))
	var sending sync.WaitGroup
	places := make(chan struct{}, maxSending)
	for i, key := range p.keys {
		places <- struct{}{}
		sending.Go(func() {
			defer func() { <-places }()
			errs[i] = next(key, p.byKey[key])
		})
	}
	sending.Wait()
	return combined(errs)
}

func combined(errs []error) error {
	var refused, rejected []error
	for _, err := range errs {
		if consumererror.IsPermanent(err) {
			rejected = append(rejected, err)
		} else if err != nil {
			refused = append(refused, err)
		}
	}
	if len(refused) > 0 {
		return errors.Join(refused...)
	}
	return errors.Join(rejected...)
}

// tracesPart is what of a batch belongs to one session; resource and scope are the places in the batch of those that
// the list of spans is for.
type tracesPart struct {
	data            ptrace.Traces
	spans           ptrace.SpanSlice
	resource, scope int
}

func newTracesPart() *tracesPart { return &tracesPart{data: ptrace.NewTraces(), resource: -1} }

func (p *tracesPart) list(i, j int, from ptrace.ResourceSpans, scope ptrace.ScopeSpans) ptrace.SpanSlice {
	if p.resource == i && p.scope == j {
		return p.spans
	}
	if p.resource != i {
		made := p.data.ResourceSpans().AppendEmpty()
		from.Resource().CopyTo(made.Resource())
		made.SetSchemaUrl(from.SchemaUrl())
	}
	made := p.data.ResourceSpans().At(p.data.ResourceSpans().Len() - 1).ScopeSpans().AppendEmpty()
	scope.Scope().CopyTo(made.Scope())
	made.SetSchemaUrl(scope.SchemaUrl())
	p.spans, p.resource, p.scope = made.Spans(), i, j
	return p.spans
}

// logsPart is the same of log records.
type logsPart struct {
	data            plog.Logs
	records         plog.LogRecordSlice
	resource, scope int
}

func newLogsPart() *logsPart { return &logsPart{data: plog.NewLogs(), resource: -1} }

func (p *logsPart) list(i, j int, from plog.ResourceLogs, scope plog.ScopeLogs) plog.LogRecordSlice {
	if p.resource == i && p.scope == j {
		return p.records
	}
	if p.resource != i {
		made := p.data.ResourceLogs().AppendEmpty()
		from.Resource().CopyTo(made.Resource())
		made.SetSchemaUrl(from.SchemaUrl())
	}
	made := p.data.ResourceLogs().At(p.data.ResourceLogs().Len() - 1).ScopeLogs().AppendEmpty()
	scope.Scope().CopyTo(made.Scope())
	made.SetSchemaUrl(scope.SchemaUrl())
	p.records, p.resource, p.scope = made.LogRecords(), i, j
	return p.records
}
