package differences

import (
	"regexp"
	"slices"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/cause"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/volatility"
)

// clientVersion is the kind of a volatile span that a client's version is.
const clientVersion = "client_version"

// sections of a system text are known by their tag or heading; other headings are content and never named.
var sections = []struct {
	name string
	form *regexp.Regexp
}{
	{"mcp_instructions", regexp.MustCompile(`(?i)mcp[ _-]?(?:server[ _-]?)?instructions`)},
	{"memory", regexp.MustCompile(`(?i)\bmemor(?:y|ies)\b`)},
	{"rules", regexp.MustCompile(`(?i)\b(?:rules|agents\.md|claude\.md|kimi\.md)\b`)},
	{"environment", regexp.MustCompile(`(?i)\b(?:environment|env)\b`)},
}

var heading = regexp.MustCompile(`(?m)^[ \t]*(?:#{1,6}[ \t]+[^\n]*|<[A-Za-z_][\w -]*>)`)

// System says how the system part changed: in volatile spans, in what it says, in both; each at its first place. A
// client's version in it comes last, for what it brought along says more.
func System(before, now []segments.Segment) []cause.Cause {
	found := []cause.Cause{}
	size := min(len(before), len(now))
	for at := range size {
		if before[at].Digest != now[at].Digest {
			found = append(found, systemText(before[at], now[at]))
		}
	}
	if len(before) != len(now) {
		kind, block := "removed", before[size:]
		if len(now) > len(before) {
			kind, block = "added", now[size:]
		}
		where := cause.At(segments.System, size, section(segments.Texts(block[0].Value), 0), kind)
		found = append(found, cause.Seen(semconv.MissCausePolicyChanged, kind).In(where))
	}
	return ordered(found)
}

func ordered(found []cause.Cause) []cause.Cause {
	first := []cause.Cause{}
	for _, one := range found {
		if !slices.ContainsFunc(first, func(known cause.Cause) bool { return known.Name == one.Name }) {
			first = append(first, one)
		}
	}
	slices.SortStableFunc(first, func(a, b cause.Cause) int { return late(a) - late(b) })
	return first
}

func late(one cause.Cause) int {
	if one.Name == semconv.MissCauseClientVersionChanged {
		return 1
	}
	return 0
}

func systemText(before, now segments.Segment) cause.Cause {
	a, b := segments.Texts(before.Value), segments.Texts(now.Value)
	volatile := volatility.Compare(a, b)
	if volatile == nil {
		offset := volatility.Common(a, b)
		where := cause.At(segments.System, now.Index, section(b, offset), "text").From(offset)
		return cause.Seen(semconv.MissCausePolicyChanged).In(where)
	}
	where := cause.At(segments.System, now.Index, section(b, volatile.Offset), volatile.Kind).From(volatile.Offset)
	if volatile.Kind == clientVersion {
		return cause.Seen(semconv.MissCauseClientVersionChanged).In(where)
	}
	return volatileCause(*volatile, where)
}

// section is the known section of a system text that a character stands in, by the last tag or heading before it.
func section(text string, offset int) string {
	signs := []rune(text)
	before := string(signs[:min(len(signs), offset+1)])
	headings := heading.FindAllString(before, -1)
	if len(headings) == 0 {
		return ""
	}
	for _, known := range sections {
		if known.form.MatchString(headings[len(headings)-1]) {
			return known.name
		}
	}
	return ""
}
