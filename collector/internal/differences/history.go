package differences

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/cause"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/volatility"
)

// Kinds of rewrites.
const (
	Pruned           = "pruned"
	edited           = "edited"
	reasoningDropped = "reasoning_dropped"
	serialization    = "serialization"
	reordered        = "reordered"
	resultsReordered = "tool_results_reordered"
)

// maxSummary is among how many new messages a summary is looked for.
const maxSummary = 4

var (
	reasoning = []string{"reasoning_content", "reasoning", "reasoning_details", "thinking", "redacted_thinking"}
	answers   = []string{"tool", "function_call_output"}
)

// History says how the messages changed before the comparable call's end. Appending changes nothing, and neither does
// taking back the end of the history: what was taken back is not asked for again.
func History(link lineage.Link, now *segments.Outline, summaries []string) *cause.Cause {
	if link.Head == nil || !slices.Contains([]string{lineage.Rewrites, lineage.Rewinds, lineage.Departs}, link.Relation) {
		return nil
	}
	old, at := link.Head.Outline, link.Shared
	endOld := len(old.Messages) - link.Tail
	endNew := min(len(now.Messages), max(endOld, at+1))
	if link.Tail > 0 {
		endNew = link.TailAt
	}
	before, after := old.Messages[min(at, endOld):endOld], now.Messages[min(at, endNew):endNew]
	name := ""
	if len(after) > 0 {
		name = segments.Named(after[0])
	}
	if compacted(before, after, summaries, link.Relation) {
		where := cause.At(segments.Message, at+now.Offset, name, "compacted")
		found := cause.Seen(semconv.MissCauseHistoryCompacted).In(where).By(fmt.Sprintf("removed=%d", len(before)))
		return &found
	}
	if link.Relation == lineage.Rewinds {
		return nil
	}
	kind, offset := rewrite(before, after)
	found := cause.Seen(semconv.MissCauseHistoryRewritten, kind)
	found.Position = cause.At(segments.Message, at+now.Offset, name, kind)
	found.Position.Offset = offset
	return &found
}

// PrunedBeside says whether a message was pruned in place in the same pass that compacted the history before it.
func PrunedBeside(link lineage.Link, now *segments.Outline) *cause.Cause {
	if link.Head == nil || link.Tail == 0 {
		return nil
	}
	old := link.Head.Outline
	atOld, atNew := len(old.Messages)-link.Tail-1, link.TailAt-1
	if atOld < link.Shared || atNew <= link.Shared {
		return nil
	}
	a, b := old.Messages[atOld], now.Messages[atNew]
	if segments.Role(a) != segments.Role(b) || now.Sizes[atNew] >= old.Sizes[atOld] {
		return nil
	}
	where := cause.At(segments.Message, atNew+now.Offset, segments.Named(b), Pruned)
	found := cause.Seen(semconv.MissCauseHistoryRewritten, Pruned).In(where)
	return &found
}

// compacted says whether a run of messages gave way to a summary: a known opening, or at least three for one much shorter
// one.
func compacted(before, after []any, summaries []string, relation string) bool {
	opened := slices.ContainsFunc(after[:min(len(after), maxSummary)], func(message any) bool {
		return lineage.OpensWith(strings.TrimLeftFunc(segments.Texts(message), unicode.IsSpace), summaries)
	})
	if opened && len(after) <= len(before) {
		return true
	}
	few := 1 <= len(after) && len(after) <= max(1, len(before)/3)
	return relation == lineage.Rewrites && len(before) >= 3 && few && 2*bytesOf(after) < bytesOf(before)
}

func bytesOf(messages []any) int {
	size := 0
	for _, message := range messages {
		size += len(canonical.Form(message))
	}
	return size
}

// rewrite is what kind of rewrite it was, and the first differing character of the first message's text, nil where the
// texts are the same.
func rewrite(before, after []any) (string, *int) {
	if len(before) == 0 || len(after) == 0 {
		return emptied(before), nil
	}
	offset := parted(segments.Texts(before[0]), segments.Texts(after[0]))
	switch {
	case len(after) < len(before):
		return Pruned, offset
	case len(after) > len(before):
		return edited, offset
	case !shuffled(before, after):
		return firstChange(before, after), offset
	case all(before, answers):
		return resultsReordered, offset
	default:
		return reordered, offset
	}
}

func emptied(before []any) string {
	switch {
	case len(before) == 0:
		return edited
	case all(before, []string{"reasoning"}):
		return reasoningDropped
	default:
		return Pruned
	}
}

func parted(a, b string) *int {
	if a == b {
		return nil
	}
	offset := volatility.Common(a, b)
	return &offset
}

func all(messages []any, roles []string) bool {
	return !slices.ContainsFunc(messages, func(message any) bool { return !slices.Contains(roles, segments.Role(message)) })
}

