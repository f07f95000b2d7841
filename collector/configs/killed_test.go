package configs

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// most is how many calls a session has at most while ledgers go and come back.
const most = 250

// moves is how often the sessions of the ledger that is killed go to another one.
const moves = 3

// A ledger is killed while calls come in and stays away until the other one has its sessions; comes back and takes them over;
// and is killed once more, so that they go to one that knew them long ago.
//
// No call is lost. Of each nothing is said but what a single ledger says, or that it cannot be known; that is so once for each
// move of a session, and never of one that does not move. Counted twice, and missing from the sums of the killed ledger, can be
// what came after calls stopped for a moment; where nobody is killed, what had not come to an end when the ledger began.
func TestLedgerIsKilledInTraffic(t *testing.T) {
	tier := newTier(t, "--set=receivers::kafka/traces::session_timeout=6s", "--set=receivers::kafka/logs::session_timeout=6s")
	want := single(t, "session-", sessions, most)
	traffic := tier.flow(t)
	stays, goes := tier.ledgers[0], tier.ledgers[1]
	traffic.until(t, 6)
	first := traffic.kill(t, goes, sum(tier.warm[1]))
	own := ofSessions(stays.calls(t))
	traffic.goesTo(t, stays, sessions)
	before := stays.calls(t)
	back := tier.ledger(t, "b", goes.folder)
	traffic.goesTo(t, back, sessions-len(own))
	second := traffic.kill(t, back, 0)
	seen := len(stays.calls(t))
	require.Eventually(t, func() bool {
		return len(ofSessions(stays.calls(t)[seen:])) == sessions
	}, time.Minute, 100*time.Millisecond)
	sent := traffic.end()
	require.Less(t, sent, most, "calls came all the time")
	tier.ledgers, tier.warm = tier.ledgers[:1], tier.warm[:1]
	require.Eventually(t, func() bool {
		return len(namedIn(stays.calls(t), first.said, second.said)) == sessions*sent
	}, time.Minute, 100*time.Millisecond, "no call is lost")
	tier.quiet(t)

	heard := stays.calls(t)
	assert.Equal(t, len(namedIn(heard)), stays.counted(t)-sum(tier.warm[0]))
	unknown := unlike(t, want, heard, first.said, second.said)
	assert.LessOrEqual(t, sum(unknown), moves*(sessions-len(own)))
	for session, calls := range unknown {
		assert.False(t, own[session], "%s never moved", session)
		// Its spans move by themselves, and so do its log records.
		assert.LessOrEqual(t, calls, 2*moves, session)
	}
	again := [][]string{both(first.said, heard), both(second.said, heard[seen:]), both(heard[:seen], second.said)}
	for at, one := range []killed{first, second} {
		assert.GreaterOrEqual(t, one.told, len(one.until(one.still)), "what it told")
		for _, call := range again[at] {
			assert.Greater(t, turnOf(call), one.still, "%s is counted twice", call)
		}
	}
	ended := twice(before)
	for _, call := range again[2] {
		assert.False(t, ended[call], "%s is counted twice", call)
	}
	t.Logf("%d calls; %d sessions moved three times: %d calls unknown; killed: %d and %d calls counted twice, %d and %d not told; added: %d counted twice",
		sessions*sent, sessions-len(own), sum(unknown), len(again[0]), len(again[1]), first.lost(), second.lost(), len(again[2]))
}

// flow is a fleet whose calls go through a tier until it is ended, turn after turn.
type flow struct {
	held  sync.Mutex
	turns atomic.Int64
	over  atomic.Bool
	done  chan struct{}
}

func (r *tier) flow(t *testing.T) *flow {
	t.Helper()
	made := &flow{done: make(chan struct{})}
	t.Cleanup(func() { made.end() })
	go func() {
		defer close(made.done)
		sessions := fleet("session-", sessions)
		for made.turn() < most && !made.over.Load() && !t.Failed() {
			r.round(t, made, sessions)
		}
	}()
	return made
}

