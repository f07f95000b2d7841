package normalise

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/names"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

const prefix = "context_ledger."

// Fields that are more than places. Of what was read from and written to the cache every place is looked at, because
// two that differ are told.
const (
	fieldInput   = "input_tokens"
	fieldCached  = "cached_tokens"
	fieldWritten = "cache_write_tokens"
	fieldTools   = "tools"
)

// reading is what is read from one record. The session is `named` where it stands under our own name.
type reading struct {
	named    bool
	call     *call.Call
	counted  extras
	cacheKey string
	port     string
	tools    []call.Tool
	from     origin
	doubted  []doubt
	values   []pcommon.Value
	parsed   map[int]any
}

// origin says at which places the prompt and the cached part were found.
type origin struct{ input, cached string }

// doubt is a 0 that is believed of some surfaces only.
type doubt struct {
	count    **int64
	surfaces []string
}

// doubts takes back each 0 that the emitter writes for what it does not know, unless it is of a surface that says 0
// where it means it.
func (r *reading) doubts() {
	where := cmp.Or(r.call.Model.Surface, r.call.Model.Provider)
	for _, doubted := range r.doubted {
		if !slices.Contains(doubted.surfaces, where) {
			*doubted.count = nil
		}
	}
}

// beside has the fields of a table that no attribute of ours holds.
var beside = map[string]func(*reading) any{
	"total_tokens":      func(r *reading) any { return &r.counted.total },
	"tool_input_tokens": func(r *reading) any { return &r.counted.toolInput },
	"cache_key":         func(r *reading) any { return &r.cacheKey },
	"port":              func(r *reading) any { return &r.port },
	"compacted":         func(r *reading) any { return &r.call.Compaction.Seen },
	"service_tier":      func(r *reading) any { return &r.call.Model.ServiceTier },
	fieldTools:          func(r *reading) any { return &r.tools },
}

// fieldOf finds the field of a reading that a table calls so; false where there is none.
func fieldOf(name string) (func(*reading) any, bool) {
	if at, ok := beside[name]; ok {
		return at, true
	}
	at, ok := call.Field(prefix + name)
	return func(r *reading) any { return at(r.call) }, ok
}

// field is one field of a dialect with its places in the order in which they are tried.
type field struct {
	name    string
	at      func(*reading) any
	sources []place
}

// layout is what a dialect reads: its fields, and which slot each attribute's value is laid into, by its number.
type layout struct {
	fields []field
	slots  names.Index
	// reads are for each slot the fields that look there, constant those that need no attribute; a bit for each field, the
	// last ones share one.
	reads    []marks
	constant marks
}

// compile gives a dialect's fields in the order of their names.
func compile(fields map[string][]Source) layout {
	var found layout
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if at, ok := fieldOf(name); ok {
			places := found.places(fields[name], bit(len(found.fields)))
			found.fields = append(found.fields, field{name: name, at: at, sources: places})
		}
	}
	return found
}

// bit is that of a field by its place in a layout.
func bit(field int) marks { return 1 << min(field, 63) }

func (l *layout) places(sources []Source, reader marks) []place {
	found := make([]place, len(sources))
	for i, source := range sources {
		found[i] = place{Source: source, slot: l.slots.Add(source.From), constant: pcommon.NewValueStr(source.Value)}
		if found[i].slot == len(l.reads) {
			l.reads = append(l.reads, 0)
		}
		l.reads[found[i].slot] |= reader
		if source.Value != "" {
			l.constant |= reader
		}
	}
	return found
}

// fill puts the values of the attributes that a dialect reads each into its slot, and reads the fields that find any there.
func (l *layout) fill(into *reading, attrs pcommon.Map) {
	into.values = slices.Grow(into.values, len(l.reads))[:len(l.reads)]
	found := l.constant
	for key, value := range attrs.All() {
		if slot, ok := l.slots.Of(key); ok && into.values[slot] == (pcommon.Value{}) {
			into.values[slot] = value
			found |= l.reads[slot]
		}
	}
	for i := range l.fields {
		if found&bit(i) != 0 {
			l.fields[i].fill(into)
		}
	}
}

// fill reads a field from the first place that holds a value of its type.
func (f *field) fill(into *reading) {
	var counts []int64
	for i := range f.sources {
		source := &f.sources[i]
		value, ok, broken := source.value(into)
		if broken {
			once(&into.call.Usage, flagUnparsed)
		}
		if !ok {
			continue
		}
		if count := f.count(value); count != nil && !slices.Contains(counts, *count) {
			counts = append(counts, *count)
		}
		if !call.Known(f.at(into)) && f.take(into, source, value) && counts == nil {
			return
		}
	}
	if len(counts) > 1 {
		flag(&into.call.Usage, fmt.Sprintf("%s_conflict(%s)", f.name, joined(counts)))
	}
}

// count gives the count that a value is, of a field whose places are compared.
func (f *field) count(value pcommon.Value) *int64 {
	if f.name != fieldCached && f.name != fieldWritten {
		return nil
	}
	return call.Count(value)
}

// take puts a value into the field, and says whether it is one.
func (f *field) take(into *reading, source *place, value pcommon.Value) bool {
	at := f.at(into)
	if tools, ok := at.(*[]call.Tool); ok {
		*tools = tooled(value)
		return len(*tools) > 0
	}
	if text, ok := at.(*string); ok {
		*text = scalar(value)
		return *text != ""
	}
	taken := call.Take(at, value)
	count, counts := at.(**int64)
	if counts && !taken {
		once(&into.call.Usage, flagImpossible)
	}
	if counts && taken && source.Zero != nil && **count == 0 {
		into.doubted = append(into.doubted, doubt{count, source.Zero})
	}
	if taken && source.Alias && f.name == fieldCached {
		flag(&into.call.Usage, fmt.Sprintf("%s(%s)", flagAlias, source.From))
	}
	switch {
	case taken && f.name == fieldInput:
		into.from.input = source.name()
	case taken && f.name == fieldCached:
		into.from.cached = source.name()
	}
	return taken
}

func once(usage *call.Usage, word string) {
	if !slices.Contains(usage.Flags, word) {
		flag(usage, word)
	}
}

func joined(counts []int64) string {
	texts := make([]string, len(counts))
	for i, count := range counts {
		texts[i] = strconv.FormatInt(count, 10)
	}
	return strings.Join(texts, ",")
}

// usageRule gives the first rule that fits what was read.
func (d *dialect) usageRule(of known, from origin) *Rule {
	for i := range d.usage {
		rule := &d.usage[i]
		placed := (rule.Input == "" || rule.Input == from.input) && (rule.Cached == "" || rule.Cached == from.cached)
		if placed && rule.When.holds(of) {
			return rule
		}
	}
	return &Rule{Rule: d.name, IncludesCache: includesUnlisted}
}

// counted says whether a record tells any usage.
func counted(usage *call.Usage) bool {
	return usage.Source != semconv.UsageSourceMissing
}
