package configs

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	// Exporters compress what they send.
	_ "google.golang.org/grpc/encoding/gzip"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/load"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/port"
)

// Every configuration is one that the binary takes.
func TestEveryConfigurationIsValid(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	require.NoError(t, err)
	assert.Len(t, files, 6)
	for _, file := range files {
		command := exec.Command(binary(t), "validate", "--config", file)
		command.Env = append(os.Environ(), "REPLICA=a", "STATE_DIRECTORY="+t.TempDir())
		said, err := command.CombinedOutput()
		assert.NoError(t, err, "%s: %s", file, said)
	}
}

// Beside an agent: spans of another instrumentation become entries in the file with what the cache did and why, and are
// counted to be scraped; entries that an SDK counted are not.
func TestAgent(t *testing.T) {
	run := start(t, "agent.yaml", t.TempDir())
	for turn := 1; turn <= 3; turn++ {
		run.sendSpans(t, calls("s1", turn, map[string]any{"gen_ai.agent.name": "coder"}))
	}
	run.sendLogs(t, entry(map[string]any{"context_ledger.counted_by": "sdk", "context_ledger.cache_outcome": "hit"}))

	assert.Eventually(t, func() bool {
		return strings.Contains(run.scrape(t), "context_ledger_calls_total")
	}, time.Minute, 100*time.Millisecond)
	scraped := run.scrape(t)
	assert.Equal(t, map[string]string{"cold": "1", "hit": "2"}, series(scraped, "context_ledger_calls_total",
		"context_ledger_cache_outcome"))
	assert.Equal(t, map[string]string{"cache_read": "30720", "uncached": "30720"},
		series(scraped, "context_ledger_input_tokens_total", "context_ledger_token_source"))
	run.stop(t)
	written, err := os.ReadFile(filepath.Join(run.folder, "entries.jsonl"))
	require.NoError(t, err)
	assert.Equal(t, 3, bytes.Count(written, []byte(`"context_ledger.judged_by"`)))
	assert.Equal(t, 1, bytes.Count(written, []byte(`{"stringValue":"previous_unknown"}`)),
		"the session may be older than the collector")
}

// A gateway hands entries on to a backend without the text that was captured, and knows its sessions after a restart.
func TestGateway(t *testing.T) {
	seen := &backend{traces: make(chan ptrace.Traces, 10)}
	address := seen.serve(t)
	folder := t.TempDir()
	cause := func(turn int) string {
		run := start(t, "gateway.yaml", folder, "BACKEND_ENDPOINT="+address, "BACKEND_INSECURE=true")
		run.sendSpans(t, calls("s1", turn, map[string]any{"gen_ai.input.messages": `[{"role":"user","parts":[]}]`}))
		got := seen.next(t)
		run.stop(t)
		attrs := got.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes()
		assert.NotContains(t, attrs.AsRaw(), "gen_ai.input.messages")
		found, _ := attrs.Get("context_ledger.cache_outcome")
		return found.AsString()
	}
	assert.Equal(t, "cold", cause(1))
	assert.Equal(t, "hit", cause(2), "known from before the restart")
}

// Killed in the middle, the binary comes up again with what it kept at its last interval.
func TestKilled(t *testing.T) {
	folder := t.TempDir()
	run := start(t, "agent.yaml", folder, "--set=processors::context_ledger::save_interval=50ms")
	run.sendSpans(t, calls("s1", 1, nil))
	assert.Eventually(t, func() bool {
		return strings.Contains(run.own(t), "otelcol_processor_context_ledger_snapshot_saves")
	}, time.Minute, 50*time.Millisecond)
	run.kill(t)
	run = start(t, "agent.yaml", folder)
	run.sendSpans(t, calls("s1", 2, nil))
	assert.Eventually(t, func() bool {
		return series(run.scrape(t), "context_ledger_calls_total", "context_ledger_cache_outcome")["hit"] == "1"
	}, time.Minute, 100*time.Millisecond)
	run.stop(t)
}

// running is a collector that runs.
type running struct {
	command                     *exec.Cmd
	folder                      string
	otlp, prometheus, telemetry string
	output                      *bytes.Buffer
}

// start runs the binary with a configuration on free ports, its files in a folder, and waits until it serves. Further
// arguments are settings of the environment (NAME=value) or flags.
func start(t testing.TB, file, folder string, more ...string) *running {
	t.Helper()
	health, grpcPort, self := free(t), free(t), free(t)
	run := &running{folder: folder, otlp: free(t), prometheus: free(t), telemetry: self, output: &bytes.Buffer{}}
	flags := []string{"--config", file}
	if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte("\nconnectors:")) {
		flags = append(flags, "--set=connectors::context_ledger::metrics_flush_interval=100ms",
			"--set=connectors::context_ledger::zero_first=0s")
	}
	environment := append(os.Environ(),
		"STATE_DIRECTORY="+folder, "LEDGER_FILE="+filepath.Join(folder, "entries.jsonl"), "HEALTH_ENDPOINT="+health,
		"OTLP_GRPC_ENDPOINT="+grpcPort, "OTLP_HTTP_ENDPOINT="+run.otlp, "PROMETHEUS_ENDPOINT="+run.prometheus,
		"SELF_PORT="+self[strings.LastIndex(self, ":")+1:],
	)
	for _, one := range more {
		if strings.HasPrefix(one, "--") {
			flags = append(flags, one)
		} else {
			environment = append(environment, one)
		}
	}
	run.command = exec.Command(binary(t), flags...)
	run.command.Env, run.command.Stdout, run.command.Stderr = environment, run.output, run.output
	require.NoError(t, run.command.Start())
	t.Cleanup(func() {
		_ = run.command.Process.Kill()
		if t.Failed() {
			t.Log(run.output.String())
		}
	})
	require.Eventually(t, func() bool { return get("http://"+health) != "" }, time.Minute, 50*time.Millisecond,
		"it does not start")
	return run
}

