package normalise_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/normalise"
)

func raw(texts ...string) [][]byte {
	var found [][]byte
	for _, text := range texts {
		found = append(found, []byte(text))
	}
	return found
}

// requests are captured ones, each in a dialect's own form, and what is read of them.
var requests = map[string]struct {
	scope string
	attrs map[string]any
	want  *call.Content
}{
	"gen_ai": {
		attrs: map[string]any{
			"gen_ai.operation.name":      "chat",
			"gen_ai.system_instructions": `[{"type":"text","content":"Be brief."}]`,
			"gen_ai.input.messages":      `[{"role":"system","parts":[]},{"role":"user","parts":[{"content":"hi"}]}]`,
			"gen_ai.tool.definitions":    `[{"name":"read_file"}]`,
		},
		want: &call.Content{
			Form: "gen_ai", Tools: raw(`{"name":"read_file"}`),
			System:   raw(`{"type":"text","content":"Be brief."}`, `{"role":"system","parts":[]}`),
			Messages: raw(`{"role":"user","parts":[{"content":"hi"}]}`),
		},
	},
	"gen_ai as a list of maps": {
		attrs: map[string]any{
			"gen_ai.operation.name": "chat",
			"gen_ai.input.messages": []any{map[string]any{"role": "user", "parts": []any{}}},
		},
		want: &call.Content{Form: "gen_ai", Messages: raw(`{"parts":[],"role":"user"}`)},
	},
	"openinference": {
		attrs: map[string]any{
			"openinference.span.kind":                                "LLM",
			"llm.input_messages.0.message.role":                      "system",
			"llm.input_messages.0.message.content":                   "Be brief.",
			"llm.input_messages.1.message.role":                      "tool",
			"llm.input_messages.2.message.role":                      "assistant",
			"llm.input_messages.2.message.tool_calls.0.tool_call.id": "c1",
			"llm.tools.0.tool.json_schema":                           "{}",
		},
		want: &call.Content{
			Form: "openinference", Tools: raw(`{"json_schema":"{}"}`),
			System:   raw(`{"content":"Be brief.","role":"system"}`),
			Messages: raw(`{"role":"tool"}`, `{"role":"assistant","tool_calls.0.tool_call.id":"c1"}`),
		},
	},
	"langfuse": {
		attrs: map[string]any{
			"langfuse.observation.type":  "generation",
			"langfuse.observation.input": `{"tools":[{"name":"read"}],"messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}]}`,
		},
		want: &call.Content{
			Form: "langfuse", Tools: raw(`{"name":"read"}`), System: raw(`{"role":"system","content":"s"}`),
			Messages: raw(`{"role":"user","content":"hi"}`),
		},
	},
	"langfuse, Responses": {
		attrs: map[string]any{
			"langfuse.observation.type":  "generation",
			"langfuse.observation.input": `{"input":[{"role":"system","content":"s"},{"role":"user","content":"hi"}],"tools":[{"name":"read"}]}`,
		},
		want: &call.Content{
			Form: "langfuse", Tools: raw(`{"name":"read"}`), System: raw(`{"role":"system","content":"s"}`),
			Messages: raw(`{"role":"user","content":"hi"}`),
		},
	},
	"openllmetry": {
		scope: "opentelemetry.instrumentation.openai.v1",
		attrs: map[string]any{
			"llm.request.type": "chat", "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "hi",
			"llm.request.functions.0.name": "read_file",
		},
		want: &call.Content{
			Form: "openllmetry", Tools: raw(`{"name":"read_file"}`), Messages: raw(`{"content":"hi","role":"user"}`),
		},
	},
	"vercel_ai": {
		scope: "ai",
		attrs: map[string]any{
			"ai.operationId":     "ai.streamText.doStream",
			"ai.prompt.messages": `[{"role":"system","content":"Be brief."},{"role":"user","content":[]}]`,
			"ai.prompt.tools":    []any{`{"type":"function","name":"read_file"}`},
		},
		want: &call.Content{
			Form: "vercel_ai", Tools: raw(`{"type":"function","name":"read_file"}`),
			System: raw(`{"role":"system","content":"Be brief."}`), Messages: raw(`{"role":"user","content":[]}`),
		},
	},
	"langsmith": {
		scope: "langsmith",
		attrs: map[string]any{"langsmith.span.kind": "llm", "gen_ai.prompt": `{"messages":[[{"type":"human"},{"type":"ai"}]]}`},
		want:  &call.Content{Form: "langsmith", Messages: raw(`{"type":"human"}`, `{"type":"ai"}`)},
	},
	"openinference with its first messages taken away": {
		attrs: map[string]any{
			"openinference.span.kind":           "LLM",
			"llm.input_messages.1.message.role": "assistant",
			"llm.input_messages.2.message.role": "user",
		},
	},
	"nothing captured": {attrs: map[string]any{"gen_ai.operation.name": "chat"}},
	"no JSON":          {attrs: map[string]any{"gen_ai.operation.name": "chat", "gen_ai.input.messages": "hi"}},
}

