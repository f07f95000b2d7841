package contextledgerprocessor

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerprocessor/internal/metadata"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/guard"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/ledger"
)

// keeper keeps the state in a storage extension. Nil is the keeper where there is none, which does nothing.
type keeper struct {
	client    storage.Client
	state     *ledger.State
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
}

func (d *desk) newKeeper(ctx context.Context, host component.Host) (*keeper, error) {
	if d.config.Storage == nil {
		return nil, nil
	}
	found, ok := host.GetExtensions()[*d.config.Storage]
	if !ok {
		return nil, fmt.Errorf("storage: there is no extension %q", d.config.Storage)
	}
	keeps, ok := found.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("storage: the extension %q keeps nothing", d.config.Storage)
	}
	client, err := keeps.GetClient(ctx, component.KindProcessor, d.id, "")
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	return &keeper{client: client, state: d.state, logger: d.logger, telemetry: d.telemetry}, nil
}

// load brings back what was kept, and notes that calls may come from now on. What cannot be read is as if it had not
// been kept: its sessions are then unknown, and said to be.
func (k *keeper) load(ctx context.Context) {
	if k == nil {
		return
	}
	get := func(key string) ([]byte, error) { return k.client.Get(ctx, key) }
	if err := k.state.Load(get, time.Now()); err != nil {
		k.telemetry.ProcessorContextLedgerSnapshotFailures.Add(ctx, 1, guard.By("step", "load"))
		k.logger.Warn("a part of the state that was kept cannot be read; its sessions are unknown", zap.Error(err))
	}
	k.save(ctx)
}

// save keeps what changed since it was kept last. What cannot be written now is tried again at the next interval.
func (k *keeper) save(ctx context.Context) {
	if k != nil {
		k.keep(ctx, k.state.Save)
	}
}

func (k *keeper) keep(ctx context.Context, save func(put func(string, []byte) error) (int64, error)) {
	began := time.Now()
	put := func(key string, snapshot []byte) error { return k.client.Set(ctx, key, snapshot) }
	written, err := save(put)
	if err != nil {
		k.telemetry.ProcessorContextLedgerSnapshotFailures.Add(ctx, 1, guard.By("step", "save"))
		k.logger.Warn("the state cannot be kept", zap.Error(err))
	}
	if written == 0 {
		return
	}
	k.telemetry.ProcessorContextLedgerSnapshotSaves.Add(ctx, 1)
	k.telemetry.ProcessorContextLedgerSnapshotWritten.Add(ctx, written)
	k.telemetry.ProcessorContextLedgerSnapshotDuration.Record(ctx, time.Since(began).Seconds())
}

// close keeps the state a last time, and notes that no more calls come.
func (k *keeper) close(ctx context.Context) error {
	if k == nil {
		return nil
	}
	k.keep(ctx, k.state.Close)
	return k.client.Close(ctx)
}
