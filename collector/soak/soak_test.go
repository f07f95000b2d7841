package soak

import (
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/load"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/port"
)

const (
	gateway   = "../configs/gateway.yaml"
	forwarder = "testdata/forwarder.yaml"
	// turns is how many calls a session has.
	turns = 10
	// limit is of the memory limiter, in MiB; the runtime of Go is told of four fifths of it, as operators of collectors do.
	limit = 512
	// consumers is how many requests an exporter has under way at most: what a collector that is killed can have taken
	// without saying so.
	consumers = 10
	// batch is how many spans the gateway sends on together.
	batch    = 500
	patience = 10 * time.Minute
)

// Ten calls of each of many sessions leave the collector under its limit of memory: nothing is refused, all comes out, and
// each is counted once.
func TestMemoryStaysUnderTheLimit(t *testing.T) {
	backend, err := load.Serve()
	require.NoError(t, err)
	t.Cleanup(backend.Close)
	run := start(t, gateway, t.TempDir(), "BACKEND_ENDPOINT="+backend.Address, "BACKEND_INSECURE=true", "GOMEMLIMIT=409MiB",
		"--set=processors::memory_limiter::limit_mib="+strconv.Itoa(limit), "--set=processors::memory_limiter::spike_limit_mib=64",
		"--set=connectors::context_ledger::metrics_flush_interval=200ms", "--set=connectors::context_ledger::zero_first=0s")
	spans := count(t)
	most := watch(t, run)
	for turn := 1; turn <= turns; turn++ {
		for _, one := range requests(t, mixed, spans/turns, turn, 1) {
			require.NoError(t, run.Post(one))
		}
	}
	require.Eventually(t, func() bool { return backend.Spans() >= int64(spans) }, patience, 50*time.Millisecond)
	assert.EqualValues(t, spans, backend.Spans())
	counted(t, run, spans)
	t.Logf("%d spans of %d sessions, at most %d MiB", spans, spans/turns, most.Load()>>20)
	assert.Less(t, most.Load()>>20, int64(limit))
	require.NoError(t, run.Stop())
}

// A gateway that is killed between a forwarder and a backend loses no entry: what it did not acknowledge is sent again,
// what it did it has on disk. What comes to the backend twice was on its way when it was killed. Of what it had
// acknowledged nothing is counted again; what of that was not told before is missing from the sums.
func TestGatewayIsKilled(t *testing.T) {
	line := newLine(t)
	sent := line.send(t)
	line.half(t)
	told := line.gateway.Sum(line.gateway.Prometheus, "context_ledger_calls_total")
	line.gateway.Kill()
	acknowledged := line.acknowledged(t)
	require.Positive(t, acknowledged)
	require.Less(t, acknowledged, line.spans)
	line.startGateway(t)
	<-sent
	again := line.arrived(t)
	counted(t, line.gateway, line.spans-acknowledged)
	assert.LessOrEqual(t, int(told), acknowledged+consumers*load.Together, "counted twice is at most what was under way")
	assert.LessOrEqual(t, again, consumers*(load.Together+batch))
	t.Logf("%d spans; %d acknowledged by the one that was killed, %.0f of them in its sums; %d came twice to the backend",
		line.spans, acknowledged, told, again)
}

// A forwarder that is killed loses nothing that it acknowledged. What it sends again is known by the gateway: each entry is
// counted once.
func TestForwarderIsKilled(t *testing.T) {
	line := newLine(t)
	sent := line.send(t)
	line.half(t)
	line.forwarder.Load().Kill()
	line.startForwarder(t)
	<-sent
	again := line.arrived(t)
	counted(t, line.gateway, line.spans)
	t.Logf("%d spans, each counted once; %d came twice to the backend", line.spans, again)
}

// line is a forwarder, a gateway and a backend in a line, and how many spans are sent through it.
type line struct {
	spans                  int
	address                string
	register               *load.Register
	gateway                *load.Binary
	forwarder              atomic.Pointer[load.Binary]
	gatewayDir, forwardDir string
}

func newLine(t *testing.T) *line {
	t.Helper()
	register, err := load.Keep()
	require.NoError(t, err)
	t.Cleanup(register.Close)
	made := &line{
		spans: count(t), address: free(t), register: register, gatewayDir: t.TempDir(), forwardDir: t.TempDir(),
	}
	made.startGateway(t)
	made.startForwarder(t)
	return made
}

