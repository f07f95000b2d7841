package contextledgerconnector

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

var noon = time.Unix(1_800_000_000, 0)

// A word that the registry does not have, and free text beyond its bound, are told as one value; what was told once is
// told for good.
func TestValuesAreBounded(t *testing.T) {
	long := strings.Repeat("m", 1000)
	bounds := newBounds(2)
	steps := []struct{ key, value, want string }{
		{semconv.ContextLedgerCacheOutcome, "hit", "hit"},
		{semconv.ContextLedgerCacheOutcome, "entry-4711", "_OTHER"},
		{semconv.ContextLedgerMissCause, "volatile_prefix", "volatile_prefix"},
		{semconv.GenAIRequestModel, long, long[:256]},
		{semconv.GenAIRequestModel, "a\xff", "a\uFFFD"},
		{semconv.GenAIRequestModel, "third", "_OTHER"},
		{semconv.GenAIRequestModel, long, long[:256]},
		{semconv.GenAIAgentName, "third", "third"},
	}
	for _, step := range steps {
		got, whole := bounds.fit(step.key, step.value)
		assert.Equal(t, step.want, got, step.key)
		assert.Equal(t, got != "_OTHER", whole, step.key)
	}
}

// Beyond the bound of a metric all goes into one series that is marked; the sum over all series stays whole.
func TestSeriesAreBounded(t *testing.T) {
	bounds := map[string]int{}
	tally := newTally(limited(LimitsConfig{Values: 100, Series: 3, Resources: 10}), noon,
		func(bound string) { bounds[bound]++ })
	for i := range 10 {
		tally.add(calling(fmt.Sprintf("model-%d", i)), noon)
	}
	assert.Equal(t, map[string]int64{"model-0": 1, "model-1": 1, "model-2": 1, "overflow": 7}, calls(tally, noon))
	assert.Equal(t, map[string]int{boundSeries: 7}, bounds)
}

// Beyond the bound of resources their series are told without a resource.
func TestResourcesAreBounded(t *testing.T) {
	bounds := map[string]int{}
	tally := newTally(limited(LimitsConfig{Values: 100, Series: 100, Resources: 2}), noon,
		func(bound string) { bounds[bound]++ })
	for i := range 5 {
		e := calling("m")
		e.from = []pair{{"service.name", fmt.Sprint(i)}}
		tally.add(e, noon)
	}
	got := map[string]int64{}
	for _, from := range written(tally, noon).ResourceMetrics().All() {
		got[text(from.Resource().Attributes(),
			"service.name")] += from.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).IntValue()
	}
	assert.Equal(t, map[string]int64{"0": 1, "1": 1, "": 3}, got)
	assert.Equal(t, map[string]int{boundResources: 3}, bounds)
}

// A series without a call for long is forgotten, and the room that it and its values took is free again; when it comes
// back it begins anew, from after it was last told.
func TestIdleSeriesAreForgotten(t *testing.T) {
	tally := newTally(limited(LimitsConfig{Values: 2, Series: 2, Resources: 1, Idle: time.Hour}), noon, func(string) {})
	for _, name := range []string{"a", "b", "c"} {
		tally.add(calling(name), noon)
	}
	later := noon.Add(50 * time.Minute)
	tally.add(calling("a"), later)
	tally.settle(later, false)
	latest := noon.Add(90 * time.Minute)
	tally.expire(latest)
	assert.Equal(t, map[string]int64{"a": 2}, calls(tally, latest))
	tally.add(calling("c"), latest)
	assert.Equal(t, map[string]int64{"a": 2, "c": 1}, calls(tally, latest))
	assert.EqualValues(t, 2, tally.size())
	for _, line := range tally.resources[""].series[semconv.MetricCalls] {
		if line.whole == 1 {
			assert.Equal(t, later, line.start)
		}
	}
	tally.settle(latest, false)
	tally.expire(noon.Add(48 * time.Hour))
	assert.Zero(t, tally.size())
	assert.Empty(t, tally.resources)
}

// What was not told yet is not forgotten, however long ago its call was.
func TestIdleSeriesAreToldBeforeTheyAreForgotten(t *testing.T) {
	tally := newTally(limited(LimitsConfig{Values: 2, Series: 2, Resources: 1, Idle: time.Second}), noon, func(string) {})
	tally.add(calling("a"), noon)
	var told []map[string]int64
	for minutes := range 4 {
		now := noon.Add(time.Duration(minutes+1) * time.Minute)
		tally.expire(now)
		told = append(told, values(writer{pmetric.AggregationTemporalityCumulative, "", "", 2 * time.Minute}.write(tally, now)))
		tally.settle(now, false)
	}
	assert.Equal(t, []map[string]int64{{"a": 0}, {"a": 0}, {"a": 1}, {}}, told)
}

