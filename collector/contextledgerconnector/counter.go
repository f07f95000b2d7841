package contextledgerconnector

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerconnector/internal/metadata"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/guard"
)

// maxUnsent is how many refused flushes of deltas are kept to be sent again.
const maxUnsent = 8

// result is what became of an entry.
type result int

const (
	wasCounted result = iota
	wasDuplicate
	wasElsewhere
	wasAggregate
)

// results has their words in the connector's own telemetry.
var results = [...]metric.MeasurementOption{
	wasCounted: guard.By("result", "counted"), wasDuplicate: guard.By("result", "duplicate"),
	wasElsewhere: guard.By("result", "counted_elsewhere"),
	wasAggregate: guard.By("result", "aggregate"),
}

// beyond has the words of what a bound gathered.
var beyond = map[string]metric.MeasurementOption{
	boundValues: guard.By("bound", boundValues), boundSeries: guard.By("bound", boundSeries),
	boundResources: guard.By("bound", boundResources),
}

// counter counts entries and sends the sums on at an interval.
type counter struct {
	config    *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	writer    writer

	mu     sync.Mutex
	tally  *tally
	window *window

	sending sync.Mutex
	unsent  []pmetric.Metrics

	steps   *guard.Guard
	once    sync.Once
	next    consumer.Metrics
	cancel  context.CancelFunc
	stopped chan struct{}
}

func newCounter(settings connector.Settings, config *Config) (*counter, error) {
	telemetry, err := metadata.NewTelemetryBuilder(settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	zeros(telemetry)
	made := &counter{
		config:    config,
		logger:    settings.Logger,
		telemetry: telemetry,
		writer:    newWriter(config, settings.TelemetrySettings, settings.BuildInfo.Version),
		window:    newWindow(config.Dedup, now),
		steps: guard.New(telemetry.ConnectorContextLedgerErrors, settings.Logger,
			"a step of the ledger broke. Further ones are only counted"),
	}
	made.tally = newTally(config, now, made.exceeded)
	return made, telemetry.RegisterConnectorContextLedgerSeriesCallback(made.series)
}

// guard takes a step that may break.
func (c *counter) guard(ctx context.Context, stage string, step func()) {
	c.steps.Take(ctx, stage, step)
}

func newWriter(config *Config, settings component.TelemetrySettings, version string) writer {
	made := writer{
		temporality: pmetric.AggregationTemporalityCumulative, version: version, zeroFirst: config.ZeroFirst,
	}
	if config.AggregationTemporality == delta {
		made.temporality, made.zeroFirst = pmetric.AggregationTemporalityDelta, 0
	}
	if id, ok := settings.Resource.Attributes().Get(instanceID); ok {
		made.instance = id.AsString()
	}
	return made
}

func (c *counter) exceeded(bound string) {
	c.telemetry.ConnectorContextLedgerOverflow.Add(context.Background(), 1, beyond[bound])
}

func (c *counter) series() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tally.size()
}

// count counts the entries of a batch that nobody counted. Those that somebody else counts are remembered first:
// another record of the same call, which says nothing of that, may stand before them.
func (c *counter) count(ctx context.Context, found *batch) {
	if found.many == 0 {
		return
	}
	became := [len(results)]int64{}
	defer func() { c.tell(ctx, became) }()
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := range found.told {
		if !e.call.Countable() {
			became[c.pass(e, now)]++
		}
	}
	for e := range found.told {
		if e.call.Countable() {
			became[c.take(e, now)]++
		}
	}
}

// tell counts in the connector's own telemetry what became of entries.
func (c *counter) tell(ctx context.Context, became [len(results)]int64) {
	for result, many := range became {
		if many > 0 {
			c.telemetry.ConnectorContextLedgerEntries.Add(ctx, many, results[result])
		}
	}
}

// pass notes an entry that is not counted here. An aggregate says nothing of the calls that it repeats.
func (c *counter) pass(e *entry, now time.Time) result {
	if e.call.Origin.Aggregate {
		return wasAggregate
	}
	c.window.add(e.kept, e.remembered(true), now)
	return wasElsewhere
}

func (c *counter) take(e *entry, now time.Time) result {
	if known := c.window.find(e); known != nil {
		c.pay(known, e, now)
		return wasDuplicate
	}
	c.window.add(e.kept, e.remembered(e.pays()), now)
	c.tally.add(e, now)
	return wasCounted
}

// pay counts the cost of a call that was told without one before, once: an agent may tell it in one of two records alone.
func (c *counter) pay(known *memory, e *entry, now time.Time) {
	if known.paid || !e.pays() {
		return
	}
	itself := e.itself()
	if c.window.has(itself) {
		return
	}
	known.paid = true
	c.window.add([]mark{itself}, e.remembered(true), now)
	e.found = slices.DeleteFunc(e.found, func(m measurement) bool {
		return m.of != measureCost && m.of != measureCostWithoutCache
	})
	c.tally.add(e, now)
}

// start sends on through `next` from now on; who comes later is heard through the same.
func (c *counter) start(next consumer.Metrics) error {
	c.once.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		c.next, c.cancel, c.stopped = next, cancel, make(chan struct{})
		go c.run(ctx)
	})
	return nil
}

func (c *counter) run(ctx context.Context) {
	defer close(c.stopped)
	ticker := time.NewTicker(c.config.FlushInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			// The next component may be slow: what it is told goes by the time at which it is told.
			c.guard(ctx, "flush", func() { _ = c.flush(ctx, time.Now()) })
		}
	}
}

// stop sends on what was counted since the last flush, and what was told as 0 with its value. Without a start there is
// nobody to send it to.
func (c *counter) stop(ctx context.Context) error {
	defer c.telemetry.Shutdown()
	started := true
	c.once.Do(func() { started = false })
	if !started {
		return nil
	}
	c.cancel()
	<-c.stopped
	c.writer.zeroFirst = 0
	return c.flush(ctx, time.Now())
}

// flush sends on what there is to tell. A cumulative sum that is refused is told by the next one; refused deltas are
// kept, the latest few of them.
func (c *counter) flush(ctx context.Context, now time.Time) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	made := c.collect(now)
	queue := c.unsent
	if made.ResourceMetrics().Len() > 0 {
		queue = append(queue, made)
	}
	c.unsent = nil
	for i, told := range queue {
		if err := c.send(ctx, told); err != nil {
			c.keep(queue[i:], err)
			return err
		}
	}
	return nil
}

func (c *counter) collect(now time.Time) pmetric.Metrics {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.expire(now)
	made := c.writer.write(c.tally, now)
	c.tally.settle(now, c.anew())
	return made
}

func (c *counter) anew() bool { return c.writer.temporality == pmetric.AggregationTemporalityDelta }

// send hands a copy on where it may have to be sent again, for the next component may change what it is given.
func (c *counter) send(ctx context.Context, told pmetric.Metrics) error {
	if !c.anew() {
		return c.next.ConsumeMetrics(ctx, told)
	}
	copied := pmetric.NewMetrics()
	told.CopyTo(copied)
	return c.next.ConsumeMetrics(ctx, copied)
}

func (c *counter) keep(refused []pmetric.Metrics, err error) {
	c.telemetry.ConnectorContextLedgerFlushFailures.Add(context.Background(), 1)
	c.logger.Warn("metrics were refused", zap.Error(err))
	if !c.anew() {
		return
	}
	if consumererror.IsPermanent(err) {
		refused = refused[1:]
	}
	if more := len(refused) - maxUnsent; more > 0 {
		refused = refused[more:]
	}
	c.unsent = append([]pmetric.Metrics(nil), refused...)
}
