package ledger_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/ledger"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

var rebalances = flag.Uint64("rebalances", 60, "how many tiers TestRebalances tries")

const (
	replicas = 3
	queues   = 2 * parted
	parted   = 4
	// fetched is how many records a replica is given at once, at most.
	fetched = 5
	// unready is how far a queue may be read behind the other one of its sessions, in calls of a session.
	unready = 6
)

// agent is a session that is under way: every second one tells a locator, and what changes is seen by it.
type agent struct {
	name          string
	located       bool
	turn, changed int
	at, input     int64
	model         string
}

// next gives what makes the agent's next call, anew for each record of it.
func (a *agent) next(random *rand.Rand) func() *call.Call {
	a.turn++
	cached := a.input
	a.input += int64(500 + random.IntN(3000))
	a.at += 20
	switch random.IntN(8) {
	case 0:
		a.at, cached = a.at+600, 0
	case 1:
		a.model, cached = fmt.Sprint("claude-", a.turn), 0
	case 2:
		a.changed, cached = a.turn, cached/4
	case 3:
		cached = 0
	}
	if a.turn == 1 {
		cached = 0
	}
	now := *a
	return func() *call.Call { return now.call(cached) }
}

func (a *agent) call(cached int64) *call.Call {
	one := counted(a.name, numbered(a.name)<<8+a.turn, a.at, a.input, cached)
	one.Model.Requested = a.model
	if !a.located {
		return one
	}
	length := int64(2*a.turn - 1)
	one.Context.HistoryLength = &length
	for at := int64(0); at <= length; at++ {
		hash := fnv.New64a()
		_, _ = fmt.Fprint(hash, a.name, at, min(at, 1)*int64(a.changed))
		one.Context.Locator = append(one.Context.Locator, call.Boundary{
			Messages: at, Bytes: 2000 + 4000*at, Digest: fmt.Sprintf("%016x", hash.Sum64()),
		})
	}
	return one
}

// log is a partition of a topic: its records, how far its readers have told it that they are, who reads it, and how far.
type log struct {
	spot      ledger.Spot
	records   []func() *call.Call
	committed int
	owner     int
	next      int
}

// tier are replicas among which the logs are dealt out, and what they said of calls.
type tier struct {
	t        *testing.T
	random   *rand.Rand
	replicas []*ledger.State
	kept     []store
	logs     []*log
	moves    []int
	said     map[string][]held
}

// held is what was said of a call, and for how long nothing had been sent before it, which tells what it was held against.
type held struct {
	told
	idle float64
}

func saidOf(one *call.Call) held {
	made := held{told{one.Verdict.Outcome, one.Verdict.Cause}, -1}
	if one.Verdict.Idle != nil {
		made.idle = *one.Verdict.Idle
	}
	return made
}

func (h held) unknown() bool {
	return h.cause == semconv.MissCausePreviousUnknown || h.told == told{semconv.CacheOutcomeHit, ""} && h.idle < 0
}

func newTier(t *testing.T, seed uint64) *tier {
	made := &tier{t: t, random: rand.New(rand.NewPCG(seed, 3)), moves: make([]int, parted), said: map[string][]held{}}
	for range replicas {
		made.replicas = append(made.replicas, state(t, moving))
		made.kept = append(made.kept, store{})
	}
	for at := range queues {
		spot := ledger.Spot{Topic: []string{"spans", "logs"}[at/parted], Partition: int64(at % parted)}
		made.logs = append(made.logs, &log{spot: spot, owner: made.random.IntN(replicas)})
	}
	return made
}

// read gives the owner of a log its next records. It tells the log that it read them, unless it dies or is stopped meanwhile.
func (f *tier) read(from *log, told bool) {
	for many := 1 + f.random.IntN(fetched); many > 0 && from.next < len(from.records); many-- {
		one := from.records[from.next]()
		spot := from.spot
		spot.Offset = int64(from.next)
		from.next++
		one.Place.Gap = f.replicas[from.owner].Arrived(spot)
		if !f.replicas[from.owner].Observe(one, one.Place.End).Repeated {
			name := fmt.Sprint(one.Task.Session, "/", one.Place.Span)
			f.said[name] = append(f.said[name], saidOf(one))
		}
	}
	if told {
		from.committed = from.next
	}
}

// move gives a log to a replica, which reads on where the log was told that it is read to.
func (f *tier) move(at *log, to int) {
	at.owner, at.next = to, at.committed
	f.moves[at.spot.Partition]++
}

