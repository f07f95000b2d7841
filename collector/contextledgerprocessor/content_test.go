package contextledgerprocessor

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerprocessor/internal/metadata"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/normalise"
)

// Where it is told to, the processor takes captured text away from every span and its events, and nothing else.
func TestContentOfSpansIsRemoved(t *testing.T) {
	traces := spans(map[string]any{
		"gen_ai.input.messages":                      "[]",
		"gen_ai.prompt.0.content":                    "secret",
		"llm.input_messages.0.message.content":       "secret",
		"ai.prompt.messages":                         "secret",
		"traceloop.entity.input":                     "secret",
		"our.prompt":                                 "secret",
		"our.messages.7":                             "secret",
		"our.count":                                  3,
		"gen_ai.request.model":                       "m",
		"gen_ai.prompt_tokens":                       5,
		"prompt":                                     "of another program",
		"context_ledger.prefix_locator":              []any{"0:5:aa"},
		"context_ledger.compaction.preserve_content": "ours",
	})
	span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	said := span.Events().AppendEmpty()
	said.SetName("gen_ai.user.message")
	said.Attributes().PutStr("content", "secret")
	other := span.Events().AppendEmpty()
	other.SetName("exception")
	other.Attributes().PutStr("exception.type", "E")
	other.Attributes().PutStr("gen_ai.completion", "secret")

	got := processSpans(t, removing(), traces)
	span = got.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	for _, kept := range []string{
		"our.count", "gen_ai.request.model", "gen_ai.prompt_tokens", "prompt", "context_ledger.prefix_locator",
		"context_ledger.compaction.preserve_content",
	} {
		assert.Contains(t, span.Attributes().AsRaw(), kept)
	}
	for _, gone := range []string{
		"gen_ai.input.messages", "gen_ai.prompt.0.content", "llm.input_messages.0.message.content", "ai.prompt.messages",
		"traceloop.entity.input", "our.prompt", "our.messages.7",
	} {
		assert.NotContains(t, span.Attributes().AsRaw(), gone)
	}
	assert.Empty(t, span.Events().At(0).Attributes().AsRaw())
	assert.Equal(t, map[string]any{"exception.type": "E"}, span.Events().At(1).Attributes().AsRaw())
}

// Names that mean content in one dialect are taken away there, and stay everywhere else.
func TestContentGoesByDialect(t *testing.T) {
	traces := spans(map[string]any{"response": "secret", "duration_ms": 5},
		map[string]any{"response": "of another program"})
	list := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	list.At(0).SetName("claude_code.tool")
	got := processSpans(t, removing(), traces).ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	assert.Equal(t, map[string]any{"duration_ms": int64(5)}, got.At(0).Attributes().AsRaw())
	assert.Equal(t, map[string]any{"response": "of another program"}, got.At(1).Attributes().AsRaw())
}

// Of log records the body goes too where it is content; a body that is the record's name, or another program's, stays.
func TestContentOfRecordsIsRemoved(t *testing.T) {
	records := logs("gen_ai.user.message", map[string]any{"gen_ai.system": "openai", "content": "secret"})
	body := records.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body().SetEmptyMap()
	body.PutStr("content", "secret")
	details := logs("gen_ai.client.inference.operation.details", map[string]any{"gen_ai.input.messages": "secret",
		"k": "v"})
	named := logs("", map[string]any{"event.name": "user_prompt", "prompt": "secret", "prompt_length": 6})
	named.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body().SetStr("claude_code.user_prompt")
	foreign := logs("", map[string]any{"prompt": "of another program"})
	foreign.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body().SetEmptyMap().PutStr("k", "v")
	for _, more := range []plog.Logs{details, named, foreign} {
		more.ResourceLogs().MoveAndAppendTo(records.ResourceLogs())
	}
	got := processLogs(t, removing(), records)
	type seen struct {
		attrs map[string]any
		body  any
	}
	var all []seen
	for _, from := range got.ResourceLogs().All() {
		record := from.ScopeLogs().At(0).LogRecords().At(0)
		attrs := record.Attributes().AsRaw()
		maps.DeleteFunc(attrs, func(name string, _ any) bool { return strings.HasPrefix(name, ours) })
		all = append(all, seen{attrs, record.Body().AsRaw()})
	}
	assert.Equal(t, []seen{
		{map[string]any{}, nil},
		{map[string]any{"k": "v"}, nil},
		{map[string]any{"event.name": "user_prompt", "prompt_length": int64(6)}, "claude_code.user_prompt"},
		{map[string]any{"prompt": "of another program"}, map[string]any{"k": "v"}},
	}, all)
}