// Captured requests are read in each dialect's own form, part by part as JSON; leading system messages belong to the
// system part.
func TestCapturedRequestsAreReadPartByPart(t *testing.T) {
	for name, row := range requests {
		t.Run(name, func(t *testing.T) {
			attrs := pcommon.NewMap()
			require.NoError(t, attrs.FromRaw(row.attrs))
			subject := normalise.Subject{Signal: normalise.Traces, Scope: row.scope, Attrs: attrs}

			found, kind := normaliser(t, normalise.Options{Content: true}).Read(subject)
			without, _ := normaliser(t, normalise.Options{}).Read(subject)

			assert.Equal(t, normalise.Call, kind)
			assert.Equal(t, row.want, found.Content)
			assert.Nil(t, without.Content, "only where it is asked for")
		})
	}
}

// What holds content is said for each dialect, with the names of the one that it extends.
func TestContentIsNamedByDialect(t *testing.T) {
	n := normaliser(t, normalise.Options{})

	assert.Subset(t, n.ContentOf("openinference"), []string{"input.value", "llm.input_messages.*", "gen_ai.input.messages"})
	assert.Nil(t, n.ContentOf("nobody"))
}

// Numbered messages stand in the order of their numbers, not of their digits.
func TestNumberedMessagesAreInOrder(t *testing.T) {
	attrs := pcommon.NewMap()
	attrs.PutStr("openinference.span.kind", "LLM")
	var want []string
	for at := range 12 {
		attrs.PutStr(fmt.Sprintf("llm.input_messages.%d.message.content", at), fmt.Sprint(at))
		want = append(want, fmt.Sprintf(`{"content":"%d"}`, at))
	}
	subject := normalise.Subject{Signal: normalise.Traces, Attrs: attrs}
	found, _ := normaliser(t, normalise.Options{Content: true}).Read(subject)
	require.NotNil(t, found.Content)
	assert.Equal(t, raw(want...), found.Content.Messages)
}

// A span that lost attributes to its limit shows no whole request, whichever they were.
func TestALossOfAttributesLeavesNoContent(t *testing.T) {
	for dropped, whole := range map[uint32]bool{0: true, 1: false} {
		span, line := ptrace.NewSpan(), plog.NewLogRecord()
		for _, attrs := range []pcommon.Map{span.Attributes(), line.Attributes()} {
			attrs.PutStr("gen_ai.operation.name", "chat")
			attrs.PutStr("gen_ai.input.messages", `[{"role":"user","parts":[]}]`)
		}
		line.SetEventName("gen_ai.client.inference.operation.details")
		span.SetDroppedAttributesCount(dropped)
		line.SetDroppedAttributesCount(dropped)
		reader := normaliser(t, normalise.Options{Content: true})
		bySpan, _ := reader.Span(pcommon.NewInstrumentationScope(), span)
		byLog, _ := reader.Log(pcommon.NewInstrumentationScope(), line)
		assert.Equal(t, whole, bySpan.Content != nil)
		assert.Equal(t, whole, byLog.Content != nil)
	}
}
