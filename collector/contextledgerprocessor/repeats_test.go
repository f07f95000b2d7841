package contextledgerprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// An instrumentation's span and that of the SDK's own tracing inside it are one call: the outer one is marked, and only
// the inner one is left to be counted. Standard names are filled in where they are spoken.
func TestCallThatIsToldTwiceIsMarked(t *testing.T) {
	traces := ptrace.NewTraces()
	scopes := traces.ResourceSpans().AppendEmpty().ScopeSpans()
	outer := map[string]any{"openinference.span.kind": "LLM", "llm.token_count.prompt": 2600}
	inner := map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.system": "anthropic", "gen_ai.usage.prompt_tokens": 2600,
		"gen_ai.usage.cache_creation.input_tokens": 400, "gen_ai.usage.cache_read.input_tokens": 2000,
	}
	for at, attributes := range []map[string]any{outer, inner} {
		span := scopes.AppendEmpty().Spans().AppendEmpty()
		span.SetTraceID(pcommon.TraceID{1})
		span.SetSpanID(pcommon.SpanID{byte(at + 1)})
		span.SetParentSpanID(pcommon.SpanID{byte(at)})
		require.NoError(t, span.Attributes().FromRaw(attributes))
	}

	seen := processSpans(t, createDefaultConfig().(*Config), traces).ResourceSpans().At(0).ScopeSpans()

	told := func(at int) map[string]any { return seen.At(at).Spans().At(0).Attributes().AsRaw() }
	assert.Subset(t, told(0), map[string]any{"context_ledger.aggregate": true, "context_ledger.input_tokens": int64(2600)})
	assert.NotContains(t, told(0), "context_ledger.counted_by")
	assert.NotContains(t, told(0), "gen_ai.usage.input_tokens")
	assert.Subset(t, told(1), map[string]any{
		"context_ledger.counted_by": "none", "context_ledger.input_tokens": int64(2600),
		"gen_ai.usage.input_tokens": int64(2600), "gen_ai.usage.cache_write.input_tokens": int64(400),
		"gen_ai.provider.name": "anthropic",
	})
	assert.NotContains(t, told(1), "context_ledger.aggregate")
}
