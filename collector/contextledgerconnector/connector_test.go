package contextledgerconnector

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerconnector/internal/metadata"
)

// Each folder of testdata with spans or logs has the metrics that become of them.
func TestGolden(t *testing.T) {
	for _, name := range []string{"calls", "events"} {
		t.Run(name, func(t *testing.T) {
			told := newListener(t, createDefaultConfig().(*Config))
			folder := filepath.Join("testdata", name)
			if spans, err := golden.ReadTraces(filepath.Join(folder, "spans.yaml")); err == nil {
				require.NoError(t, told.traces.ConsumeTraces(context.Background(), spans))
			}
			if records, err := golden.ReadLogs(filepath.Join(folder, "logs.yaml")); err == nil {
				require.NoError(t, told.logs.ConsumeLogs(context.Background(), records))
			}
			told.stop(t)
			want, err := golden.ReadMetrics(filepath.Join(folder, "metrics.yaml"))
			require.NoError(t, err)
			require.Len(t, told.sink.AllMetrics(), 1)
			assert.NoError(t, pmetrictest.CompareMetrics(want, told.sink.AllMetrics()[0],
				pmetrictest.IgnoreTimestamp(), pmetrictest.IgnoreStartTimestamp(), pmetrictest.IgnoreScopeVersion(),
				pmetrictest.IgnoreMetricDataPointsOrder()))
		})
	}
}

// An entry is counted once, whichever of its views comes how often, and only where nobody else counts it.
func TestWhoCounts(t *testing.T) {
	entry := func(more map[string]any) map[string]any {
		return merged(map[string]any{"context_ledger.counted_by": "none"}, more)
	}
	cases := []struct {
		why     string
		batches [][]map[string]any
		want    int64
	}{
		{"two calls are two", together(entry(id("a", "")), entry(id("b", ""))), 2},
		{"the same entry again is one", together(entry(id("a", "")), entry(id("a", ""))), 1},
		{"a gateway gives two calls the same answer", together(entry(id("a", "r")), entry(id("b", "r"))), 2},
		{"another instrumentation told of the answer before", together(entry(id("", "r")), entry(id("a", "r"))), 1},
		{"another instrumentation tells of it later", together(entry(id("a", "r")), entry(id("", "r"))), 1},
		{"records without the ledger go by the answer", together(entry(id("", "r")), entry(id("", "r"))), 1},
		{"nothing tells them apart but their spans", together(entry(nil), entry(nil)), 2},
		{"the SDK counts", together(counted("sdk", id("a", "r"))), 0},
		{"nobody is to count", together(counted("off", id("a", "r"))), 0},
		{"a collector before this one counted", together(counted("collector", id("a", "r"))), 0},
		{"the SDK counts what another instrumentation tells first", together(entry(id("", "r")), counted("sdk", id("a",
			"r"))), 0},
		{"the SDK counted what another instrumentation tells in a later batch",
			[][]map[string]any{{counted("sdk", id("a", "r"))}, {entry(id("", "r"))}}, 0},
		{"an aggregate repeats others", together(entry(merged(id("", "r"),
			map[string]any{"context_ledger.aggregate": true}))), 0},
		{"an aggregate does not hide the call that it repeats",
			together(entry(merged(id("", "r"), map[string]any{"context_ledger.aggregate": true})), entry(id("", "r"))), 1},
		{"a span that no ledger saw is no entry", together(map[string]any{"gen_ai.usage.input_tokens": 5}), 0},
	}
	for _, c := range cases {
		told := newListener(t, createDefaultConfig().(*Config))
		for _, batch := range c.batches {
			require.NoError(t, told.traces.ConsumeTraces(context.Background(), spans(batch...)))
		}
		told.stop(t)
		assert.Equal(t, c.want, told.total("context_ledger.calls"), c.why)
	}
}

// The same entry as a span and as a log record is counted once, whichever comes first.
func TestBothSignals(t *testing.T) {
	entry := merged(id("a", "r"), map[string]any{"context_ledger.counted_by": "none"})
	told := newListener(t, createDefaultConfig().(*Config))
	require.NoError(t, told.logs.ConsumeLogs(context.Background(), logs("context_ledger.entry", entry)))
	require.NoError(t, told.traces.ConsumeTraces(context.Background(), spans(entry)))
	require.NoError(t, told.logs.ConsumeLogs(context.Background(), logs("context_ledger.identity.changed", entry)))
	told.stop(t)
	assert.EqualValues(t, 1, told.total("context_ledger.calls"))
}

