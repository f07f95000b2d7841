package ledger_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/facts"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/ledger"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/vectortest"
)

// day0 is the second 0 of vectors.
var day0 = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// A sequence of calls that processes and other instrumentations told of has the verdicts that the vectors want.
//
// `fields` are those of spec/registry without their prefix, laid over `base` unless the record is `bare`; null takes one
// away. `content` is what was captured of the request; `restart` lets
// another process go on from the snapshot before the call, `lost` one that has none. `age` is for how many seconds the
// ledger has been running before second 0, `alone` says that it sees every call, `moving` and `split`
// that it is one of several, among which sessions or calls are divided.
func TestVectors(t *testing.T) {
	vectortest.Run(t, "collector", nil, func(t *testing.T, input canonical.Object) any {
		replica := replica{t: t, options: options(t, input)}
		replica.start(day0.Add(-seconds(input.Get("age"))))
		rows := []any{}
		for number, one := range canonical.Items(input.Get("calls")) {
			rows = append(rows, replica.observe(number, laid(canonical.Mapping(input.Get("base")), canonical.Mapping(one))))
		}
		return rows
	})
}

// laid is a record with the fields of the base that it does not say itself.
func laid(base, one canonical.Object) canonical.Object {
	if one.Get("bare") == true {
		return one
	}
	fields := base
	for name, value := range canonical.Mapping(one.Get("fields")).All() {
		if fields = fields.Without(name); value != nil {
			fields = fields.With(name, value)
		}
	}
	return one.With("fields", fields)
}

func options(t testing.TB, input canonical.Object) ledger.Options {
	lore, err := facts.Load(canonical.Mapping(input.Get("facts")), "the configuration")
	require.NoError(t, err)
	options := ledger.Defaults()
	options.Lore, options.Idle = lore, time.Hour
	options.Alone, options.Moving = input.Get("alone") == true, input.Get("moving") == true
	options.Split = input.Get("split") == true
	return options
}

func seconds(value any) time.Duration {
	return time.Duration(vectortest.Number(value) * float64(time.Second))
}

// replica is a collector that may be replaced by another one.
type replica struct {
	t       *testing.T
	options ledger.Options
	state   *ledger.State
}

func (r *replica) start(now time.Time) {
	state, err := ledger.New(r.options, now)
	require.NoError(r.t, err)
	r.state = state
}

func (r *replica) restart(now time.Time) {
	store := map[string][]byte{}
	_, err := r.state.Save(func(key string, snapshot []byte) error { store[key] = snapshot; return nil })
	require.NoError(r.t, err)
	r.start(now)
	require.NoError(r.t, r.state.Load(func(key string) ([]byte, error) { return store[key], nil }, now))
}

func (r *replica) observe(number int, one canonical.Object) any {
	began := day0.Add(seconds(one.Get("at")))
	switch {
	case one.Get("restart") == true:
		r.restart(began)
	case one.Get("lost") == true:
		r.start(began)
	}
	took := time.Second
	if given, told := one.Find("took"); told {
		took = seconds(given)
	}
	given := called(r.t, number, one, began, began.Add(took))
	seen := r.state.Observe(given, began.Add(took))
	attrs := pcommon.NewMap()
	given.Write(attrs)
	return row(attrs, seen)
}

func called(t *testing.T, number int, one canonical.Object, began, ended time.Time) *call.Call {
	attrs := pcommon.NewMap()
	for name, value := range canonical.Mapping(one.Get("fields")).All() {
		require.NoError(t, attrs.PutEmpty("context_ledger."+name).FromRaw(raw(value)))
	}
	given := call.Read(attrs)
	given.Place.Start, given.Place.End = began, ended
	if span, told := one.Get("span").(int64); told {
		number = int(span)
	}
	given.Place.Span = pcommon.SpanID([8]byte{1, byte(number)})
	if trace, told := one.Get("trace").(int64); told {
		given.Place.Trace = pcommon.TraceID([16]byte{byte(trace)})
	}
	if content := canonical.Mapping(one.Get("content")); content != nil {
		given.Content = &call.Content{
			Form: canonical.Text(content.Get("form")), Tools: parts(content.Get("tools")),
			System: parts(content.Get("system")), Messages: parts(content.Get("messages")),
		}
	}
	return &given
}

func parts(values any) [][]byte {
	written := [][]byte{}
	for _, value := range canonical.Items(values) {
		written = append(written, canonical.Wire(value))
	}
	return written
}

// raw is a value as pdata takes it.
func raw(value any) any {
	items, listed := value.([]any)
	if !listed {
		return value
	}
	found := make([]any, len(items))
	for at, item := range items {
		found[at] = raw(item)
	}
	return found
}

// row has the fields of a call and what became of it, by their names in vectors.
func row(attrs pcommon.Map, seen ledger.Seen) map[string]any {
	found := map[string]any{"view": seen.View, "repeated": seen.Repeated, "late": seen.Late}
	for name, value := range attrs.AsRaw() {
		found[name[len("context_ledger."):]] = value
	}
	return found
}
