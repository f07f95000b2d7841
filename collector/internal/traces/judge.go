package traces

import (
	"fmt"
	"slices"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/attribution"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/cause"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Case is one finished call beside its comparable one, of which only traces are known. Compacted says that the session's
// history was told to be compacted between them, Resumed that the process which made the call knew of no earlier one.
type Case struct {
	Link      Link
	Now       *Trace
	Usage     call.Usage
	End       string
	Rules     attribution.Rules
	Compacted bool
	Resumed   bool
	Verdict   string

	// What Expected and Shortfall give, once they were asked.
	expected, shortfall *int64
	asked, measured     bool
}

// Bounds of what counts as lost: a block, or how far a prediction may be off at least, or which part of a prompt that is.
const (
	leastSlack = 64
	slackShare = 100
	plateau    = 3
)

func (c *Case) slack() int64 {
	return max(c.Rules.Block, leastSlack, c.Now.Tokens/slackShare)
}

// Reusable gives the tokens of the unchanged prefix, nil where nobody can say: of a call that goes on the comparable one's
// own count, else what its counts tell of the last boundary that both share. Under another model nothing is reusable.
func (c *Case) Reusable() *int64 {
	head := c.Link.Head
	if head == nil || !c.Link.Located {
		return nil
	}
	if head.Model != c.Now.Model {
		return new(int64)
	}
	if c.Link.Grows() && !c.Link.Sparse && head.Tokens != Unknown {
		return floored(Count(head.Tokens), c.Rules.Block)
	}
	return floored(c.intact(), c.Rules.Block)
}

func floored(tokens *int64, block int64) *int64 {
	if tokens == nil {
		return nil
	}
	return attribution.Floored(*tokens, block)
}

// intact gives the tokens up to the last boundary that both share, by the bytes between the counts around it; beyond the
// last count by that alone.
func (c *Case) intact() *int64 {
	if c.Link.Shared < 0 {
		return new(int64)
	}
	var below Anchor
	for _, anchor := range c.Link.Head.Anchors {
		if anchor.Bytes >= c.Link.Bytes {
			part := share(c.Link.Bytes-below.Bytes, anchor.Bytes-below.Bytes)
			tokens := below.Tokens + int64(part*float64(anchor.Tokens-below.Tokens))
			return &tokens
		}
		below = anchor
	}
	if below.Tokens == 0 {
		return nil
	}
	return &below.Tokens
}

func share(part, whole int64) float64 {
	if whole <= 0 {
		return 1
	}
	return float64(part) / float64(whole)
}

// Expected gives what could have been reused had nothing changed: the comparable prompt, no more than this one, in whole
// blocks; where the end of the history was taken back, no more than what is intact. The case must not change afterwards.
func (c *Case) Expected() *int64 {
	if !c.asked {
		c.expected, c.asked = c.expect(), true
	}
	return c.expected
}

func (c *Case) expect() *int64 {
	head := c.Link.Head
	if head == nil || head.Tokens == Unknown {
		return c.Reusable()
	}
	whole := c.held()
	if c.Now.Tokens != Unknown {
		whole = min(whole, c.Now.Tokens)
	}
	if intact := c.intact(); c.Link.Relation == lineage.Rewinds && !c.compacted() && intact != nil && *intact > 0 {
		whole = min(whole, *intact)
	}
	return attribution.Floored(whole, c.Rules.Block)
}

// held is what the provider can have kept of the comparable prompt: no more than it said it read or wrote, where it says
// what it writes.
func (c *Case) held() int64 {
	head := c.Link.Head
	if head.Stored > head.Cached {
		return min(head.Tokens, head.Stored)
	}
	return head.Tokens
}

// Shortfall is how many tokens could have been reused and were not, nil where nobody can say. The case must not change
// afterwards.
func (c *Case) Shortfall() *int64 {
	if expected := c.Expected(); !c.measured && expected != nil && c.Usage.CacheRead != nil {
		short := max(0, *expected-*c.Usage.CacheRead)
		c.shortfall = &short
	}
	c.measured = true
	return c.shortfall
}

// Significant says whether the shortfall is worth a person's attention.
func (c *Case) Significant() bool {
	short, expected := c.Shortfall(), c.Expected()
	return short != nil && attribution.Significant(*short, *expected)
}

// Idle is how many seconds have passed since the comparable call ended, nil where there is none.
func (c *Case) Idle() *float64 {
	if c.Link.Head == nil || c.Link.Head.Closed == 0 || c.Now.Opened == 0 {
		return nil
	}
	idle := max(0, c.Now.Opened-c.Link.Head.Closed)
	return &idle
}

// Lifetime is how many seconds the comparable call's prefix is kept, nil where nobody knows.
func (c *Case) Lifetime() *float64 {
	if c.Link.Head == nil {
		return c.Rules.Lifetime
	}
	return c.Rules.Kept(c.Link.Head.Written)
}

// Judge is the verdict on a call that has a comparable one.
func Judge(c *Case) attribution.Judgement {
	found := c.causes()
	if c.Resumed {
		for at := range found {
			if found[at].Name != semconv.MissCauseNotReported {
				found[at] = found[at].With("resume")
			}
		}
	}
	return attribution.Combined(found, c.Verdict)
}

func (c *Case) causes() []cause.Cause {
	missed := c.Usage.Missed()
	switch {
	case c.Usage.CacheRead == nil:
		return []cause.Cause{attribution.Unreported(attribution.Answer{Usage: c.Usage, End: c.End})}
	case missed == nil || *missed == 0 || c.Shortfall() == nil:
		return nil
	case !c.lost():
		return c.unstored()
	}
	content, others := c.content(), c.others()
	// Where a loss began is told by bytes alone: not well enough for a mere possibility to lead over what differs.
	possible := len(others) > 0 && others[0].Confidence == semconv.MissConfidenceInferred
	found := attribution.Arranged(content, others, possible || c.reached())
	if len(found) == 0 {
		return []cause.Cause{c.unchanged()}
	}
	return found
}

// lost says whether more was missed than one block, or than an estimate may err by. By counts alone only what is
// significant is lost: nobody knows what was asked for again.
func (c *Case) lost() bool {
	short := *c.Shortfall()
	switch {
	case !c.Link.Located:
		return c.Significant()
	case c.Link.Relation == lineage.Rewinds:
		return max(short, c.belowIntact()) > c.slack()
	case c.Rules.Block > 1:
		return short > c.Rules.Block
	default:
		return short > 0
	}
}

// belowIntact is how many tokens less were read than are known to be intact.
func (c *Case) belowIntact() int64 {
	intact := c.intact()
	if !c.Link.Located || intact == nil {
		return 0
	}
	return max(0, *intact-*c.Usage.CacheRead)
}

// reached says whether the provider reused all that is known to be intact, as far as that can be told by bytes.
func (c *Case) reached() bool {
	return c.belowIntact() <= c.slack()
}

// unstored: nothing was lost; but was anything there to be reused?
func (c *Case) unstored() []cause.Cause {
	if found := c.short(); found != nil && c.Link.Grows() {
		return []cause.Cause{*found}
	}
	return nil
}

// unchanged says why nothing was reused of what is not known to have changed.
func (c *Case) unchanged() cause.Cause {
	for _, check := range []func() *cause.Cause{c.short, c.lag, c.nearShort, c.granular} {
		if found := check(); found != nil {
			return *found
		}
	}
	name, seen := semconv.MissCauseProviderUnexplained, "prefix_intact"
	if unknown := c.unknown(); unknown != "" {
		name, seen = semconv.MissCausePreviousUnknown, unknown
	}
	found := cause.Fits(name, seen, fmt.Sprintf("cached_tokens=%s>%d", written(c.Link.Head.Cached), *c.Usage.CacheRead))
	if idle := c.Idle(); idle != nil {
		found = found.By(fmt.Sprintf("idle_seconds=%.0f", *idle))
	}
	if c.Plateau()+1 >= plateau && *c.Usage.CacheRead > 0 {
		return found.With("hit_plateau")
	}
	return found
}

// unknown is why what was sent before is not known well enough to say that it was the same, empty if it is.
func (c *Case) unknown() string {
	switch {
	case !c.Link.Located:
		return "counters"
	case c.Link.Shared < 0:
		return "header_differs"
	case c.Link.Sparse && c.reached():
		return "locator_sparse"
	default:
		return ""
	}
}

func written(count int64) string {
	if count == Unknown {
		return "None"
	}
	return fmt.Sprint(count)
}

// Plateau is how many calls in a row, this one included, missed and read the same count as the one before.
func (c *Case) Plateau() int {
	head := c.Link.Head
	if head == nil || c.Usage.CacheRead == nil || head.Cached != *c.Usage.CacheRead {
		return 0
	}
	if short := c.Shortfall(); short == nil || *short == 0 {
		return 0
	}
	return head.Plateau + 1
}

// short says whether the prompt was shorter than what the provider keeps.
func (c *Case) short() *cause.Cause {
	size, known := c.size()
	if !known || size > *c.Rules.Minimum || (size == *c.Rules.Minimum && !c.Rules.MinimumPrevious) {
		return nil
	}
	found := cause.Cause{
		Name: semconv.MissCauseBelowMinimum, Evidence: attribution.Threshold(c.Rules),
		Confidence: semconv.MissConfidenceObserved,
	}
	return &found
}

// nearShort is of prompts little above the documented minimum, while none of their size was seen to hit: it may be too
// low.
func (c *Case) nearShort() *cause.Cause {
	size, known := c.size()
	if !known || !attribution.NearMinimum(c.Rules, size) {
		return nil
	}
	found := cause.Fits(semconv.MissCauseBelowMinimum, attribution.Threshold(c.Rules)...)
	found = found.By(fmt.Sprintf("observed>%d", size))
	return &found
}

// size is the prompt that could have been kept and asked for again, of which nothing was read although a minimum is known.
func (c *Case) size() (int64, bool) {
	if c.Rules.Minimum == nil || *c.Usage.CacheRead > 0 || c.Link.Head.Tokens == Unknown {
		return 0, false
	}
	if c.Now.Tokens == Unknown {
		return c.Link.Head.Tokens, true
	}
	return min(c.Link.Head.Tokens, c.Now.Tokens), true
}

// lag: the earlier call's write cannot be read yet, for it was in flight, or had just ended.
func (c *Case) lag() *cause.Cause {
	head, idle := c.Link.Head, c.Idle()
	if idle == nil {
		return nil
	}
	if head.Closed > c.Now.Opened {
		found := cause.Fits(semconv.MissCauseColdStart, "in_flight").With("concurrent")
		return &found
	}
	if *idle > c.Rules.WriteLag || head.Plateau > 0 || c.Link.Relation == lineage.Rewinds || !c.readsEarlier() {
		return nil
	}
	found := cause.Fits(semconv.MissCauseColdStart, fmt.Sprintf("idle_seconds=%.0f", *idle)).With("write_not_visible")
	return &found
}

// readsEarlier says whether just what a call before the comparable one had written was read.
func (c *Case) readsEarlier() bool {
	read, anchors := *c.Usage.CacheRead, c.Link.Head.Anchors
	if c.Link.Head.First {
		return read == 0
	}
	return slices.ContainsFunc(anchors[:max(0, len(anchors)-1)], func(anchor Anchor) bool {
		return read == *attribution.Floored(anchor.Tokens, c.Rules.Block)
	})
}

// granular: less was read than is intact where no earlier prompt ended, as of a provider that keeps state at checkpoints.
func (c *Case) granular() *cause.Cause {
	if !c.Link.Located || c.Link.Sparse {
		return nil
	}
	lost, grain := *c.Shortfall(), attribution.Grain(*c.Expected())
	inside := c.Link.Relation == lineage.Rewinds
	if !inside && (*c.Usage.CacheRead == 0 || lost > grain) {
		return nil
	}
	if inside {
		lost = max(lost, c.belowIntact())
	}
	found := cause.Fits(semconv.MissCauseGranularity, "counters", fmt.Sprintf("shortfall=%d", lost))
	return &found
}
