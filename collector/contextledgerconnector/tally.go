package contextledgerconnector

import (
	"encoding/binary"
	"slices"
	"sort"
	"time"
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
	// What leads to what is there already: the resource of the latest entry, and series by the shape of entries.
	latest *resource
	shapes map[shape][]*series
	// What is used anew for each entry: attributes that all of its measurements have, those of one, and spellings.
	base, attrs []pair
	key, words  []byte
}

// shape is what the measurements of an entry are told under, all together.
type shape struct {
	from  *resource
	words string
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
		shapes:    map[shape][]*series{},
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

// add counts an entry.
func (t *tally) add(e *entry, now time.Time) {
	from := t.resource(e.from)
	t.words = e.spell(t.words[:0])
	lines, known := t.shapes[shape{from, string(t.words)}]
	if !known {
		lines = t.lines(from, e, now)
	}
	for i, line := range lines {
		line.last, line.fresh = now, true
		line.add(&e.found[i], e.place, t.exemplars)
	}
}

// spell writes what the measurements of an entry are told under, so that two entries are equal where their words are.
func (e *entry) spell(into []byte) []byte {
	into = shared(&e.call).spell(into)
	for i := range e.found {
		into = e.found[i].words.spell(append(into, e.found[i].of.number))
	}
	return into
}

func (w words) spell(into []byte) []byte {
	for _, word := range w {
		into = append(binary.AppendUvarint(into, uint64(len(word))), word...)
	}
	return into
}

// lines gives the series of the measurements of an entry, and remembers them by its shape: not those of entries of which
// a bound gathers something, which is counted each time. No more shapes are known at a time than series of one metric.
func (t *tally) lines(from *resource, e *entry, now time.Time) []*series {
	found := make([]*series, len(e.found))
	base, whole := t.fit(t.base[:0], sharedNames, shared(&e.call))
	for i := range e.found {
		m := &e.found[i]
		attrs, same := t.fit(append(t.attrs[:0], base...), m.of.own, m.words)
		line, alone := t.line(from, m.of, attrs, now)
		found[i], whole = line, whole && same && alone
		t.attrs = attrs
	}
	if t.base = base; !whole {
		return found
	}
	if len(t.shapes) >= t.limits.Series {
		clear(t.shapes)
	}
	t.shapes[shape{from, string(t.words)}] = found
	return found
}

// fit adds the attributes that are told, and says whether all words of them are as they came.
func (t *tally) fit(to []pair, names, told words) ([]pair, bool) {
	same := true
	for i, word := range told {
		if word == "" {
			continue
		}
		fitted, whole := t.bounds.fit(names[i], word)
		if !whole {
			t.exceeded(boundValues)
		}
		same = same && whole && fitted == word
		to = append(to, pair{names[i], fitted})
	}
	return to, same
}

func (t *tally) resource(attrs []pair) *resource {
	if t.latest != nil && slices.Equal(t.latest.attrs, attrs) {
		return t.latest
	}
	t.key = spell(t.key[:0], attrs)
	held, ok := t.resources[string(t.key)]
	if !ok {
		if len(attrs) > 0 && len(t.resources) >= t.limits.Resources {
			t.exceeded(boundResources)
			return t.resource(nil)
		}
		held = &resource{attrs: slices.Clone(attrs), series: map[string]map[string]*series{}}
		t.resources[string(t.key)] = held
	}
	t.latest = held
	return held
}

// line gives the series of a metric with some attributes, and whether it is theirs alone: not the one of what is beyond
// the bound.
func (t *tally) line(held *resource, of *measure, attrs []pair, now time.Time) (*series, bool) {
	t.key = spell(t.key[:0], attrs)
	lines := held.series[of.name]
	if found, ok := lines[string(t.key)]; ok {
		return found, true
	}
	if t.counts[of.name] >= t.limits.Series && !isOverflow(attrs) {
		t.exceeded(boundSeries)
		found, _ := t.line(held, of, []pair{{overflow, "true"}}, now)
		return found, false
	}
	if lines == nil {
		lines = map[string]*series{}
		held.series[of.name] = lines
	}
	made := &series{attrs: slices.Clone(attrs), start: t.since, last: now, fresh: true}
	if of.boundaries != nil {
		made.buckets = make([]uint64, len(of.boundaries)+1)
	}
	lines[string(t.key)] = made
	t.counts[of.name]++
	return made, true
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
		bucket = sort.SearchFloat64s(m.of.boundaries, m.amount)
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
	clear(t.shapes)
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
			t.latest = nil
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
