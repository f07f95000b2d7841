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
	meter                                     metric.Meter
	mu                                        sync.Mutex
	registrations                             []metric.Registration
	ProcessorContextLedgerAmbiguous           metric.Int64Counter
	ProcessorContextLedgerCalls               metric.Int64Counter
	ProcessorContextLedgerErrors              metric.Int64Counter
	ProcessorContextLedgerEvictions           metric.Int64ObservableCounter
	ProcessorContextLedgerInvariantViolations metric.Int64Counter
	ProcessorContextLedgerSessions            metric.Int64ObservableUpDownCounter
	ProcessorContextLedgerSnapshotDuration    metric.Float64Histogram
	ProcessorContextLedgerSnapshotFailures    metric.Int64Counter
	ProcessorContextLedgerSnapshotSaves       metric.Int64Counter
	ProcessorContextLedgerSnapshotWritten     metric.Int64Counter
	ProcessorContextLedgerStateSize           metric.Int64ObservableUpDownCounter
	ProcessorContextLedgerVerdicts            metric.Int64Counter
}

// NewTelemetryBuilder makes the instruments on the meter provider of `settings`.
func NewTelemetryBuilder(settings component.TelemetrySettings) (*TelemetryBuilder, error) {
	b := &TelemetryBuilder{meter: settings.MeterProvider.Meter(ScopeName)}
	return b, errors.Join(b.makeCounters(), b.makeObserved(), b.makeSnapshot())
}

func (b *TelemetryBuilder) makeCounters() error {
	counters := []struct {
		into                    *metric.Int64Counter
		name, description, unit string
	}{
		{&b.ProcessorContextLedgerAmbiguous, "ambiguous",
			"Calls whose token counts could not be read for certain, by the dialect they were told in", "{call}"},
		{&b.ProcessorContextLedgerCalls, "calls", "Calls that were found, by the dialect they were told in", "{call}"},
		{&b.ProcessorContextLedgerErrors, "errors",
			"Steps that broke, by the stage; what they were about went on as it was", "{error}"},
		{&b.ProcessorContextLedgerInvariantViolations, "invariant_violations",
			"Calls that say that more was cached than sent", "{call}"},
		{&b.ProcessorContextLedgerSnapshotFailures, "snapshot_failures",
			"Times that the state could not be loaded or saved, by the step", "{snapshot}"},
		{&b.ProcessorContextLedgerSnapshotSaves, "snapshot_saves", "Times that the state was saved", "{snapshot}"},
		{&b.ProcessorContextLedgerSnapshotWritten, "snapshot_written", "Bytes of the state that were saved", "By"},
		{&b.ProcessorContextLedgerVerdicts, "verdicts", "Calls that were judged, by the cause and by who found it", "{call}"},
	}
	var errs []error
	for _, about := range counters {
		made, err := b.meter.Int64Counter(prefix+about.name, described(about.description), metric.WithUnit(about.unit))
		*about.into = made
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (b *TelemetryBuilder) makeObserved() error {
	var errs [3]error
	b.ProcessorContextLedgerEvictions, errs[0] = b.meter.Int64ObservableCounter(prefix+"evictions",
		described("Sessions that were forgotten, by the reason"), metric.WithUnit("{session}"))
	b.ProcessorContextLedgerSessions, errs[1] = b.meter.Int64ObservableUpDownCounter(prefix+"sessions",
		described("Sessions that are known"), metric.WithUnit("{session}"))
	b.ProcessorContextLedgerStateSize, errs[2] = b.meter.Int64ObservableUpDownCounter(prefix+"state_size",
		described("Size of what is known of sessions, in calls and in captured requests"), metric.WithUnit("By"))
	return errors.Join(errs[:]...)
}

func (b *TelemetryBuilder) makeSnapshot() (err error) {
	b.ProcessorContextLedgerSnapshotDuration, err = b.meter.Float64Histogram(prefix+"snapshot_duration",
		described("Time that it takes to keep the state"), metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(0.01, 0.04, 0.16, 0.64, 2.56, 10.24))
	return err
}

const prefix = "otelcol_processor_context_ledger_"

func described(text string) metric.InstrumentOption {
	return metric.WithDescription(text + " [Development]")
}

// RegisterStateCallback lets `read` observe the instruments of the state at each collection.
func (b *TelemetryBuilder) RegisterStateCallback(read func(metric.Observer)) error {
	registration, err := b.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		read(o)
		return nil
	}, b.ProcessorContextLedgerEvictions, b.ProcessorContextLedgerSessions, b.ProcessorContextLedgerStateSize)
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
