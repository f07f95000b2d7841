package ledger

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/observed"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/prompts"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/recent"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/traces"
)

// Shards is in how many parts sessions are kept, each with a lock of its own, and each saved by itself. A session's shard
// goes by its name alone, so that it is the same in every process.
const Shards = 64

// maxBranches is how many calls are kept of a session: the last one of each of its branches.
const maxBranches = 8

// maxTold is of how many names of calls and answers a session remembers that they were told.
const maxTold = 32

// sessionOverhead is about how many bytes a session holds beside its calls and its name.
const sessionOverhead = 256

// record is what is kept of one session. Whole says that it was seen from its first call on, Compacted that its history
// was told to be compacted since the last call of its agent, Partial that the provider keeps its history, so that captured
// requests are not whole. Seen is when it was told of last.
//
// Told are names of the last calls, Ends when these ended, and Forgotten is when the latest one ended whose names are not
// among them any more, in seconds since the epoch: who ended no later may be told of again. A log record tells no more than
// its end. Heard are the queues that told of it. Since is when the call began before which nothing is known, for calls may have
// gone elsewhere.
type record struct {
	Name      string
	Branches  []*traces.Trace
	Whole     bool
	Compacted bool
	Partial   bool
	Told      []traces.Part
	Ends      []uint32
	Forgotten uint32
	Seen      time.Time
	Heard     gaps
	Since     float64
	size      int64
	// loaded says that calls that come by no queue may have gone elsewhere since the record was saved.
	loaded bool
}

// maxLate is by how many seconds a record of a call may say that it began after another one says that it ended: a log record
// tells its end alone.
const maxLate = 3

// knows says whether a call was told of before, as far as its names are remembered. One that began after another one with the
// same answer was over is another call: a gateway gave the answer again.
func (r *record) knows(named traces.Names, opened float64) bool {
	sought := named.Sought()
	for _, name := range sought.All() {
		for at, told := range r.Told {
			if told == name && (name != named.Answer() || at >= len(r.Ends) || opened <= float64(r.Ends[at])+maxLate) {
				return true
			}
		}
	}
	return false
}

// moved says whether calls of a session may have gone elsewhere before one that came behind a gap.
func (r *record) moved(last call.Gap) bool {
	if last.Number == 0 {
		return r.loaded
	}
	return !r.Heard.behind(last)
}

// repeats says whether a record tells of a call that was told of before, and if so, that its queue tells of the session.
func (r *record) repeats(c *call.Call, named traces.Names, opened float64) bool {
	if !r.knows(named, opened) {
		return false
	}
	r.Heard.hear(c.Place.Gap)
	return true
}

// tell notes that a call of a name was told of.
func (r *record) tell(name traces.Part, closed float64) {
	if len(r.Told) == maxTold && len(r.Ends) == maxTold {
		r.Forgotten = max(r.Forgotten, r.Ends[0])
	}
	r.Told, r.Ends = moved(r.Told, name), moved(r.Ends, uint32(closed))
}

// moved is a list with one more, in the place of the first one where there is no more room.
func moved[T any](items []T, one T) []T {
	if len(items) == maxTold {
		items = items[:copy(items, items[1:])]
	}
	return append(items, one)
}

// misses says whether a call that is not known may have been told of before, or may go on from one that is not kept.
func (r *record) misses(trace *traces.Trace) bool {
	return r.Forgotten > 0 && uint32(trace.Closed) <= r.Forgotten || r.Since != 0 && trace.Opened < r.Since
}

func (r *record) weigh() int64 {
	size := sessionOverhead + len(r.Name) + 8*len(r.Told) + 4*len(r.Ends)
	for _, branch := range r.Branches {
		size += branch.Size()
	}
	return int64(size)
}

type shard struct {
	mu       sync.Mutex
	sessions *recent.Map[string, *record]
	changed  bool
	// due is until when no session is idle for too long.
	due time.Time
	// lent is by how many calls of sessions are read that do not hold the lock: then they must not be written over.
	lent int
}

// State holds the sessions of a collector. All of its methods may be called at once.
type State struct {
	options Options
	export  canonical.Exporter
	shards  [Shards]shard
	ends    ends
	room    traces.Room
	counts  counters
	// blind is until when, in Unix nanoseconds, a session that is not known may be one that was forgotten, or lived before
	// this ledger did.
	blind atomic.Int64
	// saved is what was saved last of that.
	saved atomic.Value

	// Whoever holds a shard may take the locks below, and not the other way round.
	verdicts verdicts
	queues   queues
	captured struct {
		mu      sync.Mutex
		prompts *prompts.Prompts
	}
	seen struct {
		mu     sync.Mutex
		caches *observed.Observations
	}
}

