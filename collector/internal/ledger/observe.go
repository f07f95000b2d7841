package ledger

import (
	"encoding/hex"
	"slices"
	"time"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/attribution"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/observed"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/traces"
)

// Views, by what a call was judged.
const (
	ByContent  = "content"
	ByLocator  = "locator"
	ByCounters = "counters"
	ByProcess  = "process"
)

// Seen is what became of a call. View is by what it was judged, empty where it was not. Known says that there was an
// earlier call to hold it against. Repeated calls were told of before: they get what was said of them then, as far as that
// is still known, and are not judged again.
type Seen struct {
	View     string
	Known    bool
	Repeated bool
	Late     bool
}

// Observe judges a call by what is known of its session, writes the verdict into it, and remembers it for the calls to
// come. Calls should come in the order of their starts, as far as that is known.
//
// The verdict of the process that made the call stands, and so does that of another collector, unless it knew of no earlier
// call (cold_start, previous_unknown) and this ledger does: then its word is kept beside ours. Usage that other calls told
// already is passed over.
func (s *State) Observe(c *call.Call, now time.Time) Seen {
	if c.Origin.Aggregate {
		return Seen{}
	}
	if event(c) {
		s.compacted(c, now)
		return Seen{}
	}
	if c.Task.Session == "" {
		s.counts.unnamed.Add(1)
	}
	if c.Content == nil {
		byTrace(c)
	}
	named := traces.NamesOf(c)
	told, held := s.repeats(c, named)
	if told {
		return s.again(c, named)
	}
	found := s.prompted(c)
	byTrace(c)
	seen := s.traced(c, named, found, held, now)
	if seen.Repeated {
		return s.again(c, named)
	}
	return seen
}

// again gives a call that was told of before what was said of it then.
func (s *State) again(c *call.Call, named traces.Names) Seen {
	s.counts.repeated.Add(1)
	return Seen{Repeated: true, View: s.verdicts.repeat(c, named)}
}

// event says whether a record tells of a compaction, and of no call.
func event(c *call.Call) bool {
	told := c.Compaction.Kind != "" || c.Compaction.Trigger != "" || c.Compaction.Outcome != ""
	return told && c.Usage.Input == nil && c.Usage.Output == nil && c.Origin.EntryID == ""
}

// compacted remembers that a session's history was compacted.
func (s *State) compacted(c *call.Call, now time.Time) {
	undone := []string{
		semconv.CompactionOutcomeFailed, semconv.CompactionOutcomeSkipped, semconv.CompactionOutcomeEmpty,
		semconv.CompactionOutcomeOrphaned,
	}
	if c.Task.Session == "" || slices.Contains(undone, c.Compaction.Outcome) {
		return
	}
	h := s.shard(c.Task.Session)
	h.mu.Lock()
	defer h.mu.Unlock()
	if found, held := h.known(c.Task.Session); held {
		found.Compacted = true
		s.keep(h, found, now)
	}
}

// byTrace gives a call without a session that of its trace: what one trace holds belongs together.
func byTrace(c *call.Call) {
	if trace := c.Place.Trace; c.Task.Session == "" && !trace.IsEmpty() {
		c.Task.Session, c.Task.SessionSource = "trace-"+hex.EncodeToString(trace[:]), semconv.SessionSourceLineage
	}
}

// repeats says whether a call was told of before, as a span and a log record of it, or a batch that is sent again, and whether
// anything was told of its session.
func (s *State) repeats(c *call.Call, named traces.Names) (told, held bool) {
	h := s.shard(c.Task.Session)
	h.mu.Lock()
	defer h.mu.Unlock()
	found, _ := h.sessions.Get(c.Task.Session)
	if found == nil {
		return false, false
	}
	before := found.Heard
	told = found.repeats(c, named, traces.Seconds(c.Place.Start))
	h.changed = h.changed || found.Heard != before
	return told, true
}

// traced holds a call against the traces of its session, of which some may be held already, and keeps its own.
func (s *State) traced(c *call.Call, named traces.Names, found *captured, held bool, now time.Time) Seen {
	trace := s.room.Of(c)
	if found != nil && found.located {
		// Digests of parts that were captured in another form cannot be compared.
		trace.Scheme += "+" + c.Content.Form
		trace.Complete = true
	}
	rules := s.rules(trace, c)
	if c.Task.Session == "" {
		only := traces.Case{Now: trace, Usage: c.Usage, End: c.Request.End, Rules: rules, Verdict: c.Verdict.Provider}
		seen := s.judge(c, found, &only, standing{kept: &record{}, now: now}).seen
		s.verdicts.keep(c, named, seen.View)
		return seen
	}
	others := s.elsewhere(c, trace, held)
	h := s.shard(c.Task.Session)
	h.mu.Lock()
	defer h.mu.Unlock()
	kept, held := h.known(c.Task.Session)
	if kept.repeats(c, named, trace.Opened) {
		// Its span and its log record came at once.
		return Seen{Repeated: true}
	}
	if found != nil && found.partial {
		kept.Partial, found = true, nil
	}
	compacted := kept.Compacted || c.Compaction.Seen
	past := traces.Past{Calls: kept.Branches, AliveSince: alive(trace, rules), Compacted: compacted}
	if len(others) > 0 {
		past.Calls = slices.Concat(kept.Branches, others)
	}
	link := traces.Find(past, trace)
	lost, moved := kept.misses(trace), held && kept.moved(c.Place.Gap)
	if link.Late || lost {
		s.counts.late.Add(1)
	}
	if lost {
		link = traces.Link{}
	}
	judged := s.judge(c, found, &traces.Case{
		Link: link, Now: trace, Usage: c.Usage, End: c.Request.End, Rules: rules, Verdict: c.Verdict.Provider,
		Compacted: compacted, Resumed: c.Ours() && unaware(c),
	}, standing{kept, held, lost || moved, now})
	judged.lost, judged.moved, judged.named = lost, moved, named
	s.verdicts.keep(c, named, judged.seen.View)
	s.remember(h, kept, held, judged, now)
	return judged.seen
}

