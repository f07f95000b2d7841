package normalise

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
)

// seat is where a span stands in its trace.
type seat struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// Repeated says of each of some calls whether another one of them is the same call and tells it better. Two are the same
// if the span of one is right inside that of the other, or if both name the same response and one lasted while the other
// did; two that name different responses, or have an entry of ours each, never are. Of a framework's span and the
// client's inside it the client's knows more, of an entry of ours and any other span the entry does. What the better one
// does not know of whose call it was, and of what was sent, it takes from the other. A response that only the worse one
// names is the better one's, too: a third record that names it, beside them, is the same call.
func Repeated(calls []*call.Call) []bool {
	found := make([]bool, len(calls))
	better := inside(calls)
	answers := make(map[string]int, len(calls))
	for worse := range better {
		found[worse] = true
		if answer := calls[worse].Request.ResponseID; answer != "" {
			answers[answer] = best(better, worse)
		}
	}
	for i, one := range calls {
		answer := one.Request.ResponseID
		earlier, again := answers[answer]
		switch {
		case answer == "" || found[i] || again && earlier == i:
		case again && together(one, calls[earlier]) && !apart(one, calls[earlier]):
			inner, outer := nested(calls, i, earlier)
			worse := told(calls, inner, outer)
			found[worse], answers[answer] = true, inner+outer-worse
		default:
			answers[answer] = i
		}
	}
	return found
}

// inside gives of each call that has another one's span right inside its own, or is that, and is told worse, the one that
// tells it better.
func inside(calls []*call.Call) map[int]int {
	better := map[int]int{}
	if !slices.ContainsFunc(calls, func(one *call.Call) bool { return !one.Place.Parent.IsEmpty() }) {
		return better
	}
	spans := make(map[seat]int, len(calls))
	for i, one := range calls {
		if at := (seat{one.Place.Trace, one.Place.Span}); !at.trace.IsEmpty() && !at.span.IsEmpty() {
			spans[at] = i
		}
	}
	for i, inner := range calls {
		outer, within := spans[seat{inner.Place.Trace, inner.Place.Parent}]
		if within && outer != i && !apart(inner, calls[outer]) {
			worse := told(calls, i, outer)
			better[worse] = i + outer - worse
		}
	}
	return better
}

// best gives the record that tells best what another one tells: the innermost, however many are around it.
func best(better map[int]int, of int) int {
	for range better {
		next, known := better[of]
		if !known {
			break
		}
		of = next
	}
	return of
}

// told gives the worse of two records of one call, after the better one took what it did not know.
func told(calls []*call.Call, inner, outer int) int {
	better, worse := inner, outer
	if calls[outer].Ours() && !calls[inner].Ours() {
		better, worse = outer, inner
	}
	calls[better].Complete(calls[worse])
	return worse
}

// apart says whether two are known to be two calls: each has an entry of its own, or a response.
func apart(a, b *call.Call) bool {
	one, other := a.Request.ResponseID, b.Request.ResponseID
	return (a.Ours() && b.Ours()) || (one != "" && other != "" && one != other)
}

// together says whether two calls were under way at one time.
func together(a, b *call.Call) bool {
	return !a.Place.Start.After(b.Place.End) && !b.Place.Start.After(a.Place.End)
}

// nested gives the one of two that lasted shorter, which is the one inside, and the other.
func nested(calls []*call.Call, a, b int) (inner, outer int) {
	if calls[a].Place.End.Sub(calls[a].Place.Start) < calls[b].Place.End.Sub(calls[b].Place.Start) {
		return a, b
	}
	return b, a
}
