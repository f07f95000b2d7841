package lineage_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/identity"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
)

func asked(texts ...string) segments.Request {
	request := segments.Request{Model: "m"}
	for at, text := range texts {
		role := []string{"user", "assistant"}[at%2]
		message := canonical.Object{{Name: "role", Value: role}, {Name: "content", Value: text}}
		request.Messages = append(request.Messages, message)
	}
	return request
}

func head(entry, session string, opened float64, texts ...string) *lineage.Head {
	outline := segments.Cut(asked(texts...))
	found := identity.NewIdentifier().Identify(asked(texts...), outline, "openai", "")
	return &lineage.Head{Entry: entry, Session: session, Outline: outline, Identity: found, Opened: opened}
}

func link(l *lineage.Lineage, names []lineage.Name, opened float64, texts ...string) lineage.Link {
	given := head("", "", opened, texts...)
	arrival := lineage.Arrival{Session: "new", Opened: opened}
	return l.Link(names, asked(texts...), given.Outline, given.Identity, arrival)
}

var named = []lineage.Name{{Session: "s", Source: "explicit"}}

// No more sessions are held than the bound, and nothing is left of those that were forgotten.
func TestSessionsAreBounded(t *testing.T) {
	known := lineage.New(10, 1<<30, nil)
	for number := range 100 {
		known.Put(head(fmt.Sprint(number), fmt.Sprint(number), 0, fmt.Sprint(number)))
	}
	assert.Equal(t, 10, known.Sessions())
	for number := range 100 {
		known.Forget(fmt.Sprint(number))
	}
	assert.Equal(t, 0, known.Sessions())
	assert.Equal(t, 0, known.Bytes())
}

// No more bytes are held than the bound: other sessions go first, then the older calls of the last one.
func TestBytesAreBounded(t *testing.T) {
	one := lineage.New(10, 1<<30, nil)
	one.Put(head("e", "s", 0, "text"))
	known := lineage.New(10, 3*one.Bytes(), nil)
	for number := range 20 {
		known.Put(head(fmt.Sprint(number), []string{"s", "other"}[number/10], 0, "text", fmt.Sprint(number)))
		assert.LessOrEqual(t, known.Bytes(), 3*one.Bytes())
	}
	assert.Equal(t, 1, known.Sessions())
}

// A session has so many branches at most.
func TestBranchesAreBounded(t *testing.T) {
	known := lineage.New(10, 1<<30, nil)
	for number := range 100 {
		known.Put(head(fmt.Sprint(number), "s", float64(number), fmt.Sprint(number)))
	}
	assert.Equal(t, lineage.Departs, link(known, named, 100, "35", "answer", "go on").Relation)
	assert.Equal(t, "36", link(known, named, 100, "36", "answer", "go on").Head.Entry)
}

// A call that failed was not cached: nothing goes on from it.
func TestAFailedCallIsNoHead(t *testing.T) {
	known := lineage.New(10, 1<<30, nil)
	failed := head("e", "s", 0, "text")
	known.Put(failed)
	known.Drop(failed)
	known.Drop(failed)
	assert.Equal(t, 0, known.Sessions())
	assert.Nil(t, link(known, named, 1, "text", "answer", "go on").Head)
}

// A call is held against none that began after it.
func TestACallThatBeganLaterIsNoPast(t *testing.T) {
	known := lineage.New(10, 1<<30, nil)
	known.Put(head("e", "s", 50, "text"))
	assert.Nil(t, link(known, named, 49, "text", "answer", "go on").Head)
	assert.Equal(t, "e", link(known, named, 50, "text", "answer", "go on").Head.Entry)
}

// A head that was pushed out while its call was in flight is there again once it was answered.
func TestAHeadThatWasPushedOut(t *testing.T) {
	known := lineage.New(1, 1<<30, nil)
	slow := head("slow", "s", 0, "text")
	known.Put(slow)
	known.Put(head("other", "other", 1, "another"))
	closed := 2.0
	slow.Closed, slow.Response = &closed, "r"
	known.Settle(slow, nil)
	next := asked("text", "answer", "go on")
	next.PreviousResponse = "r"
	given := head("", "", 3, "text")
	found := known.Link(nil, next, given.Outline, given.Identity, lineage.Arrival{Session: "new", Opened: 3})
	assert.Equal(t, slow, found.Head)
	assert.Equal(t, lineage.Continues, found.Relation)
}

// Reorderings of tools are counted, with the median time between them.
func TestReordered(t *testing.T) {
	known := lineage.New(10, 1<<30, nil)
	for _, one := range []struct {
		at    float64
		times int
		gap   float64
	}{{0, 1, -1}, {10, 2, 10}, {40, 3, 30}, {50, 4, 10}} {
		times, gap := known.Reordered("s", one.at)
		assert.Equal(t, one.times, times)
		assert.InDelta(t, one.gap, gap, 0)
	}
}
