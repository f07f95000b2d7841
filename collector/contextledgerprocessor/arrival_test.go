package contextledgerprocessor

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerprocessor/internal/metadata"
)

// What was left out of a partition may have been a call of any of its sessions. A record that tells of no call leaves nothing
// out, and neither does one of another partition.
func TestWhatIsLeftOutOfAPartition(t *testing.T) {
	hit, unknown := "hit <nil>", "cold previous_unknown"
	for _, c := range []struct {
		why               string
		partition, offset int64
		want              string
	}{
		{"a record without a call stood between", 3, 1, hit},
		{"nobody says what stood between", 4, 9, unknown},
	} {
		config := createDefaultConfig().(*Config)
		config.State.Replicas = divideSessions
		var sink consumertest.TracesSink
		made, err := NewFactory().CreateTraces(context.Background(), processortest.NewNopSettings(metadata.Type), config, &sink)
		require.NoError(t, err)
		require.NoError(t, made.Start(context.Background(), componenttest.NewNopHost()))
		require.NoError(t, made.ConsumeTraces(read(3, 0), turn(1)))
		require.NoError(t, made.ConsumeTraces(read(c.partition, c.offset), spans(map[string]any{"http.method": "GET"})))
		require.NoError(t, made.ConsumeTraces(read(3, 2), turn(2)))
		require.NoError(t, made.Shutdown(context.Background()))
		last := sink.AllTraces()[2].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		assert.Equal(t, c.want, found(last.Attributes().AsRaw()), c.why)
	}
}

// read is how the Kafka receiver tells where a record stood.
func read(partition, offset int64) context.Context {
	return client.NewContext(context.Background(), client.Info{Metadata: client.NewMetadata(map[string][]string{
		"kafka.topic": {"spans"}, "kafka.partition": {strconv.FormatInt(partition, 10)},
		"kafka.offset": {strconv.FormatInt(offset, 10)},
	})})
}
