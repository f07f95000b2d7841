package ledger

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zeebo/xxh3"
)

// Version is that of snapshots: one of another version is not read.
const Version = 1

// A snapshot of a shard is its version, the checksum of the rest, and the rest: its sessions, the least recently used
// first, without any text of a request.
const headerSize = 1 + 8

// ErrCorrupt is returned of a snapshot that is not what was written.
var ErrCorrupt = errors.New("snapshot is corrupt")

// Key is where the snapshot of a shard is kept in a store.
func Key(shard int) string { return fmt.Sprintf("sessions-%02d", shard) }

// KnownKey is where it is kept since when a ledger knows every session.
const KnownKey = "known"

// known is what a ledger can say of what it does not know: until Blind, in Unix nanoseconds, a session of which it should be
// told every call may have been forgotten, or have lived before the ledger did. Whole says that nothing was told of after it
// was saved; only then is there how far the queues had been Read, and how many Gaps they had.
type known struct {
	Blind int64
	Whole bool
	Read  []stand
	Gaps  uint64
}

// says tells whether what is to be said was said before. That nothing was told of afterwards is said each time: something was
// in between.
func (k known) says(now known) bool { return k.Blind == now.Blind && !k.Whole && !now.Whole }

// Save writes the shards that were changed since they were saved last, each by its key, and gives how many bytes that
// were. What cannot be written is tried again next time, and its error given.
func (s *State) Save(put func(key string, snapshot []byte) error) (written int64, err error) {
	return s.save(put, false)
}

// Close does as Save, when no more calls come: whoever loads it then knows as much as this ledger did. It should be loaded
// and, before calls come, saved again, so that what comes after is not taken for nothing.
func (s *State) Close(put func(key string, snapshot []byte) error) (written int64, err error) {
	return s.save(put, true)
}

func (s *State) save(put func(key string, snapshot []byte) error, whole bool) (written int64, err error) {
	if !whole {
		// First of all: nobody may take what was said at the end of the ledger before for being of what follows.
		if err := s.say(put, known{Blind: s.blind.Load()}); err != nil {
			return 0, err
		}
	}
	for at := range s.shards {
		kept, taken := s.take(at)
		if !taken {
			continue
		}
		snapshot := encode(kept)
		s.taken(at)
		if failed := put(Key(at), snapshot); failed != nil {
			s.dirty(at)
			err = errors.Join(err, fmt.Errorf("%s: %w", Key(at), failed))
			continue
		}
		written += int64(len(snapshot))
	}
	if whole && err == nil {
		read, gaps := s.queues.stands()
		err = s.say(put, known{Blind: s.blind.Load(), Whole: true, Read: read, Gaps: gaps})
	}
	return written, err
}

// say writes what can be said of what is not known, unless that was said last.
func (s *State) say(put func(key string, snapshot []byte) error, now known) error {
	before, said := s.saved.Load().(known)
	if said && before.says(now) {
		return nil
	}
	if err := put(KnownKey, encode(now)); err != nil {
		return fmt.Errorf("%s: %w", KnownKey, err)
	}
	s.saved.Store(now)
	return nil
}

// take copies the sessions of a shard that was changed. Their calls are lent: they are not changed until they are taken.
func (s *State) take(at int) ([]record, bool) {
	h := &s.shards[at]
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.changed {
		return nil, false
	}
	kept := make([]record, 0, h.sessions.Len())
	for _, one := range h.sessions.All {
		copied := *one
		copied.Branches, copied.Told, copied.Ends = slices.Clone(one.Branches), slices.Clone(one.Told), slices.Clone(one.Ends)
		kept = append(kept, copied)
	}
	h.changed = false
	h.lent++
	return kept, true
}

// taken says that what was lent of a shard is read.
func (s *State) taken(at int) {
	h := &s.shards[at]
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lent--
}

func (s *State) dirty(at int) {
	h := &s.shards[at]
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changed = true
}

// encode cannot fail: what is saved holds nothing that gob does not know.
func encode(kept any) []byte {
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(kept); err != nil {
		return nil
	}
	snapshot := binary.BigEndian.AppendUint64([]byte{Version}, xxh3.Hash(body.Bytes()))
	return append(snapshot, body.Bytes()...)
}

func decode(snapshot []byte, into any) error {
	if len(snapshot) < headerSize {
		return fmt.Errorf("%w: %d bytes", ErrCorrupt, len(snapshot))
	}
	if snapshot[0] != Version {
		return fmt.Errorf("%w: version %d", ErrCorrupt, snapshot[0])
	}
	body := snapshot[headerSize:]
	if binary.BigEndian.Uint64(snapshot[1:headerSize]) != xxh3.Hash(body) {
		return fmt.Errorf("%w: wrong checksum", ErrCorrupt)
	}
	if err := gob.NewDecoder(bytes.NewReader(body)).Decode(into); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// Load reads what Save wrote. A shard that cannot be read starts empty, is counted as lost, and its error given; so does
// one that `get` has nothing of, which is no loss. Sessions that were told of meanwhile stay as they are.
func (s *State) Load(get func(key string) ([]byte, error), now time.Time) error {
	var lost error
	before := s.before(get)
	for at := range s.shards {
		snapshot, err := get(Key(at))
		if err == nil && len(snapshot) > 0 {
			err = s.fill(at, snapshot, before.Gaps > 0, now)
		}
		if err != nil {
			s.counts.lostShards.Add(1)
			lost = errors.Join(lost, fmt.Errorf("%s: %w", Key(at), err))
		}
	}
	if before.Whole {
		s.queues.resume(before.Read, before.Gaps)
		if lost == nil {
			s.blind.Store(before.Blind)
		}
	}
	return lost
}

// before is what the ledger before said of what it did not know. What cannot be read is as if it had not been said.
func (s *State) before(get func(key string) ([]byte, error)) known {
	snapshot, err := get(KnownKey)
	if err != nil {
		return known{}
	}
	var found known
	if decode(snapshot, &found) != nil {
		return known{}
	}
	s.saved.Store(found)
	return found
}

// fill brings back the sessions of a shard. Unless the gaps are known that the ledger before had heard of, none was behind them.
func (s *State) fill(at int, snapshot []byte, heard bool, now time.Time) error {
	var kept []record
	if err := decode(snapshot, &kept); err != nil {
		return err
	}
	slices.SortStableFunc(kept, func(a, b record) int { return a.Seen.Compare(b.Seen) })
	h := &s.shards[at]
	h.mu.Lock()
	defer h.mu.Unlock()
	changed := h.changed
	defer func() { h.changed = changed }()
	for _, one := range kept {
		_, held := h.sessions.Get(one.Name)
		if held || place(one.Name) != uint64(at) || now.Sub(one.Seen) > s.options.Idle {
			changed = true
			continue
		}
		seen := one.Seen
		one.loaded = s.options.Moving
		if !heard && one.Heard != (gaps{}) {
			one.Heard, changed = gaps{}, true
		}
		s.keep(h, &one, now)
		for _, branch := range one.Branches {
			s.ends.enter(one.Name, branch)
		}
		one.Seen = seen
	}
	h.due = time.Time{} // what was loaded was told of long ago
	return nil
}
