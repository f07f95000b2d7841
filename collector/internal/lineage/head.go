// Package lineage owns where a request comes from, as far as what was sent shows it: sessions and their branches, and
// which earlier call a request continues (spec/README.md, "Sessions and comparable calls").
package lineage

import (
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/identity"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Relations of a request to its comparable call.
const (
	First     = "first"
	Repeats   = "repeats"
	Extends   = "extends"
	Continues = "continues"
	Rewrites  = "rewrites"
	Rewinds   = "rewinds"
	Departs   = "departs"
)

// Anchor is a prompt size that the provider reported: everything up to Size bytes of the outline is Tokens tokens.
type Anchor struct {
	Size   int
	Tokens int64
}

// Seen is a host and the size of the last prompt that it saw.
type Seen struct {
	Route  string
	Tokens int64
}

// Head is the last request of one branch. Form is how its parts were captured: those of another form cannot be compared.
// What the answer told is nil or empty until the call has ended, and where the provider did not tell it: Tokens is the
// prompt size, Stored what the provider said it read from its cache or wrote to it, Routes the last prompt size that each
// host saw. Times are seconds; Closed is nil while the call is in flight.
type Head struct {
	Entry    string
	Session  string
	Endpoint string
	Form     string
	Outline  *segments.Outline
	Identity identity.Identity
	Request  segments.Request
	Opened   float64
	Closed   *float64
	Tokens   *int64
	Cached   *int64
	Stored   *int64
	Served   string
	Route    string
	Routes   []Seen
	Response string
	Written  string
	First    bool
	Anchors  []Anchor
	// Plateau is how many calls in a row missed and read the same count.
	Plateau int
	// Forked says that the branch began with another session's history, ForkOf which one that was.
	Forked bool
	ForkOf string
	// TurnEnded says that the answer called no tool, Wakes how often this fork was woken after such an answer.
	TurnEnded bool
	Wakes     int
}

// scope is what a provider's cache is kept apart by, as far as a client can see.
type scope struct{ surface, model, endpoint string }

func scopeOf(found identity.Identity, endpoint string) scope {
	return scope{found.Part(semconv.PartProviderSurface), found.Part(semconv.PartModel), endpoint}
}

// ended is when a head was last known to be in use.
func (h *Head) ended() float64 {
	if h.Closed != nil {
		return *h.Closed
	}
	return h.Opened
}

// headOverhead and messageOverhead are about how many bytes a head holds beside the text of its request.
const (
	headOverhead    = 4096
	messageOverhead = 320
)

// weight is about how many bytes a head holds.
func (h *Head) weight() int {
	return headOverhead + h.Outline.Total + messageOverhead*len(h.Outline.Messages)
}

// Link is a request's place: its session and how that was found, the comparable head, how many leading messages they
// share, and the relation. The head's last Tail messages stand in the request from its message TailAt on. Of a request
// that continues nothing, Beside is the last head of the session that was named for it, and Sibling the last one anywhere
// with the same header. Between is another call that went to the same place after the head, the last one. LostTrack says
// that the request names an earlier response that nobody here saw.
type Link struct {
	Session    string
	Source     string
	Relation   string
	Head       *Head
	Shared     int
	Tail       int
	TailAt     int
	Parent     string
	Sibling    *Head
	Beside     *Head
	Between    *Head
	Concurrent bool
	LostTrack  bool
}

// Grows says whether the request repeats or goes on from its comparable call.
func (l Link) Grows() bool {
	return l.Relation == Extends || l.Relation == Repeats || l.Relation == Continues
}

// Name is a session's name and how it was found: explicit, conversation_id, cache_key or lineage.
type Name struct {
	Session string
	Source  string
}

// Arrival is what comes with a request from outside: the id that its session gets if it is a new one, the endpoint that
// it goes to, the form of its parts, when it was opened, and the time before which a prefix must not have been used last
// if the provider is to hold it still; nil is unknown.
type Arrival struct {
	Session    string
	Endpoint   string
	Form       string
	Opened     float64
	AliveSince *float64
}
