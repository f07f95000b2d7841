package contextledgerconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerconnector/internal/metadata"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/sharing"
)

// counters has one counter for each connector in a configuration: the same entry may come as a span and as a log
// record, and is counted once. Its traces and logs sides lead to the same metrics pipelines.
var counters sharing.Values[*Config, *counter]

// NewFactory gives the factory of the context_ledger connector.
func NewFactory() connector.Factory {
	return connector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		connector.WithTracesToMetrics(createTracesToMetrics, metadata.TracesToMetricsStability),
		connector.WithLogsToMetrics(createLogsToMetrics, metadata.LogsToMetricsStability),
	)
}

func createTracesToMetrics(
	_ context.Context, settings connector.Settings, config component.Config, next consumer.Metrics,
) (connector.Traces, error) {
	side, err := newSide(settings, config.(*Config), next)
	return tracesSide{side}, err
}

func createLogsToMetrics(
	_ context.Context, settings connector.Settings, config component.Config, next consumer.Metrics,
) (connector.Logs, error) {
	side, err := newSide(settings, config.(*Config), next)
	return logsSide{side}, err
}

func newSide(settings connector.Settings, config *Config, next consumer.Metrics) (*side, error) {
	lease, err := counters.Take(config, func() (*counter, error) { return newCounter(settings, config) })
	if err != nil {
		return nil, err
	}
	return &side{lease: lease, next: next}, nil
}
