package normalise

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
)

// A record has a dialect whether it tells of a call or of something else beside it; what is of no dialect has none.
func TestDialectOfAnyRecord(t *testing.T) {
	made, err := New(Options{})
	require.NoError(t, err)
	spans, logs := made.Spans(pcommon.NewInstrumentationScope()), made.Logs(pcommon.NewInstrumentationScope())
	for name, want := range map[string]string{"claude_code.tool": "claude_code", "claude_code.llm_request": "claude_code", "GET /": ""} {
		span := ptrace.NewSpan()
		span.SetName(name)
		_, found := spans.Span(span, &call.Call{})
		assert.Equal(t, want, found, name)
	}
	for name, want := range map[string]string{"claude_code.user_prompt": "claude_code", "codex.user_prompt": "codex", "": ""} {
		record := plog.NewLogRecord()
		record.Body().SetStr(name)
		_, found := logs.Log(record, &call.Call{})
		assert.Equal(t, want, found, name)
	}
	assert.Contains(t, made.Dialects(), "claude_code")
}