// A log record without any id is known again by when it was told and what it says, so that a second delivery is none.
func TestRecordsWithoutIDs(t *testing.T) {
	first := map[string]any{"context_ledger.counted_by": "none", "context_ledger.input_tokens": 10}
	second := map[string]any{"context_ledger.counted_by": "none", "context_ledger.input_tokens": 20}
	told := newListener(t, createDefaultConfig().(*Config))
	for range 2 {
		require.NoError(t, told.logs.ConsumeLogs(context.Background(), logs("claude_code.api_request", first, second)))
	}
	told.stop(t)
	assert.EqualValues(t, 2, told.total("context_ledger.calls"))
}

// A span and a log record of one call are counted once where no id tells that they are one, whichever comes first; two
// spans that say the same are two calls.
func TestSpansAndRecordsWithoutIDs(t *testing.T) {
	said := map[string]any{
		"context_ledger.counted_by": "none", "context_ledger.input_tokens": 10, "context_ledger.output_tokens": 1,
	}
	beside := logs("claude_code.api_request", said)
	beside.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).SetTraceID(pcommon.TraceID{1})
	for _, recordsFirst := range []bool{true, false} {
		told := newListener(t, createDefaultConfig().(*Config))
		if recordsFirst {
			require.NoError(t, told.logs.ConsumeLogs(context.Background(), beside))
		}
		require.NoError(t, told.traces.ConsumeTraces(context.Background(), spans(said)))
		require.NoError(t, told.logs.ConsumeLogs(context.Background(), beside))
		told.stop(t)
		assert.EqualValues(t, 1, told.total("context_ledger.calls"))
	}
	told := newListener(t, createDefaultConfig().(*Config))
	require.NoError(t, told.traces.ConsumeTraces(context.Background(), spans(said, said)))
	told.stop(t)
	assert.EqualValues(t, 2, told.total("context_ledger.calls"))
}

// A cumulative sum is told at every flush with the same start, a delta once with the interval it is of.
func TestTemporality(t *testing.T) {
	for _, temporality := range []string{cumulative, delta} {
		config := createDefaultConfig().(*Config)
		config.AggregationTemporality, config.ZeroFirst = temporality, 0
		told := newListener(t, config)
		counter := told.counter()
		began := counter.tally.since
		for i, name := range []string{"a", "b", "c"} {
			entry := merged(id(name, ""), map[string]any{"context_ledger.counted_by": "none"})
			require.NoError(t, told.traces.ConsumeTraces(context.Background(), spans(entry)))
			require.NoError(t, counter.flush(context.Background(), began.Add(time.Duration(i+1)*time.Minute)))
		}
		require.NoError(t, counter.flush(context.Background(), began.Add(4*time.Minute)))
		minute := func(start, end int, value int64) string { return fmt.Sprintf("%d-%d: %d", start, end, value) }
		want := map[string][]string{
			cumulative: {minute(0, 1, 1), minute(0, 2, 2), minute(0, 3, 3), minute(0, 4, 3)},
			delta:      {minute(0, 1, 1), minute(1, 2, 1), minute(2, 3, 1)},
		}
		var got []string
		for _, point := range told.points("context_ledger.calls") {
			start, end := point.StartTimestamp().AsTime().Sub(began), point.Timestamp().AsTime().Sub(began)
			got = append(got, minute(int(start.Minutes()), int(end.Minutes()), point.IntValue()))
		}
		assert.Equal(t, want[temporality], got, temporality)
		told.stop(t)
	}
}

