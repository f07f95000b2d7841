package contextledgerconnector

import (
	"strconv"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// pair is an attribute of a point or a resource.
type pair struct{ key, value string }

// measurement is what one entry adds to one metric: a whole number, or an amount where the metric's unit is divisible.
// Pairs without a value are not told.
type measurement struct {
	metric string
	whole  int64
	amount float64
	own    [mostOwn]pair
}

// mostOwn is how many attributes of its own a metric has at most.
const mostOwn = 4

// shared are the attributes that every metric of an entry has, in the order of the registry.
func shared(c *call.Call) [4]pair {
	return [4]pair{
		{semconv.GenAIProviderName, c.Model.Provider},
		{semconv.GenAIRequestModel, c.Model.Requested},
		{semconv.ContextLedgerProviderSurface, c.Model.Surface},
		{semconv.GenAIAgentName, c.Task.Agent},
	}
}

// measurements adds everything that a call adds to the metrics to a list; what is unknown adds nothing.
func measurements(found []measurement, c *call.Call) []measurement {
	same := pair{semconv.ContextLedgerIdentity, c.IdentityWord()}
	outcome := pair{semconv.ContextLedgerCacheOutcome, c.Verdict.Outcome}
	found = append(found, one(semconv.MetricCalls,
		outcome, same,
		pair{semconv.ContextLedgerRequestKind, c.Task.Kind},
		pair{semconv.ErrorType, c.Request.ErrorType},
	))
	found = tokens(found, c)
	found = whole(found, semconv.MetricOutputTokens, c.Usage.Output)
	if c.Usage.CacheRead != nil { // where nobody said what was reused, the tokens would count as kept
		found = whole(found, semconv.MetricReusableTokens, c.Verdict.Reusable, same)
	}
	if c.Verdict.Cause != "" && positive(c.Verdict.Avoidable) {
		found = whole(found, semconv.MetricMissTokens, c.Verdict.Avoidable,
			pair{semconv.ContextLedgerMissCause, c.Verdict.Cause}, same)
	}
	if conflict := c.Verdict.Conflict; conflict != nil {
		found = append(found, one(semconv.MetricProviderVerdicts,
			pair{semconv.ContextLedgerVerdictConflict, strconv.FormatBool(*conflict)}))
	}
	for _, part := range c.Context.IdentityChanged {
		found = append(found, one(semconv.MetricIdentityChanges, pair{semconv.ContextLedgerPart, part}))
	}
	found = checks(found, c.Checks)
	if positive(c.Request.RepeatedReadBytes) {
		found = whole(found, semconv.MetricRepeatedRead, c.Request.RepeatedReadBytes)
	}
	found = amount(found, semconv.MetricTimeToFirstToken, c.Request.TimeToFirstToken, outcome)
	return costs(found, c.Cost)
}

// tokens adds the prompt tokens in exclusive classes. Counts that contradict each other have no class: they are told
// as one whole of which nobody knows what was cached.
func tokens(found []measurement, c *call.Call) []measurement {
	source := func(word string) pair { return pair{semconv.ContextLedgerTokenSource, word} }
	rest, word := c.Usage.Uncached(), semconv.TokenSourceUncached
	if rest == nil {
		rest, word = c.Usage.Unreported(), semconv.TokenSourceUnreported
	}
	if rest == nil {
		return whole(found, semconv.MetricInputTokens, c.Usage.Input, source(semconv.TokenSourceUnreported))
	}
	found = whole(found, semconv.MetricInputTokens, c.Usage.CacheRead, source(semconv.TokenSourceCacheRead))
	found = whole(found, semconv.MetricInputTokens, c.Usage.CacheWrite, source(semconv.TokenSourceCacheWrite))
	return whole(found, semconv.MetricInputTokens, rest, source(word))
}

func checks(found []measurement, c call.Checks) []measurement {
	pillars := [...]pair{
		{semconv.PillarPolicy, c.Policy},
		{semconv.PillarRepository, c.Repository},
		{semconv.PillarTools, c.Tools},
		{semconv.PillarConstraints, c.Constraints},
		{semconv.PillarState, c.State},
	}
	for _, looked := range pillars {
		if looked.value != "" {
			found = append(found, one(semconv.MetricChecks,
				pair{semconv.ContextLedgerPillar, looked.key}, pair{semconv.ContextLedgerVerdict, looked.value}))
		}
	}
	return found
}

// costs adds money alone: quota is none. An entry has no parts of its cost, only the whole.
func costs(found []measurement, c call.Cost) []measurement {
	if c.Unit != semconv.CostUnitUsd || c.Amount == nil {
		return found
	}
	total := pair{semconv.ContextLedgerCostComponent, semconv.CostComponentTotal}
	found = amount(found, semconv.MetricCost, c.Amount, total)
	return amount(found, semconv.MetricCostWithoutCache, c.WithoutCache, total)
}

// compaction gives what a compaction that is over adds to the metrics.
func compaction(c *call.Call) []measurement {
	found := []measurement{one(semconv.MetricCompactions,
		pair{semconv.ContextLedgerCompactionKind, c.Compaction.Kind},
		pair{semconv.ContextLedgerCompactionTrigger, c.Compaction.Trigger},
		pair{semconv.ContextLedgerCompactionOutcome, c.Compaction.Outcome},
		pair{semconv.ContextLedgerCompactionValidatorResult, c.Compaction.ValidatorResult},
	)}
	found = whole(found, semconv.MetricCompactionTokens, c.Compaction.TokensBefore,
		pair{semconv.ContextLedgerSide, semconv.SideBefore})
	return whole(found, semconv.MetricCompactionTokens, c.Compaction.TokensAfter, pair{semconv.ContextLedgerSide,
		semconv.SideAfter})
}

func one(metric string, own ...pair) measurement {
	found := measurement{metric: metric, whole: 1}
	copy(found.own[:], own)
	return found
}

func whole(found []measurement, metric string, count *int64, own ...pair) []measurement {
	if count == nil {
		return found
	}
	added := measurement{metric: metric, whole: *count}
	copy(added.own[:], own)
	return append(found, added)
}

func amount(found []measurement, metric string, value *float64, own ...pair) []measurement {
	if value == nil {
		return found
	}
	added := measurement{metric: metric, amount: *value}
	copy(added.own[:], own)
	return append(found, added)
}

func positive(count *int64) bool { return count != nil && *count > 0 }
