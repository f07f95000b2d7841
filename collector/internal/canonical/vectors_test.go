package canonical_test

import (
	"testing"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/vectortest"
)

// A JSON value has the canonical text and digest that every implementation gives it.
func TestVectors(t *testing.T) {
	vectortest.Run(t, "canonical", nil, func(_ *testing.T, input canonical.Object) any {
		raw := canonical.Form(input.Get("value"))
		export := canonical.NewExporter(canonical.Text(input.Get("key")))
		return map[string]string{"canonical": string(raw), "digest": export.Write(canonical.Of(raw))}
	})
}
