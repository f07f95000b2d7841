package call

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/names"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// maxCount is the largest whole number that every part of a pipeline can hold exactly: one in JSON may be a double.
const maxCount = 1 << 53

// place finds the field of a call that an attribute holds: a pointer to a string, a list or a nullable number.
type place = func(*Call) any

// fields has the attributes of ours that a collector reads and writes.
var fields = map[string]place{
	semconv.ContextLedgerTaskID:                    func(c *Call) any { return &c.Task.ID },
	semconv.ContextLedgerAttemptID:                 func(c *Call) any { return &c.Task.Attempt },
	semconv.ContextLedgerSessionID:                 func(c *Call) any { return &c.Task.Session },
	semconv.ContextLedgerSessionSource:             func(c *Call) any { return &c.Task.SessionSource },
	semconv.ContextLedgerParentSessionID:           func(c *Call) any { return &c.Task.ParentSession },
	semconv.ContextLedgerForkOf:                    func(c *Call) any { return &c.Task.ForkOf },
	semconv.ContextLedgerRequestKind:               func(c *Call) any { return &c.Task.Kind },
	semconv.ContextLedgerTaskOutcome:               func(c *Call) any { return &c.Task.Outcome },
	semconv.ContextLedgerAgent:                     func(c *Call) any { return &c.Task.Agent },
	semconv.ContextLedgerProviderSurface:           func(c *Call) any { return &c.Model.Surface },
	semconv.ContextLedgerProvider:                  func(c *Call) any { return &c.Model.Provider },
	semconv.ContextLedgerEndpoint:                  func(c *Call) any { return &c.Model.Endpoint },
	semconv.ContextLedgerAPI:                       func(c *Call) any { return &c.Model.API },
	semconv.ContextLedgerModelID:                   func(c *Call) any { return &c.Model.Requested },
	semconv.ContextLedgerModelServed:               func(c *Call) any { return &c.Model.Served },
	semconv.ContextLedgerModelVersion:              func(c *Call) any { return &c.Model.Version },
	semconv.ContextLedgerReasoningEffort:           func(c *Call) any { return &c.Model.Effort },
	semconv.ContextLedgerReasoningEffortRequested:  func(c *Call) any { return &c.Model.EffortRequested },
	semconv.ContextLedgerClientVersion:             func(c *Call) any { return &c.Model.ClientVersion },
	semconv.ContextLedgerContextWindow:             func(c *Call) any { return &c.Model.Window },
	semconv.ContextLedgerRoute:                     func(c *Call) any { return &c.Model.Route },
	semconv.ContextLedgerPolicyHash:                func(c *Call) any { return &c.Context.Policy },
	semconv.ContextLedgerPolicyWireHash:            func(c *Call) any { return &c.Context.PolicyWire },
	semconv.ContextLedgerToolSchemaHash:            func(c *Call) any { return &c.Context.ToolSchema },
	semconv.ContextLedgerToolWireHash:              func(c *Call) any { return &c.Context.ToolWire },
	semconv.ContextLedgerToolContractHash:          func(c *Call) any { return &c.Context.ToolContract },
	semconv.ContextLedgerRepoSnapshot:              func(c *Call) any { return &c.Context.RepoSnapshot },
	semconv.ContextLedgerSummaryHash:               func(c *Call) any { return &c.Context.Summary },
	semconv.ContextLedgerSummaryTrusted:            func(c *Call) any { return &c.Context.SummaryTrusted },
	semconv.ContextLedgerHistoryLength:             func(c *Call) any { return &c.Context.HistoryLength },
	semconv.ContextLedgerContextIdentity:           func(c *Call) any { return &c.Context.Identity },
	semconv.ContextLedgerCacheIdentity:             func(c *Call) any { return &c.Context.CacheIdentity },
	semconv.ContextLedgerIdentityChanged:           func(c *Call) any { return &c.Context.IdentityChanged },
	semconv.ContextLedgerComparableID:              func(c *Call) any { return &c.Context.Comparable },
	semconv.ContextLedgerPrefixLocator:             func(c *Call) any { return &c.Context.Locator },
	semconv.ContextLedgerCacheReport:               func(c *Call) any { return &c.Usage.Report },
	semconv.ContextLedgerInputTokens:               func(c *Call) any { return &c.Usage.Input },
	semconv.ContextLedgerCachedTokens:              func(c *Call) any { return &c.Usage.CacheRead },
	semconv.ContextLedgerCacheWriteTokens:          func(c *Call) any { return &c.Usage.CacheWrite },
	semconv.ContextLedgerCacheWrite5MTokens:        func(c *Call) any { return &c.Usage.Write5m },
	semconv.ContextLedgerCacheWrite1HTokens:        func(c *Call) any { return &c.Usage.Write1h },
	semconv.ContextLedgerCacheWrite30MTokens:       func(c *Call) any { return &c.Usage.Write30m },
	semconv.ContextLedgerCacheWrite12HTokens:       func(c *Call) any { return &c.Usage.Write12h },
	semconv.ContextLedgerOutputTokens:              func(c *Call) any { return &c.Usage.Output },
	semconv.ContextLedgerReasoningTokens:           func(c *Call) any { return &c.Usage.Reasoning },
	semconv.ContextLedgerUsageSource:               func(c *Call) any { return &c.Usage.Source },
	semconv.ContextLedgerUsageFlags:                func(c *Call) any { return &c.Usage.Flags },
	semconv.ContextLedgerJudgedBy:                  func(c *Call) any { return &c.Verdict.By },
	semconv.ContextLedgerCacheOutcome:              func(c *Call) any { return &c.Verdict.Outcome },
	semconv.ContextLedgerMissCause:                 func(c *Call) any { return &c.Verdict.Cause },
	semconv.ContextLedgerMissDetail:                func(c *Call) any { return &c.Verdict.Detail },
	semconv.ContextLedgerMissSecondary:             func(c *Call) any { return &c.Verdict.Secondary },
	semconv.ContextLedgerMissEvidence:              func(c *Call) any { return &c.Verdict.Evidence },
	semconv.ContextLedgerMissConfidence:            func(c *Call) any { return &c.Verdict.Confidence },
	semconv.ContextLedgerMissSignificant:           func(c *Call) any { return &c.Verdict.Significant },
	semconv.ContextLedgerMissPositionSegment:       func(c *Call) any { return &c.Verdict.Position.Segment },
	semconv.ContextLedgerMissPositionIndex:         func(c *Call) any { return &c.Verdict.Position.Index },
	semconv.ContextLedgerMissPositionName:          func(c *Call) any { return &c.Verdict.Position.Name },
	semconv.ContextLedgerMissPositionOffset:        func(c *Call) any { return &c.Verdict.Position.Offset },
	semconv.ContextLedgerMissPositionKind:          func(c *Call) any { return &c.Verdict.Position.Kind },
	semconv.ContextLedgerReusableTokens:            func(c *Call) any { return &c.Verdict.Reusable },
	semconv.ContextLedgerAvoidableTokens:           func(c *Call) any { return &c.Verdict.Avoidable },
	semconv.ContextLedgerIdleSeconds:               func(c *Call) any { return &c.Verdict.Idle },
	semconv.ContextLedgerRetentionSeconds:          func(c *Call) any { return &c.Verdict.Retention },
	semconv.ContextLedgerProviderVerdict:           func(c *Call) any { return &c.Verdict.Provider },
	semconv.ContextLedgerVerdictConflict:           func(c *Call) any { return &c.Verdict.Conflict },
	semconv.ContextLedgerProcessOutcome:            func(c *Call) any { return &c.Process.Outcome },
	semconv.ContextLedgerProcessCause:              func(c *Call) any { return &c.Process.Cause },
	semconv.ContextLedgerResponseID:                func(c *Call) any { return &c.Request.ResponseID },
	semconv.ContextLedgerFinishReasons:             func(c *Call) any { return &c.Request.FinishReasons },
	semconv.ContextLedgerErrorType:                 func(c *Call) any { return &c.Request.ErrorType },
	semconv.ContextLedgerCallEnd:                   func(c *Call) any { return &c.Request.End },
	semconv.ContextLedgerStream:                    func(c *Call) any { return &c.Request.Stream },
	semconv.ContextLedgerToolCalls:                 func(c *Call) any { return &c.Request.ToolCalls },
	semconv.ContextLedgerRepeatedReadBytes:         func(c *Call) any { return &c.Request.RepeatedReadBytes },
	semconv.ContextLedgerTimeToFirstToken:          func(c *Call) any { return &c.Request.TimeToFirstToken },
	semconv.ContextLedgerTimeToFirstContent:        func(c *Call) any { return &c.Request.TimeToFirstContent },
	semconv.ContextLedgerDuration:                  func(c *Call) any { return &c.Request.Duration },
	semconv.ContextLedgerCostAmount:                func(c *Call) any { return &c.Cost.Amount },
	semconv.ContextLedgerCostCurrency:              func(c *Call) any { return &c.Cost.Currency },
	semconv.ContextLedgerCostSource:                func(c *Call) any { return &c.Cost.Source },
	semconv.ContextLedgerCostUnit:                  func(c *Call) any { return &c.Cost.Unit },
	semconv.ContextLedgerCostWithoutCache:          func(c *Call) any { return &c.Cost.WithoutCache },
	semconv.ContextLedgerCostMissing:               func(c *Call) any { return &c.Cost.Missing },
	semconv.ContextLedgerPolicyCheck:               func(c *Call) any { return &c.Checks.Policy },
	semconv.ContextLedgerRepoCheck:                 func(c *Call) any { return &c.Checks.Repository },
	semconv.ContextLedgerToolsCheck:                func(c *Call) any { return &c.Checks.Tools },
	semconv.ContextLedgerConstraintsCheck:          func(c *Call) any { return &c.Checks.Constraints },
	semconv.ContextLedgerStateCheck:                func(c *Call) any { return &c.Checks.State },
	semconv.ContextLedgerCompactionEvent:           func(c *Call) any { return &c.Compaction.Event },
	semconv.ContextLedgerCompactionKind:            func(c *Call) any { return &c.Compaction.Kind },
	semconv.ContextLedgerCompactionTrigger:         func(c *Call) any { return &c.Compaction.Trigger },
	semconv.ContextLedgerCompactionOutcome:         func(c *Call) any { return &c.Compaction.Outcome },
	semconv.ContextLedgerCompactionTokensBefore:    func(c *Call) any { return &c.Compaction.TokensBefore },
	semconv.ContextLedgerCompactionTokensAfter:     func(c *Call) any { return &c.Compaction.TokensAfter },
	semconv.ContextLedgerCompactionSummaryHash:     func(c *Call) any { return &c.Compaction.SummaryHash },
	semconv.ContextLedgerCompactionValidator:       func(c *Call) any { return &c.Compaction.Validator },
	semconv.ContextLedgerCompactionValidatorResult: func(c *Call) any { return &c.Compaction.ValidatorResult },
	semconv.ContextLedgerCompactionReason:          func(c *Call) any { return &c.Compaction.Reason },
	semconv.ContextLedgerCompactionEstimated:       func(c *Call) any { return &c.Compaction.Estimated },
	semconv.ContextLedgerEntryID:                   func(c *Call) any { return &c.Origin.EntryID },
	semconv.ContextLedgerDialect:                   func(c *Call) any { return &c.Origin.Dialect },
	semconv.ContextLedgerDialectRule:               func(c *Call) any { return &c.Origin.Rule },
	semconv.ContextLedgerAggregate:                 func(c *Call) any { return &c.Origin.Aggregate },
	semconv.ContextLedgerCountedBy:                 func(c *Call) any { return &c.Origin.CountedBy },
	semconv.ContextLedgerDigestScheme:              func(c *Call) any { return &c.Origin.DigestScheme },
	semconv.ContextLedgerLedgerVersion:             func(c *Call) any { return &c.Origin.LedgerVersion },
	semconv.ContextLedgerLedgerError:               func(c *Call) any { return &c.Origin.LedgerError },
	semconv.ContextLedgerTruncated:                 func(c *Call) any { return &c.Origin.Truncated },
	semconv.ContextLedgerStartedAt:                 func(c *Call) any { return &c.Place.Start },
}

