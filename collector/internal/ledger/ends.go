package ledger

import (
	"sync"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/traces"
)

// ends find the session of a call by the end of its history. A process that was restarted gives a session that nobody
// names another name; the boundaries of its locator are those of the session before.
type ends [Shards]struct {
	mu       sync.Mutex
	sessions map[traces.Part]string
}

// keptEnds is how many of a call's last boundaries are known by the session.
const keptEnds = 2

func (e *ends) enter(session string, trace *traces.Trace) {
	entered := 0
	for end := range trace.Ends {
		part := &e[end%Shards]
		part.mu.Lock()
		if part.sessions == nil {
			part.sessions = map[traces.Part]string{}
		}
		part.sessions[end] = session
		part.mu.Unlock()
		if entered++; entered == keptEnds {
			return
		}
	}
}

// leave forgets the ends of a call that its session does not hold any more.
func (e *ends) leave(session string, trace *traces.Trace) {
	left := 0
	for end := range trace.Ends {
		part := &e[end%Shards]
		part.mu.Lock()
		if part.sessions[end] == session {
			delete(part.sessions, end)
		}
		part.mu.Unlock()
		if left++; left == keptEnds {
			return
		}
	}
}

// find gives the session whose end is the latest boundary that a call has of any.
func (e *ends) find(trace *traces.Trace) (string, bool) {
	for end := range trace.Ends {
		part := &e[end%Shards]
		part.mu.Lock()
		session, known := part.sessions[end]
		part.mu.Unlock()
		if known {
			return session, true
		}
	}
	return "", false
}

// elsewhere are the calls of another session that a call's history goes on from, where nobody named its session and
// nothing is known of the name that it has. A first request begins like many others.
func (s *State) elsewhere(c *call.Call, trace *traces.Trace, held bool) []*traces.Trace {
	if held || c.Task.SessionSource != semconv.SessionSourceLineage || trace.Messages <= traces.MaxFirst {
		return nil
	}
	own := s.shard(c.Task.Session)
	own.mu.Lock()
	_, held = own.sessions.Get(c.Task.Session)
	own.mu.Unlock()
	if held {
		return nil
	}
	other, known := s.ends.find(trace)
	if !known {
		return nil
	}
	h := s.shard(other)
	h.mu.Lock()
	defer h.mu.Unlock()
	found, _ := h.known(other)
	copied := make([]*traces.Trace, len(found.Branches))
	for at, branch := range found.Branches {
		copied[at] = branch.Copy()
	}
	return copied
}
