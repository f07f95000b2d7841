// Package prompts owns the judgement of calls whose request was captured: what was sent is held against the earlier
// requests of its session. Calls of which only a locator or counters are known are the business of package ledger.
package prompts

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/attribution"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/facts"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/identity"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/observed"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Sent is a call that was made: the facts of the surface that it went to, its request and the form in which that was
// captured, whose it is, and when it was opened, in seconds. Names are those of its
// session in order of preference; without any the session is found, or is called Entry's. Parent is the session that
// opened this one, as the program says.
type Sent struct {
	Entry      string
	Facts      facts.Facts
	Endpoint   string
	Form       string
	Request    segments.Request
	Names      []lineage.Name
	Parent     string
	Repository string
	Opened     float64
}

// Draft is a call before its answer. Head is what the lineage remembers of it while it is in flight, nil of calls that
// are none of the agent's own; Kind is agent, compaction or auxiliary.
type Draft struct {
	Sent     Sent
	Outline  *segments.Outline
	Identity identity.Identity
	Link     lineage.Link
	Kind     string
	Rules    attribution.Rules
	Reusable *int64
	head     *lineage.Head
}

// Prompts hold the requests of sessions, bounded by sessions and bytes. They are not locked.
type Prompts struct {
	lore       *facts.Lore
	lineage    *lineage.Lineage
	identifier *identity.Identifier
	observed   *observed.Observations
}

// New makes prompts that have seen nothing.
func New(lore *facts.Lore, sessions, bytes int) *Prompts {
	return &Prompts{
		lore: lore, lineage: lineage.New(sessions, bytes, lore.Forms.SummaryOpenings), identifier: identity.NewIdentifier(),
		observed: observed.New(),
	}
}

// Sessions is how many sessions are known, Bytes about how many bytes they hold.
func (p *Prompts) Sessions() int { return p.lineage.Sessions() }

// Bytes is told at Sessions.
func (p *Prompts) Bytes() int { return p.lineage.Bytes() }

// Forget forgets a session.
func (p *Prompts) Forget(session string) { p.lineage.Forget(session) }

// Open finds the place of a call and, of an agent's, remembers it as in flight. `outline` is that of its request.
func (p *Prompts) Open(sent Sent, outline *segments.Outline) Draft {
	rules := p.rules(sent)
	found := p.identifier.Identify(sent.Request, outline, sent.Facts.Surface, sent.Repository)
	arrival := lineage.Arrival{Session: "s-" + sent.Entry, Endpoint: sent.Endpoint, Form: sent.Form, Opened: sent.Opened}
	if rules.Lifetime != nil {
		alive := sent.Opened - *rules.Lifetime
		arrival.AliveSince = &alive
	}
	link := p.lineage.Link(sent.Names, sent.Request, outline, found, arrival)
	kind := p.kind(sent.Request, found, link)
	sent.Request = sent.Request.Lean()
	draft := Draft{Sent: sent, Outline: outline, Identity: found, Link: link, Kind: kind, Rules: rules}
	if kind == semconv.RequestKindAgent {
		draft.head = &lineage.Head{
			Entry: sent.Entry, Session: link.Session, Endpoint: sent.Endpoint, Form: sent.Form, Outline: outline,
			Identity: found, Request: sent.Request, Opened: sent.Opened, First: link.Head == nil,
			Anchors: inherited(link, outline),
		}
		p.lineage.Put(draft.head)
	}
	if draft.Reusable = new(int64); sameModel(link, found) {
		draft.Reusable = attribution.Estimate(link, outline, rules.Block)
	}
	return draft
}

func sameModel(link lineage.Link, found identity.Identity) bool {
	head := compared(link)
	return head == nil || head.Identity.Part(semconv.PartModel) == found.Part(semconv.PartModel)
}

// compared is the call that a request can be measured by: its comparable call, else one with the same header.
func compared(link lineage.Link) *lineage.Head {
	if link.Head != nil {
		return link.Head
	}
	return link.Sibling
}

// inherited are the comparable call's known counts that hold for this request's prefix too.
func inherited(link lineage.Link, outline *segments.Outline) []lineage.Anchor {
	head := compared(link)
	if head == nil || head.Outline.Root != outline.Root {
		return nil
	}
	edge := outline.Size(link.Shared)
	return slices.DeleteFunc(slices.Clone(head.Anchors), func(anchor lineage.Anchor) bool { return anchor.Size > edge })
}

func (p *Prompts) rules(sent Sent) attribution.Rules {
	known := sent.Facts
	seen := p.observed.Of(scope(sent))
	rules := attribution.Rules{
		Block: seen.Block(0), Minimum: known.Minimum, MinimumPrevious: known.MinimumPrevious, MinimumNote: known.MinimumNote,
		SmallestHit: seen.SmallestHit, Lifetime: known.Lifetime(sent.Request.Retention, sent.Request.Model),
		Retentions: known.Retentions, WriteLag: known.WriteLag, Markers: known.Markers, Windows: known.Windows,
		Summaries: p.lore.Forms.SummaryOpenings,
	}
	if known.Block != nil {
		rules.Block = seen.Block(*known.Block)
	}
	return rules
}

func scope(sent Sent) observed.Scope {
	return observed.Scope{Surface: sent.Facts.Surface, Model: sent.Request.Model, Endpoint: sent.Endpoint}
}

