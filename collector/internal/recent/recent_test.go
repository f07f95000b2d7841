package recent_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/recent"
)

// What was put last is forgotten last; looking at a value is no use of it.
func TestTheLeastRecentlyPutIsForgotten(t *testing.T) {
	known := recent.New[string, int]()
	_, _, any := known.Oldest()
	assert.False(t, any)
	known.Bound("a", 1, 2)
	known.Bound("b", 2, 2)
	known.Bound("a", 3, 2)
	_, found := known.Get("b")
	assert.True(t, found)
	known.Bound("c", 4, 2)
	assert.Equal(t, map[string]int{"a": 3, "c": 4}, maps.Collect(known.All))
	assert.Equal(t, []string{"a", "c"}, slices.Collect(func(yield func(string) bool) {
		for key := range known.All {
			if !yield(key) {
				return
			}
		}
	}))
	key, value, _ := known.Oldest()
	assert.Equal(t, "a", key)
	assert.Equal(t, 3, value)
	known.Delete("a")
	known.Delete("unknown")
	assert.Equal(t, 1, known.Len())
	for range known.All {
		break
	}
}
