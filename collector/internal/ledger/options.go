// Package ledger owns what a collector remembers of sessions, and by it what the cache did for each call: the lineage of
// calls across processes (spec/README.md, "In a collector").
//
// A call is held against the earlier ones of its session by what was captured of its request, else by the locator and
// digests that it told, else by its counts alone. What cannot be known is previous_unknown; nothing is guessed.
package ledger

import (
	"errors"
	"time"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/facts"
)

// Options bound what is remembered.
type Options struct {
	// Sessions and Bytes bound what is kept of calls: digests, counts and names, no text.
	Sessions int
	Bytes    int64
	// CapturedBytes bounds the requests that are kept in memory where content is captured; 0 keeps none.
	CapturedBytes int
	// Idle is after how long without a call a session is forgotten.
	Idle time.Duration
	// Alone says that this ledger sees every call of every session: then a session that it does not know is a new one.
	Alone bool
	// Moving says that a session's calls go to one of several ledgers, and may go to another one while this is not there:
	// then what it saved may be of the past when it is started again.
	Moving bool
	// Split says that the calls of one session may go to several ledgers: then none of them knows which call came before.
	Split bool
	// Key is the key of digests made here, empty for bare ones.
	Key string
	// Lore is what is known of providers' caches.
	Lore *facts.Lore
}

// Defaults are options that fit a collector beside one agent.
func Defaults() Options {
	return Options{Sessions: 100_000, Bytes: 200 << 20, CapturedBytes: 64 << 20, Idle: 24 * time.Hour}
}

// Errors of options.
var (
	errSessions = errors.New("sessions must be above 0")
	errBytes    = errors.New("bytes must be above 0")
	errCaptured = errors.New("captured bytes must not be below 0")
	errIdle     = errors.New("the idle time must be above 0")
	errBoth     = errors.New("a ledger that sees every call shares no session with others")
	errLore     = errors.New("the lore of providers is missing")
)

// Validate says what is wrong with the options.
func (o Options) Validate() error {
	var wrong []error
	for _, rule := range []struct {
		broken bool
		err    error
	}{
		{o.Sessions <= 0, errSessions}, {o.Bytes <= 0, errBytes}, {o.CapturedBytes < 0, errCaptured}, {o.Idle <= 0, errIdle},
		{o.Alone && (o.Moving || o.Split), errBoth}, {o.Lore == nil, errLore},
	} {
		if rule.broken {
			wrong = append(wrong, rule.err)
		}
	}
	return errors.Join(wrong...)
}

func (o Options) exporter() canonical.Exporter { return canonical.NewExporter(o.Key) }
