package prompts

import (
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Outcome is what the cache did, in the words of the registry.
func (f Finding) Outcome() string {
	return Outcome(f.Case.Answer.Usage, f.Draft.Link.Head != nil, len(f.Judgement.Causes) > 0)
}

// Outcome is what the cache did for a call of which is known whether there was one to compare it with, and whether
// something was missed.
func Outcome(usage call.Usage, compared, missed bool) string {
	switch left := usage.Missed(); {
	case usage.CacheRead == nil:
		return semconv.CacheOutcomeUnknown
	case left != nil && *left == 0:
		return semconv.CacheOutcomeHit
	case !compared:
		return semconv.CacheOutcomeCold
	case *usage.CacheRead == 0:
		return semconv.CacheOutcomeMiss
	case missed:
		return semconv.CacheOutcomePartial
	default:
		return semconv.CacheOutcomeHit
	}
}

// Avoidable gives the tokens that the comparable call had in the cache and this one did not read from it.
func (f Finding) Avoidable() *int64 {
	if f.Case.Answer.Usage.CacheRead == nil || f.Case.Expected == nil || f.Draft.Kind != semconv.RequestKindAgent {
		return nil
	}
	short := f.Case.Shortfall()
	return &short
}