// DB05: a new cumulative series is told as 0 from one flush on, and with its value at the first flush that is as late as
// `zero_first` says; its exemplar comes with the value. One that is there already is not held back, and a delta never.
func TestZeroFirst(t *testing.T) {
	minute := func(start, end int, value int64, exemplars int) string {
		return fmt.Sprintf("%d-%d: %d, %d", start, end, value, exemplars)
	}
	want := map[string][]string{
		cumulative: {minute(1, 1, 0, 0), minute(1, 2, 0, 0), minute(1, 3, 2, 1), minute(1, 4, 3, 1)},
		delta:      {minute(0, 1, 1, 1), minute(1, 2, 1, 1), minute(3, 4, 1, 1)},
	}
	for _, temporality := range []string{cumulative, delta} {
		config := createDefaultConfig().(*Config)
		config.AggregationTemporality, config.ZeroFirst = temporality, 2*time.Minute
		told := newListener(t, config)
		counter := told.counter()
		began := counter.tally.since
		for i, name := range []string{"a", "b", "", "c"} {
			if name != "" {
				entry := merged(id(name, ""), map[string]any{"context_ledger.counted_by": "none"})
				require.NoError(t, told.traces.ConsumeTraces(context.Background(), spans(entry)))
			}
			require.NoError(t, counter.flush(context.Background(), began.Add(time.Duration(i+1)*time.Minute)))
		}
		var got []string
		for _, point := range told.points("context_ledger.calls") {
			start, end := point.StartTimestamp().AsTime().Sub(began), point.Timestamp().AsTime().Sub(began)
			got = append(got, minute(int(start.Minutes()), int(end.Minutes()), point.IntValue(), point.Exemplars().Len()))
		}
		assert.Equal(t, want[temporality], got, temporality)
		told.stop(t)
	}
}

// What is told as 0 is told with its value at the end, histograms too, and so is what was not told at all yet.
func TestZeroFirstAtTheEnd(t *testing.T) {
	told := newListener(t, createDefaultConfig().(*Config))
	send := func(name, model string) {
		entry := merged(id(name, ""), map[string]any{
			"context_ledger.counted_by": "none", "context_ledger.model_id": model,
			"context_ledger.time_to_first_token": 0.5,
		})
		require.NoError(t, told.traces.ConsumeTraces(context.Background(), spans(entry)))
	}
	counts := func() []uint64 {
		var found []uint64
		all := told.sink.AllMetrics()
		for _, metric := range all[len(all)-1].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			if metric.Type() == pmetric.MetricTypeHistogram {
				for _, point := range metric.Histogram().DataPoints().All() {
					found = append(found, point.Count())
				}
			}
		}
		return found
	}
	send("a", "m")
	require.NoError(t, told.counter().flush(context.Background(), time.Now()))
	assert.Equal(t, []uint64{0}, counts())
	assert.Zero(t, told.total("context_ledger.calls"))
	send("b", "n")
	told.stop(t)
	assert.Equal(t, []uint64{1, 1}, counts())
	assert.EqualValues(t, 2, told.total("context_ledger.calls"))
}

// What the next component refuses is told again: a cumulative sum as it is then, deltas as they were, none twice.
// Deltas that are refused for good are dropped.
func TestRefusedFlushes(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.AggregationTemporality = delta
	told := newListener(t, config)
	counter := told.counter()
	entry := func(name string) map[string]any {
		return merged(id(name, ""), map[string]any{"context_ledger.counted_by": "none"})
	}
	told.sink.refuse = errors.New("busy")
	for _, name := range []string{"a", "b"} {
		require.NoError(t, told.traces.ConsumeTraces(context.Background(), spans(entry(name))))
		require.Error(t, counter.flush(context.Background(), time.Now()))
	}
	told.sink.refuse = nil
	require.NoError(t, told.traces.ConsumeTraces(context.Background(), spans(entry("c"))))
	require.NoError(t, counter.flush(context.Background(), time.Now()))
	assert.EqualValues(t, 3, told.total("context_ledger.calls"))
	assert.Len(t, told.points("context_ledger.calls"), 3)
	told.stop(t)
}

// While the next component refuses for long, the latest few deltas are kept and no more.
func TestRefusedFlushesAreBounded(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.AggregationTemporality = delta
	told := newListener(t, config)
	counter := told.counter()
	told.sink.refuse = errors.New("busy")
	for i := range 3 * maxUnsent {
		entry := merged(id(fmt.Sprint(i), ""), map[string]any{"context_ledger.counted_by": "none"})
		require.NoError(t, told.traces.ConsumeTraces(context.Background(), spans(entry)))
		require.Error(t, counter.flush(context.Background(), time.Now()))
	}
	told.sink.refuse = nil
	require.NoError(t, counter.flush(context.Background(), time.Now()))
	assert.EqualValues(t, maxUnsent, told.total("context_ledger.calls"))
	told.stop(t)
}

