// Package metadata holds what ../../metadata.yaml says of the component, in the shape that mdatagen gives it.
package metadata

import (
	"go.opentelemetry.io/collector/component"
)

var (
	// Type is the component's name in a configuration.
	Type = component.MustNewType("context_ledger")
	// ScopeName names the component in its own telemetry.
	ScopeName = "github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerprocessor"
)

const (
	// TracesStability is how settled the processing of traces is.
	TracesStability = component.StabilityLevelDevelopment
	// LogsStability is how settled the processing of logs is.
	LogsStability = component.StabilityLevelDevelopment
)
