package normalise_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.yaml.in/yaml/v3"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/normalise"
)

// hostile are values that no dialect means.
var hostile = []any{
	nil, true, "", "NaN", "-5", "1e309", "99999999999999999999", int64(-1), int64(math.MaxInt64), math.NaN(), math.Inf(-1),
	-0.5, 1e300, []byte{0xff}, []any{}, []any{int64(1), nil, []any{"x"}}, map[string]any{"cache_read": int64(-3)},
	"{", `{"a":`, `{"cache_read": 1.5e400}`, strings.Repeat("[", 10_000), strings.Repeat("x", 70_000), "\xff\xfe",
}

// Whatever stands in an attribute of a record, reading it ends, no count is negative, and what is added is added once.
func TestAnyValueCanStandAnywhere(t *testing.T) {
	n := normaliser(t, normalise.Options{Infer: true, Content: true})
	for _, row := range everyCase(t) {
		for key := range row.Attrs {
			for _, value := range hostile {
				attrs := pcommon.NewMap()
				require.NoError(t, attrs.FromRaw(row.Attrs))
				put(t, attrs, key, value)
				sound(t, n, row, attrs)
			}
		}
	}
}

func put(t testing.TB, attrs pcommon.Map, key string, value any) {
	one := pcommon.NewValueEmpty()
	require.NoError(t, one.FromRaw(value))
	one.CopyTo(attrs.PutEmpty(key))
}

func sound(t testing.TB, n *normalise.Normaliser, row golden, attrs pcommon.Map) {
	found, kind := n.Read(row.subject(attrs))
	for _, count := range []*int64{
		found.Usage.Input, found.Usage.CacheRead, found.Usage.CacheWrite, found.Usage.Output, found.Usage.Reasoning,
		found.Usage.Uncached(), found.Usage.Unreported(), found.Usage.Missed(),
	} {
		if count != nil {
			require.GreaterOrEqual(t, *count, int64(0))
		}
	}
	if kind == normalise.None {
		return
	}
	found.Write(attrs)
	again, same := n.Read(row.subject(attrs))
	require.Equal(t, kind, same)
	first, second := pcommon.NewMap(), pcommon.NewMap()
	found.Write(first)
	again.Write(second)
	require.Equal(t, first.AsRaw(), second.AsRaw(), "a second time finds the same: %s", row.Name)
}

func everyCase(t testing.TB) []golden {
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	require.NoError(t, err)
	var every []golden
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var cases []golden
		require.NoError(t, yaml.Unmarshal(text, &cases))
		every = append(every, cases...)
	}
	return every
}

// FuzzRead reads attributes that are given as one JSON object, under any name and scope.
func FuzzRead(f *testing.F) {
	for _, row := range everyCase(f) {
		text, err := json.Marshal(row.Attrs)
		require.NoError(f, err)
		f.Add(row.Signal == normalise.Logs, row.Scope, row.Version, row.Record, string(text))
	}
	n := normaliser(f, normalise.Options{Infer: true, Content: true})
	f.Fuzz(func(t *testing.T, logs bool, scope, version, record, text string) {
		var raw map[string]any
		if json.Unmarshal([]byte(text), &raw) != nil {
			return
		}
		attrs := pcommon.NewMap()
		require.NoError(t, attrs.FromRaw(raw))
		row := golden{Signal: normalise.Traces, Scope: scope, Version: version, Record: record}
		if logs {
			row.Signal = normalise.Logs
		}
		sound(t, n, row, attrs)
	})
}

// FuzzBoundary reads locators; what is one is written as it stood, but for zeros before a number.
func FuzzBoundary(f *testing.F) {
	f.Add("8:40960:4f0c9d21aa73be65")
	f.Add("-1:2:aa")
	f.Fuzz(func(t *testing.T, text string) {
		found, ok := call.ReadBoundary(text)
		if !ok {
			return
		}
		again, ok := call.ReadBoundary(found.String())
		assert.True(t, ok)
		assert.Equal(t, found, again)
	})
}
