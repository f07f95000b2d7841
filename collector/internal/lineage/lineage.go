package lineage

import (
	"slices"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/identity"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/recent"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Bounds of what is remembered beside the sessions themselves.
const (
	maxHeads  = 64
	maxScopes = 64
	// maxTails is how many messages from the end are looked up as another call's last one.
	maxTails = 256
)

// unnamed says that a session was found, not named.
const unnamed = "lineage"

type session struct {
	heads    []*Head
	reorders []float64
}

// place names a head without keeping it.
type place struct{ session, entry string }

// Lineage holds the last request of each branch of each session, bounded by sessions and bytes. A head is replaced only
// by a request that extends it with the same cache identity, so interleaved sessions and forks never stand in each
// other's way. It is not locked.
type Lineage struct {
	maxSessions, maxBytes int
	summaries             []string
	sessions              *recent.Map[string, *session]
	openings, tails       map[canonical.Digest][]string
	roots                 *recent.Map[canonical.Digest, string]
	latest                *recent.Map[scope, place]
	responses             map[string]*Head
	bytes                 int
}

// New makes a lineage that has seen nothing. `summaries` are the known openings of summaries.
func New(maxSessions, maxBytes int, summaries []string) *Lineage {
	return &Lineage{
		maxSessions: maxSessions, maxBytes: maxBytes, summaries: summaries,
		sessions: recent.New[string, *session](), openings: map[canonical.Digest][]string{},
		tails: map[canonical.Digest][]string{}, roots: recent.New[canonical.Digest, string](),
		latest: recent.New[scope, place](), responses: map[string]*Head{},
	}
}

// Sessions is how many sessions are known, Bytes about how many bytes their requests hold.
func (l *Lineage) Sessions() int { return l.sessions.Len() }

// Bytes is told at Sessions.
func (l *Lineage) Bytes() int { return l.bytes }

// Link gives a request's place. `names` are those of its session in order of preference.
func (l *Lineage) Link(
	names []Name, sent segments.Request, outline *segments.Outline, found identity.Identity, arrival Arrival,
) Link {
	named, link := len(names) > 0, Link{Session: arrival.Session, Source: unnamed, Relation: First}
	if named {
		link.Session, link.Source = names[0].Session, names[0].Source
	}
	if sent.PreviousResponse != "" {
		return l.onServer(link, named, sent.PreviousResponse)
	}
	known, ok := l.sessions.Get(link.Session)
	explicit := named && ok
	var heads []*Head
	if explicit {
		heads = known.heads
	} else {
		heads = l.candidates(outline)
	}
	given := request{outline, found}
	best, matched := l.best(heads, given, explicit, arrival)
	if !matched {
		return l.alone(link, given, explicit, known)
	}
	if !named {
		link.Session = best.head.Session
	}
	link.Relation, link.Head, link.Shared = best.relation, best.head, best.shared
	link.Tail, link.TailAt = best.tail, best.tailAt
	link.Parent = parent(link.Session, best.head)
	link.Between = l.between(best.head, scopeOf(found, arrival.Endpoint))
	link.Concurrent = best.head.Closed == nil
	return link
}

// onServer is the place of a request that leaves its history to the provider and names the response that it goes on from.
func (l *Lineage) onServer(link Link, named bool, response string) Link {
	head, known := l.responses[response]
	if !known {
		link.LostTrack = true
		return link
	}
	if !named {
		link.Session = head.Session
	}
	link.Relation, link.Head, link.Parent = Continues, head, parent(link.Session, head)
	return link
}

func (l *Lineage) alone(link Link, given request, explicit bool, known *session) Link {
	link.Sibling = l.sibling(given)
	link.Concurrent = link.Sibling != nil && link.Sibling.Closed == nil
	if explicit && len(known.heads) > 0 {
		link.Beside = known.heads[len(known.heads)-1]
	}
	return link
}

func parent(session string, head *Head) string {
	if head.Session != session {
		return head.Session
	}
	return ""
}

// best is the match that tells most. A head that was opened later is none of the request's past: calls are told of in the
// order in which they end.
func (l *Lineage) best(heads []*Head, given request, explicit bool, arrival Arrival) (match, bool) {
	var best match
	var most []float64
	for _, head := range heads {
		found, related := relate(head, given.outline)
		if !related || head.Form != arrival.Form || head.Opened > arrival.Opened || !l.admits(found, given, explicit) {
			continue
		}
		if rank := found.rank(given, arrival.AliveSince); most == nil || slices.Compare(rank, most) > 0 {
			best, most = found, rank
		}
	}
	return best, most != nil
}

// candidates are the heads of sessions that opened alike, or whose last message stands in the request.
func (l *Lineage) candidates(outline *segments.Outline) []*Head {
	digests := outline.Digests
	if len(digests) == 0 {
		return nil
	}
	names := slices.Clone(l.openings[digests[0]])
	for at := len(digests) - 1; at >= max(0, len(digests)-maxTails); at-- {
		names = append(names, l.tails[digests[at]]...)
	}
	found, seen := []*Head{}, map[string]bool{}
	for _, name := range names {
		if known, ok := l.sessions.Get(name); ok && !seen[name] {
			seen[name] = true
			found = append(found, known.heads...)
		}
	}
	return found
}

// sibling is the latest head of any session that shares the whole header, model and surface.
func (l *Lineage) sibling(given request) *Head {
	name, _ := l.roots.Get(given.outline.Root)
	known, ok := l.sessions.Get(name)
	if !ok {
		return nil
	}
	for _, head := range slices.Backward(known.heads) {
		alike := head.same(given.identity, semconv.PartProviderSurface) && head.same(given.identity, semconv.PartModel)
		if head.Outline.Root == given.outline.Root && alike {
			return head
		}
	}
	return nil
}

// between is the latest call of a place, if it is another one than `head` and came after it.
func (l *Lineage) between(head *Head, at scope) *Head {
	last, _ := l.latest.Get(at)
	known, ok := l.sessions.Get(last.session)
	if !ok || last.entry == head.Entry {
		return nil
	}
	for _, other := range slices.Backward(known.heads) {
		if other.Entry == last.entry && other.Opened >= head.Opened {
			return other
		}
	}
	return nil
}

// Put remembers a head while its call is in flight.
func (l *Lineage) Put(head *Head) {
	known := l.use(head.Session)
	known.heads = append(known.heads, head)
	l.index(head)
	l.note(head)
	l.bytes += head.weight()
	if len(known.heads) > maxHeads {
		l.forget(known, known.heads[0])
	}
	l.evict()
}

func (l *Lineage) use(name string) *session {
	known, ok := l.sessions.Get(name)
	if !ok {
		known = &session{}
	}
	l.sessions.Put(name, known)
	return known
}

// Settle is told that the call of a head was answered, which the head says by now; `replaces` is the head that it extends
// with the same cache identity, nil if there is none. A head that was pushed out in flight is put back.
func (l *Lineage) Settle(head, replaces *Head) {
	known, ok := l.sessions.Get(head.Session)
	at := -1
	if ok {
		at = slices.Index(known.heads, head)
	}
	if at < 0 {
		l.Put(head)
		known, _ = l.sessions.Get(head.Session)
	} else {
		known.heads = append(slices.Delete(known.heads, at, at+1), head)
		l.sessions.Put(head.Session, known)
		l.note(head)
	}
	if head.Response != "" {
		l.responses[head.Response] = head
	}
	if replaces != nil && known != nil {
		l.forget(known, replaces)
	}
}

// Drop forgets a head whose call failed: the provider cannot be held to have cached it.
func (l *Lineage) Drop(head *Head) {
	if known, ok := l.sessions.Get(head.Session); ok {
		l.forget(known, head)
		if len(known.heads) == 0 {
			l.sessions.Delete(head.Session)
		}
	}
}

// Forget forgets a session.
func (l *Lineage) Forget(name string) {
	if known, ok := l.sessions.Get(name); ok {
		for _, head := range slices.Clone(known.heads) {
			l.forget(known, head)
		}
		l.sessions.Delete(name)
	}
}

// Reordered notes a reordering of tools: how many this session has seen, and the median seconds between them, negative
// where there was but one.
func (l *Lineage) Reordered(name string, now float64) (times int, gap float64) {
	known := l.use(name)
	known.reorders = append(known.reorders, now)
	known.reorders = known.reorders[max(0, len(known.reorders)-maxHeads):]
	gaps := []float64{}
	for at := 1; at < len(known.reorders); at++ {
		gaps = append(gaps, known.reorders[at]-known.reorders[at-1])
	}
	slices.Sort(gaps)
	if len(gaps) == 0 {
		return 1, -1
	}
	return len(known.reorders), gaps[len(gaps)/2]
}

// note remembers a head as the latest call of its place, by name alone: it must not outlive its session.
func (l *Lineage) note(head *Head) {
	l.latest.Bound(scopeOf(head.Identity, head.Endpoint), place{head.Session, head.Entry}, maxScopes)
}

func (l *Lineage) index(head *Head) {
	if digests := head.Outline.Digests; len(digests) > 0 {
		enter(l.openings, digests[0], head.Session)
		enter(l.tails, digests[len(digests)-1], head.Session)
	}
	l.roots.Bound(head.Outline.Root, head.Session, 4*l.maxSessions)
}

func enter(index map[canonical.Digest][]string, key canonical.Digest, name string) {
	if !slices.Contains(index[key], name) {
		index[key] = append(index[key], name)
	}
}

func (l *Lineage) forget(known *session, head *Head) {
	at := slices.IndexFunc(known.heads, func(other *Head) bool { return other.Entry == head.Entry })
	if at < 0 {
		return
	}
	gone := known.heads[at]
	known.heads = slices.Delete(known.heads, at, at+1)
	l.bytes -= gone.weight()
	if l.responses[gone.Response] == gone {
		delete(l.responses, gone.Response)
	}
	digests := gone.Outline.Digests
	if len(digests) == 0 {
		return
	}
	first := func(digests []canonical.Digest) canonical.Digest { return digests[0] }
	last := func(digests []canonical.Digest) canonical.Digest { return digests[len(digests)-1] }
	leave(l.openings, first(digests), known, gone.Session, first)
	leave(l.tails, last(digests), known, gone.Session, last)
}

// leave takes a session out of an index unless another of its heads has the same key.
func leave(
	index map[canonical.Digest][]string, key canonical.Digest, known *session, name string,
	keyed func([]canonical.Digest) canonical.Digest,
) {
	for _, head := range known.heads {
		if len(head.Outline.Digests) > 0 && keyed(head.Outline.Digests) == key {
			return
		}
	}
	index[key] = slices.DeleteFunc(index[key], func(known string) bool { return known == name })
	if len(index[key]) == 0 {
		delete(index, key)
	}
}

func (l *Lineage) evict() {
	for l.sessions.Len() > 1 && (l.sessions.Len() > l.maxSessions || l.bytes > l.maxBytes) {
		name, _, _ := l.sessions.Oldest()
		l.Forget(name)
	}
	_, last, _ := l.sessions.Oldest()
	for last != nil && l.bytes > l.maxBytes && len(last.heads) > 1 {
		l.forget(last, last.heads[0])
	}
}
