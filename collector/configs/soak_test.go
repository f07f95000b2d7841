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
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
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
		work := work(batch)
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

// together is how many calls are sent at once.
const together = 200

// work is a batch of model calls.
func work(batch int) ptrace.Traces {
	made := ptrace.NewTraces()
	from := made.ResourceSpans().AppendEmpty()
	from.Resource().Attributes().PutStr("service.name", "agents")
	list := from.ScopeSpans().AppendEmpty().Spans()
	for at := range together {
		number := batch*together + at
		span := list.AppendEmpty()
		span.SetName("chat gpt-5")
		span.SetTraceID(pcommon.TraceID{1, byte(number), byte(number >> 8), byte(number >> 16)})
		span.SetSpanID(pcommon.SpanID{1, byte(number), byte(number >> 8), byte(number >> 16)})
		began := time.Unix(1_796_000_000+int64(number/500), 0)
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(began))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(began.Add(time.Second)))
		attributes := map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5",
			"gen_ai.response.id": fmt.Sprint("r", number), "gen_ai.usage.input_tokens": 10_000 + number/500,
			"gen_ai.usage.cache_read.input_tokens": 9_000 + number/500, "gen_ai.usage.output_tokens": 100,
			"server.address": "api.openai.com",
		}
		if err := span.Attributes().FromRaw(attributes); err != nil {
			panic(err)
		}
	}
	return made
}
