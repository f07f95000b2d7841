package ledger

import (
	"regexp"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/attribution"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/prompts"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/traces"
)

// captured is what was found out by a captured request. Located says that the call's locator was made of it, partial that
// it is not the whole request, so that nothing was found out.
type captured struct {
	prompts.Finding
	located bool
	partial bool
}

// prompted holds a captured request against the earlier ones of its session, and tells the digests that follow from it;
// nil where none was captured, or is to be kept, or can be read.
func (s *State) prompted(c *call.Call) *captured {
	if c.Content == nil || s.options.CapturedBytes == 0 || !ownOf(c) || s.partial(c.Task.Session) {
		return nil
	}
	request, ok := request(c)
	if !ok {
		return nil
	}
	outline := segments.Cut(request)
	if outline.Total > s.options.CapturedBytes {
		return nil
	}
	sent := prompts.Sent{
		Entry: traces.Name(c), Endpoint: c.Model.Endpoint, Request: request, Names: names(c), Parent: c.Task.ParentSession,
		Facts: *s.options.Lore.For(c.Model.Surface, c.Model.Provider), Form: c.Content.Form,
		Repository: c.Context.RepoSnapshot, Opened: traces.Seconds(c.Place.Start),
	}
	found := s.finding(c, sent, outline)
	if !found.partial {
		s.tell(c, found)
	}
	return found
}

// finding is what the captured requests of before say of one.
func (s *State) finding(c *call.Call, sent prompts.Sent, outline *segments.Outline) *captured {
	s.captured.mu.Lock()
	defer s.captured.mu.Unlock()
	draft := s.captured.prompts.Open(sent, outline)
	found := &captured{Finding: s.captured.prompts.Close(draft, answer(c), traces.Seconds(c.Place.End))}
	if partly(found.Finding) {
		s.captured.prompts.Forget(draft.Link.Session)
		return &captured{partial: true}
	}
	return found
}

// partly says whether what was captured is only what was added to a history that the provider keeps: of the messages none
// was there before, and yet the prompt grew.
func partly(found prompts.Finding) bool {
	link, input := found.Draft.Link, found.Case.Answer.Usage.Input
	if link.Head == nil || link.Relation != lineage.Departs || link.Head.Outline.Root != found.Draft.Outline.Root {
		return false
	}
	return input != nil && link.Head.Tokens != nil && *input >= *link.Head.Tokens
}

// partial says whether a session is known to have its history with the provider.
func (s *State) partial(session string) bool {
	h := s.shard(session)
	h.mu.Lock()
	defer h.mu.Unlock()
	found, held := h.sessions.Get(session)
	return held && found.Partial
}

// request reads the captured parts; false where one is no JSON.
func request(c *call.Call) (segments.Request, bool) {
	tools, wrong := read(c.Content.Tools)
	system, also := read(c.Content.System)
	messages, too := read(c.Content.Messages)
	for at := range tools {
		tools[at] = unwrapped(tools[at])
	}
	// Most instrumentations leave markers out, so that their absence says nothing.
	marks := segments.Breakpoints(tools, system, messages)
	if len(marks) == 0 {
		marks = nil
	}
	return segments.Request{
		Model: c.Model.Requested, Tools: tools, System: system, Messages: messages, Effort: c.Model.Effort,
		Breakpoints: marks, ClientVersion: c.Model.ClientVersion,
	}, !wrong && !also && !too && len(messages) > 0
}

// unwrapped is a tool that was captured as the text of its definition, as OpenInference writes it.
func unwrapped(tool any) any {
	text := canonical.Text(canonical.Mapping(tool).Get("json_schema"))
	if value, err := canonical.Parse(text); err == nil {
		return value
	}
	return tool
}

func read(parts [][]byte) (values []any, wrong bool) {
	for _, part := range parts {
		value, err := canonical.Parse(string(part))
		if err != nil {
			return nil, true
		}
		values = append(values, value)
	}
	return values, false
}

// turnEnds are how an answer says that it is whole, in the words of the dialects.
var turnEnds = regexp.MustCompile(`^(?:stop|end_turn|completed)$`)

func answer(c *call.Call) attribution.Answer {
	reasons, calls := c.Request.FinishReasons, c.Request.ToolCalls
	return attribution.Answer{
		Usage: c.Usage, Response: c.Request.ResponseID, Served: c.Model.Served, Route: c.Model.Route,
		TurnEnded: len(reasons) > 0 && turnEnds.MatchString(reasons[0]) && (calls == nil || *calls == 0),
		Verdict:   c.Verdict.Provider, End: c.Request.End,
	}
}

// tell writes into a call what its captured request says of it, where nobody said it before.
func (s *State) tell(c *call.Call, found *captured) {
	draft, outline := found.Draft, found.Draft.Outline
	if c.Task.Session == "" {
		c.Task.Session, c.Task.SessionSource = draft.Link.Session, semconv.SessionSourceLineage
	}
	if c.Task.ForkOf == "" && !c.Ours() {
		c.Task.ForkOf = prompts.Origin(draft)
	}
	if !c.Ours() && draft.Kind != semconv.RequestKindAgent {
		c.Task.Kind = draft.Kind
	}
	if c.Ours() || len(c.Context.Locator) > 0 {
		return
	}
	length := int64(len(outline.Messages))
	c.Context.HistoryLength, c.Context.Locator = &length, outline.Locate(s.export)
	c.Context.Identity = s.export.Write(draft.Identity.Context)
	c.Context.CacheIdentity = s.export.Write(draft.Identity.Cache)
	for part, into := range map[string]*string{
		semconv.PartPolicy: &c.Context.Policy, semconv.PartPolicyWire: &c.Context.PolicyWire,
		semconv.PartTools: &c.Context.ToolSchema, semconv.PartToolsWire: &c.Context.ToolWire,
	} {
		*into = s.exported(draft.Identity.Part(part))
	}
	c.Origin.DigestScheme = s.export.Scheme()
	found.located = true
}

// exported is a part's digest as it leaves, empty for none.
func (s *State) exported(digits string) string {
	digest, ok := canonical.Read(digits)
	if !ok {
		return ""
	}
	return s.export.Write(digest)
}