type counters struct {
	sessions, bytes                                       atomic.Int64
	evicted, expired, repeated, late, lostShards, unnamed atomic.Int64
}

// Stats are counts since the state was made, but for Sessions, Bytes and CapturedBytes, which are held now.
type Stats struct {
	Sessions      int64
	Bytes         int64
	CapturedBytes int64
	// Evicted are sessions that were forgotten for want of room, Expired those that were idle.
	Evicted int64
	Expired int64
	// Repeated are calls that were told of again, Late those that came when only later ones were known, Unnamed those that
	// named no session.
	Repeated int64
	Late     int64
	Unnamed  int64
	// LostShards are parts of a snapshot that could not be read.
	LostShards int64
}

// New makes a state that has seen nothing. An error says what is wrong with the options.
func New(options Options, now time.Time) (*State, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	s := &State{options: options, export: options.exporter()}
	for at := range s.shards {
		s.shards[at].sessions = recent.New[string, *record]()
	}
	s.captured.prompts = prompts.New(options.Lore, options.Sessions, max(1, options.CapturedBytes))
	s.seen.caches = observed.New()
	s.blind.Store(now.Add(options.Idle).UnixNano())
	return s, nil
}

// Stats are how the state fares.
func (s *State) Stats() Stats {
	s.captured.mu.Lock()
	captured := s.captured.prompts.Bytes()
	s.captured.mu.Unlock()
	c := &s.counts
	return Stats{
		Sessions: c.sessions.Load(), Bytes: c.bytes.Load(), CapturedBytes: int64(captured), Evicted: c.evicted.Load(),
		Expired: c.expired.Load(), Repeated: c.repeated.Load(), Late: c.late.Load(), Unnamed: c.unnamed.Load(),
		LostShards: c.lostShards.Load(),
	}
}

func place(session string) uint64 { return xxh3.HashString(session) % Shards }

func (s *State) shard(session string) *shard { return &s.shards[place(session)] }

// known gives a session's record, or one that is not held yet.
func (h *shard) known(session string) (*record, bool) {
	found, ok := h.sessions.Get(session)
	if !ok {
		found = &record{Name: session}
	}
	return found, ok
}

// keep holds a record that was changed, and makes room for it.
func (s *State) keep(h *shard, kept *record, now time.Time) {
	kept.Seen = now
	size := kept.weigh()
	s.counts.bytes.Add(size - kept.size)
	kept.size = size
	if held := h.sessions.Put(kept.Name, kept); !held {
		s.counts.sessions.Add(1)
	}
	h.changed = true
	s.expire(h, now)
	s.evict(h, now)
}

// evict makes room by forgetting the sessions of a shard that were told of least recently. With one session in it a shard
// keeps that, so that the bounds can be passed by one session a shard.
func (s *State) evict(h *shard, now time.Time) {
	over := func() bool {
		return s.counts.sessions.Load() > int64(s.options.Sessions) || s.counts.bytes.Load() > s.options.Bytes
	}
	for h.sessions.Len() > 1 && over() {
		_, oldest, _ := h.sessions.Oldest()
		s.forget(h, oldest)
		s.counts.evicted.Add(1)
		s.blind.Store(now.Add(s.options.Idle).UnixNano())
	}
}

func (s *State) expire(h *shard, now time.Time) {
	for now.After(h.due) {
		_, oldest, held := h.sessions.Oldest()
		if !held {
			return
		}
		if h.due = oldest.Seen.Add(s.options.Idle); !now.After(h.due) {
			return
		}
		s.forget(h, oldest)
		s.counts.expired.Add(1)
	}
}

func (s *State) forget(h *shard, gone *record) {
	h.sessions.Delete(gone.Name)
	h.changed = true
	s.counts.sessions.Add(-1)
	s.counts.bytes.Add(-gone.size)
	for _, branch := range gone.Branches {
		s.ends.leave(gone.Name, branch)
	}
	s.captured.mu.Lock()
	defer s.captured.mu.Unlock()
	s.captured.prompts.Forget(gone.Name)
}

// Sweep forgets every session that has been idle for too long. A call does so for its own shard.
func (s *State) Sweep(now time.Time) {
	for at := range s.shards {
		h := &s.shards[at]
		h.mu.Lock()
		s.expire(h, now)
		h.mu.Unlock()
	}
}
