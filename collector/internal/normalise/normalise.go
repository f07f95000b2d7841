// Package normalise owns what a span or a log record of any known dialect says of a model call: whether it is one, what
// its names are here, and whether its input tokens include those of the cache. Everything about a dialect is data
// (dialects.yaml, and an operator's table over it). Functions here read attributes, keep nothing of them, and change
// nothing: what a record says under its own names stays as it is.
package normalise

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/facts"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Kind is what a record is.
type Kind int

// What a record can be. Aggregate is the usage of other calls once more, which is annotated and never counted; of a
// Compaction and an Outcome, which are no calls, only the fields that concern them are known.
const (
	None Kind = iota
	Call
	Aggregate
	Compaction
	Outcome
)

var kinds = map[string]Kind{"call": Call, "aggregate": Aggregate, "compaction": Compaction, "none": None}

// Ours is the dialect of entries that a process with the ledger in it wrote.
const Ours = "context_ledger"

// unknownSurface is the surface of a host that no fact names.
const unknownSurface = "unknown"

// Host is what an operator says of a host: the surface that it serves, and the provider if it is not the surface's.
type Host struct {
	Surface  string
	Provider string
}

// Options are an operator's. Hosts has hosts, with or without a port, in lower case. Infer takes a cached part above the
// input for a proof that the input leaves it out. DigestKey keys the digests that stand in names (empty: they are bare).
// Content has captured requests read along.
type Options struct {
	Table     Table
	Hosts     map[string]Host
	Lore      *facts.Lore
	Infer     bool
	DigestKey string
	Content   bool
}

// Normaliser reads records. It may be used by many goroutines at once.
type Normaliser struct {
	dialects []dialect
	showings []showing
	sieve    *sieve
	origin   *origins
	infer    bool
	capture  bool
	export   canonical.Exporter
	readings sync.Pool
}

type dialect struct {
	name    string
	when    []Condition
	roles   []Role
	layout  layout
	usage   []Rule
	content []string
	capture []Capture
}

// New makes a normaliser of the shipped table under an operator's. The error says what in it cannot be.
func New(options Options) (*Normaliser, error) {
	base, err := ReadTable(shipped)
	if err != nil {
		return nil, err
	}
	table := options.Table.Over(base)
	if err := table.Validate(); err != nil {
		return nil, err
	}
	made := &Normaliser{
		origin:  newOrigins(table.Providers, options.Hosts, options.Lore),
		infer:   options.Infer,
		capture: options.Content,
		export:  canonical.NewExporter(options.DigestKey),
		sieve:   newSieve(),
	}
	for _, own := range table.Dialects {
		whole := table.whole(own)
		made.dialects = append(made.dialects, dialect{
			name: whole.Name, when: whole.When, roles: whole.Roles, layout: compile(whole.Fields), usage: whole.Usage,
			content: whole.Content, capture: whole.Captures,
		})
	}
	for i := range made.dialects {
		made.showings = append(made.showings, made.sieve.showings(&made.dialects[i])...)
	}
	return made, nil
}

// Span gives what a span says of a call.
func (n *Normaliser) Span(scope pcommon.InstrumentationScope, span ptrace.Span) (call.Call, Kind) {
	var found call.Call
	in := n.Spans(scope)
	kind, _ := in.Span(span, &found)
	return found, kind
}

// Log gives what a log record says of a call.
func (n *Normaliser) Log(scope pcommon.InstrumentationScope, record plog.LogRecord) (call.Call, Kind) {
	var found call.Call
	in := n.Logs(scope)
	kind, _ := in.Log(record, &found)
	return found, kind
}

// Scope reads the records of one scope.
type Scope struct {
	n    *Normaliser
	from source
	ways []showing
}

// Spans reads the spans of a scope.
func (n *Normaliser) Spans(scope pcommon.InstrumentationScope) Scope {
	return n.scope(source{Traces, scope.Name(), scope.Version()})
}

// Logs reads the log records of a scope.
func (n *Normaliser) Logs(scope pcommon.InstrumentationScope) Scope {
	return n.scope(source{Logs, scope.Name(), scope.Version()})
}

func (n *Normaliser) scope(from source) Scope { return Scope{n, from, n.within(from)} }

