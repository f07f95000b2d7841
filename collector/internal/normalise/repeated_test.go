package normalise_test

import (
	"testing"

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
		"log records without a span":   {[]*call.Call{placed(0, 0, 0, ""), placed(0, 0, 0, "r")}, []bool{false, false}},
	} {
		assert.Equal(t, row.want, normalise.Repeated(row.calls), name)
	}
}
