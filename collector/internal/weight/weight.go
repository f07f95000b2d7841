// Package weight owns how text divides a known number of tokens: what a byte weighs in tokens beside another, without a
// tokenizer. A list of tools and prose have different numbers of bytes per token; all tokenizers cut text at about the
// same places: words, marks, digits, lines. Only the ratio of two weights is ever used; how many tokens there are is the
// provider's word.
package weight

import (
	"bytes"
	"math"
	"sort"
	"strings"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
)

// Tokens per word, and per byte of a letter, mark, digit and line break: one compromise for cl100k, o200k and two short
// vocabularies, on tool schemas, prose, Markdown and code (measured by the Python package's authors).
const (
	word   = 0.4
	letter = 0.17
	mark   = 0.4
	digit  = 0.8
	line   = 1.0
)

// A byte beyond ASCII is where vocabularies differ; it is solved for from the reported count, within these bounds.
const (
	otherLeast = 0.15
	otherMost  = 0.9
)

// farOff is how many times more or less than the text weighs a count must be not to be that of the text alone.
const farOff = 2.0

// maxStretch is the longest stretch in bytes that is weighed; longer ones are divided by bytes.
const maxStretch = 64 << 10

// What gateways that estimate and simulators report: a quarter of the bytes, give or take the rendering.
const (
	estimatedBytes = 4
	estimateSlack  = 0.02
)

// sum is about how many tokens the ASCII part of a text has, and its other bytes.
type sum struct{ own, other float64 }

func (s *sum) add(whole sum, part float64) {
	s.own += part * whole.own
	s.other += part * whole.other
}

func weigh(raw []byte) sum {
	var found sum
	for at, sign := range raw {
		switch {
		case 'A' <= sign && sign <= 'Z' || 'a' <= sign && sign <= 'z':
			found.own += letter
			if at+1 < len(raw) && !alphabetic(raw[at+1]) {
				found.own += word
			}
		case sign >= 0x80:
			found.other++
		case '0' <= sign && sign <= '9':
			found.own += digit
		case sign == '\n':
			found.own += line
		case sign != ' ' && sign != '\t' && sign != '\r':
			found.own += mark
		}
	}
	return found
}

func alphabetic(sign byte) bool {
	return 'A' <= sign && sign <= 'Z' || 'a' <= sign && sign <= 'z'
}

// Tokens gives the tokens up to a byte position of an outline, by the weight of the text between the two reported counts
// around it; false where nothing was reported to measure by.
func Tokens(anchors []lineage.Anchor, size int, outline *segments.Outline) (int64, bool) {
	if len(anchors) == 0 {
		return 0, false
	}
	below, above := around(anchors, size)
	if above == nil || above.Size == below.Size {
		return below.Tokens, true
	}
	tokens := above.Tokens - below.Tokens
	part := float64(size-below.Size) / float64(above.Size-below.Size)
	if above.Size-below.Size <= maxStretch && !estimated(anchors) {
		part = share(outline, below.Size, above.Size, size, float64(tokens))
	}
	return below.Tokens + int64(part*float64(tokens)), true
}

// around are the last anchor up to a position and the first one from it on.
func around(anchors []lineage.Anchor, size int) (below lineage.Anchor, above *lineage.Anchor) {
	for at, anchor := range anchors {
		if anchor.Size <= size && (anchor.Size > below.Size || below.Size == 0) {
			below = anchor
		}
		if anchor.Size >= size && (above == nil || anchor.Size < above.Size) {
			above = &anchors[at]
		}
	}
	return below, above
}

// estimated says whether the reported counts follow the bytes from one to the next, as no tokenizer's do.
func estimated(anchors []lineage.Anchor) bool {
	var before lineage.Anchor
	off, total := 0.0, 0.0
	for _, anchor := range anchors {
		tokens := float64(anchor.Tokens - before.Tokens)
		off += math.Abs(tokens - float64(anchor.Size-before.Size)/estimatedBytes)
		total += tokens
		before = anchor
	}
	return off <= estimateSlack*total
}

// share is the part (0 to 1) of the tokens between two byte positions of an outline, edges of segments, that lies before
// a third one between them.
func share(outline *segments.Outline, start, end, at int, tokens float64) float64 {
	var before, total sum
	for _, piece := range pieces(outline, start, end) {
		whole := weigh(piece.text())
		total.add(whole, 1)
		if piece.begin < at {
			before.add(whole, piece.part(at))
		}
	}
	other := min(otherMost, max(otherLeast, (tokens-total.own)/max(1, total.other)))
	weight := total.own + other*total.other
	if weight/farOff >= tokens || tokens >= weight*farOff {
		return float64(at-start) / float64(end-start)
	}
	return (before.own + other*before.other) / weight
}

type piece struct {
	begin, size int
	kind        string
	value       any
}

// text is what of a piece is weighed: the JSON of a message is the client's, a chat template renders what it holds.
func (p piece) text() []byte {
	if p.kind == segments.Tool {
		return canonical.Form(p.value)
	}
	return []byte(strings.Join(spoken(nil, p.value), "\n"))
}

// part is the part (0 to 1) of a piece's weight that lies before a position. The JSON in front of the first text of a
// message is the client's own and weighs nothing.
func (p piece) part(at int) float64 {
	if p.begin+p.size <= at {
		return 1
	}
	raw, lead := canonical.Form(p.value), 0
	if p.kind != segments.Tool {
		lead = bytes.Index(raw, []byte(`":"`)) + len(`":"`)
	}
	first := weigh(raw[min(lead, len(raw)):max(min(lead, len(raw)), min(at-p.begin, len(raw)))])
	all := weigh(raw[min(lead, len(raw)):])
	return (first.own + otherLeast*first.other) / max(1, all.own+otherLeast*all.other)
}

// spoken are the texts in a value.
func spoken(found []string, value any) []string {
	switch value := value.(type) {
	case string:
		return append(found, value)
	case canonical.Object:
		for _, member := range value {
			found = spoken(found, member.Value)
		}
	case []any:
		for _, item := range value {
			found = spoken(found, item)
		}
	}
	return found
}

// pieces are the segments between two edges.
func pieces(outline *segments.Outline, start, end int) []piece {
	found, edge := []piece{}, 0
	if start < outline.HeaderSize {
		for _, segment := range outline.Header {
			found = append(found, piece{edge, segment.Size, segment.Kind, segment.Value})
			edge += segment.Size
		}
	}
	edges := make([]int, len(outline.Messages))
	edge = outline.HeaderSize
	for at, size := range outline.Sizes {
		edges[at] = edge
		edge += size
	}
	first := max(0, sort.SearchInts(edges, start+1)-1)
	for at := first; at < len(edges) && edges[at] < end; at++ {
		found = append(found, piece{edges[at], outline.Sizes[at], segments.Message, outline.Messages[at]})
	}
	return found
}