// Span reads what a span says of a call into one of which nothing is known, and gives the span's dialect, whether it tells
// of a call or of something else; empty where it has none.
func (s *Scope) Span(span ptrace.Span, into *call.Call) (Kind, string) {
	named := [...]string{span.Name()}
	kind, dialect := s.read(named[:], span.Attributes(), into)
	if kind == None {
		return None, dialect
	}
	into.Place = call.Place{
		Trace: span.TraceID(), Span: span.SpanID(), Parent: span.ParentSpanID(),
		Start: span.StartTimestamp().AsTime(), End: span.EndTimestamp().AsTime(),
	}
	if span.DroppedAttributesCount() > 0 {
		into.Content = nil
	}
	if kind == Call && into.Request.ErrorType == "" && span.Status().Code() == ptrace.StatusCodeError {
		into.Request.ErrorType = unnamedError
	}
	return kind, dialect
}

// unnamedError is the standard's word for an error of which the class is not told.
const unnamedError = "_OTHER"

// Log reads what a log record says of a call, as Span does. A dialect's record is written when the call is over; an entry
// of ours says when it began. The span that a record stands in is that of the call only for events that belong to it: a
// client's record stands in the span of its turn, if in any.
func (s *Scope) Log(record plog.LogRecord, into *call.Call) (Kind, string) {
	named := called(record)
	kind, dialect := s.read(named, record.Attributes(), into)
	if kind == None {
		return None, dialect
	}
	if record.DroppedAttributesCount() > 0 {
		into.Content = nil
	}
	start := into.Place.Start
	into.Place = call.Place{Trace: record.TraceID(), Parent: record.SpanID(), Start: start, End: moment(record)}
	if into.Ours() || slices.Contains(named, details) {
		into.Place.Span, into.Place.Parent = record.SpanID(), pcommon.SpanID{}
	}
	lasted := elapsed(into.Request.Duration)
	if start.IsZero() {
		into.Place.Start = into.Place.End.Add(-lasted)
	} else {
		into.Place.End = start.Add(lasted)
	}
	return kind, dialect
}

// details is the standard's event beside the span of a call.
const details = "gen_ai.client.inference.operation.details"

func moment(record plog.LogRecord) time.Time {
	if record.Timestamp() != 0 {
		return record.Timestamp().AsTime()
	}
	return record.ObservedTimestamp().AsTime()
}

// elapsed gives a duration; no call lasts longer than a day, and what says so is not believed.
func elapsed(seconds *float64) time.Duration {
	const day = 24 * 60 * 60
	if seconds == nil || *seconds > day {
		return 0
	}
	return time.Duration(*seconds * float64(time.Second))
}

// called gives what a log record calls itself, without what it does not say.
func called(record plog.LogRecord) []string {
	var found []string
	if name := record.EventName(); name != "" {
		found = append(found, name)
	}
	if name, ok := record.Attributes().Get("event.name"); ok && name.Type() == pcommon.ValueTypeStr {
		found = append(found, name.Str())
	}
	if body := record.Body(); body.Type() == pcommon.ValueTypeStr && len(body.Str()) <= maxName {
		found = append(found, body.Str())
	}
	return found
}

// maxName is the longest text of a log record that can be its name, in bytes.
const maxName = 128

// Read gives what a record says of a call. Its place and times are not known here.
func (n *Normaliser) Read(subject Subject) (call.Call, Kind) {
	var found call.Call
	scope := n.scope(source{subject.Signal, subject.Scope, subject.Version})
	kind, _ := scope.read(subject.Names, subject.Attrs, &found)
	return found, kind
}

func (s *Scope) read(named []string, attrs pcommon.Map, into *call.Call) (Kind, string) {
	seen := s.n.sieve.seen(attrs)
	subject := Subject{Signal: s.from.signal, Scope: s.from.scope, Version: s.from.version, Names: named, Attrs: attrs}
	own := shown(s.ways, seen, &subject)
	name := ""
	if own != nil {
		name = own.name
	}
	if kind, ok := s.n.again(&subject, seen, into); ok || own == nil {
		return kind, name
	}
	kind := s.n.foreign(own, &subject, seen, into)
	if kind == None {
		into.Reset()
	}
	return kind, name
}

