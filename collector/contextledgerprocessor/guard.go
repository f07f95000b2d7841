package contextledgerprocessor

import (
	"context"

	"go.uber.org/zap"
)

// guard lets a step break without breaking the collector: what it was about goes on as it is, and the error is counted.
// Its text is told nowhere, for it may hold what was sent.
func (d *desk) guard(ctx context.Context, stage string, step func()) {
	defer func() {
		if broken := recover(); broken != nil {
			d.telemetry.ProcessorContextLedgerErrors.Add(ctx, 1, by("stage", stage))
			d.broken.Do(func() {
				d.logger.Error("a step of the ledger broke; what it was about goes on as it is. Further ones are only counted",
					zap.String("stage", stage), zap.Stack("stack"))
			})
		}
	}()
	step()
}
