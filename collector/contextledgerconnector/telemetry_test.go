package contextledgerconnector

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.yaml.in/yaml/v3"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerconnector/internal/metadata"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/guard/guardtest"
)

// The connector tells what became of each entry, what its bounds gathered, and how many series it holds.
func TestOwnTelemetry(t *testing.T) {
	heard := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, heard.Shutdown(context.Background())) })
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = heard.NewTelemetrySettings()
	config := createDefaultConfig().(*Config)
	config.Limits.Values = 1
	made, err := NewFactory().CreateTracesToMetrics(context.Background(), set, config, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, made.Start(context.Background(), componenttest.NewNopHost()))
	none := map[string]any{"context_ledger.counted_by": "none"}
	require.NoError(t, made.ConsumeTraces(context.Background(), spans(
		merged(none, id("a", ""), map[string]any{"context_ledger.model_id": "m"}),
		merged(none, id("a", ""), map[string]any{"context_ledger.model_id": "m"}),
		merged(none, id("b", ""), map[string]any{"context_ledger.model_id": "n"}),
		merged(none, map[string]any{"context_ledger.aggregate": true}),
		counted("sdk", id("c", "")),
	)))
	assert.Equal(t, map[string]int64{"counted": 2, "duplicate": 1, "aggregate": 1, "counted_elsewhere": 1},
		sums(t, heard, "otelcol_connector_context_ledger_entries"))
	assert.Equal(t, map[string]int64{"values": 1, "series": 0, "resources": 0}, sums(t, heard, "otelcol_connector_context_ledger_overflow"))
	assert.Equal(t, map[string]int64{"": 2}, sums(t, heard, "otelcol_connector_context_ledger_series"))
	require.NoError(t, made.Shutdown(context.Background()))
}

// What metadata.yaml says of the connector's own metrics is what they are.
func TestMetadataIsTrue(t *testing.T) {
	text, err := os.ReadFile("metadata.yaml")
	require.NoError(t, err)
	var said struct {
		Type   string
		Status struct {
			Stability map[string][]string
		}
		Telemetry struct {
			Metrics map[string]struct{ Description, Unit string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &said))
	assert.Equal(t, metadata.Type.String(), said.Type)
	assert.Equal(t, map[string][]string{
		strings.ToLower(metadata.TracesToMetricsStability.String()): {"traces_to_metrics", "logs_to_metrics"},
	}, said.Status.Stability)
	heard := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, heard.Shutdown(context.Background())) })
	builder, err := metadata.NewTelemetryBuilder(heard.NewTelemetrySettings())
	require.NoError(t, err)
	require.NoError(t, builder.RegisterConnectorContextLedgerSeriesCallback(func() int64 { return 1 }))
	builder.ConnectorContextLedgerEntries.Add(context.Background(), 1)
	builder.ConnectorContextLedgerFlushFailures.Add(context.Background(), 1)
	builder.ConnectorContextLedgerErrors.Add(context.Background(), 1)
	builder.ConnectorContextLedgerOverflow.Add(context.Background(), 1)
	for name, about := range said.Telemetry.Metrics {
		found, err := heard.GetMetric("otelcol_" + name)
		require.NoError(t, err)
		assert.Equal(t, about.Description+" [Development]", found.Description)
		assert.Equal(t, about.Unit, found.Unit)
	}
	assert.Len(t, said.Telemetry.Metrics, 5)
}

// A step that breaks is counted, and what comes after it is not held up; a record that broke while it was read is none.
func TestBrokenStep(t *testing.T) {
	heard := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, heard.Shutdown(context.Background())) })
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = heard.NewTelemetrySettings()
	made, err := newCounter(set, createDefaultConfig().(*Config))
	require.NoError(t, err)
	made.guard(context.Background(), "count", func() {
		made.mu.Lock()
		defer made.mu.Unlock()
		panic("what the user said")
	})
	broken := calling("n")
	broken.read = false
	made.count(context.Background(), &batch{entries: []*entry{broken, calling("m")}, many: 2})
	assert.EqualValues(t, 1, made.series())
	assert.Equal(t, map[string]int64{"read": 0, "count": 1, "flush": 0}, sums(t, heard, "otelcol_connector_context_ledger_errors"))
	require.NoError(t, made.stop(context.Background()))
}

// Both sides may be given data by many at once while metrics are sent on.
func TestConcurrency(t *testing.T) {
	told := newListener(t, createDefaultConfig().(*Config))
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 50 {
				entry := merged(id(string(rune('a'+worker))+string(rune('0'+i)), ""),
					map[string]any{"context_ledger.counted_by": "none"})
				assert.NoError(t, told.traces.ConsumeTraces(context.Background(), spans(entry)))
				assert.NoError(t, told.logs.ConsumeLogs(context.Background(), logs("context_ledger.entry", entry)))
				if i%10 == 0 {
					assert.NoError(t, told.counter().flush(context.Background(), time.Now()))
				}
			}
		})
	}
	all.Wait()
	told.stop(t)
	latest := told.points("context_ledger.calls")
	assert.EqualValues(t, 400, latest[len(latest)-1].IntValue())
}

// DB05: the connector's own counters are told as 0 from the start, each step that can break among them.
func TestOwnTelemetryBeginsAtZero(t *testing.T) {
	heard := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, heard.Shutdown(context.Background())) })
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = heard.NewTelemetrySettings()
	made, err := newCounter(set, createDefaultConfig().(*Config))
	require.NoError(t, err)
	got := map[string]map[string]int64{}
	for _, name := range []string{"entries", "overflow", "errors", "flush_failures"} {
		got[name] = sums(t, heard, "otelcol_connector_context_ledger_"+name)
	}
	assert.Equal(t, map[string]map[string]int64{
		"entries":        {"counted": 0, "duplicate": 0, "counted_elsewhere": 0, "aggregate": 0},
		"overflow":       {"values": 0, "series": 0, "resources": 0},
		"errors":         guardtest.Stages(t),
		"flush_failures": {"": 0},
	}, got)
	require.NoError(t, made.stop(context.Background()))
}

// sums gives the points of a metric by the value of their one attribute.
func sums(t *testing.T, heard *componenttest.Telemetry, name string) map[string]int64 {
	t.Helper()
	metric, err := heard.GetMetric(name)
	require.NoError(t, err)
	found := map[string]int64{}
	for _, point := range metric.Data.(metricdata.Sum[int64]).DataPoints {
		word := ""
		for _, told := range point.Attributes.ToSlice() {
			word = told.Value.AsString()
		}
		found[word] += point.Value
	}
	return found
}
