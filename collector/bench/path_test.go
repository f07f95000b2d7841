package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
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

// What a span takes on its way through the processor and the connector alone; for profiles (-cpuprofile).
func BenchmarkPath(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			first := path(b)
			const sessions = 1000
			turn := 0
			for b.Loop() {
				b.StopTimer()
				turn++
				requests, err := load.Requests(kind.make, sessions, turn, 1)
				require.NoError(b, err)
				spans := make([]ptrace.Traces, len(requests))
				for i, one := range requests {
					spans[i], err = (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(one)
					require.NoError(b, err)
				}
				b.StartTimer()
				for _, one := range spans {
					require.NoError(b, first.ConsumeTraces(context.Background(), one))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*sessions), "ns/span")
		})
	}
}

// path is the processor, and the connector behind it.
func path(b *testing.B) processor.Traces {
	b.Helper()
	counting := contextledgerconnector.NewFactory()
	ends, err := counting.CreateTracesToMetrics(
		context.Background(), connectortest.NewNopSettings(counting.Type()), counting.CreateDefaultConfig(), consumertest.NewNop(),
	)
	require.NoError(b, err)
	annotating := contextledgerprocessor.NewFactory()
	first, err := annotating.CreateTraces(
		context.Background(), processortest.NewNopSettings(annotating.Type()), annotating.CreateDefaultConfig(), ends,
	)
	require.NoError(b, err)
	for _, one := range []component.Component{ends, first} {

		require.NoError(b, one.Start(context.Background(), componenttest.NewNopHost()))
		b.Cleanup(func() { require.NoError(b, one.Shutdown(context.Background())) })
	}
	return first
}
