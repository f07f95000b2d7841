package ledger

import (
	"slices"
	"time"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/attribution"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/cause"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/prompts"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/traces"
)

// judged is a call with what was found out about it. First says that it was known to be its session's first, lost that it
// may have been told of before, moved that its session may have been elsewhere meanwhile.
type judged struct {
	call    *call.Call
	named   traces.Names
	link    traces.Link
	trace   *traces.Trace
	seen    Seen
	first   bool
	lost    bool
	moved   bool
	plateau int
}

// standing is what a call's session was before it. Unsure says that calls of it may have come before that are not known.
type standing struct {
	kept   *record
	held   bool
	unsure bool
	now    time.Time
}

// judge says what the cache did for a call, and writes it into the call where ours is the word that stands.
func (s *State) judge(c *call.Call, found *captured, one *traces.Case, was standing) judged {
	result := judged{call: c, link: one.Link, trace: one.Now, first: s.first(one, was), plateau: one.Plateau()}
	result.seen.Late = one.Link.Late
	switch {
	case !ownOf(c):
		aside(c, one)
	case s.options.Split || was.unsure:
		s.uncertain(c, one, was)
	case found != nil && found.Draft.Link.Head != nil:
		result.seen.View, result.seen.Known = ByContent, true
		s.stand(c, content(*found), changes(*found), found.Draft.Link.Head.Entry)
	case one.Link.Head != nil:
		result.seen.View, result.seen.Known = view(one.Link), true
		s.compare(c, one)
	default:
		s.begin(c, one, result.first, was)
	}
	if c.Ours() && c.Verdict.By != semconv.JudgedByCollector {
		result.seen.View = ByProcess
	}
	return result
}

func view(link traces.Link) string {
	if link.Located {
		return ByLocator
	}
	return ByCounters
}

// stands says whether the verdict that a call came with stands beside one that was made by an earlier call.
func stands(c *call.Call) bool {
	return c.Verdict.Outcome != "" && !unaware(c)
}

// stand writes a verdict that was made by an earlier call into one that came with none.
func (s *State) stand(c *call.Call, found call.Verdict, changed []string, comparable string) {
	if stands(c) {
		return
	}
	c.Judge(found)
	c.Context.IdentityChanged, c.Context.Comparable = changed, comparable
}

// compare judges a call by the trace of an earlier one. By counts alone nobody knows which call it goes on from; the
// identity is told as far as both calls told digests of its parts.
func (s *State) compare(c *call.Call, one *traces.Case) {
	if stands(c) || c.Ours() && !one.Link.Located {
		return // most entries come with a verdict that stands: what would be found out is not needed
	}
	found := verdict(one, traces.Judge(one))
	if one.Link.Located || one.Told() {
		s.stand(c, found, one.Changed(), one.Link.Head.Entry)
	} else {
		c.Judge(found)
	}
}

// aside says what the cache did for a side call, which is held against nothing.
func aside(c *call.Call, one *traces.Case) {
	if c.Verdict.Outcome == "" {
		read := c.Usage.CacheRead != nil && *c.Usage.CacheRead > 0
		c.Judge(call.Verdict{Outcome: prompts.Outcome(c.Usage, read, true), Provider: one.Verdict})
	}
}

// begin says of a call that is held against nothing whether it is known to be the first of its kind. A verdict that it
// came with stands, but for a cold start in a session that began before.
func (s *State) begin(c *call.Call, one *traces.Case, first bool, was standing) {
	if c.Verdict.Outcome != "" && !(c.Verdict.Cause == semconv.MissCauseColdStart && unaware(c) && s.older(one, was)) {
		return
	}
	found := call.Verdict{Outcome: prompts.Outcome(c.Usage, false, true), Provider: one.Verdict}
	switch missed := c.Usage.Missed(); {
	case c.Request.End == semconv.CallEndFailed:
	case c.Usage.CacheRead == nil:
		explain(&found, attribution.Judgement{Causes: []cause.Cause{
			attribution.Unreported(attribution.Answer{Usage: c.Usage, End: c.Request.End}),
		}}, false)
	case missed == nil || *missed == 0:
	case first:
		told := cause.Cause{Name: semconv.MissCauseColdStart, Confidence: semconv.MissConfidenceObserved}
		explain(&found, attribution.Combined([]cause.Cause{told.By("first_request")}, one.Verdict), false)
	default:
		told := cause.Fits(semconv.MissCausePreviousUnknown, unknown(one, was))
		explain(&found, attribution.Combined([]cause.Cause{told}, one.Verdict), false)
	}
	c.Judge(found)
}

