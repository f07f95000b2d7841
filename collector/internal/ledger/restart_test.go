package ledger_test

import (
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/facts"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/identity"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/ledger"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/vectortest"
)

// restarted are the vectors of lineage in which a process is restarted between two calls, and keeps a ledger file.
var restarted = []string{
	"AT04 a session that is continued in a new process", "CM38 a resumed session hits tools and system part only",
	"CM38 a session resumed after its retention", "a resumed session that continues where it was",
}

// A collector that sees the entries of a process that was restarted and kept nothing judges them as a process does that
// kept its ledger file.
func TestRestartedProcess(t *testing.T) {
	elsewhere := vectortest.Elsewhere{
		"task": "the process says whose session it is", "model": "the process says what it called",
	}
	vectortest.RunOf(t, "lineage", restarted, elsewhere, func(t *testing.T, input canonical.Object) any {
		made := state(t, func(*ledger.Options) {})
		rows := []any{}
		for number, given := range vectortest.Calls(input) {
			one := entry(t, number, given)
			made.Observe(one, one.Place.End)
			context := map[string]any{"comparable_id": one.Context.Comparable}
			rows = append(rows, map[string]any{"cache": cache(one), "context": context})
		}
		return rows
	})
}

// entry is what a process without memory tells of a call: its locator, its digests, and that it knows of no earlier one.
func entry(t *testing.T, number int, given canonical.Object) *call.Call {
	api := canonical.Text(given.Get("api"))
	request := vectortest.Sent(given)
	answer := vectortest.Answered(given, fmt.Sprintf("r%d", number))
	lore, err := facts.Load(nil, "")
	require.NoError(t, err)
	surface := lore.Of(canonical.Text(given.Get("surface")))
	outline := segments.Cut(request)
	began := day0.Add(seconds(given.Get("at")))
	length := int64(len(outline.Messages))
	one := &call.Call{
		Place:  call.Place{Start: began, End: began.Add(seconds(int64(1)))},
		Task:   call.Task{Session: canonical.Text(given.Get("session")), SessionSource: semconv.SessionSourceExplicit},
		Model:  call.Model{Surface: surface.Surface, Provider: surface.Provider, API: api, Requested: request.Model},
		Usage:  answer.Usage,
		Origin: call.Origin{EntryID: fmt.Sprintf("e%d", number), DigestScheme: "xxh3"},
	}
	if one.Task.Session == "" {
		one.Task.Session, one.Task.SessionSource = request.Conversation, semconv.SessionSourceConversationID
	}
	if one.Task.Session == "" {
		one.Task.Session, one.Task.SessionSource = "s-"+one.Origin.EntryID, semconv.SessionSourceLineage
	}
	one.Context = context(identity.NewIdentifier().Identify(request, outline, surface.Surface, ""))
	one.Context.Locator, one.Context.HistoryLength = outline.Locate(canonical.Exporter{}), &length
	one.Verdict = call.Verdict{
		By: semconv.JudgedByProcess, Outcome: semconv.CacheOutcomeCold, Cause: semconv.MissCauseColdStart,
		Evidence: []string{"first_request"},
	}
	return one
}

func context(found identity.Identity) call.Context {
	digest := func(part string) string {
		if found.Part(part) == "" {
			return ""
		}
		return "xxh3:" + found.Part(part)
	}
	return call.Context{
		Policy: digest(semconv.PartPolicy), PolicyWire: digest(semconv.PartPolicyWire), ToolSchema: digest(semconv.PartTools),
		ToolWire: digest(semconv.PartToolsWire), Identity: "xxh3:" + hex.EncodeToString(found.Context[:]),
		CacheIdentity: "xxh3:" + hex.EncodeToString(found.Cache[:]),
	}
}

// cache has the fields that vectors speak of.
func cache(one *call.Call) map[string]any {
	attrs := pcommon.NewMap()
	one.Write(attrs)
	written := attrs.AsRaw()
	row := map[string]any{}
	for _, name := range []string{
		"cache_outcome", "miss_cause", "miss_confidence", "input_tokens", "cached_tokens", "avoidable_tokens",
	} {
		row[name] = written["context_ledger."+name]
	}
	for _, name := range []string{"miss_detail", "miss_secondary", "miss_evidence"} {
		row[name] = append([]any{}, listed(written["context_ledger."+name])...)
	}
	if missed := one.Usage.Missed(); missed != nil {
		row["cache_miss_tokens"] = *missed
	}
	if segment := one.Verdict.Position.Segment; segment != "" {
		row["miss_position"] = map[string]any{
			"segment": segment, "index": one.Verdict.Position.Index, "kind": one.Verdict.Position.Kind,
		}
	}
	return row
}

func listed(value any) []any {
	items, _ := value.([]any)
	return items
}
