package metadata

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"
)

// TelemetryBuilder holds the component's own instruments.
type TelemetryBuilder struct {
	meter                               metric.Meter
	mu                                  sync.Mutex
	registrations                       []metric.Registration
	ConnectorContextLedgerEntries       metric.Int64Counter
	ConnectorContextLedgerErrors        metric.Int64Counter
	ConnectorContextLedgerFlushFailures metric.Int64Counter
	ConnectorContextLedgerOverflow      metric.Int64Counter
	ConnectorContextLedgerSeries        metric.Int64ObservableUpDownCounter
}

// NewTelemetryBuilder makes the instruments on the meter provider of `settings`.
func NewTelemetryBuilder(settings component.TelemetrySettings) (*TelemetryBuilder, error) {
	b := &TelemetryBuilder{meter: settings.MeterProvider.Meter(ScopeName)}
	var errs [5]error
	b.ConnectorContextLedgerEntries, errs[0] = b.meter.Int64Counter(
		"otelcol_connector_context_ledger_entries",
		metric.WithDescription("Entries that were read, by what became of them [Development]"),
		metric.WithUnit("{entry}"),
	)
	b.ConnectorContextLedgerFlushFailures, errs[1] = b.meter.Int64Counter(
		"otelcol_connector_context_ledger_flush_failures",
		metric.WithDescription("Flushes that the next component refused [Development]"),
		metric.WithUnit("{flush}"),
	)
	b.ConnectorContextLedgerOverflow, errs[2] = b.meter.Int64Counter(
		"otelcol_connector_context_ledger_overflow",
		metric.WithDescription("Measurements that a bound gathered under another name, by the bound [Development]"),
		metric.WithUnit("{measurement}"),
	)
	b.ConnectorContextLedgerSeries, errs[3] = b.meter.Int64ObservableUpDownCounter(
		"otelcol_connector_context_ledger_series",
		metric.WithDescription("Series that are held [Development]"),
		metric.WithUnit("{series}"),
	)
	b.ConnectorContextLedgerErrors, errs[4] = b.meter.Int64Counter(
		"otelcol_connector_context_ledger_errors",
		metric.WithDescription("Steps that broke, by the stage [Development]"),
		metric.WithUnit("{error}"),
	)
	return b, errors.Join(errs[:]...)
}

// RegisterConnectorContextLedgerSeriesCallback asks `read` for the value at each collection.
func (b *TelemetryBuilder) RegisterConnectorContextLedgerSeriesCallback(read func() int64) error {
	registration, err := b.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(b.ConnectorContextLedgerSeries, read())
		return nil
	}, b.ConnectorContextLedgerSeries)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.registrations = append(b.registrations, registration)
	return nil
}

// Shutdown takes the callbacks off.
func (b *TelemetryBuilder) Shutdown() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, registration := range b.registrations {
		_ = registration.Unregister()
	}
	b.registrations = nil
}
