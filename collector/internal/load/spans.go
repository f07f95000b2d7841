// Package load sends a collector what a fleet of agents sends: it makes the spans, runs the binary as a process and
// receives what comes out. The benchmarks and the soak are made of it.
package load

import (
	"encoding/binary"
	"fmt"
	"maps"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// Together is how many spans are in one request, as batches of SDKs have some hundred.
const Together = 100

// Kind makes the attributes of one session's span at a turn.
type Kind func(session, turn int) map[string]any

// Requests gives the turns of a number of sessions, one span each, as requests in protobuf: all sessions of a turn, then
// all of the next one. Turns count from `first`.
func Requests(kind Kind, sessions, first, turns int) ([][]byte, error) {
	var made [][]byte
	for turn := first; turn < first+turns; turn++ {
		for from := 0; from < sessions; from += Together {
			body, err := request(kind, from, min(from+Together, sessions), turn)
			if err != nil {
				return nil, err
			}
			made = append(made, body)
		}
	}
	return made, nil
}

func request(kind Kind, from, to, turn int) ([]byte, error) {
	spans := ptrace.NewTraces()
	resource := spans.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "agents")
	scope := resource.ScopeSpans().AppendEmpty()
	scope.Scope().SetName("load")
	for session := from; session < to; session++ {
		if err := put(scope.Spans().AppendEmpty(), session, turn, kind(session, turn)); err != nil {
			return nil, err
		}
	}
	return ptraceotlp.NewExportRequestFromTraces(spans).MarshalProto()
}

func put(span ptrace.Span, session, turn int, attributes map[string]any) error {
	var trace pcommon.TraceID
	binary.BigEndian.PutUint64(trace[:], uint64(session)+1)
	binary.BigEndian.PutUint64(trace[8:], uint64(turn)+1)
	span.SetTraceID(trace)
	span.SetSpanID(pcommon.SpanID(trace[8:]))
	span.SetName("chat gpt-5")
	began := time.Unix(1_800_000_000+int64(turn)*10, int64(session))
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(began))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(began.Add(time.Second)))
	return span.Attributes().FromRaw(attributes)
}

// GenAI is a call in the words of the conventions, as other instrumentations tell it. A session's names are as long as
// those of real ones.
func GenAI(session, turn int) map[string]any {
	return map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5",
		"gen_ai.response.model": "gpt-5-2025-08-07", "gen_ai.conversation.id": name("conversation", session),
		"gen_ai.response.id": name("chatcmpl", session) + "-" + strconv.Itoa(turn), "gen_ai.agent.name": "coder",
		"gen_ai.usage.input_tokens": 10_240 * turn, "gen_ai.usage.cache_read.input_tokens": 10_240 * (turn - 1),
		"gen_ai.usage.output_tokens": 100, "gen_ai.response.finish_reasons": []any{"stop"},
		"server.address": "api.openai.com", "server.port": 443,
	}
}

// Entry is a call as an agent with the ledger in it tells it, as long as such entries are: 24 boundaries in the locator.
// Nobody counted it.
func Entry(session, turn int) map[string]any {
	attributes := maps.Clone(entry)
	maps.Copy(attributes, GenAI(session, turn))
	maps.Copy(attributes, map[string]any{
		"context_ledger.entry_id": name("entry", session) + "-" + strconv.Itoa(turn), "context_ledger.session_id": name("s", session),
		"context_ledger.prefix_locator": locator(session, turn), "context_ledger.history_length": 2*turn + 1,
		"context_ledger.input_tokens": 10_240 * turn, "context_ledger.cached_tokens": 10_240 * (turn - 1),
		"context_ledger.response_id": name("chatcmpl", session) + "-" + strconv.Itoa(turn),
		"context_ledger.started_at":  1.8e9 + float64(turn*10),
	})
	return attributes
}

// Other is a span of something else, of which a platform has most.
func Other(session, turn int) map[string]any {
	return map[string]any{
		"http.request.method": "GET", "url.path": "/orders/" + strconv.Itoa(session), "url.scheme": "https",
		"http.response.status_code": 200, "server.address": "orders.example.com", "server.port": 443,
		"network.protocol.version": "1.1", "user_agent.original": "python-requests/2.32", "http.route": "/orders/{id}",
		"thread.id": turn,
	}
}

// Platform is what one that runs agents has: one call in ten spans.
func Platform(session, turn int) map[string]any {
	if session%10 == 0 {
		return GenAI(session, turn)
	}
	return Other(session, turn)
}

const digest = "xxh3:0123456789abcdef0123456789abcdef"

var entry = map[string]any{
	"context_ledger.session_source": "lineage", "context_ledger.provider": "openai", "context_ledger.model_id": "gpt-5",
	"context_ledger.provider_surface": "openai", "context_ledger.endpoint": "api.openai.com", "context_ledger.api": "chat",
	"context_ledger.policy_hash": digest, "context_ledger.policy_wire_hash": digest,
	"context_ledger.tool_schema_hash": digest, "context_ledger.tool_wire_hash": digest,
	"context_ledger.context_identity": digest, "context_ledger.cache_identity": digest,
	"context_ledger.repo_snapshot": digest, "context_ledger.cache_report": "reported",
	"context_ledger.output_tokens": 100, "context_ledger.cache_outcome": "hit", "context_ledger.request_kind": "agent",
	"context_ledger.counted_by": "none", "context_ledger.digest_scheme": "xxh3", "context_ledger.call_end": "complete",
}

// locator has the boundaries of a history that grows: most of them stay, the last ones move on.
func locator(session, turn int) []any {
	const most = 24
	made := make([]any, most)
	for i := range made {
		at := max(2*turn+1-most, 0) + i
		made[i] = fmt.Sprintf("%d:%d:%016x", at, at*4000, session*1_000_003+at)
	}
	return made
}

func name(of string, session int) string { return fmt.Sprintf("%s-%024d", of, session) }
