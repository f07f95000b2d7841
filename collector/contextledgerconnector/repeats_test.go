package contextledgerconnector

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// telling is one record of a call: a span from one second to another, or, without a start, a log record.
type telling struct {
	trace    byte
	from, to int64
	log      bool
	attrs    map[string]any
}

func usage(answer string, input, output int) map[string]any {
	found := map[string]any{"context_ledger.counted_by": "none", "context_ledger.input_tokens": input, "context_ledger.output_tokens": output}
	if answer != "" {
		found["context_ledger.response_id"] = answer
	}
	return found
}

func costing(of map[string]any) map[string]any {
	return merged(of, map[string]any{"context_ledger.cost.amount": 0.25, "context_ledger.cost.unit": "usd"})
}

// tell sends each record in a batch of its own.
func (l *listener) tell(t *testing.T, records ...telling) {
	t.Helper()
	for _, one := range records {
		if one.log {
			made := logs("claude_code.api_request", one.attrs)
			record := made.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
			record.SetTimestamp(pcommon.Timestamp(one.to * 1e9))
			record.SetTraceID(pcommon.TraceID{one.trace})
			require.NoError(t, l.logs.ConsumeLogs(context.Background(), made))
			continue
		}
		made := spans(one.attrs)
		span := made.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		span.SetTraceID(pcommon.TraceID{one.trace})
		span.SetSpanID(pcommon.SpanID{one.trace, byte(one.from), byte(one.to)})
		span.SetStartTimestamp(pcommon.Timestamp(one.from * 1e9))
		span.SetEndTimestamp(pcommon.Timestamp(one.to * 1e9))
		require.NoError(t, l.traces.ConsumeTraces(context.Background(), made))
	}
}

// repeat is what came of an answer with one id, and how many calls that is.
type repeat struct {
	name, why string
	records   []telling
	calls     int64
}

// first is a call that lasted from second 100 to 105.
var first = telling{1, 100, 105, false, usage("r", 2600, 12)}

var repeats = []repeat{
	{
		"by two instrumentations, one inside the other", "Both lasted at one time and count the same.",
		[]telling{first, {1, 101, 104, false, usage("r", 2600, 12)}}, 1,
	},
	{
		"by two instrumentations in traces of their own", "A span that is not current begins a trace; the time is still the same.",
		[]telling{first, {2, 101, 104, false, usage("r", 2600, 12)}}, 1,
	},
	{
		"by an instrumentation that leaves out what was written", "One count differs, the other does not: it was read otherwise.",
		[]telling{first, {1, 101, 104, false, usage("r", 2200, 12)}}, 1,
	},
	{
		"by an instrumentation that knows no counts", "What is unknown contradicts nothing.",
		[]telling{first, {1, 101, 104, false, map[string]any{"context_ledger.counted_by": "none", "context_ledger.response_id": "r"}}}, 1,
	},
	{
		"as a span and as a log record", "A record tells when the call ended.",
		[]telling{first, {1, 0, 105, true, usage("r", 2600, 12)}}, 1,
	},
	{
		"as a log record that is late, and then as a span", "It does not tell how long the call took, and may tell when it was written.",
		[]telling{{1, 0, 126, true, usage("r", 2600, 12)}, first}, 1,
	},
	{
		"again after a kill", "The same record is the same call.",
		[]telling{first, first}, 1,
	},
	{
		"again by a gateway that keeps answers", "It began after the first one was over; the counts are those of the answer.",
		[]telling{first, {2, 110, 111, false, usage("r", 2600, 12)}}, 2,
	},
	{
		"three times by a gateway that keeps answers, two of them told both ways", "Each record finds the call at its time.",
		[]telling{
			first, {2, 110, 111, false, usage("r", 2600, 12)}, {1, 0, 105, true, usage("r", 2600, 12)},
			{2, 0, 111, true, usage("r", 2600, 12)}, {3, 120, 121, false, usage("r", 2600, 12)},
		}, 3,
	},
	{
		"of two calls at one time, by a server that gives every answer one id", "They count neither the same prompt nor the same answer.",
		[]telling{first, {2, 101, 104, false, usage("r", 5000, 40)}}, 2,
	},
}

// What tells one call from two where the id of its answer does not: when it lasted and what it counted.
func TestAnswersWithOneID(t *testing.T) {
	for _, c := range repeats {
		t.Run(c.name, func(t *testing.T) {
			told := newListener(t, createDefaultConfig().(*Config))
			told.tell(t, c.records...)
			told.stop(t)
			assert.Equal(t, c.calls, told.total("context_ledger.calls"), c.why)
		})
	}
}

// Log records of an agent that tells of an answer again and again, without the id of a request: each answer is one call, and
// the first record of it is counted (case AC24).
func TestLinesThatTellOfAnAnswerAgain(t *testing.T) {
	const lines, answers = 368, 171
	told := newListener(t, createDefaultConfig().(*Config))
	for line := range lines {
		answer := fmt.Sprint("msg-", line*answers/lines)
		told.tell(t, telling{0, 0, int64(100 + 5*line), true, usage(answer, 2600, 12+line)})
	}
	told.stop(t)
	assert.EqualValues(t, answers, told.total("context_ledger.calls"))
}

