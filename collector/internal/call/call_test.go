package call_test

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

func ptr[T any](value T) *T { return &value }

func attributes(t *testing.T, raw map[string]any) pcommon.Map {
	t.Helper()
	attrs := pcommon.NewMap()
	assert.NoError(t, attrs.FromRaw(raw))
	return attrs
}

// What a process wrote is read as it wrote it, and written again it is the same.
func TestReadGivesWhatAProcessWrote(t *testing.T) {
	raw := map[string]any{
		semconv.ContextLedgerEntryID:         "e-1",
		semconv.ContextLedgerStartedAt:       1793344495.25,
		semconv.ContextLedgerSessionID:       "s-1",
		semconv.ContextLedgerModelID:         "kimi-k3",
		semconv.ContextLedgerInputTokens:     int64(55000),
		semconv.ContextLedgerCachedTokens:    int64(0),
		semconv.ContextLedgerCacheOutcome:    "miss",
		semconv.ContextLedgerMissDetail:      []any{"clock"},
		semconv.ContextLedgerMissSignificant: true,
		semconv.ContextLedgerPrefixLocator:   []any{"8:40960:4f0c9d21aa73be65", "0:18432:b81d27e05c4936fa"},
		semconv.ContextLedgerCountedBy:       "sdk",
		semconv.ContextLedgerIdleSeconds:     12.5,
	}
	attrs := attributes(t, raw)

	found := call.Read(attrs)

	assert.Equal(t, call.Call{
		Place: call.Place{Start: time.Unix(1793344495, 250_000_000).UTC()},
		Task:  call.Task{Session: "s-1"},
		Model: call.Model{Requested: "kimi-k3"},
		Context: call.Context{Locator: []call.Boundary{
			{Messages: 8, Bytes: 40960, Digest: "4f0c9d21aa73be65"},
			{Messages: 0, Bytes: 18432, Digest: "b81d27e05c4936fa"},
		}},
		Usage: call.Usage{Input: ptr(int64(55000)), CacheRead: ptr(int64(0))},
		Verdict: call.Verdict{
			Outcome: "miss", Detail: []string{"clock"}, Significant: ptr(true), Idle: ptr(12.5),
		},
		Origin: call.Origin{EntryID: "e-1", CountedBy: "sdk"},
	}, found)
	found.Write(attrs)
	assert.Equal(t, raw, attrs.AsRaw())
}

// A process that runs out of room leaves out its own name for what a standard one says; ours goes before it if both
// are there.
func TestReadTakesAStandardNameWhereOursIsLeftOut(t *testing.T) {
	attrs := attributes(t, map[string]any{
		semconv.ContextLedgerEntryID:           "e-1",
		semconv.ContextLedgerCacheReport:       "reported",
		semconv.GenAIRequestModel:              "kimi-k3",
		semconv.GenAIUsageInputTokens:          int64(7),
		semconv.ContextLedgerInputTokens:       int64(107),
		semconv.GenAIUsageCacheReadInputTokens: int64(0),
		semconv.GenAIConversationCompacted:     true,
	})
	for i := range 120 {
		attrs.PutInt(fmt.Sprintf("app.%d", i), 1)
	}

	assert.Equal(t, call.Call{
		Model:      call.Model{Requested: "kimi-k3"},
		Usage:      call.Usage{Report: "reported", Input: ptr(int64(107)), CacheRead: ptr(int64(0))},
		Compaction: call.Compaction{Seen: true},
		Origin:     call.Origin{EntryID: "e-1"},
	}, call.Read(attrs))
}

// A process that had room and did not write a count did not know it: the zero of another instrumentation on the same
// span is none of its words.
func TestReadTakesNoZeroOfAnotherInstrumentation(t *testing.T) {
	found := call.Read(attributes(t, map[string]any{
		semconv.ContextLedgerEntryID:            "e-1",
		semconv.ContextLedgerCacheReport:        "not_reported",
		semconv.GenAIUsageCacheReadInputTokens:  int64(0),
		semconv.GenAIUsageCacheWriteInputTokens: int64(0),
	}))

	assert.Equal(t, call.Usage{Report: "not_reported"}, found.Usage)
}

