package normalise

import (
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Traces and Logs are the signals of a subject.
const (
	Traces = "traces"
	Logs   = "logs"
)

// Subject is what a record says of itself before anything is read from it: a span with its name, or a log record with
// its event name, its attribute event.name and its text, as far as it has them. Nothing of it is kept.
type Subject struct {
	Signal  string
	Scope   string
	Version string
	Names   []string
	Attrs   pcommon.Map
}

// known is a subject with what was read from it.
type known struct {
	*Subject
	provider string
	model    string
}

// holds says whether a subject is as the condition wants it. What is not known is as nothing wants it.
func (c *Condition) holds(of known) bool {
	return c.holdsScope(of) &&
		(len(c.Name) == 0 || slices.ContainsFunc(of.Names, func(name string) bool { return anyLike(c.Name, name) })) &&
		(len(c.Provider) == 0 || slices.Contains(c.Provider, of.provider)) &&
		(len(c.Model) == 0 || anyLike(c.Model, of.model)) &&
		c.holdsAttributes(of.Attrs)
}

// holdsScope is what of a condition all records of one scope have in common.
func (c *Condition) holdsScope(of known) bool {
	return (c.Signal == "" || c.Signal == of.Signal) &&
		(len(c.Scope) == 0 || anyLike(c.Scope, of.Scope)) &&
		c.holdsVersion(of.Version)
}

func (c *Condition) holdsVersion(of string) bool {
	if c.From == "" && c.Below == "" {
		return true
	}
	found := numbers(of)
	return found != nil &&
		(c.From == "" || slices.Compare(found, numbers(c.From)) >= 0) &&
		(c.Below == "" || slices.Compare(found, numbers(c.Below)) < 0)
}

func (c *Condition) holdsAttributes(attrs pcommon.Map) bool {
	for _, key := range c.Has {
		if _, ok := attrs.Get(key); !ok {
			return false
		}
	}
	for _, key := range c.Lacks {
		if _, ok := attrs.Get(key); ok {
			return false
		}
	}
	for key, wanted := range c.Attr {
		value, ok := attrs.Get(key)
		if !ok || value.Type() != pcommon.ValueTypeStr || !anyLike(wanted, value.Str()) {
			return false
		}
	}
	return true
}

func anyLike(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return like(pattern, text) })
}

// like says whether a text is the pattern, in which `*` stands for any characters.
func like(pattern, text string) bool {
	for at := range len(pattern) {
		if pattern[at] == '*' {
			return ends(pattern[at+1:], text[at:])
		}
		if at == len(text) || pattern[at] != text[at] {
			return false
		}
	}
	return len(pattern) == len(text)
}

// ends says whether a text is any characters and then the pattern.
func ends(pattern, text string) bool {
	if !strings.Contains(pattern, "*") {
		return strings.HasSuffix(text, pattern)
	}
	for at := range len(text) + 1 {
		if like(pattern, text[at:]) {
			return true
		}
	}
	return false
}

// numbers gives the numbers of a version, `v1.2.3b1` as 1, 2, 3; nil where it begins with none.
func numbers(text string) []int {
	var found []int
	for part := range strings.SplitSeq(strings.TrimPrefix(text, "v"), ".") {
		digits := part[:len(part)-len(strings.TrimLeft(part, "0123456789"))]
		number, err := strconv.Atoi(digits)
		if err != nil {
			break
		}
		found = append(found, number)
		if digits != part {
			break
		}
	}
	return found
}
