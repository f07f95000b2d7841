package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/load"
)

const (
	// senders send at the same time, as several agents do.
	senders = 4
	// goLimit is what the runtime of Go is told of the memory that it has, in its words.
	goLimit = "400MiB"
	// half is half of the turns for the measurement of memory.
	half = 2
	// patience is for how long spans may be under way.
	patience = 2 * time.Minute
)

// uncounted takes the connector out of the gateway's pipelines; the rest stays.
var uncounted = []string{
	"--set=service::pipelines::traces::exporters=[otlp_grpc]", "--set=service::pipelines::logs::exporters=[otlp_grpc]",
	"--set=service::pipelines::metrics::receivers=[otlp]",
}

// without takes the processor out, too.
var without = slices.Concat(uncounted, []string{
	"--set=service::pipelines::traces::processors=[memory_limiter]", "--set=service::pipelines::logs::processors=[memory_limiter]",
})

// pair has the same measurement of two collectors, side by side in one round.
type pair[T any] struct{ bare, ledger T }

// round is that of their throughput: with the ledger and without, with the processor alone, and without for spans that are as
// they come out of it, where they come out longer.
type round struct {
	pair[speed]
	alone  speed
	longer speed
}

// speed is what a round of spans took.
type speed struct {
	spans   int
	elapsed time.Duration
	cpu     time.Duration
}

// stand is a collector and the backend behind it.
type stand struct {
	*load.Binary
	backend *load.Backend
	folder  string
}

func raise(s settings, more ...string) (*stand, error) {
	backend, err := load.Serve()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	more = append(slices.Clone(more), "GOMAXPROCS=1", "BACKEND_ENDPOINT="+backend.Address, "BACKEND_INSECURE=true")
	binary, err := load.Start(s.binary, s.config, folder, more...)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return &stand{binary, backend, folder}, nil
}

func (s *stand) end() {
	s.Kill()
	s.backend.Close()
	_ = os.RemoveAll(s.folder)
}

// raisePair raises both, the bare one and the one with the ledger.
func raisePair(s settings, more ...string) (pair[*stand], error) {
	var both pair[*stand]
	var err error
	if both.bare, err = raise(s, slices.Concat(more, without)...); err != nil {
		return both, err
	}
	if both.ledger, err = raise(s, more...); err != nil {
		both.bare.end()
	}
	return both, err
}

// round sends requests as fast as they are taken, and waits until their spans came out.
func (s *stand) round(requests [][]byte, spans int) (speed, error) {
	cpu, err := s.CPU()
	if err != nil {
		return speed{}, err
	}
	until := s.backend.Spans() + int64(spans)
	began := time.Now()
	if err := s.send(requests); err != nil {
		return speed{}, err
	}
	for s.backend.Spans() < until {
		if time.Since(began) > patience {
			return speed{}, fmt.Errorf("%d spans did not come out", until-s.backend.Spans())
		}
		time.Sleep(time.Millisecond)
	}
	elapsed := time.Since(began)
	after, err := s.CPU()
	return speed{spans, elapsed, after - cpu}, err
}

func (s *stand) send(requests [][]byte) error {
	var wait sync.WaitGroup
	failed := make([]error, senders)
	for sender := range senders {
		wait.Go(func() {
			for i := sender; i < len(requests) && failed[sender] == nil; i += senders {
				failed[sender] = s.Post(requests[i])
			}
		})
	}
	wait.Wait()
	return errors.Join(failed...)
}

// throughput measures rounds of all in turns, each after a round that is not measured.
func throughput(s settings, kind load.Kind, compression string) ([]round, error) {
	compressed := "--set=exporters::otlp_grpc::compression=" + compression
	both, err := raisePair(s, compressed)
	if err != nil {
		return nil, err
	}
	defer both.bare.end()
	defer both.ledger.end()
	alone, err := raise(s, append([]string{compressed}, uncounted...)...)
	if err != nil {
		return nil, err
	}
	defer alone.end()
	writer, err := newWriter()
	if err != nil {
		return nil, err
	}
	var found []round
	for at := range s.rounds + 1 {
		requests, err := load.Requests(kind, s.sessions, 1+at*s.turns, s.turns)
		if err != nil {
			return nil, err
		}
		longer, err := writer.write(requests)
		if err != nil {
			return nil, err
		}
		var made round
		for _, one := range turns(at, both, alone, &made, requests, longer) {
			if *one.to, err = one.stand.round(one.requests, s.sessions*s.turns); err != nil {
				return nil, err
			}
		}
		found = append(found, made)
	}
	return found[1:], writer.end()
}

// turn is whose turn it is, with what, and where its measurement goes.
type turn struct {
	stand    *stand
	requests [][]byte
	to       *speed
}

// turns lets each be first in one of two rounds, or last.
func turns(at int, both pair[*stand], alone *stand, made *round, requests, longer [][]byte) []turn {
	order := []turn{{both.bare, requests, &made.bare}, {alone, requests, &made.alone}, {both.ledger, requests, &made.ledger}}
	if bytes(longer) > bytes(requests) {
		order = slices.Insert(order, 1, turn{both.bare, longer, &made.longer})
	}
	if at%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

func bytes(requests [][]byte) int {
	total := 0
	for _, one := range requests {
		total += len(one)
	}
	return total
}

// room is the memory of a process in bytes, and how many sessions the ledger says that it knows then.
type room struct {
	first, last int64
	sessions    float64
}

// memory sends several turns of many sessions to both. The first size is after half of them.
// The runtime of Go is told of a limit, as an operator would tell it.
func memory(s settings, kind load.Kind) (pair[room], error) {
	both, err := raisePair(s, "GOMEMLIMIT="+goLimit, "--set=exporters::otlp_grpc::compression=none")
	if err != nil {
		return pair[room]{}, err
	}
	defer both.bare.end()
	defer both.ledger.end()
	var made pair[room]
	for turn := 1; turn <= 2*half; turn++ {
		requests, err := load.Requests(kind, s.memory, turn, 1)
		if err != nil {
			return made, err
		}
		for _, one := range []struct {
			stand *stand
			to    *room
		}{{both.bare, &made.bare}, {both.ledger, &made.ledger}} {
			if _, err := one.stand.round(requests, s.memory); err != nil {
				return made, err
			}
			one.stand.weigh(turn, one.to)
		}
	}
	return made, nil
}

func (s *stand) weigh(turn int, to *room) {
	now, _ := s.Resident()
	to.last = now
	if turn <= half {
		to.first = now
	}
	to.sessions = s.Sum(s.Self, "otelcol_processor_context_ledger_sessions")
}
