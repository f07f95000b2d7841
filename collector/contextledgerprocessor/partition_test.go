package contextledgerprocessor

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerprocessor/internal/metadata"
)

const trace1 = "01000000000000000000000000000000"

// Spans go by the session of their call, else by what they say of one, else by their trace; each with its resource and
// scope.
func TestSpansAreSplitBySession(t *testing.T) {
	traces := spans(
		map[string]any{"context_ledger.entry_id": "1", "context_ledger.session_id": "s1", "gen_ai.conversation.id": "other"},
		map[string]any{"gen_ai.conversation.id": "s2"},
		map[string]any{"context_ledger.entry_id": "2", "context_ledger.session_id": "s1"},
		map[string]any{"session.id": "s2"},
		map[string]any{"http.method": "GET"},
		map[string]any{"session.id": 5},
	)
	traces.ResourceSpans().At(0).Resource().Attributes().PutStr("service.name", "a")
	traces.ResourceSpans().At(0).ScopeSpans().At(0).Scope().SetName("lib")
	second := spans(map[string]any{"session.id": "s2"})
	second.ResourceSpans().At(0).Resource().Attributes().PutStr("service.name", "b")
	second.ResourceSpans().MoveAndAppendTo(traces.ResourceSpans())

	told := &partsSeen{}
	require.NoError(t, newTracesPartitioner(t, told).ConsumeTraces(context.Background(), traces))
	assert.ElementsMatch(t, []string{
		"s1: a/lib/0 a/lib/2",
		"s2: a/lib/1 a/lib/3 b//0",
		trace1 + ": a/lib/4 a/lib/5",
	}, told.seen)
}

// Log records go the same way; one that says nothing and is of no trace has no session.
func TestRecordsAreSplitBySession(t *testing.T) {
	records := logs("context_ledger.entry",
		map[string]any{"context_ledger.entry_id": "1", "context_ledger.session_id": "s1"},
		map[string]any{"context_ledger.entry_id": "2", "context_ledger.session_id": "s2"},
		map[string]any{"context_ledger.entry_id": "3", "context_ledger.session_id": "s1"},
	)
	bare := logs("", map[string]any{"k": "v"}, map[string]any{"k": "v"})
	bare.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(1).SetTraceID(pcommon.TraceID{1})
	bare.ResourceLogs().MoveAndAppendTo(records.ResourceLogs())

	told := &partsSeen{}
	set := processortest.NewNopSettings(metadata.Type)
	made, err := NewFactory().CreateLogs(context.Background(), set, partitionConfig(), told)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, made.Shutdown(context.Background())) })
	require.NoError(t, made.ConsumeLogs(context.Background(), records))
	assert.ElementsMatch(t, []string{"s1: 2", "s2: 1", "-: 1", trace1 + ": 1"}, told.seen)
}

// What else the metadata of the client says goes on; a session that the client wrote there itself does not.
func TestMetadataOfTheClientGoesOn(t *testing.T) {
	told := &partsSeen{}
	ctx := client.NewContext(context.Background(), client.Info{Metadata: client.NewMetadata(map[string][]string{
		"tenant": {"blue"}, "Context-Ledger-Session": {"forged"},
	})})
	traces := spans(map[string]any{"session.id": "s1"}, map[string]any{})
	traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(1).SetTraceID(pcommon.TraceID{})
	require.NoError(t, newTracesPartitioner(t, told).ConsumeTraces(ctx, traces))
	assert.ElementsMatch(t, []string{"s1: //0", "-: //1"}, told.seen)
	assert.Equal(t, []string{"blue", "blue"}, told.tenants)
}

// A part that is refused doesn't keep the others from going on, and the batch is to come again if any part is worth
// another try.
func TestRefusedParts(t *testing.T) {
	busy, broken := errors.New("busy"), consumererror.NewPermanent(errors.New("broken"))
	cases := []struct {
		answers   map[string]error
		permanent bool
	}{
		{map[string]error{"s1": busy}, false},
		{map[string]error{"s2": broken}, true},
		{map[string]error{"s1": busy, "s2": broken}, false},
	}
	for _, c := range cases {
		told := &partsSeen{answers: c.answers}
		traces := spans(map[string]any{"session.id": "s1"}, map[string]any{"session.id": "s2"},
			map[string]any{"session.id": "s3"})
		err := newTracesPartitioner(t, told).ConsumeTraces(context.Background(), traces)
		require.Error(t, err)
		assert.Equal(t, c.permanent, consumererror.IsPermanent(err))
		assert.ElementsMatch(t, []string{"s1: //0", "s2: //1", "s3: //2"}, told.seen)
	}
}

// partsSeen notes the parts it is given: session, and the spans by resource, scope and number.
type partsSeen struct {
	mu      sync.Mutex
	seen    []string
	tenants []string
	answers map[string]error
}

func (p *partsSeen) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (p *partsSeen) ConsumeTraces(ctx context.Context, part ptrace.Traces) error {
	var names []string
	for _, from := range part.ResourceSpans().All() {
		for _, scope := range from.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				service := text(from.Resource().Attributes(), "service.name")
				names = append(names, service+"/"+scope.Scope().Name()+"/"+span.Name())
			}
		}
	}
	return p.note(ctx, strings.Join(names, " "))
}

func (p *partsSeen) ConsumeLogs(ctx context.Context, part plog.Logs) error {
	return p.note(ctx, string(rune('0'+part.LogRecordCount())))
}

func (p *partsSeen) note(ctx context.Context, what string) error {
	info := client.FromContext(ctx)
	session := strings.Join(info.Metadata.Get("context-ledger-session"), ",")
	if session == "" {
		session = "-"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, session+": "+what)
	p.tenants = append(p.tenants, info.Metadata.Get("tenant")...)
	return p.answers[session]
}

func newTracesPartitioner(t *testing.T, next consumer.Traces) processor.Traces {
	t.Helper()
	set := processortest.NewNopSettings(metadata.Type)
	made, err := NewFactory().CreateTraces(context.Background(), set, partitionConfig(), next)
	require.NoError(t, err)
	require.NoError(t, made.Start(context.Background(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, made.Shutdown(context.Background())) })
	return made
}

func partitionConfig() *Config {
	config := createDefaultConfig().(*Config)
	config.Mode = partition
	return config
}

// spans makes spans of one trace that are called by their number.
func spans(attributes ...map[string]any) ptrace.Traces {
	made := ptrace.NewTraces()
	list := made.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i, of := range attributes {
		span := list.AppendEmpty()
		span.SetName(string(rune('0' + i)))
		span.SetTraceID(pcommon.TraceID{1})
		span.SetSpanID(pcommon.SpanID{byte(i + 1)})
		if err := span.Attributes().FromRaw(of); err != nil {
			panic(err)
		}
	}
	return made
}

// logs makes log records of one event, of no trace.
func logs(event string, attributes ...map[string]any) plog.Logs {
	made := plog.NewLogs()
	list := made.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, of := range attributes {
		record := list.AppendEmpty()
		record.SetEventName(event)
		if err := record.Attributes().FromRaw(of); err != nil {
			panic(err)
		}
	}
	return made
}

func text(attrs pcommon.Map, name string) string {
	if value, ok := attrs.Get(name); ok {
		return value.AsString()
	}
	return ""
}
