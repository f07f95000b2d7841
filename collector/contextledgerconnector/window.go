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
	young   map[uint64]struct{}
	old     map[uint64]struct{}
}

func newWindow(config DedupConfig, now time.Time) *window {
	return &window{span: config.Window, most: config.MaxEntries, started: now, young: map[uint64]struct{}{}}
}

// has tells whether any of the marks is known.
func (w *window) has(marks []string) bool {
	for _, mark := range marks {
		key := xxh3.HashString(mark)
		if _, known := w.young[key]; known {
			return true
		}
		if _, known := w.old[key]; known {
			return true
		}
	}
	return false
}

// add remembers the marks.
func (w *window) add(marks []string, now time.Time) {
	w.age(now)
	for _, mark := range marks {
		w.young[xxh3.HashString(mark)] = struct{}{}
	}
}

func (w *window) age(now time.Time) {
	passed := now.Sub(w.started)
	if passed < w.span && len(w.young) < w.most {
		return
	}
	w.old = w.young
	if passed >= 2*w.span {
		w.old = nil
	}
	w.young, w.started = map[uint64]struct{}{}, now
}
