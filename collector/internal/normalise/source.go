package normalise

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
)

// The forms that a source's value can have.
const (
	asList  = "list"
	asHost  = "host"
	asTools = "tools"
)

const (
	// maxText is the longest text that is taken apart, in bytes; what a client writes of one call's settings is shorter.
	maxText = 64 * 1024
	// maxTools is how many tools are told one by one.
	maxTools = 512
)

// place is a source as it is read: `slot` is where its attribute's value lies, `constant` its value where it has one.
type place struct {
	Source
	slot     int
	constant pcommon.Value
}

// value gives what stands at a source, as its field wants it: false where nothing does. Broken says that something
// stands there that could not be taken apart.
func (s *place) value(into *reading) (found pcommon.Value, ok, broken bool) {
	if s.Value != "" {
		return s.constant, true, false
	}
	found = into.values[s.slot]
	if found == (pcommon.Value{}) || blank(found) {
		return found, false, false
	}
	ok = true
	switch {
	case s.Key != "":
		found, ok, broken = keyed(found, s.Key)
	case s.Path != "":
		found, ok, broken = reached(into.document(s.slot), s.Path)
	case s.Words != nil:
		found, ok = s.worded(found)
	case s.Per != 0:
		found, ok = divided(found, s.Per)
	case s.As == asHost:
		found, ok = hosted(found)
	}
	if ok && s.As == asList {
		found = listed(found)
	}
	return found, ok, broken
}

func blank(value pcommon.Value) bool {
	return value.Type() == pcommon.ValueTypeEmpty || (value.Type() == pcommon.ValueTypeStr && value.Str() == "")
}

// worded gives the word for a value: by itself, else by the longest pattern that it fits.
func (s *Source) worded(value pcommon.Value) (pcommon.Value, bool) {
	said := scalar(value)
	if word, ok := s.Words[said]; ok {
		return pcommon.NewValueStr(word), true
	}
	best := ""
	for pattern := range s.Words {
		longer := len(pattern) > len(best) || (len(pattern) == len(best) && pattern < best)
		if longer && like(pattern, said) {
			best = pattern
		}
	}
	return pcommon.NewValueStr(s.Words[best]), best != ""
}

// scalar is a single value as text, empty for a list, a map or bytes.
func scalar(value pcommon.Value) string {
	switch value.Type() {
	case pcommon.ValueTypeStr:
		return value.Str()
	case pcommon.ValueTypeInt, pcommon.ValueTypeDouble, pcommon.ValueTypeBool:
		return value.AsString()
	default:
		return ""
	}
}

func divided(value pcommon.Value, per float64) (pcommon.Value, bool) {
	number := call.Number(value)
	if number == nil {
		return value, false
	}
	return pcommon.NewValueDouble(*number / per), true
}

// hosted gives the host of a URL, and its port where it is not that of its scheme.
func hosted(value pcommon.Value) (pcommon.Value, bool) {
	said, err := url.Parse(scalar(value))
	if err != nil || said.Hostname() == "" {
		return value, false
	}
	return pcommon.NewValueStr(address(said.Hostname(), said.Port())), true
}

// address is a host with its port, which is left out where it is one of the usual.
func address(host, port string) string {
	host = strings.ToLower(host)
	if port == "" || port == "443" || port == "80" || port == "0" {
		return host
	}
	return net.JoinHostPort(host, port)
}

// listed gives a list as it is, a text that is a JSON list as one, and any other single value as a list of it.
func listed(value pcommon.Value) pcommon.Value {
	if value.Type() == pcommon.ValueTypeSlice {
		return value
	}
	items := []any{scalar(value)}
	if text := scalar(value); strings.HasPrefix(text, "[") && len(text) <= maxText {
		if parsed, err := canonical.Parse(text); err == nil {
			items = canonical.Items(parsed)
		}
	}
	found := pcommon.NewValueSlice()
	for _, item := range items {
		if text := canonical.Text(item); text != "" {
			found.Slice().AppendEmpty().SetStr(text)
		}
	}
	return found
}

// keyed gives the whole number at a key in the text of a map, in JSON or as Python prints a dict. A text in which there
// is no map is broken.
func keyed(value pcommon.Value, key string) (found pcommon.Value, ok, broken bool) {
	if value.Type() == pcommon.ValueTypeMap {
		found, ok = value.Map().Get(key)
		return found, ok, false
	}
	text := scalar(value)
	if len(text) > maxText || !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return value, false, true
	}
	for _, quote := range []string{`"`, `'`} {
		if _, after, there := strings.Cut(text, quote+key+quote); there {
			number, fits := leading(after)
			return pcommon.NewValueInt(number), fits, false
		}
	}
	return value, false, false
}

// leading reads the whole number that stands behind a colon.
func leading(text string) (int64, bool) {
	text, colon := strings.CutPrefix(strings.TrimLeft(text, " "), ":")
	text = strings.TrimLeft(text, " ")
	digits := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
	number, err := strconv.ParseInt(digits, 10, 64)
	return number, colon && err == nil && !strings.HasPrefix(text[len(digits):], ".")
}

// name is what a rule calls the place.
func (s *Source) name() string {
	if s.Path != "" {
		return s.From + ":" + s.Path
	}
	return s.From
}

// document gives the value in a slot taken apart, once for all that is read from it: a text of JSON, or a map as it is;
// nil where it is neither.
func (r *reading) document(slot int) any {
	if parsed, ok := r.parsed[slot]; ok {
		return parsed
	}
	if r.parsed == nil {
		r.parsed = map[int]any{}
	}
	r.parsed[slot] = parsed(r.values[slot])
	return r.parsed[slot]
}

func parsed(value pcommon.Value) any {
	if value.Type() == pcommon.ValueTypeMap {
		return value.Map().AsRaw()
	}
	text := scalar(value)
	if len(text) > maxText {
		return nil
	}
	found, err := canonical.Parse(text)
	if err != nil {
		return nil
	}
	return found
}

// reached gives the single value at a path of names in a document; a document that is none is broken.
func reached(document any, path string) (found pcommon.Value, ok, broken bool) {
	if document == nil {
		return pcommon.Value{}, false, true
	}
	for name := range strings.SplitSeq(path, ".") {
		document = member(document, name)
	}
	return valued(document)
}

func member(of any, name string) any {
	if raw, ok := of.(map[string]any); ok {
		return raw[name]
	}
	return canonical.Mapping(of).Get(name)
}

func valued(at any) (found pcommon.Value, ok, broken bool) {
	switch at := at.(type) {
	case string:
		return pcommon.NewValueStr(at), at != "", false
	case int64:
		return pcommon.NewValueInt(at), true, false
	case float64:
		return pcommon.NewValueDouble(at), true, false
	case bool:
		return pcommon.NewValueBool(at), true, false
	default:
		return pcommon.Value{}, false, false
	}
}

// tooled gives the tools that a text tells, a JSON list of objects with name and hash; nil where it tells none.
func tooled(value pcommon.Value) []call.Tool {
	text := scalar(value)
	if len(text) > maxText {
		return nil
	}
	parsed, err := canonical.Parse(text)
	if err != nil {
		return nil
	}
	var found []call.Tool
	for _, item := range canonical.Items(parsed) {
		tool := canonical.Mapping(item)
		name, digest := canonical.Text(tool.Get("name")), canonical.Text(tool.Get("hash"))
		if name != "" && digest != "" && len(found) < maxTools {
			found = append(found, call.Tool{Name: name, Digest: digest})
		}
	}
	return found
}
