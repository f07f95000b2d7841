package contextledgerprocessor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerprocessor/internal/metadata"
)

// What mdatagen would test of every processor: its type, its configuration's shape, that it can be shut down without a
// start, started, given data, and made again; in both modes.
func TestLifecycle(t *testing.T) {
	factory := NewFactory()
	assert.Equal(t, metadata.Type, factory.Type())
	require.NoError(t, componenttest.CheckConfigStruct(factory.CreateDefaultConfig()))
	for _, mode := range []string{annotate, partition} {
		for name, create := range sides(factory) {
			t.Run(mode+" "+name, func(t *testing.T) {
				config := metadataConfig(t, factory)
				config.Mode = mode
				unstarted, err := create(config)
				require.NoError(t, err)
				require.NoError(t, unstarted.Shutdown(context.Background()))
				for range 2 {
					made, err := create(config)
					require.NoError(t, err)
					require.NoError(t, made.Start(context.Background(), componenttest.NewNopHost()))
					consume(t, made)
					require.NoError(t, made.Shutdown(context.Background()))
					require.NoError(t, made.Shutdown(context.Background()), "a second shutdown does nothing")
				}
			})
		}
	}
}

func sides(factory processor.Factory) map[string]func(component.Config) (component.Component, error) {
	set := processortest.NewNopSettings(metadata.Type)
	return map[string]func(component.Config) (component.Component, error){
		"traces": func(config component.Config) (component.Component, error) {
			return factory.CreateTraces(context.Background(), set, config, consumertest.NewNop())
		},
		"logs": func(config component.Config) (component.Component, error) {
			return factory.CreateLogs(context.Background(), set, config, consumertest.NewNop())
		},
	}
}

func consume(t *testing.T, made component.Component) {
	t.Helper()
	switch made := made.(type) {
	case processor.Traces:
		assert.True(t, made.Capabilities().MutatesData)
		require.NoError(t, made.ConsumeTraces(context.Background(), spans(map[string]any{"a": "b"})))
	case processor.Logs:
		assert.True(t, made.Capabilities().MutatesData)
		require.NoError(t, made.ConsumeLogs(context.Background(), logs("event", map[string]any{"a": "b"})))
	}
}

func metadataConfig(t *testing.T, factory processor.Factory) *Config {
	t.Helper()
	described, err := confmaptest.LoadConf("metadata.yaml")
	require.NoError(t, err)
	config := factory.CreateDefaultConfig()
	part, err := described.Sub("tests::config")
	require.NoError(t, err)
	require.NoError(t, part.Unmarshal(&config))
	return config.(*Config)
}
