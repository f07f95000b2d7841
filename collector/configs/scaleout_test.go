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
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const (
	sessions = 200
	turns    = 5
)

// Through a gateway, Kafka and two ledgers, interleaved sessions get the verdicts that one ledger would give them: one
// call of each is the first that the ledgers know of, all others are known to go on. Every call is counted once, though
// it is told as a span and as a log record.
func TestScaleOut(t *testing.T) {
	tier := newTier(t)
	for turn := 1; turn <= turns; turn++ {
		tier.send(t, turn)
	}
	counted := tier.settled(t, sessions*turns)
	assert.Equal(t, map[string]int{"cold": sessions, "hit": sessions * (turns - 1)}, added(counted...))
	for _, one := range counted {
		assert.Positive(t, one["hit"], "both have work")
	}
}

// Of every call two ledgers say what one says that knows all sessions, whatever became of its cache.
func TestScaleOutSaysWhatOneLedgerSays(t *testing.T) {
	const rounds = 12
	tier := newTier(t)
	want, calls := single(t, "session-", sessions, rounds), fleet("session-", sessions)
	for range rounds {
		tier.round(t, &flow{}, calls)
	}
	var heard []said
	require.Eventually(t, func() bool {
		heard = append(tier.ledgers[0].calls(t), tier.ledgers[1].calls(t)...)
		return len(twice(heard)) == sessions*rounds
	}, time.Minute, 100*time.Millisecond)
	for _, say := range heard {
		assert.Equal(t, want[say.call], say.verdict, say.call)
	}
	assert.Eventually(t, func() bool {
		counted := 0
		for i, ledger := range tier.ledgers {
			counted += ledger.counted(t) - sum(tier.warm[i])
		}
		return counted == sessions*rounds
	}, time.Minute, 100*time.Millisecond)
}

// When a ledger goes, each of its sessions is unknown to the other one once; no call is told to be the first of a
// session that is not new, none is lost and none is counted twice.
func TestLedgerGoes(t *testing.T) {
	tier := newTier(t)
	tier.send(t, 1)
	before := tier.settled(t, sessions)
	gone := tier.ledgers[1]
	gone.stop(t)
	tier.ledgers, tier.warm = tier.ledgers[:1], tier.warm[:1]
	tier.send(t, 2)
	tier.send(t, 3)
	after := tier.settled(t, 3*sessions-sum(before[1]))[0]
	moved := before[1]["cold"]
	assert.Equal(t, map[string]int{"cold": sessions, "hit": 2*sessions - moved}, after, "%d sessions moved", moved)
	causes := counts(tier.ledgers[0].scrape(t), "context_ledger_miss_tokens_total", "context_ledger_miss_cause")
	assert.NotContains(t, causes, "cold_start")
	assert.NotContains(t, causes, "provider_unexplained")
}

// When a ledger is killed and comes back under its name, it has the same sessions again: each is unknown once, for what
// it knew was not kept yet; what it had counted is told from zero again, and no call is lost.
func TestLedgerIsKilledAndComesBack(t *testing.T) {
	calls, after := comesBack(t, (*running).kill)
	assert.Equal(t, map[string]int{"cold": calls, "hit": calls}, after)
}

// A ledger that is stopped in order and comes back under its name before its sessions go elsewhere knows by Kafka's offsets that
// it missed nothing: no session is unknown, and what it had counted is told from zero again.
func TestLedgerIsStoppedAndComesBack(t *testing.T) {
	calls, after := comesBack(t, (*running).stop)
	assert.Equal(t, map[string]int{"hit": 2 * calls}, after)
}

// comesBack ends a ledger between the first and the second of three turns and begins it again, and gives how many calls it has in
// a turn and what it counted since. The other ledger notices nothing.
func comesBack(t *testing.T, end func(*running, testing.TB)) (calls int, after map[string]int) {
	t.Helper()
	tier := newTier(t)
	tier.send(t, 1)
	before := tier.settled(t, sessions)
	gone := tier.ledgers[1]
	end(gone, t)
	tier.ledgers[1], tier.warm[1] = tier.ledger(t, "b", gone.folder), nil
	tier.send(t, 2)
	tier.send(t, 3)
	counted := tier.settled(t, 3*sessions-sum(before[1]))
	stayed := before[0]["cold"]
	assert.Equal(t, map[string]int{"cold": stayed, "hit": 2 * stayed}, counted[0])
	return before[1]["cold"], counted[1]
}

// tier is a gateway and the ledgers behind it, and what each of these had counted by outcome before it was begun with.
type tier struct {
	gateway  *running
	ledgers  []*running
	warm     []map[string]int
	settings []string
}

