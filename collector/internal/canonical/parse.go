package canonical

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is how deep a value may nest to be read: one that nests deeper is no message of any client.
const MaxDepth = 200

// maxDigits is the length of the longest number that is read; Python reads no longer one either.
const maxDigits = 4300

// ErrDepth is returned of a text that nests deeper than MaxDepth.
var ErrDepth = errors.New("nested too deep")

// Parse reads one JSON text of UTF-8. A lone surrogate becomes its text `\udXXX`, bytes that are no UTF-8 become U+FFFD;
// of members with one name the last value counts. Other errors say at which byte the text is no JSON.
func Parse(text string) (any, error) {
	p := parser{text: text}
	value, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.space(); p.at != len(text) {
		return nil, p.wrong("more than one value")
	}
	return value, nil
}

type parser struct {
	text string
	at   int
}

func (p *parser) wrong(why string) error {
	return fmt.Errorf("%s at byte %d", why, p.at)
}

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// next is the next byte that is no space, 0 at the end.
func (p *parser) next() byte {
	p.space()
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

var constants = []struct {
	word  string
	value any
}{{"null", nil}, {"true", true}, {"false", false}}

func (p *parser) value(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, ErrDepth
	}
	switch first := p.next(); first {
	case '{':
		return p.object(depth)
	case '[':
		return p.list(depth)
	case '"':
		return p.str()
	default:
		return p.atom()
	}
}

func (p *parser) atom() (any, error) {
	for _, constant := range constants {
		if strings.HasPrefix(p.text[p.at:], constant.word) {
			p.at += len(constant.word)
			return constant.value, nil
		}
	}
	return p.number()
}

func (p *parser) object(depth int) (any, error) {
	p.at++
	found := Object{}
	for first := true; ; first = false {
		ended, err := p.separated('}', first)
		if ended || err != nil {
			return found.unique(), err
		}
		if p.next() != '"' {
			return nil, p.wrong("no name of a member")
		}
		name, err := p.str()
		if err != nil {
			return nil, err
		}
		if p.next() != ':' {
			return nil, p.wrong("no colon")
		}
		p.at++
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		found = found.add(name, value)
	}
}

// few members are looked through for one of the same name; of an object with more the names are looked up at its end.
const few = 64

func (o Object) add(name string, value any) Object {
	if len(o) >= few {
		return append(o, Member{name, value})
	}
	return o.put(name, value)
}

func (o Object) unique() Object {
	if len(o) <= few {
		return o
	}
	places := make(map[string]int, len(o))
	kept := o[:0]
	for _, member := range o {
		if at, known := places[member.Name]; known {
			kept[at].Value = member.Value
			continue
		}
		places[member.Name] = len(kept)
		kept = append(kept, member)
	}
	return kept
}

func (p *parser) list(depth int) (any, error) {
	p.at++
	found := []any{}
	for first := true; ; first = false {
		ended, err := p.separated(']', first)
		if ended || err != nil {
			return found, err
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		found = append(found, item)
	}
}

// separated passes over the comma before an item that is not the first, or over the end.
func (p *parser) separated(end byte, first bool) (bool, error) {
	switch next := p.next(); {
	case next == end:
		p.at++
		return true, nil
	case first:
		return false, nil
	case next != ',':
		return false, p.wrong("no comma")
	}
	p.at++
	return false, nil
}

func (p *parser) number() (any, error) {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte("+-.0123456789eE", p.text[p.at]) >= 0 {
		p.at++
	}
	raw := p.text[start:p.at]
	if raw == "" || len(raw) > maxDigits || !numeral(raw) {
		p.at = start
		return nil, p.wrong("no value")
	}
	if !strings.ContainsAny(raw, ".eE") {
		return integer(raw), nil
	}
	// Out of range is infinity, which has a tag of its own in the canonical form.
	found, _ := strconv.ParseFloat(raw, 64)
	return found, nil
}

func integer(raw string) any {
	if small, err := strconv.ParseInt(raw, 10, 64); err == nil {
		return small
	}
	large, _ := new(big.Int).SetString(raw, 10)
	return large
}

// numeral says whether a text is a number of JSON: Go's own readers know more forms.
func numeral(raw string) bool {
	rest := strings.TrimPrefix(raw, "-")
	whole := digits(rest)
	if whole == 0 || (whole > 1 && rest[0] == '0') {
		return false
	}
	rest = rest[whole:]
	if fraction, ok := strings.CutPrefix(rest, "."); ok {
		size := digits(fraction)
		if size == 0 {
			return false
		}
		rest = fraction[size:]
	}
	if rest == "" {
		return true
	}
	exponent := strings.TrimLeft(rest[1:], "+-")
	signs := len(rest) - 1 - len(exponent)
	return (rest[0] == 'e' || rest[0] == 'E') && signs <= 1 && exponent != "" && digits(exponent) == len(exponent)
}

func digits(text string) int {
	at := 0
	for at < len(text) && '0' <= text[at] && text[at] <= '9' {
		at++
	}
	return at
}

func (p *parser) str() (string, error) {
	p.at++
	start := p.at
	for p.at < len(p.text) && p.text[p.at] != '"' && p.text[p.at] != '\\' && p.text[p.at] >= ' ' {
		p.at++
	}
	if p.at < len(p.text) && p.text[p.at] == '"' {
		plain := p.text[start:p.at]
		p.at++
		return strings.ToValidUTF8(plain, "\uFFFD"), nil
	}
	var built strings.Builder
	built.WriteString(p.text[start:p.at])
	if err := p.escaped(&built); err != nil {
		return "", err
	}
	return strings.ToValidUTF8(built.String(), "\uFFFD"), nil
}

// escaped reads the rest of a string that has an escape in it, its closing quote included.
func (p *parser) escaped(built *strings.Builder) error {
	for p.at < len(p.text) {
		switch sign := p.text[p.at]; {
		case sign == '"':
			p.at++
			return nil
		case sign == '\\':
			if err := p.escape(built); err != nil {
				return err
			}
		case sign < ' ':
			return p.wrong("a control character in a text")
		default:
			built.WriteByte(sign)
			p.at++
		}
	}
	return p.wrong("a text without an end")
}

var escapes = map[byte]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

func (p *parser) escape(built *strings.Builder) error {
	if p.at+1 >= len(p.text) {
		return p.wrong("a text without an end")
	}
	kind := p.text[p.at+1]
	if plain, ok := escapes[kind]; ok {
		p.at += 2
		built.WriteByte(plain)
		return nil
	}
	unit, ok := p.unit(p.at)
	if !ok {
		return p.wrong("no escape")
	}
	p.at += 6
	p.write(built, unit)
	return nil
}

// write writes what one or, where the next one belongs to it, two code units stand for.
func (p *parser) write(built *strings.Builder, unit rune) {
	if !utf16.IsSurrogate(unit) {
		built.WriteRune(unit)
		return
	}
	low, ok := p.unit(p.at)
	if whole := utf16.DecodeRune(unit, low); ok && whole != utf8.RuneError {
		p.at += 6
		built.WriteRune(whole)
		return
	}
	fmt.Fprintf(built, `\u%04x`, unit)
}

// unit reads `\uXXXX` at a place.
func (p *parser) unit(at int) (rune, bool) {
	if at+6 > len(p.text) || p.text[at] != '\\' || p.text[at+1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(p.text[at+2:at+6], 16, 16)
	return rune(unit), err == nil
}
