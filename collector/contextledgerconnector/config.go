package contextledgerconnector

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
)

// Values of Config.AggregationTemporality.
const (
	cumulative = "cumulative"
	delta      = "delta"
)

// Config is what an operator can say of the connector.
type Config struct {
	// FlushInterval is how often the metrics are sent on; what was counted since the last flush is lost when the
	// process is killed.
	FlushInterval time.Duration `mapstructure:"metrics_flush_interval"`
	// AggregationTemporality is cumulative or delta.
	AggregationTemporality string `mapstructure:"aggregation_temporality"`
	// ZeroFirst is for how long a new series of a cumulative metric is told as 0 before it has its value: Prometheus
	// takes the first value that it sees for where a series begins. 0 is never.
	ZeroFirst time.Duration `mapstructure:"zero_first"`
	// Dedup bounds how long an entry that comes again is known.
	Dedup DedupConfig `mapstructure:"dedup"`
	// Limits bound the metrics.
	Limits LimitsConfig `mapstructure:"limits"`
	// ResourceAttributes are taken over from the resource of an entry to that of its metrics.
	ResourceAttributes []string `mapstructure:"resource_attributes"`
	// Exemplars says whether points lead to the trace of one of their calls.
	Exemplars bool `mapstructure:"exemplars"`

	_ struct{}
}

// DedupConfig bounds the memory of entries that were seen.
type DedupConfig struct {
	// Window is how long an entry is known for certain, unless MaxEntries others came meanwhile.
	Window time.Duration `mapstructure:"window"`
	// MaxEntries is how many entries are known for certain; up to twice as many are held, of some 130 bytes each.
	MaxEntries int `mapstructure:"max_entries"`

	_ struct{}
}

// LimitsConfig bounds what can be told apart in the metrics.
type LimitsConfig struct {
	// Values is how many values an attribute that is free text (model, agent) can have; the others are `_OTHER`.
	Values int `mapstructure:"values"`
	// Series is how many series a metric can have; the rest is one series with otel.metric.overflow a resource.
	Series int `mapstructure:"series"`
	// Resources is how many resources are told apart; the rest is one without attributes.
	Resources int `mapstructure:"resources"`
	// Idle is after how long without a call a series is forgotten; 0 is never.
	Idle time.Duration `mapstructure:"idle"`

	_ struct{}
}

// zeroFirst is longer than Prometheus takes from one scrape to the next unless it is told otherwise, a minute.
const zeroFirst = 70 * time.Second

func createDefaultConfig() component.Config {
	return &Config{
		FlushInterval:          15 * time.Second,
		AggregationTemporality: cumulative,
		ZeroFirst:              zeroFirst,
		Dedup:                  DedupConfig{Window: 10 * time.Minute, MaxEntries: 100_000},
		Limits:                 LimitsConfig{Values: 200, Series: 10_000, Resources: 500, Idle: 24 * time.Hour},
		ResourceAttributes:     []string{"service.name", "service.namespace", "deployment.environment.name"},
		Exemplars:              true,
	}
}

// Validate names every field that cannot be meant, with its value.
func (c *Config) Validate() error {
	var errs []error
	if c.AggregationTemporality != cumulative && c.AggregationTemporality != delta {
		errs = append(errs, fmt.Errorf("aggregation_temporality: %q is neither cumulative nor delta",
			c.AggregationTemporality))
	}
	for _, name := range c.ResourceAttributes {
		if name == "" || name == instanceID {
			errs = append(errs, fmt.Errorf("resource_attributes: %q cannot be taken over", name))
		}
	}
	return errors.Join(append(errs, c.positive()...)...)
}

func (c *Config) positive() []error {
	fields := []struct {
		name  string
		value int64
		least int64
		shown any
	}{
		{"metrics_flush_interval", int64(c.FlushInterval), 1, c.FlushInterval},
		{"zero_first", int64(c.ZeroFirst), 0, c.ZeroFirst},
		{"dedup::window", int64(c.Dedup.Window), 1, c.Dedup.Window},
		{"dedup::max_entries", int64(c.Dedup.MaxEntries), 1, c.Dedup.MaxEntries},
		{"limits::values", int64(c.Limits.Values), 1, c.Limits.Values},
		{"limits::series", int64(c.Limits.Series), 1, c.Limits.Series},
		{"limits::resources", int64(c.Limits.Resources), 1, c.Limits.Resources},
		{"limits::idle", int64(c.Limits.Idle), 0, c.Limits.Idle},
	}
	var errs []error
	for _, field := range fields {
		if field.value < field.least {
			errs = append(errs, fmt.Errorf("%s: %v is too small", field.name, field.shown))
		}
	}
	return errs
}
