package contextledgerprocessor

import (
	"context"
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
	fleet "github.com/otel-context-ledger/otel-context-ledger/collector/internal/load"
)

// What the processor takes for a span of another instrumentation, of our own whose verdict stands and whose does not, and of something else.
func BenchmarkSpans(b *testing.B) {
	kinds := map[string]fleet.Kind{
		"gen_ai": fleet.GenAI, "ours": fleet.Entry, "ours_begun_anew": begunAnew, "other": fleet.Other,
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
			addSpan(traces, session, 1, fleet.Entry)
			require.NoError(b, made.ConsumeTraces(context.Background(), traces))
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB/100000-sessions")
		runtime.KeepAlive(made)
	}
}

// begunAnew is an entry of a process that knew of no earlier call, which the collector therefore judges.
func begunAnew(session, turn int) map[string]any {
	made := fleet.Entry(session, turn)
	made["context_ledger.cache_outcome"], made["context_ledger.miss_cause"] = "cold", "cold_start"
	return made
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

func addSpan(traces ptrace.Traces, session, turn int, kind fleet.Kind) {
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
