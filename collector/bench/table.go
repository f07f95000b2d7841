package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	// leastShare and mostMiB are the bars.
	leastShare = 0.80
	mostMiB    = 250
)

// row is a line of the table: shares first, then what they are made of.
type row struct {
	cells [7]string
	held  bool
}

var head = [...]string{"what", "kept with the processor", "and the connector", "bar", "without", "with both", "added"}

// speedRow says what share of its throughput a collector keeps: of spans per second of its processor's time, which is what
// it can do at most, and of those that came out in the time of the clock, which sway with what else the machine does. The
// bar is on the first, with the connector and without. What was added is told apart from what any collector takes to carry spans that are as long as those
// that came out.
func speedRow(name string, rounds []round) row {
	alone, held := share(rounds, func(r round) speed { return r.alone })
	both, heldToo := share(rounds, func(r round) speed { return r.ledger })
	bare := median(rounds, func(r round) float64 { return r.bare.each() })
	ledger := median(rounds, func(r round) float64 { return r.ledger.each() })
	longer := median(rounds, func(r round) float64 { return r.longer.each() })
	made := row{held: held && heldToo}
	made.cells = [7]string{
		name, alone, both,
		verdict(made.held, fmt.Sprintf("≥ %.0f %%", 100*leastShare)),
		fmt.Sprintf("%s, %.1f µs CPU", thousands(median(rounds, func(r round) float64 { return rate(r.bare) })), bare),
		fmt.Sprintf("%s, %.1f µs CPU", thousands(median(rounds, func(r round) float64 { return rate(r.ledger) })), ledger),
		fmt.Sprintf("%.1f µs CPU a span", ledger-bare),
	}
	if longer > 0 {
		made.cells[6] += fmt.Sprintf(", %.1f of them to carry what is longer", longer-bare)
	}
	return made
}

// share says which one a collector keeps, and whether that is as much as the bar.
func share(rounds []round, of func(round) speed) (string, bool) {
	kept := median(rounds, func(r round) float64 { return rate(of(r)) / rate(r.bare) })
	byCPU := median(rounds, func(r round) float64 { return r.bare.each() / of(r).each() })
	return fmt.Sprintf("%.0f %%, by the clock %.0f %%", 100*byCPU, 100*kept), byCPU >= leastShare
}

// heapRow says what the processor and the connector hold, whoever else is in the process.
func heapRow(name string, sessions int, h heap) row {
	made := row{held: mib(h.last) <= mostMiB}
	made.cells = [7]string{
		fmt.Sprintf("live memory of %s sessions, %s", thousands(float64(sessions)), name), "", "",
		verdict(made.held, fmt.Sprintf("≤ %d MiB", mostMiB)), "", fmt.Sprintf("%.0f MiB", mib(h.last)),
		fmt.Sprintf("%+.1f MiB over %s more calls", mib(h.last-h.first), thousands(float64((2*half-1)*sessions))),
	}
	return made
}

func memoryRow(sessions int, r pair[room]) row {
	made := row{held: true}
	made.cells = [7]string{
		fmt.Sprintf("the whole process, %s sessions, GOMEMLIMIT=%s", thousands(r.ledger.sessions), goLimit), "", "", "",
		fmt.Sprintf("%.0f MiB", mib(r.bare.last)),
		fmt.Sprintf("%.0f MiB", mib(r.ledger.last)),
		fmt.Sprintf("%.0f MiB, %+.0f over %s more calls", mib(r.ledger.last-r.bare.last), mib(r.ledger.last-r.ledger.first),
			thousands(float64(half*sessions))),
	}
	return made
}

func verdict(held bool, bar string) string {
	if held {
		return bar
	}
	return bar + " (missed)"
}

func missed(rows []row) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return !r.held })
}

func table(rows []row) string {
	var text strings.Builder
	line := func(cells []string) { fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | ")) }
	line(head[:])
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, one := range rows {
		line(one.cells[:])
	}
	return text.String()
}

func (s speed) each() float64 {
	if s.spans == 0 {
		return 0
	}
	return float64(s.cpu) / float64(time.Microsecond) / float64(s.spans)
}

func rate(s speed) float64 { return float64(s.spans) / s.elapsed.Seconds() }

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// thousands writes a count with a comma before each three digits.
func thousands(value float64) string {
	text := fmt.Sprintf("%.0f", value)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

func median(rounds []round, of func(round) float64) float64 {
	values := make([]float64, len(rounds))
	for i, one := range rounds {
		values[i] = of(one)
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

// model names the processor.
func model() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "processor unknown"
}
