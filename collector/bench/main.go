// Bench measures what the ledger costs a collector: the same binary, the same configuration and the same spans, with and
// without the context_ledger processor and connector, in turns. It prints a table, shares first.
//
// The configuration is configs/gateway.yaml as it stands, and without compression on the way out, which takes much of a
// collector's time and makes every share look better. The collector has one processor (GOMAXPROCS=1), the sender the rest.
// Linux only.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/load"
)

// settings are what the command line says.
type settings struct {
	binary, config   string
	rounds, turns    int
	sessions, memory int
	strict           bool
	only             string
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var s settings
	flag.StringVar(&s.binary, "binary", os.Getenv("OTELCOL"), "the collector; made by make collector")
	flag.StringVar(&s.config, "config", "configs/gateway.yaml", "a configuration with the ledger in it")
	flag.IntVar(&s.rounds, "rounds", 5, "how often each is measured, in turns")
	flag.IntVar(&s.turns, "turns", 40, "spans of each session in a round")
	flag.IntVar(&s.sessions, "sessions", 1000, "sessions in a round")
	flag.IntVar(&s.memory, "memory", 100_000, "sessions for the measurement of memory")
	flag.StringVar(&s.only, "only", "", "measure throughput alone, of what has this in its name")
	flag.BoolVar(&s.strict, "strict", false, "end with 1 where a bar is missed")
	flag.Parse()

	rows, err := speeds(s)
	if err != nil {
		return err
	}
	if s.only == "" {
		rooms, err := sizes(s)
		if err != nil {
			return err
		}
		rows = append(rows, rooms...)
	}
	fmt.Print(table(rows))
	fmt.Printf("\n%s, %d processors, %s, medians of %d rounds of %d spans in turns, %s.\n", runtime.Version(), runtime.NumCPU(),
		model(), s.rounds, s.turns*s.sessions, time.Now().UTC().Format(time.DateOnly))
	if s.strict && missed(rows) {
		return fmt.Errorf("a bar was missed")
	}
	return nil
}

// speeds measures the throughput of each kind that is asked for.
func speeds(s settings) ([]row, error) {
	var rows []row
	for _, kind := range kinds {
		if !strings.Contains(kind.name, s.only) {
			continue
		}
		made, err := throughput(s, kind.make, kind.compression)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind.name, err)
		}
		rows = append(rows, told(speedRow(kind.name, made)))
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("-only %q: no kind has that in its name", s.only)
	}
	return rows, nil
}

// sizes measures what many sessions take of memory.
func sizes(s settings) ([]row, error) {
	var rows []row
	for _, kind := range []struct {
		name string
		make load.Kind
	}{{"entries", load.Entry}, {"calls told by another instrumentation", load.GenAI}} {
		made, err := weigh(s.memory, kind.make)
		if err != nil {
			return nil, fmt.Errorf("memory: %w", err)
		}
		rows = append(rows, told(heapRow(kind.name, s.memory, made)))
	}
	made, err := memory(s, load.Entry)
	if err != nil {
		return nil, fmt.Errorf("memory of the process: %w", err)
	}
	return append(rows, told(memoryRow(s.memory, made))), nil
}

// told shows a row as soon as it is there.
func told(made row) row {
	fmt.Fprintln(os.Stderr, made.cells)
	return made
}

// kinds are what is sent.
var kinds = []struct {
	name        string
	make        load.Kind
	compression string
}{
	{"entries of agents with the ledger", load.Entry, "none"},
	{"entries, compressed", load.Entry, "gzip"},
	{"calls told by another instrumentation", load.GenAI, "none"},
	{"such calls, compressed", load.GenAI, "gzip"},
	{"one such call in ten spans", load.Platform, "none"},
	{"the same, compressed", load.Platform, "gzip"},
	{"no calls at all", load.Other, "none"},
}