// foreign reads a record by its dialect.
func (n *Normaliser) foreign(d *dialect, subject *Subject, seen marks, found *call.Call) Kind {
	into, _ := n.readings.Get().(*reading)
	if into == nil {
		into = &reading{}
	}
	defer n.release(into)
	into.call = found
	return n.read(d, subject, seen, into)
}

// release empties a reading, for nothing of a record is kept, and lays it aside for the next one.
func (n *Normaliser) release(used *reading) {
	clear(used.values)
	*used = reading{values: used.values[:0]}
	n.readings.Put(used)
}

func (d *dialect) role(subject *Subject) Kind {
	for i := range d.roles {
		if d.roles[i].When.holds(known{Subject: subject}) {
			return kinds[d.roles[i].Is]
		}
	}
	return None
}

func (n *Normaliser) read(d *dialect, subject *Subject, seen marks, into *reading) Kind {
	kind := d.role(subject)
	if kind == None {
		return None
	}
	said := ours(subject.Attrs, seen)
	if said != nil {
		into.call.Task, into.named = said.Task, said.Task.Session != ""
	}
	d.layout.fill(into, subject.Attrs)
	if !n.settle(d, subject, into, kind) {
		return None
	}
	if said != nil {
		into.call.Fill(said)
	}
	if n.capture && kind == Call {
		into.call.Content = d.captured(subject.Attrs)
	}
	return kind
}

// settle makes a call of what was read; false where there is nothing to tell.
func (n *Normaliser) settle(d *dialect, subject *Subject, into *reading, kind Kind) bool {
	n.origin.name(into)
	into.doubts()
	found := into.call
	found.Origin.Dialect, found.Origin.Aggregate = d.name, kind == Aggregate
	if kind == Compaction {
		n.complete(into)
		*found = compaction(found)
		return true
	}
	found.Compaction = call.Compaction{Seen: found.Compaction.Seen}
	rule := d.usageRule(known{subject, found.Model.Provider, found.Model.Requested}, into.from)
	found.Origin.Rule = settle(&found.Usage, into.counted, rule, n.infer)
	n.complete(into)
	return kind != Aggregate || counted(&found.Usage)
}

// ours gives what stands under our own names on a record of another dialect, as a program may write it that knows its
// task or its session; nil where nothing does.
func ours(attrs pcommon.Map, seen marks) *call.Call {
	if seen&markOurs == 0 {
		return nil
	}
	found := call.Read(attrs)
	return &found
}

// again reads a record that is an entry of ours already, or that a normaliser read before; false where it is neither.
func (n *Normaliser) again(subject *Subject, seen marks, into *call.Call) (Kind, bool) {
	kind, ok := n.written(subject, seen)
	if !ok || kind == None {
		return None, ok
	}
	into.Read(subject.Attrs)
	if into.Origin.Dialect == "" {
		into.Origin.Dialect = Ours
	}
	if into.Origin.Aggregate && kind == Call {
		kind = Aggregate
	}
	return kind, true
}

func (n *Normaliser) written(subject *Subject, seen marks) (Kind, bool) {
	if subject.Signal == Logs {
		for _, name := range subject.Names {
			if kind, ok := events[name]; ok {
				return kind, true
			}
		}
	}
	if seen&markDialect != 0 {
		if said, _ := subject.Attrs.Get(semconv.ContextLedgerDialect); said.Type() == pcommon.ValueTypeStr {
			return n.kindOf(said.Str(), subject), true
		}
	}
	return Call, seen&markEntry != 0
}

// events has what our own log events are. The change of an identity is told by the entry too.
var events = map[string]Kind{
	semconv.EventEntry: Call, semconv.EventCompaction: Compaction, semconv.EventOutcome: Outcome,
	semconv.EventIdentityChanged: None,
}

// kindOf gives what a record was taken for when it was read before, perhaps by a table that is not ours.
func (n *Normaliser) kindOf(name string, subject *Subject) Kind {
	for i := range n.dialects {
		if n.dialects[i].name == name {
			return n.dialects[i].role(subject)
		}
	}
	if _, compacts := subject.Attrs.Get(semconv.ContextLedgerCompactionKind); compacts {
		return Compaction
	}
	return Call
}
