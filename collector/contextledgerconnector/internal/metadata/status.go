// Package metadata holds what ../../metadata.yaml says of the component, in the shape that mdatagen gives it.
package metadata

import (
	"go.opentelemetry.io/collector/component"
)

var (
	// Type is the component's name in a configuration.
	Type = component.MustNewType("context_ledger")
	// ScopeName names the component in its own telemetry and in the metrics that it makes.
	ScopeName = "github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerconnector"
)

const (
	// TracesToMetricsStability is how settled traces in, metrics out is.
	TracesToMetricsStability = component.StabilityLevelDevelopment
	// LogsToMetricsStability is how settled logs in, metrics out is.
	LogsToMetricsStability = component.StabilityLevelDevelopment
)
