package normalise

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// A table may ask for more attributes than the sieve tells apart, and for names of any beginning: each dialect is found by
// what it asks for, in the order of the table, whatever else a record has.
func TestTheSieveLetsThroughWhatTheTableAsksFor(t *testing.T) {
	var table strings.Builder
	table.WriteString("dialects:\n")
	for at := range 100 {
		fmt.Fprintf(&table, "  - {name: d%d, when: [{has: [key.%d], attr: {kind: [a*]}}, {scope: [s%d], name: ['*.n%d', 'm%d.*']}]}\n",
			at, at, at, at, at)
	}
	read, err := ReadTable([]byte(table.String()))
	require.NoError(t, err)
	made, err := New(Options{Table: read})
	require.NoError(t, err)
	dialect := func(scope, name string, keys ...string) string {
		attrs := pcommon.NewMap()
		for _, key := range keys {
			attrs.PutStr(key, "a1")
		}
		subject := Subject{Signal: Traces, Scope: scope, Names: []string{name}, Attrs: attrs}
		found := shown(made.within(source{Traces, scope, ""}), made.sieve.seen(attrs), &subject)
		if found == nil {
			return ""
		}
		return found.name
	}
	for _, at := range []int{0, 1, 60, 61, 62, 63, 64, 99} {
		own := fmt.Sprint("d", at)
		assert.Equal(t, own, dialect("", "x", fmt.Sprint("key.", at), "kind", "other"))
		assert.Empty(t, dialect("", "x", fmt.Sprint("key.", at)))
		assert.Equal(t, own, dialect(fmt.Sprint("s", at), fmt.Sprint("any.n", at)))
		assert.Equal(t, own, dialect(fmt.Sprint("s", at), fmt.Sprintf("m%d.any", at)))
		assert.Empty(t, dialect(fmt.Sprint("s", at), "x"))
		assert.Empty(t, dialect("", fmt.Sprintf("m%d.any", at)))
	}
	assert.Equal(t, "d7", dialect("", "x", "key.99", "key.7", "kind"))
}
