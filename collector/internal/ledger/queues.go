package ledger

import (
	"sync"
	"sync/atomic"
	"time"
)

// Spot is where in a partition of a topic a record stood.
type Spot struct {
	Topic     string
	Partition int64
	Offset    int64
}

// maxQueues is of how many partitions the place is known: more than brokers have of two topics.
const maxQueues = 16_384

// moveTime is for how long what topics leave out of one partition is one move: a session's spans and its log records come
// by two of them, which go to another ledger and come back within moments of each other.
const moveTime = time.Minute

// queues know how far each partition of a topic was read, and so notice what was left out of it: other ledgers were given
// that, and with it calls of sessions that are known here.
type queues struct {
	mu     sync.Mutex
	next   map[queue]int64
	moves  map[int64]*move
	breaks atomic.Uint64
}

type queue struct {
	topic     string
	partition int64
}

// move is one time when a partition was elsewhere, by which topics that was noticed and when first.
type move struct {
	number uint64
	topics map[string]bool
	at     time.Time
}

// Arrived notes where a batch stood, and gives the number of the last gap in its partition, for Place.Break of its calls.
// A session that was not told of since then may have had calls elsewhere.
func (s *State) Arrived(at Spot, now time.Time) uint64 {
	q := &s.queues
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == nil {
		q.next, q.moves = map[queue]int64{}, map[int64]*move{}
	}
	place := queue{at.Topic, at.Partition}
	next, read := q.next[place]
	switch {
	case !read && len(q.next) >= maxQueues:
		return q.breaks.Add(1)
	case read && at.Offset > next:
		q.left(place, now)
	}
	q.next[place] = max(next, at.Offset+1)
	if last := q.moves[at.Partition]; last != nil {
		return last.number
	}
	return 0
}

// left notes that something was left out of a partition.
func (q *queues) left(at queue, now time.Time) {
	last := q.moves[at.partition]
	if last == nil || last.topics[at.topic] || now.Sub(last.at) > moveTime {
		last = &move{q.breaks.Add(1), map[string]bool{}, now}
		q.moves[at.partition] = last
	}
	last.topics[at.topic] = true
}
