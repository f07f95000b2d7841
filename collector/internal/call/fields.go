package call

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// field finds the place in a call for what an attribute holds, by the one of its functions that it has. A nullable place is
// nil where nobody told.
type field struct {
	text    func(*Call) *string
	count   func(*Call) **int64
	number  func(*Call) **float64
	flag    func(*Call) **bool
	mark    func(*Call) *bool
	list    func(*Call) *[]string
	locator func(*Call) *[]Boundary
	time    func(*Call) *time.Time
}

// of gives the place, a pointer of whichever type.
func (f *field) of(c *Call) any {
	switch {
	case f.text != nil:
		return f.text(c)
	case f.count != nil:
		return f.count(c)
	case f.number != nil:
		return f.number(c)
	case f.flag != nil:
		return f.flag(c)
	case f.mark != nil:
		return f.mark(c)
	case f.list != nil:
		return f.list(c)
	case f.locator != nil:
		return f.locator(c)
	default:
		return f.time(c)
	}
}

// take reads a value into its place in a call. Nearly all are texts and counts.
func (f *field) take(into *Call, value pcommon.Value) {
	switch {
	case f.text != nil:
		*f.text(into) = text(value)
	case f.count != nil:
		*f.count(into) = Count(value)
	default:
		Take(f.of(into), value)
	}
}

