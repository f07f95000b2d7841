package contextledgerconnector

import (
	"strings"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

const (
	// other stands for a value beyond the bound of its attribute, in the word that OpenTelemetry has for it.
	other = "_OTHER"
	// overflow marks the series of what is beyond the bound of its metric, as OpenTelemetry does.
	overflow = "otel.metric.overflow"
	// maxLength is how many bytes of a value are told; the ledger's own spelling allows no more characters.
	maxLength = 256
)

// closed has the values of the attributes that are enumerations.
var closed = closedLists()

func closedLists() map[string]map[string]struct{} {
	found := make(map[string]map[string]struct{}, len(semconv.Members))
	for key, words := range semconv.Members {
		found[key] = make(map[string]struct{}, len(words))
		for _, word := range words {
			found[key][word] = struct{}{}
		}
	}
	return found
}

// bounds keeps the values of attributes few: words of the registry for an enumeration, the first so many values of any
// other.
type bounds struct {
	most int
	seen map[string]map[string]struct{}
}

func newBounds(most int) *bounds {
	return &bounds{most: most, seen: map[string]map[string]struct{}{}}
}

// fit gives the value to be told of an attribute, and whether that is the value itself.
func (b *bounds) fit(key, value string) (string, bool) {
	if words, ok := closed[key]; ok {
		if _, known := words[value]; !known {
			return other, false
		}
		return value, true
	}
	if len(value) > maxLength {
		value = value[:maxLength]
	}
	return b.open(key, strings.ToValidUTF8(value, "\uFFFD"))
}

func (b *bounds) open(key, value string) (string, bool) {
	seen := b.seen[key]
	if _, known := seen[value]; known {
		return value, true
	}
	if len(seen) >= b.most {
		return other, false
	}
	if seen == nil {
		seen = map[string]struct{}{}
		b.seen[key] = seen
	}
	seen[strings.Clone(value)] = struct{}{}
	return value, true
}

// retain forgets all values but those of these pairs.
func (b *bounds) retain(pairs func(yield func(pair) bool)) {
	b.seen = map[string]map[string]struct{}{}
	for told := range pairs {
		if _, ok := closed[told.key]; !ok && told.value != other {
			b.open(told.key, told.value)
		}
	}
}
