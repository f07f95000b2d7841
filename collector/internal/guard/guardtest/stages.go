// Package guardtest says in tests which steps of a package are guarded.
package guardtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var guarded = regexp.MustCompile(`guard\(ctx, "(\w+)"`)

// Stages gives 0 for each step that stands in the sources of the package under test as one that can break.
func Stages(t *testing.T) map[string]int64 {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	found := map[string]int64{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if !strings.HasSuffix(file, "_test.go") {
			for _, stage := range guarded.FindAllStringSubmatch(string(text), -1) {
				found[stage[1]] = 0
			}
		}
	}
	require.NotEmpty(t, found)
	return found
}
