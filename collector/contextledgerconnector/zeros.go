package contextledgerconnector

import (
	"context"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerconnector/internal/metadata"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/guard"
)

// stages are the steps that can break, in the connector's own telemetry.
var stages = [...]string{"read", "count", "flush"}

// zeros tells the connector's own counters as 0 from the start, under every word that they can have: Prometheus would
// else not see what happens for the first time, and a panel could not tell none from unknown.
func zeros(telemetry *metadata.TelemetryBuilder) {
	ctx := context.Background()
	for _, result := range results {
		telemetry.ConnectorContextLedgerEntries.Add(ctx, 0, result)
	}
	for _, bound := range beyond {
		telemetry.ConnectorContextLedgerOverflow.Add(ctx, 0, bound)
	}
	for _, stage := range stages {
		telemetry.ConnectorContextLedgerErrors.Add(ctx, 0, guard.By("stage", stage))
	}
	telemetry.ConnectorContextLedgerFlushFailures.Add(ctx, 0)
}
