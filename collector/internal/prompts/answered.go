package prompts

import (
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/attribution"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
)

// Bounds of what one head remembers of its past.
const (
	maxAnchors = 64
	maxRoutes  = 8
)

// answered writes into a head what is remembered of its call once its answer is known.
func answered(head *lineage.Head, found Finding, closed float64) {
	answer, earlier := found.Case.Answer, found.Draft.Link.Head
	usage := answer.Usage
	head.Closed, head.Tokens, head.Cached = &closed, usage.Input, usage.CacheRead
	head.Served, head.Route, head.Response = answer.Served, answer.Route, answer.Response
	head.Written = attribution.Written(answer, found.Case.Request)
	head.Anchors = anchored(head, usage.Input)
	head.Routes = routes(found)
	head.Forked, head.ForkOf = found.Draft.Link.Parent != "" || (earlier != nil && earlier.Forked), Origin(found.Draft)
	head.TurnEnded = answer.TurnEnded
	head.Stored = stored(found)
	head.Plateau, head.Wakes = streaks(found)
}

func stored(found Finding) *int64 {
	usage := found.Case.Answer.Usage
	if usage.CacheRead == nil {
		return nil
	}
	kept := *usage.CacheRead
	if usage.CacheWrite != nil {
		kept += *usage.CacheWrite
	}
	return &kept
}

// streaks are how many calls in a row missed and read the same count, and how often a fork was woken.
func streaks(found Finding) (plateau, wakes int) {
	earlier, cached := found.Draft.Link.Head, found.Case.Answer.Usage.CacheRead
	if earlier == nil {
		return 0, 0
	}
	if found.Case.Shortfall() > 0 && same(earlier.Cached, cached) {
		plateau = earlier.Plateau + 1
	}
	wakes = earlier.Wakes
	if attribution.Woken(earlier) {
		wakes++
	}
	return plateau, wakes
}

func same(a, b *int64) bool {
	return (a == nil && b == nil) || (a != nil && b != nil && *a == *b)
}

// anchored are the counts that hold for a prompt: those of its prefixes, and its own.
func anchored(head *lineage.Head, tokens *int64) []lineage.Anchor {
	if tokens == nil {
		return head.Anchors
	}
	size, kept := head.Outline.Total, []lineage.Anchor{}
	for _, anchor := range head.Anchors {
		if anchor.Size < size && anchor.Tokens <= *tokens {
			kept = append(kept, anchor)
		}
	}
	kept = kept[max(0, len(kept)-maxAnchors+1):]
	return append(kept, lineage.Anchor{Size: size, Tokens: *tokens})
}

// routes are the last hosts that saw this branch, each with the size of the last prompt that it saw.
func routes(found Finding) []lineage.Seen {
	known := []lineage.Seen{}
	if earlier := found.Draft.Link.Head; earlier != nil && found.Draft.Link.Grows() {
		known = append(known, earlier.Routes...)
	}
	answer := found.Case.Answer
	if answer.Route == "" || answer.Usage.Input == nil {
		return known
	}
	for at := range known {
		if known[at].Route == answer.Route {
			known[at].Tokens = *answer.Usage.Input
			return known
		}
	}
	known = append(known, lineage.Seen{Route: answer.Route, Tokens: *answer.Usage.Input})
	return known[max(0, len(known)-maxRoutes):]
}

// Origin is the session whose history a call's began with: of its first call the one that it was compared with, then what
// is remembered of that; empty for none.
func Origin(draft Draft) string {
	link := draft.Link
	switch {
	case link.Parent != "":
		return link.Parent
	case link.Head != nil && link.Head.Session == link.Session:
		return link.Head.ForkOf
	default:
		return ""
	}
}