// A value that is not what the registry says is unknown, never zero and never a failure.
func TestReadKnowsNothingOfValuesOfAnotherType(t *testing.T) {
	found := call.Read(attributes(t, map[string]any{
		semconv.ContextLedgerSessionID:          int64(4),
		semconv.ContextLedgerInputTokens:        "many",
		semconv.ContextLedgerCachedTokens:       int64(-1),
		semconv.ContextLedgerCacheWriteTokens:   math.NaN(),
		semconv.ContextLedgerOutputTokens:       math.Inf(1),
		semconv.ContextLedgerReasoningTokens:    1.5,
		semconv.ContextLedgerCacheWrite5MTokens: int64(math.MaxInt64),
		semconv.ContextLedgerIdleSeconds:        -0.5,
		semconv.ContextLedgerMissDetail:         "clock",
		semconv.ContextLedgerMissSignificant:    "true",
		semconv.ContextLedgerTruncated:          int64(1),
		semconv.ContextLedgerStartedAt:          1e300,
		semconv.ContextLedgerPrefixLocator:      []any{int64(1), "1:2", "-1:2:aa", "1:2:", "99999999999999999999:2:aa"},
	}))

	assert.Equal(t, call.Call{}, found)
}

// A number is one in whichever form a pipeline brought it.
func TestCountReadsEveryFormOfAWholeNumber(t *testing.T) {
	for _, value := range []any{int64(12), 12.0, "12"} {
		attrs := attributes(t, map[string]any{semconv.ContextLedgerInputTokens: value})
		assert.Equal(t, ptr(int64(12)), call.Read(attrs).Usage.Input, "%T", value)
	}
}

// Exactly one of uncached and unreported is known where the input is: a silence about the cache is no zero.
func TestUsageTellsUncachedFromUnreported(t *testing.T) {
	reported := call.Usage{Input: ptr(int64(100)), CacheRead: ptr(int64(60)), CacheWrite: ptr(int64(30))}
	silent := call.Usage{Input: ptr(int64(100))}

	assert.Equal(t, []*int64{ptr(int64(10)), nil, ptr(int64(40))},
		[]*int64{reported.Uncached(), reported.Unreported(), reported.Missed()})
	assert.Equal(t, []*int64{nil, ptr(int64(100)), nil},
		[]*int64{silent.Uncached(), silent.Unreported(), silent.Missed()})
	assert.Equal(t, []*int64{nil, nil}, []*int64{call.Usage{}.Uncached(), call.Usage{}.Unreported()})
	broken := call.Usage{Input: ptr(int64(5)), CacheRead: ptr(int64(10))}
	assert.Equal(t, []*int64{nil, nil, nil}, []*int64{broken.Uncached(), broken.Unreported(), broken.Missed()})
}

// A collector's verdict takes the place of the process's, whose word is kept once, however often it is judged.
func TestJudgeKeepsTheWordOfTheProcess(t *testing.T) {
	found := call.Call{Verdict: call.Verdict{Outcome: "cold", Cause: "cold_start", Confidence: "observed"}}

	found.Judge(call.Verdict{Outcome: "partial", Cause: "retention_expired"})
	found.Judge(call.Verdict{Outcome: "partial", Cause: "model_changed"})

	assert.Equal(t, call.Call{
		Verdict: call.Verdict{By: "collector", Outcome: "partial", Cause: "model_changed"},
		Process: call.Said{Outcome: "cold", Cause: "cold_start"},
	}, found)
}

// The identity is first without a comparable call, and changed only where a part of the cache identity is.
func TestIdentityWordIsThatOfTheCacheIdentity(t *testing.T) {
	words := map[string]call.Context{
		"first":   {},
		"same":    {Comparable: "e-0"},
		"changed": {Comparable: "e-0", IdentityChanged: []string{"repository", "tools_wire"}},
	}
	for want, context := range words {
		assert.Equal(t, want, (&call.Call{Context: context}).IdentityWord())
	}
	repository := call.Context{Comparable: "e-0", IdentityChanged: []string{"repository"}}
	assert.Equal(t, "same", (&call.Call{Context: repository}).IdentityWord())
}

// A collector counts what nobody counts, and no usage twice.
func TestCountableIsWhatNobodyCounts(t *testing.T) {
	for by, want := range map[string]bool{"": true, "none": true, "sdk": false, "off": false, "collector": false} {
		assert.Equal(t, want, (&call.Call{Origin: call.Origin{CountedBy: by}}).Countable(), by)
	}
	assert.False(t, (&call.Call{Origin: call.Origin{Aggregate: true}}).Countable())
}

