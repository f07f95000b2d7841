package normalise

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
)

// seat is where a span stands in its trace.
type seat struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// Repeated says of each of some calls whether another one of them tells it better, a span right inside or right around
// it: of a framework's span and the client's inside it, the client's knows more; of an entry of ours and any other span,
// the entry does. Two that say which response they are of, and say different ones, are two calls. A call without a span
// repeats none.
func Repeated(calls []*call.Call) []bool {
	around := map[seat]int{}
	for i, outer := range calls {
		if at := (seat{outer.Place.Trace, outer.Place.Span}); !at.trace.IsEmpty() && !at.span.IsEmpty() {
			around[at] = i
		}
	}
	found := make([]bool, len(calls))
	for i, inner := range calls {
		outer, ok := around[seat{inner.Place.Trace, inner.Place.Parent}]
		if !ok || outer == i || apart(inner, calls[outer]) {
			continue
		}
		if calls[outer].Ours() && !inner.Ours() {
			outer = i
		}
		found[outer] = true
	}
	return found
}

// apart says whether two are known to be two calls: each has an entry of its own, or a response.
func apart(a, b *call.Call) bool {
	one, other := a.Request.ResponseID, b.Request.ResponseID
	return (a.Ours() && b.Ours()) || (one != "" && other != "" && one != other)
}
