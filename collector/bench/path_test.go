package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/load"
)

// What a span takes on its way through the processor and the connector alone; for profiles (-cpuprofile).
func BenchmarkPath(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			first, end, err := path()
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, end()) })
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
