package normalise_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/normalise"
)

// BenchmarkRead reads one record of each case, most of them calls, and one span that is none of ours.
func BenchmarkRead(b *testing.B) {
	n := normaliser(b, normalise.Options{})
	every := everyCase(b)
	subjects := make([]normalise.Subject, len(every))
	for i, row := range every {
		attrs := pcommon.NewMap()
		require.NoError(b, attrs.FromRaw(row.Attrs))
		subjects[i] = row.subject(attrs)
	}
	other := pcommon.NewMap()
	for _, key := range []string{"http.request.method", "server.address", "url.full", "http.response.status_code", "network.protocol.version"} {
		other.PutStr(key, "x")
	}
	b.Run("cases", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			n.Read(subjects[i%len(subjects)])
		}
	})
	b.Run("other", func(b *testing.B) {
		b.ReportAllocs()
		subject := normalise.Subject{Signal: normalise.Traces, Scope: "http", Names: []string{"GET"}, Attrs: other}
		for b.Loop() {
			n.Read(subject)
		}
	})
}

// BenchmarkWrite writes what was found onto a record, as a processor does.
func BenchmarkWrite(b *testing.B) {
	n := normaliser(b, normalise.Options{})
	row := everyCase(b)[0]
	attrs := pcommon.NewMap()
	require.NoError(b, attrs.FromRaw(row.Attrs))
	found, _ := n.Read(row.subject(attrs))
	b.ReportAllocs()
	for b.Loop() {
		fresh := pcommon.NewMap()
		attrs.CopyTo(fresh)
		found.Write(fresh)
		found.WriteStandard(fresh)
	}
}