// twins has the standard names under which a field of ours may stand alone: a process with too many attributes leaves
// out its own name for what a standard one says.
var twins = map[string]place{
	semconv.GenAIProviderName:               fields[semconv.ContextLedgerProvider],
	semconv.GenAIRequestModel:               fields[semconv.ContextLedgerModelID],
	semconv.GenAIResponseModel:              fields[semconv.ContextLedgerModelServed],
	semconv.GenAIResponseID:                 fields[semconv.ContextLedgerResponseID],
	semconv.GenAIResponseFinishReasons:      fields[semconv.ContextLedgerFinishReasons],
	semconv.GenAIUsageInputTokens:           fields[semconv.ContextLedgerInputTokens],
	semconv.GenAIUsageOutputTokens:          fields[semconv.ContextLedgerOutputTokens],
	semconv.GenAIUsageCacheReadInputTokens:  fields[semconv.ContextLedgerCachedTokens],
	semconv.GenAIUsageCacheWriteInputTokens: fields[semconv.ContextLedgerCacheWriteTokens],
	semconv.GenAIUsageReasoningOutputTokens: fields[semconv.ContextLedgerReasoningTokens],
	semconv.GenAIResponseTimeToFirstChunk:   fields[semconv.ContextLedgerTimeToFirstToken],
	semconv.ErrorType:                       fields[semconv.ContextLedgerErrorType],
}

