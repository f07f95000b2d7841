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

// Enclosing says of each of some calls whether its span is right around that of another one: a framework's span around
// the client's of the same call repeats its usage, and the inner one knows more. Two that say which response they are of,
// and say different ones, are two calls. Calls without a span enclose nothing.
func Enclosing(calls []*call.Call) []bool {
	within := map[seat][]*call.Call{}
	for _, inner := range calls {
		if around := (seat{inner.Place.Trace, inner.Place.Parent}); !around.trace.IsEmpty() && !around.span.IsEmpty() {
			within[around] = append(within[around], inner)
		}
	}
	found := make([]bool, len(calls))
	for i, outer := range calls {
		found[i] = slices.ContainsFunc(within[seat{outer.Place.Trace, outer.Place.Span}], func(inner *call.Call) bool {
			return inner != outer && !apart(inner, outer)
		})
	}
	return found
}

func apart(a, b *call.Call) bool {
	one, other := a.Request.ResponseID, b.Request.ResponseID
	return one != "" && other != "" && one != other
}
