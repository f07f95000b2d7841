package ledger

import (
	"sync"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/recent"
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

// verdicts keep what was said of the last calls, by their session and a name: a span and a log record of one call are to
// say the same.
type verdicts struct {
	mu   sync.Mutex
	last *recent.Map[verdictKey, *given]
}

type verdictKey struct {
	session string
	name    traces.Part
}

func (v *verdicts) keep(c *call.Call, view string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	said := &given{c.Verdict, c.Context.IdentityChanged, c.Context.Comparable, view}
	for _, name := range traces.Known(c) {
		v.last.Bound(verdictKey{c.Task.Session, name}, said, maxVerdicts)
	}
}

// repeat writes into a call what was written into it before, as far as that is still known.
func (v *verdicts) repeat(c *call.Call) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range traces.Known(c) {
		said, known := v.last.Get(verdictKey{c.Task.Session, name})
		if !known {
			continue
		}
		c.Judge(said.verdict)
		c.Context.IdentityChanged, c.Context.Comparable = said.changed, said.comparable
		return said.view
	}
	return ""
}
