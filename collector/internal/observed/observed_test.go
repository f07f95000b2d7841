package observed_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/observed"
)

func noted(counts ...int64) observed.Observed {
	scope, known, previous := observed.Scope{Surface: "s"}, observed.New(), int64(4096)
	for _, count := range counts {
		known.Note(scope, &count, &previous)
	}
	return known.Of(scope)
}

// The documented block holds until a count contradicts it; another one is believed after four counts that share a divisor
// which is no accident.
func TestBlock(t *testing.T) {
	for _, one := range []struct {
		counts            []int64
		documented, block int64
	}{
		{nil, 128, 128},
		{nil, 0, 1},
		{[]int64{128, 1024}, 128, 128},
		{[]int64{100}, 128, 1},
		{[]int64{256, 512, 1024}, 0, 1},
		{[]int64{256, 512, 1024, 2304}, 0, 256},
		{[]int64{256, 512, 1024, 2304}, 96, 256},
		{[]int64{8, 16, 24, 40}, 0, 1},
	} {
		assert.Equal(t, one.block, noted(one.counts...).Block(one.documented), one)
	}
}

// A count that was not reported, or is 0, says nothing; the smallest prompt that hit is kept.
func TestNote(t *testing.T) {
	scope, known, none, some, small := observed.Scope{}, observed.New(), int64(0), int64(64), int64(900)
	known.Note(scope, nil, &some)
	known.Note(scope, &none, &some)
	assert.Equal(t, observed.Observed{}, known.Of(scope))
	known.Note(scope, &some, nil)
	known.Note(scope, &some, &small)
	assert.Equal(t, observed.Observed{Step: 64, Counts: []int64{64}, SmallestHit: 900}, known.Of(scope))
}