// uncertain judges a call before which others may have come that went elsewhere: what was read nearly whole was hit, and
// what was not may have been lost to anything.
func (s *State) uncertain(c *call.Call, one *traces.Case, was standing) {
	missed, open := c.Usage.Missed(), c.Verdict.Outcome == "" || (unaware(c) && s.older(one, was))
	if missed != nil && open && !attribution.Significant(*missed, *c.Usage.Input) {
		c.Judge(call.Verdict{Outcome: semconv.CacheOutcomeHit, Provider: one.Verdict})
		return
	}
	s.begin(c, one, false, was)
}

// began says whether a call's session is known to have had calls before, and its history to be longer than a first one's:
// what it goes on from is not known, but that there is something.
func began(one *traces.Case, was standing) bool {
	return was.held && len(was.kept.Branches) > 0 && one.Now.Messages > traces.MaxFirst && !one.Link.Late
}

// older says whether a call is not its session's first: one that is not known here may have had its calls at another ledger.
func (s *State) older(one *traces.Case, was standing) bool {
	divided, known := s.options.Moving || s.options.Split, was.held && !one.Link.Late
	elsewhere := divided && !known && one.Now.Messages > traces.MaxFirst
	return elsewhere || began(one, was)
}

// unknown is why nothing is known of the call before.
func unknown(one *traces.Case, was standing) string {
	if began(one, was) {
		return "session_known"
	}
	return "session_unknown"
}

// first says whether a call that has no comparable one is known to have none: its history can hold no answer, or every
// call of the session has been seen. In a session that is known the call then begins another branch.
func (s *State) first(one *traces.Case, was standing) bool {
	messages := one.Now.Messages
	switch {
	case one.Link.Late:
		return false
	case messages != traces.Unknown:
		return messages <= traces.MaxFirst
	case was.held:
		return was.kept.Whole && !told(was.kept, one.Now.Agent)
	default:
		return s.options.Alone && was.now.UnixNano() > s.blind.Load()
	}
}

// told says whether a session has a call of this agent already.
func told(kept *record, agent string) bool {
	return slices.ContainsFunc(kept.Branches, func(branch *traces.Trace) bool { return branch.Agent == agent })
}

// verdict is what was found out by traces.
func verdict(one *traces.Case, found attribution.Judgement) call.Verdict {
	usage := one.Usage
	if one.End == semconv.CallEndFailed {
		found = attribution.Judgement{}
	}
	made := call.Verdict{
		Outcome: prompts.Outcome(usage, true, len(found.Causes) > 0), Reusable: one.Reusable(), Idle: one.Idle(),
		Retention: one.Lifetime(), Provider: one.Verdict,
	}
	if one.Link.Located {
		made.Avoidable = one.Shortfall()
	}
	explain(&made, found, one.Significant())
	return made
}

// content is what was found out by captured requests.
func content(found captured) call.Verdict {
	usage := found.Case.Answer.Usage
	made := call.Verdict{
		Outcome: found.Outcome(), Reusable: found.Draft.Reusable, Avoidable: found.Avoidable(), Idle: found.Case.Idle(),
		Retention: found.Case.Lifetime(), Provider: found.Case.Verdict,
	}
	if usage.CacheRead == nil {
		made.Avoidable = nil
	}
	explain(&made, found.Judgement, found.Case.Significant())
	made.Evidence = append(made.Evidence, found.Evidence...)
	return made
}

func changes(found captured) []string {
	return found.Draft.Identity.Changed(found.Draft.Link.Head.Identity)
}

// explain writes causes into a verdict.
func explain(made *call.Verdict, found attribution.Judgement, significant bool) {
	made.Conflict = found.Conflict
	if len(found.Causes) == 0 {
		return
	}
	first := found.Causes[0]
	made.Cause, made.Detail, made.Evidence, made.Confidence = first.Name, first.Detail, first.Evidence, first.Confidence
	made.Significant, made.Position = &significant, position(first.Position)
	for _, other := range found.Causes[1:] {
		made.Secondary = append(made.Secondary, other.Word())
	}
}

func position(where *cause.Position) call.Position {
	if where == nil {
		return call.Position{}
	}
	return call.Position{
		Segment: where.Segment, Index: whole(where.Index), Name: where.Name, Offset: whole(where.Offset), Kind: where.Kind,
	}
}

func whole(number *int) *int64 {
	if number == nil {
		return nil
	}
	found := int64(*number)
	return &found
}
