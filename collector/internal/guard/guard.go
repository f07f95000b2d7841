// Package guard owns what becomes of a step of ours that breaks: it is counted and told once, and the collector goes on.
package guard

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
)

// Guard takes steps that may break.
type Guard struct {
	errors metric.Int64Counter
	logger *zap.Logger
	says   string
	told   sync.Once
}

// New makes a guard. A step that breaks is counted by its stage, and the first is logged as `says`. Its text is told nowhere,
// for it may hold what was sent.
func New(errors metric.Int64Counter, logger *zap.Logger, says string) *Guard {
	return &Guard{errors: errors, logger: logger, says: says}
}

// Take takes a step. What the step holds needs no room on the heap.
func (g *Guard) Take(ctx context.Context, stage string, step func()) {
	defer func() {
		if broken := recover(); broken != nil {
			g.broke(ctx, stage)
		}
	}()
	step()
}

func (g *Guard) broke(ctx context.Context, stage string) {
	g.errors.Add(ctx, 1, By("stage", stage))
	g.told.Do(func() { g.logger.Error(g.says, zap.String("stage", stage), zap.Stack("stack")) })
}

// By is a word of one attribute, for counting by it.
func By(key, word string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, word)))
}
