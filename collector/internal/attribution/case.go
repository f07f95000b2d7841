// Package attribution owns who is to blame for tokens that were not reused: one primary cause, the others secondary
// (spec/README.md, "Causes").
//
// The order of decision: nothing reported, nothing to compare with, no shortfall, another model, then whatever explains
// the earliest loss. A difference in content explains everything after its place; if the provider reused less than up to
// that place, a difference outside the content (route, effort, settings, key, age) explains more and leads, except that a
// mere possibility never leads over tools or system parts that are known to differ.
package attribution

import (
	"cmp"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
)

const (
	significantTokens = 2000
	significantShare  = 0.05
	// nearMinimum: a miss near the documented minimum is put down to it until a prompt of that size was seen to hit.
	nearMinimum = 2
	plateau     = 3
	// largestBlock is the largest block that a provider is known to count in (Kimi Code): a larger loss at the end of a
	// prompt is no rest.
	largestBlock = 256
	// sharedError: a prompt's header is told from its whole count alone, by the weight of its text: an eighth of it may
	// be wrong.
	sharedError = 8
	// leastSlack is how many tokens a prediction may be off at least, and slackShare which part of a prompt.
	leastSlack = 64
	slackShare = 100
)

// Rules are what is held to be true of a provider's cache when a call is judged; tokens and seconds, nil is unknown.
type Rules struct {
	Block           int64
	Minimum         *int64
	MinimumPrevious bool
	MinimumNote     string
	SmallestHit     int64
	Lifetime        *float64
	Retentions      map[string]float64
	WriteLag        float64
	Markers         bool
	Windows         map[string]int64
	Summaries       []string
}

// Kept is how many seconds a prefix is kept that was written under a retention: its own, else what is usual.
func (r Rules) Kept(written string) *float64 {
	if kept, ok := r.Retentions[written]; ok {
		return &kept
	}
	return r.Lifetime
}

// Answer is what came back of a call, without its text. End is how the call ended. Verdict is the provider's own word on a
// miss, empty where it said none.
type Answer struct {
	Usage     call.Usage
	Response  string
	Served    string
	Route     string
	Retention string
	TurnEnded bool
	Verdict   string
	End       string
}

// Case is one finished call beside its comparable call. Expected are the tokens that could have been reused had nothing
// changed, Reusable those of the unchanged prefix; Verdict is the provider's word, or ours for its silence. Now is when
// the call was opened, in seconds.
type Case struct {
	Link     lineage.Link
	Outline  *segments.Outline
	Request  segments.Request
	Answer   Answer
	Rules    Rules
	Now      float64
	Expected *int64
	Reusable *int64
	Verdict  string
}

func (c Case) cached() int64 { return or0(c.Answer.Usage.CacheRead) }
func (c Case) input() int64  { return or0(c.Answer.Usage.Input) }

func or0(count *int64) int64 {
	if count == nil {
		return 0
	}
	return *count
}

// Idle is how many seconds have passed since the comparable call ended, nil where there is none.
func (c Case) Idle() *float64 {
	head := c.Link.Head
	if head == nil {
		return nil
	}
	since := head.Opened
	if head.Closed != nil {
		since = *head.Closed
	}
	idle := max(0, c.Now-since)
	return &idle
}

// Lifetime is how many seconds the comparable call's prefix is kept: as its writes were reported or asked for, else as is
// usual for the model.
func (c Case) Lifetime() *float64 {
	if c.Link.Head == nil {
		return c.Rules.Lifetime
	}
	return c.Rules.Kept(c.Link.Head.Written)
}

// Shortfall is how many tokens could have been reused and were not.
func (c Case) Shortfall() int64 {
	return max(0, or0(c.Expected)-c.cached())
}

// Significant says whether the shortfall is worth a person's attention.
func (c Case) Significant() bool {
	return Significant(c.Shortfall(), or0(c.Expected))
}

// Significant says whether a shortfall of what was expected is worth a person's attention.
func Significant(shortfall, expected int64) bool {
	return shortfall >= significantTokens && float64(shortfall) > significantShare*float64(expected)
}

// slack is how far a prediction may be off: a block, or one percent of the prompt.
func (c Case) slack() int64 {
	return max(c.Rules.Block, leastSlack, c.input()/slackShare)
}

func (c Case) belowEstimate() int64 {
	return max(0, or0(c.Reusable)-c.cached())
}

// lost says whether more was missed than one block, or than an estimate may err by where no earlier prompt ended.
func (c Case) lost() bool {
	if c.Link.Relation == lineage.Rewinds {
		return max(c.Shortfall(), c.belowEstimate()) > c.slack()
	}
	if c.Rules.Block > 1 {
		return c.Shortfall() > c.Rules.Block
	}
	return c.Shortfall() > 0
}

// marked says whether markers decide what is kept: then reuse ends at one of them, which may be long before a change.
func (c Case) marked() bool {
	return c.Rules.Markers || len(c.Request.Breakpoints) > 0
}

func marksEnd(request segments.Request) bool {
	return request.Breakpoints[segments.Message] > 0 || request.Breakpoints["automatic"] > 0
}

// Written is the lifetime that a call's cache writes got: by their counts, as the answer says, else as asked for.
func Written(answer Answer, request segments.Request) string {
	return cmp.Or(Retained(&answer.Usage), answer.Retention, request.Retention)
}

// Retained is the lifetime that writes got by their counts, empty where none are told.
func Retained(usage *call.Usage) string {
	for _, told := range [...]struct {
		name  string
		count *int64
	}{{"12h", usage.Write12h}, {"1h", usage.Write1h}, {"30m", usage.Write30m}, {"5m", usage.Write5m}} {
		if or0(told.count) > 0 {
			return told.name
		}
	}
	return ""
}

// Woken says whether a call after a head wakes a fork that had finished its turn.
func Woken(head *lineage.Head) bool {
	return head != nil && head.Forked && head.TurnEnded
}

// Grain is the largest loss at the end of what was expected that a provider's blocks can explain.
func Grain(expected int64) int64 {
	return max(largestBlock, int64(significantShare*float64(expected)))
}
