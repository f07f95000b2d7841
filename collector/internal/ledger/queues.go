package ledger

import (
	"sync"
	"sync/atomic"
)

// Spot is where in a partition of a topic a record stood.
type Spot struct {
	Topic     string
	Partition int64
	Offset    int64
}

// maxQueues is of how many partitions the place is known: more than brokers have of two topics.
const maxQueues = 16_384

// queues know how far each partition of a topic was read, and so notice what was left out of it: other ledgers were given
// that, and with it calls of sessions that are known here; or it comes later, for a rebalance can change the order.
type queues struct {
	mu     sync.Mutex
	read   map[queue]*reading
	breaks atomic.Uint64
}

type queue struct {
	topic     string
	partition int64
}

// reading is the offset that is to come next, and the number of the last gap before it.
type reading struct {
	next int64
	gap  uint64
}

// Arrived notes where a batch stood, and gives the number of the last gap in its queue, for Place.Break of its calls. A
// session that was not told of since then may have had calls elsewhere.
func (s *State) Arrived(at Spot) uint64 {
	q := &s.queues
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.read == nil {
		q.read = map[queue]*reading{}
	}
	place := queue{at.Topic, at.Partition}
	known := q.read[place]
	switch {
	case known == nil && len(q.read) >= maxQueues:
		return q.breaks.Add(1)
	case known == nil:
		known = &reading{next: at.Offset}
		q.read[place] = known
	case at.Offset > known.next:
		known.gap = q.breaks.Add(1)
	}
	known.next = max(known.next, at.Offset+1)
	return known.gap
}

// gaps has the numbers of the last gaps in the two queues that tell of a session, its spans' and its log records', that
// were behind it when they told of it last. Each queue is in order by itself alone: the last call may have been heard of
// through one while the other, whose gap is older, still leaves out the one before.
type gaps [2]uint64

// behind says whether a queue with this last gap told of the session since.
func (g *gaps) behind(number uint64) bool { return number == 0 || g[0] == number || g[1] == number }

func (g *gaps) hear(number uint64) {
	if !g.behind(number) {
		g[0], g[1] = g[1], number
	}
}