// unaware says whether who judged the call before, its process or another collector, knew of no earlier one.
func unaware(c *call.Call) bool {
	cold := c.Verdict.Cause == semconv.MissCauseColdStart && len(c.Verdict.Detail) == 0
	return cold || c.Verdict.Cause == semconv.MissCausePreviousUnknown
}

func alive(trace *traces.Trace, rules attribution.Rules) float64 {
	if rules.Lifetime == nil {
		return 0
	}
	return trace.Opened - *rules.Lifetime
}

func scope(trace *traces.Trace) observed.Scope {
	return observed.Scope{Surface: trace.Surface, Model: trace.Model, Endpoint: trace.Endpoint}
}

func (s *State) rules(trace *traces.Trace, c *call.Call) attribution.Rules {
	known := s.options.Lore.For(c.Model.Surface, c.Model.Provider)
	s.seen.mu.Lock()
	caches := s.seen.caches.Of(scope(trace))
	s.seen.mu.Unlock()
	rules := attribution.Rules{
		Block: caches.Block(0), Minimum: known.Minimum, MinimumPrevious: known.MinimumPrevious,
		MinimumNote: known.MinimumNote, SmallestHit: caches.SmallestHit, Lifetime: known.Lifetime("", trace.Model),
		Retentions: known.Retentions, WriteLag: known.WriteLag, Markers: known.Markers, Windows: known.Windows,
	}
	if known.Block != nil {
		rules.Block = caches.Block(*known.Block)
	}
	return rules
}

// remember keeps a call's trace in the place of the one that it goes on from, if it does so with the same cache identity;
// what failed was not cached, and what a side call sent is no part of its agent's history.
func (s *State) remember(h *shard, kept *record, held bool, judged judged, now time.Time) {
	c, link, trace := judged.call, judged.link, judged.trace
	if !held {
		kept.Whole = judged.first
	}
	if c.Request.End != semconv.CallEndFailed && ownOf(c) && !judged.lost {
		trace.Own(link.Head)
		s.note(trace, link)
		trace.Plateau = judged.plateau
		trace.Anchored(link)
		switch {
		case judged.moved:
			// What was known before may be of the past, and the first call of another agent may have been elsewhere.
			s.outdate(kept, trace.Opened, now)
		case link.Replaces(trace):
			s.drop(kept, link.Head.Entry)
			if h.lent == 0 {
				s.room.Leave(link.Head)
			}
		}
		if len(kept.Branches) == maxBranches {
			s.drop(kept, kept.Branches[0].Entry)
		}
		kept.Branches = append(kept.Branches, trace)
		s.ends.enter(kept.Name, trace)
		kept.Compacted = false
		kept.loaded = false
		kept.Heard.hear(c.Place.Gap)
	}
	if !judged.lost {
		told := judged.named.Known()
		for _, name := range told.All() {
			kept.tell(name, trace.Closed)
		}
	}
	s.keep(h, kept, now)
}

// outdate forgets the calls of a session that began before a time, and goes by ours where that is one to come: a clock that is
// ahead is no reason to forget what comes next.
func (s *State) outdate(kept *record, before float64, now time.Time) {
	for _, branch := range slices.Clone(kept.Branches) {
		if branch.Opened <= before {
			s.drop(kept, branch.Entry)
		}
	}
	kept.Whole, kept.Since = false, min(before, traces.Seconds(now))
}

// drop forgets a call of a session.
func (s *State) drop(kept *record, entry string) {
	kept.Branches = slices.DeleteFunc(kept.Branches, func(branch *traces.Trace) bool {
		gone := branch.Entry == entry
		if gone {
			s.ends.leave(kept.Name, branch)
		}
		return gone
	})
}

// ownOf says whether a call is one of the agent's own.
func ownOf(c *call.Call) bool {
	return c.Task.Kind == "" || c.Task.Kind == semconv.RequestKindAgent
}

func (s *State) note(trace *traces.Trace, link traces.Link) {
	if trace.Cached <= 0 {
		return
	}
	var previous *int64
	if link.Head != nil {
		previous = traces.Count(link.Head.Tokens)
	}
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	s.seen.caches.Note(scope(trace), traces.Count(trace.Cached), previous)
}

// names are the session's, as far as the call tells it.
func names(c *call.Call) []lineage.Name {
	if c.Task.Session == "" {
		return nil
	}
	return []lineage.Name{{Session: c.Task.Session, Source: c.Task.SessionSource}}
}