func shuffled(before, after []any) bool {
	return slices.EqualFunc(sorted(before), sorted(after), bytes.Equal)
}

func sorted(messages []any) [][]byte {
	forms := make([][]byte, len(messages))
	for at, message := range messages {
		forms[at] = canonical.Form(message)
	}
	slices.SortFunc(forms, bytes.Compare)
	return forms
}

func firstChange(before, after []any) string {
	for at := range before {
		if kind := change(before[at], after[at]); kind != "" {
			return kind
		}
	}
	return edited
}

func change(before, now any) string {
	switch a, b := canonical.Form(before), canonical.Form(now); {
	case sameForm(segments.Unmarked(before), segments.Unmarked(now)):
		return ""
	case sameForm(withoutReasoning(before), withoutReasoning(now)):
		if len(b) < len(a) {
			return reasoningDropped
		}
		return edited
	case sameForm(parsed(before), parsed(now)):
		return serialization
	case shrank(before, len(a), now, len(b)):
		return Pruned
	default:
		return edited
	}
}

// shrank says whether a tool's answer got shorter, or what a user said lost at least half of its text.
func shrank(before any, size int, now any, newSize int) bool {
	if slices.Contains(answers, segments.Role(before)) {
		return newSize < size
	}
	said, left := []rune(segments.Texts(before)), []rune(segments.Texts(now))
	return segments.Role(before) == "user" && 2*len(left) <= len(said)
}

func withoutReasoning(message any) any {
	body, ok := message.(canonical.Object)
	if !ok {
		return message
	}
	kept := body.Without(reasoning...)
	for _, name := range []string{"content", "parts"} {
		if parts, listed := body.Get(name).([]any); listed {
			kept = kept.With(name, slices.DeleteFunc(slices.Clone(parts), reasons))
		}
	}
	return kept
}

func reasons(part any) bool {
	return slices.Contains(reasoning, canonical.Text(canonical.Mapping(part).Get("type")))
}

// parsed is a message with every text that holds a JSON object or list replaced by that.
func parsed(value any) any {
	switch value := value.(type) {
	case canonical.Object:
		read := slices.Clone(value)
		for at := range read {
			read[at].Value = parsed(read[at].Value)
		}
		return read
	case []any:
		read := make([]any, len(value))
		for at, item := range value {
			read[at] = parsed(item)
		}
		return read
	case string:
		if !strings.HasPrefix(value, "{") && !strings.HasPrefix(value, "[") {
			return value
		}
		if found, err := canonical.Parse(value); err == nil {
			return found
		}
	}
	return value
}

// Settings are the names of the settings that differ.
func Settings(before, now canonical.Object) []string {
	changed := []string{}
	for _, member := range slices.Concat(before, now) {
		if !slices.Contains(changed, member.Name) && !sameForm(before.Get(member.Name), now.Get(member.Name)) {
			changed = append(changed, member.Name)
		}
	}
	return changed
}

// IntactBytes is how many bytes of whole segments the request shares with the comparable call's rendering from its start.
func IntactBytes(link lineage.Link, now *segments.Outline) int {
	edge, whole, _ := headers(link.Head.Outline, now)
	if !whole {
		return edge
	}
	return link.Head.Outline.Size(link.Shared)
}

// SharedBytes is how many bytes of the comparable call's rendering the request shares from its start.
func SharedBytes(link lineage.Link, now *segments.Outline) int {
	old := link.Head.Outline
	edge, whole, inner := headers(old, now)
	if !whole {
		return edge + inner
	}
	edge = old.Size(link.Shared)
	if link.Grows() || link.Shared >= min(len(old.Messages), len(now.Messages)) {
		return edge
	}
	return edge + firstDifference(canonical.Form(old.Messages[link.Shared]), canonical.Form(now.Messages[link.Shared]))
}

// headers is how many bytes of whole segments two headers share, whether they are the same, and how many more bytes the
// first segment shares that differs.
func headers(old, now *segments.Outline) (edge int, whole bool, inner int) {
	for at := range min(len(old.Header), len(now.Header)) {
		a, b := old.Header[at], now.Header[at]
		if a.Digest != b.Digest {
			return edge, false, firstDifference(canonical.Form(a.Value), canonical.Form(b.Value))
		}
		edge += a.Size
	}
	return edge, len(old.Header) == len(now.Header), 0
}

// Called are the names of the tools that a message calls, in the spelling of any dialect.
func Called(message any) []string {
	body := canonical.Mapping(message)
	calls := slices.Concat(canonical.Items(body.Get("tool_calls")), segments.Parts(body), []any{body})
	names := []string{}
	for _, one := range calls {
		if name := canonical.Text(definition(one).Get("name")); name != "" {
			names = append(names, name)
		}
	}
	return names
}
