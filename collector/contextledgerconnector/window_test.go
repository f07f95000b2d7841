package contextledgerconnector

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A mark is known for the whole window and forgotten within two of them.
func TestWindowByTime(t *testing.T) {
	began := time.Unix(1_800_000_000, 0)
	at := func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
	known := newWindow(DedupConfig{Window: 10 * time.Minute, MaxEntries: 1000}, began)
	known.add([]string{"a"}, &memory{}, at(9))
	known.add([]string{"b"}, &memory{}, at(18))
	assert.True(t, known.has([]string{"a"}), "9 minutes later")
	assert.True(t, known.has([]string{"x", "b"}), "any of the marks")
	known.add([]string{"c"}, &memory{}, at(28))
	assert.False(t, known.has([]string{"a"}), "19 minutes later")
	assert.True(t, known.has([]string{"b"}), "10 minutes later")
	known.add([]string{"d"}, &memory{}, at(90))
	assert.False(t, known.has([]string{"b", "c"}), "after a long silence")
}

// However many come, the last `max_entries` are known, and no more than twice as many are held.
func TestWindowByNumber(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	known := newWindow(DedupConfig{Window: time.Hour, MaxEntries: 100}, now)
	for i := range 1000 {
		known.add([]string{fmt.Sprint(i)}, &memory{}, now)
		assert.LessOrEqual(t, len(known.young)+len(known.old), 200)
	}
	for i := 900; i < 1000; i++ {
		assert.True(t, known.has([]string{fmt.Sprint(i)}), i)
	}
	assert.False(t, known.has([]string{"700"}))
}
