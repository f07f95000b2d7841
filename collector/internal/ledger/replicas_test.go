package ledger_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/ledger"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

const (
	manySessions = 200
	manyCalls    = 15
	partitions   = 8
)

// traffic are calls of many sessions, one of each in turn. Prompts grow; now and then a pause is long, another model
// carries on, the effort changes, or the hit collapses.
func traffic() []*call.Call {
	random := rand.New(rand.NewPCG(1, 2))
	calls := make([]*call.Call, manySessions*manyCalls)
	for session := range manySessions {
		at, input, model, effort := int64(random.IntN(20)), int64(20000), "claude-x", "low"
		cached := int64(0)
		for number := range manyCalls {
			one := counted(fmt.Sprintf("session-%d", session), session*manyCalls+number, at, input, cached)
			one.Model.Requested, one.Model.Effort = model, effort
			calls[number*manySessions+session] = one
			cached, at = input, at+20
			input += int64(500 + random.IntN(3000))
			switch random.IntN(12) {
			case 0:
				at, cached = at+600, 0
			case 1:
				model, cached = fmt.Sprintf("claude-%d", number), 0
			case 2:
				effort, cached = fmt.Sprintf("effort%d", number), 0
			case 3:
				cached = 4000
			}
		}
	}
	return calls
}

func partition(session string) int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(session))
	return int(hash.Sum32() % partitions)
}

type told struct{ outcome, cause string }

func heard(calls []*call.Call, to func(at int, one *call.Call) *ledger.State) []told {
	found := make([]told, len(calls))
	for at, one := range calls {
		observe(to(at, one), one)
		found[at] = told{one.Verdict.Outcome, one.Verdict.Cause}
	}
	return found
}

// day lets no session expire, for the calls of some run ahead of those of others.
func day(o *ledger.Options) { o.Idle = 24 * time.Hour }

// moving is a replica whose sessions may have been elsewhere.
func moving(o *ledger.Options) { day(o); o.Moving = true }

func alone(t *testing.T) []told {
	single := state(t, day)
	return heard(traffic(), func(int, *call.Call) *ledger.State { return single })
}

// Two replicas among which sessions are divided say of every call what a single one says.
func TestDividedReplicas(t *testing.T) {
	replicas := []*ledger.State{state(t, day), state(t, day)}
	found := heard(traffic(), func(_ int, one *call.Call) *ledger.State { return replicas[partition(one.Task.Session)%2] })
	assert.Equal(t, alone(t), found)
}

// A replica dies, the other takes over its sessions, and it comes back with what it had saved before: of each move a
// session's first call is previous_unknown or right, its other calls are right, and none is a cold start.
func TestReplicaDiesAndComesBack(t *testing.T) {
	calls, want := traffic(), alone(t)
	died, back := len(calls)/3, 2*len(calls)/3
	kept := store{}
	replicas := []*ledger.State{state(t, moving), state(t, moving)}
	found := heard(calls, func(at int, one *call.Call) *ledger.State {
		switch at {
		case died - 100:
			_, err := replicas[1].Save(kept.put)
			require.NoError(t, err)
		case back:
			replicas[1] = state(t, moving)
			require.NoError(t, replicas[1].Load(kept.get, one.Place.Start))
		}
		if at >= died && at < back {
			return replicas[0]
		}
		return replicas[partition(one.Task.Session)%2]
	})
	moves := map[string]int{}
	for at, one := range calls {
		if found[at] != want[at] {
			moves[one.Task.Session]++
			unknown := found[at].cause == semconv.MissCausePreviousUnknown
			insignificant := found[at] == told{semconv.CacheOutcomeHit, ""}
			assert.True(t, unknown || insignificant, "call %d: %v, not %v", at, found[at], want[at])
		}
		assert.NotEqual(t, semconv.MissCauseColdStart, found[at].cause)
	}
	assert.NotEmpty(t, moves)
	for session, moved := range moves {
		assert.LessOrEqual(t, moved, 2, session)
		assert.Equal(t, 1, partition(session)%2, "a session that did not move")
	}
}

