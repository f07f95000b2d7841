package normalise_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/normalise"
)

func placed(trace, span, parent byte, response string) *call.Call {
	return &call.Call{
		Place:   call.Place{Trace: pcommon.TraceID{trace}, Span: pcommon.SpanID{span}, Parent: pcommon.SpanID{parent}},
		Request: call.Request{ResponseID: response},
	}
}

// lasting says from which second to which a call lasted.
func lasting(of *call.Call, from, to int64) *call.Call {
	of.Place.Start, of.Place.End = time.Unix(from, 0), time.Unix(to, 0)
	return of
}

func entry(of *call.Call) *call.Call {
	of.Origin.EntryID = "e-1"
	return of
}

// A framework's span around the client's of the same call is the call once more (case AC21), and so is any span around or
// inside that of an entry. Two responses are two calls, and so are two entries, spans side by side or in other traces,
// and records without a span.
func TestOneOfTwoSpansRepeatsTheCall(t *testing.T) {
	for name, row := range map[string]struct {
		calls []*call.Call
		want  []bool
	}{
		"one inside the other":      {[]*call.Call{placed(1, 2, 1, "r"), placed(1, 1, 0, "r")}, []bool{false, true}},
		"the outer names no answer": {[]*call.Call{placed(1, 1, 0, ""), placed(1, 2, 1, "r")}, []bool{true, false}},
		"two answers":               {[]*call.Call{placed(1, 1, 0, "q"), placed(1, 2, 1, "r")}, []bool{false, false}},
		"a second try inside": {
			[]*call.Call{placed(1, 1, 0, "r"), placed(1, 2, 1, "r"), placed(1, 3, 1, "q")}, []bool{true, false, false},
		},
		"side by side":               {[]*call.Call{placed(1, 2, 1, "r"), placed(1, 3, 1, "q")}, []bool{false, false}},
		"the same ids, other traces": {[]*call.Call{placed(1, 1, 0, ""), placed(2, 2, 1, "r")}, []bool{false, false}},
		"an entry around the client's own tracing": {
			[]*call.Call{entry(placed(1, 1, 0, "r")), placed(1, 2, 1, "r")}, []bool{false, true},
		},
		"an entry inside another span": {[]*call.Call{placed(1, 1, 0, ""), entry(placed(1, 2, 1, "r"))}, []bool{true, false}},
		"two entries":                  {[]*call.Call{entry(placed(1, 1, 0, "")), entry(placed(1, 2, 1, ""))}, []bool{false, false}},
		"one answer, side by side": {
			[]*call.Call{lasting(placed(1, 1, 0, "r"), 0, 9), lasting(placed(2, 2, 0, "r"), 1, 8)}, []bool{true, false},
		},
		"one answer, an entry among them": {
			[]*call.Call{entry(lasting(placed(1, 1, 0, "r"), 0, 9)), lasting(placed(2, 2, 0, "r"), 1, 8)}, []bool{false, true},
		},
		"an answer that a gateway gave again": {
			[]*call.Call{lasting(placed(1, 1, 0, "r"), 0, 9), lasting(placed(2, 2, 0, "r"), 10, 11)}, []bool{false, false},
		},
		"beside two that are nested, of which only the outer one names the answer": {
			[]*call.Call{
				lasting(placed(1, 1, 0, "r"), 0, 9), lasting(placed(1, 2, 1, ""), 1, 8), lasting(placed(1, 3, 0, "r"), 0, 9),
			}, []bool{true, false, true},
		},
		"three that are nested": {
			[]*call.Call{placed(1, 1, 0, "r"), placed(1, 2, 1, "r"), placed(1, 3, 2, "r")}, []bool{true, true, false},
		},
		"log records without a span": {[]*call.Call{placed(0, 0, 0, ""), placed(0, 0, 0, "r")}, []bool{false, false}},
	} {
		assert.Equal(t, row.want, normalise.Repeated(row.calls), name)
	}
}

// The record that stays takes from the other one whose call it was and what was sent; its counts are its own.
func TestTheBetterRecordTakesWhatItDoesNotKnow(t *testing.T) {
	outer, inner := placed(1, 1, 0, ""), placed(1, 2, 1, "r")
	outer.Task = call.Task{Session: "s-1", SessionSource: "conversation_id", Agent: "coder"}
	outer.Usage = call.Usage{Input: ptr(int64(1)), CacheRead: ptr(int64(0))}
	outer.Content = &call.Content{Form: "gen_ai"}
	inner.Usage = call.Usage{Input: ptr(int64(2600))}

	normalise.Repeated([]*call.Call{outer, inner})

	assert.Equal(t, outer.Task, inner.Task)
	assert.Equal(t, outer.Content, inner.Content)
	assert.Equal(t, call.Usage{Input: ptr(int64(2600))}, inner.Usage)
}
