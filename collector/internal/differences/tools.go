// Package differences owns what differs between a request and its comparable call, in the order of rendering: tools,
// system part, messages. Who is to blame for lost tokens is decided in package attribution.
package differences

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/cause"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/volatility"
)

// maxNames is how many names one piece of evidence holds.
const maxNames = 8

const localDiff = "local_diff"

// Tools says how the tool list changed: another set, another order, another text or schema, other bytes.
func Tools(before, now []segments.Segment) *cause.Cause {
	if slices.EqualFunc(before, now, sameWire) {
		return nil
	}
	olds, news := byName(before), byName(now)
	added, removed := missing(now, olds), missing(before, news)
	if len(added)+len(removed) > 0 {
		return toolSet(before, now, added, removed)
	}
	for _, tool := range unique(now) {
		if olds[tool].Digest != news[tool].Digest {
			return toolText(olds[tool], news[tool])
		}
	}
	at := 0
	for at < min(len(before), len(now))-1 && sameWire(before[at], now[at]) {
		at++
	}
	if !slices.EqualFunc(before, now, func(a, b segments.Segment) bool { return a.Name == b.Name }) {
		return toolOrder(before, now, at)
	}
	offset := firstDifference(canonical.Wire(before[at].Value), canonical.Wire(now[at].Value))
	where := cause.At(segments.Tool, at, now[at].Name, "serialization").From(offset)
	found := cause.Seen(semconv.MissCauseToolsSerializationChanged).In(where)
	return &found
}

func sameWire(a, b segments.Segment) bool { return a.Wire == b.Wire }

func byName(tools []segments.Segment) map[string]segments.Segment {
	named := map[string]segments.Segment{}
	for _, tool := range tools {
		named[tool.Name] = tool
	}
	return named
}

// unique are the names of tools, each once, in order.
func unique(tools []segments.Segment) []string {
	names := []string{}
	for _, tool := range tools {
		if !slices.Contains(names, tool.Name) {
			names = append(names, tool.Name)
		}
	}
	return names
}

func missing(tools []segments.Segment, in map[string]segments.Segment) []string {
	return slices.DeleteFunc(unique(tools), func(name string) bool {
		_, known := in[name]
		return known
	})
}

func toolOrder(before, now []segments.Segment, at int) *cause.Cause {
	places := byName(before)
	evidence := []string{localDiff}
	if group := movedGroup(before, now); group != "" {
		evidence = append(evidence, "moved_group="+group)
	}
	moved := 0
	for _, tool := range now {
		if was := places[tool.Name].Index; was != tool.Index && moved < maxNames {
			evidence = append(evidence, fmt.Sprintf("moved=%s:%d>%d", tool.Name, was, tool.Index))
			moved++
		}
	}
	where := cause.At(segments.Tool, now[at].Index, now[at].Name, "reordered")
	return &cause.Cause{
		Name: semconv.MissCauseToolsReordered, Position: where, Evidence: evidence,
		Confidence: semconv.MissConfidenceObserved,
	}
}

// movedGroup is the tool server whose tools moved to the end together: what a reconnect does.
func movedGroup(before, now []segments.Segment) string {
	group := server(now[len(now)-1].Name)
	if group == "" || group == server(before[len(before)-1].Name) {
		return ""
	}
	own := 0
	for _, tool := range now {
		if server(tool.Name) == group {
			own++
		}
	}
	for _, tool := range now[len(now)-own:] {
		if server(tool.Name) != group {
			return ""
		}
	}
	return group
}

// server is the tool server in a name such as `mcp__late__search` or `late.search`.
func server(tool string) string {
	if parts := strings.Split(tool, "__"); len(parts) >= 3 && parts[0] == "mcp" {
		return parts[1]
	}
	name, _, dotted := strings.Cut(tool, ".")
	if dotted {
		return name
	}
	return ""
}

func toolSet(before, now []segments.Segment, added, removed []string) *cause.Cause {
	size := min(len(before), len(now))
	at := 0
	for at < size && before[at].Digest == now[at].Digest {
		at++
	}
	found := cause.Seen(semconv.MissCauseToolsChanged)
	for _, part := range []struct {
		word  string
		names []string
	}{{"added", added}, {"removed", removed}} {
		if len(part.names) > 0 {
			named := part.names[:min(len(part.names), maxNames)]
			found = found.With(part.word).By(part.word + "=" + strings.Join(named, ","))
		}
	}
	for _, name := range servers(added, removed) {
		found = found.By("server=" + name)
	}
	tool := before
	if at < len(now) {
		tool = now
	}
	found = found.In(cause.At(segments.Tool, at, tool[at].Name, found.Detail[0]))
	return &found
}

func servers(added, removed []string) []string {
	found := []string{}
	for _, tool := range slices.Concat(added, removed) {
		if name := server(tool); name != "" {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return found[:min(len(found), maxNames)]
}

func toolText(before, now segments.Segment) *cause.Cause {
	a, b := definition(before.Value), definition(now.Value)
	oldWords, newWords := canonical.Text(a.Get("description")), canonical.Text(b.Get("description"))
	if !sameForm(a.Without("description"), b.Without("description")) {
		offset := firstDifference(canonical.Form(before.Value), canonical.Form(now.Value))
		return toolChanged(now, "schema", offset)
	}
	volatile := volatility.Compare(oldWords, newWords)
	if volatile == nil {
		return toolChanged(now, "description", volatility.Common(oldWords, newWords))
	}
	found := volatileCause(*volatile, cause.At(segments.Tool, now.Index, now.Name, volatile.Kind).From(volatile.Offset))
	return &found
}

func toolChanged(tool segments.Segment, kind string, offset int) *cause.Cause {
	where := cause.At(segments.Tool, tool.Index, tool.Name, kind).From(offset)
	found := cause.Seen(semconv.MissCauseToolsChanged, kind).In(where)
	return &found
}

func definition(tool any) canonical.Object {
	body := canonical.Mapping(tool)
	if function, ok := body.Get("function").(canonical.Object); ok {
		return function
	}
	return body
}

func sameForm(a, b any) bool {
	return bytes.Equal(canonical.Form(a), canonical.Form(b))
}

// firstDifference is the number of leading bytes that are the same.
func firstDifference(a, b []byte) int {
	size := min(len(a), len(b))
	for at := range size {
		if a[at] != b[at] {
			return at
		}
	}
	return size
}

// volatileCause is a volatile difference as a cause. A date moves once a day, which costs one miss per session and day.
func volatileCause(found volatility.Volatile, where *cause.Position) cause.Cause {
	volatile := cause.Seen(semconv.MissCauseVolatilePrefix, found.Kind).In(where)
	if found.Grain != "" {
		volatile = volatile.With(found.Grain)
	}
	for _, kind := range found.Also {
		if kind != clientVersion {
			volatile = volatile.With(kind)
		}
	}
	if slices.Equal(volatile.Detail, []string{"date", "day"}) {
		return volatile.By("severity=low", "expected_per_day=1")
	}
	return volatile
}
