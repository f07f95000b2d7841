package normalise_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/normalise"
)

// measured reports the CPU time of an operation beside the time on the wall, which others on the machine lengthen.
func measured(b *testing.B, operation func(i int)) {
	b.ReportAllocs()
	before := used(b)
	for i := range b.N {
		operation(i)
	}
	b.ReportMetric(float64((used(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

func used(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// seen is the span of a call as OpenTelemetry's own instrumentation writes it.
func seen(t testing.TB) golden {
	for _, row := range everyCase(t) {
		if row.Scope == "opentelemetry.instrumentation.genai.openai" {
			return row
		}
	}
	t.Fatal("no such case")
	return golden{}
}

// BenchmarkSpan compares what a collector does to a span anyway, reading it from and writing it to OTLP, with reading
// the call from it and writing it down.
func BenchmarkSpan(b *testing.B) {
	n := normaliser(b, normalise.Options{})
	row := seen(b)
	traces := ptrace.NewTraces()
	scope := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	scope.Scope().SetName(row.Scope)
	for range 100 {
		span := scope.Spans().AppendEmpty()
		span.SetName(row.Record)
		require.NoError(b, span.Attributes().FromRaw(row.Attrs))
	}
	text, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(traces)
	require.NoError(b, err)
	whole := func(work func(ptrace.Span)) func(int) {
		return func(int) {
			found, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(text)
			require.NoError(b, err)
			for _, span := range found.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
				work(span)
			}
			_, err = (&ptrace.ProtoMarshaler{}).MarshalTraces(found)
			require.NoError(b, err)
		}
	}
	b.Run("otlp", func(b *testing.B) { measured(b, whole(func(ptrace.Span) {})) })
	b.Run("read", func(b *testing.B) {
		measured(b, whole(func(span ptrace.Span) { n.Span(scope.Scope(), span) }))
	})
	b.Run("read and write", func(b *testing.B) {
		measured(b, whole(func(span ptrace.Span) {
			found, _ := n.Span(scope.Scope(), span)
			found.WriteAll(span.Attributes())
		}))
	})
}

// BenchmarkOther reads a span that is none of ours.
func BenchmarkOther(b *testing.B) {
	n := normaliser(b, normalise.Options{})
	attrs := pcommon.NewMap()
	for _, key := range []string{
		"http.request.method", "server.address", "server.port", "url.full", "http.response.status_code", "network.protocol.version",
	} {
		attrs.PutStr(key, "x")
	}
	subject := normalise.Subject{Signal: normalise.Traces, Scope: "http", Names: []string{"GET"}, Attrs: attrs}
	measured(b, func(int) { n.Read(subject) })
}