// round sends one call of each session, a few sessions a batch.
func (r *tier) round(t *testing.T, of *flow, sessions []*course) {
	of.held.Lock()
	defer of.held.Unlock()
	for batch := range slices.Chunk(sessions, 25) {
		spans, logs := exchange(batch)
		r.gateway.sendSpans(t, spans)
		r.gateway.sendLogs(t, logs)
	}
	of.turns.Add(1)
	time.Sleep(100 * time.Millisecond)
}

func (f *flow) turn() int { return int(f.turns.Load()) }

// until waits until every session has had so many calls.
func (f *flow) until(t *testing.T, turn int) {
	t.Helper()
	require.Eventually(t, func() bool { return f.turn() >= turn }, time.Minute, 10*time.Millisecond)
}

// goesTo waits until a ledger was told of so many sessions, and then for some turns more.
func (f *flow) goesTo(t *testing.T, to *running, sessions int) {
	t.Helper()
	require.Eventually(t, func() bool {
		return len(ofSessions(to.calls(t))) == sessions
	}, time.Minute, 100*time.Millisecond)
	f.until(t, f.turn()+5)
}

// hold lets no call come until something is so, and gives how many each session had had by then.
func (f *flow) hold(t *testing.T, is func(turn int) bool) int {
	t.Helper()
	f.held.Lock()
	defer f.held.Unlock()
	require.Eventually(t, func() bool { return is(f.turn()) }, time.Minute, 100*time.Millisecond)
	return f.turn()
}

// end lets the turn that is on its way be the last one, and gives how many there were.
func (f *flow) end() int {
	f.over.Store(true)
	<-f.done
	return f.turn()
}

// killed is a ledger that was: what it said of calls, and how many it had told to have counted when it was asked last. Before
// the turn after `still` it had answered for everything that was sent.
type killed struct {
	said  []said
	told  int
	still int
}

// kill holds the calls until a ledger has told of all that it got, and kills it when more came since, both ways.
func (f *flow) kill(t *testing.T, run *running, warm int) killed {
	t.Helper()
	still := f.hold(t, func(turn int) bool {
		heard := run.calls(t)
		now := slices.DeleteFunc(slices.Clone(heard), func(say said) bool { return turnOf(say.call) != turn })
		return len(twice(now)) == len(ofSessions(heard)) && run.counted(t)-warm == len(namedIn(heard))
	})
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(twice(run.calls(t)))), func(call string) bool { return turnOf(call) > still })
	}, time.Minute, time.Millisecond)
	told := run.counted(t) - warm
	run.kill(t)
	made := killed{run.calls(t), told, still}
	require.NoError(t, os.Remove(filepath.Join(run.folder, "entries.jsonl")))
	return made
}

// until gives the calls up to a turn.
func (k killed) until(turn int) []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(namedIn(k.said))), func(call string) bool { return turnOf(call) > turn })
}

// lost is how many calls it had counted and not told of.
func (k killed) lost() int { return len(namedIn(k.said)) - k.told }

// twice are the calls of which both the span and the log record came.
func twice(heard []said) map[string]bool {
	times := map[string]int{}
	for _, say := range heard {
		times[say.call]++
	}
	found := map[string]bool{}
	for call, many := range times {
		if many > 1 {
			found[call] = true
		}
	}
	return found
}

// both gives the calls that two ledgers were told of.
func both(one, other []said) []string {
	known := namedIn(other)
	return slices.DeleteFunc(slices.Collect(maps.Keys(namedIn(one))), func(call string) bool { return !known[call] })
}

func ofSessions(heard []said) map[string]bool {
	found := map[string]bool{}
	for _, say := range heard {
		found[sessionOf(say.call)] = true
	}
	return found
}

// calls gives what a ledger said of the fleet's calls.
func (r *running) calls(t *testing.T) []said {
	t.Helper()
	return slices.DeleteFunc(r.heard(t), func(say said) bool { return !strings.HasPrefix(say.call, "session-") })
}
