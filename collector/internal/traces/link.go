package traces

import (
	"slices"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
)

// Link is a call's place among the earlier ones of its session. Head is the comparable one, nil where there is none.
//
// Located says that both told locators that can be compared. Shared is then the last boundary that is known to be the
// same, at Bytes bytes; -1 is none. Sparse says that the two may part before the earlier call's end although no boundary
// that both told differs. Without locators the relation is lineage.Continues: nobody knows what was sent.
type Link struct {
	Head     *Trace
	Relation string
	Located  bool
	Shared   int64
	Bytes    int64
	Sparse   bool
	Late     bool
}

// Grows says whether the call goes on from its comparable one, as far as is known.
func (l Link) Grows() bool {
	return l.Relation == lineage.Extends || l.Relation == lineage.Repeats || l.Relation == lineage.Continues
}

// Replaces says whether a call is remembered in the place of its comparable one: it goes on from it with the same cache
// identity.
func (l Link) Replaces(now *Trace) bool {
	return l.Head != nil && l.Grows() && l.Head.Parts.Cache == now.Parts.Cache && l.Head.Model == now.Model
}

// Past is what is known of a session's calls up to now. AliveSince is the time before which a prefix must not have been
// used last if the provider is to hold it still, 0 if nobody knows; Compacted says that the history was told to be
// compacted since the last call.
type Past struct {
	Calls      []*Trace
	AliveSince float64
	Compacted  bool
}

// Find gives a call's place among earlier ones of its session. What began after the call is none of its past: a call that
// comes so late that nothing else is known is Late.
func Find(past Past, now *Trace) Link {
	var best Link
	late := false
	for _, head := range past.Calls {
		if head.Opened > now.Opened {
			late = true
			continue
		}
		link, admitted := relate(head, now, past.Compacted)
		if !admitted {
			continue
		}
		if best.Head == nil || link.goesBefore(&best, now, past.AliveSince) {
			best = link
		}
	}
	best.Late = best.Head == nil && late
	return best
}

// relate says how a call stands to an earlier one, and whether it can go on from it. A history that was compacted may have
// nothing in common with the one before.
func relate(head, now *Trace, compacted bool) (Link, bool) {
	if len(head.Bounds) == 0 || len(now.Bounds) == 0 || head.Scheme != now.Scheme {
		return byCounts(head, now, compacted)
	}
	link := Link{Head: head, Located: true, Shared: -1}
	parted, at := false, int64(0)
	if last := head.Bounds[len(head.Bounds)-1]; now.tells(last) {
		link.Shared, link.Bytes = last.Messages, last.Bytes // its digest is of all before it, too
	} else {
		parted, at = link.share(head.Bounds, now.Bounds)
	}
	switch {
	case !parted:
		link.Relation = unparted(link.Shared, head.Messages, now.Messages)
	case link.Shared < 0:
		link.Relation = lineage.Departs
	default:
		link.Relation = parting(at, head.Messages, now.Messages)
	}
	link.Sparse = !parted && link.Shared < head.Messages
	return link, link.Shared > 0 || now.Messages > MaxFirst || link.Grows() || compacted || Summarised(head, now)
}

// tells says whether a trace has a boundary with the same digest.
func (t *Trace) tells(bound Bound) bool {
	for _, own := range slices.Backward(t.Bounds) {
		if own.Messages <= bound.Messages {
			return own.Messages == bound.Messages && own.Digest == bound.Digest
		}
	}
	return false
}

// share finds the last boundary that two locators share, and at which one they are known to part, if they do.
func (l *Link) share(before, now []Bound) (parted bool, at int64) {
	place := 0
	for _, bound := range before {
		for place < len(now) && now[place].Messages < bound.Messages {
			place++
		}
		if place == len(now) {
			break
		}
		if now[place].Messages != bound.Messages {
			continue
		}
		if now[place].Digest != bound.Digest {
			return true, bound.Messages
		}
		l.Shared, l.Bytes = bound.Messages, bound.Bytes
	}
	return false, 0
}

// MaxFirst is how many messages a first request has at most: with one more an answer can be among them. What shares with
// an earlier call nothing but its header, and is no longer, is another conversation of the same agent.
const MaxFirst = 2

// Summarised says whether a call builds on a summary that an earlier one did not build on.
func Summarised(head, now *Trace) bool {
	return head.Scheme == now.Scheme && now.Parts.Summary != 0 && head.Parts.Summary != now.Parts.Summary
}

// unparted is the relation of two calls that are not known to part.
func unparted(shared, before, now int64) string {
	switch {
	case now < before:
		return lineage.Rewinds
	case now == before && shared == before:
		return lineage.Repeats
	default:
		return lineage.Extends
	}
}

// parting is the relation of two calls that are known to part before the message at `at`. Who takes the end back asks one
// thing anew: with more than the last message another, something in between was written again.
func parting(at, before, now int64) string {
	if now > before || at < now {
		return lineage.Rewrites
	}
	return lineage.Rewinds
}

// grownTo is by which part a prompt must be no smaller than an earlier one to be taken for its continuation, going by
// counts alone.
const grownTo = 0.9

// byCounts relates two calls of which at least one told no locator: they go on from each other if they are of one agent
// and the prompt did not shrink, unless the history was compacted.
func byCounts(head, now *Trace, compacted bool) (Link, bool) {
	link := Link{Head: head, Relation: lineage.Continues, Shared: -1}
	if head.Agent != now.Agent || head.Tokens == Unknown || now.Tokens == Unknown {
		return link, false
	}
	return link, compacted || float64(now.Tokens) >= grownTo*float64(head.Tokens)
}

// strength is how much a relation tells of two calls.
func strength(relation string) float64 {
	switch relation {
	case lineage.Repeats, lineage.Extends:
		return 4
	case lineage.Continues, lineage.Rewrites:
		return 3
	case lineage.Rewinds:
		return 2
	default: // lineage.Departs
		return 1
	}
}

// goesBefore says whether a link is more likely than another one.
func (l *Link) goesBefore(other *Link, now *Trace, aliveSince float64) bool {
	mine, its := l.rank(now, aliveSince), other.rank(now, aliveSince)
	return slices.Compare(mine[:], its[:]) > 0
}

// ranks is by how many numbers links are ordered.
const ranks = 7

// rank is a link's place among those that are possible, the most telling number first.
func (l *Link) rank(now *Trace, aliveSince float64) [ranks]float64 {
	order := strength(l.Relation)
	alive := l.Head.Closed >= aliveSince
	sameCache := l.Head.Parts.Cache == now.Parts.Cache
	return [ranks]float64{
		truth(order == strength(lineage.Extends) && alive && sameCache), truth(l.Head.Model == now.Model), order,
		truth(l.Shared >= 0 && alive), float64(l.Shared), l.carried(now), l.Head.Opened,
	}
}

// carried is how many tokens a call can have carried on from its comparable one where only counts tell.
func (l Link) carried(now *Trace) float64 {
	if l.Located {
		return 0
	}
	return float64(min(l.Head.Tokens, now.Tokens))
}

func truth(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
