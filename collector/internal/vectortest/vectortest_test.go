package vectortest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// run are the vectors that a package here runs, by file or folder.
var run = []string{
	"canonical", "collector", "lineage", "names", "segments", "spelling", "volatility",
}

// processOnly are those that are about what only a process knows, each with the reason.
var processOnly = map[string]string{
	"advice":     "advice is given to who makes the next call",
	"compaction": "what must survive a compaction is declared in the process; a collector takes what it is told of one",
	"diagnose":   "symptoms are looked for in ledger files, by the command line",
	"repository": "files are looked at where they lie",
	"surfaces":   "bodies of providers' APIs are read in the process; other instrumentations' names for them have golden files",
	"tasks":      "outcomes are told to the process, accounts are made of ledger files",
	"tools":      "contracts and registries of tools are known to the process",
	"wordings":   "rules are looked for in summaries where they were declared",
	"totals":     "sums are made of ledger files by the command line, and of metrics by who stores them",
}

// Every vector is run here, or it is said why a collector cannot know of it.
func TestEveryVectorIsAccountedFor(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(root(t), "spec", "vectors"))
	require.NoError(t, err)
	found := []string{}
	for _, entry := range entries {
		found = append(found, strings.TrimSuffix(entry.Name(), ".json"))
	}
	known := slices.Clone(run)
	for kind, reason := range processOnly {
		assert.NotEmpty(t, reason)
		known = append(known, kind)
	}
	assert.ElementsMatch(t, known, found)
}

// A want is compared in the parts that it speaks of, and in none that are said to be another's.
func TestComparison(t *testing.T) {
	want := map[string]any{"a": 1.0, "b": []any{map[string]any{"c": nil}}, "money": 2.0}
	found := map[string]any{"a": 1.0, "b": []any{map[string]any{"c": nil, "d": 3.0}}, "e": 4.0}
	used := map[string]bool{}
	skip := skipper{"a vector", Elsewhere{"money": "priced elsewhere", "a vector: b": "for this one alone"}, used}
	left := skip.ours(want, "")
	assert.Equal(t, map[string]any{"a": 1.0}, left)
	assert.Equal(t, left, pruned(found, left))
	assert.Equal(t, map[string]bool{"money": true, "a vector: b": true}, used)
	assert.Equal(t, map[string]any{"b": []any{map[string]any{"c": nil}}}, pruned(found, map[string]any{"b": want["b"]}))
	assert.NotEqual(t, []any{1.0}, pruned([]any{1.0, 2.0}, []any{1.0}))
}
