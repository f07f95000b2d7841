package contextledgerconnector

import (
	"encoding/hex"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// place is where a point leads: the span of a call, if there is one, and when it was. A log record has no start.
type place struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
	start pcommon.Timestamp
	at    pcommon.Timestamp
}

// entry is a record that tells something to count: of a call, a compaction, or the end of a task.
type entry struct {
	call  call.Call
	place place
	found []measurement
	// marks by which the window knows it, and those by which the window is to know it from now on.
	known, kept []string
	// occasion is what only this record and a second delivery of it have in common.
	occasion string
}

// What marks begin with: of spans and of log records, of an answer that is told without an entry of ours and with one.
const (
	spanMark        = "s:"
	recordMark      = "l:"
	answerMark      = "r:"
	entryAnswerMark = "x:"
)

// readSpan gives the entry that a span is; nil where it is none.
func readSpan(span ptrace.Span) *entry {
	if !marked(span.Attributes()) {
		return nil
	}
	trace, id := span.TraceID(), span.SpanID()
	occasion := spanMark + hex.EncodeToString(trace[:]) + hex.EncodeToString(id[:])
	return read(span.Attributes(), "", occasion, place{trace, id, span.StartTimestamp(), span.EndTimestamp()})
}

// readRecord gives the entry that a log record is; nil where it is none. Many records can stand in one span, so that
// one without an id is told from others by what it says.
func readRecord(record plog.LogRecord) *entry {
	event := record.EventName()
	if !marked(record.Attributes()) || event == semconv.EventIdentityChanged {
		return nil
	}
	occasion := recordMark + event + "\x00" + strconv.FormatUint(uint64(record.Timestamp()), 36)
	return read(record.Attributes(), event, occasion, place{record.TraceID(), record.SpanID(), 0, record.Timestamp()})
}

// marked says whether it stands on a record who counts it; most records are none of ours.
func marked(attrs pcommon.Map) bool {
	_, told := attrs.Get(semconv.ContextLedgerCountedBy)
	return told
}

// figures reads what is counted of an entry, or tells it from others: not the lists that only people look at.
var figures = call.NewReader(
	semconv.ContextLedgerPrefixLocator, semconv.ContextLedgerFinishReasons, semconv.ContextLedgerUsageFlags,
	semconv.ContextLedgerMissEvidence, semconv.ContextLedgerMissDetail, semconv.ContextLedgerMissSecondary,
)

// spare has entries that were counted, to be used anew: what is known of a call takes more than a kilobyte.
var spare = sync.Pool{New: func() any { return new(entry) }}

// release lays an entry aside, of which nothing is kept.
func (e *entry) release() {
	clear(e.found)
	*e = entry{found: e.found[:0]}
	spare.Put(e)
}

func read(attrs pcommon.Map, event, occasion string, where place) *entry {
	found := spare.Get().(*entry)
	found.place, found.occasion = where, occasion
	figures.Read(attrs, &found.call)
	found.call.Place.Trace = where.trace
	switch {
	case event == semconv.EventOutcome:
		found.readTask(attrs)
	case found.call.Compaction.Outcome != "":
		found.readCompaction(occasion)
	default:
		found.found = measurements(found.found, &found.call)
		found.readMarks(occasion)
	}
	return found
}

// readTask reads the end of a task, which is told by one word; another word that comes later is told again.
func (e *entry) readTask(attrs pcommon.Map) {
	word := text(attrs, semconv.ContextLedgerTaskOutcome)
	e.found = []measurement{one(semconv.MetricTasks, pair{semconv.ContextLedgerTaskOutcome, word})}
	e.known = []string{"t:" + text(attrs, semconv.ContextLedgerOutcomeID) + "\x00" + e.call.Task.ID + "\x00" + word}
	e.kept = e.known
}

func (e *entry) readCompaction(occasion string) {
	e.found = compaction(&e.call)
	e.known = []string{"c:" + occasion}
	if id := e.call.Compaction.Event; id != "" {
		e.known = []string{"c:" + id}
	}
	e.kept = e.known
}

// readMarks finds what tells the call from others. A ledger's own id does so even where a gateway gives two calls the
// same answer; a record without one is known by the id of its answer, and so is one with it if another instrumentation
// told that answer before. One without either is known by where and when it was told, and by what a span and a log
// record of one call say alike.
func (e *entry) readMarks(occasion string) {
	id, answer := e.call.Origin.EntryID, e.call.Request.ResponseID
	switch {
	case id != "" && answer != "":
		e.known, e.kept = []string{"e:" + id, answerMark + answer}, []string{"e:" + id, entryAnswerMark + answer}
	case id != "":
		e.known = []string{"e:" + id}
		e.kept = e.known
	case answer != "":
		e.known, e.kept = []string{answerMark + answer, entryAnswerMark + answer}, []string{answerMark + answer}
	default:
		e.known = []string{e.itself()}
		e.kept = e.known
		e.alike(occasion[:len(spanMark)])
	}
}

// alike adds what a span and a log record without an id in common say alike: each knows the other one by it, and never
// one of its own kind, of which two are two calls.
func (e *entry) alike(own string) {
	like, other := e.call.Likeness(), spanMark
	if own == spanMark {
		other = recordMark
	}
	if like != "" {
		e.known, e.kept = append(e.known[:1:1], other+like), append(e.kept[:1:1], own+like)
	}
}

// itself is the mark of the record alone.
func (e *entry) itself() string { return e.occasion + "\x00" + e.said() }

// lasted gives from when to when the call lasted, in Unix nanoseconds, as far as the record tells.
func (e *entry) lasted() (from, to int64) {
	to = int64(e.place.at)
	from = to
	switch start, took := e.call.Place.Start, e.call.Request.Duration; {
	case e.place.start > 0:
		from = int64(e.place.start)
	case !start.IsZero():
		from = start.UnixNano()
	case took != nil:
		from = to - int64(*took*float64(time.Second))
	}
	return min(from, to), to
}

func (e *entry) input() int64 { return known(e.call.Usage.Input) }

func (e *entry) output() int64 { return known(e.call.Usage.Output) }

func known(count *int64) int64 {
	if count == nil {
		return -1
	}
	return *count
}

// pays says whether the entry tells a cost that is counted.
func (e *entry) pays() bool {
	return e.call.Cost.Unit == semconv.CostUnitUsd && e.call.Cost.Amount != nil
}

// remembered is what the window is to remember of the entry.
func (e *entry) remembered(paid bool) *memory {
	made := &memory{input: e.input(), output: e.output(), paid: paid}
	made.from, made.to = e.lasted()
	return made
}

// said tells two calls without an id apart that were told at the same time.
func (e *entry) said() string {
	c := &e.call
	return c.Task.Session + "\x00" + c.Model.Requested + "\x00" + digits(c.Usage.Input) + "\x00" + digits(c.Usage.Output)
}

func digits(count *int64) string {
	if count == nil {
		return ""
	}
	return strconv.FormatInt(*count, 10)
}

func text(attrs pcommon.Map, key string) string {
	value, ok := attrs.Get(key)
	if !ok || value.Type() != pcommon.ValueTypeStr {
		return ""
	}
	return value.Str()
}
