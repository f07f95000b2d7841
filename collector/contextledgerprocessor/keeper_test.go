package contextledgerprocessor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerprocessor/internal/metadata"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/ledger"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

var storageID = component.MustNewID("file_storage")

// A session goes on over a restart: the collector that comes after knows what it was told before.
func TestStateOutlivesARestart(t *testing.T) {
	kept, set := openStorage(t, t.TempDir()), processortest.NewNopSettings(metadata.Type)
	assert.Equal(t, "cold previous_unknown", found(run(t, set, kept, turn(1))))
	assert.Equal(t, "hit <nil>", found(run(t, set, kept, turn(2))))
	assert.Equal(t, "cold previous_unknown", found(run(t, set, openStorage(t, t.TempDir()), turn(2))))
}

// What was kept and is broken is as if it had not been kept, and is counted; the next one is whole again.
func TestBrokenStateIsUnknown(t *testing.T) {
	heard := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, heard.Shutdown(context.Background())) })
	kept, set := openStorage(t, t.TempDir()), processortest.NewNopSettings(metadata.Type)
	run(t, set, kept, turn(1))
	spoil(t, kept, set.ID)
	listening := set
	listening.TelemetrySettings = heard.NewTelemetrySettings()
	assert.Equal(t, "cold previous_unknown", found(run(t, listening, kept, turn(2))))
	assert.Equal(t, map[string]int64{"load": 1, "save": 0}, sums(t, heard, "otelcol_processor_context_ledger_snapshot_failures"))
	assert.Equal(t, "hit <nil>", found(run(t, set, kept, turn(3))))
}

// A storage that cannot be had is a mistake in the configuration, and is said at the start.
func TestStorageThatIsNone(t *testing.T) {
	cases := map[string]struct {
		host  component.Host
		error string
	}{
		"missing": {componenttest.NewNopHost(), `storage: there is no extension "file_storage"`},
		"another": {host{storageID: plain{}}, `storage: the extension "file_storage" keeps nothing`},
		"refuses": {host{storageID: refusing{}}, "storage: no room"},
	}
	for name, c := range cases {
		set := processortest.NewNopSettings(metadata.Type)
		made, err := NewFactory().CreateTraces(context.Background(), set, keeping(), consumertest.NewNop())
		require.NoError(t, err)
		require.EqualError(t, made.Start(context.Background(), c.host), c.error, name)
		require.NoError(t, made.Shutdown(context.Background()))
	}
}

// The state is kept at its interval too, so that a collector that is killed has lost no more than that.
func TestStateIsKeptAtAnInterval(t *testing.T) {
	heard := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, heard.Shutdown(context.Background())) })
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = heard.NewTelemetrySettings()
	config := keeping()
	config.SaveInterval = 10 * time.Millisecond
	made, err := NewFactory().CreateTraces(context.Background(), set, config, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, made.Start(context.Background(), openStorage(t, t.TempDir())))
	require.NoError(t, made.ConsumeTraces(context.Background(), turn(1)))
	require.Eventually(t, func() bool {
		_, err := heard.GetMetric("otelcol_processor_context_ledger_snapshot_saves")
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, made.Shutdown(context.Background()))
	assert.Equal(t, map[string]int64{"": 1}, sums(t, heard, "otelcol_processor_context_ledger_snapshot_saves"),
		"nothing changed since")
}

// host has extensions and nothing else.
type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// plain is an extension that is no storage.
type plain struct {
	component.StartFunc
	component.ShutdownFunc
}

// refusing is a storage that gives nobody a client.
type refusing struct{ plain }

func (refusing) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return nil, errors.New("no room")
}

// openStorage starts a file storage in a folder; it is stopped at the end of the test.
func openStorage(t *testing.T, folder string) host {
	t.Helper()
	factory := filestorage.NewFactory()
	config := factory.CreateDefaultConfig().(*filestorage.Config)
	config.Directory = folder
	made, err := factory.Create(context.Background(), extensiontest.NewNopSettings(factory.Type()), config)
	require.NoError(t, err)
	require.NoError(t, made.Start(context.Background(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, made.Shutdown(context.Background())) })
	return host{storageID: made}
}

// spoil overwrites all that was kept.
func spoil(t *testing.T, kept host, id component.ID) {
	t.Helper()
	client, err := kept[storageID].(storage.Extension).GetClient(context.Background(), component.KindProcessor, id, "")
	require.NoError(t, err)
	for shard := range ledger.Shards {
		found, err := client.Get(context.Background(), ledger.Key(shard))
		require.NoError(t, err)
		if found != nil {
			require.NoError(t, client.Set(context.Background(), ledger.Key(shard), found[:len(found)-1]))
		}
	}
	require.NoError(t, client.Close(context.Background()))
}

func keeping() *Config {
	config := createDefaultConfig().(*Config)
	config.Storage = &storageID
	return config
}

// run gives the attributes of the one span of some traces after a processor of its own.
func run(t *testing.T, set processor.Settings, kept host, traces ptrace.Traces) map[string]any {
	t.Helper()
	var sink consumertest.TracesSink
	made, err := NewFactory().CreateTraces(context.Background(), set, keeping(), &sink)
	require.NoError(t, err)
	require.NoError(t, made.Start(context.Background(), kept))
	require.NoError(t, made.ConsumeTraces(context.Background(), traces))
	require.NoError(t, made.Shutdown(context.Background()))
	return sink.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().AsRaw()
}

// found gives the outcome and cause that stand on a span.
func found(attributes map[string]any) string {
	return fmt.Sprint(attributes[semconv.ContextLedgerCacheOutcome], " ", attributes[semconv.ContextLedgerMissCause])
}

// turn is a call of one session in another instrumentation's words, each turn with more to send and all of the earlier
// one read from the cache.
func turn(number int) ptrace.Traces {
	made := spans(map[string]any{
		"gen_ai.operation.name":                "chat",
		"gen_ai.provider.name":                 "openai",
		"gen_ai.request.model":                 "gpt-5",
		"gen_ai.conversation.id":               "s1",
		"gen_ai.response.id":                   fmt.Sprint("r", number),
		"gen_ai.usage.input_tokens":            10_240 * number,
		"gen_ai.usage.cache_read.input_tokens": 10_240 * (number - 1),
		"gen_ai.usage.output_tokens":           100,
	})
	span := made.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	span.SetTraceID(pcommon.TraceID{byte(number)})
	began := time.Now().Add(time.Duration(number) * time.Second)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(began))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(began.Add(time.Second / 2)))
	return made
}
