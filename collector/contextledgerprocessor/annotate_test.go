package contextledgerprocessor

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/plogtest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerprocessor/internal/metadata"
)

// Each folder of testdata has spans or log records as somebody sends them, and as they are afterwards. What was made of
// them is made of nothing more when it comes through another processor.
func TestGolden(t *testing.T) {
	for _, name := range []string{"openinference", "mixed"} {
		t.Run(name, func(t *testing.T) {
			input, err := golden.ReadTraces(filepath.Join("testdata", name, "input.yaml"))
			require.NoError(t, err)
			want, err := golden.ReadTraces(filepath.Join("testdata", name, "output.yaml"))
			require.NoError(t, err)
			got := processSpans(t, createDefaultConfig().(*Config), input)
			assert.NoError(t, ptracetest.CompareTraces(want, got))
			again := ptrace.NewTraces()
			got.CopyTo(again)
			assert.NoError(t, ptracetest.CompareTraces(got, processSpans(t, createDefaultConfig().(*Config), again)))
		})
	}
	t.Run("claude_code", func(t *testing.T) {
		input, err := golden.ReadLogs(filepath.Join("testdata", "claude_code", "input.yaml"))
		require.NoError(t, err)
		want, err := golden.ReadLogs(filepath.Join("testdata", "claude_code", "output.yaml"))
		require.NoError(t, err)
		got := processLogs(t, createDefaultConfig().(*Config), input)
		assert.NoError(t, plogtest.CompareLogs(want, got))
		again := plog.NewLogs()
		got.CopyTo(again)
		assert.NoError(t, plogtest.CompareLogs(got, processLogs(t, createDefaultConfig().(*Config), again)))
	})
}

// Pipelines of traces and of logs know the same sessions: what a span began, a log record goes on with, and a call that
// comes as both is judged as one.
func TestBothSignalsShareTheirSessions(t *testing.T) {
	config := createDefaultConfig().(*Config)
	set := processortest.NewNopSettings(metadata.Type)
	var seen consumertest.LogsSink
	traces, err := NewFactory().CreateTraces(context.Background(), set, config, consumertest.NewNop())
	require.NoError(t, err)
	records, err := NewFactory().CreateLogs(context.Background(), set, config, &seen)
	require.NoError(t, err)
	require.NoError(t, traces.Start(context.Background(), componenttest.NewNopHost()))
	require.NoError(t, records.Start(context.Background(), componenttest.NewNopHost()))

	require.NoError(t, traces.ConsumeTraces(context.Background(), turn(1)))
	require.NoError(t, records.ConsumeLogs(context.Background(), asRecord(turn(2))))
	require.NoError(t, records.ConsumeLogs(context.Background(), asRecord(turn(1))))
	require.NoError(t, traces.Shutdown(context.Background()))
	require.NoError(t, records.Shutdown(context.Background()))

	var got []string
	for _, one := range seen.AllLogs() {
		got = append(got, found(one.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().AsRaw()))
	}
	assert.Equal(t, []string{"hit <nil>", "cold previous_unknown"}, got)
}

// A collector that knows better than the process takes back what the process said was lost: a hit has no cause.
func TestVerdictThatIsReplacedLeavesNothingBehind(t *testing.T) {
	second := turn(2)
	attrs := second.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes()
	require.NoError(t, attrs.FromRaw(map[string]any{
		"context_ledger.entry_id": "e2", "context_ledger.session_id": "s1", "context_ledger.history_length": 3,
		"context_ledger.prefix_locator": []any{"0:100:aa", "1:200:bb", "2:300:cc", "3:400:dd"},
		"context_ledger.digest_scheme":  "xxh3", "context_ledger.cache_report": "reported",
		"context_ledger.input_tokens": 20_480, "context_ledger.cached_tokens": 10_240, "context_ledger.counted_by": "none",
		"context_ledger.cache_outcome": "cold", "context_ledger.miss_cause": "cold_start", "context_ledger.judged_by": "process",
		"context_ledger.miss_confidence": "observed", "context_ledger.miss_evidence": []any{"first_request"},
		"context_ledger.avoidable_tokens": 10_240,
	}))
	first := turn(1)
	require.NoError(t, first.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().FromRaw(map[string]any{
		"context_ledger.entry_id": "e1", "context_ledger.session_id": "s1", "context_ledger.history_length": 1,
		"context_ledger.prefix_locator": []any{"0:100:aa", "1:200:bb"}, "context_ledger.digest_scheme": "xxh3",
		"context_ledger.cache_report": "reported", "context_ledger.input_tokens": 10_240, "context_ledger.cached_tokens": 0,
	}))
	first.ResourceSpans().MoveAndAppendTo(second.ResourceSpans())
	got := processSpans(t, createDefaultConfig().(*Config), second)
	told := got.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().AsRaw()
	assert.Subset(t, told, map[string]any{
		"context_ledger.cache_outcome": "hit", "context_ledger.judged_by": "collector",
		"context_ledger.process_outcome": "cold", "context_ledger.process_cause": "cold_start", "context_ledger.comparable_id": "e1",
	})
	for _, gone := range []string{"miss_cause", "miss_confidence", "miss_evidence"} {
		assert.NotContains(t, told, "context_ledger."+gone)
	}
}

