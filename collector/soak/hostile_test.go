package soak

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.yaml.in/yaml/v3"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerconnector"
	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerprocessor"
)

// hostile are values that no dialect means.
var hostile = []any{
	nil, true, "", "NaN", "-5", "1e309", "99999999999999999999", int64(-1), int64(math.MaxInt64), int64(math.MinInt64), math.NaN(),
	math.Inf(1), math.Inf(-1), -0.5, 1e300, []byte{0xff}, []any{}, []any{int64(1), nil, []any{"x"}},
	map[string]any{"cache_read": int64(-3)}, map[string]any{}, "{", `{"a":`, `[{"role":"user","content":[{"type":7}]}]`,
	`{"cache_read": 1.5e400}`, `"\ud800"`, strings.Repeat("[", 10_000), strings.Repeat(`{"a":`, 5_000), strings.Repeat("x", 70_000),
	"\xff\xfe", "\x00",
}

// Whatever stands in one attribute of a call as each dialect tells it, its span and its log record come out with all that
// others wrote on them, no step breaks, and no sum of the metrics goes down.
func TestNoValueBreaksTheWay(t *testing.T) {
	way := newWay(t)
	for _, attrs := range dialects(t) {
		for key := range attrs {
			for _, value := range hostile {
				changed := pcommon.NewMap()
				require.NoError(t, changed.FromRaw(attrs))
				put(t, changed, key, value)
				way.through(t, changed)
			}
		}
	}
	way.sound(t)
	require.NotEmpty(t, way.counts.AllMetrics())
}

// FuzzWay sends attributes that are given as one JSON object.
func FuzzWay(f *testing.F) {
	for _, attrs := range dialects(f) {
		text, err := json.Marshal(attrs)
		require.NoError(f, err)
		f.Add(string(text))
	}
	way := newWay(f)
	f.Cleanup(func() { way.sound(f) })
	f.Fuzz(func(t *testing.T, text string) {
		var raw map[string]any
		if json.Unmarshal([]byte(text), &raw) != nil {
			return
		}
		attrs := pcommon.NewMap()
		require.NoError(t, attrs.FromRaw(raw))
		way.through(t, attrs)
	})
}

// way is the processor and, behind it, the connector, for both signals.
type way struct {
	heard   *componenttest.Telemetry
	traces  processor.Traces
	logs    processor.Logs
	spans   consumertest.TracesSink
	records consumertest.LogsSink
	counts  consumertest.MetricsSink
	stop    func()
}

func newWay(t testing.TB) *way {
	t.Helper()
	ctx := context.Background()
	made := &way{heard: componenttest.NewTelemetry()}
	counting, annotating := contextledgerconnector.NewFactory(), contextledgerprocessor.NewFactory()
	ends := connectortest.NewNopSettings(counting.Type())
	ends.TelemetrySettings = made.heard.NewTelemetrySettings()
	counted := counting.CreateDefaultConfig()
	spans, err := counting.CreateTracesToMetrics(ctx, ends, counted, &made.counts)
	require.NoError(t, err)
	records, err := counting.CreateLogsToMetrics(ctx, ends, counted, &made.counts)
	require.NoError(t, err)
	set := processortest.NewNopSettings(annotating.Type())
	set.TelemetrySettings = made.heard.NewTelemetrySettings()
	config := annotating.CreateDefaultConfig()
	bothSpans, err := consumer.NewTraces(func(ctx context.Context, told ptrace.Traces) error {
		return errors.Join(spans.ConsumeTraces(ctx, told), made.spans.ConsumeTraces(ctx, told))
	})
	require.NoError(t, err)
	bothRecords, err := consumer.NewLogs(func(ctx context.Context, told plog.Logs) error {
		return errors.Join(records.ConsumeLogs(ctx, told), made.records.ConsumeLogs(ctx, told))
	})
	require.NoError(t, err)
	made.traces, err = annotating.CreateTraces(ctx, set, config, bothSpans)
	require.NoError(t, err)
	made.logs, err = annotating.CreateLogs(ctx, set, config, bothRecords)
	require.NoError(t, err)
	parts := []component.Component{spans, records, made.traces, made.logs}
	for _, one := range parts {
		require.NoError(t, one.Start(ctx, componenttest.NewNopHost()))
	}
	made.stop = func() {
		for _, one := range parts {
			require.NoError(t, one.Shutdown(ctx))
		}
	}
	return made
}

