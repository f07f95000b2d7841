package contextledgerconnector

import (
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
	// told says whether it is a span or a log record, of which event is the name, and read that all of it was read.
	told  kind
	event string
	read  bool
	// from has the attributes that are taken over of its resource.
	from  []pair
	found []measurement
	// marks by which the window knows it, and those by which the window is to know it from now on.
	known, kept []mark
	// text is where marks are spelled, and counts is where the counts of the call are.
	text    []byte
	counts  [12]int64
	counted int
}

// clear makes it an entry of which nothing is known, and keeps its room.
func (e *entry) clear() {
	e.call, e.place, e.told, e.event, e.read, e.from = call.Call{}, place{}, 0, "", false, nil
	clear(e.found)
	e.found, e.known, e.kept, e.counted = e.found[:0], e.known[:0], e.kept[:0], 0
}

// marked says whether it stands on a record who counts it; most records are none of ours.
func marked(attrs pcommon.Map) bool {
	_, told := attrs.Get(semconv.ContextLedgerCountedBy)
	return told
}

// readSpan reads a span that is marked.
func (e *entry) readSpan(span ptrace.Span) {
	e.told = ofSpan
	e.place = place{span.TraceID(), span.SpanID(), span.StartTimestamp(), span.EndTimestamp()}
	e.readAll(span.Attributes())
}

// readRecord reads a log record that is marked.
func (e *entry) readRecord(record plog.LogRecord) {
	e.told, e.event = ofRecord, record.EventName()
	e.place = place{record.TraceID(), record.SpanID(), 0, record.Timestamp()}
	e.readAll(record.Attributes())
}

func (e *entry) readAll(attrs pcommon.Map) {
	e.readCall(attrs)
	e.call.Place.Trace = e.place.trace
	switch {
	case e.event == semconv.EventOutcome:
		word := text(attrs, semconv.ContextLedgerTaskOutcome)
		e.found = append(e.found, one(measureTasks, word))
		e.markTask(text(attrs, semconv.ContextLedgerOutcomeID), word)
	case e.call.Compaction.Outcome != "":
		e.found = compaction(e.found, &e.call)
		e.markCompaction()
	default:
		e.found = measurements(e.found, &e.call)
		e.markCall()
	}
	e.read = true
}

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
func (e *entry) remembered(paid bool) memory {
	from, to := e.lasted()
	return memory{from: from, to: to, input: e.input(), output: e.output(), paid: paid}
}

func text(attrs pcommon.Map, key string) string {
	value, ok := attrs.Get(key)
	if !ok || value.Type() != pcommon.ValueTypeStr {
		return ""
	}
	return value.Str()
}
