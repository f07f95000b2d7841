// Package observed owns what providers' answers show of their caches: the step of their counts and the sizes that hit. It
// corrects the facts.
package observed

import (
	"slices"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/recent"
)

// A step that nobody documented is believed after so many different counts, and only if it is no accident.
const (
	samples      = 4
	smallestStep = 16
	maxScopes    = 512
)

// Scope is what a provider's cache is kept apart by, as far as a client can see.
type Scope struct{ Surface, Model, Endpoint string }

// Observed is the common divisor of the cached counts of a scope, the different counts, and the smallest prompt that hit;
// tokens, 0 is none.
type Observed struct {
	Step        int64
	Counts      []int64
	SmallestHit int64
}

// Block is the block size to reckon with: the documented one (0: none) until a count contradicts it.
func (o Observed) Block(documented int64) int64 {
	switch {
	case documented > 0 && o.Step%documented == 0:
		return documented
	case len(o.Counts) >= samples && o.Step >= smallestStep:
		return o.Step
	default:
		return 1
	}
}

// Observations are what was observed per scope, the least recently used forgotten first. They are not locked.
type Observations struct {
	known *recent.Map[Scope, Observed]
}

// New makes observations of nothing.
func New() *Observations {
	return &Observations{recent.New[Scope, Observed]()}
}

// Of is what is known of a scope.
func (o *Observations) Of(scope Scope) Observed {
	found, _ := o.known.Get(scope)
	return found
}

// Note notes a reported count and the size of the prompt that it was read from, nil where that is unknown.
func (o *Observations) Note(scope Scope, cached, previous *int64) {
	if cached == nil || *cached == 0 {
		return
	}
	found := o.Of(scope)
	found.Step = divisor(found.Step, *cached)
	if len(found.Counts) < 2*samples && !slices.Contains(found.Counts, *cached) {
		found.Counts = append(slices.Clone(found.Counts), *cached)
	}
	if previous != nil && *previous > 0 && (found.SmallestHit == 0 || *previous < found.SmallestHit) {
		found.SmallestHit = *previous
	}
	o.known.Bound(scope, found, maxScopes)
}

func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
