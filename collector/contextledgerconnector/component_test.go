package contextledgerconnector

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerconnector/internal/metadata"
)

// What mdatagen would test of every connector: its type, its configuration's shape, that it can be shut down without a
// start, started, and made again.
func TestLifecycle(t *testing.T) {
	factory := NewFactory()
	assert.Equal(t, metadata.Type, factory.Type())
	require.NoError(t, componenttest.CheckConfigStruct(factory.CreateDefaultConfig()))
	router := connector.NewMetricsRouter(map[pipeline.ID]consumer.Metrics{
		pipeline.NewID(pipeline.SignalMetrics): consumertest.NewNop(),
	})
	set := connectortest.NewNopSettings(metadata.Type)
	sides := map[string]func(component.Config) (component.Component, error){
		"traces_to_metrics": func(config component.Config) (component.Component, error) {
			return factory.CreateTracesToMetrics(context.Background(), set, config, router)
		},
		"logs_to_metrics": func(config component.Config) (component.Component, error) {
			return factory.CreateLogsToMetrics(context.Background(), set, config, router)
		},
	}
	for name, create := range sides {
		t.Run(name, func(t *testing.T) {
			config := metadataConfig(t, factory)
			unstarted, err := create(config)
			require.NoError(t, err)
			require.NoError(t, unstarted.Shutdown(context.Background()))
			for range 2 {
				made, err := create(config)
				require.NoError(t, err)
				require.NoError(t, made.Start(context.Background(), componenttest.NewNopHost()))
				require.NoError(t, made.Shutdown(context.Background()))
				require.NoError(t, made.Shutdown(context.Background()), "a second shutdown does nothing")
			}
		})
	}
}

func metadataConfig(t *testing.T, factory connector.Factory) component.Config {
	t.Helper()
	described, err := confmaptest.LoadConf("metadata.yaml")
	require.NoError(t, err)
	config := factory.CreateDefaultConfig()
	part, err := described.Sub("tests::config")
	require.NoError(t, err)
	require.NoError(t, part.Unmarshal(&config))
	return config
}