// Partitions go to the other replica and come back while both live on. By what was left out of a partition a replica sees
// that it missed calls: nothing is held against what it knew before, and each session is unknown once for each move.
func TestPartitionsComeBackToAReplicaThatLivesOn(t *testing.T) {
	calls, want := traffic(), alone(t)
	replicas := []*ledger.State{state(t, moving), state(t, moving)}
	offsets := map[int]int64{}
	found := heard(calls, func(at int, one *call.Call) *ledger.State {
		place := partition(one.Task.Session)
		replica := replicas[place%2]
		if at > len(calls)/3 && at < 2*len(calls)/3 {
			replica = replicas[0]
		}
		spot := ledger.Spot{Topic: "spans", Partition: int64(place), Offset: offsets[place]}
		offsets[place]++
		one.Place.Gap = replica.Arrived(spot)
		return replica
	})
	moves := map[string]int{}
	for at, one := range calls {
		if found[at] != want[at] {
			moves[one.Task.Session]++
			assert.Contains(t, []told{{semconv.CacheOutcomeHit, ""}, {found[at].outcome, semconv.MissCausePreviousUnknown}}, found[at])
		}
	}
	assert.NotEmpty(t, moves)
	for session, moved := range moves {
		assert.LessOrEqual(t, moved, 2, session)
		assert.Equal(t, 1, partition(session)%2, "a session that did not move")
	}
}

// Spans and log records come by a queue each, now the one first and now the other. When both come back to a replica, its
// sessions are unknown once, and not once for each queue.
func TestBothQueuesOfASessionComeBack(t *testing.T) {
	calls, twins, want := traffic(), traffic(), alone(t)
	replicas := []*ledger.State{state(t, moving), state(t, moving)}
	topics, offsets := []string{"spans", "logs"}, map[ledger.Spot]int64{}
	arrives := func(replica *ledger.State, topic string, one *call.Call) *ledger.State {
		queue := ledger.Spot{Topic: topic, Partition: int64(partition(one.Task.Session))}
		spot := queue
		spot.Offset = offsets[queue]
		offsets[queue]++
		one.Place.Gap = replica.Arrived(spot)
		return replica
	}
	first := func(at int) int { return at / manySessions % 2 }
	var replica *ledger.State
	found := heard(calls, func(at int, one *call.Call) *ledger.State {
		if at > 0 {
			observe(arrives(replica, topics[1-first(at-1)], twins[at-1]), twins[at-1])
		}
		replica = replicas[partition(one.Task.Session)%2]
		if at > len(calls)/3 && at < 2*len(calls)/3 {
			replica = replicas[0]
		}
		return arrives(replica, topics[first(at)], one)
	})
	unknown := map[string]int{}
	for at, one := range calls {
		if found[at] != want[at] {
			unknown[one.Task.Session]++
			assert.Contains(t, []told{{semconv.CacheOutcomeHit, ""}, {found[at].outcome, semconv.MissCausePreviousUnknown}}, found[at])
		}
	}
	assert.NotEmpty(t, unknown)
	for session, times := range unknown {
		assert.LessOrEqual(t, times, 2, session)
	}
}

// A session's spans and log records come to a replica by a queue each, and neither begins where the other one is. What a call
// is held against is the one before it, or nothing.
func TestQueuesThatAreNotAtOnePlace(t *testing.T) {
	for _, c := range []struct {
		why  string
		come []arrival
		want []string
	}{
		{
			"log records begin ahead of the spans: the call between was told elsewhere",
			[]arrival{{"spans", 1}, {"spans", 2}, {"logs", 4}, {"logs", 5}},
			[]string{"unknown", "1", "unknown", "4"},
		},
		{
			"log records begin behind the spans: what is late takes nothing away from what came after it",
			[]arrival{{"spans", 3}, {"spans", 4}, {"logs", 1}, {"logs", 2}, {"spans", 5}},
			[]string{"unknown", "3", "unknown", "1", "4"},
		},
		{
			"log records begin ahead, and what was known before is given up: the spans in between go on from nothing",
			[]arrival{{"spans", 1}, {"spans", 2}, {"logs", 5}, {"spans", 3}, {"spans", 4}, {"logs", 6}},
			[]string{"unknown", "1", "unknown", "unknown", "unknown", "5"},
		},
	} {
		replica := state(t, moving)
		var against []string
		for _, come := range c.come {
			against = append(against, come.to(replica))
		}
		assert.Equal(t, c.want, against, c.why)
	}
}

// A ledger that is closed keeps what it was told last, though that was a call that it knew: the log record of one whose span came
// before. The next log record goes on from it.
func TestWhatAQueueToldLastIsKept(t *testing.T) {
	made, kept := state(t, moving), store{}
	arrival{"spans", 1}.to(made)
	require.NoError(t, saved(made, kept))
	arrival{"logs", 1}.to(made)
	require.NoError(t, closed(made, kept))
	again := state(t, moving)
	require.NoError(t, again.Load(kept.get, day0))
	assert.Equal(t, "1", arrival{"logs", 2}.to(again))
}

