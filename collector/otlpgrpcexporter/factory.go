// Package otlpgrpcexporter owns one decision about the collector's otlp_grpc exporter: whether a pipeline has to make a
// copy for it. All else is that exporter, under its name and with its configuration.
//
// An exporter that makes batches in its queue says that it changes what it is given (exporterhelper v0.165.0,
// internal/base_exporter.go), so that a collector copies everything for it as soon as a connector or another exporter
// stands beside it in a pipeline. With a queue in a storage that is not so: what it is given is written there before it
// answers (internal/queue/persistent_queue.go, Offer), and batches are made of what is read from there.
package otlpgrpcexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
)

// NewFactory gives the factory of the otlp_grpc exporter.
func NewFactory() exporter.Factory { return factory{otlpexporter.NewFactory().(original)} }

// original is what the collector's factory is: one of all four signals, which has an older name as well.
type original interface {
	xexporter.Factory
	DeprecatedAlias() component.Type
	SetDeprecatedAlias(component.Type)
}

type factory struct{ original }

// CreateTraces makes the exporter of spans; its error is the collector's.
func (f factory) CreateTraces(
	ctx context.Context, settings exporter.Settings, config component.Config,
) (exporter.Traces, error) {
	made, err := f.original.CreateTraces(ctx, settings, config)
	if err != nil || !stored(config) {
		return made, err
	}
	return traces{made, reader{made}}, nil
}

// CreateMetrics makes the exporter of metrics; its error is the collector's.
func (f factory) CreateMetrics(
	ctx context.Context, settings exporter.Settings, config component.Config,
) (exporter.Metrics, error) {
	made, err := f.original.CreateMetrics(ctx, settings, config)
	if err != nil || !stored(config) {
		return made, err
	}
	return metrics{made, reader{made}}, nil
}

// CreateLogs makes the exporter of log records; its error is the collector's.
func (f factory) CreateLogs(
	ctx context.Context, settings exporter.Settings, config component.Config,
) (exporter.Logs, error) {
	made, err := f.original.CreateLogs(ctx, settings, config)
	if err != nil || !stored(config) {
		return made, err
	}
	return logs{made, reader{made}}, nil
}

// stored says whether what is to be sent stands in a storage before the exporter answers.
func stored(config component.Config) bool {
	queue := config.(*otlpexporter.Config).QueueConfig
	return queue.HasValue() && queue.Get().StorageID != nil
}

// traces, metrics and logs are exporters that only read what they are given.
type (
	traces struct {
		exporter.Traces
		reader
	}
	metrics struct {
		exporter.Metrics
		reader
	}
	logs struct {
		exporter.Logs
		reader
	}
)

func (traces) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (metrics) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (logs) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// reader passes on whether an exporter makes batches, which the service asks in order to warn of a batch processor.
type reader struct{ of component.Component }

// ExporterHelperBatchingEnabled says whether the exporter makes batches.
func (r reader) ExporterHelperBatchingEnabled() bool {
	told, ok := r.of.(interface{ ExporterHelperBatchingEnabled() bool })
	return ok && told.ExporterHelperBatchingEnabled()
}
