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
	known.add([]mark{named("a")}, memory{}, at(9))
	known.add([]mark{named("b")}, memory{}, at(18))
	assert.True(t, known.has(named("a")), "9 minutes later")
	assert.NotNil(t, known.find(&entry{known: []mark{named("x"), named("b")}}), "any of the marks")
	known.add([]mark{named("c")}, memory{}, at(28))
	assert.False(t, known.has(named("a")), "19 minutes later")
	assert.True(t, known.has(named("b")), "10 minutes later")
	known.add([]mark{named("d")}, memory{}, at(90))
	assert.Nil(t, known.find(&entry{known: []mark{named("b"), named("c")}}), "after a long silence")
}

// However many come, the last `max_entries` are known, and no more than twice as many are held.
func TestWindowByNumber(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	known := newWindow(DedupConfig{Window: time.Hour, MaxEntries: 100}, now)
	for i := range 1000 {
		known.add([]mark{named(fmt.Sprint(i))}, memory{}, now)
		assert.LessOrEqual(t, len(known.young.marks)+len(known.old.marks), 200)
	}
	for i := 900; i < 1000; i++ {
		assert.True(t, known.has(named(fmt.Sprint(i))), i)
	}
	assert.False(t, known.has(named("700")))
}

// named is the mark of an entry with an id.
func named(id string) mark { return new(entry).mark(ofEntry, id) }