// A child's log that repeats all that its parent said adds its own calls alone (case AC25).
func TestLogThatRepeatsItsParents(t *testing.T) {
	told := newListener(t, createDefaultConfig().(*Config))
	for range 2 {
		for at := range int64(1000) {
			told.tell(t, telling{0, 0, at, true, usage(fmt.Sprint("parent-", at), 2600, 12)})
		}
	}
	told.tell(t, telling{0, 0, 1001, true, usage("child-1", 2600, 12)}, telling{0, 0, 1002, true, usage("child-2", 2600, 12)})
	told.stop(t)
	assert.EqualValues(t, 1002, told.total("context_ledger.calls"))
}

// Calls of subagents are calls of their session, and are told by whose they are (case AC26).
func TestCallsOfSubagents(t *testing.T) {
	told := newListener(t, createDefaultConfig().(*Config))
	for agent, calls := range map[string]int{"main": 27_925, "explore": 15_191} {
		batch := make([]map[string]any, calls)
		for at := range batch {
			batch[at] = merged(usage(fmt.Sprint(agent, at), 2600, 12), map[string]any{
				"context_ledger.session_id": "s", "context_ledger.agent": agent, "context_ledger.request_kind": "agent",
			})
		}
		require.NoError(t, told.traces.ConsumeTraces(context.Background(), spans(batch...)))
	}
	told.stop(t)
	counted := map[string]int64{}
	for _, point := range told.points("context_ledger.calls") {
		agent, _ := point.Attributes().Get("gen_ai.agent.name")
		counted[agent.AsString()] = point.IntValue()
	}
	assert.Equal(t, map[string]int64{"main": 27_925, "explore": 15_191}, counted)
}

// A cost is counted once for each call, whichever of its records tells it and which comes first.
func TestCostIsInOneOfTwoRecords(t *testing.T) {
	span := func(trace byte, answer string, from int64) telling {
		return telling{trace, from, from + 5, false, usage(answer, 2600, 12)}
	}
	record := func(trace byte, answer string, to int64) telling {
		return telling{trace, 0, to, true, costing(usage(answer, 2600, 12))}
	}
	paid := telling{1, 100, 105, false, costing(usage("r", 2600, 12))}
	counted := telling{1, 100, 105, false, merged(usage("r", 2600, 12), map[string]any{"context_ledger.counted_by": "sdk", "context_ledger.entry_id": "e"})}
	for _, c := range []struct {
		name, why string
		records   []telling
		calls     int64
		cost      float64
	}{
		{"the record comes first", "As it always was.", []telling{record(1, "", 105), span(1, "", 100)}, 1, 0.25},
		{"the span comes first", "What the record tells is added.", []telling{span(1, "", 100), record(1, "", 105)}, 1, 0.25},
		{"the same with the id of an answer", "By that they are one.", []telling{span(1, "r", 100), record(1, "r", 105)}, 1, 0.25},
		{"the record comes again", "It was added.", []telling{span(1, "", 100), record(1, "", 105), record(1, "", 105)}, 1, 0.25},
		{
			"two calls of a turn that count the same", "Each record pays for one of them.",
			[]telling{span(1, "", 100), span(1, "", 110), record(1, "", 105), record(1, "", 115)}, 2, 0.5,
		},
		{
			"two calls of a turn that count the same, of which one record comes again", "A second delivery pays for nothing.",
			[]telling{span(1, "", 100), span(1, "", 110), record(1, "", 105), record(1, "", 105)}, 2, 0.25,
		},
		{"both tell it", "It is one cost.", []telling{paid, record(1, "r", 105)}, 1, 0.25},
		{"the SDK counts the call", "It counts the cost, too.", []telling{counted, record(1, "r", 105)}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			told := newListener(t, createDefaultConfig().(*Config))
			told.tell(t, c.records...)
			told.stop(t)
			sum := 0.0
			for _, point := range told.points("context_ledger.cost") {
				sum += point.DoubleValue()
			}
			assert.Equal(t, c.calls, told.total("context_ledger.calls"), c.why)
			assert.InDelta(t, c.cost, sum, 1e-9, c.why)
		})
	}
}

// However many calls a server gives one id, no more of them are held than the window has room for.
func TestOneIDForAllIsBounded(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.Dedup.MaxEntries = 100
	told := newListener(t, config)
	for at := range int64(1000) {
		told.tell(t, telling{1, 100 + 10*at, 101 + 10*at, false, usage("r", 2600, 12)})
	}
	window := told.counter().window
	held := window.young.many + window.old.many
	told.stop(t)
	assert.LessOrEqual(t, held, int32(200))
	assert.EqualValues(t, 1000, told.total("context_ledger.calls"))
}
