package prompts_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/cause"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/facts"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/prompts"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/spelling"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/vectortest"
)

const (
	summary = "which summary a context builds on is known to who follows its compactions"
	restart = "package ledger keeps what survives a restart, and runs this vector"
)

// elsewhere are the parts of an entry that the process which made the call says, or that a collector passes on as it was
// told.
var elsewhere = vectortest.Elsewhere{
	"money":                       "prices are the process's",
	"request":                     "what was sent and came back is passed on as the process told it",
	"model":                       "the process spells what it called",
	"task.task_id":                "the program names its tasks",
	"cache.cache_report":          "a dialect's reader says whether reuse was reported",
	"cache.verdict_requested_by":  "only the process knows who asked",
	"cache.verdict_missed_tokens": "the provider's estimates are passed on",
	"context.repo_snapshot":       "the process looks at its repository",

	"CM35 pruned and compacted in one maintenance pass: context.identity_changed":         summary,
	"CM16 a smaller model forces a compaction in the same step: context.identity_changed": summary,
	"AT04 a session that is continued in a new process":                                   restart,
	"CM38 a resumed session hits tools and system part only":                              restart,
	"CM38 a session resumed after its retention":                                          restart,
}

// A sequence of calls whose requests are captured has the outcomes and causes that every implementation finds.
func TestVectors(t *testing.T) {
	vectortest.Run(t, "lineage", elsewhere, func(t *testing.T, input canonical.Object) any {
		lore, err := facts.Load(canonical.Mapping(input.Get("facts")), "context-ledger.toml")
		require.NoError(t, err)
		run := sequence{known: prompts.New(lore, 1000, 64<<20), lore: lore}
		for number, given := range vectortest.Calls(input) {
			run.open(number, given)
			if given.Get("overlaps") == nil {
				run.close()
			}
		}
		run.close()
		return run.rows
	})
}

type sequence struct {
	known *prompts.Prompts
	lore  *facts.Lore
	calls []opened
	rows  []any
}

type opened struct {
	draft  prompts.Draft
	given  canonical.Object
	number int
}

func (s *sequence) open(number int, given canonical.Object) {
	request := vectortest.Sent(given)
	sent := prompts.Sent{
		Entry: fmt.Sprintf("e%d", number), Endpoint: "host", Request: request,
		Names:  names(given, request.Conversation, request.CacheKey),
		Facts:  s.lore.Of(canonical.Text(given.Get("surface"))),
		Parent: canonical.Text(given.Get("parent")), Repository: canonical.Text(given.Get("repository")),
		Opened: vectortest.Number(given.Get("at")),
	}
	s.calls = append(s.calls, opened{s.known.Open(sent, segments.Cut(request)), given, number})
}

func names(given canonical.Object, conversation, key string) []lineage.Name {
	found := []lineage.Name{
		{Session: canonical.Text(given.Get("session")), Source: "explicit"}, {Session: conversation, Source: "conversation_id"},
	}
	if key != "" {
		digits := canonical.Exporter{}.Digits(canonical.OfText(key))
		found = append(found, lineage.Name{Session: "key-" + digits, Source: "cache_key"})
	}
	return slices.DeleteFunc(found, func(name lineage.Name) bool { return name.Session == "" })
}

func (s *sequence) close() {
	for _, one := range s.calls {
		took := 1.0
		if given, told := one.given.Find("took"); told {
			took = vectortest.Number(given)
		}
		answer := vectortest.Answered(one.given, fmt.Sprintf("r%d", one.number))
		answer.End = canonical.Text(one.given.Get("end"))
		if _, fails := one.given.Find("fails"); fails {
			answer.End = "failed"
		}
		s.rows = append(s.rows, row(s.known.Close(one.draft, answer, vectortest.Number(one.given.Get("at"))+took)))
	}
	s.calls = nil
}

func row(found prompts.Finding) any {
	link, usage := found.Draft.Link, found.Case.Answer.Usage
	cache := map[string]any{
		"cached_tokens": usage.CacheRead, "input_tokens": usage.Input, "cache_miss_tokens": usage.Missed(),
		"reusable_tokens": found.Draft.Reusable, "avoidable_tokens": found.Avoidable(), "cache_outcome": found.Outcome(),
		"idle_seconds": found.Case.Idle(), "retention_seconds": found.Case.Lifetime(), "cache_write_1h_tokens": usage.Write1h,
		"provider_verdict": spelling.Word(found.Case.Verdict), "verdict_conflict": found.Judgement.Conflict,
	}
	explain(cache, found)
	var changed, comparable any
	if link.Head != nil {
		changed, comparable = found.Draft.Identity.Changed(link.Head.Identity), link.Head.Entry
	}
	return map[string]any{
		"cache": cache,
		"context": map[string]any{
			"identity_changed": changed, "comparable_id": comparable, "prefix_locator": located(found.Draft.Outline),
			"policy_hash":    digest(found.Draft.Identity.Part(semconv.PartPolicy)),
			"tool_wire_hash": digest(found.Draft.Identity.Part(semconv.PartToolsWire)),
		},
		"task": map[string]any{
			"session_id": link.Session, "session_source": link.Source, "request_kind": found.Draft.Kind,
			"parent_session_id": text(parent(found.Draft)), "fork_of": text(prompts.Origin(found.Draft)),
		},
	}
}

func located(outline *segments.Outline) []string {
	spelled := []string{}
	for _, boundary := range outline.Locate(canonical.Exporter{}) {
		spelled = append(spelled, boundary.String())
	}
	return spelled
}

func digest(digits string) any {
	if digits == "" {
		return nil
	}
	return "xxh3:" + digits
}

func parent(draft prompts.Draft) string {
	for _, name := range []string{draft.Sent.Parent, prompts.Origin(draft)} {
		if name != "" && name != draft.Link.Session {
			return name
		}
	}
	return ""
}

func explain(cache map[string]any, found prompts.Finding) {
	causes := found.Judgement.Causes
	if len(causes) == 0 {
		cache["miss_cause"], cache["miss_detail"] = nil, []string{}
		cache["miss_secondary"], cache["miss_evidence"] = []string{}, []string{}
		return
	}
	secondary := []string{}
	for _, other := range causes[1:] {
		secondary = append(secondary, other.Word())
	}
	first := causes[0]
	cache["miss_cause"], cache["miss_detail"], cache["miss_secondary"] = first.Name, listed(first.Detail), secondary
	cache["miss_evidence"] = listed(append(slices.Clone(first.Evidence), found.Evidence...))
	cache["miss_confidence"], cache["miss_significant"] = first.Confidence, found.Case.Significant()
	cache["miss_position"] = positioned(first.Position)
}

func positioned(where *cause.Position) any {
	if where == nil {
		return nil
	}
	return map[string]any{
		"segment": where.Segment, "index": where.Index, "name": text(where.Name), "offset": where.Offset,
		"kind": text(where.Kind),
	}
}

func listed(words []string) []string { return append([]string{}, words...) }

func text(word string) any {
	if word == "" {
		return nil
	}
	return word
}
