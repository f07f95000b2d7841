package contextledgerprocessor

import (
	_ "embed"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.yaml.in/yaml/v3"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/names"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/normalise"
)

// ours is what all names of the ledger begin with; what stands under them is never content.
const ours = "context_ledger."

//go:embed content.yaml
var shippedContent []byte

// remover takes captured text away: attributes, and whole events. Attributes are those of a record's dialect, under the
// empty name those of a record that has none, and under `unread` those of all dialects.
type remover struct {
	events, bodies *names.Set
	attributes     map[string]*names.Set
	// written has the dialects in which a name that the processor itself writes is one of the content.
	written map[string]bool
}

// newRemover makes a remover of the shipped names, further attributes, and those that are content in a dialect.
func newRemover(further []string, reader *normalise.Normaliser) (*remover, error) {
	var table struct{ Attributes, Events, Bodies []string }
	if err := yaml.Unmarshal(shippedContent, &table); err != nil {
		return nil, err
	}
	made := &remover{
		events: names.NewSet(table.Events...), bodies: names.NewSet(table.Bodies...), attributes: map[string]*names.Set{},
		written: map[string]bool{},
	}
	all := slices.Concat(table.Attributes, further)
	made.attributes[""] = names.NewSet(all...)
	for _, dialect := range reader.Dialects() {
		own := reader.ContentOf(dialect)
		made.attributes[dialect] = names.NewSet(slices.Concat(table.Attributes, further, own)...)
		all = append(all, own...)
	}
	made.attributes[unread] = names.NewSet(all...)
	for dialect, gone := range made.attributes {
		made.written[dialect] = slices.ContainsFunc(call.StandardNames(), gone.Has)
	}
	return made, nil
}

// stains says whether a span of a dialect can have text to be taken away once all is written: most have none, and need not be
// looked at again.
func (r *remover) stains(span ptrace.Span, dialect string) bool {
	if span.Events().Len() > 0 || r.written[dialect] {
		return true
	}
	gone := r.attributes[dialect]
	for name := range span.Attributes().All() {
		if gone.Has(name) {
			return true
		}
	}
	return false
}

// cleanSpan takes captured text away from a span of a dialect and its events.
func (r *remover) cleanSpan(span ptrace.Span, dialect string) {
	gone := r.attributes[dialect]
	clean(span.Attributes(), gone)
	if span.Events().Len() == 0 {
		return
	}
	for _, event := range span.Events().All() {
		if r.events.Has(event.Name()) {
			empty(event.Attributes())
		} else {
			clean(event.Attributes(), gone)
		}
	}
}

// cleanRecord takes captured text away from a log record of a dialect.
func (r *remover) cleanRecord(record plog.LogRecord, dialect string) {
	name := nameOf(record)
	if r.events.Has(name) {
		empty(record.Attributes())
	} else {
		clean(record.Attributes(), r.attributes[dialect])
	}
	if (r.events.Has(name) || r.bodies.Has(name)) && record.Body().AsString() != name {
		pcommon.NewValueEmpty().CopyTo(record.Body())
	}
}

func clean(attrs pcommon.Map, gone *names.Set) {
	attrs.RemoveIf(func(name string, _ pcommon.Value) bool { return gone.Has(name) && !strings.HasPrefix(name, ours) })
}

// empty takes everything away but what is the ledger's own, and what the event is called.
func empty(attrs pcommon.Map) {
	attrs.RemoveIf(func(name string, _ pcommon.Value) bool {
		return !strings.HasPrefix(name, ours) && name != eventName
	})
}

// eventName is the attribute that names a log record in dialects that are older than its own field for that.
const eventName = "event.name"

// nameOf gives what a log record is called: in its field, its attribute or its text.
func nameOf(record plog.LogRecord) string {
	if name := record.EventName(); name != "" {
		return name
	}
	if name, ok := record.Attributes().Get(eventName); ok && name.Type() == pcommon.ValueTypeStr {
		return name.Str()
	}
	if body := record.Body(); body.Type() == pcommon.ValueTypeStr {
		return body.Str()
	}
	return ""
}