// kind is what a call is for: agent, compaction (a summarising call of a known form) or auxiliary (in a named session that
// has tools, a call without any and with another system part or history).
func (p *Prompts) kind(request segments.Request, found identity.Identity, link lineage.Link) string {
	if p.summarises(request) {
		return semconv.RequestKindCompaction
	}
	other := link.Head
	if other == nil {
		other = link.Beside
	}
	named := link.Source != semconv.SessionSourceLineage
	if !named || other == nil || len(request.Tools) > 0 || len(other.Outline.Of(segments.Tool)) == 0 {
		return semconv.RequestKindAgent
	}
	told := other.Identity.Part(semconv.PartPolicy) != found.Part(semconv.PartPolicy)
	if told || link.Relation == lineage.First || link.Relation == lineage.Departs {
		return semconv.RequestKindAuxiliary
	}
	return semconv.RequestKindAgent
}

// summarises says whether a call asks for a summary: by how a block of its system part opens, or by a line of what its
// user says last. What a line only quotes, or a tool has read, is nobody's instruction.
func (p *Prompts) summarises(request segments.Request) bool {
	forms := p.lore.Forms
	for _, block := range request.System {
		if lineage.OpensWith(strings.TrimLeftFunc(segments.Texts(block), unicode.IsSpace), forms.SystemOpenings) {
			return true
		}
	}
	if len(request.Messages) == 0 {
		return false
	}
	for _, text := range said(request.Messages[len(request.Messages)-1]) {
		if slices.ContainsFunc(forms.Instructions, func(form string) bool { return beginsLine(form, text) }) {
			return true
		}
	}
	return false
}

// results are the types of parts that hold what a tool answered.
var results = []string{"tool_result", "tool_call_response", "function_call_output"}

// said are the texts of a message of the user's own.
func said(message any) []string {
	if segments.Role(message) != "user" {
		return nil
	}
	parts := segments.Parts(message)
	if parts == nil {
		return []string{segments.Texts(message)}
	}
	texts := []string{}
	for _, part := range parts {
		if !slices.Contains(results, canonical.Text(canonical.Mapping(part).Get("type"))) {
			texts = append(texts, segments.Texts(part))
		}
	}
	return texts
}

func beginsLine(form, text string) bool {
	at := strings.Index(text, form)
	if at < 0 {
		return false
	}
	before := strings.TrimRight(text[:at], " \t")
	return before == "" || strings.HasSuffix(before, "\n")
}

// Failed is the end of a call that the provider cannot be held to have cached.
const failed = semconv.CallEndFailed

// Finding is what was found out about a call.
type Finding struct {
	Draft     Draft
	Case      attribution.Case
	Judgement attribution.Judgement
	// Evidence is what the session's past adds to that of the first cause.
	Evidence []string
}

// Close judges a call that ended at a time, and remembers its answer for the calls to come.
func (p *Prompts) Close(draft Draft, answer attribution.Answer, closed float64) Finding {
	found := Finding{Draft: draft, Case: attribution.Case{
		Link: draft.Link, Outline: draft.Outline, Request: draft.Sent.Request, Answer: answer, Rules: draft.Rules,
		Now: draft.Sent.Opened, Expected: expected(draft, answer), Reusable: draft.Reusable, Verdict: answer.Verdict,
	}}
	if answer.End != failed && draft.Kind == semconv.RequestKindAgent {
		found.Judgement = attribution.Judge(found.Case)
	}
	found.Evidence = p.settle(found, closed)
	return found
}

// expected is what could have been reused had nothing changed: the comparable prompt, no more than this one, in whole
// blocks. Where the end of the history was taken back, what was taken back was not asked for again; of calls that were
// sent together, all but one could have waited for the first.
func expected(draft Draft, answer attribution.Answer) *int64 {
	link, block := draft.Link, draft.Rules.Block
	switch {
	case link.Head == nil && link.Concurrent:
		return attribution.Estimate(link, draft.Outline, block)
	case link.Head == nil:
		return nil
	}
	known := attribution.Held(link.Head, answer.Route)
	if known == nil {
		return draft.Reusable
	}
	whole := *known
	if answer.Usage.Input != nil {
		whole = min(whole, *answer.Usage.Input)
	}
	if link.Relation == lineage.Rewinds {
		if intact, told := attribution.Intact(link, draft.Outline); told && intact > 0 {
			whole = min(whole, intact)
		}
	}
	return attribution.Floored(whole, block)
}

// settle brings the lineage up to date.
func (p *Prompts) settle(found Finding, closed float64) []string {
	draft, answer := found.Draft, found.Case.Answer
	head, earlier := draft.head, draft.Link.Head
	if head == nil {
		return nil
	}
	if answer.End == failed {
		p.lineage.Drop(head)
		return nil
	}
	var previous *int64
	if earlier != nil {
		previous = earlier.Tokens
	}
	p.observed.Note(scope(draft.Sent), answer.Usage.CacheRead, previous)
	answered(head, found, closed)
	p.lineage.Settle(head, replaced(draft))
	return p.recurs(found)
}

// replaced is the head that a call extends with the same cache identity: it is remembered in its place.
func replaced(draft Draft) *lineage.Head {
	earlier := draft.Link.Head
	if earlier == nil || !draft.Link.Grows() || earlier.Session != draft.head.Session {
		return nil
	}
	if earlier.Identity.Cache != draft.Identity.Cache {
		return nil
	}
	return earlier
}

func (p *Prompts) recurs(found Finding) []string {
	causes := found.Judgement.Causes
	if len(causes) == 0 || causes[0].Name != semconv.MissCauseToolsReordered {
		return nil
	}
	times, gap := p.lineage.Reordered(found.Draft.head.Session, found.Draft.Sent.Opened)
	evidence := []string{fmt.Sprintf("recurrence=%d", times)}
	if gap >= 0 {
		evidence = append(evidence, fmt.Sprintf("interval_seconds=%.0f", gap))
	}
	return evidence
}
