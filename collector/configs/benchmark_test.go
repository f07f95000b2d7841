package configs

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

const (
	batches  = 400
	together = 200
	senders  = 4
)

// The same spans through the same pipeline, with the processor and the connector and without: spans a second, and the
// processor time of the collector for a span. Of an agent's spans one in five is a model call; of the worst case each
// is.
func BenchmarkPipeline(b *testing.B) {
	for _, load := range []struct {
		name  string
		every int
	}{{"agent", 5}, {"calls", 1}} {
		bodies := make([][]byte, batches)
		for at := range bodies {
			body, err := ptraceotlp.NewExportRequestFromTraces(work(at, load.every)).MarshalProto()
			require.NoError(b, err)
			bodies[at] = body
		}
		for name, settings := range map[string][]string{
			"without": {"PROCESSORS=[memory_limiter, batch]", "EXPORTERS=[otlp_grpc]", "METRICS_FROM=[otlp]"},
			"with": {
				"PROCESSORS=[memory_limiter, context_ledger, batch]", "EXPORTERS=[otlp_grpc, context_ledger]",
				"METRICS_FROM=[otlp, context_ledger]",
			},
		} {
			b.Run(load.name+"/"+name, func(b *testing.B) {
				for b.Loop() {
					push(b, bodies, settings)
				}
			})
		}
	}
}

// push sends all bodies through a collector of its own.
func push(b *testing.B, bodies [][]byte, settings []string) {
	b.Helper()
	seen := &counting{}
	run := start(b, "testdata/bench.yaml", b.TempDir(), append([]string{"BACKEND_ENDPOINT=" + serve(b, seen)},
		settings...)...)
	began := time.Now()
	var next atomic.Int64
	var sending sync.WaitGroup
	for range senders {
		sending.Go(func() {
			for at := next.Add(1) - 1; at < int64(len(bodies)); at = next.Add(1) - 1 {
				post(b, "http://"+run.otlp+"/v1/traces", bodies[at])
			}
		})
	}
	sending.Wait()
	require.Eventually(b, func() bool { return seen.spans.Load() == batches*together }, time.Minute, time.Millisecond)
	took := time.Since(began)
	run.stop(b)
	used := run.command.ProcessState.SysUsage().(*syscall.Rusage)
	busy := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	b.ReportMetric(float64(batches*together)/took.Seconds(), "spans/s")
	b.ReportMetric(float64(busy.Microseconds())/(batches*together), "cpu-µs/span")
	b.ReportMetric(float64(used.Maxrss)/1024, "MiB")
}

// counting is a backend that counts what it gets.
type counting struct {
	ptraceotlp.UnimplementedGRPCServer
	spans atomic.Int64
}

func (c *counting) Export(_ context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	c.spans.Add(int64(request.Traces().SpanCount()))
	return ptraceotlp.NewExportResponse(), nil
}

// work is a batch of spans of 500 sessions, of which one in `every` is a model call.
func work(batch, every int) ptrace.Traces {
	made := ptrace.NewTraces()
	from := made.ResourceSpans().AppendEmpty()
	from.Resource().Attributes().PutStr("service.name", "agents")
	list := from.ScopeSpans().AppendEmpty().Spans()
	for at := range together {
		number := batch*together + at
		span := list.AppendEmpty()
		span.SetName("chat gpt-5")
		span.SetTraceID(pcommon.TraceID{1, byte(number), byte(number >> 8), byte(number >> 16)})
		span.SetSpanID(pcommon.SpanID{1, byte(number), byte(number >> 8), byte(number >> 16)})
		began := time.Unix(1_796_000_000+int64(number/500), 0)
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(began))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(began.Add(time.Second)))
		attributes := map[string]any{
			"http.request.method": "GET", "url.full": "https://example.com/a/b", "server.address": "example.com",
			"http.response.status_code": 200, "network.protocol.version": "1.1", "thread.name": "main", "thread.id": 1,
			"code.function.name": "get",
		}
		if number%every == 0 {
			attributes = map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5",
				"gen_ai.conversation.id": fmt.Sprint("s", number%500), "gen_ai.response.id": fmt.Sprint("r", number),
				"gen_ai.usage.input_tokens": 10_000 + number/500, "gen_ai.usage.cache_read.input_tokens": 9_000 + number/500,
				"gen_ai.usage.output_tokens": 100, "server.address": "api.openai.com",
			}
		}
		if err := span.Attributes().FromRaw(attributes); err != nil {
			panic(err)
		}
	}
	return made
}
