package configs

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const (
	sessions = 200
	turns    = 5
)

// Through a gateway, Kafka and two ledgers, interleaved sessions get the verdicts that one ledger would give them: one call
// of each is the first that the ledgers know of, all others are known to go on. Every call is counted once, though it is
// told as a span and as a log record.
func TestScaleOut(t *testing.T) {
	tier := newTier(t)
	for turn := 1; turn <= turns; turn++ {
		tier.send(t, turn)
	}
	assert.Equal(t, map[string]int{"cold": sessions, "hit": sessions * (turns - 1)}, tier.settled(t, sessions*turns))
	for _, ledger := range tier.ledgers {
		assert.NotEmpty(t, outcomes(ledger.scrape(t)), "both have work")
	}
}

// When a ledger goes and comes back, each of the sessions that move is unknown to the other one once and no call is told to
// be the first of a session that is not new.
func TestLedgerGoesAndComesBack(t *testing.T) {
	tier := newTier(t)
	tier.send(t, 1)
	tier.settled(t, sessions)
	counted := outcomes(tier.ledgers[1].scrape(t))
	tier.ledgers[1].stop(t)
	tier.send(t, 2)
	left := tier.ledgers[:1]
	total := func() int { return sum(outcomes(left[0].scrape(t))) }
	require.Eventually(t, func() bool { return total()+sum(counted) == 2*sessions }, time.Minute, 200*time.Millisecond)
	moved := outcomes(left[0].scrape(t))["cold"] - (sessions - counted["cold"])
	assert.LessOrEqual(t, moved, counted["cold"], "at most one unknown call for each session that moved")
	assert.Positive(t, moved)
	causes := causesOf(left[0].scrape(t))
	assert.NotContains(t, causes, "cold_start")
	assert.NotContains(t, causes, "provider_unexplained")
}

// tier is a gateway and the ledgers behind it.
type tier struct {
	gateway *running
	ledgers []*running
}

// newTier starts a gateway and two ledgers on topics of their own.
func newTier(t *testing.T) *tier {
	t.Helper()
	broker := os.Getenv("KAFKA_BROKER")
	if broker == "" {
		t.Skip("KAFKA_BROKER names no Kafka whose new topics have several partitions")
	}
	mark := strconv.FormatInt(time.Now().UnixNano(), 36)
	topics := []string{"TRACES_TOPIC=spans-" + mark, "LOGS_TOPIC=logs-" + mark}
	groups := []string{
		"--set=receivers::kafka/traces::group_id=traces-" + mark, "--set=receivers::kafka/logs::group_id=logs-" + mark,
	}
	made := &tier{gateway: start(t, "scale-out-gateway.yaml", t.TempDir(), topics...)}
	// The first records make the topics: who consumes them wants them to be there.
	made.gateway.sendSpans(t, ptrace.NewTraces())
	first, firstLogs := told("warm", 1)
	made.gateway.sendSpans(t, first)
	made.gateway.sendLogs(t, firstLogs)
	for _, name := range []string{"a", "b"} {
		more := append(append([]string{"REPLICA=" + name}, topics...), groups...)
		made.ledgers = append(made.ledgers, start(t, "scale-out-ledger.yaml", t.TempDir(), more...))
	}
	return made
}

// send sends one turn of every session, a few sessions a batch.
func (r *tier) send(t *testing.T, turn int) {
	t.Helper()
	const together = 25
	for first := 0; first < sessions; first += together {
		spans, records := ptrace.NewTraces(), plog.NewLogs()
		for session := first; session < first+together; session++ {
			span, record := told(fmt.Sprint("session-", session), turn)
			span.ResourceSpans().MoveAndAppendTo(spans.ResourceSpans())
			record.ResourceLogs().MoveAndAppendTo(records.ResourceLogs())
		}
		r.gateway.sendSpans(t, spans)
		r.gateway.sendLogs(t, records)
	}
}

// settled waits until the ledgers have counted so many calls beside the first one, and gives them by outcome.
func (r *tier) settled(t *testing.T, want int) map[string]int {
	t.Helper()
	all := func() map[string]int {
		found := map[string]int{"cold": -1}
		for _, ledger := range r.ledgers {
			for word, count := range outcomes(ledger.scrape(t)) {
				found[word] += count
			}
		}
		return found
	}
	assert.Eventually(t, func() bool { return sum(all()) >= want }, time.Minute, 200*time.Millisecond, "%v", all())
	time.Sleep(time.Second)
	return all()
}

func outcomes(scraped string) map[string]int {
	return counts(scraped, "context_ledger_calls_total", "context_ledger_cache_outcome")
}

func causesOf(scraped string) map[string]int {
	return counts(scraped, "context_ledger_miss_tokens_total", "context_ledger_miss_cause")
}

func counts(scraped, metric, label string) map[string]int {
	found := map[string]int{}
	for word, value := range series(scraped, metric, label) {
		count, err := strconv.ParseFloat(value, 64)
		if err == nil {
			found[word] = int(count)
		}
	}
	return found
}

func sum(counts map[string]int) int {
	total := 0
	for _, count := range counts {
		total += count
	}
	return total
}

// told is one call of a session as a span and as the log record of the same call.
func told(session string, turn int) (ptrace.Traces, plog.Logs) {
	spans := calls(session, turn, nil)
	span := spans.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	var trace pcommon.TraceID
	copy(trace[:], fmt.Sprintf("%-16s", fmt.Sprint(turn, session)))
	span.SetTraceID(trace)
	records := plog.NewLogs()
	from := records.ResourceLogs().AppendEmpty()
	spans.ResourceSpans().At(0).Resource().CopyTo(from.Resource())
	record := from.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("gen_ai.client.inference.operation.details")
	record.SetTimestamp(span.EndTimestamp())
	record.SetTraceID(trace)
	span.Attributes().CopyTo(record.Attributes())
	return spans, records
}
