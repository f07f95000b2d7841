package attribution

import (
	"fmt"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/cause"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/differences"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/weight"
)

// intact says why an unchanged prefix was not reused.
func intact(c Case, head *lineage.Head) cause.Cause {
	for _, check := range []func(Case, *lineage.Head) *cause.Cause{short, markers, lag, nearShort, evicted, granular} {
		if found := check(c, head); found != nil {
			return *found
		}
	}
	found := cause.Fits(
		semconv.MissCauseProviderUnexplained, "prefix_intact", seconds("idle", *c.Idle()),
		fmt.Sprintf("cached_tokens=%s>%d", count(head.Cached), c.cached()),
	)
	stays := head.Cached != nil && c.cached() == *head.Cached && head.Plateau+1 >= plateau-1
	if stays && c.cached() > 0 {
		return found.With("hit_plateau")
	}
	return found
}

func count(number *int64) string {
	if number == nil {
		return "None"
	}
	return fmt.Sprint(*number)
}

// short says whether the prompt was shorter than what the provider keeps.
func short(c Case, head *lineage.Head) *cause.Cause {
	minimum := c.Rules.Minimum
	if minimum == nil || c.cached() > 0 {
		return nil
	}
	size := c.size(head)
	if size < *minimum || (c.Rules.MinimumPrevious && size == *minimum) {
		return &cause.Cause{
			Name: semconv.MissCauseBelowMinimum, Evidence: Threshold(c.Rules), Confidence: semconv.MissConfidenceObserved,
		}
	}
	return nil
}

// nearShort is of prompts little above the documented minimum, while none of their size was seen to hit: it may be too
// low.
func nearShort(c Case, head *lineage.Head) *cause.Cause {
	size := c.size(head)
	if c.Rules.Minimum == nil || c.cached() > 0 || !NearMinimum(c.Rules, size) {
		return nil
	}
	found := cause.Fits(semconv.MissCauseBelowMinimum, Threshold(c.Rules)...).By(fmt.Sprintf("observed>%d", size))
	return &found
}

// NearMinimum says whether a prompt is little above the documented minimum, while none of its size was seen to hit.
func NearMinimum(rules Rules, size int64) bool {
	return size <= nearMinimum**rules.Minimum && (rules.SmallestHit == 0 || rules.SmallestHit > size)
}

// size is the prompt that could have been kept and asked for again, not yet cut to whole blocks.
func (c Case) size(head *lineage.Head) int64 {
	switch input := c.Answer.Usage.Input; {
	case head.Tokens == nil:
		return or0(c.Expected)
	case input == nil:
		return *head.Tokens
	default:
		return min(*head.Tokens, *input)
	}
}

// Threshold is the evidence of a minimum: what it is and where it is from.
func Threshold(rules Rules) []string {
	found := []string{fmt.Sprintf("minimum=%d", *rules.Minimum)}
	if rules.MinimumNote != "" {
		found = append(found, "origin="+rules.MinimumNote)
	}
	return found
}

// lag: the earlier call's write is not readable yet. It is still in flight, or so fresh that what an even earlier call
// had written was read instead.
func lag(c Case, head *lineage.Head) *cause.Cause {
	if head.Closed == nil || c.Link.Concurrent {
		found := cause.Fits(semconv.MissCauseColdStart, "in_flight").With("concurrent")
		return &found
	}
	idle := *c.Idle()
	if idle > c.Rules.WriteLag || head.Plateau > 0 || c.Link.Relation == lineage.Rewinds || !c.readsEarlier(head) {
		return nil
	}
	found := cause.Fits(semconv.MissCauseColdStart, seconds("idle", idle)).With("write_not_visible")
	return &found
}

func (c Case) readsEarlier(head *lineage.Head) bool {
	if head.First {
		return c.cached() == 0
	}
	for _, anchor := range head.Anchors[:max(0, len(head.Anchors)-1)] {
		if c.cached() == *Floored(anchor.Tokens, c.Rules.Block) {
			return true
		}
	}
	return false
}

// markers says whether a cache marker is missing at the end.
func markers(c Case, head *lineage.Head) *cause.Cause {
	used := c.marked() || len(head.Request.Breakpoints) > 0
	if !used || c.Request.Breakpoints == nil || marksEnd(c.Request) {
		return nil
	}
	marks := 0
	for _, number := range c.Request.Breakpoints {
		marks += number
	}
	last := len(c.Outline.Messages) - 1
	where := cause.At(segments.Message, last+c.Outline.Offset, "", "last_block_"+lastBlock(c.Outline.Messages))
	found := cause.Seen(semconv.MissCauseCacheBreakpointMissing, "messages").In(where).By(fmt.Sprintf("markers=%d", marks))
	return &found
}

func lastBlock(messages []any) string {
	if len(messages) == 0 {
		return "text"
	}
	parts := segments.Parts(messages[len(messages)-1])
	if len(parts) == 0 {
		return "text"
	}
	part, ok := parts[len(parts)-1].(canonical.Object)
	if !ok {
		return "text"
	}
	return word(canonical.Text(part.Get("type")))
}

// evicted: what was read is what this prompt shares with another call that went to the same place in between. The server
// seems to have had room for one of the two.
func evicted(c Case, head *lineage.Head) *cause.Cause {
	other := c.Link.Between
	if other == nil || c.cached() == 0 || (c.Link.Relation != lineage.Extends && c.Link.Relation != lineage.Repeats) {
		return nil
	}
	beside := c.Link
	beside.Head, beside.Shared = other, lineage.Common(other.Outline.Prefix, c.Outline.Prefix)
	beside.Relation = lineage.Rewinds
	tokens, known := weight.Tokens(head.Anchors, differences.SharedBytes(beside, c.Outline), head.Outline)
	off := c.cached() - tokens
	if !known || tokens == 0 || max(off, -off) > max(c.slack(), tokens/sharedError) {
		return nil
	}
	found := cause.Fits(
		semconv.MissCauseProviderUnexplained, "prefix_intact", "call_between", fmt.Sprintf("shared_with_it=%d", tokens),
	).With("evicted")
	return &found
}

// granular: a provider that keeps state at checkpoints reuses less than the common prefix where no earlier prompt ended,
// and one that counts in blocks nobody documented leaves out a part of the last one.
func granular(c Case, _ *lineage.Head) *cause.Cause {
	grain := Grain(or0(c.Expected))
	lost, inside := c.Shortfall(), c.Link.Relation == lineage.Rewinds
	if !inside && (c.cached() == 0 || lost > grain) {
		return nil
	}
	if inside {
		lost = max(lost, c.belowEstimate())
	}
	found := cause.Fits(semconv.MissCauseGranularity, "counters", fmt.Sprintf("shortfall=%d", lost))
	if inside {
		found.Position = cause.At(segments.Message, c.Link.Shared+c.Outline.Offset, "", "rewound")
	}
	return &found
}
