package contextledgerprocessor

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerprocessor/internal/metadata"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/guard"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/ledger"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/normalise"
)

// expiryInterval is how often sessions are looked through for idle ones, at most.
const expiryInterval = time.Minute

// desk is what the pipelines of one processor in a configuration have together.
type desk struct {
	config      *Config
	id          component.ID
	logger      *zap.Logger
	telemetry   *metadata.TelemetryBuilder
	reader      *normalise.Normaliser
	remover     *remover
	words       words
	metadataKey string
	state       *ledger.State

	steps   *guard.Guard
	once    sync.Once
	opened  error
	keeper  *keeper
	cancel  context.CancelFunc
	stopped chan struct{}
}

func newDesk(settings processor.Settings, config *Config) (*desk, error) {
	telemetry, err := metadata.NewTelemetryBuilder(settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	zeros(telemetry)
	made := &desk{
		config: config, id: settings.ID, logger: settings.Logger, telemetry: telemetry,
		metadataKey: config.Partition.MetadataKey,
		steps: guard.New(telemetry.ProcessorContextLedgerErrors, settings.Logger,
			"a step of the ledger broke; what it was about goes on as it is. Further ones are only counted"),
	}
	known, err := config.lore()
	if err != nil {
		return nil, err
	}
	if made.reader, err = config.reader(known); err != nil {
		return nil, err
	}
	made.words = newWords(made.reader)
	if made.remover, err = newRemover(config.Content.Attributes, made.reader); err != nil {
		return nil, err
	}
	if config.Mode == partition {
		return made, nil
	}
	if made.state, err = config.sessions(known, time.Now()); err != nil {
		return nil, err
	}
	return made, telemetry.RegisterStateCallback(made.observe)
}

// guard takes a step that may break; what it was about goes on as it is.
func (d *desk) guard(ctx context.Context, stage string, step func()) { d.steps.Take(ctx, stage, step) }

// observe tells how the state fares.
func (d *desk) observe(o metric.Observer) {
	found := d.state.Stats()
	o.ObserveInt64(d.telemetry.ProcessorContextLedgerSessions, found.Sessions)
	o.ObserveInt64(d.telemetry.ProcessorContextLedgerStateSize, found.Bytes, guard.By("of", "calls"))
	o.ObserveInt64(d.telemetry.ProcessorContextLedgerStateSize, found.CapturedBytes, guard.By("of", "captured"))
	o.ObserveInt64(d.telemetry.ProcessorContextLedgerEvictions, found.Evicted, guard.By("reason", "room"))
	o.ObserveInt64(d.telemetry.ProcessorContextLedgerEvictions, found.Expired, guard.By("reason", "idle"))
}

// open loads what was kept and starts to keep it, once for all pipelines.
func (d *desk) open(ctx context.Context, host component.Host) error {
	d.once.Do(func() { d.opened = d.start(ctx, host) })
	return d.opened
}

func (d *desk) start(ctx context.Context, host component.Host) error {
	if d.state == nil {
		return nil
	}
	var err error
	if d.keeper, err = d.newKeeper(ctx, host); err != nil {
		return err
	}
	d.keeper.load(ctx)
	running, cancel := context.WithCancel(context.Background())
	d.cancel, d.stopped = cancel, make(chan struct{})
	go d.run(running)
	return nil
}

// run forgets idle sessions and keeps the others, each at its interval.
func (d *desk) run(ctx context.Context) {
	defer close(d.stopped)
	expiry := time.NewTicker(min(expiryInterval, d.config.State.Idle))
	defer expiry.Stop()
	saving := time.NewTicker(d.config.SaveInterval)
	defer saving.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-expiry.C:
			d.guard(ctx, "sweep", func() { d.state.Sweep(now) })
		case <-saving.C:
			d.guard(ctx, "save", func() { d.keeper.save(ctx) })
		}
	}
}

// close keeps the state a last time. A desk that was never opened has nothing to keep.
func (d *desk) close(ctx context.Context) error {
	defer d.telemetry.Shutdown()
	d.once.Do(func() {})
	if d.cancel == nil {
		return nil
	}
	d.cancel()
	<-d.stopped
	return d.keeper.close(ctx)
}