// alone has what is told under a standard name only.
var alone = map[string]place{
	semconv.OpenAIResponseServiceTier:  func(c *Call) any { return &c.Model.ServiceTier },
	semconv.GenAIConversationCompacted: func(c *Call) any { return &c.Compaction.Seen },
}

// crowded is how many attributes a span has at least on which a process had no room for all of its own: it stops at the
// SDK's limit of 128, and something on the way may have taken a few.
const crowded = 120

// Read gives the call that attributes of ours tell, whether a process or a collector wrote them. A value that has not
// the type of the registry, a negative count, a number that is none is unknown.
func Read(attrs pcommon.Map) Call {
	var found Call
	found.Read(attrs)
	return found
}

// Read reads the call into one of which nothing is known.
func (c *Call) Read(attrs pcommon.Map) { whole.Read(attrs, c) }

// Reader reads calls, or a part of what is told of them.
type Reader struct {
	own, alone catalogue
}

// catalogue finds the fields that attributes hold.
type catalogue struct {
	index  names.Index
	places []place
}

var whole = NewReader()

// NewReader makes a reader that leaves out some attributes of ours, as if they were not told.
func NewReader(without ...string) *Reader {
	made := &Reader{}
	for _, field := range written {
		if !slices.Contains(without, field.key) {
			made.own.add(field)
		}
	}
	for _, field := range ordered(alone) {
		made.alone.add(field)
	}
	return made
}

