package contextledgerconnector

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A table has what a map has, whichever hashes share a place, before and after it was cleared.
func TestATableIsAMap(t *testing.T) {
	var made table
	assert.Zero(t, made.get(1))
	for range 2 {
		want := map[uint64]int32{}
		for i := range int32(2000) {
			hash := uint64(i%1500) * 16 // of every sixteen places one is asked for
			made.set(hash, i+1)
			want[hash] = i + 1
		}
		got := map[uint64]int32{}
		for hash := range uint64(1500 * 16) {
			if number := made.get(hash); number != 0 {
				got[hash] = number
			}
		}
		assert.Equal(t, want, got)
		assert.Equal(t, len(want), made.many)
		assert.LessOrEqual(t, 4*made.many, 3*len(made.slots))
		made.clear()
		assert.Zero(t, made.get(16))
	}
}
