package contextledgerconnector

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"

	"github.com/zeebo/xxh3"
)

// mark is what the window knows an entry by: the hash of what it says, and what that is. Two marks of different kinds
// have different hashes.
type mark struct {
	hash uint64
	of   kind
}

// kind is what a mark is made of.
type kind byte

const (
	// ofSpan and ofRecord: where and when a span or a log record told it, or what such a one says of its call.
	ofSpan kind = iota + 1
	ofRecord
	// ofEntry: the ledger's own id of the call.
	ofEntry
	// ofAnswer and ofEntryAnswer: the id of an answer that was told without an entry of ours, and with one.
	ofAnswer
	ofEntryAnswer
	ofCompaction
	ofTask
)

// shared says whether entries of different calls can have one mark.
func (k kind) shared() bool { return k.answer() || k == ofSpan || k == ofRecord }

// answer says whether a mark is the id of an answer.
func (k kind) answer() bool { return k == ofAnswer || k == ofEntryAnswer }

// kinds is a set of them.
type kinds uint

func (k *kinds) add(one kind) { *k |= 1 << one }

func (k kinds) has(one kind) bool { return k>>one&1 != 0 }

// seed keeps anybody from choosing ids that would be taken for one another.
var seed = rand.Uint64()

// mark gives the mark of texts.
func (e *entry) mark(of kind, texts ...string) mark {
	e.text = append(e.text[:0], byte(of))
	for _, text := range texts {
		e.text = append(append(e.text, text...), 0)
	}
	return mark{xxh3.HashSeed(e.text, seed), of}
}

// knownBy sets the one mark by which the window knows the entry, and is to know it.
func (e *entry) knownBy(one mark) {
	e.known, e.kept = append(e.known[:0], one), append(e.kept[:0], one)
}

// occasion is what only this record and a second delivery of it have in common: of a span its place. Many log records
// can stand in one span, so that one of them is told from others by its event and its time.
func (e *entry) occasion() string {
	if e.told == ofSpan {
		return string(e.place.trace[:]) + string(e.place.span[:])
	}
	return e.event + "\x00" + string(binary.BigEndian.AppendUint64(nil, uint64(e.place.at)))
}

// itself is the mark of the record alone: calls without an id that were told at the same time are told apart by what
// they say.
func (e *entry) itself() mark {
	c := &e.call
	return e.mark(e.told, e.occasion(), c.Task.Session, c.Model.Requested, digits(c.Usage.Input), digits(c.Usage.Output))
}

// markCall finds what tells the call from others. A ledger's own id does so even where a gateway gives two calls the
// same answer; a record without one is known by the id of its answer, and so is one with it if another instrumentation
// told that answer before. One without either is known by where and when it was told, and by what a span and a log
// record of one call say alike.
func (e *entry) markCall() {
	id, answer := e.call.Origin.EntryID, e.call.Request.ResponseID
	switch {
	case id != "":
		e.knownBy(e.mark(ofEntry, id))
		if answer != "" {
			e.known = append(e.known, e.mark(ofAnswer, answer))
			e.kept = append(e.kept, e.mark(ofEntryAnswer, answer))
		}
	case answer != "":
		e.knownBy(e.mark(ofAnswer, answer))
		e.known = append(e.known, e.mark(ofEntryAnswer, answer))
	default:
		e.knownBy(e.itself())
		e.alike()
	}
}

// alike adds what a span and a log record without an id in common say alike: each knows the other one by it, and never
// one of its own kind, of which two are two calls.
func (e *entry) alike() {
	like, other := e.call.Likeness(), ofSpan
	if e.told == ofSpan {
		other = ofRecord
	}
	if like != "" {
		e.known = append(e.known, e.mark(other, like))
		e.kept = append(e.kept, e.mark(e.told, like))
	}
}

// markTask goes by the word: another word that comes later is told again.
func (e *entry) markTask(outcome, word string) {
	e.knownBy(e.mark(ofTask, outcome, e.call.Task.ID, word))
}

func (e *entry) markCompaction() {
	if id := e.call.Compaction.Event; id != "" {
		e.knownBy(e.mark(ofCompaction, id))
		return
	}
	e.knownBy(e.mark(ofCompaction, string(e.told), e.occasion()))
}

func digits(count *int64) string {
	if count == nil {
		return ""
	}
	return strconv.FormatInt(*count, 10)
}