// Where it is not told to, captured text stays as it is.
func TestContentStays(t *testing.T) {
	traces := spans(map[string]any{"gen_ai.input.messages": "[]", "llm.prompts.0": "p"})
	want := ptrace.NewTraces()
	traces.CopyTo(want)
	got := processSpans(t, createDefaultConfig().(*Config), traces)
	wanted := want.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().AsRaw()
	kept := got.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes()
	for name, value := range wanted {
		found, ok := kept.Get(name)
		require.True(t, ok, name)
		assert.Equal(t, value, found.AsRaw())
	}
}

func removing() *Config {
	config := createDefaultConfig().(*Config)
	config.Content = ContentConfig{Remove: true, Attributes: []string{"our.prompt", "our.messages.*"}}
	return config
}

// A name that is to be taken away is, too, where the processor itself would have written it.
func TestContentThatIsWrittenIsRemoved(t *testing.T) {
	config := removing()
	config.Content.Attributes = []string{"gen_ai.provider.name"}
	traces := spans(map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "gpt-5", "gen_ai.usage.input_tokens": 10,
	})
	got := processSpans(t, config, traces).ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().AsRaw()
	assert.Equal(t, "openai", got["context_ledger.provider"])
	assert.NotContains(t, got, "gen_ai.provider.name")
}

// Of a record that could not be read nobody knows the dialect: what is content in any is taken away.
func TestContentOfARecordThatBreaks(t *testing.T) {
	made, err := newDesk(processortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config))
	require.NoError(t, err)
	got := spans(map[string]any{"prompt": "what the user said", "http.method": "GET"})
	span := got.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	var seen sighted
	dialect := made.read(context.Background(), &seen, span.Attributes(), func(*call.Call) (normalise.Kind, string) {
		panic("broken")
	})
	require.True(t, made.remover.stains(span, dialect))
	made.remover.cleanSpan(span, dialect)
	assert.Equal(t, map[string]any{"http.method": "GET"}, span.Attributes().AsRaw())
	require.NoError(t, made.close(context.Background()))
}

// processSpans gives what a processor makes of spans.
func processSpans(t *testing.T, config *Config, traces ptrace.Traces) ptrace.Traces {
	t.Helper()
	var sink consumertest.TracesSink
	made, err := NewFactory().CreateTraces(context.Background(), processortest.NewNopSettings(metadata.Type), config,
		&sink)
	require.NoError(t, err)
	require.NoError(t, made.Start(context.Background(), componenttest.NewNopHost()))
	require.NoError(t, made.ConsumeTraces(context.Background(), traces))
	require.NoError(t, made.Shutdown(context.Background()))
	return sink.AllTraces()[0]
}

// processLogs gives what a processor makes of log records.
func processLogs(t *testing.T, config *Config, records plog.Logs) plog.Logs {
	t.Helper()
	var sink consumertest.LogsSink
	made, err := NewFactory().CreateLogs(context.Background(), processortest.NewNopSettings(metadata.Type), config, &sink)
	require.NoError(t, err)
	require.NoError(t, made.Start(context.Background(), componenttest.NewNopHost()))
	require.NoError(t, made.ConsumeLogs(context.Background(), records))
	require.NoError(t, made.Shutdown(context.Background()))
	return sink.AllLogs()[0]
}
