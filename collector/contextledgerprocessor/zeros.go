package contextledgerprocessor

import (
	"context"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerprocessor/internal/metadata"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/guard"
)

// stages are the steps that can break, in the processor's own telemetry.
var stages = [...]string{"read", "fold", "judge", "sweep", "save"}

// zeros tells what goes wrong seldom as 0 from the start: Prometheus would else not see what happens for the first time,
// and a panel could not tell none from unknown.
func zeros(telemetry *metadata.TelemetryBuilder) {
	ctx := context.Background()
	for _, stage := range stages {
		telemetry.ProcessorContextLedgerErrors.Add(ctx, 0, guard.By("stage", stage))
	}
	for _, step := range [...]string{"load", "save"} {
		telemetry.ProcessorContextLedgerSnapshotFailures.Add(ctx, 0, guard.By("step", step))
	}
	telemetry.ProcessorContextLedgerInvariantViolations.Add(ctx, 0)
}
