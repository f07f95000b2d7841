package ledger

import (
	"math/bits"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/traces"
)

// maxVerdicts is of how many of the last names of calls the verdict is kept at least, for who tells of them again, and twice
// as many at most.
const maxVerdicts = 8192

// given is what was written into a call.
type given struct {
	verdict    call.Verdict
	changed    []string
	comparable string
	view       string
}

// verdicts keep what was said of the last calls, by a digest of their session and a name: a span and a log record of one
// call are to say the same. What was said lately is in `last`, which is `before` once it is full.
type verdicts struct {
	mu           sync.Mutex
	last, before map[uint64]*given
}

func under(session uint64, name traces.Part) uint64 {
	return bits.RotateLeft64(session, 32) ^ uint64(name)
}

// keep notes what a collector said of a call.
func (v *verdicts) keep(c *call.Call, named traces.Names, view string) {
	if c.Verdict.By != semconv.JudgedByCollector {
		return
	}
	said := &given{c.Verdict, c.Context.IdentityChanged, c.Context.Comparable, view}
	session, known := xxh3.HashString(c.Task.Session), named.Known()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range known.All() {
		v.put(under(session, name), said)
	}
}

func (v *verdicts) put(key uint64, said *given) {
	if len(v.last) == maxVerdicts {
		v.last, v.before = v.before, v.last
		clear(v.last)
	}
	if v.last == nil {
		v.last = map[uint64]*given{}
	}
	v.last[key] = said
}

func (v *verdicts) get(key uint64) *given {
	if said, known := v.last[key]; known {
		return said
	}
	return v.before[key]
}

// repeat writes into a call what was written into it before, as far as that is still known.
func (v *verdicts) repeat(c *call.Call, named traces.Names) string {
	session, sought := xxh3.HashString(c.Task.Session), named.Sought()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range sought.All() {
		said := v.get(under(session, name))
		if said == nil {
			continue
		}
		c.Judge(said.verdict)
		c.Context.IdentityChanged, c.Context.Comparable = said.changed, said.comparable
		return said.view
	}
	return ""
}
