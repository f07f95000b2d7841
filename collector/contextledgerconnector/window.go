package contextledgerconnector

import (
	"time"

	"github.com/zeebo/xxh3"
)

// window remembers marks of entries for a time. It holds two generations: the older one is dropped when the younger
// one has got as old as the window is long, or as full as it may be. A mark is therefore known for at least that long
// or for that many further marks, and nothing is known for longer than twice that.
type window struct {
	span    time.Duration
	most    int
	started time.Time
	held    int
	young   map[uint64]*memory
	old     map[uint64]*memory
}

// memory is what is remembered of an entry beside its marks: from when to when its call lasted, in Unix nanoseconds, its
// counts, -1 where they are unknown, and whether its cost is counted, or is not to be. Next is an earlier entry with the
// same answer, or of the same likeness.
type memory struct {
	from, to      int64
	input, output int64
	paid          bool
	next          *memory
}

func newWindow(config DedupConfig, now time.Time) *window {
	return &window{span: config.Window, most: config.MaxEntries, started: now, young: map[uint64]*memory{}}
}

// find gives what is remembered of the call that an entry tells, nil if it is not known. Of several that it may be it is
// one whose cost is open, if the entry tells a cost.
func (w *window) find(e *entry) *memory {
	var found *memory
	for _, mark := range e.known {
		key := xxh3.HashString(mark)
		for _, held := range [...]*memory{w.young[key], w.old[key]} {
			if found = held.search(mark, e); found != nil {
				return found
			}
		}
	}
	return nil
}

// has tells whether any of the marks is known.
func (w *window) has(marks []string) bool {
	for _, mark := range marks {
		key := xxh3.HashString(mark)
		if w.young[key] != nil || w.old[key] != nil {
			return true
		}
	}
	return false
}

// add remembers an entry by the marks.
func (w *window) add(marks []string, one *memory, now time.Time) {
	w.age(now)
	for _, mark := range marks {
		key := xxh3.HashString(mark)
		if earlier := w.young[key]; earlier != nil && earlier != one && shares(mark) {
			one.next = earlier
		}
		w.young[key] = one
	}
	w.held++
}

func (w *window) age(now time.Time) {
	passed := now.Sub(w.started)
	if passed < w.span && w.held < w.most {
		return
	}
	w.old = w.young
	if passed >= 2*w.span {
		w.old = nil
	}
	w.young, w.started, w.held = map[uint64]*memory{}, now, 0
}

// maxSearched is how many of the latest entries with one mark are looked at.
const maxSearched = 32

// search looks for the call of an entry among those with one of its marks.
func (m *memory) search(mark string, e *entry) *memory {
	if m == nil || !shares(mark) {
		return m
	}
	var found *memory
	for looked := 0; m != nil && looked < maxSearched; m, looked = m.next, looked+1 {
		if byAnswer(mark) && !m.same(e) {
			continue
		}
		if found == nil || found.paid && !m.paid && e.pays() {
			found = m
		}
	}
	return found
}

// shares says whether entries of different calls can have one mark.
func shares(mark string) bool {
	return byAnswer(mark) || mark[:len(spanMark)] == spanMark || mark[:len(recordMark)] == recordMark
}

// byAnswer says whether a mark is the id of an answer.
func byAnswer(mark string) bool {
	return mark[:len(answerMark)] == answerMark || mark[:len(entryAnswerMark)] == entryAnswerMark
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