// What a ledger said at its end is not taken for being of what came after, though a store refused to take it back.
func TestAStoreThatKeepsWhatWasSaidBefore(t *testing.T) {
	for why, end := range map[string]func(*ledger.State, store) error{
		"the ledger is closed": closed,
		"the ledger is killed": refused,
	} {
		made, kept := state(t, moving), store{}
		arrival{"spans", 1}.to(made)
		require.NoError(t, closed(made, kept))
		again := state(t, moving)
		require.NoError(t, again.Load(kept.get, day0))
		require.NoError(t, refused(again, kept))
		assert.Equal(t, "unknown", arrival{"spans", 5}.to(again), why)
		require.NoError(t, end(again, kept))
		last := state(t, moving)
		require.NoError(t, last.Load(kept.get, day0))
		assert.Equal(t, "unknown", arrival{"spans", 9}.to(last), why)
	}
}

// refused saves to a store that takes sessions, and not what is known of them all.
func refused(made *ledger.State, to store) error {
	_, err := made.Save(to.full(func(key string) bool { return key == ledger.KnownKey }))
	return whileFull(err)
}

// A ledger of before that knew of no queues may have been here in between: gaps that an earlier one heard of are then forgotten.
func TestGapsOfALedgerBeforeTheLast(t *testing.T) {
	made, kept, other := state(t, moving), store{}, store{}
	arrival{"spans", 1}.to(made)
	require.NoError(t, closed(made, kept))
	require.NoError(t, closed(state(t, moving), other))
	kept[ledger.KnownKey] = other[ledger.KnownKey]
	again := state(t, moving)
	require.NoError(t, again.Load(kept.get, day0))
	assert.Equal(t, "unknown", arrival{"spans", 9}.to(again))
}

// One call with a clock that is ahead by years is no worse for those after it behind a gap than without one.
func TestAClockThatIsAheadBehindAGap(t *testing.T) {
	after := map[int64]int{}
	for _, offset := range []int64{1, 100} {
		made := state(t, moving)
		for number := range int64(100) {
			at, opened := number, 20*number
			if number > 0 {
				at += offset - 1
			}
			if number == 1 {
				opened = 10 * 365 * 86400
			}
			one := counted("s", int(number), opened, 20_000+1000*number, 0)
			one.Place.Gap = made.Arrived(ledger.Spot{Topic: "spans", Offset: at})
			if made.Observe(one, day0.Add(time.Duration(20*number)*time.Second)).Known {
				after[offset]++
			}
		}
	}
	assert.Positive(t, after[100])
	assert.InDelta(t, after[1], after[100], 2)
}

// A log record without a time has its call begin before 1970 if it tells a duration: such calls follow one another all the same.
func TestCallsThatBeginBefore1970(t *testing.T) {
	made, epoch := state(t, asIs), time.Unix(0, 0)
	for number := range 5 {
		one := counted("s", 1+number, 0, int64(20_000+1000*number), int64(19_000+1000*number))
		one.Place.Start, one.Place.End = epoch.Add(-2*time.Second), epoch
		assert.Equal(t, number > 0, made.Observe(one, day0).Known)
	}
}

// arrival is a call of a session, and the topic in which it comes.
type arrival struct {
	topic string
	call  int
}

// to lets the call come to a replica, and gives what it was held against.
func (a arrival) to(replica *ledger.State) string {
	one := counted("s", a.call, int64(20*a.call*a.call), int64(20_000+1000*a.call), 0)
	one.Place.Gap = replica.Arrived(ledger.Spot{Topic: a.topic, Offset: int64(a.call)})
	observe(replica, one)
	return heldAgainst(one, a.call)
}

// heldAgainst gives the number of an earlier call by how long it was before a call; call n begins at second 20 n².
func heldAgainst(one *call.Call, number int) string {
	if one.Verdict.Idle == nil {
		return "unknown"
	}
	for before := range number {
		if *one.Verdict.Idle == float64(20*number*number-20*before*before-1) {
			return fmt.Sprint(before)
		}
	}
	return fmt.Sprint(*one.Verdict.Idle)
}

// A gap in a queue has a number of its own, which stays until there is another one. What was in front of a queue's first record
// is one, and so is what is passed over again; what comes again is none.
func TestGapsInQueues(t *testing.T) {
	made := state(t, asIs)
	at := func(topic string, partition, offset int64) call.Gap {
		return made.Arrived(ledger.Spot{Topic: topic, Partition: partition, Offset: offset})
	}
	spans, logs := call.Gap{Queue: 1, Number: 1}, call.Gap{Queue: 2, Number: 2}
	assert.Equal(t, []call.Gap{spans, logs, spans, spans}, []call.Gap{
		at("spans", 3, 7), at("logs", 3, 9), at("spans", 3, 8), at("spans", 3, 7),
	})
	passed := call.Gap{Queue: 1, Number: 3}
	assert.Equal(t, []call.Gap{passed, passed, passed}, []call.Gap{at("spans", 3, 19), at("spans", 3, 12), at("spans", 3, 13)})
	assert.Equal(t, call.Gap{Queue: 1, Number: 4}, at("spans", 3, 20), "14 to 19 may have been read by others")
	assert.Equal(t, logs, at("logs", 3, 10), "another topic")
	assert.Equal(t, call.Gap{Queue: 3, Number: 5}, at("spans", 4, 50), "another partition")
}

