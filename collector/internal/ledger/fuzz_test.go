package ledger_test

import (
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Whatever calls tell, none makes the ledger fail, each cause is a word of the list, and no count is below 0.
func FuzzObserve(f *testing.F) {
	var none, start, large int64 = 0, 1, 1 << 62
	f.Add("s", large, none, none, "3:572:7a9672de,0:298:f2d6cc", none, start, `{"role":"user"}`, "cold_start", uint8(3))
	f.Add("", -start, large, -large, "9223372036854775807:1:x,-1:2:y,1:1:", large, -start, "[[[", "", uint8(255))
	f.Fuzz(func(
		t *testing.T, session string, input, cached, write int64, locator string, start, end int64, content, cause string,
		flags uint8,
	) {
		made := state(t, asIs)
		input, cached, write = count(input), count(cached), count(write)
		for number := range 4 {
			at, prompt := start%1e6+int64(number)*(end%1e6), count(input+int64(number)*write)
			one := counted(session, number*int(flags%2), at, prompt, cached)
			one.Usage.CacheWrite = &write
			one.Context.Locator = boundaries(locator)
			one.Verdict.Cause, one.Verdict.Provider = cause, cause
			if flags&2 != 0 {
				one.Origin.EntryID, one.Verdict.Outcome = content, cause
			}
			if flags&4 != 0 {
				part := []byte(content)
				one.Content = &call.Content{Tools: [][]byte{part}, Messages: [][]byte{part, []byte(locator)}}
			}
			if flags&8 != 0 {
				one.Place.Start, one.Place.Span = time.Time{}, pcommon.SpanID{}
			}
			one.Compaction.Seen = flags&16 != 0
			made.Observe(one, day0)
			judged(t, one)
		}
		kept := store{}
		if _, err := made.Save(kept.put); err != nil {
			t.Fatal(err)
		}
		if err := state(t, asIs).Load(kept.get, day0); err != nil {
			t.Fatal(err)
		}
	})
}

// count is a count as it can be read from an attribute.
func count(number int64) int64 { return number & (1<<53 - 1) }

func boundaries(text string) []call.Boundary {
	found := []call.Boundary{}
	for len(text) > 0 && len(found) < 40 {
		size := min(len(text), 24)
		if boundary, ok := call.ReadBoundary(text[:size]); ok {
			found = append(found, boundary)
		}
		odd := call.Boundary{Messages: int64(text[0]), Bytes: int64(size) << (text[0] % 60), Digest: text[:size]}
		found = append(found, odd)
		text = text[size:]
	}
	return found
}

func judged(t *testing.T, one *call.Call) {
	found := one.Verdict
	if found.By == semconv.JudgedByCollector && found.Cause != "" && !slices.Contains(semconv.Causes, found.Cause) {
		t.Fatalf("%q is no cause", one.Verdict.Cause)
	}
	for _, count := range []*int64{one.Verdict.Reusable, one.Verdict.Avoidable} {
		if count != nil && *count < 0 {
			t.Fatalf("%d tokens", *count)
		}
	}
}