// A point leads to its latest call since the last flush, a histogram to one in each bucket, and none without a trace.
func TestExemplars(t *testing.T) {
	tally := newTally(createDefaultConfig().(*Config), noon, func(string) {})
	for i, seconds := range []float64{0.5, 0.6, 5} {
		e := calling("m")
		e.call.Request.TimeToFirstToken = &seconds
		e.found = measurements(nil, &e.call)
		e.place = place{pcommon.TraceID{1}, pcommon.SpanID{byte(i + 1)}, 0, pcommon.Timestamp(i)}
		tally.add(e, noon)
	}
	tally.add(calling("m"), noon)
	got := map[string][]string{}
	metrics := written(tally, noon).ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	for _, metric := range metrics.All() {
		list := pmetric.NewExemplarSlice()
		if metric.Type() == pmetric.MetricTypeHistogram {
			metric.Histogram().DataPoints().At(0).Exemplars().CopyTo(list)
		} else {
			metric.Sum().DataPoints().At(0).Exemplars().CopyTo(list)
		}
		for _, found := range list.All() {
			got[metric.Name()] = append(got[metric.Name()], fmt.Sprint(found.SpanID()[0], " ", found.DoubleValue()))
		}
	}
	assert.Equal(t, map[string][]string{
		"context_ledger.calls":               {"3 0"},
		"context_ledger.time_to_first_token": {"2 0.6", "3 5"},
	}, got)
	tally.settle(noon, false)
	first := written(tally, noon).ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
	assert.Zero(t, first.Sum().DataPoints().At(0).Exemplars().Len(), "told once")
}

func limited(limits LimitsConfig) *Config {
	config := createDefaultConfig().(*Config)
	config.Limits = limits
	return config
}

// calling is an entry of a call of which the model alone is known.
func calling(model string) *entry {
	e := &entry{call: call.Call{Model: call.Model{Requested: model}}, read: true}
	e.found = measurements(nil, &e.call)
	return e
}

func written(tally *tally, now time.Time) pmetric.Metrics {
	return writer{temporality: pmetric.AggregationTemporalityCumulative}.write(tally, now)
}

// calls gives the calls by model; those of the overflow series as such.
func calls(tally *tally, now time.Time) map[string]int64 { return values(written(tally, now)) }

// values does so for metrics that were written.
func values(metrics pmetric.Metrics) map[string]int64 {
	found := map[string]int64{}
	if metrics.ResourceMetrics().Len() == 0 {
		return found
	}
	for _, point := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
		name := "overflow"
		if model, ok := point.Attributes().Get(semconv.GenAIRequestModel); ok {
			name = model.Str()
		}
		found[name] += point.IntValue()
	}
	return found
}

// Entries whose words only together read alike are told apart, and what a bound gathered is told so each time.
func TestShapesAreToldApart(t *testing.T) {
	bounds := map[string]int{}
	tally := newTally(limited(LimitsConfig{Values: 3, Series: 100, Resources: 1}), noon,
		func(bound string) { bounds[bound]++ })
	for range 2 {
		for _, model := range []string{"a", "ab", "a\x00", "d"} {
			tally.add(calling(model), noon)
		}
	}
	assert.Equal(t, map[string]int64{"a": 2, "ab": 2, "a\x00": 2, "_OTHER": 2}, calls(tally, noon))
	assert.Equal(t, map[string]int{boundValues: 2}, bounds)
	assert.Len(t, tally.shapes, 3)
}

// However many shapes come, no more are known at a time than a metric can have series.
func TestShapesAreBounded(t *testing.T) {
	tally := newTally(limited(LimitsConfig{Values: 100, Series: 10, Resources: 1}), noon, func(string) {})
	for i := range 100 {
		e := calling("m")
		for range i % 20 {
			e.found = append(e.found, one(measureIdentityChanges, "effort"))
		}
		tally.add(e, noon)
		assert.LessOrEqual(t, len(tally.shapes), 10)
	}
	assert.Equal(t, map[string]int64{"m": 100}, calls(tally, noon))
}
