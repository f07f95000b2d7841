package contextledgerprocessor

import (
	_ "embed"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.yaml.in/yaml/v3"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/normalise"
)

// ours is what all names of the ledger begin with; what stands under them is never content.
const ours = "context_ledger."

//go:embed content.yaml
var shippedContent []byte

// remover takes captured text away: attributes, and whole events.
type remover struct {
	attributes, events, bodies names
	dialects                   map[string]names
}

// newRemover makes a remover of the shipped names, further attributes, and those that are content in a dialect.
func newRemover(further []string, reader *normalise.Normaliser) (*remover, error) {
	var table struct{ Attributes, Events, Bodies []string }
	if err := yaml.Unmarshal(shippedContent, &table); err != nil {
		return nil, err
	}
	made := &remover{
		attributes: newNames(append(table.Attributes, further...)),
		events:     newNames(table.Events),
		bodies:     newNames(table.Bodies),
		dialects:   map[string]names{},
	}
	for _, dialect := range reader.Dialects() {
		made.dialects[dialect] = newNames(reader.ContentOf(dialect))
	}
	return made, nil
}

// cleanSpan takes captured text away from a span of a dialect and its events.
func (r *remover) cleanSpan(span ptrace.Span, dialect string) {
	own := r.dialects[dialect]
	r.clean(span.Attributes(), own)
	for _, event := range span.Events().All() {
		if r.events.has(event.Name()) {
			empty(event.Attributes())
		} else {
			r.clean(event.Attributes(), own)
		}
	}
}

// cleanRecord takes captured text away from a log record of a dialect.
func (r *remover) cleanRecord(record plog.LogRecord, dialect string) {
	name := nameOf(record)
	if r.events.has(name) {
		empty(record.Attributes())
	} else {
		r.clean(record.Attributes(), r.dialects[dialect])
	}
	if (r.events.has(name) || r.bodies.has(name)) && record.Body().AsString() != name {
		pcommon.NewValueEmpty().CopyTo(record.Body())
	}
}

func (r *remover) clean(attrs pcommon.Map, own names) {
	attrs.RemoveIf(func(name string, _ pcommon.Value) bool {
		return !strings.HasPrefix(name, ours) && (r.attributes.has(name) || own.has(name))
	})
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

// names is a set of names, some of them open at the end. The zero value has none.
type names struct {
	exact    map[string]struct{}
	prefixes []string
}

func newNames(patterns []string) names {
	made := names{exact: map[string]struct{}{}}
	for _, pattern := range patterns {
		if start, open := strings.CutSuffix(pattern, "*"); open {
			made.prefixes = append(made.prefixes, start)
		} else {
			made.exact[pattern] = struct{}{}
		}
	}
	return made
}

func (n names) has(name string) bool {
	if _, ok := n.exact[name]; ok {
		return true
	}
	return slices.ContainsFunc(n.prefixes, func(start string) bool { return strings.HasPrefix(name, start) })
}
