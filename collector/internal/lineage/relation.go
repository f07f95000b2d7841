package lineage

import (
	"slices"
	"strings"
	"unicode"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/identity"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

type match struct {
	head     *Head
	relation string
	shared   int
	tail     int
	tailAt   int
}

// relate says how a request stands to a head, by their message digests alone.
func relate(head *Head, outline *segments.Outline) (match, bool) {
	before, now := head.Outline.Digests, outline.Digests
	if len(before) == 0 || len(now) == 0 {
		return match{head: head, relation: Repeats}, len(before) == len(now)
	}
	size := Common(before, now)
	if size == len(before) {
		return match{head: head, relation: grown(size, len(now)), shared: size}, true
	}
	if tail, at := keptTail(before, now, size); tail > 0 {
		return match{head, Rewrites, size, tail, at}, true
	}
	return match{head: head, relation: turned(size, len(before), len(now)), shared: size}, true
}

func grown(shared, now int) string {
	if shared == now {
		return Repeats
	}
	return Extends
}

func turned(shared, before, now int) string {
	switch {
	case shared == 0:
		return Departs
	case now > before:
		return Rewrites
	default:
		return Rewinds
	}
}

// Common is the number of leading digests that two lists share.
func Common(before, now []canonical.Digest) int {
	size := min(len(before), len(now))
	for at := range size {
		if before[at] != now[at] {
			return at
		}
	}
	return size
}

// maxPlaces is at how many places a head's last message is looked for.
const maxPlaces = 64

// keptTail is how many of the last items of a list stand together in another one from `start` on, and from where. Where
// the last item occurs more than once, the longest run counts, and of equal ones the one that moved least.
func keptTail(before, now []canonical.Digest, start int) (kept, from int) {
	places := []int{}
	for at := start; at < len(now); at++ {
		if now[at] == before[len(before)-1] {
			places = append(places, at)
		}
	}
	best, where := 0, 0
	for _, at := range places[max(0, len(places)-maxPlaces):] {
		run := runBack(before, now, at, start)
		if run > best || (run == best && moved(at, before) <= moved(where, before)) {
			best, where = run, at
		}
	}
	if best == 0 {
		return 0, 0
	}
	return best, where - best + 1
}

func moved(at int, before []canonical.Digest) int {
	distance := at - len(before) + 1
	return max(distance, -distance)
}

func runBack(before, now []canonical.Digest, at, start int) int {
	kept := 0
	for kept < len(before)-start && at-kept >= start && before[len(before)-1-kept] == now[at-kept] {
		kept++
	}
	return kept
}

// looseOverlap is how much shared history it takes, without the program's word, for another model with another header to
// continue a session.
const looseOverlap = 8

// maxOpening is how many messages are looked at for an answer.
const maxOpening = 16

// begun says whether a conversation has an answer in it already.
func begun(outline *segments.Outline) bool {
	asked := []string{"user", "system", "developer"}
	return slices.ContainsFunc(outline.Messages[:min(len(outline.Messages), maxOpening)], func(message any) bool {
		return !slices.Contains(asked, segments.Role(message))
	})
}

// OpensWith says whether a text begins with one of the openings.
func OpensWith(text string, openings []string) bool {
	return slices.ContainsFunc(openings, func(opening string) bool { return strings.HasPrefix(text, opening) })
}

// request is what is held against heads.
type request struct {
	outline  *segments.Outline
	identity identity.Identity
}

// admits says whether a match is a continuation. The program's word makes it one; else the evidence must be strong.
func (l *Lineage) admits(found match, given request, explicit bool) bool {
	sameHeader := found.head.Outline.Root == given.outline.Root
	if explicit {
		return found.relation != Departs || sameHeader || len(given.outline.Messages) > 1
	}
	if !found.head.same(given.identity, semconv.PartProviderSurface) || found.relation == Departs {
		return false
	}
	sameModel := found.head.same(given.identity, semconv.PartModel)
	if found.relation == Repeats {
		return sameModel && (sameHeader || begun(given.outline))
	}
	return (begun(given.outline) || l.summarised(given.outline)) && l.convinces(found, given.outline, sameModel, sameHeader)
}

func (h *Head) same(given identity.Identity, part string) bool {
	return h.Identity.Part(part) == given.Part(part)
}

func (l *Lineage) summarised(outline *segments.Outline) bool {
	if len(outline.Messages) == 0 {
		return false
	}
	return OpensWith(strings.TrimLeftFunc(segments.Texts(outline.Messages[0]), unicode.IsSpace), l.summaries)
}

func (l *Lineage) convinces(found match, outline *segments.Outline, sameModel, sameHeader bool) bool {
	kept := found.shared + found.tail
	switch {
	case found.shared == 0:
		return kept >= looseOverlap || l.summarised(outline)
	case sameModel:
		return found.relation != Rewinds || 2*found.shared >= len(outline.Messages)
	default:
		grows := found.relation == Extends || found.relation == Rewrites
		return grows && (sameHeader || kept >= looseOverlap)
	}
}

var strength = map[string]int{Repeats: 4, Extends: 4, Rewrites: 3, Rewinds: 2, Departs: 1}

// rank is a match's place among the ones that are admitted, the most telling number first.
func (m match) rank(given request, aliveSince *float64) []float64 {
	alive := aliveSince == nil || m.head.ended() >= *aliveSince
	order := strength[m.relation]
	sameCache := m.head.Identity.Cache == given.identity.Cache
	return []float64{
		truth(order == strength[Extends] && alive && sameCache), truth(m.head.same(given.identity, semconv.PartModel)),
		float64(order), truth(m.head.Outline.Root == given.outline.Root && alive), float64(m.shared + m.tail), m.head.Opened,
	}
}

func truth(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
