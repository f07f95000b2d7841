// Package spelling owns how a text that somebody else chose is spelled where it leaves: short, printable, on one line
// (spec/README.md, "Names and words"). Which field is a name and which a word is up to those who fill it.
package spelling

import (
	"math/big"
	"regexp"
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

var (
	wordForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:+-]{0,63}$`)
	// pathForm are the beginnings of a path of a machine: servers of local models call a model by the file that it is in.
	pathForm = regexp.MustCompile(`^(?:[/~\\]|[A-Za-z]:[/\\]|file:)`)
)

// Name is at most `most` characters of a text, those that are no visible part of one line replaced by U+FFFD.
func Name(text string, most int) string {
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

// Model is a model's name; of a path on the machine only the last part, for the rest may name a user.
func Model(text string) string {
	if pathForm.MatchString(text) {
		parts := strings.FieldsFunc(strings.TrimRight(text, `/\`), func(sign rune) bool { return sign == '/' || sign == '\\' })
		if text = Other; len(parts) > 0 {
			text = parts[len(parts)-1]
		}
	}
	return Name(text, MaxName)
}

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
	if text == "" || wordForm.MatchString(text) {
		return text
	}
	return Other
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
