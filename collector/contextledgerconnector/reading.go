package contextledgerconnector

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/names"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// figures are what is counted of an entry, or tells it from others: a third of what an entry has.
var figures = newReader(
	semconv.ContextLedgerEntryID, semconv.ContextLedgerCountedBy, semconv.ContextLedgerAggregate,
	semconv.ContextLedgerResponseID, semconv.ContextLedgerSessionID, semconv.ContextLedgerTaskID,
	semconv.ContextLedgerStartedAt, semconv.ContextLedgerDuration,
	semconv.ContextLedgerProvider, semconv.ContextLedgerModelID, semconv.ContextLedgerProviderSurface,
	semconv.ContextLedgerAgent, semconv.ContextLedgerRequestKind, semconv.ContextLedgerErrorType,
	semconv.ContextLedgerInputTokens, semconv.ContextLedgerCachedTokens, semconv.ContextLedgerCacheWriteTokens,
	semconv.ContextLedgerOutputTokens, semconv.ContextLedgerReusableTokens, semconv.ContextLedgerAvoidableTokens,
	semconv.ContextLedgerCacheOutcome, semconv.ContextLedgerMissCause, semconv.ContextLedgerVerdictConflict,
	semconv.ContextLedgerIdentityChanged, semconv.ContextLedgerComparableID,
	semconv.ContextLedgerPolicyCheck, semconv.ContextLedgerRepoCheck, semconv.ContextLedgerToolsCheck,
	semconv.ContextLedgerConstraintsCheck, semconv.ContextLedgerStateCheck,
	semconv.ContextLedgerRepeatedReadBytes, semconv.ContextLedgerTimeToFirstToken,
	semconv.ContextLedgerCostAmount, semconv.ContextLedgerCostUnit, semconv.ContextLedgerCostWithoutCache,
	semconv.ContextLedgerCompactionEvent, semconv.ContextLedgerCompactionKind, semconv.ContextLedgerCompactionTrigger,
	semconv.ContextLedgerCompactionOutcome, semconv.ContextLedgerCompactionValidatorResult,
	semconv.ContextLedgerCompactionTokensBefore, semconv.ContextLedgerCompactionTokensAfter,
)

// reader finds the fields of a call that some attributes hold.
type reader struct {
	keys   names.Index
	fields []func(*call.Call) any
}

func newReader(keys ...string) *reader {
	made := &reader{}
	for _, key := range keys {
		at, known := call.Field(key)
		if !known {
			panic("no field of a call: " + key)
		}
		made.keys.Add(key)
		made.fields = append(made.fields, at)
	}
	return made
}

// ordinary is how many attributes a record has at most that is read in this way. On one that has more a process may have
// had no room for its own names, which package call knows how to read.
const ordinary = 110

// readCall reads what the attributes tell of a call.
func (e *entry) readCall(attrs pcommon.Map) {
	if attrs.Len() > ordinary {
		e.call.Read(attrs)
		return
	}
	for key, value := range attrs.All() {
		if number, known := figures.keys.Of(key); known {
			e.put(figures.fields[number](&e.call), value)
		}
	}
}

// put puts a value into a field. A count that is as it should be stands in the entry itself.
func (e *entry) put(field any, value pcommon.Value) {
	into, count := field.(**int64)
	if !count || value.Type() != pcommon.ValueTypeInt || value.Int()>>52 != 0 || e.counted == len(e.counts) {
		call.Take(field, value)
		return
	}
	e.counts[e.counted] = value.Int()
	*into = &e.counts[e.counted]
	e.counted++
}