// die begins a replica anew with what it had saved; its logs stay with it or go to others.
func (f *tier) die(replica int) {
	f.replicas[replica] = state(f.t, moving)
	require.NoError(f.t, f.replicas[replica].Load(f.kept[replica].get, day0))
	stays := f.random.IntN(2) == 0
	for _, at := range f.logs {
		if at.owner != replica {
			continue
		}
		to := replica
		if !stays {
			to = f.random.IntN(replicas)
		}
		f.move(at, to)
	}
}

// restart stops a replica and begins it anew with what it had saved at its end. Its logs stay with it.
func (f *tier) restart(replica int) {
	_, err := f.replicas[replica].Close(f.kept[replica].put)
	require.NoError(f.t, err)
	f.replicas[replica] = state(f.t, moving)
	require.NoError(f.t, f.replicas[replica].Load(f.kept[replica].get, day0))
	_, err = f.replicas[replica].Save(f.kept[replica].put)
	require.NoError(f.t, err)
	for _, at := range f.logs {
		if at.owner == replica {
			at.next = at.committed
		}
	}
}

// lingers gives a log to a replica while its reader, which is taken for dead, reads on for a while.
func (f *tier) lingers(at *log) {
	late := *at
	f.move(at, f.random.IntN(replicas))
	for range 3 {
		f.read(at, true)
		f.read(&late, false)
	}
}

// happens lets something happen to the tier, most times that a log is read.
func (f *tier) happens() {
	at := f.logs[f.random.IntN(queues)]
	switch f.random.IntN(60) {
	case 0:
		f.read(at, false)
		f.move(at, f.random.IntN(replicas))
	case 1:
		f.move(at, f.random.IntN(replicas))
	case 2:
		_, err := f.replicas[at.owner].Save(f.kept[at.owner].put)
		require.NoError(f.t, err)
	case 3:
		f.read(at, false)
		f.die(at.owner)
	case 4:
		f.lingers(at)
	case 5:
		f.read(at, false)
		f.restart(at.owner)
	default:
		f.read(at, true)
	}
}

// Logs of two topics are dealt out anew to replicas again and again, each by itself; replicas die and begin anew with what they
// had saved, or are stopped and begin anew, or are given what they have read before. Of each call a replica says what one that is told of every call says, or
// that it cannot be known.
func TestRebalances(t *testing.T) {
	for seed := range *rebalances {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { rebalanced(t, seed) })
	}
}

func rebalanced(t *testing.T, seed uint64) {
	fleet, single := newTier(t, seed), state(t, moving)
	want := map[string]held{}
	agents := make([]*agent, 12)
	for number := range agents {
		agents[number] = &agent{name: fmt.Sprint("agent-", number), located: number%2 == 1, input: 20_000, model: "claude-x"}
	}
	for range 40 {
		for number, one := range agents {
			made := one.next(fleet.random)
			known := made()
			single.Observe(known, known.Place.End)
			want[fmt.Sprint(known.Task.Session, "/", known.Place.Span)] = saidOf(known)
			fleet.logs[number%parted].records = append(fleet.logs[number%parted].records, made)
			fleet.logs[parted+number%parted].records = append(fleet.logs[parted+number%parted].records, made)
		}
		for range 12 {
			fleet.happens()
		}
		fleet.catchUp(unready * len(agents) / parted)
	}
	fleet.catchUp(0)
	fleet.hold(want)
}

// catchUp reads each log until no more than so many records are left of it.
func (f *tier) catchUp(left int) {
	for _, at := range f.logs {
		for len(at.records)-at.next > left {
			f.read(at, true)
		}
	}
}

// hold compares what was said of each call, by whichever replica, with what is right. Of how many calls of a session nobody knew
// that is no more than its logs moved.
func (f *tier) hold(want map[string]held) {
	unknown := map[string]int{}
	for name, right := range want {
		assert.NotEmpty(f.t, f.said[name], "%s was lost", name)
		for _, say := range f.said[name] {
			assert.True(f.t, say == right || say.unknown(), "%s: %v, not %v", name, say, right)
		}
		if session, _, _ := strings.Cut(name, "/"); !slices.Contains(f.said[name], right) {
			unknown[session]++
		}
	}
	for session, calls := range unknown {
		assert.LessOrEqual(f.t, calls, f.moves[numbered(session)%parted], session)
	}
}

func numbered(session string) int {
	number, err := strconv.Atoi(strings.TrimPrefix(session, "agent-"))
	if err != nil {
		panic(err)
	}
	return number
}
