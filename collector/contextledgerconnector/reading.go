package contextledgerconnector

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
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
	// byLength has them by the length of their names, which few have in common.
	byLength [longest + 1][]field
}

// longest is how many bytes a name has at most.
const longest = 63

type field struct {
	key string
	at  func(*call.Call) any
}

func newReader(keys ...string) *reader {
	made := &reader{}
	for _, key := range keys {
		at, known := call.Field(key)
		if !known {
			panic("no field of a call: " + key)
		}
		made.byLength[len(key)] = append(made.byLength[len(key)], field{key, at})
	}
	return made
}

// find gives what finds the field that an attribute holds, nil where it is not read.
func (r *reader) find(key string) func(*call.Call) any {
	if len(key) >= len(r.byLength) {
		return nil
	}
	for _, one := range r.byLength[len(key)] {
		if one.key == key {
			return one.at
		}
	}
	return nil
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
		if at := figures.find(key); at != nil {
			e.put(at(&e.call), value)
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
