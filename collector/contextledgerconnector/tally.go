package contextledgerconnector

import (
	"slices"
	"sort"
	"time"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Words of what a bound gathered, in the connector's own telemetry.
const (
	boundValues    = "values"
	boundSeries    = "series"
	boundResources = "resources"
)

// tally holds what was counted, within the limits. It is not safe for two at a time.
type tally struct {
	limits    LimitsConfig
	exemplars bool
	bounds    *bounds
	resources map[string]*resource
	counts    map[string]int
	since     time.Time
	exceeded  func(bound string)
	// What is used anew for each measurement: attributes that all of an entry have, those of one, and their spelling.
	base, attrs []pair
	key         []byte
}

// resource holds the series of one resource by metric.
type resource struct {
	attrs  []pair
	series map[string]map[string]*series
}

// series is one line of a metric: a sum of whole numbers or amounts, or a histogram of amounts.
type series struct {
	attrs []pair
	start time.Time
	last  time.Time
	// Whether something was counted that was not told yet.
	fresh bool
	// From when on it is told with its value, once it was told as 0, and whether it was withheld the last time.
	until     time.Time
	withheld  bool
	whole     int64
	amount    float64
	buckets   []uint64
	exemplars []exemplar
}

// exemplar is a measurement that leads to its span. The zero value is none.
type exemplar struct {
	place
	whole  int64
	amount float64
}

func newTally(config *Config, now time.Time, exceeded func(string)) *tally {
	return &tally{
		limits:    config.Limits,
		exemplars: config.Exemplars,
		bounds:    newBounds(config.Limits.Values),
		resources: map[string]*resource{},
		counts:    map[string]int{},
		since:     now,
		exceeded:  exceeded,
	}
}

// size gives how many series are held.
func (t *tally) size() int64 {
	var total int64
	for _, found := range t.resources {
		for _, lines := range found.series {
			total += int64(len(lines))
		}
	}
	return total
}

// add counts an entry of a resource.
func (t *tally) add(from []pair, e *entry, now time.Time) {
	held, all := t.resource(from), shared(&e.call)
	t.base = t.fit(t.base[:0], all[:])
	for i := range e.found {
		m := &e.found[i]
		t.attrs = t.fit(append(t.attrs[:0], t.base...), m.own[:])
		t.line(held, m.metric, t.attrs, now).add(m, e.place, t.exemplars)
	}
}

// fit adds the pairs that are told to others.
func (t *tally) fit(found, pairs []pair) []pair {
	for _, told := range pairs {
		if told.value == "" {
			continue
		}
		value, whole := t.bounds.fit(told.key, told.value)
		if !whole {
			t.exceeded(boundValues)
		}
		found = append(found, pair{told.key, value})
	}
	return found
}

func (t *tally) resource(attrs []pair) *resource {
	t.key = spell(t.key[:0], attrs)
	if held, ok := t.resources[string(t.key)]; ok {
		return held
	}
	if len(attrs) > 0 && len(t.resources) >= t.limits.Resources {
		t.exceeded(boundResources)
		return t.resource(nil)
	}
	held := &resource{attrs: slices.Clone(attrs), series: map[string]map[string]*series{}}
	t.resources[string(t.key)] = held
	return held
}

func (t *tally) line(held *resource, metric string, attrs []pair, now time.Time) *series {
	t.key = spell(t.key[:0], attrs)
	lines := held.series[metric]
	if found, ok := lines[string(t.key)]; ok {
		found.last, found.fresh = now, true
		return found
	}
	if t.counts[metric] >= t.limits.Series && !isOverflow(attrs) {
		t.exceeded(boundSeries)
		return t.line(held, metric, []pair{{overflow, "true"}}, now)
	}
	if lines == nil {
		lines = map[string]*series{}
		held.series[metric] = lines
	}
	made := &series{attrs: slices.Clone(attrs), start: t.since, last: now, fresh: true}
	if limits := semconv.Metrics[metric].Boundaries; limits != nil {
		made.buckets = make([]uint64, len(limits)+1)
	}
	lines[string(t.key)] = made
	t.counts[metric]++
	return made
}

func isOverflow(attrs []pair) bool { return len(attrs) == 1 && attrs[0].key == overflow }

// spell writes pairs so that two lists of them are equal where their texts are.
func spell(into []byte, pairs []pair) []byte {
	for _, told := range pairs {
		into = append(into, told.key...)
		into = append(into, 0)
		into = append(into, told.value...)
		into = append(into, 0)
	}
	return into
}

func (s *series) add(m *measurement, where place, exemplars bool) {
	s.whole += m.whole
	s.amount += m.amount
	bucket := 0
	if s.buckets != nil {
		bucket = sort.SearchFloat64s(semconv.Metrics[m.metric].Boundaries, m.amount)
		s.buckets[bucket]++
	}
	if !exemplars || where.trace.IsEmpty() {
		return
	}
	if s.exemplars == nil {
		s.exemplars = make([]exemplar, max(1, len(s.buckets)))
	}
	s.exemplars[bucket] = exemplar{where, m.whole, m.amount}
}

// expire forgets series without a call since `limits.Idle` that were told, and the values that only they had.
func (t *tally) expire(now time.Time) {
	if t.limits.Idle == 0 || !t.dropIdle(now.Add(-t.limits.Idle)) {
		return
	}
	t.bounds.retain(t.pairs)
}

func (t *tally) dropIdle(before time.Time) bool {
	dropped := false
	for key, held := range t.resources {
		for metric, lines := range held.series {
			for line, found := range lines {
				if !found.fresh && found.last.Before(before) {
					delete(lines, line)
					t.counts[metric]--
					dropped = true
				}
			}
			if len(lines) == 0 {
				delete(held.series, metric)
			}
		}
		if len(held.series) == 0 {
			delete(t.resources, key)
		}
	}
	return dropped
}

// pairs gives the attributes of every series.
func (t *tally) pairs(yield func(pair) bool) {
	for _, held := range t.resources {
		for _, lines := range held.series {
			for _, found := range lines {
				for _, told := range found.attrs {
					if !yield(told) {
						return
					}
				}
			}
		}
	}
}

// settle ends an interval: what is counted from now on is of the next one. Where sums are deltas they begin anew.
func (t *tally) settle(now time.Time, anew bool) {
	t.since = now
	for _, held := range t.resources {
		for _, lines := range held.series {
			for _, found := range lines {
				found.settle(now, anew)
			}
		}
	}
}

// shown gives what is told of a series at a time: itself, or that it begins at 0 now and is still there.
func (s *series) shown(now time.Time, zeroFirst time.Duration) *series {
	if zeroFirst > 0 && s.until.IsZero() {
		s.start, s.until = now, now.Add(zeroFirst)
	}
	s.withheld = zeroFirst > 0 && now.Before(s.until)
	if !s.withheld {
		return s
	}
	return &series{attrs: s.attrs, start: s.start, buckets: make([]uint64, len(s.buckets))}
}

// settle keeps the exemplars of a value that was not told.
func (s *series) settle(now time.Time, anew bool) {
	if !s.withheld {
		clear(s.exemplars)
		s.fresh = false
	}
	if !anew {
		return
	}
	s.whole, s.amount, s.start = 0, 0, now
	clear(s.buckets)
}
