// Package spelling owns how a text that somebody else chose is spelled where it leaves: short, printable, on one line
// (spec/README.md, "Names and words"). Which field is a name and which a word is up to those who fill it.
package spelling

import (
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
)

// MaxName is the length of a name in characters; MaxTool that of a tool's name.
const (
	MaxName = 256
	MaxTool = 64
)

// Other stands for what is no word.
const Other = "other"

const cut = "…"

// digestDigits is how many hex digits of a digest stand for the rest of a name.
const digestDigits = 16

// maxWord is the length of a word.
const maxWord = 64

// Name is at most `most` characters of a text, those that are no visible part of one line replaced by U+FFFD.
func Name(text string, most int) string {
	if len(text) <= most && plain(text) {
		return text
	}
	var built strings.Builder
	for _, sign := range text {
		if most--; most < 0 {
			break
		}
		if !unicode.IsPrint(sign) {
			sign = utf8.RuneError
		}
		built.WriteRune(sign)
	}
	return built.String()
}

// plain says whether a text is of visible ASCII characters and spaces alone, as nearly every name is.
func plain(text string) bool {
	for at := range len(text) {
		if text[at] < ' ' || text[at] > '~' {
			return false
		}
	}
	return true
}

// Model is a model's name; of a path on the machine only the last part, for the rest may name a user.
func Model(text string) string {
	if path(text) {
		parts := strings.FieldsFunc(strings.TrimRight(text, `/\`), func(sign rune) bool { return sign == '/' || sign == '\\' })
		if text = Other; len(parts) > 0 {
			text = parts[len(parts)-1]
		}
	}
	return Name(text, MaxName)
}

// path says whether a text begins like a path of a machine: servers of local models call a model by the file that it is in.
func path(text string) bool {
	if text == "" {
		return false
	}
	drive := len(text) > 2 && text[1] == ':' && letter(text[0]) && (text[2] == '/' || text[2] == '\\')
	return strings.IndexByte(`/~\`, text[0]) >= 0 || drive || strings.HasPrefix(text, "file:")
}

func letter(sign byte) bool { return 'a' <= sign|' ' && sign|' ' <= 'z' }

// Session is a session's name; one that had to be changed ends in a digest, so that two sessions stay two.
func Session(text string, export canonical.Exporter) string {
	spelled := Name(text, MaxName)
	if spelled == text {
		return text
	}
	return first(spelled, MaxName-digestDigits-1) + "~" + export.Digits(canonical.OfText(text))
}

// Word is a word such as `tool_calls` or `in-memory`, empty for none; whatever is no word is `other`.
func Word(text string) string {
	if text == "" || word(text) {
		return text
	}
	return Other
}

func word(text string) bool {
	if len(text) > maxWord || strings.IndexByte(".:+-", text[0]) >= 0 {
		return false
	}
	for at := range len(text) {
		sign := text[at]
		if !letter(sign) && (sign < '0' || sign > '9') && strings.IndexByte("_.:+-", sign) < 0 {
			return false
		}
	}
	return true
}

// Named is the name of a task, attempt or session that a value stands for, empty for none: of a text or a whole number.
func Named(value any, export canonical.Exporter) string {
	text := strings.TrimFunc(said(value), space)
	text = Name(text, len(text))
	if utf8.RuneCountInString(text) <= MaxName {
		return text
	}
	kept := MaxName - digestDigits - utf8.RuneCountInString(cut)
	return first(text, kept) + cut + export.Digits(canonical.OfText(text))
}

func said(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case int64:
		return strconv.FormatInt(value, 10)
	case *big.Int:
		return value.String()
	default:
		return ""
	}
}

// space is what surrounds a name: the separators of ASCII too, which Go takes for controls alone.
func space(sign rune) bool {
	return unicode.IsSpace(sign) || ('\x1c' <= sign && sign <= '\x1f')
}

func first(text string, most int) string {
	for at := range text {
		if most == 0 {
			return text[:at]
		}
		most--
	}
	return text
}
