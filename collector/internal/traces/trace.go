// Package traces owns what is kept of a call of which nothing was captured: times, counts, the digests and the locator
// that it told. Two of them are held against each other by these alone; no text is kept.
package traces

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/attribution"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
)

// Unknown is a count that nobody told.
const Unknown = -1

// Part is the short digest of what a call told of one of its parts; 0 is nothing.
type Part uint64

// Parts are those that calls are told to differ in.
type Parts struct {
	Policy, PolicyWire, Tools, ToolsWire, Summary, Repository, Context, Cache Part
}

// Bound is a boundary of a locator: so many messages are so many bytes and have this digest.
type Bound struct {
	Messages int64
	Bytes    int64
	Digest   Part
}

// Anchor is a reported prompt size at a number of bytes.
type Anchor struct {
	Bytes  int64
	Tokens int64
}

// Trace is one call. Entry names it, Response is the provider's id of its answer. Times are seconds since the Unix epoch,
// counts tokens or Unknown. Complete says that what it does not tell of its parts is not there, First that it has no
// comparable call. Bounds and Anchors ascend. Scheme is how its digests were made. Plateau is how many calls in a
// row missed and read the same count.
type Trace struct {
	Entry    string
	Response string
	Scheme   string
	Complete bool
	First    bool
	Opened   float64
	Closed   float64
	Surface  string
	Model    string
	Served   string
	Effort   string
	Route    string
	Endpoint string
	Agent    string
	Written  string
	Parts    Parts
	Tools    []call.Tool
	Messages int64
	Bounds   []Bound
	Anchors  []Anchor
	Tokens   int64
	Cached   int64
	Stored   int64
	Plateau  int
}

// Room has the traces that nobody holds any more, for those of later calls to be made in: most calls take the place of
// another one. Those with a locator take twice the memory of the others, and are made in each other's place alone. The zero
// value is empty.
type Room struct{ located, others sync.Pool }

func (r *Room) of(located bool) *sync.Pool {
	if located {
		return &r.located
	}
	return &r.others
}

// Leave gives a trace back that nobody else holds.
func (r *Room) Leave(gone *Trace) { r.of(len(gone.Bounds) > 0).Put(gone) }

// Of is the trace of a call. It holds the call's own texts: whoever keeps it lets them go by Own.
func (r *Room) Of(c *call.Call) *Trace {
	trace, _ := r.of(len(c.Context.Locator) > 0).Get().(*Trace)
	if trace == nil {
		trace = &Trace{}
	}
	usage := &c.Usage
	*trace = Trace{
		Entry: Name(c), Response: c.Request.ResponseID, Scheme: c.Origin.DigestScheme, Complete: c.Ours(),
		Opened: Seconds(c.Place.Start), Closed: Seconds(c.Place.End), Surface: c.Model.Surface,
		Model: c.Model.Requested, Served: c.Model.Served, Effort: c.Model.Effort,
		Route: c.Model.Route, Endpoint: c.Model.Endpoint, Agent: c.Task.Agent,
		Written: attribution.Retained(usage), Parts: parts(&c.Context),
		Tools: tools(c.Context.Tools), Messages: told(c.Context.HistoryLength), Bounds: bounds(trace.Bounds[:0], c.Context.Locator),
		Anchors: trace.Anchors[:0],
		Tokens:  told(usage.Input), Cached: told(usage.CacheRead), Stored: Unknown,
	}
	if usage.CacheRead != nil {
		trace.Stored = trace.Cached + max(0, told(usage.CacheWrite))
	}
	if last := len(trace.Bounds) - 1; last >= 0 && trace.Messages == Unknown {
		trace.Messages = trace.Bounds[last].Messages
	}
	return trace
}

// Copy is a trace that holds nothing in common with this one that a Room would write over.
func (t *Trace) Copy() *Trace {
	copied := *t
	copied.Bounds, copied.Anchors = slices.Clone(t.Bounds), slices.Clone(t.Anchors)
	return &copied
}

// Own gives the trace texts of its own, which do not keep anything else in memory: those of another trace, where that has
// the same.
func (t *Trace) Own(other *Trace) {
	if other == nil {
		other = &Trace{}
	}
	t.Response = strings.Clone(t.Response)
	for _, text := range [...]struct{ own, known *string }{
		{&t.Scheme, &other.Scheme}, {&t.Surface, &other.Surface}, {&t.Model, &other.Model}, {&t.Served, &other.Served},
		{&t.Effort, &other.Effort}, {&t.Route, &other.Route}, {&t.Endpoint, &other.Endpoint}, {&t.Agent, &other.Agent},
	} {
		if *text.own == *text.known {
			*text.own = *text.known
		} else {
			*text.own = strings.Clone(*text.own)
		}
	}
}

// Name is what a call is known by: its entry, else its span, else its answer; empty if it has none of them.
func Name(c *call.Call) string {
	switch {
	case c.Origin.EntryID != "":
		return strings.Clone(c.Origin.EntryID)
	case !c.Place.Span.IsEmpty():
		return string(seat(make([]byte, 0, 2*len(c.Place.Trace)+1+2*len(c.Place.Span)), c))
	default:
		return strings.Clone(c.Request.ResponseID)
	}
}

// Names are the digests of a call's names: of its own, of that of its answer, and of what its record says alike with one of
// the other kind, of a span and of a log record each; 0 is none.
type Names struct {
	own, answer  Part
	span, record Part
	told         bool
}

