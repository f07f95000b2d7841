package configs

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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

// course is a session that is under way. Its calls are told by another instrumentation, or, if it is located, as entries of
// a process with the ledger in it that is started anew for each call and knows of no earlier one. Now and then something
// changes between two calls, or the provider forgets.
type course struct {
	name           string
	located        bool
	random         *rand.Rand
	turn           int
	at             time.Time
	input, cached  int64
	model, effort  string
	policy, edited int
}

// fleet are as many sessions, every second one of entries. The same name makes the same fleet.
func fleet(name string, many int) []*course {
	made := make([]*course, many)
	for number := range made {
		made[number] = &course{
			name: fmt.Sprint(name, number), located: number%2 == 1, random: rand.New(rand.NewPCG(uint64(number), 7)),
			at: time.Now().Add(-3 * time.Hour), input: 20_000, model: "gpt-5", effort: "low",
		}
	}
	return made
}

// next gives the attributes of the session's next call.
func (c *course) next() map[string]any {
	c.turn++
	c.at = c.at.Add(20 * time.Second)
	if c.turn > 1 {
		c.cached = c.input
		c.input += int64(500 + c.random.IntN(3000))
		c.turnOfEvents()
	}
	if c.located {
		return c.entry()
	}
	return c.told()
}

// turnOfEvents lets something happen before a call, most times nothing.
func (c *course) turnOfEvents() {
	switch c.random.IntN(14) {
	case 0:
		c.at, c.cached = c.at.Add(40*time.Minute), 0
	case 1:
		c.model, c.cached = fmt.Sprint("gpt-5.", c.turn), 0
	case 2:
		c.effort, c.cached = fmt.Sprint("effort", c.turn), 0
	case 3:
		c.cached = 0
	case 4:
		c.policy, c.cached = c.turn, 0
	case 5:
		c.edited, c.cached = c.turn, c.cached/4
	}
}

func (c *course) told() map[string]any {
	return map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": c.model,
		"gen_ai.conversation.id": c.name, "gen_ai.response.id": fmt.Sprint(c.name, "-", c.turn), "server.address": "api.openai.com",
		"gen_ai.request.reasoning.level": c.effort, "gen_ai.usage.input_tokens": c.input,
		"gen_ai.usage.cache_read.input_tokens": c.cached, "gen_ai.usage.output_tokens": 100,
	}
}

func (c *course) entry() map[string]any {
	policy := fmt.Sprint("xxh3:", digest(c.name, c.policy))
	return map[string]any{
		"context_ledger.entry_id": fmt.Sprint("e-", c.name, "-", c.turn), "context_ledger.session_id": c.name,
		"context_ledger.session_source": "explicit", "context_ledger.provider_surface": "openai",
		"context_ledger.provider": "openai", "context_ledger.endpoint": "api.openai.com", "context_ledger.model_id": c.model,
		"context_ledger.reasoning_effort": c.effort, "context_ledger.digest_scheme": "xxh3",
		"context_ledger.policy_hash": policy, "context_ledger.policy_wire_hash": policy,
		"context_ledger.tool_schema_hash": "xxh3:tools", "context_ledger.tool_wire_hash": "xxh3:tools",
		"context_ledger.cache_identity":  fmt.Sprint("xxh3:", digest(c.name, c.policy, c.model, c.effort)),
		"context_ledger.history_length":  2*c.turn - 1,
		"context_ledger.prefix_locator":  c.locator(),
		"context_ledger.cache_report":    "reported",
		"context_ledger.input_tokens":    c.input,
		"context_ledger.cached_tokens":   c.cached,
		"context_ledger.output_tokens":   100,
		"context_ledger.response_id":     fmt.Sprint(c.name, "-", c.turn),
		"context_ledger.counted_by":      "none",
		"context_ledger.call_end":        "complete",
		"context_ledger.judged_by":       "process",
		"context_ledger.cache_outcome":   "cold",
		"context_ledger.miss_cause":      "cold_start",
		"context_ledger.miss_confidence": "observed",
		"context_ledger.miss_evidence":   []any{"first_request"},
	}
}

// locator has the first boundaries and the last ones. A rule that changes is in all of them, an edit of the first message in
// all but that of the header.
func (c *course) locator() []any {
	made := []any{fmt.Sprintf("0:2000:%s", digest(c.name, c.policy))}
	messages := 2*c.turn - 1
	for at := 1; at <= messages; at++ {
		if at < 3 || at > messages-20 {
			made = append(made, fmt.Sprintf("%d:%d:%s", at, 2000+at*4000, digest(c.name, c.policy, at, c.edited)))
		}
	}
	return made
}

func digest(of ...any) string {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, of...)
	return fmt.Sprintf("%016x", hash.Sum64())
}

