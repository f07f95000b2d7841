// Package cause owns the words in which a missed token is explained: a cause of the closed list, where it was seen, what
// it was derived from and how sure it is. Who is to blame is decided in package attribution.
package cause

import (
	"strings"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Position is where a prefix broke: the segment kind, its index in what was sent, its name, the first differing
// character (of a text) or byte (of a canonical form), and what kind of change it was. Never the text itself. What does
// not apply is nil or empty.
type Position struct {
	Segment string
	Index   *int
	Name    string
	Offset  *int
	Kind    string
}

// At is a position in a segment by its index.
func At(segment string, index int, name, kind string) *Position {
	return &Position{Segment: segment, Index: &index, Name: name, Kind: kind}
}

// From is the position with a place in its segment.
func (p *Position) From(offset int) *Position {
	placed := *p
	placed.Offset = &offset
	return &placed
}

// Cause is why tokens were not reused.
type Cause struct {
	Name       string
	Detail     []string
	Position   *Position
	Evidence   []string
	Confidence string
}

// Seen is a cause that was seen in what was sent.
func Seen(name string, detail ...string) Cause {
	return Cause{Name: name, Detail: detail, Evidence: []string{"local_diff"}, Confidence: semconv.MissConfidenceObserved}
}

// Fits is a cause that only fits.
func Fits(name string, evidence ...string) Cause {
	return Cause{Name: name, Evidence: evidence, Confidence: semconv.MissConfidenceInferred}
}

// In is the cause at a position.
func (c Cause) In(position *Position) Cause {
	c.Position = position
	return c
}

// With is the cause with more details.
func (c Cause) With(detail ...string) Cause {
	c.Detail = append(append([]string{}, c.Detail...), detail...)
	return c
}

// By is the cause with more evidence.
func (c Cause) By(evidence ...string) Cause {
	c.Evidence = append(append([]string{}, c.Evidence...), evidence...)
	return c
}

// Word is the cause with its details as a secondary cause is told: `history_rewritten(pruned)`.
func (c Cause) Word() string {
	if len(c.Detail) == 0 {
		return c.Name
	}
	return c.Name + "(" + strings.Join(c.Detail, ",") + ")"
}
