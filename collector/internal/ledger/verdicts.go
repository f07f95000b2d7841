package ledger

import (
	"math/bits"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/recent"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/traces"
)

// maxVerdicts is of how many of the last calls the verdict is kept for who tells of them again.
const maxVerdicts = 8192

// given is what was written into a call.
type given struct {
	verdict    call.Verdict
	changed    []string
	comparable string
	view       string
}

// verdicts keep what was said of the last calls, by a digest of their session and a name: a span and a log record of one
// call are to say the same.
type verdicts struct {
	mu   sync.Mutex
	last *recent.Map[uint64, *given]
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
		v.last.Bound(under(session, name), said, maxVerdicts)
	}
}

// repeat writes into a call what was written into it before, as far as that is still known.
func (v *verdicts) repeat(c *call.Call, named traces.Names) string {
	session, sought := xxh3.HashString(c.Task.Session), named.Sought()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range sought.All() {
		said, known := v.last.Get(under(session, name))
		if !known {
			continue
		}
		c.Judge(said.verdict)
		c.Context.IdentityChanged, c.Context.Comparable = said.changed, said.comparable
		return said.view
	}
	return ""
}