func (l *line) startGateway(t *testing.T) {
	t.Helper()
	l.gateway = start(t, gateway, l.gatewayDir, "OTLP_GRPC_ENDPOINT="+l.address, "BACKEND_ENDPOINT="+l.register.Address,
		"BACKEND_INSECURE=true", "--set=connectors::context_ledger::metrics_flush_interval=200ms",
		"--set=connectors::context_ledger::zero_first=0s",
		"--set=exporters::otlp_grpc::sending_queue::batch::min_size="+strconv.Itoa(batch),
		"--set=exporters::otlp_grpc::sending_queue::batch::max_size="+strconv.Itoa(batch))
}

func (l *line) startForwarder(t *testing.T) {
	t.Helper()
	l.forwarder.Store(start(t, forwarder, l.forwardDir, "BACKEND_ENDPOINT="+l.address))
}

// send sends all spans, each request until it is acknowledged, as exporters do; the channel is closed at the end.
func (l *line) send(t *testing.T) <-chan struct{} {
	t.Helper()
	bodies := requests(t, load.Entry, l.spans/turns, 1, turns)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, body := range bodies {
			for l.forwarder.Load().Post(body) != nil && !t.Failed() {
				time.Sleep(20 * time.Millisecond)
			}
		}
	}()
	return done
}

// half waits until a part of the spans came through, so that others are on their way.
func (l *line) half(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		known, _ := l.register.Entries()
		return known >= l.spans/4
	}, patience, 5*time.Millisecond)
}

// acknowledged waits until the forwarder was told of nothing more for five seconds, and gives how many spans went through.
func (l *line) acknowledged(t *testing.T) int {
	t.Helper()
	forwarder := l.forwarder.Load()
	last, same := -1.0, 0
	require.Eventually(t, func() bool {
		now := forwarder.Sum(forwarder.Self, "otelcol_exporter_sent_spans")
		if now == last {
			same++
		} else {
			last, same = now, 0
		}
		return same == 100
	}, patience, 50*time.Millisecond)
	return int(last)
}

// arrived waits until every entry came to the backend, and gives how many came again.
func (l *line) arrived(t *testing.T) int {
	t.Helper()
	require.Eventually(t, func() bool {
		known, _ := l.register.Entries()
		return known == l.spans
	}, patience, 50*time.Millisecond)
	_, again := l.register.Entries()
	return again
}

// counted waits until a collector tells so many calls, and sees that it does not tell more.
func counted(t *testing.T, run *load.Binary, want int) {
	t.Helper()
	calls := func() int { return int(run.Sum(run.Prometheus, "context_ledger_calls_total")) }
	require.Eventually(t, func() bool { return calls() >= want }, patience, 100*time.Millisecond, "%d are to be counted", want)
	time.Sleep(time.Second)
	require.Equal(t, want, calls())
}

// watch gives the most memory that a collector has from now on, in bytes.
func watch(t *testing.T, run *load.Binary) *atomic.Int64 {
	t.Helper()
	var most atomic.Int64
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				now, _ := run.Resident()
				most.Store(max(most.Load(), now))
			}
		}
	}()
	return &most
}

// mixed are entries of agents with the ledger in it, and as many calls told by another instrumentation.
func mixed(session, turn int) map[string]any {
	if session%2 == 0 {
		return load.Entry(session, turn)
	}
	return load.GenAI(session, turn)
}

func requests(t *testing.T, kind load.Kind, sessions, first, turns int) [][]byte {
	t.Helper()
	made, err := load.Requests(kind, sessions, first, turns)
	require.NoError(t, err)
	return made
}

func start(t *testing.T, config, folder string, more ...string) *load.Binary {
	t.Helper()
	binary := os.Getenv("OTELCOL")
	if binary == "" {
		t.Skip("OTELCOL names no binary; `make soak-collector` builds one and says where it is")
	}
	run, err := load.Start(binary, config, folder, more...)
	require.NoError(t, err)
	t.Cleanup(run.Kill)
	return run
}

// count is how many spans are sent: few, where nobody says.
func count(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SPANS")
	if text == "" {
		return 20_000
	}
	found, err := strconv.Atoi(text)
	require.NoError(t, err)
	return found / (turns * load.Together) * turns * load.Together
}

func free(t *testing.T) string {
	t.Helper()
	found, err := port.Free(1)
	require.NoError(t, err)
	return found[0]
}
