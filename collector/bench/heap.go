package main

import (
	"context"
	"errors"
	"runtime"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerconnector"
	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerprocessor"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/load"
)

// writer writes onto spans what the processor does, in this process.
type writer struct {
	first processor.Traces
	end   func() error
}

func newWriter() (*writer, error) {
	first, end, err := path()
	return &writer{first, end}, err
}

// write gives requests as they come out of the processor, in the same order.
func (w *writer) write(requests [][]byte) ([][]byte, error) {
	made := make([][]byte, len(requests))
	for i, one := range requests {
		spans, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(one)
		if err != nil {
			return nil, err
		}
		if err = w.first.ConsumeTraces(context.Background(), spans); err != nil {
			return nil, err
		}
		if made[i], err = (&ptrace.ProtoMarshaler{}).MarshalTraces(spans); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// path is the processor with the connector behind it, in this process; the function ends both.
func path() (processor.Traces, func() error, error) {
	ctx := context.Background()
	counting, annotating := contextledgerconnector.NewFactory(), contextledgerprocessor.NewFactory()
	ends, err := counting.CreateTracesToMetrics(
		ctx, connectortest.NewNopSettings(counting.Type()), counting.CreateDefaultConfig(), consumertest.NewNop(),
	)
	if err != nil {
		return nil, nil, err
	}
	config := annotating.CreateDefaultConfig().(*contextledgerprocessor.Config)
	config.Content.Remove = true // as the gateway does
	first, err := annotating.CreateTraces(ctx, processortest.NewNopSettings(annotating.Type()), config, ends)
	if err != nil {
		return nil, nil, err
	}
	for _, one := range []component.Component{ends, first} {
		if err := one.Start(ctx, componenttest.NewNopHost()); err != nil {
			return nil, nil, err
		}
	}
	return first, func() error { return errors.Join(first.Shutdown(ctx), ends.Shutdown(ctx)) }, nil
}

// heap is the live memory of the processor and the connector in bytes after one turn of many sessions, and after four.
type heap struct{ first, last int64 }

func weigh(sessions int, kind load.Kind) (heap, error) {
	before := live()
	way, end, err := path()
	if err != nil {
		return heap{}, err
	}
	var found heap
	for turn := 1; turn <= 2*half; turn++ {
		if err := feed(way, kind, sessions, turn); err != nil {
			return heap{}, err
		}
		if found.last = live() - before; turn == 1 {
			found.first = found.last
		}
	}
	return found, end()
}

// feed sends a turn of all sessions, a thousand at a time, so that what is to be sent takes no room.
func feed(way processor.Traces, kind load.Kind, sessions, turn int) error {
	const some = 1000
	for from := 0; from < sessions; from += some {
		shifted := func(session, turn int) map[string]any { return kind(from+session, turn) }
		requests, err := load.Requests(shifted, some, turn, 1)
		if err != nil {
			return err
		}
		for _, one := range requests {
			spans, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(one)
			if err != nil {
				return err
			}
			if err := way.ConsumeTraces(context.Background(), spans); err != nil {
				return err
			}
		}
	}
	return nil
}

func live() int64 {
	var found runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&found)
	return int64(found.HeapAlloc)
}
