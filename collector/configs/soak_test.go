package configs

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// With more sessions than it may know, the memory of a collector stops growing once it is full, every call is counted, and
// sessions are forgotten instead. SOAK is how many spans are sent.
func TestSoak(t *testing.T) {
	spans, err := strconv.Atoi(os.Getenv("SOAK"))
	if err != nil {
		t.Skip("SOAK says of no number of spans")
	}
	run := start(t, "agent.yaml", t.TempDir(),
		"--set=processors::context_ledger::state::max_sessions=20000", "--set=processors::context_ledger::save_interval=5s")
	var resident []int
	for batch := range spans / together {
		work := work(batch, 1)
		for at, span := range work.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			session := (batch*together + at) % (spans / 4)
			span.Attributes().PutStr("gen_ai.conversation.id", fmt.Sprint("soak-", session))
		}
		body, err := ptraceotlp.NewExportRequestFromTraces(work).MarshalProto()
		require.NoError(t, err)
		post(t, "http://"+run.otlp+"/v1/traces", body)
		if batch%(spans/together/10) == 0 {
			resident = append(resident, run.resident(t))
		}
	}
	t.Log("MiB resident:", resident)
	assert.Eventually(t, func() bool { return sum(outcomes(run.scrape(t))) == spans }, time.Minute, time.Second)
	half := len(resident) / 2
	assert.Less(t, resident[len(resident)-1], 3*resident[half]/2)
	assert.Contains(t, run.own(t), `otelcol_processor_context_ledger_evictions`)
	run.stop(t)
}

// resident gives the memory that a collector holds, in MiB.
func (r *running) resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.command.Process.Pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return kilobytes / 1024
}
