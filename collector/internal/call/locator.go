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
	maxDigestLength = 64
)

// ReadBoundary gives the boundary that a locator's text tells, `messages:bytes:digest`, of which the digest is a part;
// false where it tells none.
func ReadBoundary(text string) (Boundary, bool) {
	messages, rest, whole := leading(text)
	size, digest, sized := leading(rest)
	if !whole || !sized || digest == "" || len(digest) > maxDigestLength || strings.IndexByte(digest, ':') >= 0 {
		return Boundary{}, false
	}
	return Boundary{Messages: messages, Bytes: size, Digest: digest}, true
}

// leading reads the digits before the first colon.
func leading(text string) (found int64, rest string, whole bool) {
	for at := 0; at < len(text) && at <= maxDigits; at++ {
		digit := text[at] - '0'
		if digit > 9 {
			return found, text[at+1:], text[at] == ':' && at > 0
		}
		found = 10*found + int64(digit)
	}
	return 0, "", false
}

// String gives the boundary as a locator tells it.
func (b Boundary) String() string {
	return strconv.FormatInt(b.Messages, 10) + ":" + strconv.FormatInt(b.Bytes, 10) + ":" + b.Digest
}

// number reads ASCII digits alone: no sign, no space, no more than fit into an int64.
func number(text string) (int64, bool) {
	if text == "" || len(text) > maxDigits {
		return 0, false
	}
	found := int64(0)
	for at := range len(text) {
		digit := text[at] - '0'
		if digit > 9 {
			return 0, false
		}
		found = 10*found + int64(digit)
	}
	return found, true
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
