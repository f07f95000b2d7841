package call

import (
	"math"
	"strconv"
	"strings"
)

// Boundary is one entry of a prefix locator: the digest of everything up to and including message Messages (0: the
// header alone), and how many bytes of canonical form that is. Digest has 16 hex digits.
type Boundary struct {
	Messages int64
	Bytes    int64
	Digest   string
}

const (
	maxBoundaries   = 24
	maxDigits       = 18
	boundaryFields  = 3
	maxDigestLength = 64
)

// ReadBoundary gives the boundary that a locator's text tells, `messages:bytes:digest`; false where it tells none.
func ReadBoundary(text string) (Boundary, bool) {
	parts := strings.Split(text, ":")
	if len(parts) != boundaryFields || parts[2] == "" || len(parts[2]) > maxDigestLength {
		return Boundary{}, false
	}
	messages, whole := number(parts[0])
	size, sized := number(parts[1])
	return Boundary{Messages: messages, Bytes: size, Digest: strings.Clone(parts[2])}, whole && sized
}

// String gives the boundary as a locator tells it.
func (b Boundary) String() string {
	return strconv.FormatInt(b.Messages, 10) + ":" + strconv.FormatInt(b.Bytes, 10) + ":" + b.Digest
}

// number reads ASCII digits alone: no sign, no space, no more than fit into an int64.
func number(text string) (int64, bool) {
	if text == "" || len(text) > maxDigits || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	found, err := strconv.ParseInt(text, 10, 64)
	return found, err == nil
}

// decimal reads a plain decimal number; NaN where it is none.
func decimal(text string) float64 {
	if text == "" || len(text) > 2*maxDigits || strings.Trim(text, "0123456789.eE-+") != "" {
		return math.NaN()
	}
	found, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return found
}
