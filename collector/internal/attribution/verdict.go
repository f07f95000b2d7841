package attribution

import (
	"slices"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/cause"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Judgement are the causes of a miss, the primary one first, and whether the provider's own reason contradicts what we
// saw; nil where neither can be said.
type Judgement struct {
	Causes   []cause.Cause
	Conflict *bool
}

// Words for a provider's silence, and its own for a hit.
const (
	NoDivergence = "no_divergence"
	cacheHit     = "cache_hit"
)

// verdicts are a provider's reasons with our words for what each covers, the likeliest first (Anthropic's cache
// diagnostics page, OpenAI's prompt cache diagnostics guide, the types of their SDKs of 2026-11). OpenAI's input holds
// system texts too.
var verdicts = map[string][]string{
	"model_changed": {semconv.MissCauseModelChanged},
	"system_changed": {
		semconv.MissCausePolicyChanged, semconv.MissCauseVolatilePrefix, semconv.MissCauseClientVersionChanged,
	},
	"tools_changed": {
		semconv.MissCauseToolsChanged, semconv.MissCauseToolsReordered, semconv.MissCauseToolsSerializationChanged,
		semconv.MissCauseVolatilePrefix,
	},
	"messages_changed": {semconv.MissCauseHistoryRewritten, semconv.MissCauseHistoryCompacted},
	"input_changed": {
		semconv.MissCauseHistoryRewritten, semconv.MissCauseHistoryCompacted, semconv.MissCausePolicyChanged,
		semconv.MissCauseVolatilePrefix, semconv.MissCauseClientVersionChanged,
	},
	"context_compacted":        {semconv.MissCauseHistoryCompacted, semconv.MissCauseHistoryRewritten},
	"prompt_cache_key_changed": {semconv.MissCauseCacheKeyChanged},
	"reasoning_effort_changed": {semconv.MissCauseEffortChanged},
	"verbosity_changed":        {semconv.MissCauseSettingsChanged},
	"text_format_changed":      {semconv.MissCauseSettingsChanged},
	"service_tier_changed":     {semconv.MissCauseSettingsChanged},
}

// spoken are the settings that such a reason speaks of, by their names in a request of any dialect.
var spoken = map[string][]string{
	"verbosity_changed":    {"verbosity", "text"},
	"text_format_changed":  {"response_format", "text"},
	"service_tier_changed": {"service_tier"},
	"model_changed":        {"speed"},
}

// divergent are the causes that say that two requests differ in content.
var divergent = []string{
	semconv.MissCauseModelChanged, semconv.MissCausePolicyChanged, semconv.MissCauseVolatilePrefix,
	semconv.MissCauseClientVersionChanged, semconv.MissCauseToolsChanged, semconv.MissCauseToolsReordered,
	semconv.MissCauseToolsSerializationChanged, semconv.MissCauseHistoryRewritten, semconv.MissCauseHistoryCompacted,
}

// Combined is what we saw beside the provider's own word: confirmed, contradicted, or explained where we could not. A
// verdict that names no difference and claims no equality says nothing about ours.
func Combined(found []cause.Cause, verdict string) Judgement {
	name := ""
	if len(found) > 0 {
		name = found[0].Name
	}
	switch {
	case verdict == cacheHit:
		return conflicting(found, name != "" && name != semconv.MissCauseNotReported)
	case verdict == NoDivergence && name == "":
		return Judgement{Causes: found}
	case verdict == NoDivergence:
		return conflicting(found, slices.Contains(divergent, name))
	}
	words, known := verdicts[verdict]
	if !known {
		return Judgement{Causes: found}
	}
	return against(found, name, verdict, words)
}

func conflicting(found []cause.Cause, conflict bool) Judgement {
	return Judgement{found, &conflict}
}

// against holds a provider's reason against what was found.
func against(found []cause.Cause, name, verdict string, words []string) Judgement {
	confirmed, covered := slices.Clone(found), false
	for at, one := range confirmed {
		if covers(one, verdict, words) {
			covered = true
			confirmed[at] = one.By(providerReported)
			confirmed[at].Confidence = semconv.MissConfidenceObserved
		}
	}
	told := cause.Cause{Name: words[0], Evidence: []string{providerReported}, Confidence: semconv.MissConfidenceObserved}
	first := name == semconv.MissCauseColdStart && len(found[0].Detail) == 0
	switch {
	case covered:
		return conflicting(confirmed, false)
	case name == semconv.MissCauseProviderUnexplained:
		return conflicting(append([]cause.Cause{told}, found[1:]...), true)
	case name == semconv.MissCausePreviousUnknown || first:
		return conflicting(append([]cause.Cause{told}, found...), false)
	case name == semconv.MissCauseNotReported:
		return Judgement{Causes: found}
	default:
		return conflicting(found, true)
	}
}

// covers says whether a cause is among what a provider's reason covers; it knows no order or clock apart. Of settings it
// means certain ones, and a volatile span is where it stands.
func covers(one cause.Cause, verdict string, words []string) bool {
	switch {
	case one.Name == semconv.MissCauseSettingsChanged:
		return slices.ContainsFunc(one.Detail, func(name string) bool { return slices.Contains(spoken[verdict], name) })
	case one.Name == semconv.MissCauseVolatilePrefix && one.Position != nil:
		inTools := one.Position.Segment == segments.Tool
		return slices.Contains(words, one.Name) && inTools == (verdict == "tools_changed")
	default:
		return slices.Contains(words, one.Name)
	}
}
