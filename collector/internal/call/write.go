package call

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Write puts what is known of the call into the attributes. Those of ours that are there already get its value, but for
// the start; no other attribute is touched, and none is taken away.
func (c *Call) Write(attrs pcommon.Map) {
	var w writer
	w.open(attrs)
	defer w.close()
	own.write(c, &w)
}

// WriteAll does as Write, and puts what is known of the call under its standard names too, where nothing stands there yet:
// what an instrumentation wrote under them is the original, whether or not it means the same. A record that speaks no
// standard name gets none: beside another span of the same call that does, a sum over them would hold it twice.
func (c *Call) WriteAll(attrs pcommon.Map) {
	var w writer
	w.open(attrs)
	defer w.close()
	own.write(c, &w)
	if w.fills = w.speaks(); w.fills {
		standard.write(c, &w)
	}
}

// StandardNames are those under which WriteAll puts what is known.
func StandardNames() []string { return slices.Collect(maps.Keys(standardNames())) }

func standardNames() map[string]field {
	found := maps.Clone(twins)
	found[semconv.GenAIConversationCompacted] = alone[semconv.GenAIConversationCompacted]
	return found
}

// judged has what only a verdict says.
var judged = []string{
	semconv.ContextLedgerMissCause, semconv.ContextLedgerMissDetail, semconv.ContextLedgerMissSecondary,
	semconv.ContextLedgerMissEvidence, semconv.ContextLedgerMissConfidence, semconv.ContextLedgerMissSignificant,
	semconv.ContextLedgerMissPositionSegment, semconv.ContextLedgerMissPositionIndex,
	semconv.ContextLedgerMissPositionName, semconv.ContextLedgerMissPositionOffset,
	semconv.ContextLedgerMissPositionKind, semconv.ContextLedgerReusableTokens, semconv.ContextLedgerAvoidableTokens,
	semconv.ContextLedgerIdleSeconds, semconv.ContextLedgerRetentionSeconds, semconv.ContextLedgerVerdictConflict,
}

// Withdraw takes away what an earlier verdict said and this one does not: a hit has no cause.
func (c *Call) Withdraw(attrs pcommon.Map) {
	attrs.RemoveIf(func(key string, _ pcommon.Value) bool {
		if !strings.HasPrefix(key, ours) || !slices.Contains(judged, key) {
			return false
		}
		one := fields[key]
		return !Known(one.of(c))
	})
}

// What is written, in one order for every call, so that the same call makes the same bytes.
var (
	own      = tabled(fields)
	standard = tabled(standardNames())
)

// columns are fields by the types of what they hold, for each to be looked at without a detour.
type columns struct {
	texts   []column[string]
	counts  []column[*int64]
	numbers []column[*float64]
	flags   []column[*bool]
	others  []other
}

type column[T any] struct {
	key string
	at  func(*Call) *T
}

type other struct {
	key string
	field
}

func tabled(fields map[string]field) *columns {
	made := &columns{}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		switch one := fields[key]; {
		case one.text != nil:
			made.texts = append(made.texts, column[string]{key, one.text})
		case one.count != nil:
			made.counts = append(made.counts, column[*int64]{key, one.count})
		case one.number != nil:
			made.numbers = append(made.numbers, column[*float64]{key, one.number})
		case one.flag != nil:
			made.flags = append(made.flags, column[*bool]{key, one.flag})
		default:
			made.others = append(made.others, other{key, one})
		}
	}
	return made
}

func (t *columns) write(c *Call, w *writer) {
	for i := range t.texts {
		if value := *t.texts[i].at(c); value != "" && w.may(t.texts[i].key) {
			w.value(t.texts[i].key).SetStr(value)
		}
	}
	for i := range t.counts {
		if value := *t.counts[i].at(c); value != nil && w.may(t.counts[i].key) {
			w.value(t.counts[i].key).SetInt(*value)
		}
	}
	for i := range t.numbers {
		if value := *t.numbers[i].at(c); value != nil && w.may(t.numbers[i].key) {
			w.value(t.numbers[i].key).SetDouble(*value)
		}
	}
	for i := range t.flags {
		if value := *t.flags[i].at(c); value != nil && w.may(t.flags[i].key) {
			w.value(t.flags[i].key).SetBool(*value)
		}
	}
	for i := range t.others {
		if at := t.others[i].of(c); Known(at) && w.may(t.others[i].key) {
			w.other(t.others[i].key, at)
		}
	}
}

// writer writes the attributes of one record.
type writer struct {
	attrs pcommon.Map
	// told says that attributes of ours stand there already: then each one is looked for. Where none does all others are
	// laid into `added`, and those that are written behind them, which need not be looked for.
	told  bool
	added xpdata.MapBuilder
	// fills says that only names are written that stand there not yet.
	fills bool
}

// typical is how many attributes a call is told by, most times: room for them is made at once.
const typical = 24

// open begins to write onto a record, which is whole again when the writer is closed.
func (w *writer) open(attrs pcommon.Map) {
	w.attrs = attrs
	for key := range attrs.All() {
		w.told = w.told || strings.HasPrefix(key, ours)
	}
	if w.told {
		return
	}
	w.added.EnsureCapacity(attrs.Len() + typical)
	for key, value := range attrs.All() {
		value.MoveTo(w.added.AppendEmpty(key))
	}
}

func (w *writer) close() {
	if !w.told {
		w.added.UnsafeIntoMap(w.attrs)
	}
}

// speaks says whether a record speaks the standard.
func (w *writer) speaks() bool {
	return w.stood(semconv.GenAIOperationName) || w.stood(semconv.GenAIRequestModel)
}

// may says whether a name is to be written.
func (w *writer) may(key string) bool { return !w.fills || !w.stood(key) }

// stood says whether a name stood on the record before, or was written where each one is looked for.
func (w *writer) stood(key string) bool {
	_, told := w.attrs.Get(key)
	return told
}

// value is where the value of an attribute goes.
func (w *writer) value(key string) pcommon.Value {
	if w.told {
		return w.attrs.PutEmpty(key)
	}
	return w.added.AppendEmpty(key)
}

// other writes what is neither a text nor nullable. A time that is told stays as it is: a double has too few digits for
// nanoseconds, and would be another one.
func (w *writer) other(key string, at any) {
	switch field := at.(type) {
	case *bool:
		w.value(key).SetBool(*field)
	case *[]string:
		w.list(key, *field)
	case *[]Boundary:
		w.list(key, spelled(*field))
	case *time.Time:
		if !w.told || !w.stood(key) {
			w.value(key).SetDouble(float64(field.Unix()) + float64(field.Nanosecond())/float64(time.Second))
		}
	}
}

func (w *writer) list(key string, values []string) {
	list := w.value(key).SetEmptySlice()
	list.EnsureCapacity(len(values))
	for _, value := range values {
		list.AppendEmpty().SetStr(value)
	}
}

func spelled(boundaries []Boundary) []string {
	found := make([]string, len(boundaries))
	for i, boundary := range boundaries {
		found[i] = boundary.String()
	}
	return found
}
