// Package guard owns what becomes of a step of ours that breaks: it is counted and told once, and the collector goes on.
package guard

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
)

// New gives what takes a step: one that breaks is counted by its stage, and the first is logged as `says`. Its text is
// told nowhere, for it may hold what was sent.
func New(errors metric.Int64Counter, logger *zap.Logger, says string) func(context.Context, string, func()) {
	var told sync.Once
	return func(ctx context.Context, stage string, step func()) {
		defer func() {
			if broken := recover(); broken != nil {
				errors.Add(ctx, 1, By("stage", stage))
				told.Do(func() { logger.Error(says, zap.String("stage", stage), zap.Stack("stack")) })
			}
		}()
		step()
	}
}

// By is a word of one attribute, for counting by it.
func By(key, word string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, word)))
}