// A record of a call that comes when the session has had so many others that its name is forgotten is not judged by what
// came after it, and a process's cold start in it is none.
func TestCallThatIsToldAgainWhenItsNameIsForgotten(t *testing.T) {
	made := state(t, asIs)
	for number := range 60 {
		observe(made, located(counted("s", number, int64(20*number), int64(20000+1000*number), int64(20000+1000*(number-1))), 2*number+1))
	}
	late := located(counted("s", 100, 200, 30000, 0), 21)
	late.Verdict = call.Verdict{Outcome: semconv.CacheOutcomeCold, Cause: semconv.MissCauseColdStart}
	late.Origin.EntryID = "e-10"
	observe(made, late)
	assert.Equal(t, call.Said{Outcome: semconv.CacheOutcomeCold, Cause: semconv.MissCauseColdStart}, late.Process)
	assert.Equal(t, semconv.MissCausePreviousUnknown, late.Verdict.Cause)
	next := counted("s", 61, 1300, 81000, 80000)
	assert.True(t, observe(made, next).Known, "what came last is still what the next one goes on from")
}

// Replicas to which calls come in turn blame nothing that they cannot know.
func TestReplicasInTurn(t *testing.T) {
	split := func(o *ledger.Options) { day(o); o.Split = true }
	replicas := []*ledger.State{state(t, split), state(t, split)}
	want := alone(t)
	found := heard(traffic(), func(at int, _ *call.Call) *ledger.State { return replicas[(at/manySessions+at)%2] })
	unknown := 0
	for at := range found {
		if found[at] == want[at] {
			continue
		}
		unknown++
		assert.Equal(t, semconv.MissCausePreviousUnknown, found[at].cause, "call %d: %v, not %v", at, found[at], want[at])
	}
	assert.Less(t, unknown, len(found)*2/3)
}

// What is held of a session does not grow with its calls.
func TestMemoryOfASessionIsFlat(t *testing.T) {
	made := state(t, asIs)
	sizes := []int64{}
	for at := range 300 {
		observe(made, counted("s", at, int64(at), int64(20000+100*at), int64(20000+100*(at-1))))
		sizes = append(sizes, made.Stats().Bytes)
	}
	assert.Equal(t, sizes[100], sizes[299])
}

// located gives a call the locator and the digests of one with so many messages.
func located(one *call.Call, messages int) *call.Call {
	length := int64(messages)
	one.Context.HistoryLength = &length
	for at := range 24 {
		before := int64(messages - at)
		boundary := call.Boundary{Messages: before, Bytes: 1000 * before, Digest: fmt.Sprintf("%016x", at)}
		one.Context.Locator = append(one.Context.Locator, boundary)
	}
	return one
}

// A session takes about as many bytes as it is counted with, told by counts alone and by a locator.
func BenchmarkSessions(b *testing.B) {
	for name, told := range map[string]func(*call.Call) *call.Call{
		"counters": func(one *call.Call) *call.Call { return one },
		"locator":  func(one *call.Call) *call.Call { return located(one, 60) },
	} {
		b.Run(name, func(b *testing.B) {
			made := state(b, func(o *ledger.Options) { o.Sessions, o.Bytes = 1<<30, 1<<40 })
			before := heap()
			for at := range b.N {
				observe(made, told(counted(fmt.Sprintf("session-%d", at), at, 0, 20000, 0)))
			}
			b.ReportMetric(float64(made.Stats().Bytes)/float64(b.N), "counted/session")
			b.ReportMetric(float64(heap()-before)/float64(b.N), "heap/session")
			runtime.KeepAlive(made)
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var found runtime.MemStats
	runtime.ReadMemStats(&found)
	return found.HeapAlloc
}

// A call of a known session that told counts alone.
func BenchmarkCounters(b *testing.B) {
	made := state(b, asIs)
	for at := range b.N {
		one := counted("s", at, int64(at), int64(20000+at), int64(20000+at-1))
		made.Observe(one, day0.Add(time.Duration(at)*time.Second))
	}
}

// A call of a known session that told a locator.
func BenchmarkLocator(b *testing.B) {
	made, first := state(b, asIs), located(counted("s", 0, 0, 20000, 0), 60)
	for at := range b.N {
		one := counted("s", at, int64(at), int64(20000+at), int64(20000+at-1))
		one.Context = first.Context
		made.Observe(one, day0.Add(time.Duration(at)*time.Second))
	}
}
