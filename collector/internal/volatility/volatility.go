// Package volatility owns which differences between two versions of a text are volatile: clocks, dates, ids, counters,
// nonces, paths, git status (spec/README.md, "Causes"). Two texts that are equal once such spans are masked say the same.
package volatility

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/recent"
)

const (
	longDate = `(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s+\w+\s+\d{1,2},?\s+\d{4}`
	date     = `\d{4}[-/]\d{1,2}[-/]\d{1,2}|\d{1,2}/\d{1,2}/\d{4}|` + longDate
	months   = `(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?`
	clock    = `\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s*[ap]\.?m\.?)?`
	zone     = `(?:\s*(?:Z\b|UTC|GMT)|[+-]\d{2}:?\d{2})?`
	changed  = `(?-i:[MADRCU?!]{1,2})[ \t]+\S+(?:[ \t]+->[ \t]+\S+)?[ \t]*$`
	state    = `(?:\(?clean\)?|dirty|modified|nothing to commit[^\n]*|working tree clean|` + changed + `)`
	// Words that number what goes on by themselves, and words that do so only beside a sign, an end or a total: "attempt
	// 3" counts, "attempt 3 times" is a rule.
	counting = `(?:turn|step|iteration|counter|seq|sequence|pid)(?:\s+(?:number|no\.?))?[\s:=#]{1,3}\d+`
	counted  = `(?:request|call|message|attempt|build|round)(?:\s+(?:number|no\.?|id))?`
	total    = `\s+\d+(?=\s*(?:$|[)\].,;]|of\s+\d|/\s*\d))`
	nonces   = `(?:nonce|cch|request_id|trace_id|session_id|salt|cache_bust(?:er)?)`
)

// masks are kinds of spans with their forms, in order: an earlier kind takes the span. A mask hides a change of the rules
// from the policy hash, so it must name what nobody writes a rule with: bare numbers, prices, versions and limits stay.
// None may be tried at a place for longer than its span is: a list of numbers without end is a system text, too.
var masks = []struct{ kind, form string }{
	{"uuid", `\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`},
	{"datetime", `(?:` + date + `)[T\s,]+(?:at\s+)?` + clock + zone},
	{"date", `\b(?:` + date + `|\d{1,2}\s+` + months + `\s+\d{4}|` + months + `\s+\d{1,2},?\s+\d{4})\b`},
	{"time", `\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?(?:\s*[ap]\.?m\.?)?` + zone},
	{"time", `\b(?:time|now|clock|updated)(?:\s+(?:is|now|at))?[\s:=]{1,3}` + clock + zone},
	{"repo_status", `^[ \t]*(?:git\s*)?status:[ \t]*(?:(?:` + state + `)[ \t]*)?$(?:\n[ \t]*` + changed + `)*`},
	{"repo_status", `(?:^[ \t]?(?-i:[MADRCU?!]{1,2})[ \t]+(?=\S*[./])\S+[ \t]*$\n?)+`},
	{"repo_status", `^[ \t]*(?:current\s+)?branch:[ \t]*[\w./-]+[ \t]*$`},
	{"repo_status", `^[ \t]*recent commits:[ \t]*$(?:\n[ \t]*[0-9a-f]{7,40}\s[^\n]*)*`},
	{"client_version", `(?<=cc_version=)[\w.-]+`},
	{"nonce", `\b` + nonces + `\s*[=:]\s*[\w-]{4,}`},
	{"nonce", `(?<==)(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{5,}(?=;|\s|$)`},
	{"nonce", `\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b`},
	{"epoch", `\b1[5-9]\d{8}(?:\d{3})?(?:\.\d+)?\b`},
	{"counter", `\b` + counting + `(?![\d.]*\d)`},
	{"counter", `\b` + counted + `(?:\s*[:=#]\s*\d+|` + total + `)(?![\d.]*\d)`},
	{"counter", `\bport\s*[:=#]\s*\d+(?![\d.]*\d)`},
	{"counter", `\b\d[\d,]{0,15}(?=\s+(?:tokens?|seconds?|minutes?|turns?|steps?)\s+(?:left|remaining|used|elapsed))`},
	{"path", `(?:/(?:home|tmp|var|private|Users|root|work|workspace|mnt|opt)(?:/[\w.@+-]+)+|[A-Z]:\\[\w.\\ -]+)`},
}

// begin is where a mask can begin at all, so that most places are passed over without trying every one.
const begin = `(?=\d|/|^|(?<==)|\b[a-w]|(?:mon|tue|wed|thu|fri|sat|sun)|[a-z]:\\)`

// term is what stands before a day until or from which something must be, or must not be, done: it belongs to the rule.
var term = regexp.MustCompile(
	`(?i)(?:\b(?:never|not|must|only|no)|n't)\b[^.!?;\n]*\b(?:after|before|until|till|by|since|from)\s+$`,
)

// maxLead is how many characters before a day are looked at.
const maxLead = 48

// MaxParagraph is how many bytes of text without an empty line are looked through; of a longer one, which no one writes
// by hand, every difference counts as one of words.
const MaxParagraph = 64 << 10

const emptyLine = "\n\n"

// unknown is the kind of a difference that no span shows although the masked texts are equal.
const unknown = "unknown"

// clientVersion moves with the client alone.
const clientVersion = "client_version"

// The expressions are those of the Python package, which needs look-around: no engine of Go's standard library has it.
var (
	pattern = regexp2.MustCompile(begin+"(?:"+alternatives()+")", regexp2.IgnoreCase|regexp2.Multiline)
	clocks  = regexp2.MustCompile(clock, regexp2.IgnoreCase)
)