// A field whose value is not known leaves what stands in the attributes alone.
func TestWriteTouchesNothingElse(t *testing.T) {
	attrs := attributes(t, map[string]any{"gen_ai.usage.input_tokens": int64(5), semconv.ContextLedgerAgent: "coder"})

	(&call.Call{Usage: call.Usage{Input: ptr(int64(105))}}).Write(attrs)

	assert.Equal(t, map[string]any{
		"gen_ai.usage.input_tokens":      int64(5),
		semconv.ContextLedgerAgent:       "coder",
		semconv.ContextLedgerInputTokens: int64(105),
	}, attrs.AsRaw())
}

// Standard names are filled in where a record speaks them and left something out; what stands there stays.
func TestWriteAllFillsInWhatIsMissing(t *testing.T) {
	found := call.Call{
		Model: call.Model{Provider: "moonshot_ai", Requested: "kimi-k3"},
		Usage: call.Usage{Input: ptr(int64(105)), CacheRead: ptr(int64(0))}, Compaction: call.Compaction{Seen: true},
	}
	speaks := attributes(t, map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.usage.input_tokens": int64(5),
	})
	silent := attributes(t, map[string]any{"llm.model_name": "kimi-k3"})

	found.WriteAll(speaks)
	found.WriteAll(silent)

	ours := map[string]any{
		semconv.ContextLedgerProvider: "moonshot_ai", semconv.ContextLedgerModelID: "kimi-k3",
		semconv.ContextLedgerInputTokens: int64(105), semconv.ContextLedgerCachedTokens: int64(0),
	}
	want := map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "kimi-k3",
		"gen_ai.usage.input_tokens": int64(5), "gen_ai.usage.cache_read.input_tokens": int64(0),
		"gen_ai.conversation.compacted": true,
	}
	maps.Copy(want, ours)
	assert.Equal(t, want, speaks.AsRaw())
	ours["llm.model_name"] = "kimi-k3"
	assert.Equal(t, ours, silent.AsRaw())
}

// A record is whole however often it is written onto: each name stands there once, in the same order.
func TestWriteTwiceIsAsWriteOnce(t *testing.T) {
	found := call.Call{
		Model: call.Model{Requested: "kimi-k3"}, Usage: call.Usage{Input: ptr(int64(105)), Flags: []string{"a", "b"}},
		Verdict: call.Verdict{Significant: ptr(false), Idle: ptr(1.5)}, Place: call.Place{Start: time.Unix(1, 0)},
		Origin: call.Origin{EntryID: "e"},
	}
	attrs := attributes(t, map[string]any{"gen_ai.operation.name": "chat", "http.method": "GET"})
	found.WriteAll(attrs)
	once, names := attrs.AsRaw(), slices.Collect(keys(attrs))
	found.WriteAll(attrs)
	assert.Equal(t, once, attrs.AsRaw())
	assert.Equal(t, names, slices.Collect(keys(attrs)))
	assert.Len(t, names, len(once))
}

func keys(attrs pcommon.Map) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range attrs.All() {
			if !yield(key) {
				return
			}
		}
	}
}

// What a span and a log record say alike is the same for both, and for no other call; without a trace, or with
// an id, nothing is alike.
func TestLikenessIsTheSameForSpanAndLogRecord(t *testing.T) {
	said := call.Call{
		Place: call.Place{Trace: pcommon.TraceID{1}}, Task: call.Task{Session: "s-1"}, Model: call.Model{Requested: "m"},
		Usage: call.Usage{Input: ptr(int64(100)), CacheRead: ptr(int64(60)), Output: ptr(int64(7))},
	}
	span, other, elsewhere, named := said, said, said, said
	span.Place.Span, span.Request.TimeToFirstToken = pcommon.SpanID{2}, ptr(0.2)
	other.Usage.Output = ptr(int64(8))
	elsewhere.Place.Trace = pcommon.TraceID{}

	assert.Equal(t, said.Likeness(), span.Likeness())
	assert.NotEqual(t, said.Likeness(), other.Likeness())
	assert.Empty(t, elsewhere.Likeness())
	named.Request.ResponseID = "r"
	assert.Empty(t, named.Likeness())
}
