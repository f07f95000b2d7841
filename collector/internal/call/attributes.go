package call

import (
	"maps"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/names"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// maxCount is the largest whole number that every part of a pipeline can hold exactly: one in JSON may be a double.
const maxCount = 1 << 53

// crowded is how many attributes a span has at least on which a process had no room for all of its own: it stops at the
// SDK's limit of 128, and something on the way may have taken a few.
const crowded = 120

// Read gives the call that attributes of ours tell, whether a process or a collector wrote them. A value that has not
// the type of the registry, a negative count, a number that is none is unknown.
func Read(attrs pcommon.Map) Call {
	var found Call
	found.Read(attrs)
	return found
}

// Read reads the call into one of which nothing is known.
func (c *Call) Read(attrs pcommon.Map) { whole.Read(attrs, c) }

// Reader reads calls, or a part of what is told of them: fields by the number of their names.
type Reader struct {
	names  names.Index
	fields []field
}

var whole = NewReader()

// NewReader makes a reader that leaves out some attributes of ours, as if they were not told.
func NewReader(without ...string) *Reader {
	made := &Reader{}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(without, key) {
			made.add(key, fields[key])
		}
	}
	for key, at := range alone {
		made.add(key, at)
	}
	return made
}

func (r *Reader) add(key string, at field) {
	r.names.Add(key)
	r.fields = append(r.fields, at)
}

// Read reads a call into one of which nothing is known. Where a process had room for its own name and did not write it, it
// did not know: what another instrumentation wrote under the standard one, perhaps a zero, is none of its words.
func (r *Reader) Read(attrs pcommon.Map, into *Call) {
	for key, value := range attrs.All() {
		if number, known := r.names.Of(key); known {
			r.fields[number].take(into, value)
		}
	}
	if attrs.Len() < crowded || into.Origin.Dialect != "" {
		return
	}
	for key, value := range attrs.All() {
		at, twin := twins[key]
		silent := key == semconv.GenAIUsageCacheReadInputTokens && into.Usage.Report != semconv.CacheReportReported
		if twin && !silent && !Known(at.of(into)) {
			at.take(into, value)
		}
	}
}

// ours is how every name in fields begins, and none of twins and alone.
const ours = "context_ledger."

// Fill takes what is known of another call wherever it is not known of this one.
func (c *Call) Fill(from *Call) {
	for _, one := range fields {
		if at := one.of(c); !Known(at) {
			copyField(at, one.of(from))
		}
	}
}

// shared has what two records of one call can know of it alike: whose call it was, and what was sent.
var shared = []string{
	semconv.ContextLedgerTaskID, semconv.ContextLedgerAttemptID, semconv.ContextLedgerParentSessionID,
	semconv.ContextLedgerAgent, semconv.ContextLedgerReasoningEffort, semconv.ContextLedgerRepoSnapshot,
	semconv.ContextLedgerPolicyWireHash, semconv.ContextLedgerToolWireHash, semconv.ContextLedgerToolSchemaHash,
}

// Complete takes from another record of the same call whose it was and what was sent, where it is not known of this one.
func (c *Call) Complete(from *Call) {
	for _, key := range shared {
		one := fields[key]
		if at := one.of(c); !Known(at) {
			copyField(at, one.of(from))
		}
	}
	if c.Task.Session == "" {
		c.Task.Session, c.Task.SessionSource = from.Task.Session, from.Task.SessionSource
	}
	if c.Content == nil {
		c.Content = from.Content
	}
}

func copyField(into, from any) {
	switch field := into.(type) {
	case *string:
		*field = *from.(*string)
	case **int64:
		*field = *from.(**int64)
	case **float64:
		*field = *from.(**float64)
	case **bool:
		*field = *from.(**bool)
	case *bool:
		*field = *from.(*bool)
	case *[]string:
		*field = *from.(*[]string)
	case *[]Boundary:
		*field = *from.(*[]Boundary)
	case *time.Time:
		*field = *from.(*time.Time)
	}
}

// Field gives what finds the field of a call that an attribute of ours holds, by its name in the registry; false where
// there is none.
func Field(key string) (func(*Call) any, bool) {
	found, ok := fields[key]
	if !ok {
		return nil, false
	}
	return found.of, true
}

