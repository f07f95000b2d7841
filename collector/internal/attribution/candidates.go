package attribution

import (
	"fmt"
	"strings"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/cause"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/differences"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/spelling"
)

// The details of a change to a model with another window.
const (
	downshift = "window_downshift"
	upshift   = "window_upshift"
)

const (
	localDiff        = "local_diff"
	providerReported = "provider_reported"
)

// settings is the place of what stands outside the content.
const settings = "settings"

func remembers(tool string) bool { return strings.Contains(tool, "memory") }

func model(c Case, head *lineage.Head) []cause.Cause {
	asked, before := c.Request.Model, head.Identity.Part(semconv.PartModel)
	where := &cause.Position{Segment: settings, Name: "model"}
	served, servedBefore := c.Answer.Served, head.Served
	switch {
	case asked != before:
		change := fmt.Sprintf("model=%s>%s", spelling.Model(before), spelling.Model(asked))
		return []cause.Cause{cause.Seen(semconv.MissCauseModelChanged, windows(c, before, asked)...).In(where).By(change)}
	case served != "" && servedBefore != "" && served != servedBefore:
		change := fmt.Sprintf("served=%s>%s", spelling.Model(servedBefore), spelling.Model(served))
		return []cause.Cause{{
			Name: semconv.MissCauseModelChanged, Detail: []string{"served"}, Position: where,
			Evidence: []string{providerReported, change, "requested_unchanged"}, Confidence: semconv.MissConfidenceObserved,
		}}
	default:
		return nil
	}
}

func windows(c Case, before, now string) []string {
	old, known := c.Rules.Windows[before]
	size, also := c.Rules.Windows[now]
	switch {
	case !known || !also || old == size:
		return nil
	case size < old:
		return []string{downshift}
	default:
		return []string{upshift}
	}
}

// candidates are the differences outside the content, each a possible reason and none a certain one.
func candidates(c Case, head *lineage.Head) []cause.Cause {
	found := []cause.Cause{}
	now, before := c.Request, head.Request
	if route := c.Answer.Route; head.Route != "" && route != "" && head.Route != route {
		found = append(found, routed(head.Route, route, *c.Idle()))
	}
	if now.Effort != before.Effort {
		change := fmt.Sprintf("effort=%s>%s", word(before.Effort), word(now.Effort))
		found = append(found, possible(semconv.MissCauseEffortChanged, "effort").By(change))
	}
	if changed := differences.Settings(before.Settings, now.Settings); len(changed) > 0 {
		found = append(found, possible(semconv.MissCauseSettingsChanged, changed[0]).With(changed...))
	}
	if now.CacheKey != before.CacheKey {
		found = append(found, possible(semconv.MissCauseCacheKeyChanged, "cache_key"))
	}
	return append(found, given(retention(c, head))...)
}

// word spells a word, or what Python writes for none.
func word(text string) string {
	if text == "" {
		return "None"
	}
	return spelling.Word(text)
}

func routed(before, now string, idle float64) cause.Cause {
	change := fmt.Sprintf("route=%s>%s", spelling.Name(before, spelling.MaxName), spelling.Name(now, spelling.MaxName))
	return cause.Cause{
		Name: semconv.MissCauseRouteChanged, Evidence: []string{providerReported, change, seconds("idle", idle)},
		Confidence: semconv.MissConfidenceObserved,
	}
}

func seconds(name string, value float64) string {
	return fmt.Sprintf("%s_seconds=%.0f", name, value)
}

// possible is a difference that may have cost something.
func possible(name, setting string) cause.Cause {
	found := cause.Fits(name, localDiff)
	found.Position = &cause.Position{Segment: settings, Name: setting}
	return found
}

func retention(c Case, head *lineage.Head) *cause.Cause {
	lifetime, idle := c.Lifetime(), c.Idle()
	if lifetime != nil && idle != nil && *idle > *lifetime {
		found := Expired(*idle, *lifetime)
		return &found
	}
	now := Written(c.Answer, c.Request)
	if head.Written == "" || now == "" || now == head.Written {
		return nil
	}
	twice := min(c.Shortfall(), or0(c.Answer.Usage.CacheWrite))
	found := cause.Cause{Name: semconv.MissCauseRetentionChanged, Confidence: semconv.MissConfidenceObserved}.By(
		fmt.Sprintf("retention=%s>%s", word(head.Written), word(now)), fmt.Sprintf("duplicate_write_tokens=%d", twice),
	)
	return &found
}

// Expired is the cause that the comparable call's prefix was kept for less time than has passed, both in seconds.
func Expired(idle, lifetime float64) cause.Cause {
	return cause.Fits(semconv.MissCauseRetentionExpired, seconds("idle", idle), seconds("retention", lifetime))
}
