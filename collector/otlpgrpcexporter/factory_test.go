package otlpgrpcexporter_test

import (
	"context"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	consumers "go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"

	"github.com/otel-context-ledger/otel-context-ledger/collector/otlpgrpcexporter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var storageID = component.MustNewID("file_storage")

// It wants no copy of what goes into a storage, and one of what it makes batches of in memory, as the collector's does.
func TestWhoWantsACopy(t *testing.T) {
	batch := map[string]any{"min_size": 10}
	cases := []struct {
		name    string
		queue   map[string]any
		changes bool
		batches bool
	}{
		{"batches of what is stored", map[string]any{"storage": "file_storage", "batch": batch}, false, true},
		{"batches of what is in memory", map[string]any{"batch": batch}, true, true},
		{"no batches", map[string]any{"storage": "file_storage"}, false, false},
		{"no queue", map[string]any{"enabled": false, "storage": "file_storage"}, false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			all := exporters(t, map[string]any{"sending_queue": c.queue})
			for _, one := range all.all() {
				assert.Equal(t, c.changes, one.(consumer).Capabilities().MutatesData)
				assert.Equal(t, c.batches, one.(batching).ExporterHelperBatchingEnabled())
				require.NoError(t, one.Shutdown(context.Background()))
			}
		})
	}
}

// The gateway's pipelines are read by a connector and the exporter side by side, and copied for none of them.
func TestTheGatewayCopiesNothing(t *testing.T) {
	written, err := os.ReadFile("../configs/gateway.yaml")
	require.NoError(t, err)
	var gateway struct {
		Exporters struct {
			OTLP map[string]any `yaml:"otlp_grpc"`
		}
	}
	require.NoError(t, yaml.Unmarshal(written, &gateway))
	queue := gateway.Exporters.OTLP["sending_queue"]
	require.NotNil(t, queue.(map[string]any)["batch"])
	for _, one := range exporters(t, map[string]any{"sending_queue": queue}).all() {
		assert.False(t, one.(consumer).Capabilities().MutatesData)
		require.NoError(t, one.Shutdown(context.Background()))
	}
}

// It keeps its older name, its default configuration, and what it makes besides.
func TestItIsTheExporterOfTheCollector(t *testing.T) {
	made, original := otlpgrpcexporter.NewFactory(), otlpexporter.NewFactory()
	type named interface{ DeprecatedAlias() component.Type }
	assert.Equal(t, original.Type(), made.Type())
	assert.Equal(t, original.(named).DeprecatedAlias(), made.(named).DeprecatedAlias())
	assert.Equal(t, original.CreateDefaultConfig(), made.CreateDefaultConfig())
	assert.Equal(t, original.TracesStability(), made.TracesStability())
}

// What it is given comes out whole in batches, some joined and some split, and is not touched: data that may only be read
// would panic.
func TestWhatIsStoredIsOnlyRead(t *testing.T) {
	heard := &backend{}
	all := exporters(t, map[string]any{
		"endpoint": heard.serve(t), "compression": "none", "tls": map[string]any{"insecure": true},
		"sending_queue": map[string]any{
			"storage": "file_storage", "batch": map[string]any{"flush_timeout": "50ms", "min_size": 4, "max_size": 5},
		},
	})
	kept := open(t)
	for _, one := range all.all() {
		require.NoError(t, one.Start(context.Background(), kept))
	}
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	traces, metrics, logs := ptrace.NewTraces(), pmetric.NewMetrics(), plog.NewLogs()
	for _, name := range names {
		traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName(name)
		of := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		of.SetName(name)
		of.SetEmptyGauge().DataPoints().AppendEmpty()
		logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetEventName(name)
	}
	traces.MarkReadOnly()
	metrics.MarkReadOnly()
	logs.MarkReadOnly()
	for range 2 {
		require.NoError(t, all.traces.ConsumeTraces(context.Background(), traces))
		require.NoError(t, all.metrics.ConsumeMetrics(context.Background(), metrics))
		require.NoError(t, all.logs.ConsumeLogs(context.Background(), logs))
	}
	twice := slices.Sorted(slices.Values(slices.Concat(names, names)))
	assert.Eventually(t, func() bool { return heard.has(twice) }, time.Minute, 10*time.Millisecond)
	for _, one := range all.all() {
		require.NoError(t, one.Shutdown(context.Background()))
	}
}

// made has an exporter of each signal.
type made struct {
	traces  exporter.Traces
	metrics exporter.Metrics
	logs    exporter.Logs
}

func (m made) all() []component.Component { return []component.Component{m.traces, m.metrics, m.logs} }

// consumer is what a pipeline asks of an exporter, batching what the service asks besides.
type (
	consumer interface{ Capabilities() consumers.Capabilities }
	batching interface{ ExporterHelperBatchingEnabled() bool }
)

func exporters(t *testing.T, settings map[string]any) made {
	t.Helper()
	factory := otlpgrpcexporter.NewFactory()
	config := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(settings).Unmarshal(config))
	set := exportertest.NewNopSettings(factory.Type())
	var all made
	var err error
	all.traces, err = factory.CreateTraces(context.Background(), set, config)
	require.NoError(t, err)
	all.metrics, err = factory.CreateMetrics(context.Background(), set, config)
	require.NoError(t, err)
	all.logs, err = factory.CreateLogs(context.Background(), set, config)
	require.NoError(t, err)
	return all
}

// host is a collector with extensions.
type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// open starts a file storage, which is stopped at the end of the test.
func open(t *testing.T) host {
	t.Helper()
	factory := filestorage.NewFactory()
	config := factory.CreateDefaultConfig().(*filestorage.Config)
	config.Directory = t.TempDir()
	made, err := factory.Create(context.Background(), extensiontest.NewNopSettings(factory.Type()), config)
	require.NoError(t, err)
	require.NoError(t, made.Start(context.Background(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, made.Shutdown(context.Background())) })
	return host{storageID: made}
}

// backend keeps the names of what it is sent.
type backend struct {
	ptraceotlp.UnimplementedGRPCServer
	mu                    sync.Mutex
	spans, points, events []string
}

func (b *backend) serve(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(server, b)
	pmetricotlp.RegisterGRPCServer(server, &ofMetrics{of: b})
	plogotlp.RegisterGRPCServer(server, &ofLogs{of: b})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
	})
	return listener.Addr().String()
}

// has says whether these are the names that came, of each signal.
func (b *backend) has(names []string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, came := range [][]string{b.spans, b.points, b.events} {
		if !slices.Equal(names, slices.Sorted(slices.Values(came))) {
			return false
		}
	}
	return true
}

func (b *backend) Export(_ context.Context, sent ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, from := range sent.Traces().ResourceSpans().All() {
		b.spans = append(b.spans, from.ScopeSpans().At(0).Spans().At(0).Name())
	}
	return ptraceotlp.NewExportResponse(), nil
}

type ofMetrics struct {
	pmetricotlp.UnimplementedGRPCServer
	of *backend
}

func (m *ofMetrics) Export(_ context.Context, sent pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	for _, from := range sent.Metrics().ResourceMetrics().All() {
		m.of.points = append(m.of.points, from.ScopeMetrics().At(0).Metrics().At(0).Name())
	}
	return pmetricotlp.NewExportResponse(), nil
}

type ofLogs struct {
	plogotlp.UnimplementedGRPCServer
	of *backend
}

func (l *ofLogs) Export(_ context.Context, sent plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	for _, from := range sent.Logs().ResourceLogs().All() {
		l.of.events = append(l.of.events, from.ScopeLogs().At(0).LogRecords().At(0).EventName())
	}
	return plogotlp.NewExportResponse(), nil
}