func (t *catalogue) add(field pair) {
	t.index.Add(field.key)
	t.places = append(t.places, field.at)
}

func (t *catalogue) find(key string) place {
	if number, known := t.index.Of(key); known {
		return t.places[number]
	}
	return nil
}

// Read reads a call into one of which nothing is known. Where a process had room for its own name and did not write it, it
// did not know: what another instrumentation wrote under the standard one, perhaps a zero, is none of its words.
func (r *Reader) Read(attrs pcommon.Map, into *Call) {
	for key, value := range attrs.All() {
		from := &r.alone
		if strings.HasPrefix(key, ours) {
			from = &r.own
		}
		if at := from.find(key); at != nil {
			Take(at(into), value)
		}
	}
	if attrs.Len() < crowded || into.Origin.Dialect != "" {
		return
	}
	for key, value := range attrs.All() {
		at, twin := twins[key]
		silent := key == semconv.GenAIUsageCacheReadInputTokens && into.Usage.Report != semconv.CacheReportReported
		if twin && !silent && !Known(at(into)) {
			Take(at(into), value)
		}
	}
}

// ours is how every name in fields begins, and none of twins and alone.
const ours = "context_ledger."

// Fill takes what is known of another call wherever it is not known of this one.
func (c *Call) Fill(from *Call) {
	for _, field := range written {
		if !Known(field.at(c)) {
			copyField(field.at(c), field.at(from))
		}
	}
}

// shared has what two records of one call can know of it alike: whose call it was, and what was sent.
var shared = []string{
	semconv.ContextLedgerTaskID, semconv.ContextLedgerAttemptID, semconv.ContextLedgerParentSessionID,
	semconv.ContextLedgerAgent, semconv.ContextLedgerReasoningEffort, semconv.ContextLedgerRepoSnapshot,
	semconv.ContextLedgerPolicyWireHash, semconv.ContextLedgerToolWireHash, semconv.ContextLedgerToolSchemaHash,
}

// Complete takes from another record of the same call whose it was and what was sent, where it is not known of this one.
func (c *Call) Complete(from *Call) {
	for _, key := range shared {
		if at := fields[key]; !Known(at(c)) {
			copyField(at(c), at(from))
		}
	}
	if c.Task.Session == "" {
		c.Task.Session, c.Task.SessionSource = from.Task.Session, from.Task.SessionSource
	}
	if c.Content == nil {
		c.Content = from.Content
	}
}

func copyField(into, from any) {
	switch field := into.(type) {
	case *string:
		*field = *from.(*string)
	case **int64:
		*field = *from.(**int64)
	case **float64:
		*field = *from.(**float64)
	case **bool:
		*field = *from.(**bool)
	case *bool:
		*field = *from.(*bool)
	case *[]string:
		*field = *from.(*[]string)
	case *[]Boundary:
		*field = *from.(*[]Boundary)
	case *time.Time:
		*field = *from.(*time.Time)
	}
}

