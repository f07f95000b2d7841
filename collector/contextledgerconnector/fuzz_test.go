package contextledgerconnector

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Whatever the attributes of a span hold, it is read without a panic and no sum of the metrics goes down.
func FuzzAttributes(f *testing.F) {
	f.Add("m", int64(-1), 1.5, []byte{0xff}, uint8(0))
	f.Add("\xff\x00", int64(1)<<62, -1.0, []byte("{"), uint8(3))
	f.Fuzz(func(t *testing.T, text string, number int64, double float64, raw []byte, turn uint8) {
		values := []pcommon.Value{
			pcommon.NewValueStr(text), pcommon.NewValueInt(number), pcommon.NewValueDouble(double),
			pcommon.NewValueBool(true), pcommon.NewValueEmpty(), pcommon.NewValueBytes(), pcommon.NewValueSlice(),
		}
		values[5].Bytes().FromRaw(raw)
		values[6].Slice().AppendEmpty().SetStr(text)
		traces := ptrace.NewTraces()
		span := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		for i, metric := range semconv.Metrics[semconv.MetricCompactions].Attributes {
			values[(i+int(turn))%len(values)].CopyTo(span.Attributes().PutEmpty(metric))
		}
		for i, key := range []string{
			semconv.ContextLedgerInputTokens, semconv.ContextLedgerCachedTokens, semconv.ContextLedgerCostAmount,
			semconv.ContextLedgerTimeToFirstToken, semconv.ContextLedgerIdentityChanged, semconv.ContextLedgerEntryID,
		} {
			values[(i+int(turn))%len(values)].CopyTo(span.Attributes().PutEmpty(key))
		}
		span.Attributes().PutStr(semconv.ContextLedgerCountedBy, "none")
		told := newListener(t, createDefaultConfig().(*Config))
		require.NoError(t, told.traces.ConsumeTraces(context.Background(), traces))
		told.stop(t)
		for name := range semconv.Metrics {
			for _, point := range told.points(name) {
				assert.GreaterOrEqual(t, point.IntValue(), int64(0), name)
				assert.GreaterOrEqual(t, point.DoubleValue(), 0.0, name)
			}
		}
	})
}