func (r *running) stop(t testing.TB) {
	t.Helper()
	require.NoError(t, r.command.Process.Signal(os.Interrupt))
	require.NoError(t, r.command.Wait(), r.output.String())
}

func (r *running) kill(t testing.TB) {
	t.Helper()
	require.NoError(t, r.command.Process.Kill())
	_ = r.command.Wait()
}

func (r *running) scrape(t *testing.T) string {
	t.Helper()
	return get("http://" + r.prometheus + "/metrics")
}

// own gives the collector's own metrics.
func (r *running) own(t *testing.T) string {
	t.Helper()
	return get("http://" + r.telemetry + "/metrics")
}

func (r *running) sendSpans(t *testing.T, spans ptrace.Traces) {
	t.Helper()
	body, err := ptraceotlp.NewExportRequestFromTraces(spans).MarshalProto()
	require.NoError(t, err)
	post(t, "http://"+r.otlp+"/v1/traces", body)
}

func (r *running) sendLogs(t *testing.T, records plog.Logs) {
	t.Helper()
	body, err := plogotlp.NewExportRequestFromLogs(records).MarshalProto()
	require.NoError(t, err)
	post(t, "http://"+r.otlp+"/v1/logs", body)
}

func post(t testing.TB, url string, body []byte) {
	t.Helper()
	answer, err := http.Post(url, "application/x-protobuf", bytes.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
}

// get gives the body at a URL, empty where nobody answers.
func get(url string) string { return load.Get(http.DefaultClient, url) }

// series gives the values of a scraped metric by one of its labels.
func series(scraped, metric, label string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(scraped) {
		if _, rest, ok := strings.Cut(line, label+`="`); ok && strings.HasPrefix(line, metric+"{") {
			word, rest, _ := strings.Cut(rest, `"`)
			_, value, _ := strings.Cut(rest, "} ")
			found[word] = strings.Fields(value)[0]
		}
	}
	return found
}

// backend is where a gateway sends what it has.
type backend struct {
	ptraceotlp.UnimplementedGRPCServer
	traces chan ptrace.Traces
}

func (b *backend) Export(_ context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	b.traces <- request.Traces()
	return ptraceotlp.NewExportResponse(), nil
}

// next gives what comes next.
func (b *backend) next(t *testing.T) ptrace.Traces {
	t.Helper()
	select {
	case got := <-b.traces:
		return got
	case <-time.After(time.Minute):
		require.FailNow(t, "nothing came")
		return ptrace.Traces{}
	}
}

func (b *backend) serve(t *testing.T) string { return serve(t, b) }

// serve lets a backend listen, and gives its address.
func serve(t testing.TB, backend ptraceotlp.GRPCServer) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
	ptraceotlp.RegisterGRPCServer(server, backend)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// calls is one call of a session in another instrumentation's words: each turn sends more, and reads all that was sent
// before from the cache.
func calls(session string, turn int, more map[string]any) ptrace.Traces {
	made := ptrace.NewTraces()
	from := made.ResourceSpans().AppendEmpty()
	from.Resource().Attributes().PutStr("service.name", "agents")
	span := from.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("chat gpt-5")
	span.SetTraceID(pcommon.TraceID{byte(turn)})
	span.SetSpanID(pcommon.SpanID{byte(turn)})
	began := time.Now().Add(-time.Minute + time.Duration(turn)*time.Second)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(began))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(began.Add(time.Second / 2)))
	attributes := map[string]any{
		"gen_ai.operation.name":                "chat",
		"gen_ai.provider.name":                 "openai",
		"gen_ai.request.model":                 "gpt-5",
		"gen_ai.conversation.id":               session,
		"gen_ai.response.id":                   fmt.Sprint(session, "-", turn),
		"gen_ai.usage.input_tokens":            10_240 * turn,
		"gen_ai.usage.cache_read.input_tokens": 10_240 * (turn - 1),
		"gen_ai.usage.output_tokens":           100,
	}
	for name, value := range more {
		attributes[name] = value
	}
	if err := span.Attributes().FromRaw(attributes); err != nil {
		panic(err)
	}
	return made
}

// entry is an entry of a process with the ledger in it, as a log record.
func entry(attributes map[string]any) plog.Logs {
	made := plog.NewLogs()
	record := made.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("context_ledger.entry")
	record.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	attributes["context_ledger.entry_id"] = "e1"
	if err := record.Attributes().FromRaw(attributes); err != nil {
		panic(err)
	}
	return made
}

func free(t testing.TB) string {
	t.Helper()
	found, err := port.Free(1)
	require.NoError(t, err)
	return found[0]
}

func binary(t testing.TB) string {
	t.Helper()
	name := os.Getenv("OTELCOL")
	if name == "" {
		t.Skip("OTELCOL names no binary; `make test-collector` builds one and says where it is")
	}
	return name
}
