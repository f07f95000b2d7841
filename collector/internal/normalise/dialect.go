package normalise

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Dialects gives the names of all dialects, in the order in which they are tried.
func (n *Normaliser) Dialects() []string {
	found := make([]string, len(n.dialects))
	for i := range n.dialects {
		found[i] = n.dialects[i].name
	}
	return found
}

// SpanDialect gives the dialect of a span, whether it tells of a call or of something else; empty where it has none.
func (n *Normaliser) SpanDialect(scope pcommon.InstrumentationScope, span ptrace.Span) string {
	return n.dialectOf(&Subject{
		Signal: Traces, Scope: scope.Name(), Version: scope.Version(), Names: []string{span.Name()}, Attrs: span.Attributes(),
	})
}

// LogDialect does the same for a log record.
func (n *Normaliser) LogDialect(scope pcommon.InstrumentationScope, record plog.LogRecord) string {
	return n.dialectOf(&Subject{
		Signal: Logs, Scope: scope.Name(), Version: scope.Version(), Names: names(record), Attrs: record.Attributes(),
	})
}

func (n *Normaliser) dialectOf(subject *Subject) string {
	for i := range n.dialects {
		if n.dialects[i].fits(subject) {
			return n.dialects[i].name
		}
	}
	return ""
}