// through sends attributes as a span and as a log record, and holds what comes out against them.
func (w *way) through(t testing.TB, attrs pcommon.Map) {
	t.Helper()
	spans, records := ptrace.NewTraces(), plog.NewLogs()
	span := spans.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	attrs.CopyTo(span.Attributes())
	record := records.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("gen_ai.client.inference.operation.details")
	attrs.CopyTo(record.Attributes())
	w.spans.Reset()
	w.records.Reset()
	require.NoError(t, w.traces.ConsumeTraces(context.Background(), spans))
	require.NoError(t, w.logs.ConsumeLogs(context.Background(), records))
	require.Equal(t, 1, w.spans.SpanCount())
	require.Equal(t, 1, w.records.LogRecordCount())
	kept(t, attrs, w.spans.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes())
	kept(t, attrs, w.records.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes())
}

// kept sees that what others wrote is as it was.
func kept(t testing.TB, before, after pcommon.Map) {
	t.Helper()
	for key, value := range before.All() {
		if strings.HasPrefix(key, "context_ledger.") {
			continue
		}
		found, ok := after.Get(key)
		require.True(t, ok, key)
		nan := value.Type() == pcommon.ValueTypeDouble && math.IsNaN(value.Double())
		require.True(t, nan || value.Equal(found), key)
	}
}

// sound ends the way, and sees that no step of it broke and that every sum is one.
func (w *way) sound(t testing.TB) {
	t.Helper()
	w.stop()
	for _, name := range []string{"otelcol_processor_context_ledger_errors", "otelcol_connector_context_ledger_errors"} {
		told, err := w.heard.GetMetric(name)
		if err != nil {
			continue
		}
		for _, point := range told.Data.(metricdata.Sum[int64]).DataPoints {
			require.Zero(t, point.Value, "%s: a step broke: %s", name, point.Attributes.Encoded(attribute.DefaultEncoder()))
		}
	}
	require.NoError(t, w.heard.Shutdown(context.Background()))
	for _, told := range w.counts.AllMetrics() {
		for _, from := range told.ResourceMetrics().All() {
			for _, scope := range from.ScopeMetrics().All() {
				for _, metric := range scope.Metrics().All() {
					positive(t, metric)
				}
			}
		}
	}
}

func positive(t testing.TB, metric pmetric.Metric) {
	t.Helper()
	if metric.Type() != pmetric.MetricTypeSum {
		return
	}
	for _, point := range metric.Sum().DataPoints().All() {
		require.GreaterOrEqual(t, point.IntValue(), int64(0), metric.Name())
		require.GreaterOrEqual(t, point.DoubleValue(), 0.0, metric.Name())
	}
}

func put(t testing.TB, attrs pcommon.Map, key string, value any) {
	t.Helper()
	one := pcommon.NewValueEmpty()
	require.NoError(t, one.FromRaw(value))
	one.CopyTo(attrs.PutEmpty(key))
}

// dialects are the attributes of every call in the golden files of the dialects.
func dialects(t testing.TB) []map[string]any {
	t.Helper()
	files, err := filepath.Glob("../internal/normalise/testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var found []map[string]any
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var cases []struct{ Attrs map[string]any }
		require.NoError(t, yaml.Unmarshal(text, &cases))
		for _, one := range cases {
			found = append(found, one.Attrs)
		}
	}
	return found
}
