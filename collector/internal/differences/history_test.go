package differences_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/cause"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/differences"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
)

func outline(t *testing.T, messages string) *segments.Outline {
	value, err := canonical.Parse(messages)
	require.NoError(t, err)
	return segments.Cut(segments.Request{Messages: canonical.Items(value)})
}

const (
	ask    = `{"role":"user","content":"Fix the login."}`
	answer = `{"role":"assistant","content":"Done."}`
	more   = `{"role":"user","content":"And now the tests, please."}`
	result = `{"role":"tool","content":"a long result"}`
	other  = `{"role":"tool","content":"another"}`
)

// A rewrite is told by the first message that changed.
func TestKindsOfRewrites(t *testing.T) {
	for _, one := range []struct{ name, before, after, kind string }{
		{"a message less", ask + "," + answer + "," + more, ask + "," + more, "pruned"},
		{"a message more", ask + "," + more, ask + "," + answer + "," + answer + "," + more, "edited"},
		{
			"results in another order", ask + "," + result + "," + other + "," + more,
			ask + "," + other + "," + result + "," + more, "tool_results_reordered",
		},
		{
			"messages in another order", ask + "," + answer + "," + result + "," + more,
			ask + "," + result + "," + answer + "," + more, "reordered",
		},
		{"a shorter result", ask + "," + result + "," + more, ask + `,{"role":"tool","content":""},` + more, "pruned"},
		{"another answer", ask + "," + answer + "," + more, ask + `,{"role":"assistant","content":"No."},` + more, "edited"},
		{
			"reasoning left out", ask + "," + `{"role":"assistant","content":"Done.","reasoning_content":"Hm."}` + "," + more,
			ask + "," + answer + "," + more, "reasoning_dropped",
		},
		{"reasoning items left out", ask + `,{"type":"reasoning"},` + more, ask + "," + more, "reasoning_dropped"},
		{
			"a user's text by half", ask + "," + `{"role":"user","content":"Fix the login, and the logout."}` + "," + more,
			ask + "," + `{"role":"user","content":"Fix"}` + "," + more, "pruned",
		},
		{
			"arguments in another order", ask + `,{"role":"assistant","content":"{\"a\":1,\"b\":2}"},` + more,
			ask + `,{"role":"assistant","content":"{\"b\":2,\"a\":1}"},` + more, "serialization",
		},
	} {
		t.Run(one.name, func(t *testing.T) {
			assert.Equal(t, []string{one.kind}, history(t, one.before, one.after, nil).Detail)
		})
	}
}

func history(t *testing.T, before, after string, summaries []string) *cause.Cause {
	old, now := outline(t, "["+before+"]"), outline(t, "["+after+"]")
	link := lineage.Link{Head: &lineage.Head{Outline: old}, Relation: lineage.Rewrites, Shared: 1, Tail: 1}
	link.TailAt = len(now.Messages) - 1
	return differences.History(link, now, summaries)
}

// A run of messages that gave way to a much shorter one is a compaction, and so is one that gave way to a known summary.
func TestCompaction(t *testing.T) {
	summary := `{"role":"user","content":"Summary."}`
	long := answer + "," + result + "," + answer + "," + result
	assert.Equal(t, "history_compacted", history(t, ask+","+long+","+more, ask+","+summary+","+more, nil).Name)
	found := history(t, ask+","+answer+","+more, ask+","+summary+","+more, []string{"Summary"})
	assert.Equal(t, "history_compacted", found.Name)
	assert.Equal(t, []string{"local_diff", "removed=1"}, found.Evidence)
}
