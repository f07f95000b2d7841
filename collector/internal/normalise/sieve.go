package normalise

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/names"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// sieve holds back the records that can be of no dialect, which are most of them, by their scope and by the names of their
// attributes. What it lets through is looked at as the table says.
type sieve struct {
	keys   names.Index
	scopes sync.Map
	count  atomic.Int64
}

// marks are which of the attributes that a condition asks for a record has, a bit for each; the last ones share one.
type marks uint64

const (
	markDialect marks = 1 << 0
	markEntry   marks = 1 << 1
	// markOurs is that of any attribute of ours.
	markOurs marks = 1 << 63
	lastKey        = 62
)

// maxScopes is how many scopes are remembered, and maxScope how long their names can be, in bytes: programs have few and
// short ones, and what is beyond is worked out each time.
const (
	maxScopes = 1024
	maxScope  = 256
)

func newSieve() *sieve {
	made := &sieve{}
	made.keys.Add(semconv.ContextLedgerDialect)
	made.keys.Add(semconv.ContextLedgerEntryID)
	return made
}

// asked gives the marks of what a condition asks for.
func (s *sieve) asked(c *Condition) marks {
	var found marks
	for _, key := range slices.AppendSeq(slices.Clone(c.Has), maps.Keys(c.Attr)) {
		if key != "" {
			found |= 1 << min(s.keys.Add(key), lastKey)
		}
	}
	return found
}

// seen gives the marks of a record.
func (s *sieve) seen(attrs pcommon.Map) marks {
	var found marks
	for key := range attrs.All() {
		if number, known := s.keys.Of(key); known {
			found |= 1 << min(number, lastKey)
		}
		if found&markOurs == 0 && strings.HasPrefix(key, prefix) {
			found |= markOurs
		}
	}
	return found
}

// showing is one way in which a dialect shows: a condition with what it asks for. Begins has the first characters of the
// names that it wants, unless it wants none or one that can begin with any.
type showing struct {
	dialect   *dialect
	condition *Condition
	asks      marks
	begins    string
}

func (s *sieve) showings(d *dialect) []showing {
	found := make([]showing, len(d.when))
	for i := range d.when {
		found[i] = showing{dialect: d, condition: &d.when[i], asks: s.asked(&d.when[i]), begins: begins(d.when[i].Name)}
	}
	return found
}

func begins(patterns []string) string {
	var found strings.Builder
	for _, pattern := range patterns {
		if pattern == "" || pattern[0] == '*' {
			return ""
		}
		found.WriteByte(pattern[0])
	}
	return found.String()
}

// may says whether a record with these marks and names can show a dialect so.
func (s *showing) may(seen marks, named []string) bool {
	if seen&s.asks != s.asks {
		return false
	}
	return s.begins == "" || slices.ContainsFunc(named, func(name string) bool {
		return name != "" && strings.IndexByte(s.begins, name[0]) >= 0
	})
}

// source is the part of a subject that all records of a scope have in common.
type source struct{ signal, scope, version string }

// within gives the ways in which a record of a scope can show its dialect, in the order in which they are tried.
func (n *Normaliser) within(where source) []showing {
	if found, ok := n.sieve.scopes.Load(where); ok {
		return found.([]showing)
	}
	common := known{Subject: &Subject{Signal: where.signal, Scope: where.scope, Version: where.version}}
	var found []showing
	for _, one := range n.showings {
		if one.condition.holdsScope(common) {
			found = append(found, one)
		}
	}
	if len(where.scope)+len(where.version) <= maxScope && n.sieve.count.Add(1) <= maxScopes {
		where.scope, where.version = strings.Clone(where.scope), strings.Clone(where.version)
		n.sieve.scopes.Store(where, found)
	}
	return found
}

// shown gives the dialect of a record, nil where it has none.
func shown(ways []showing, seen marks, subject *Subject) *dialect {
	for i := range ways {
		if ways[i].may(seen, subject.Names) && ways[i].condition.holds(known{Subject: subject}) {
			return ways[i].dialect
		}
	}
	return nil
}
