package contextledgerconnector

import (
	"strconv"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// pair is an attribute of a point or a resource.
type pair struct{ key, value string }

// measurement is what one entry adds to one metric: a whole number, or an amount where the metric's unit is divisible.
// Of its own attributes those without a word are not told.
type measurement struct {
	of     *measure
	whole  int64
	amount float64
	words  words
}

// words are the values of attributes, in the order of their names; an empty one is not told.
type words [4]string

// measure is a metric that entries are counted by, with the names of its own attributes.
type measure struct {
	name       string
	number     byte
	own        words
	boundaries []float64
}

// measures are all of them, by number.
var measures []*measure

func newMeasure(name string, own ...string) *measure {
	made := &measure{name: name, number: byte(len(measures)), boundaries: semconv.Metrics[name].Boundaries}
	copy(made.own[:], own)
	measures = append(measures, made)
	return made
}

var (
	measureCalls = newMeasure(semconv.MetricCalls, semconv.ContextLedgerCacheOutcome, semconv.ContextLedgerIdentity,
		semconv.ContextLedgerRequestKind, semconv.ErrorType)
	measureInputTokens    = newMeasure(semconv.MetricInputTokens, semconv.ContextLedgerTokenSource)
	measureOutputTokens   = newMeasure(semconv.MetricOutputTokens)
	measureReusableTokens = newMeasure(semconv.MetricReusableTokens, semconv.ContextLedgerIdentity)
	measureMissTokens     = newMeasure(semconv.MetricMissTokens,
		semconv.ContextLedgerMissCause, semconv.ContextLedgerIdentity)
	measureProviderVerdicts = newMeasure(semconv.MetricProviderVerdicts, semconv.ContextLedgerVerdictConflict)
	measureIdentityChanges  = newMeasure(semconv.MetricIdentityChanges, semconv.ContextLedgerPart)
	measureChecks           = newMeasure(semconv.MetricChecks, semconv.ContextLedgerPillar, semconv.ContextLedgerVerdict)
	measureRepeatedRead     = newMeasure(semconv.MetricRepeatedRead)
	measureTimeToFirstToken = newMeasure(semconv.MetricTimeToFirstToken, semconv.ContextLedgerCacheOutcome)
	measureCost             = newMeasure(semconv.MetricCost, semconv.ContextLedgerCostComponent)
	measureCostWithoutCache = newMeasure(semconv.MetricCostWithoutCache, semconv.ContextLedgerCostComponent)
	measureTasks            = newMeasure(semconv.MetricTasks, semconv.ContextLedgerTaskOutcome)
	measureCompactionTokens = newMeasure(semconv.MetricCompactionTokens, semconv.ContextLedgerSide)
	measureCompactions      = newMeasure(semconv.MetricCompactions, semconv.ContextLedgerCompactionKind,
		semconv.ContextLedgerCompactionTrigger, semconv.ContextLedgerCompactionOutcome,
		semconv.ContextLedgerCompactionValidatorResult)
)

// sharedNames are the attributes that every metric of an entry has, in the order of the registry.
var sharedNames = words{
	semconv.GenAIProviderName, semconv.GenAIRequestModel, semconv.ContextLedgerProviderSurface, semconv.GenAIAgentName,
}

// shared gives their values.
func shared(c *call.Call) words {
	return words{c.Model.Provider, c.Model.Requested, c.Model.Surface, c.Task.Agent}
}

// measurements adds everything that a call adds to the metrics to a list; what is unknown adds nothing.
func measurements(found []measurement, c *call.Call) []measurement {
	same := c.IdentityWord()
	found = append(found, one(measureCalls, c.Verdict.Outcome, same, c.Task.Kind, c.Request.ErrorType))
	found = tokens(found, c)
	found = whole(found, measureOutputTokens, c.Usage.Output)
	if c.Usage.CacheRead != nil { // where nobody said what was reused, the tokens would count as kept
		found = whole(found, measureReusableTokens, c.Verdict.Reusable, same)
	}
	if c.Verdict.Cause != "" && positive(c.Verdict.Avoidable) {
		found = whole(found, measureMissTokens, c.Verdict.Avoidable, c.Verdict.Cause, same)
	}
	if conflict := c.Verdict.Conflict; conflict != nil {
		found = append(found, one(measureProviderVerdicts, strconv.FormatBool(*conflict)))
	}
	for _, part := range c.Context.IdentityChanged {
		found = append(found, one(measureIdentityChanges, part))
	}
	found = checks(found, &c.Checks)
	if positive(c.Request.RepeatedReadBytes) {
		found = whole(found, measureRepeatedRead, c.Request.RepeatedReadBytes)
	}
	found = amount(found, measureTimeToFirstToken, c.Request.TimeToFirstToken, c.Verdict.Outcome)
	return costs(found, &c.Cost)
}

// tokens adds the prompt tokens in exclusive classes. Counts that contradict each other have no class: they are told
// as one whole of which nobody knows what was cached.
func tokens(found []measurement, c *call.Call) []measurement {
	rest, source := c.Usage.Uncached(), semconv.TokenSourceUncached
	if rest == nil {
		rest, source = c.Usage.Unreported(), semconv.TokenSourceUnreported
	}
	if rest == nil {
		return whole(found, measureInputTokens, c.Usage.Input, semconv.TokenSourceUnreported)
	}
	found = whole(found, measureInputTokens, c.Usage.CacheRead, semconv.TokenSourceCacheRead)
	found = whole(found, measureInputTokens, c.Usage.CacheWrite, semconv.TokenSourceCacheWrite)
	return whole(found, measureInputTokens, rest, source)
}

func checks(found []measurement, c *call.Checks) []measurement {
	pillars := [...]struct{ name, verdict string }{
		{semconv.PillarPolicy, c.Policy},
		{semconv.PillarRepository, c.Repository},
		{semconv.PillarTools, c.Tools},
		{semconv.PillarConstraints, c.Constraints},
		{semconv.PillarState, c.State},
	}
	for _, looked := range pillars {
		if looked.verdict != "" {
			found = append(found, one(measureChecks, looked.name, looked.verdict))
		}
	}
	return found
}

// costs adds money alone: quota is none. An entry has no parts of its cost, only the whole.
func costs(found []measurement, c *call.Cost) []measurement {
	if c.Unit != semconv.CostUnitUsd || c.Amount == nil {
		return found
	}
	found = amount(found, measureCost, c.Amount, semconv.CostComponentTotal)
	return amount(found, measureCostWithoutCache, c.WithoutCache, semconv.CostComponentTotal)
}

// compaction adds what a compaction that is over adds to the metrics.
func compaction(found []measurement, c *call.Call) []measurement {
	told := &c.Compaction
	found = append(found, one(measureCompactions, told.Kind, told.Trigger, told.Outcome, told.ValidatorResult))
	found = whole(found, measureCompactionTokens, told.TokensBefore, semconv.SideBefore)
	return whole(found, measureCompactionTokens, told.TokensAfter, semconv.SideAfter)
}

func one(of *measure, own ...string) measurement {
	found := measurement{of: of, whole: 1}
	copy(found.words[:], own)
	return found
}

func whole(found []measurement, of *measure, count *int64, own ...string) []measurement {
	if count == nil {
		return found
	}
	added := measurement{of: of, whole: *count}
	copy(added.words[:], own)
	return append(found, added)
}

func amount(found []measurement, of *measure, value *float64, own ...string) []measurement {
	if value == nil {
		return found
	}
	added := measurement{of: of, amount: *value}
	copy(added.words[:], own)
	return append(found, added)
}

func positive(count *int64) bool { return count != nil && *count > 0 }