// NamesOf gives the names of a call.
func NamesOf(c *call.Call) Names {
	found := Names{answer: short(c.Request.ResponseID), told: !c.Place.Span.IsEmpty()}
	switch {
	case c.Origin.EntryID != "":
		found.own = short(c.Origin.EntryID)
	case found.told:
		var room [2*len(c.Place.Trace) + 1 + 2*len(c.Place.Span)]byte
		found.own = Part(xxh3.Hash(seat(room[:0], c)))
	}
	if like := c.Likeness(); like != "" {
		found.span, found.record = short("span "+like), short("record "+like)
	}
	return found
}

// Known are the names that a call is remembered by.
func (n Names) Known() Few { return n.few(n.told) }

// Sought are those by which it is looked for: of spans and log records without an id in common, the other kind's.
func (n Names) Sought() Few { return n.few(!n.told) }

// Answer is the name of its answer, 0 where it has none.
func (n Names) Answer() Part { return n.answer }

func (n Names) few(span bool) Few {
	like := n.record
	if span {
		like = n.span
	}
	var found Few
	for _, name := range [...]Part{n.own, n.answer, like} {
		if name != 0 && !slices.Contains(found.All(), name) {
			found.parts[found.many] = name
			found.many++
		}
	}
	return found
}

// Few are up to three names.
type Few struct {
	parts [3]Part
	many  int
}

// All gives them.
func (f *Few) All() []Part { return f.parts[:f.many] }

// seat writes down where a span stands: its trace, if it has one, and itself.
func seat(into []byte, c *call.Call) []byte {
	if !c.Place.Trace.IsEmpty() {
		into = append(hex.AppendEncode(into, c.Place.Trace[:]), '/')
	}
	return hex.AppendEncode(into, c.Place.Span[:])
}

// Seconds is a time in seconds since the Unix epoch, 0 for none.
func Seconds(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMicro()) / 1e6
}

func told(count *int64) int64 {
	if count == nil {
		return Unknown
	}
	return *count
}

// Count is a count as it is told, nil for Unknown.
func Count(count int64) *int64 {
	if count == Unknown {
		return nil
	}
	return &count
}

func parts(context *call.Context) Parts {
	return Parts{
		short(context.Policy), short(context.PolicyWire), short(context.ToolSchema), short(context.ToolWire),
		short(context.Summary), short(context.RepoSnapshot), short(context.Identity), short(context.CacheIdentity),
	}
}

func short(digest string) Part {
	if digest == "" {
		return 0
	}
	return Part(xxh3.HashString(digest))
}

// Bounds of what one trace keeps.
const (
	maxTools   = 64
	maxAnchors = 16
	maxBounds  = 24
)

func tools(told []call.Tool) []call.Tool {
	if len(told) == 0 {
		return nil
	}
	kept := make([]call.Tool, min(len(told), maxTools))
	for at := range kept {
		kept[at] = call.Tool{Name: strings.Clone(told[at].Name), Digest: strings.Clone(told[at].Digest)}
	}
	return kept
}

// bounds are a locator's, each once and with bytes that do not fall: what is told otherwise is no locator.
func bounds(room []Bound, locator []call.Boundary) []Bound {
	if len(locator) == 0 {
		return nil
	}
	many := min(len(locator), maxBounds)
	found := slices.Grow(room, many)[:many]
	for at := range found {
		found[at] = Bound{locator[at].Messages, locator[at].Bytes, short(locator[at].Digest)}
	}
	byMessages := func(a, b Bound) int { return cmp.Compare(a.Messages, b.Messages) }
	if !slices.IsSortedFunc(found, byMessages) {
		slices.SortFunc(found, byMessages)
	}
	for at := 1; at < len(found); at++ {
		if found[at].Messages == found[at-1].Messages || found[at].Bytes < found[at-1].Bytes {
			return nil
		}
	}
	return found
}

// Size is about how many bytes a trace holds.
func (t *Trace) Size() int {
	const overhead, perBound, perAnchor, perTool, located = 512, 24, 16, 96, 96
	size := overhead
	if len(t.Bounds) > 0 {
		size += located
	}
	return size + perBound*len(t.Bounds) + perAnchor*len(t.Anchors) + perTool*len(t.Tools)
}

// bytes is how many bytes the whole request has, 0 where it told no locator.
func (t *Trace) bytes() int64 {
	if len(t.Bounds) == 0 {
		return 0
	}
	return t.Bounds[len(t.Bounds)-1].Bytes
}

// Anchored gives the trace the counts that hold for it: those of a comparable trace up to what they share, and its own.
func (t *Trace) Anchored(link Link) {
	t.First = link.Head == nil
	kept := t.Anchors[:0]
	if link.Head != nil && link.Located {
		kept = slices.Grow(kept, len(link.Head.Anchors)+1)
		for _, anchor := range link.Head.Anchors {
			if anchor.Bytes <= link.Bytes && anchor.Bytes < t.bytes() && (t.Tokens == Unknown || anchor.Tokens <= t.Tokens) {
				kept = append(kept, anchor)
			}
		}
	}
	if t.Tokens != Unknown && len(t.Bounds) > 0 {
		over := max(0, len(kept)-maxAnchors+1)
		kept = append(kept[:copy(kept, kept[over:])], Anchor{t.bytes(), t.Tokens})
	}
	t.Anchors = kept
}

// Ends are the digests of the last boundaries but for the header's, the last one first, each with how it was made.
func (t *Trace) Ends(yield func(Part) bool) {
	scheme := short(t.Scheme)
	for _, bound := range slices.Backward(t.Bounds) {
		if bound.Messages > 0 && !yield(bound.Digest^scheme) {
			return
		}
	}
}
