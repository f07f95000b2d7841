package contextledgerconnector

import (
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
	// What leads to what is there already: the resource of the latest entry, and groups by their resource and words.
	latest *resource
	groups map[groupKey]*group
	// What is used anew for each series: its attributes and their spelling.
	attrs []pair
	key   []byte
}

// resource holds the series of one resource by metric.
type resource struct {
	attrs  []pair
	series map[string]map[string]*series
}

// group has the series of one resource whose shared attributes have the same words, by what is their own. Gathered says
// that a bound put one of the words in the place of others.
type group struct {
	from     *resource
	shared   words
	gathered bool
	lines    map[line]*series
}

type groupKey struct {
	from   *resource
	shared words
}

// line is what tells the series of a group apart.
type line struct {
	of  *measure
	own words
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
		groups:    map[groupKey]*group{},
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
	group := t.group(t.resource(e.from), shared(&e.call))
	for i := range e.found {
		m := &e.found[i]
		t.series(group, m, now).add(m, e.place, t.exemplars)
	}
}

// fit gives the words that are told of attributes, and whether they are the same.
func (t *tally) fit(names, told words) (words, bool) {
	fitted, same := told, true
	for i, word := range told {
		if word == "" {
			continue
		}
		var whole bool
		if fitted[i], whole = t.bounds.fit(names[i], word); !whole {
			t.exceeded(boundValues)
		}
		same = same && whole && fitted[i] == word
	}
	return fitted, same
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

// group gives the group of what an entry has in common. There are no more of them at a time than series of one metric.
func (t *tally) group(from *resource, told words) *group {
	if found, ok := t.groups[groupKey{from, told}]; ok && !found.gathered {
		return found
	}
	fitted, same := t.fit(sharedNames, told)
	key := groupKey{from, fitted}
	if found, ok := t.groups[key]; ok {
		return found
	}
	if len(t.groups) >= t.limits.Series {
		clear(t.groups)
	}
	made := &group{from: from, shared: fitted, gathered: !same, lines: map[line]*series{}}
	t.groups[key] = made
	return made
}

// series gives the series that a measurement of a group adds to.
func (t *tally) series(in *group, m *measurement, now time.Time) *series {
	if found, ok := in.lines[line{m.of, m.words}]; ok {
		found.last, found.fresh = now, true
		return found
	}
	own, same := t.fit(m.of.own, m.words)
	t.attrs = appendPairs(appendPairs(t.attrs[:0], sharedNames, in.shared), m.of.own, own)
	found, whole := t.line(in.from, m.of, t.attrs, now)
	if same && whole {
		in.lines[line{m.of, own}] = found
	}
	return found
}

// appendPairs adds the attributes that have a word.
func appendPairs(to []pair, names, told words) []pair {
	for i, word := range told {
		if word != "" {
			to = append(to, pair{names[i], word})
		}
	}
	return to
}

// line gives the series of a metric with some attributes, and whether it is theirs alone: not the one of what is beyond
// the bound.
func (t *tally) line(held *resource, of *measure, attrs []pair, now time.Time) (*series, bool) {
	t.key = spell(t.key[:0], attrs)
	lines := held.series[of.name]
	if found, ok := lines[string(t.key)]; ok {
		found.last, found.fresh = now, true
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
	t.latest = nil
	clear(t.groups)
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
			dropped = true
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