// Spans come when they end; calls are judged in the order in which they began.
func TestCallsAreJudgedAsTheyBegan(t *testing.T) {
	late := turn(2)
	turn(1).ResourceSpans().MoveAndAppendTo(late.ResourceSpans())
	got := processSpans(t, createDefaultConfig().(*Config), late)
	assert.Equal(t, "hit <nil>", found(got.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().AsRaw()))
	assert.Equal(t, "cold previous_unknown",
		found(got.ResourceSpans().At(1).ScopeSpans().At(0).Spans().At(0).Attributes().AsRaw()))
}

// Whatever attributes hold, no span is dropped, nothing that somebody else wrote is changed, and nothing breaks.
func FuzzSpans(f *testing.F) {
	f.Add("chat", "openai", int64(-1), 1.5, []byte{0xff}, uint8(0))
	f.Add("\xff\x00", "[{\"role\":", int64(1)<<62, -1.0, []byte("{"), uint8(3))
	names := []string{
		"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.usage.input_tokens", "gen_ai.usage.cache_read.input_tokens",
		"gen_ai.input.messages", "gen_ai.conversation.id", "server.address", "openinference.span.kind",
		"llm.token_count.prompt",
		"context_ledger.entry_id", "context_ledger.prefix_locator", "context_ledger.input_tokens", "context_ledger.dialect",
		"gen_ai.usage.input_token_details", "gen_ai.prompt.0.content",
	}
	var sink consumertest.TracesSink
	set := processortest.NewNopSettings(metadata.Type)
	made, err := NewFactory().CreateTraces(context.Background(), set, createDefaultConfig(), &sink)
	require.NoError(f, err)
	require.NoError(f, made.Start(context.Background(), componenttest.NewNopHost()))
	f.Cleanup(func() { require.NoError(f, made.Shutdown(context.Background())) })
	f.Fuzz(func(t *testing.T, first, second string, number int64, double float64, raw []byte, at uint8) {
		traces := ptrace.NewTraces()
		list := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
		for i := range 3 {
			span := list.AppendEmpty()
			span.SetName(first)
			span.SetTraceID(pcommon.TraceID{1})
			span.SetSpanID(pcommon.SpanID{byte(i)})
			span.SetStartTimestamp(pcommon.Timestamp(number))
			for j, name := range names {
				hostile(first, second, number, double, raw, j+i+int(at)).CopyTo(span.Attributes().PutEmpty(name))
			}
		}
		before := ptrace.NewTraces()
		traces.CopyTo(before)
		sink.Reset()
		require.NoError(t, made.ConsumeTraces(context.Background(), traces))
		after := sink.AllTraces()[0]
		require.Equal(t, 3, after.SpanCount())
		for i := range 3 {
			was := before.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(i)
			is := after.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(i)
			for name, value := range was.Attributes().All() {
				found, ok := is.Attributes().Get(name)
				require.True(t, ok, name)
				if name[:3] == "gen" {
					require.True(t, value.Equal(found) || double != double, name)
				}
			}
		}
	})
}

func hostile(first, second string, number int64, double float64, raw []byte, kind int) pcommon.Value {
	switch kind % 7 {
	case 0:
		return pcommon.NewValueStr(first)
	case 1:
		return pcommon.NewValueStr(second)
	case 2:
		return pcommon.NewValueInt(number)
	case 3:
		return pcommon.NewValueDouble(double)
	case 4:
		made := pcommon.NewValueBytes()
		made.Bytes().FromRaw(raw)
		return made
	case 5:
		made := pcommon.NewValueSlice()
		made.Slice().AppendEmpty().SetStr(first)
		return made
	}
	return pcommon.NewValueBool(true)
}

// asRecord is a span's call as a log record.
func asRecord(traces ptrace.Traces) plog.Logs {
	span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	made := logs("gen_ai.client.inference.operation.details", nil)
	record := made.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	record.SetTimestamp(span.EndTimestamp())
	record.SetTraceID(span.TraceID())
	record.SetSpanID(span.SpanID())
	span.Attributes().CopyTo(record.Attributes())
	return made
}