// exchange is one call of each of some sessions, as spans and as the log records of the same calls.
func exchange(sessions []*course) (ptrace.Traces, plog.Logs) {
	spans, logs := ptrace.NewTraces(), plog.NewLogs()
	ofSpans, ofLogs := spans.ResourceSpans().AppendEmpty(), logs.ResourceLogs().AppendEmpty()
	ofSpans.Resource().Attributes().PutStr("service.name", "agents")
	ofLogs.Resource().Attributes().PutStr("service.name", "agents")
	list, records := ofSpans.ScopeSpans().AppendEmpty().Spans(), ofLogs.ScopeLogs().AppendEmpty().LogRecords()
	for _, session := range sessions {
		attributes := session.next()
		span, record := list.AppendEmpty(), records.AppendEmpty()
		span.SetName("chat")
		span.SetTraceID(pcommon.TraceID([]byte(digest(session.name, session.turn))))
		span.SetSpanID(pcommon.SpanID([]byte(digest(session.name, session.turn)[:8])))
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(session.at))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(session.at.Add(time.Second)))
		record.SetEventName("gen_ai.client.inference.operation.details")
		if session.located {
			record.SetEventName("context_ledger.entry")
		}
		record.SetTraceID(span.TraceID())
		record.SetSpanID(span.SpanID())
		record.SetTimestamp(span.EndTimestamp())
		for _, into := range []pcommon.Map{span.Attributes(), record.Attributes()} {
			if err := into.FromRaw(attributes); err != nil {
				panic(err)
			}
		}
	}
	return spans, logs
}

// verdict is what a collector said of a call.
type verdict struct{ outcome, cause string }

// unknown says whether a collector said that it cannot know, or no more than that next to nothing was missed.
func (v verdict) unknown() bool {
	return v.cause == "previous_unknown" || v == verdict{outcome: "hit"}
}

// said is what a collector said of a call when it was told of it.
type said struct {
	call string
	verdict
}

// heard gives what a collector said of each call that it was told of, in order, by the file that it wrote. What it was
// killed at is cut off.
func (r *running) heard(t *testing.T) []said {
	t.Helper()
	file, err := os.Open(filepath.Join(r.folder, "entries.jsonl"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	defer file.Close()
	var found []said
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return found
		}
		found = append(found, read(t, line)...)
	}
}

// read gives what a line of such a file says of calls.
func read(t *testing.T, line string) []said {
	t.Helper()
	var found []said
	take := func(attrs pcommon.Map) {
		text := func(name string) string {
			value, known := attrs.Get("context_ledger." + name)
			if !known {
				return ""
			}
			return value.AsString()
		}
		found = append(found, said{text("response_id"), verdict{text("cache_outcome"), text("miss_cause")}})
	}
	if strings.HasPrefix(line, `{"resourceLogs"`) {
		logs, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs([]byte(line))
		require.NoError(t, err)
		for _, from := range logs.ResourceLogs().All() {
			for _, record := range from.ScopeLogs().At(0).LogRecords().All() {
				take(record.Attributes())
			}
		}
		return found
	}
	spans, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(line))
	require.NoError(t, err)
	for _, from := range spans.ResourceSpans().All() {
		for _, span := range from.ScopeSpans().At(0).Spans().All() {
			take(span.Attributes())
		}
	}
	return found
}

// namedIn gives the calls that are among what collectors said, each once.
func namedIn(of ...[]said) map[string]bool {
	found := map[string]bool{}
	for _, one := range of {
		for _, say := range one {
			found[say.call] = true
		}
	}
	return found
}

// single is what one collector that is told of every call says of each.
func single(t *testing.T, name string, sessions, turns int) map[string]verdict {
	t.Helper()
	alone := start(t, "agent.yaml", t.TempDir(), "--set=processors::context_ledger::state::alone=false",
		"--set=exporters::file::rotation::max_megabytes=1000")
	made := fleet(name, sessions)
	for range turns {
		spans, _ := exchange(made)
		alone.sendSpans(t, spans)
	}
	found := map[string]verdict{}
	causes := map[string]bool{}
	for _, say := range alone.heard(t) {
		found[say.call] = say.verdict
		causes[say.cause] = true
	}
	require.Len(t, found, sessions*turns)
	for _, cause := range []string{
		"", "previous_unknown", "cold_start", "model_changed", "effort_changed", "policy_changed", "history_rewritten",
		"retention_expired", "provider_unexplained",
	} {
		require.Contains(t, causes, cause, "the sessions are to have something of everything")
	}
	alone.stop(t)
	return found
}

// unlike gives by session of how many calls nobody said what a collector says that knows them all. Nothing else may be said of
// any but that it is not known.
func unlike(t *testing.T, want map[string]verdict, of ...[]said) map[string]int {
	t.Helper()
	right := map[string]bool{}
	for _, say := range slices.Concat(of...) {
		same := say.verdict == want[say.call]
		right[say.call] = right[say.call] || same
		assert.True(t, same || say.unknown(), "%s: %v, not %v", say.call, say.verdict, want[say.call])
	}
	found := map[string]int{}
	for one, known := range right {
		if !known {
			found[sessionOf(one)]++
		}
	}
	return found
}

// Calls are named by their session and which one of it they are.
func sessionOf(call string) string { return call[:strings.LastIndex(call, "-")] }

func turnOf(call string) int {
	turn, err := strconv.Atoi(call[strings.LastIndex(call, "-")+1:])
	if err != nil {
		panic(err)
	}
	return turn
}

// counted gives how many calls a collector tells to have counted.
func (r *running) counted(t *testing.T) int {
	t.Helper()
	return sum(summed(r.scrape(t), "context_ledger_calls_total", "context_ledger_cache_outcome"))
}