// listener is both sides of a connector with what they tell.
type listener struct {
	traces connector.Traces
	logs   connector.Logs
	sink   *sink
}

// sink keeps what it is given, or refuses it.
type sink struct {
	consumertest.MetricsSink
	refuse error
}

func (s *sink) ConsumeMetrics(ctx context.Context, told pmetric.Metrics) error {
	if s.refuse != nil {
		return s.refuse
	}
	return s.MetricsSink.ConsumeMetrics(ctx, told)
}

var _ consumer.Metrics = (*sink)(nil)

// newListener starts a connector that flushes when it is told to.
func newListener(t *testing.T, config *Config) *listener {
	t.Helper()
	config.FlushInterval = time.Hour
	set := connectortest.NewNopSettings(metadata.Type)
	set.Resource.Attributes().PutStr(instanceID, "replica-1")
	made := &listener{sink: &sink{}}
	var err error
	made.traces, err = NewFactory().CreateTracesToMetrics(context.Background(), set, config, made.sink)
	require.NoError(t, err)
	made.logs, err = NewFactory().CreateLogsToMetrics(context.Background(), set, config, made.sink)
	require.NoError(t, err)
	require.NoError(t, made.traces.Start(context.Background(), componenttest.NewNopHost()))
	require.NoError(t, made.logs.Start(context.Background(), componenttest.NewNopHost()))
	return made
}

func (l *listener) counter() *counter { return l.traces.(tracesSide).lease.Value }

func (l *listener) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, l.traces.Shutdown(context.Background()))
	require.NoError(t, l.logs.Shutdown(context.Background()))
}

// points gives the points of a metric in the order in which they were told.
func (l *listener) points(metric string) []pmetric.NumberDataPoint {
	var found []pmetric.NumberDataPoint
	for _, told := range l.sink.AllMetrics() {
		for _, from := range told.ResourceMetrics().All() {
			for _, of := range from.ScopeMetrics().At(0).Metrics().All() {
				if of.Name() == metric && of.Type() == pmetric.MetricTypeSum {
					for _, point := range of.Sum().DataPoints().All() {
						found = append(found, point)
					}
				}
			}
		}
	}
	return found
}

// total adds up the whole numbers of a metric.
func (l *listener) total(metric string) int64 {
	var sum int64
	for _, point := range l.points(metric) {
		sum += point.IntValue()
	}
	return sum
}

func spans(attributes ...map[string]any) ptrace.Traces {
	made := ptrace.NewTraces()
	list := made.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i, of := range attributes {
		span := list.AppendEmpty()
		span.SetTraceID(pcommon.TraceID{1})
		span.SetSpanID(pcommon.SpanID{byte(i + 1)})
		span.SetEndTimestamp(pcommon.Timestamp(1000 + i))
		if err := span.Attributes().FromRaw(of); err != nil {
			panic(err)
		}
	}
	return made
}

func logs(event string, attributes ...map[string]any) plog.Logs {
	made := plog.NewLogs()
	list := made.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, of := range attributes {
		record := list.AppendEmpty()
		record.SetEventName(event)
		record.SetTimestamp(1000)
		if err := record.Attributes().FromRaw(of); err != nil {
			panic(err)
		}
	}
	return made
}

func id(entry, response string) map[string]any {
	found := map[string]any{}
	if entry != "" {
		found["context_ledger.entry_id"] = entry
	}
	if response != "" {
		found["context_ledger.response_id"] = response
	}
	return found
}

func counted(by string, more map[string]any) map[string]any {
	return merged(map[string]any{"context_ledger.counted_by": by}, more)
}

func together(batch ...map[string]any) [][]map[string]any { return [][]map[string]any{batch} }

func merged(parts ...map[string]any) map[string]any {
	found := map[string]any{}
	for _, part := range parts {
		for key, value := range part {
			found[key] = value
		}
	}
	return found
}