// Write puts what is known of the call into the attributes. Those of ours that are there already get its value, but for
// the start; no other attribute is touched, and none is taken away.
func (c *Call) Write(attrs pcommon.Map) {
	attrs.EnsureCapacity(attrs.Len() + typical)
	for _, field := range written {
		put(attrs, field.key, field.at(c))
	}
}

// judged has what only a verdict says.
var judged = []string{
	semconv.ContextLedgerMissCause, semconv.ContextLedgerMissDetail, semconv.ContextLedgerMissSecondary,
	semconv.ContextLedgerMissEvidence, semconv.ContextLedgerMissConfidence, semconv.ContextLedgerMissSignificant,
	semconv.ContextLedgerMissPositionSegment, semconv.ContextLedgerMissPositionIndex,
	semconv.ContextLedgerMissPositionName, semconv.ContextLedgerMissPositionOffset,
	semconv.ContextLedgerMissPositionKind, semconv.ContextLedgerReusableTokens, semconv.ContextLedgerAvoidableTokens,
	semconv.ContextLedgerIdleSeconds, semconv.ContextLedgerRetentionSeconds, semconv.ContextLedgerVerdictConflict,
}

// Withdraw takes away what an earlier verdict said and this one does not: a hit has no cause.
func (c *Call) Withdraw(attrs pcommon.Map) {
	attrs.RemoveIf(func(key string, _ pcommon.Value) bool {
		return strings.HasPrefix(key, ours) && slices.Contains(judged, key) && !Known(fields[key](c))
	})
}

// typical is how many attributes a call is told by, most times: room for them is made at once.
const typical = 24

// WriteStandard puts what is known of the call under its standard names too, where nothing stands there yet: what an
// instrumentation wrote under them is the original, whether or not it means the same. A record that speaks no standard
// name gets none: beside another span of the same call that does, a sum over them would hold it twice.
func (c *Call) WriteStandard(attrs pcommon.Map) {
	if !speaksStandard(attrs) {
		return
	}
	for _, field := range standard {
		if _, told := attrs.Get(field.key); !told {
			put(attrs, field.key, field.at(c))
		}
	}
	if _, told := attrs.Get(semconv.GenAIConversationCompacted); !told && c.Compaction.Seen {
		attrs.PutBool(semconv.GenAIConversationCompacted, true)
	}
}

// StandardNames are the names that WriteStandard writes.
func StandardNames() []string {
	return append(slices.Collect(maps.Keys(twins)), semconv.GenAIConversationCompacted)
}

func speaksStandard(attrs pcommon.Map) bool {
	for _, key := range []string{semconv.GenAIOperationName, semconv.GenAIRequestModel} {
		if _, ok := attrs.Get(key); ok {
			return true
		}
	}
	return false
}

// What is written, in one order for every call, so that the same call makes the same bytes.
var (
	written  = ordered(fields)
	standard = ordered(twins)
)

type pair struct {
	key string
	at  place
}

func ordered(places map[string]place) []pair {
	var found []pair
	for _, key := range slices.Sorted(maps.Keys(places)) {
		found = append(found, pair{key, places[key]})
	}
	return found
}

// Field gives what finds the field of a call that an attribute of ours holds, by its name in the registry; false where
// there is none.
func Field(key string) (func(*Call) any, bool) {
	at, ok := fields[key]
	return at, ok
}

// Take puts a value into the field at a pointer that Field's function gave, and says whether it is one: what is not of
// the field's type, a negative count, a number that is none leave it unknown.
func Take(at any, value pcommon.Value) bool {
	switch field := at.(type) {
	case *string:
		*field = text(value)
	case **int64:
		*field = Count(value)
	case **float64:
		*field = Number(value)
	case **bool:
		*field = flag(value)
	case *bool:
		*field = value.Type() == pcommon.ValueTypeBool && value.Bool()
	case *[]string:
		*field = texts(value)
	case *[]Boundary:
		*field = boundaries((*field)[:0], value)
	case *time.Time:
		*field = seconds(value)
	}
	return Known(at)
}