func alternatives() string {
	forms := make([]string, len(masks))
	for at, mask := range masks {
		forms[at] = "(?<k" + strconv.Itoa(at) + ">" + mask.form + ")"
	}
	return strings.Join(forms, "|")
}

// Volatile is a volatile difference: the kind of the first span that differs, its grain (second, minute, day, empty for
// none), the first differing character, and the kinds of the later spans that differ too.
type Volatile struct {
	Kind   string   `json:"kind"`
	Grain  string   `json:"grain"`
	Offset int      `json:"offset"`
	Also   []string `json:"also"`
}

type span struct{ kind, text string }

// Mask is the text with every volatile span replaced by the name of its kind.
func Mask(text string) string {
	var built strings.Builder
	for _, part := range paragraphs(text) {
		built.WriteString(masked(part))
	}
	return built.String()
}

// paragraphs are the parts of a text that end with an empty line. No span crosses one, so that of a long text that was
// seen before only the paragraphs that changed have to be looked through.
func paragraphs(text string) []string {
	return strings.SplitAfter(text, emptyLine)
}

// So many paragraphs of so many bytes are kept beside what they are masked.
const (
	keptParagraphs = 512
	keptSize       = 8 << 10
)

var kept = struct {
	sync.Mutex
	masks *recent.Map[string, string]
}{masks: recent.New[string, string]()}

func masked(part string) string {
	if len(part) > keptSize {
		return sought(part)
	}
	kept.Lock()
	defer kept.Unlock()
	found, known := kept.masks.Get(part)
	if !known {
		found = sought(part)
	}
	kept.masks.Bound(strings.Clone(part), found, keptParagraphs)
	return found
}

func sought(part string) string {
	var built strings.Builder
	rest, at := []rune(part), 0
	each(part, func(match *regexp2.Match) {
		built.WriteString(string(rest[at:match.Index]))
		built.WriteString(replaced(match, rest[max(0, match.Index-maxLead):match.Index]))
		at = match.Index + match.Length
	})
	built.WriteString(string(rest[at:]))
	return built.String()
}

// replaced is what stands for a span after what leads up to it.
func replaced(match *regexp2.Match, lead []rune) string {
	found := kind(match)
	if found == "date" && term.MatchString(string(lead)) {
		return match.String()
	}
	return "<" + found + ">"
}

// each calls back for every span of a paragraph. The engine fails only on a time limit, and none is set.
func each(part string, found func(*regexp2.Match)) {
	if len(part) > MaxParagraph {
		return
	}
	match, err := pattern.FindStringMatch(part)
	for match != nil && err == nil {
		found(match)
		match, err = pattern.FindNextMatch(match)
	}
}

func kind(match *regexp2.Match) string {
	for at, mask := range masks {
		if group := match.GroupByName("k" + strconv.Itoa(at)); group != nil && len(group.Captures) > 0 {
			return mask.kind
		}
	}
	return unknown
}

// Compare gives the volatile difference between two texts, nil when they are equal or differ in more than that.
func Compare(before, after string) *Volatile {
	if before == after || Mask(before) != Mask(after) {
		return nil
	}
	differing := moves(before, after)
	if len(differing) == 0 {
		return &Volatile{Kind: unknown, Offset: Common(before, after)}
	}
	first := leading(differing)
	found := &Volatile{Kind: first.kind, Grain: grain(first), Offset: Common(before, after)}
	for _, other := range differing {
		if other.kind != first.kind && !slices.Contains(found.Also, other.kind) {
			found.Also = append(found.Also, other.kind)
		}
	}
	return found
}

// leading is the span that a difference is named after. Whatever moves beside a client's version moves more often.
func leading(moved []span) span {
	for _, one := range moved {
		if one.kind != clientVersion {
			return one
		}
	}
	return moved[0]
}

// moves are the spans of the later of two texts with equal masks that are not as they were. Paragraphs that are the same
// are passed over, where the masks of all are equal in pairs.
func moves(before, after string) []span {
	olds, news := paragraphs(before), paragraphs(after)
	if !slices.EqualFunc(olds, news, func(a, b string) bool { return a == b || masked(a) == masked(b) }) {
		return moved(spans(before), spans(after))
	}
	found := []span{}
	for at := range olds {
		if olds[at] != news[at] {
			found = append(found, moved(spans(olds[at]), spans(news[at]))...)
		}
	}
	return found
}

func moved(olds, news []span) []span {
	found := []span{}
	for at := range min(len(olds), len(news)) {
		if olds[at].text != news[at].text {
			found = append(found, news[at])
		}
	}
	return found
}

func spans(text string) []span {
	found := []span{}
	for _, part := range paragraphs(text) {
		each(part, func(match *regexp2.Match) { found = append(found, span{kind(match), match.String()}) })
	}
	return found
}

// grain is how often a clock moves, told from the number of its colons.
func grain(found span) string {
	switch found.kind {
	case "date":
		return "day"
	case "datetime", "time":
		match, err := clocks.FindStringMatch(found.text)
		if err == nil && match != nil && strings.Count(match.String(), ":") >= 2 {
			return "second"
		}
		return "minute"
	default:
		return ""
	}
}

// Common is the number of leading characters that two texts share.
func Common(before, after string) int {
	count := 0
	for at, sign := range before {
		width := utf8.RuneLen(sign)
		if at+width > len(after) || at+width > len(before) || before[at:at+width] != after[at:at+width] {
			break
		}
		count++
	}
	return count
}
