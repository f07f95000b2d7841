package names_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/names"
)

// A set has the names that it was made of and everything that begins like one that is open, and nothing that is only as
// long or begins with the same character.
func TestASetHasItsNames(t *testing.T) {
	set := names.NewSet("prompt", "gen_ai.prompt", "gen_ai.prompt.*", "llm.tools*", "llm.tools*")
	found := map[string]bool{}
	for _, name := range []string{
		"prompt", "answer", "prompt.", "gen_ai.prompt", "gen_ai.promts", "gen_ai.prompt.0.content", "llm.tools", "llm.tool", "",
		"gen_ai.prompt" + strings.Repeat("x", 64),
	} {
		found[name] = set.Has(name)
	}
	assert.Equal(t, map[string]bool{
		"prompt": true, "answer": false, "prompt.": false, "gen_ai.prompt": true, "gen_ai.promts": false,
		"gen_ai.prompt.0.content": true, "llm.tools": true, "llm.tool": false, "": false,
		"gen_ai.prompt" + strings.Repeat("x", 64): false,
	}, found)
	assert.True(t, names.NewSet("*").Has("anything"))
	assert.False(t, names.NewSet().Has("anything"))
}

// A name keeps the number that it got first.
func TestAnIndexNumbersNames(t *testing.T) {
	var index names.Index
	assert.Equal(t, []int{0, 1, 0}, []int{index.Add("a.b"), index.Add("c"), index.Add("a.b")})
	number, known := index.Of("c")
	assert.Equal(t, 1, number)
	assert.True(t, known)
	_, known = index.Of("d")
	assert.False(t, known)
}
