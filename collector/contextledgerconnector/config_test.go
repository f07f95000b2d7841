package contextledgerconnector

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

// Every option is read by its name, and what is not said keeps its default.
func TestConfigIsRead(t *testing.T) {
	assert.Equal(t, createDefaultConfig(), load(t, "context_ledger"))
	assert.Equal(t, &Config{
		FlushInterval:          5 * time.Second,
		AggregationTemporality: "delta",
		ZeroFirst:              time.Minute,
		Dedup:                  DedupConfig{Window: time.Hour, MaxEntries: 1000},
		Limits:                 LimitsConfig{Values: 50, Series: 500, Resources: 10},
		ResourceAttributes:     []string{"service.name"},
	}, load(t, "context_ledger/all"))
}

// A configuration that cannot be meant is refused, by field and value.
func TestConfigIsRefused(t *testing.T) {
	cases := map[string]string{
		"context_ledger/wrong_temporality": `aggregation_temporality: "sometimes" is neither cumulative nor delta`,
		"context_ledger/wrong_numbers": "metrics_flush_interval: 0s is too small\n" +
			"zero_first: -1s is too small\n" +
			"dedup::window: -1s is too small\n" +
			"dedup::max_entries: 0 is too small\n" +
			"limits::values: 0 is too small\n" +
			"limits::series: 0 is too small\n" +
			"limits::resources: -2 is too small\n" +
			"limits::idle: -1h0m0s is too small",
		"context_ledger/wrong_resource": "resource_attributes: \"service.instance.id\" cannot be taken over\n" +
			`resource_attributes: "" cannot be taken over`,
	}
	for name, message := range cases {
		assert.EqualError(t, confmap.Validate(load(t, name)), message, name)
	}
	require.NoError(t, confmap.Validate(createDefaultConfig()))
	require.NoError(t, confmap.Validate(load(t, "context_ledger/all")))
}

// An option that there is not is refused, not overlooked.
func TestUnknownOptionIsRefused(t *testing.T) {
	all, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	part, err := all.Sub("context_ledger/unknown")
	require.NoError(t, err)
	assert.ErrorContains(t, part.Unmarshal(createDefaultConfig()), "has invalid keys: flush")
}

func load(t *testing.T, name string) component.Config {
	t.Helper()
	all, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	part, err := all.Sub(name)
	require.NoError(t, err)
	config := createDefaultConfig()
	require.NoError(t, part.Unmarshal(&config))
	return config
}
