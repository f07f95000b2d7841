package contextledgerprocessor

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"go.yaml.in/yaml/v3"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerprocessor/internal/metadata"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/guard/guardtest"
)

// The processor tells how many calls it found in which dialect, what was odd about them, what it found out, and how its
// state fares; never a word that somebody sent.
func TestOwnTelemetry(t *testing.T) {
	heard := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, heard.Shutdown(context.Background())) })
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = heard.NewTelemetrySettings()
	made, err := NewFactory().CreateTraces(context.Background(), set, createDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, made.Start(context.Background(), componenttest.NewNopHost()))
	ours := map[string]any{
		"context_ledger.entry_id": "e1", "context_ledger.session_id": "s9", "context_ledger.counted_by": "sdk",
		"context_ledger.cache_outcome": "miss", "context_ledger.miss_cause": "a word of somebody's own",
		"context_ledger.input_tokens": 10, "context_ledger.cached_tokens": 20,
	}
	forged := map[string]any{"context_ledger.dialect": "a dialect of somebody's own",
		"context_ledger.cache_outcome": "hit"}
	require.NoError(t, made.ConsumeTraces(context.Background(), spans(ours, forged, map[string]any{"http.method": "GET"})))
	for number := range 3 {
		require.NoError(t, made.ConsumeTraces(context.Background(), turn(number+1)))
	}
	assert.Equal(t, map[string]int64{"context_ledger": 1, "gen_ai": 3, "none": 1}, sums(t, heard,
		"otelcol_processor_context_ledger_calls"))
	assert.Equal(t, map[string]int64{"": 1}, sums(t, heard, "otelcol_processor_context_ledger_invariant_violations"))
	assert.Equal(t, map[string]int64{"": 3}, sums(t, heard, "otelcol_processor_context_ledger_sessions"))
	assert.Equal(t, map[string]int64{"none none": 2, "collector previous_unknown": 1, "collector none": 2},
		sums(t, heard, "otelcol_processor_context_ledger_verdicts"))
	require.NoError(t, made.Shutdown(context.Background()))
}

// What metadata.yaml says of the processor's own metrics is what they are.
func TestMetadataIsTrue(t *testing.T) {
	text, err := os.ReadFile("metadata.yaml")
	require.NoError(t, err)
	var said struct {
		Type      string
		Status    struct{ Stability map[string][]string }
		Telemetry struct {
			Metrics map[string]struct{ Description, Unit string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &said))
	assert.Equal(t, metadata.Type.String(), said.Type)
	assert.Equal(t, map[string][]string{strings.ToLower(metadata.TracesStability.String()): {"traces", "logs"}},
		said.Status.Stability)
	heard := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, heard.Shutdown(context.Background())) })
	moved := moveAll(t, heard)
	for name, about := range said.Telemetry.Metrics {
		found, err := heard.GetMetric("otelcol_" + name)
		require.NoError(t, err)
		assert.Equal(t, about.Description+" [Development]", found.Description)
		assert.Equal(t, about.Unit, found.Unit)
	}
	assert.Len(t, said.Telemetry.Metrics, moved)
}

// moveAll makes every instrument tell something, and gives how many there are.
func moveAll(t *testing.T, heard *componenttest.Telemetry) int {
	t.Helper()
	made, err := metadata.NewTelemetryBuilder(heard.NewTelemetrySettings())
	require.NoError(t, err)
	counters := []metric.Int64Counter{
		made.ProcessorContextLedgerAmbiguous, made.ProcessorContextLedgerCalls, made.ProcessorContextLedgerVerdicts,
		made.ProcessorContextLedgerInvariantViolations, made.ProcessorContextLedgerSnapshotFailures,
		made.ProcessorContextLedgerSnapshotSaves, made.ProcessorContextLedgerSnapshotWritten,
		made.ProcessorContextLedgerErrors,
	}
	for _, counter := range counters {
		counter.Add(context.Background(), 1)
	}
	made.ProcessorContextLedgerSnapshotDuration.Record(context.Background(), 1)
	observed := []metric.Int64Observable{
		made.ProcessorContextLedgerEvictions, made.ProcessorContextLedgerSessions, made.ProcessorContextLedgerStateSize,
	}
	require.NoError(t, made.RegisterStateCallback(func(o metric.Observer) {
		for _, instrument := range observed {
			o.ObserveInt64(instrument, 1)
		}
	}))
	return len(counters) + 1 + len(observed)
}

// sums gives the points of a metric by the values of their attributes.
func sums(t *testing.T, heard *componenttest.Telemetry, name string) map[string]int64 {
	t.Helper()
	metric, err := heard.GetMetric(name)
	require.NoError(t, err)
	found := map[string]int64{}
	for _, point := range metric.Data.(metricdata.Sum[int64]).DataPoints {
		var words []string
		for _, told := range point.Attributes.ToSlice() {
			words = append(words, told.Value.AsString())
		}
		found[strings.Join(words, " ")] += point.Value
	}
	return found
}

// DB05: what goes wrong seldom is told as 0 from the start, each step that can break among it.
func TestOwnTelemetryBeginsAtZero(t *testing.T) {
	heard := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, heard.Shutdown(context.Background())) })
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = heard.NewTelemetrySettings()
	made, err := newDesk(set, createDefaultConfig().(*Config))
	require.NoError(t, err)
	got := map[string]map[string]int64{}
	for _, name := range []string{"errors", "snapshot_failures", "invariant_violations"} {
		got[name] = sums(t, heard, "otelcol_processor_context_ledger_"+name)
	}
	assert.Equal(t, map[string]map[string]int64{
		"errors": guardtest.Stages(t), "snapshot_failures": {"load": 0, "save": 0}, "invariant_violations": {"": 0},
	}, got)
	require.NoError(t, made.close(context.Background()))
}

// A step that breaks is counted, and told once, without the text of what broke.
func TestBrokenStep(t *testing.T) {
	heard := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, heard.Shutdown(context.Background())) })
	logged, lines := observer.New(zap.InfoLevel)
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = heard.NewTelemetrySettings()
	set.Logger = zap.New(logged)
	made, err := newDesk(set, createDefaultConfig().(*Config))
	require.NoError(t, err)
	for range 3 {
		made.guard(context.Background(), "judge", func() { panic("what the user said") })
	}
	broken := guardtest.Stages(t)
	broken["judge"] = 3
	assert.Equal(t, broken, sums(t, heard, "otelcol_processor_context_ledger_errors"))
	require.Equal(t, 1, lines.Len())
	assert.NotContains(t, lines.All()[0].Message+fmt.Sprint(lines.All()[0].ContextMap()), "what the user said")
	require.NoError(t, made.close(context.Background()))
}