// Take puts a value into the field at a pointer that Field's function gave, and says whether it is one: what is not of
// the field's type, a negative count, a number that is none leave it unknown.
func Take(at any, value pcommon.Value) bool {
	switch field := at.(type) {
	case *string:
		*field = text(value)
	case **int64:
		*field = Count(value)
	case **float64:
		*field = Number(value)
	case **bool:
		*field = flag(value)
	case *bool:
		*field = value.Type() == pcommon.ValueTypeBool && value.Bool()
	case *[]string:
		*field = texts(value)
	case *[]Boundary:
		*field = boundaries((*field)[:0], value)
	case *time.Time:
		*field = seconds(value)
	}
	return Known(at)
}

// Known says whether the field at such a pointer has a value.
func Known(at any) bool {
	switch field := at.(type) {
	case *string:
		return *field != ""
	case **int64:
		return *field != nil
	case **float64:
		return *field != nil
	case **bool:
		return *field != nil
	case *bool:
		return *field
	case *[]string:
		return len(*field) > 0
	case *[]Boundary:
		return len(*field) > 0
	case *time.Time:
		return !field.IsZero()
	}
	return false
}

func text(value pcommon.Value) string {
	if value.Type() != pcommon.ValueTypeStr {
		return ""
	}
	return value.Str()
}

func flag(value pcommon.Value) *bool {
	if value.Type() != pcommon.ValueTypeBool {
		return nil
	}
	found := value.Bool()
	return &found
}

// texts gives the texts of a list, nil where it is none or empty.
func texts(value pcommon.Value) []string {
	if value.Type() != pcommon.ValueTypeSlice {
		return nil
	}
	found := make([]string, 0, value.Slice().Len())
	for _, item := range value.Slice().All() {
		if item.Type() == pcommon.ValueTypeStr {
			found = append(found, item.Str())
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// boundaries adds the entries of a locator that tell one, no more than a locator can have.
func boundaries(found []Boundary, value pcommon.Value) []Boundary {
	if value.Type() != pcommon.ValueTypeSlice {
		return found
	}
	found = slices.Grow(found, min(value.Slice().Len(), maxBoundaries))
	for _, item := range value.Slice().All() {
		if boundary, ok := ReadBoundary(text(item)); ok && len(found) < maxBoundaries {
			found = append(found, boundary)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// Count gives a whole number from 0 to 2^53, of an integer, a double that is whole, or a text of digits; nil of
// everything else.
func Count(value pcommon.Value) *int64 {
	found, whole := int64(-1), false
	switch value.Type() {
	case pcommon.ValueTypeInt:
		found, whole = value.Int(), true
	case pcommon.ValueTypeDouble:
		// NaN and infinities are no whole numbers; what is beyond an int64 is beyond maxCount.
		double := value.Double()
		whole = double == math.Trunc(double) && math.Abs(double) <= maxCount
		if whole {
			found = int64(double)
		}
	case pcommon.ValueTypeStr:
		found, whole = number(value.Str())
	}
	if !whole || found < 0 || found > maxCount {
		return nil
	}
	return &found
}

// Number gives a finite number that is not negative, of an integer, a double or a text of one; nil of everything else.
func Number(value pcommon.Value) *float64 {
	found := math.NaN()
	switch value.Type() {
	case pcommon.ValueTypeInt:
		found = float64(value.Int())
	case pcommon.ValueTypeDouble:
		found = value.Double()
	case pcommon.ValueTypeStr:
		found = decimal(value.Str())
	}
	if !(found >= 0) || math.IsInf(found, 0) {
		return nil
	}
	return &found
}

// seconds gives the time that is so many seconds after the epoch; zero where it is none within a thousand years.
func seconds(value pcommon.Value) time.Time {
	const thousandYears = 1000 * 365 * 24 * 3600
	found := Number(value)
	if found == nil || *found > thousandYears {
		return time.Time{}
	}
	whole, part := math.Modf(*found)
	return time.Unix(int64(whole), int64(part*float64(time.Second))).UTC()
}