// newTier starts a gateway and two ledgers on topics of their own, and waits until both have a share of the sessions.
func newTier(t *testing.T, more ...string) *tier {
	t.Helper()
	broker := os.Getenv("KAFKA_BROKER")
	if broker == "" {
		t.Skip("KAFKA_BROKER names no Kafka whose new topics have several partitions")
	}
	mark := strconv.FormatInt(time.Now().UnixNano(), 36)
	topics := []string{"TRACES_TOPIC=spans-" + mark, "LOGS_TOPIC=logs-" + mark}
	made := &tier{gateway: start(t, "scale-out-gateway.yaml", t.TempDir(), topics...), settings: append(append(topics,
		"--set=receivers::kafka/traces::group_id=traces-"+mark, "--set=receivers::kafka/logs::group_id=logs-"+mark), more...)}
	made.exchange(t, "first", 1, 1) // makes the topics, which consumers want to be there
	for _, name := range []string{"a", "b"} {
		made.ledgers = append(made.ledgers, made.ledger(t, name, t.TempDir()))
	}
	made.warmUp(t)
	return made
}

// ledger starts a ledger of a name, its files in a folder.
func (r *tier) ledger(t *testing.T, name, folder string) *running {
	t.Helper()
	return start(t, "scale-out-ledger.yaml", folder, append([]string{"REPLICA=" + name, "--config=testdata/watched.yaml"},
		r.settings...)...)
}

// warmUp sends calls of other sessions until both ledgers have some, and for both signals.
func (r *tier) warmUp(t *testing.T) {
	t.Helper()
	sent := 0
	require.Eventually(t, func() bool {
		sent++
		r.exchange(t, fmt.Sprint("warm-", sent, "-"), 1, 16)
		for _, ledger := range r.ledgers {
			if shares(ledger.own(t)) < 2 || sum(outcomes(ledger.scrape(t))) == 0 {
				return false
			}
		}
		return true
	}, 2*time.Minute, time.Second, "both are to have a share")
	require.Eventually(t, func() bool {
		came := 0
		for _, ledger := range r.ledgers {
			came += sum(ledger.became(t))
		}
		return came >= 2*(1+16*sent)
	}, time.Minute, 100*time.Millisecond, "all that was sent is to come, as spans and as log records")
	r.warm = r.quiet(t)
}

// shares gives of how many signals a ledger was given something.
func shares(own string) int {
	found := 0
	for _, signal := range []string{"traces", "logs"} {
		for line := range strings.Lines(own) {
			if strings.HasPrefix(line, "otelcol_processor_incoming_items") && strings.Contains(line,
				`otel_signal="`+signal+`"`) {
				found++
				break
			}
		}
	}
	return found
}

// send sends one turn of every session, a few sessions a batch.
func (r *tier) send(t *testing.T, turn int) {
	t.Helper()
	const together = 25
	for first := 0; first < sessions; first += together {
		r.exchange(t, fmt.Sprint("session-", first, "-"), turn, together)
	}
}

// exchange sends one turn of some sessions in one batch of each signal.
func (r *tier) exchange(t *testing.T, name string, turn, sessions int) {
	t.Helper()
	spans, records := ptrace.NewTraces(), plog.NewLogs()
	for session := range sessions {
		span, record := told(fmt.Sprint(name, session), turn)
		span.ResourceSpans().MoveAndAppendTo(spans.ResourceSpans())
		record.ResourceLogs().MoveAndAppendTo(records.ResourceLogs())
	}
	r.gateway.sendSpans(t, spans)
	r.gateway.sendLogs(t, records)
}

// settled waits until the ledgers have counted so many calls since they are warm, and gives what each has by outcome.
func (r *tier) settled(t *testing.T, want int) []map[string]int {
	t.Helper()
	require.Eventually(t, func() bool { return sum(added(r.since(t)...)) >= want }, time.Minute, 200*time.Millisecond)
	r.quiet(t)
	return r.since(t)
}

// since gives what each ledger has counted since it is warm.
func (r *tier) since(t *testing.T) []map[string]int {
	t.Helper()
	found := make([]map[string]int, len(r.ledgers))
	for i, ledger := range r.ledgers {
		found[i] = outcomes(ledger.scrape(t))
		for word, count := range r.warm[i] {
			found[i][word] -= count
		}
	}
	return found
}

// quiet waits until nothing more comes and all that was counted is told, and gives what each ledger has.
func (r *tier) quiet(t *testing.T) []map[string]int {
	t.Helper()
	var told, last []map[string]int
	still := 0
	require.Eventually(t, func() bool {
		var came []map[string]int
		told = nil
		whole := true
		for _, ledger := range r.ledgers {
			became := ledger.became(t)
			whole = whole && became["counted"] == ledger.counted(t)
			came, told = append(came, became), append(told, outcomes(ledger.scrape(t)))
		}
		if still++; !whole || !assert.ObjectsAreEqual(last, came) {
			still = 0
		}
		last = came
		return still == 25
	}, 2*time.Minute, 200*time.Millisecond, "ledgers go on counting")
	return told
}

// became gives what became of the records that a ledger was given.
func (r *running) became(t *testing.T) map[string]int {
	t.Helper()
	return counts(r.own(t), "otelcol_connector_context_ledger_entries", "result")
}

func added(counts ...map[string]int) map[string]int {
	found := map[string]int{}
	for _, one := range counts {
		for word, count := range one {
			found[word] += count
		}
	}
	return found
}

func outcomes(scraped string) map[string]int {
	return counts(scraped, "context_ledger_calls_total", "context_ledger_cache_outcome")
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
