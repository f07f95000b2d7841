package contextledgerconnector

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
)

// What is read of an entry is all that is counted of it and all that tells it from others: whoever reads everything
// counts the same under the same marks.
func TestWhatIsReadIsEnough(t *testing.T) {
	for i, outcome := range []string{"", "accepted"} {
		var all call.Call
		fill(reflect.ValueOf(&all).Elem(), new(int64))
		all.Compaction.Outcome, all.Cost.Unit, *all.Usage.Input = outcome, "usd", 1000
		all.Place.Start = []time.Time{noon, {}}[i]
		span := ptrace.NewSpan()
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(noon.Add(time.Hour)))
		all.Write(span.Attributes())
		require.LessOrEqual(t, span.Attributes().Len(), ordinary)

		var part, whole entry
		part.readSpan(span)
		for i := range ordinary {
			span.Attributes().PutInt(fmt.Sprint("more.", i), 1)
		}
		whole.readSpan(span)
		assert.Greater(t, len(part.found), 2)
		assert.Equal(t, whole.found, part.found)
		assert.Equal(t, [][]mark{whole.known, whole.kept}, [][]mark{part.known, part.kept})
		assert.Equal(t, whole.remembered(whole.pays()), part.remembered(part.pays()))
		assert.Equal(t, shared(&whole.call), shared(&part.call))
		assert.Equal(t, whole.itself(), part.itself())
		assert.Equal(t, whole.call.Task.ID, part.call.Task.ID)
	}
}

// fill gives every field below a value of its own.
func fill(into reflect.Value, last *int64) {
	*last++
	switch into.Kind() {
	case reflect.Struct:
		for i := range into.NumField() {
			if into.Type().Field(i).IsExported() {
				fill(into.Field(i), last)
			}
		}
	case reflect.Pointer:
		switch into.Type().Elem().Kind() {
		case reflect.Int64, reflect.Float64, reflect.Bool:
			into.Set(reflect.New(into.Type().Elem()))
			fill(into.Elem(), last)
		}
	case reflect.String:
		into.SetString(fmt.Sprint("word", *last))
	case reflect.Int64:
		into.SetInt(*last)
	case reflect.Float64:
		into.SetFloat(float64(*last) / 8)
	case reflect.Bool:
		into.SetBool(true)
	case reflect.Slice:
		if into.Type().Elem().Kind() == reflect.String {
			into.Set(reflect.ValueOf([]string{"model", "effort"}))
		}
	}
}
