package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/identity"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/ledger"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// sent is a request that one change is made to.
type sent struct {
	system   string
	tools    []string
	messages []string
	model    string
	effort   string
	pause    time.Duration
	// read is how much of the earlier prompt the provider read.
	read int64
}

const whole = 20000

func first() sent {
	return sent{
		system: "You fix tests. Never push. Now: 10:00:01", tools: []string{"read", "write"}, model: "claude-x",
		messages: []string{"Fix the login.", "I look at it.", "Go on.", "I found it.", "And?"}, pause: time.Minute, read: whole,
	}
}

func (s sent) request() segments.Request {
	object := func(name, text string) canonical.Object {
		return canonical.Object{{Name: name, Value: text}, {Name: "content", Value: strings.Repeat(text+" ", 20)}}
	}
	system := object("role", "system").With("content", s.system)
	request := segments.Request{Model: s.model, Effort: s.effort, System: []any{system}}
	for _, tool := range s.tools {
		request.Tools = append(request.Tools, canonical.Object{{Name: "name", Value: tool}})
	}
	for at, text := range s.messages {
		message := object("id", text).Without("id").With("role", []string{"user", "assistant"}[at%2])
		request.Messages = append(request.Messages, message)
	}
	return request
}

// views are the ways in which one call can be told of.
var views = map[string]func(*call.Call, segments.Request){
	ledger.ByCounters: func(*call.Call, segments.Request) {},
	ledger.ByContent: func(one *call.Call, request segments.Request) {
		one.Content = &call.Content{
			Tools: written(request.Tools), System: written(request.System), Messages: written(request.Messages),
		}
	},
	ledger.ByLocator: func(one *call.Call, request segments.Request) {
		outline := segments.Cut(request)
		one.Context = context(identity.NewIdentifier().Identify(request, outline, "anthropic", ""))
		one.Context.Locator = outline.Locate(canonical.Exporter{})
		one.Origin = call.Origin{EntryID: one.Request.ResponseID, DigestScheme: "xxh3"}
		one.Verdict = call.Verdict{Outcome: semconv.CacheOutcomeCold, Cause: semconv.MissCauseColdStart}
	},
}

func written(values []any) [][]byte {
	parts := [][]byte{}
	for _, value := range values {
		parts = append(parts, canonical.Wire(value))
	}
	return parts
}

// said is what one change between two calls is called in each view.
type said struct {
	change                     func(*sent)
	content, locator, counters string
}

var changes = map[string]said{
	"nothing, and all was read": {func(*sent) {}, "", "", ""},
	"nothing, and nothing was read": {
		func(s *sent) { s.read = 0 },
		semconv.MissCauseProviderUnexplained, semconv.MissCauseProviderUnexplained, semconv.MissCausePreviousUnknown,
	},
	"a rule": {
		func(s *sent) { s.system, s.read = strings.Replace(s.system, "Never", "Always", 1), 0 },
		semconv.MissCausePolicyChanged, semconv.MissCausePolicyChanged, semconv.MissCausePreviousUnknown,
	},
	"a clock": {
		func(s *sent) { s.system, s.read = strings.Replace(s.system, ":01", ":41", 1), 0 },
		semconv.MissCauseVolatilePrefix, semconv.MissCauseVolatilePrefix, semconv.MissCausePreviousUnknown,
	},
	"one tool more": {
		func(s *sent) { s.tools, s.read = append(s.tools, "grep"), 0 },
		semconv.MissCauseToolsChanged, semconv.MissCauseToolsChanged, semconv.MissCausePreviousUnknown,
	},
	"tools in another order": {
		func(s *sent) { s.tools, s.read = []string{"write", "read"}, 0 },
		semconv.MissCauseToolsReordered, semconv.MissCauseToolsReordered, semconv.MissCausePreviousUnknown,
	},
	"an earlier message": {
		func(s *sent) { s.messages[1], s.read = "I looked.", 9000 },
		semconv.MissCauseHistoryRewritten, semconv.MissCauseHistoryRewritten, semconv.MissCausePreviousUnknown,
	},
	"a summary in the place of messages": {
		func(s *sent) {
			summary := "This session is being continued from a previous conversation that ran out."
			s.messages, s.read = append([]string{summary}, s.messages[3:]...), 4000
		},
		semconv.MissCauseHistoryCompacted, semconv.MissCauseHistoryRewritten, semconv.MissCausePreviousUnknown,
	},
	"the model": {
		func(s *sent) { s.model, s.read = "claude-y", 0 },
		semconv.MissCauseModelChanged, semconv.MissCauseModelChanged, semconv.MissCauseModelChanged,
	},
	"the effort": {
		func(s *sent) { s.effort, s.read = "high", 0 },
		semconv.MissCauseEffortChanged, semconv.MissCauseEffortChanged, semconv.MissCauseEffortChanged,
	},
	"a pause": {
		func(s *sent) { s.pause, s.read = time.Hour/2, 0 },
		semconv.MissCauseRetentionExpired, semconv.MissCauseRetentionExpired, semconv.MissCauseRetentionExpired,
	},
}

// What each view says of one change between two calls. Text tells all; digests and locators tell which part and where;
// counts tell what was reported and timed, and leave the rest open.
func TestWhatEachViewSays(t *testing.T) {
	for name, one := range changes {
		for view, want := range map[string]string{
			ledger.ByContent: one.content, ledger.ByLocator: one.locator, ledger.ByCounters: one.counters,
		} {
			t.Run(name+" by "+view, func(t *testing.T) {
				assert.Equal(t, want, second(t, view, one.change).Verdict.Cause)
			})
		}
	}
}

// second gives the second of two calls, judged by the first one.
func second(t *testing.T, view string, change func(*sent)) *call.Call {
	before, now := first(), first()
	before.effort, now.effort = "low", "low"
	now.messages = append(slices.Clone(now.messages), "It is done.", "Thanks, and now the logout.")
	change(&now)
	made := state(t, asIs)
	earlier, later := before.call(view, 1, 0), now.call(view, 2, now.pause)
	*earlier.Usage.CacheRead = 0
	made.Observe(earlier, earlier.Place.End)
	seen := made.Observe(later, later.Place.End)
	assert.Equal(t, view, seen.View)
	return later
}

func (s sent) call(view string, number int, after time.Duration) *call.Call {
	input, read, began := int64(whole+2000*(number-1)), s.read, day0.Add(after)
	one := &call.Call{
		Place: call.Place{Start: began, End: began.Add(time.Second), Span: pcommon.SpanID([8]byte{byte(number)})},
		Task:  call.Task{Session: "s", SessionSource: semconv.SessionSourceConversationID},
		Model: call.Model{Surface: "anthropic", Provider: "anthropic", Requested: s.model, Effort: s.effort},
		Usage: call.Usage{Input: &input, CacheRead: &read}, Request: call.Request{ResponseID: fmt.Sprint("r", number)},
	}
	views[view](one, s.request())
	return one
}
