package segments_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
)

// What a message says is found in every form in which messages are captured: as clients send it, and in the parts of the
// GenAI conventions, without which a clock in a system prompt would be a change of policy.
func TestTexts(t *testing.T) {
	for sent, want := range map[string]string{
		`"hi"`:                           "hi",
		`{"role":"user","content":"hi"}`: "hi",
		`{"role":"user","content":null}`: "",
		`{"type":"text","text":"hi"}`:    "hi",
		`{"type":"text","content":"hi"}`: "hi",
		`{"role":"user"}`:                "",
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`:               "a\nb",
		`{"role":"system","parts":[{"type":"text","content":"a"},{"type":"text","content":"b"}]}`:         "a\nb",
		`{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"not what it says"}]}`: "",
	} {
		value, err := canonical.Parse(sent)
		require.NoError(t, err)
		assert.Equal(t, want, segments.Texts(value), sent)
	}
}