// Known says whether the field at such a pointer has a value.
func Known(at any) bool {
	switch field := at.(type) {
	case *string:
		return *field != ""
	case **int64:
		return *field != nil
	case **float64:
		return *field != nil
	case **bool:
		return *field != nil
	case *bool:
		return *field
	case *[]string:
		return len(*field) > 0
	case *[]Boundary:
		return len(*field) > 0
	case *time.Time:
		return !field.IsZero()
	}
	return false
}

func put(attrs pcommon.Map, key string, at any) {
	if !Known(at) {
		return
	}
	switch field := at.(type) {
	case *string:
		attrs.PutStr(key, *field)
	case **int64:
		attrs.PutInt(key, **field)
	case **float64:
		attrs.PutDouble(key, **field)
	case **bool:
		attrs.PutBool(key, **field)
	case *bool:
		attrs.PutBool(key, *field)
	case *[]string:
		putTexts(attrs, key, *field)
	case *[]Boundary:
		putTexts(attrs, key, spelled(*field))
	case *time.Time:
		putTime(attrs, key, *field)
	}
}

// putTime leaves a time that is told as it is: a double has too few digits for nanoseconds, and would be another one.
func putTime(attrs pcommon.Map, key string, at time.Time) {
	if _, told := attrs.Get(key); !told {
		attrs.PutDouble(key, float64(at.Unix())+float64(at.Nanosecond())/float64(time.Second))
	}
}

func putTexts(attrs pcommon.Map, key string, values []string) {
	list := attrs.PutEmptySlice(key)
	list.EnsureCapacity(len(values))
	for _, value := range values {
		list.AppendEmpty().SetStr(value)
	}
}

func spelled(boundaries []Boundary) []string {
	found := make([]string, len(boundaries))
	for i, boundary := range boundaries {
		found[i] = boundary.String()
	}
	return found
}

func text(value pcommon.Value) string {
	if value.Type() != pcommon.ValueTypeStr {
		return ""
	}
	return value.Str()
}

func flag(value pcommon.Value) *bool {
	if value.Type() != pcommon.ValueTypeBool {
		return nil
	}
	found := value.Bool()
	return &found
}

// texts gives the texts of a list, nil where it is none or empty.
func texts(value pcommon.Value) []string {
	if value.Type() != pcommon.ValueTypeSlice {
		return nil
	}
	found := make([]string, 0, value.Slice().Len())
	for _, item := range value.Slice().All() {
		if item.Type() == pcommon.ValueTypeStr {
			found = append(found, item.Str())
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// boundaries adds the entries of a locator that tell one, no more than a locator can have.
func boundaries(found []Boundary, value pcommon.Value) []Boundary {
	if value.Type() != pcommon.ValueTypeSlice {
		return found
	}
	found = slices.Grow(found, min(value.Slice().Len(), maxBoundaries))
	for _, item := range value.Slice().All() {
		if boundary, ok := ReadBoundary(text(item)); ok && len(found) < maxBoundaries {
			found = append(found, boundary)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// Count gives a whole number from 0 to 2^53, of an integer, a double that is whole, or a text of digits; nil of
// everything else.
func Count(value pcommon.Value) *int64 {
	found, whole := int64(-1), false
	switch value.Type() {
	case pcommon.ValueTypeInt:
		found, whole = value.Int(), true
	case pcommon.ValueTypeDouble:
		// NaN and infinities are no whole numbers; what is beyond an int64 is beyond maxCount.
		double := value.Double()
		whole = double == math.Trunc(double) && math.Abs(double) <= maxCount
		if whole {
			found = int64(double)
		}
	case pcommon.ValueTypeStr:
		found, whole = number(value.Str())
	}
	if !whole || found < 0 || found > maxCount {
		return nil
	}
	return &found
}

// Number gives a finite number that is not negative, of an integer, a double or a text of one; nil of everything else.
func Number(value pcommon.Value) *float64 {
	found := math.NaN()
	switch value.Type() {
	case pcommon.ValueTypeInt:
		found = float64(value.Int())
	case pcommon.ValueTypeDouble:
		found = value.Double()
	case pcommon.ValueTypeStr:
		found = decimal(value.Str())
	}
	if !(found >= 0) || math.IsInf(found, 0) {
		return nil
	}
	return &found
}

// seconds gives the time that is so many seconds after the epoch; zero where it is none within a thousand years.
func seconds(value pcommon.Value) time.Time {
	const thousandYears = 1000 * 365 * 24 * 3600
	found := Number(value)
	if found == nil || *found > thousandYears {
		return time.Time{}
	}
	whole, part := math.Modf(*found)
	return time.Unix(int64(whole), int64(part*float64(time.Second))).UTC()
}
