package contextledgerconnector

import (
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerconnector/internal/metadata"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// instanceID is the resource attribute that tells replicas apart: two that count for the same service would else write
// to the same series.
const instanceID = "service.instance.id"

// writer turns a tally into metrics.
type writer struct {
	temporality pmetric.AggregationTemporality
	instance    string
	version     string
	// For how long a series is told as 0 before it has its value.
	zeroFirst time.Duration
}

// write gives the metrics at a time, in one order for the same tally. Of deltas only what moved is told.
func (w writer) write(t *tally, now time.Time) pmetric.Metrics {
	made := pmetric.NewMetrics()
	for _, key := range slices.Sorted(maps.Keys(t.resources)) {
		w.resource(made, t.resources[key], now)
	}
	return made
}

func (w writer) resource(into pmetric.Metrics, held *resource, now time.Time) {
	metrics := pmetric.NewMetricSlice()
	for _, name := range slices.Sorted(maps.Keys(held.series)) {
		if lines := w.telling(held.series[name], now); len(lines) > 0 {
			w.metric(metrics.AppendEmpty(), semconv.Metrics[name], lines, now)
		}
	}
	if metrics.Len() == 0 {
		return
	}
	found := into.ResourceMetrics().AppendEmpty()
	putPairs(found.Resource().Attributes(), held.attrs)
	if w.instance != "" {
		found.Resource().Attributes().PutStr(instanceID, w.instance)
	}
	scope := found.ScopeMetrics().AppendEmpty()
	scope.SetSchemaUrl(semconv.SchemaURL)
	scope.Scope().SetName(metadata.ScopeName)
	scope.Scope().SetVersion(w.version)
	metrics.MoveAndAppendTo(scope.Metrics())
}

// telling gives the series that there is something to tell of, in order.
func (w writer) telling(lines map[string]*series, now time.Time) []*series {
	found := make([]*series, 0, len(lines))
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		if line := lines[key]; line.fresh || w.temporality == pmetric.AggregationTemporalityCumulative {
			found = append(found, line.shown(now, w.zeroFirst))
		}
	}
	return found
}

func (w writer) metric(into pmetric.Metric, about semconv.Metric, lines []*series, now time.Time) {
	into.SetName(about.Name)
	into.SetUnit(about.Unit)
	into.SetDescription(about.Description)
	if about.Boundaries != nil {
		w.histogram(into.SetEmptyHistogram(), about, lines, now)
		return
	}
	sum := into.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(w.temporality)
	for _, line := range lines {
		point := sum.DataPoints().AppendEmpty()
		putPairs(point.Attributes(), line.attrs)
		point.SetStartTimestamp(pcommon.NewTimestampFromTime(line.start))
		point.SetTimestamp(pcommon.NewTimestampFromTime(now))
		if divisible(about) {
			point.SetDoubleValue(line.amount)
		} else {
			point.SetIntValue(line.whole)
		}
		putExemplars(point.Exemplars(), line, divisible(about))
	}
}

func (w writer) histogram(into pmetric.Histogram, about semconv.Metric, lines []*series, now time.Time) {
	into.SetAggregationTemporality(w.temporality)
	for _, line := range lines {
		point := into.DataPoints().AppendEmpty()
		putPairs(point.Attributes(), line.attrs)
		point.SetStartTimestamp(pcommon.NewTimestampFromTime(line.start))
		point.SetTimestamp(pcommon.NewTimestampFromTime(now))
		point.ExplicitBounds().FromRaw(about.Boundaries)
		point.BucketCounts().FromRaw(line.buckets)
		point.SetSum(line.amount)
		var count uint64
		for _, bucket := range line.buckets {
			count += bucket
		}
		point.SetCount(count)
		putExemplars(point.Exemplars(), line, true)
	}
}

// divisible tells whether a metric adds up amounts instead of whole numbers.
func divisible(about semconv.Metric) bool { return about.Unit == "{USD}" || about.Kind == "histogram" }

// flags are the attributes that are no text.
var flags = map[string]bool{overflow: true, semconv.ContextLedgerVerdictConflict: true}

func putPairs(into pcommon.Map, pairs []pair) {
	into.EnsureCapacity(len(pairs))
	for _, told := range pairs {
		if flags[told.key] {
			into.PutBool(told.key, told.value == "true")
		} else {
			into.PutStr(told.key, told.value)
		}
	}
}

func putExemplars(into pmetric.ExemplarSlice, line *series, amounts bool) {
	for _, found := range line.exemplars {
		if found.trace.IsEmpty() {
			continue
		}
		made := into.AppendEmpty()
		made.SetTraceID(found.trace)
		made.SetSpanID(found.span)
		made.SetTimestamp(found.at)
		if amounts {
			made.SetDoubleValue(found.amount)
		} else {
			made.SetIntValue(found.whole)
		}
	}
}