// fields has the attributes of ours that a collector reads and writes.
var fields = map[string]field{
	semconv.ContextLedgerTaskID:                    {text: func(c *Call) *string { return &c.Task.ID }},
	semconv.ContextLedgerAttemptID:                 {text: func(c *Call) *string { return &c.Task.Attempt }},
	semconv.ContextLedgerSessionID:                 {text: func(c *Call) *string { return &c.Task.Session }},
	semconv.ContextLedgerSessionSource:             {text: func(c *Call) *string { return &c.Task.SessionSource }},
	semconv.ContextLedgerParentSessionID:           {text: func(c *Call) *string { return &c.Task.ParentSession }},
	semconv.ContextLedgerForkOf:                    {text: func(c *Call) *string { return &c.Task.ForkOf }},
	semconv.ContextLedgerRequestKind:               {text: func(c *Call) *string { return &c.Task.Kind }},
	semconv.ContextLedgerTaskOutcome:               {text: func(c *Call) *string { return &c.Task.Outcome }},
	semconv.ContextLedgerAgent:                     {text: func(c *Call) *string { return &c.Task.Agent }},
	semconv.ContextLedgerProviderSurface:           {text: func(c *Call) *string { return &c.Model.Surface }},
	semconv.ContextLedgerProvider:                  {text: func(c *Call) *string { return &c.Model.Provider }},
	semconv.ContextLedgerEndpoint:                  {text: func(c *Call) *string { return &c.Model.Endpoint }},
	semconv.ContextLedgerAPI:                       {text: func(c *Call) *string { return &c.Model.API }},
	semconv.ContextLedgerModelID:                   {text: func(c *Call) *string { return &c.Model.Requested }},
	semconv.ContextLedgerModelServed:               {text: func(c *Call) *string { return &c.Model.Served }},
	semconv.ContextLedgerModelVersion:              {text: func(c *Call) *string { return &c.Model.Version }},
	semconv.ContextLedgerReasoningEffort:           {text: func(c *Call) *string { return &c.Model.Effort }},
	semconv.ContextLedgerReasoningEffortRequested:  {text: func(c *Call) *string { return &c.Model.EffortRequested }},
	semconv.ContextLedgerClientVersion:             {text: func(c *Call) *string { return &c.Model.ClientVersion }},
	semconv.ContextLedgerContextWindow:             {count: func(c *Call) **int64 { return &c.Model.Window }},
	semconv.ContextLedgerRoute:                     {text: func(c *Call) *string { return &c.Model.Route }},
	semconv.ContextLedgerPolicyHash:                {text: func(c *Call) *string { return &c.Context.Policy }},
	semconv.ContextLedgerPolicyWireHash:            {text: func(c *Call) *string { return &c.Context.PolicyWire }},
	semconv.ContextLedgerToolSchemaHash:            {text: func(c *Call) *string { return &c.Context.ToolSchema }},
	semconv.ContextLedgerToolWireHash:              {text: func(c *Call) *string { return &c.Context.ToolWire }},
	semconv.ContextLedgerToolContractHash:          {text: func(c *Call) *string { return &c.Context.ToolContract }},
	semconv.ContextLedgerRepoSnapshot:              {text: func(c *Call) *string { return &c.Context.RepoSnapshot }},
	semconv.ContextLedgerSummaryHash:               {text: func(c *Call) *string { return &c.Context.Summary }},
	semconv.ContextLedgerSummaryTrusted:            {flag: func(c *Call) **bool { return &c.Context.SummaryTrusted }},
	semconv.ContextLedgerHistoryLength:             {count: func(c *Call) **int64 { return &c.Context.HistoryLength }},
	semconv.ContextLedgerContextIdentity:           {text: func(c *Call) *string { return &c.Context.Identity }},
	semconv.ContextLedgerCacheIdentity:             {text: func(c *Call) *string { return &c.Context.CacheIdentity }},
	semconv.ContextLedgerIdentityChanged:           {list: func(c *Call) *[]string { return &c.Context.IdentityChanged }},
	semconv.ContextLedgerComparableID:              {text: func(c *Call) *string { return &c.Context.Comparable }},
	semconv.ContextLedgerPrefixLocator:             {locator: func(c *Call) *[]Boundary { return &c.Context.Locator }},
	semconv.ContextLedgerCacheReport:               {text: func(c *Call) *string { return &c.Usage.Report }},
	semconv.ContextLedgerInputTokens:               {count: func(c *Call) **int64 { return &c.Usage.Input }},
	semconv.ContextLedgerCachedTokens:              {count: func(c *Call) **int64 { return &c.Usage.CacheRead }},
	semconv.ContextLedgerCacheWriteTokens:          {count: func(c *Call) **int64 { return &c.Usage.CacheWrite }},
	semconv.ContextLedgerCacheWrite5MTokens:        {count: func(c *Call) **int64 { return &c.Usage.Write5m }},
	semconv.ContextLedgerCacheWrite1HTokens:        {count: func(c *Call) **int64 { return &c.Usage.Write1h }},
	semconv.ContextLedgerCacheWrite30MTokens:       {count: func(c *Call) **int64 { return &c.Usage.Write30m }},
	semconv.ContextLedgerCacheWrite12HTokens:       {count: func(c *Call) **int64 { return &c.Usage.Write12h }},
	semconv.ContextLedgerOutputTokens:              {count: func(c *Call) **int64 { return &c.Usage.Output }},
	semconv.ContextLedgerReasoningTokens:           {count: func(c *Call) **int64 { return &c.Usage.Reasoning }},
	semconv.ContextLedgerUsageSource:               {text: func(c *Call) *string { return &c.Usage.Source }},
	semconv.ContextLedgerUsageFlags:                {list: func(c *Call) *[]string { return &c.Usage.Flags }},
	semconv.ContextLedgerJudgedBy:                  {text: func(c *Call) *string { return &c.Verdict.By }},
	semconv.ContextLedgerCacheOutcome:              {text: func(c *Call) *string { return &c.Verdict.Outcome }},
	semconv.ContextLedgerMissCause:                 {text: func(c *Call) *string { return &c.Verdict.Cause }},
	semconv.ContextLedgerMissDetail:                {list: func(c *Call) *[]string { return &c.Verdict.Detail }},
	semconv.ContextLedgerMissSecondary:             {list: func(c *Call) *[]string { return &c.Verdict.Secondary }},
	semconv.ContextLedgerMissEvidence:              {list: func(c *Call) *[]string { return &c.Verdict.Evidence }},
	semconv.ContextLedgerMissConfidence:            {text: func(c *Call) *string { return &c.Verdict.Confidence }},
	semconv.ContextLedgerMissSignificant:           {flag: func(c *Call) **bool { return &c.Verdict.Significant }},
	semconv.ContextLedgerMissPositionSegment:       {text: func(c *Call) *string { return &c.Verdict.Position.Segment }},
	semconv.ContextLedgerMissPositionIndex:         {count: func(c *Call) **int64 { return &c.Verdict.Position.Index }},
	semconv.ContextLedgerMissPositionName:          {text: func(c *Call) *string { return &c.Verdict.Position.Name }},
	semconv.ContextLedgerMissPositionOffset:        {count: func(c *Call) **int64 { return &c.Verdict.Position.Offset }},
	semconv.ContextLedgerMissPositionKind:          {text: func(c *Call) *string { return &c.Verdict.Position.Kind }},
	semconv.ContextLedgerReusableTokens:            {count: func(c *Call) **int64 { return &c.Verdict.Reusable }},
	semconv.ContextLedgerAvoidableTokens:           {count: func(c *Call) **int64 { return &c.Verdict.Avoidable }},
	semconv.ContextLedgerIdleSeconds:               {number: func(c *Call) **float64 { return &c.Verdict.Idle }},
	semconv.ContextLedgerRetentionSeconds:          {number: func(c *Call) **float64 { return &c.Verdict.Retention }},
	semconv.ContextLedgerProviderVerdict:           {text: func(c *Call) *string { return &c.Verdict.Provider }},
	semconv.ContextLedgerVerdictConflict:           {flag: func(c *Call) **bool { return &c.Verdict.Conflict }},
	semconv.ContextLedgerProcessOutcome:            {text: func(c *Call) *string { return &c.Process.Outcome }},
	semconv.ContextLedgerProcessCause:              {text: func(c *Call) *string { return &c.Process.Cause }},
	semconv.ContextLedgerResponseID:                {text: func(c *Call) *string { return &c.Request.ResponseID }},
	semconv.ContextLedgerFinishReasons:             {list: func(c *Call) *[]string { return &c.Request.FinishReasons }},
	semconv.ContextLedgerErrorType:                 {text: func(c *Call) *string { return &c.Request.ErrorType }},
	semconv.ContextLedgerCallEnd:                   {text: func(c *Call) *string { return &c.Request.End }},
	semconv.ContextLedgerStream:                    {flag: func(c *Call) **bool { return &c.Request.Stream }},
	semconv.ContextLedgerToolCalls:                 {count: func(c *Call) **int64 { return &c.Request.ToolCalls }},
	semconv.ContextLedgerRepeatedReadBytes:         {count: func(c *Call) **int64 { return &c.Request.RepeatedReadBytes }},
	semconv.ContextLedgerTimeToFirstToken:          {number: func(c *Call) **float64 { return &c.Request.TimeToFirstToken }},
	semconv.ContextLedgerTimeToFirstContent:        {number: func(c *Call) **float64 { return &c.Request.TimeToFirstContent }},
	semconv.ContextLedgerDuration:                  {number: func(c *Call) **float64 { return &c.Request.Duration }},
	semconv.ContextLedgerCostAmount:                {number: func(c *Call) **float64 { return &c.Cost.Amount }},
	semconv.ContextLedgerCostCurrency:              {text: func(c *Call) *string { return &c.Cost.Currency }},
	semconv.ContextLedgerCostSource:                {text: func(c *Call) *string { return &c.Cost.Source }},
	semconv.ContextLedgerCostUnit:                  {text: func(c *Call) *string { return &c.Cost.Unit }},
	semconv.ContextLedgerCostWithoutCache:          {number: func(c *Call) **float64 { return &c.Cost.WithoutCache }},
	semconv.ContextLedgerCostMissing:               {text: func(c *Call) *string { return &c.Cost.Missing }},
	semconv.ContextLedgerPolicyCheck:               {text: func(c *Call) *string { return &c.Checks.Policy }},
	semconv.ContextLedgerRepoCheck:                 {text: func(c *Call) *string { return &c.Checks.Repository }},
	semconv.ContextLedgerToolsCheck:                {text: func(c *Call) *string { return &c.Checks.Tools }},
	semconv.ContextLedgerConstraintsCheck:          {text: func(c *Call) *string { return &c.Checks.Constraints }},
	semconv.ContextLedgerStateCheck:                {text: func(c *Call) *string { return &c.Checks.State }},
	semconv.ContextLedgerCompactionEvent:           {text: func(c *Call) *string { return &c.Compaction.Event }},
	semconv.ContextLedgerCompactionKind:            {text: func(c *Call) *string { return &c.Compaction.Kind }},
	semconv.ContextLedgerCompactionTrigger:         {text: func(c *Call) *string { return &c.Compaction.Trigger }},
	semconv.ContextLedgerCompactionOutcome:         {text: func(c *Call) *string { return &c.Compaction.Outcome }},
	semconv.ContextLedgerCompactionTokensBefore:    {count: func(c *Call) **int64 { return &c.Compaction.TokensBefore }},
	semconv.ContextLedgerCompactionTokensAfter:     {count: func(c *Call) **int64 { return &c.Compaction.TokensAfter }},
	semconv.ContextLedgerCompactionSummaryHash:     {text: func(c *Call) *string { return &c.Compaction.SummaryHash }},
	semconv.ContextLedgerCompactionValidator:       {text: func(c *Call) *string { return &c.Compaction.Validator }},
	semconv.ContextLedgerCompactionValidatorResult: {text: func(c *Call) *string { return &c.Compaction.ValidatorResult }},
	semconv.ContextLedgerCompactionReason:          {text: func(c *Call) *string { return &c.Compaction.Reason }},
	semconv.ContextLedgerCompactionEstimated:       {list: func(c *Call) *[]string { return &c.Compaction.Estimated }},
	semconv.ContextLedgerEntryID:                   {text: func(c *Call) *string { return &c.Origin.EntryID }},
	semconv.ContextLedgerDialect:                   {text: func(c *Call) *string { return &c.Origin.Dialect }},
	semconv.ContextLedgerDialectRule:               {text: func(c *Call) *string { return &c.Origin.Rule }},
	semconv.ContextLedgerAggregate:                 {mark: func(c *Call) *bool { return &c.Origin.Aggregate }},
	semconv.ContextLedgerCountedBy:                 {text: func(c *Call) *string { return &c.Origin.CountedBy }},
	semconv.ContextLedgerDigestScheme:              {text: func(c *Call) *string { return &c.Origin.DigestScheme }},
	semconv.ContextLedgerLedgerVersion:             {text: func(c *Call) *string { return &c.Origin.LedgerVersion }},
	semconv.ContextLedgerLedgerError:               {text: func(c *Call) *string { return &c.Origin.LedgerError }},
	semconv.ContextLedgerTruncated:                 {mark: func(c *Call) *bool { return &c.Origin.Truncated }},
	semconv.ContextLedgerStartedAt:                 {time: func(c *Call) *time.Time { return &c.Place.Start }},
}

// twins has the standard names under which a field of ours may stand alone: a process with too many attributes leaves
// out its own name for what a standard one says.
var twins = map[string]field{
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
var alone = map[string]field{
	semconv.OpenAIResponseServiceTier:  {text: func(c *Call) *string { return &c.Model.ServiceTier }},
	semconv.GenAIConversationCompacted: {mark: func(c *Call) *bool { return &c.Compaction.Seen }},
}
