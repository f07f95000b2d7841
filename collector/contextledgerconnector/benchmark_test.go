package contextledgerconnector

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerconnector/internal/metadata"
)

// What the connector takes for an entry that it counts.
func BenchmarkEntries(b *testing.B) {
	const together = 100
	set := connectortest.NewNopSettings(metadata.Type)
	made, err := NewFactory().CreateTracesToMetrics(context.Background(), set, createDefaultConfig(),
		consumertest.NewNop())
	require.NoError(b, err)
	require.NoError(b, made.Start(context.Background(), componenttest.NewNopHost()))
	b.Cleanup(func() { require.NoError(b, made.Shutdown(context.Background())) })
	number := 0
	for b.Loop() {
		b.StopTimer()
		batch := make([]map[string]any, together)
		for at := range batch {
			number++
			batch[at] = counting(number)
		}
		traces := spans(batch...)
		b.StartTimer()
		require.NoError(b, made.ConsumeTraces(context.Background(), traces))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*together), "ns/entry")
}

// counting is an entry as the processor makes it.
func counting(number int) map[string]any {
	return map[string]any{
		"context_ledger.counted_by": "none", "context_ledger.dialect": "gen_ai", "context_ledger.dialect_rule": "gen_ai",
		"context_ledger.response_id": fmt.Sprint("r", number), "context_ledger.session_id": "s1",
		"context_ledger.request_kind": "agent",
		"context_ledger.provider":     "openai", "context_ledger.provider_surface": "openai",
		"context_ledger.model_id": "gpt-5",
		"context_ledger.agent":    "coder", "context_ledger.cache_report": "reported", "context_ledger.input_tokens": 10_000,
		"context_ledger.cached_tokens": 8_192, "context_ledger.output_tokens": 100, "context_ledger.reusable_tokens": 9_000,
		"context_ledger.avoidable_tokens": 808, "context_ledger.cache_outcome": "partial",
		"context_ledger.miss_cause":    "granularity",
		"context_ledger.comparable_id": "e", "context_ledger.time_to_first_token": 0.5, "context_ledger.cost.amount": 0.01,
		"context_ledger.cost.unit": "usd", "context_ledger.judged_by": "collector", "gen_ai.request.model": "gpt-5",
		"gen_ai.provider.name": "openai", "gen_ai.usage.input_tokens": 10_000,
	}
}
