// Package traces owns what is kept of a call of which nothing was captured: times, counts, the digests and the locator
// that it told. Two of them are held against each other by these alone; no text is kept.
package traces

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/attribution"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
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

// Of is the trace of a call.
func Of(c *call.Call) Trace {
	usage := c.Usage
	trace := Trace{
		Entry: Name(c), Response: strings.Clone(c.Request.ResponseID), Scheme: strings.Clone(c.Origin.DigestScheme),
		Complete: c.Ours(),
		Opened:   Seconds(c.Place.Start), Closed: Seconds(c.Place.End), Surface: strings.Clone(c.Model.Surface),
		Model: strings.Clone(c.Model.Requested), Served: strings.Clone(c.Model.Served), Effort: strings.Clone(c.Model.Effort),
		Route: strings.Clone(c.Model.Route), Endpoint: strings.Clone(c.Model.Endpoint), Agent: strings.Clone(c.Task.Agent),
		Written: attribution.Written(attribution.Answer{Usage: usage}, segments.Request{}), Parts: parts(c.Context),
		Tools: tools(c.Context.Tools), Messages: told(c.Context.HistoryLength), Bounds: bounds(c.Context.Locator),
		Tokens: told(usage.Input), Cached: told(usage.CacheRead), Stored: Unknown,
	}
	if usage.CacheRead != nil {
		trace.Stored = trace.Cached + max(0, told(usage.CacheWrite))
	}
	if last := len(trace.Bounds) - 1; last >= 0 && trace.Messages == Unknown {
		trace.Messages = trace.Bounds[last].Messages
	}
	return trace
}

// Name is what a call is known by: its entry, else its span, else its answer; empty if it has none of them.
func Name(c *call.Call) string {
	switch {
	case c.Origin.EntryID != "":
		return strings.Clone(c.Origin.EntryID)
	case !c.Place.Span.IsEmpty():
		return strings.TrimPrefix(c.Place.Trace.String()+"/"+c.Place.Span.String(), "/")
	default:
		return strings.Clone(c.Request.ResponseID)
	}
}

// Known are the digests of the names that a call is remembered by: its own, that of its answer, and what a span or a log
// record of it says alike with one of the other kind.
func Known(c *call.Call) []Part { return named(c, !c.Place.Span.IsEmpty()) }

// Sought are those by which it is looked for: of spans and log records without an id in common, the other kind's.
func Sought(c *call.Call) []Part { return named(c, c.Place.Span.IsEmpty()) }

func named(c *call.Call, span bool) []Part {
	names, like := []Part{}, c.Likeness()
	if like != "" {
		like = map[bool]string{true: "span ", false: "record "}[span] + like
	}
	for _, name := range []string{Name(c), c.Request.ResponseID, like} {
		if name != "" && !slices.Contains(names, short(name)) {
			names = append(names, short(name))
		}
	}
	return names
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

func parts(context call.Context) Parts {
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
	kept := make([]call.Tool, min(len(told), maxTools))
	for at := range kept {
		kept[at] = call.Tool{Name: strings.Clone(told[at].Name), Digest: strings.Clone(told[at].Digest)}
	}
	return kept
}

// bounds are a locator's, each once and with bytes that do not fall: what is told otherwise is no locator.
func bounds(locator []call.Boundary) []Bound {
	found := []Bound{}
	for _, boundary := range locator[:min(len(locator), maxBounds)] {
		found = append(found, Bound{boundary.Messages, boundary.Bytes, short(boundary.Digest)})
	}
	slices.SortFunc(found, func(a, b Bound) int { return cmp.Compare(a.Messages, b.Messages) })
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
	kept := []Anchor{}
	if link.Head != nil && link.Located {
		for _, anchor := range link.Head.Anchors {
			if anchor.Bytes <= link.Bytes && anchor.Bytes < t.bytes() && (t.Tokens == Unknown || anchor.Tokens <= t.Tokens) {
				kept = append(kept, anchor)
			}
		}
	}
	if t.Tokens != Unknown && len(t.Bounds) > 0 {
		kept = append(kept[max(0, len(kept)-maxAnchors+1):], Anchor{t.bytes(), t.Tokens})
	}
	t.Anchors = kept
}

// Ends are the digests of the last boundaries but for the header's, the last one first, each with how it was made.
func (t *Trace) Ends(most int) []Part {
	found := []Part{}
	for _, bound := range slices.Backward(t.Bounds) {
		if len(found) < most && bound.Messages > 0 {
			found = append(found, bound.Digest^short(t.Scheme))
		}
	}
	return found
}
