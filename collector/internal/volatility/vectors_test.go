package volatility_test

import (
	"testing"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/vectortest"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/volatility"
)

// Two texts differ in volatile spans, or in more than that, as every implementation says.
func TestVectors(t *testing.T) {
	vectortest.Run(t, "volatility", nil, func(_ *testing.T, input canonical.Object) any {
		found := volatility.Compare(canonical.Text(input.Get("old")), canonical.Text(input.Get("new")))
		if found == nil {
			return nil
		}
		var grain any
		if found.Grain != "" {
			grain = found.Grain
		}
		also := append([]string{}, found.Also...)
		return map[string]any{"kind": found.Kind, "grain": grain, "offset": found.Offset, "also": also}
	})
}
