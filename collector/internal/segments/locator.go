package segments

import (
	"slices"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
)

// A locator keeps the last eight boundaries, then those at multiples of 2, 4, 8, …, three of each, and 0: dense at the
// end and sparser to the start, on a grid that does not move when messages are appended.
const (
	maxEntries = 24
	dense      = 8
	perStep    = 3
)

// Boundaries are those that the locator of a request with so many messages holds, descending.
func Boundaries(last int) []int {
	chosen := []int{}
	for at := last; at >= 0 && at > last-dense; at-- {
		chosen = append(chosen, at)
	}
	for step := 2; step <= last && len(chosen) < maxEntries-1; step *= 2 {
		below := floored(last-dense, step)
		for at := below; at >= 0 && at > below-perStep*step; at -= step {
			if !slices.Contains(chosen, at) {
				chosen = append(chosen, at)
			}
		}
	}
	chosen = chosen[:min(len(chosen), maxEntries-1)]
	if slices.Contains(chosen, 0) {
		return chosen
	}
	return append(chosen, 0)
}

// floored is the largest multiple of a step that is not above a number, which may be negative.
func floored(number, step int) int {
	return number - ((number%step)+step)%step
}

// Locate gives the locator of a request: digests at a few boundaries, by which two requests can be aligned by who sees
// neither of them.
func (o *Outline) Locate(export canonical.Exporter) []call.Boundary {
	found := []call.Boundary{}
	for _, at := range Boundaries(len(o.Messages)) {
		link := o.Root
		if at > 0 {
			link = o.Prefix[at-1]
		}
		found = append(found, call.Boundary{Messages: int64(at), Bytes: int64(o.Size(at)), Digest: export.Digits(link)})
	}
	return found
}
