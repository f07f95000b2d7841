package contextledgerprocessor

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerprocessor/internal/metadata"
)

// What the processor takes for a span of another instrumentation, of our own, and of something else.
func BenchmarkSpans(b *testing.B) {
	kinds := map[string]func(session, turn int) map[string]any{
		"gen_ai": speaking,
		"ours":   ourEntry,
		"other":  func(int, int) map[string]any { return map[string]any{"http.request.method": "GET", "url.path": "/"} },
	}
	for name, kind := range kinds {
		b.Run(name, func(b *testing.B) {
			const together, sessions = 100, 1000
			made := benchmarked(b)
			turn := 0
			for b.Loop() {
				b.StopTimer()
				turn++
				traces := ptrace.NewTraces()
				for at := range together {
					addSpan(traces, (turn*together+at)%sessions, turn, kind)
				}
				b.StartTimer()
				require.NoError(b, made.ConsumeTraces(context.Background(), traces))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*together), "ns/span")
		})
	}
}

// What the state of many sessions takes in memory.
func BenchmarkSessions(b *testing.B) {
	for b.Loop() {
		made := benchmarked(b)
		before := heap()
		const sessions = 100_000
		for session := range sessions {
			traces := ptrace.NewTraces()
			addSpan(traces, session, 1, ourEntry)
			require.NoError(b, made.ConsumeTraces(context.Background(), traces))
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB/100000-sessions")
		runtime.KeepAlive(made)
	}
}

func heap() uint64 {
	var found runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&found)
	return found.HeapAlloc
}

func benchmarked(b *testing.B) processor.Traces {
	b.Helper()
	set := processortest.NewNopSettings(metadata.Type)
	made, err := NewFactory().CreateTraces(context.Background(), set, createDefaultConfig(), consumertest.NewNop())
	require.NoError(b, err)
	require.NoError(b, made.Start(context.Background(), componenttest.NewNopHost()))
	b.Cleanup(func() { require.NoError(b, made.Shutdown(context.Background())) })
	return made
}

func addSpan(traces ptrace.Traces, session, turn int, kind func(session, turn int) map[string]any) {
	span := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("chat gpt-5")
	span.SetTraceID(pcommon.TraceID{byte(session), byte(session >> 8), byte(session >> 16), byte(turn), byte(turn >> 8)})
	span.SetSpanID(pcommon.SpanID{1})
	began := time.Unix(1_800_000_000+int64(turn), 0)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(began))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(began.Add(time.Second)))
	if err := span.Attributes().FromRaw(kind(session, turn)); err != nil {
		panic(err)
	}
}

func speaking(session, turn int) map[string]any {
	return map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5",
		"gen_ai.conversation.id": fmt.Sprint("s", session), "gen_ai.response.id": fmt.Sprint("r", session, "-", turn),
		"gen_ai.usage.input_tokens": 10_000 + turn, "gen_ai.usage.cache_read.input_tokens": 9_000 + turn,
		"gen_ai.usage.output_tokens": 100, "server.address": "api.openai.com",
	}
}

// ourEntry is an entry with as much in it as those of the SDK have.
func ourEntry(session, turn int) map[string]any {
	locator := make([]any, 24)
	for i := range locator {
		locator[i] = fmt.Sprintf("%d:%d:%016x", i*turn, i*4000, session*1000+i)
	}
	return map[string]any{
		"context_ledger.entry_id": fmt.Sprint("e", session, "-", turn), "context_ledger.session_id": fmt.Sprint("s", session),
		"context_ledger.session_source": "lineage", "context_ledger.provider": "openai", "context_ledger.model_id": "gpt-5",
		"context_ledger.provider_surface": "openai", "context_ledger.endpoint": "api.openai.com",
		"context_ledger.api":              "chat",
		"context_ledger.policy_hash":      "xxh3:0123456789abcdef0123456789abcdef",
		"context_ledger.policy_wire_hash": "xxh3:0123456789abcdef0123456789abcdef",
		"context_ledger.tool_schema_hash": "xxh3:0123456789abcdef0123456789abcdef",
		"context_ledger.tool_wire_hash":   "xxh3:0123456789abcdef0123456789abcdef",
		"context_ledger.context_identity": "xxh3:0123456789abcdef0123456789abcdef",
		"context_ledger.cache_identity":   "xxh3:0123456789abcdef0123456789abcdef",
		"context_ledger.prefix_locator":   locator, "context_ledger.history_length": 2*turn + 1,
		"context_ledger.cache_report": "reported", "context_ledger.input_tokens": 10_000 + turn,
		"context_ledger.cached_tokens": 9_000 + turn,
		"context_ledger.output_tokens": 100, "context_ledger.cache_outcome": "partial",
		"context_ledger.miss_cause":   "cold_start",
		"context_ledger.request_kind": "agent", "context_ledger.counted_by": "sdk",
		"context_ledger.response_id": fmt.Sprint("r", session, "-", turn),
		"context_ledger.started_at":  1.8e9 + float64(turn), "context_ledger.digest_scheme": "xxh3",
		"context_ledger.call_end": "complete",
	}
}
