package contextledgerconnector

import "time"

// window remembers marks of entries for a time. It holds two generations: the older one is dropped when the younger
// one has got as old as the window is long, or as full as it may be. A mark is therefore known for at least that long
// or for that many further marks, and nothing is known for longer than twice that.
type window struct {
	span       time.Duration
	most       int
	started    time.Time
	young, old generation
}

// generation has what was remembered in one stretch of time: memories by number, from 1 on, and marks that lead to them.
// Neither holds pointers, so that a collection of garbage passes by both, however many there are.
type generation struct {
	marks map[uint64]int32
	// of has the kinds of the marks: where nobody told of an answer without an entry, nobody need look for one.
	of   kinds
	held []*[block]memory
	many int32
}

// block is how many memories get their room at once.
const block = 512

// memory is what is remembered of an entry beside its marks: from when to when its call lasted, in Unix nanoseconds, its
// counts, -1 where they are unknown, and whether its cost is counted, or is not to be. Earlier is the number of an entry
// of the same generation with the same answer, or of the same likeness; 0 is none.
type memory struct {
	from, to      int64
	input, output int64
	earlier       int32
	paid          bool
}

func newWindow(config DedupConfig, now time.Time) *window {
	return &window{span: config.Window, most: config.MaxEntries, started: now}
}

// find gives what is remembered of the call that an entry tells, nil if it is not known. Of several that it may be it is
// one whose cost is open, if the entry tells a cost. It is good until it is forgotten.
func (w *window) find(e *entry) *memory {
	for _, known := range e.known {
		if found := w.young.search(known, e); found != nil {
			return found
		}
		if found := w.old.search(known, e); found != nil {
			return found
		}
	}
	return nil
}

// has tells whether a mark is known.
func (w *window) has(one mark) bool {
	return w.young.find(one) != 0 || w.old.find(one) != 0
}

// add remembers an entry by the marks.
func (w *window) add(marks []mark, one memory, now time.Time) {
	w.age(now)
	w.young.add(marks, one)
}

func (w *window) age(now time.Time) {
	passed := now.Sub(w.started)
	if passed < w.span && int(w.young.many) < w.most {
		return
	}
	if passed >= 2*w.span {
		w.young.clear()
	}
	w.young, w.old, w.started = w.old, w.young, now
	w.young.clear()
}

// clear forgets everything and keeps the room for as much.
func (g *generation) clear() {
	clear(g.marks)
	g.many, g.of = 0, 0
}

func (g *generation) at(number int32) *memory { return &g.held[(number-1)/block][(number-1)%block] }

// find gives the number of the latest memory with a mark, 0 where there is none.
func (g *generation) find(known mark) int32 {
	if !g.of.has(known.of) {
		return 0
	}
	return g.marks[known.hash]
}

func (g *generation) add(marks []mark, one memory) {
	if int(g.many) == len(g.held)*block {
		g.held = append(g.held, new([block]memory))
	}
	if g.marks == nil {
		g.marks = map[uint64]int32{}
	}
	g.many++
	added := g.at(g.many)
	*added = one
	for _, mark := range marks {
		if earlier := g.marks[mark.hash]; earlier != 0 && earlier != g.many && mark.of.shared() {
			added.earlier = earlier
		}
		g.marks[mark.hash] = g.many
		g.of.add(mark.of)
	}
}

// maxSearched is how many of the latest entries with one mark are looked at.
const maxSearched = 32

// search looks for the call of an entry among those with one of its marks.
func (g *generation) search(known mark, e *entry) *memory {
	number := g.find(known)
	if number != 0 && !known.of.shared() {
		return g.at(number)
	}
	var found *memory
	for looked := 0; number != 0 && looked < maxSearched; looked++ {
		one := g.at(number)
		number = one.earlier
		if known.of.answer() && !one.same(e) {
			continue
		}
		if found == nil || found.paid && !one.paid && e.pays() {
			found = one
		}
	}
	return found
}

// skew is by how much the clocks of two who tell of one call may differ.
const skew = int64(2 * time.Second)

// same says whether an entry with the same answer tells the same call. It does not if it lasted at another time: a gateway
// gave the answer again; nor if it counts both another prompt and another output: a server gave two answers one id. Who
// differs in one of them may have read it otherwise, and who tells no more than an end may be late.
func (m *memory) same(e *entry) bool {
	from, to := e.lasted()
	apart := from > m.to+skew || to < m.from-skew
	if apart && from < to && m.from < m.to {
		return false
	}
	return m.input == e.input() || m.output == e.output() || min(m.input, m.output, e.input(), e.output()) < 0
}
