package contextledgerprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerprocessor/internal/metadata"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/sharing"
)

// desks has one desk for each processor in a configuration: its pipelines of traces and logs know the same sessions.
var desks sharing.Values[*Config, *desk]

// NewFactory gives the factory of the context_ledger processor.
func NewFactory() processor.Factory {
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithTraces(createTraces, metadata.TracesStability),
		processor.WithLogs(createLogs, metadata.LogsStability),
	)
}

func createTraces(
	ctx context.Context, settings processor.Settings, config component.Config, next consumer.Traces,
) (processor.Traces, error) {
	held, err := newSeat(settings, config.(*Config))
	if err != nil {
		return nil, err
	}
	if config.(*Config).Mode == partition {
		return &tracesPartitioner{seat: held, next: next}, nil
	}
	return processorhelper.NewTraces(ctx, settings, config, next, held.desk().processTraces, held.options()...)
}

func createLogs(
	ctx context.Context, settings processor.Settings, config component.Config, next consumer.Logs,
) (processor.Logs, error) {
	held, err := newSeat(settings, config.(*Config))
	if err != nil {
		return nil, err
	}
	if config.(*Config).Mode == partition {
		return &logsPartitioner{seat: held, next: next}, nil
	}
	return processorhelper.NewLogs(ctx, settings, config, next, held.desk().processLogs, held.options()...)
}

// seat is one pipeline's place at a desk.
type seat struct {
	lease *sharing.Lease[*Config, *desk]
}

func newSeat(settings processor.Settings, config *Config) (seat, error) {
	lease, err := desks.Take(config, func() (*desk, error) { return newDesk(settings, config) })
	return seat{lease}, err
}

func (s seat) desk() *desk { return s.lease.Value }

func (s seat) options() []processorhelper.Option {
	return []processorhelper.Option{
		processorhelper.WithCapabilities(s.Capabilities()),
		processorhelper.WithStart(s.Start),
		processorhelper.WithShutdown(s.Shutdown),
	}
}

// Capabilities says that data is changed, in both modes.
func (s seat) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

// Start opens the desk, whichever pipeline starts first.
func (s seat) Start(ctx context.Context, host component.Host) error { return s.desk().open(ctx, host) }

// Shutdown closes the desk when the last pipeline leaves it.
func (s seat) Shutdown(ctx context.Context) error {
	if !s.lease.Release() {
		return nil
	}
	return s.desk().close(ctx)
}
