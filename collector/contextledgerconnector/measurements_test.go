package contextledgerconnector

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Where the provider does not say what was reused, reusable tokens are not counted: without a miss they would stand as
// reused.
func TestWhatNobodyReportedIsNotKept(t *testing.T) {
	reusable, read := int64(9900), int64(9000)
	told := call.Call{Verdict: call.Verdict{Reusable: &reusable}}
	assert.NotContains(t, wholes(&told), semconv.MetricReusableTokens)
	told.Usage.CacheRead = &read
	assert.Equal(t, reusable, wholes(&told)[semconv.MetricReusableTokens])
}

// wholes has the whole numbers that a call adds, by metric.
func wholes(c *call.Call) map[string]int64 {
	found := map[string]int64{}
	for _, one := range measurements(nil, c) {
		found[one.of.name] = one.whole
	}
	return found
}
