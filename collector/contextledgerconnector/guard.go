package contextledgerconnector

import (
	"context"

	"go.uber.org/zap"
)

// guard lets a step break without breaking the collector, and counts the error. Its text is told nowhere, for it may
// hold what was sent.
func (c *counter) guard(ctx context.Context, stage string, step func()) {
	defer func() {
		if broken := recover(); broken != nil {
			c.telemetry.ConnectorContextLedgerErrors.Add(ctx, 1, by("stage", stage))
			c.broken.Do(func() {
				c.logger.Error("a step of the ledger broke. Further ones are only counted",
					zap.String("stage", stage), zap.Stack("stack"))
			})
		}
	}()
	step()
}
