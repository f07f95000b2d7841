package canonical

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// whole is the float above which floats name ranges and no numbers.
const whole = 1 << 53

// maxBits is the length of the largest integer that is written in digits.
const maxBits = 4096

// Form gives the canonical bytes of a JSON value: keys sorted, numbers in their one form. It never fails; what JSON has
// no form for is replaced by a tag.
func Form(value any) []byte {
	return form(nil, value, true, 0)
}

// Wire gives the bytes of a value in the order in which it was written.
func Wire(value any) []byte {
	return form(nil, value, false, 0)
}

func form(out []byte, value any, sorted bool, depth int) []byte {
	switch value := value.(type) {
	case nil:
		return append(out, "null"...)
	case bool:
		return strconv.AppendBool(out, value)
	case string:
		return quoted(out, value)
	case []any:
		return listed(out, value, sorted, depth)
	case Object:
		return membered(out, value, sorted, depth)
	default:
		return numbered(out, value, sorted)
	}
}

func numbered(out []byte, value any, sorted bool) []byte {
	switch value := value.(type) {
	case int:
		return strconv.AppendInt(out, int64(value), 10)
	case int64:
		return strconv.AppendInt(out, value, 10)
	case float64:
		return floated(out, value, sorted)
	case *big.Int:
		if value.BitLen() <= maxBits {
			return value.Append(out, 10)
		}
		return quoted(out, "\x00int:"+value.Text(16))
	default:
		return quoted(out, fmt.Sprintf("\x00type:%T", value))
	}
}

func listed(out []byte, items []any, sorted bool, depth int) []byte {
	if depth >= MaxDepth {
		return quoted(out, "\x00cut")
	}
	out = append(out, '[')
	for at, item := range items {
		if at > 0 {
			out = append(out, ',')
		}
		out = form(out, item, sorted, depth+1)
	}
	return append(out, ']')
}

func membered(out []byte, object Object, sorted bool, depth int) []byte {
	if depth >= MaxDepth {
		return quoted(out, "\x00cut")
	}
	if sorted && !slices.IsSortedFunc(object, byName) {
		object = slices.Clone(object)
		slices.SortStableFunc(object, byName)
	}
	out = append(out, '{')
	for at, member := range object {
		if at > 0 {
			out = append(out, ',')
		}
		out = append(quoted(out, member.Name), ':')
		out = form(out, member.Value, sorted, depth+1)
	}
	return append(out, '}')
}

// byName orders by bytes of UTF-8, which is the order of code points.
func byName(a, b Member) int {
	return strings.Compare(a.Name, b.Name)
}

const hexDigits = "0123456789abcdef"

var short = map[byte]string{
	'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`,
}

func quoted(out []byte, text string) []byte {
	out = append(out, '"')
	start := 0
	for at := range len(text) {
		sign := text[at]
		if sign >= ' ' && sign != '"' && sign != '\\' {
			continue
		}
		out = append(out, text[start:at]...)
		start = at + 1
		if escape, ok := short[sign]; ok {
			out = append(out, escape...)
		} else {
			out = append(out, '\\', 'u', '0', '0', hexDigits[sign>>4], hexDigits[sign&15])
		}
	}
	return append(append(out, text[start:]...), '"')
}

// floated writes a float in the fewest digits that read back as it; in the canonical form a whole one is an integer.
func floated(out []byte, value float64, sorted bool) []byte {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return quoted(out, "\x00float:"+unwritable(value))
	}
	if sorted && value == math.Trunc(value) && math.Abs(value) <= whole {
		return strconv.AppendInt(out, int64(value), 10)
	}
	return shortest(out, value)
}

// unwritable is what Python calls the floats that JSON has no form for.
func unwritable(value float64) string {
	switch {
	case math.IsNaN(value):
		return "nan"
	case value > 0:
		return "inf"
	default:
		return "-inf"
	}
}

// shortest writes digits as ryu's pretty printer does: an exponent below 1e-5 and from 1e16 on.
func shortest(out []byte, value float64) []byte {
	size := math.Abs(value)
	if size != 0 && (size < 1e-5 || size >= 1e16) {
		exponential := strconv.FormatFloat(value, 'e', -1, 64)
		mantissa, exponent, _ := strings.Cut(exponential, "e")
		power, _ := strconv.Atoi(exponent)
		return strconv.AppendInt(append(append(out, mantissa...), 'e'), int64(power), 10)
	}
	before := len(out)
	out = strconv.AppendFloat(out, value, 'f', -1, 64)
	if !slices.Contains(out[before:], '.') {
		out = append(out, ".0"...)
	}
	return out
}
