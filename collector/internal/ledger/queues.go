package ledger

import (
	"sync"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
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
	mu   sync.Mutex
	read map[queue]*reading
	gaps uint64
}

type queue struct {
	topic     string
	partition int64
}

// reading is the offset that is to come next, and what the last gap before it is.
type reading struct {
	next int64
	gap  call.Gap
}

// Arrived notes where a batch stood, and gives the last gap in its queue, for Place.Gap of its calls. A session that was not
// told of since then may have had calls elsewhere. What was in front of the first batch of a queue is a gap, too. So is what
// is passed over once more by a reader that was sent back: it may not have been sent back as far as the gap before.
func (s *State) Arrived(at Spot) call.Gap {
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
		return q.gap(maxQueues + 1)
	case known == nil:
		known = &reading{gap: q.gap(len(q.read) + 1)}
		q.read[place] = known
	case at.Offset > known.next:
		known.gap = q.gap(known.gap.Queue)
	}
	known.next = at.Offset + 1
	return known.gap
}

// gap is another one in a queue.
func (q *queues) gap(of int) call.Gap {
	q.gaps++
	return call.Gap{Queue: of, Number: q.gaps}
}

// gaps has the last gaps in the two queues that tell of a session, its spans' and its log records', that were behind it when
// they told of it last. Each queue is in order by itself alone: the last call may have been heard of through one while the
// other, whose gap is older, still leaves out the one before.
type gaps [2]call.Gap

// behind says whether the queue with this last gap told of the session since.
func (g *gaps) behind(last call.Gap) bool { return g[0] == last || g[1] == last }

// hear notes that a queue with this last gap told of the session, in place of what is known of that queue, else of the one
// that is known for longer.
func (g *gaps) hear(last call.Gap) {
	switch {
	case last.Number == 0:
	case g[0].Queue == last.Queue:
		g[0] = last
	case g[1].Queue == last.Queue:
		g[1] = last
	default:
		g[0], g[1] = g[1], last
	}
}

// stand is how far a queue was read, as it is saved.
type stand struct {
	Topic     string
	Partition int64
	Next      int64
	Gap       call.Gap
}

// stands gives how far each queue was read, and how many gaps there were.
func (q *queues) stands() (read []stand, gaps uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for of, known := range q.read {
		read = append(read, stand{of.topic, of.partition, known.next, known.gap})
	}
	return read, q.gaps
}

// resume goes on from where a ledger stood that read no further.
func (q *queues) resume(read []stand, gaps uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.read, q.gaps = make(map[queue]*reading, len(read)), gaps
	for _, known := range read {
		q.read[queue{known.Topic, known.Partition}] = &reading{known.Next, known.Gap}
	}
}
