package volatility_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/volatility"
)

// Texts without end that look like the beginning of a span are masked as they stand.
func TestEndlessTexts(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("1,", 20_000), "status:" + strings.Repeat(" ", 30_000) + "x", "turn 1" + strings.Repeat(".1", 20_000),
		strings.Repeat("1", 30_000), strings.Repeat("M ", 20_000), strings.Repeat("=", 30_000),
	} {
		assert.Equal(t, text, volatility.Mask(text))
	}
}

// Of a paragraph that is too long to be looked through every difference counts.
func TestLongParagraph(t *testing.T) {
	long := strings.Repeat("word ", volatility.MaxParagraph/5)
	assert.NotNil(t, volatility.Compare("at 10:00:01\n\n"+long, "at 10:00:02\n\n"+long))
	assert.Nil(t, volatility.Compare(long+"at 10:00:01", long+"at 10:00:02"))
}

// What two texts share is counted in characters, also of other scripts.
func TestCommon(t *testing.T) {
	assert.Equal(t, 2, volatility.Common("日本a", "日本b"))
	assert.Equal(t, 1, volatility.Common("a\xe6", "a\xe7"))
	assert.Equal(t, 3, volatility.Common("abc", "abcd"))
	assert.Equal(t, 0, volatility.Common("", "a"))
}

// A text of some pages of which one clock moved.
func BenchmarkCompare(b *testing.B) {
	page := strings.Repeat("The rules of this repository are kept in files and must be read at first.\n", 20) + "\n"
	rules := strings.Repeat(page, 20)
	for at := range b.N {
		clock := "Now: 2026-03-06 10:00:" + string(rune('0'+at%6)) + string(rune('0'+at%10)) + "\n\n"
		volatility.Compare("Now: 2026-03-06 10:00:59\n\n"+rules, clock+rules)
	}
}
