package configs

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.yaml.in/yaml/v3"
)

// Spans as released instrumentations write them pass through the binary, and what is counted is what the provider
// reported of each call: 2,600 prompt tokens, 2,000 of them read and 400 written, and 12 generated. One instrumentation
// of the nine drops what was written; the tenth span is an agent's, which repeats its call.
func TestSpansOfOtherInstrumentations(t *testing.T) {
	run := start(t, "agent.yaml", t.TempDir())
	run.sendSpans(t, seen(t))

	assert.Eventually(t, func() bool {
		return sum(summed(run.scrape(t), "context_ledger_calls_total", "context_ledger_request_kind")) == 9
	}, time.Minute, 100*time.Millisecond)
	scraped := run.scrape(t)
	assert.Equal(t, map[string]int{"cache_read": 9 * 2000, "cache_write": 8 * 400, "uncached": 8*200 + 600},
		summed(scraped, "context_ledger_input_tokens_total", "context_ledger_token_source"))
	assert.Equal(t, 9*12, sum(summed(scraped, "context_ledger_output_tokens_total", "gen_ai_provider_name")))
	run.stop(t)
}

// What coding agents send of their turns passes through the binary, and each request is counted once: Claude Code's, that
// is told by a span and a log event, the one by which it summarises, and Codex's, of which four records tell.
func TestRecordsOfCodingAgents(t *testing.T) {
	run := start(t, "agent.yaml", t.TempDir())
	spans, logs := ptrace.NewTraces(), plog.NewLogs()
	spanScopes := spans.ResourceSpans().AppendEmpty().ScopeSpans()
	logScopes := logs.ResourceLogs().AppendEmpty().ScopeLogs()
	for i, row := range table(t, "agents.yaml") {
		if row.Signal == "logs" {
			row.log(t, logScopes.AppendEmpty(), pcommon.TraceID{1})
		} else {
			row.span(t, spanScopes.AppendEmpty(), pcommon.TraceID{1}, byte(i+1))
		}
	}
	run.sendSpans(t, spans)
	run.sendLogs(t, logs)

	assert.Eventually(t, func() bool {
		return sum(summed(run.scrape(t), "context_ledger_calls_total", "context_ledger_request_kind")) == 3
	}, time.Minute, 100*time.Millisecond)
	scraped := run.scrape(t)
	assert.Equal(t, map[string]int{"claude_code": 31 + 16, "codex": 32}, summed(scraped, "context_ledger_output_tokens_total", "gen_ai_agent_name"))
	assert.Equal(t, map[string]int{"cache_read": 21504 + 22272, "cache_write": 9684, "uncached": 322 + 2054},
		summed(scraped, "context_ledger_input_tokens_total", "context_ledger_token_source"))
	assert.Equal(t, map[string]int{"done": 1}, summed(scraped, "context_ledger_compactions_total", "context_ledger_compaction_outcome"))
	run.stop(t)
}

// Metrics of an agent whose logs have stopped stand beside the calls that are missing, where a query can hold them against
// each other (case AT10).
func TestMetricsOfAnAgentWithoutItsLogs(t *testing.T) {
	run := start(t, "agent.yaml", t.TempDir())
	made := pmetric.NewMetrics()
	from := made.ResourceMetrics().AppendEmpty()
	from.Resource().Attributes().PutStr("service.name", "claude-code")
	metric := from.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	metric.SetName("claude_code.token.usage")
	metric.SetUnit("tokens")
	sum := metric.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := sum.DataPoints().AppendEmpty()
	point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	point.SetIntValue(322)
	point.Attributes().PutStr("type", "input")
	body, err := pmetricotlp.NewExportRequestFromMetrics(made).MarshalProto()
	require.NoError(t, err)
	post(t, "http://"+run.otlp+"/v1/metrics", body)

	assert.Eventually(t, func() bool {
		told := series(run.scrape(t), "claude_code_token_usage_tokens_total", "type")
		return assert.ObjectsAreEqual(map[string]string{"input": "322"}, told)
	}, time.Minute, 100*time.Millisecond)
	assert.Empty(t, summed(run.scrape(t), "context_ledger_calls_total", "gen_ai_agent_name"))
	run.stop(t)
}

// seen gives the spans that internal/normalise holds its table to, each in a trace of its own and with an answer of its
// own.
func seen(t *testing.T) ptrace.Traces {
	made := ptrace.NewTraces()
	list := made.ResourceSpans().AppendEmpty().ScopeSpans()
	for i, row := range table(t, "seen.yaml") {
		if _, named := row.Attrs["gen_ai.response.id"]; named {
			row.Attrs["gen_ai.response.id"] = strconv.Itoa(i)
		}
		row.span(t, list.AppendEmpty(), pcommon.TraceID{byte(i + 1)}, 1)
	}
	return made
}

// record is one span or log record as it was seen.
type record struct {
	Signal, Scope, Version, Record string
	Attrs                          map[string]any
}

func table(t *testing.T, name string) []record {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "internal", "normalise", "testdata", name))
	require.NoError(t, err)
	var rows []record
	require.NoError(t, yaml.Unmarshal(text, &rows))
	require.Len(t, rows, 10)
	return rows
}

func (o record) span(t *testing.T, scope ptrace.ScopeSpans, trace pcommon.TraceID, number byte) {
	scope.Scope().SetName(o.Scope)
	scope.Scope().SetVersion(o.Version)
	span := scope.Spans().AppendEmpty()
	span.SetName(o.Record)
	span.SetTraceID(trace)
	span.SetSpanID(pcommon.SpanID{number})
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	require.NoError(t, span.Attributes().FromRaw(o.Attrs))
}

func (o record) log(t *testing.T, scope plog.ScopeLogs, trace pcommon.TraceID) {
	scope.Scope().SetName(o.Scope)
	scope.Scope().SetVersion(o.Version)
	record := scope.LogRecords().AppendEmpty()
	record.SetTraceID(trace)
	record.SetSpanID(pcommon.SpanID{200})
	record.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	require.NoError(t, record.Attributes().FromRaw(o.Attrs))
}

// summed gives the values of a scraped metric by one of its labels, summed over the others.
func summed(scraped, metric, label string) map[string]int {
	found := map[string]int{}
	for line := range strings.Lines(scraped) {
		found = added(found, counts(line, metric, label))
	}
	return found
}
