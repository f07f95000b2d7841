// Package segments owns what a request is made of: tools one by one, the system part, then each message, in the order of
// rendering, each with its digests (spec/README.md, "Segments"). What the pieces mean to a cache is decided elsewhere.
package segments

import (
	"slices"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/spelling"
)

// Kinds of segments.
const (
	Tool    = "tool"
	System  = "system"
	Message = "message"
)

// Request is a model call as its reader gave it. Messages starts after the leading system messages; its first element
// stands at index Offset of the list that was sent. Members named in Unrendered never reach the model. Breakpoints counts
// cache markers by segment kind, nil where it is not known whether there were any. An empty text is unknown, or was not
// said.
type Request struct {
	Model            string
	Tools            []any
	System           []any
	Messages         []any
	Offset           int
	Unrendered       []string
	Settings         canonical.Object
	Effort           string
	CacheKey         string
	Conversation     string
	PreviousResponse string
	Retention        string
	Breakpoints      map[string]int
	ClientVersion    string
}

// Lean is the request without what was sent, which its outline holds.
func (r Request) Lean() Request {
	r.Tools, r.System, r.Messages = nil, nil, nil
	return r
}

// Segment is one addressable piece of what was sent. Size is the length of its canonical form in bytes.
type Segment struct {
	Kind   string
	Index  int
	Name   string
	Size   int
	Digest canonical.Digest
	Wire   canonical.Digest
	Value  any
}

// Outline is a request as segments. Digests, Sizes and Prefix run along Messages; Prefix[i] covers everything up to and
// including message i; Root covers the header alone. Offset is the place of the first message in the list that was sent.
type Outline struct {
	Header     []Segment
	Root       canonical.Digest
	Messages   []any
	Digests    []canonical.Digest
	Sizes      []int
	Prefix     []canonical.Digest
	Offset     int
	HeaderSize int
	Total      int
}

// markers are cache markers of clients; they are no part of what a model reads.
var markers = []string{"cache_control", "prompt_cache_breakpoint"}

// lastMarked is among how many messages from the end markers are looked for: clients move them along with the end.
const lastMarked = 8

// Breakpoints counts cache markers by segment kind.
func Breakpoints(tools, system, messages []any) map[string]int {
	found := map[string]int{}
	last := messages[max(0, len(messages)-lastMarked):]
	for kind, values := range map[string][]any{Tool: tools, System: system, Message: last} {
		for _, value := range values {
			if marked(value) {
				found[kind]++
			}
		}
	}
	return found
}

func marked(value any) bool {
	return bears(value) || slices.ContainsFunc(Parts(value), bears)
}

func bears(value any) bool {
	body := canonical.Mapping(value)
	return slices.ContainsFunc(markers, func(name string) bool {
		_, there := body.Find(name)
		return there
	})
}

// Cut gives the outline of a request.
func Cut(request Request) *Outline {
	o := &Outline{Messages: request.Messages, Offset: request.Offset}
	o.header(Tool, request.Tools)
	o.header(System, request.System)
	digests := make([]canonical.Digest, len(o.Header))
	for at, segment := range o.Header {
		digests[at] = segment.Digest
		o.HeaderSize += segment.Size
	}
	o.Root, o.Total = canonical.Joined(digests...), o.HeaderSize
	link := o.Root
	for _, message := range request.Messages {
		raw := canonical.Form(rendered(message, request.Unrendered))
		digest := canonical.Of(raw)
		link = canonical.Joined(link, digest)
		o.Digests, o.Sizes, o.Prefix = append(o.Digests, digest), append(o.Sizes, len(raw)), append(o.Prefix, link)
		o.Total += len(raw)
	}
	return o
}

// rendered is what of a message reaches the model.
func rendered(message any, unrendered []string) any {
	value := Unmarked(message)
	if object, ok := value.(canonical.Object); ok && len(unrendered) > 0 {
		return object.Without(unrendered...)
	}
	return value
}

func (o *Outline) header(kind string, values []any) {
	for index, value := range values {
		kept := Unmarked(value)
		raw := canonical.Form(headed(kind, kept))
		o.Header = append(o.Header, Segment{
			Kind: kind, Index: index, Name: Named(kept), Size: len(raw), Digest: canonical.Of(raw),
			Wire: canonical.Of(canonical.Wire(kept)), Value: kept,
		})
	}
}

// headed is the form of a header segment: a tool without the order of its sets, a builtin one by its name alone.
func headed(kind string, kept any) any {
	switch name := Named(kept); {
	case kind != Tool:
		return kept
	case name != "" && name[0] == '$':
		return canonical.Object{{Name: "name", Value: name}}
	default:
		return canonical.Schema(kept)
	}
}

// Unmarked is a value without the cache markers in it.
func Unmarked(value any) any {
	switch value := value.(type) {
	case canonical.Object:
		kept := slices.Clone(value.Without(markers...))
		for at := range kept {
			kept[at].Value = Unmarked(kept[at].Value)
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for at, item := range value {
			kept[at] = Unmarked(item)
		}
		return kept
	default:
		return value
	}
}

// Of are the header's segments of one kind.
func (o *Outline) Of(kind string) []Segment {
	found := []Segment{}
	for _, segment := range o.Header {
		if segment.Kind == kind {
			found = append(found, segment)
		}
	}
	return found
}

// Message is message `at` as a segment; its index is its place in the list that was sent.
func (o *Outline) Message(at int) Segment {
	value := o.Messages[at]
	return Segment{
		Kind: Message, Index: at + o.Offset, Name: Named(value), Size: o.Sizes[at], Digest: o.Digests[at],
		Wire: canonical.Of(canonical.Wire(value)), Value: value,
	}
}

// Size is how many bytes the header and the first messages have.
func (o *Outline) Size(messages int) int {
	size := o.HeaderSize
	for _, one := range o.Sizes[:messages] {
		size += one
	}
	return size
}

// InnerTools are tools that messages carry themselves: Kimi loads tools on demand by a message in mid-history.
func (o *Outline) InnerTools() []Segment {
	tools := []any{}
	for _, message := range o.Messages {
		tools = append(tools, canonical.Items(canonical.Mapping(message).Get("tools"))...)
	}
	if len(tools) == 0 {
		return nil
	}
	return Cut(Request{Tools: tools}).Header
}

// roles are those of the dialects, and those that templates of local models know.
var roles = []string{
	"system", "developer", "user", "assistant", "tool", "function", "model", "ipython", "critic",
}

// Named is the role of a message, the name of a tool, else the type of a block. The name of what has a role or content
// may be a person's and is never asked for, and so may a role that no provider knows: it is `other`.
func Named(value any) string {
	body, ok := value.(canonical.Object)
	if !ok {
		return typed(value)
	}
	if role := canonical.Text(body.Get("role")); role != "" {
		if slices.Contains(roles, role) {
			return role
		}
		return spelling.Other
	}
	own := canonical.Text(body.Get("name"))
	if _, speaks := body.Find("content"); speaks {
		own = ""
	}
	called := canonical.Text(canonical.Mapping(body.Get("function")).Get("name"))
	for _, name := range []string{called, own, canonical.Text(body.Get("type"))} {
		if name != "" {
			return spelling.Name(name, spelling.MaxTool)
		}
	}
	return "object"
}

// typed is what the Python package calls a value that is no object.
func typed(value any) string {
	switch value.(type) {
	case string:
		return "text"
	case nil:
		return "NoneType"
	case []any:
		return "list"
	case bool:
		return "bool"
	case float64:
		return "float"
	default:
		return "int"
	}
}

// types are the roles of messages that tell a type instead, as LangChain's do.
var types = map[string]string{"human": "user", "ai": "assistant"}

// Role is the role of a message as it is, or the type of an item that has none.
func Role(message any) string {
	if role, ok := canonical.Mapping(message).Get("role").(string); ok {
		return role
	}
	name := Named(message)
	if role, ok := types[name]; ok {
		return role
	}
	return name
}

// maxPartsDepth is how deep content parts lie.
const maxPartsDepth = 8

// places are where a message or part keeps its text or its parts: in `parts` by OpenTelemetry's conventions, else as the
// APIs of providers have it.
var places = []string{"content", "text", "parts"}

// Parts are the parts of a message, none where it is a text alone.
func Parts(message any) []any {
	return canonical.Items(held(canonical.Mapping(message)))
}

func held(body canonical.Object) any {
	for _, name := range places {
		if value, there := body.Find(name); there {
			return value
		}
	}
	return nil
}

// Texts is the text of a system block or message, its parts joined by line breaks.
func Texts(value any) string {
	return texts(value, 0)
}

func texts(value any, depth int) string {
	if text, ok := value.(string); ok {
		return text
	}
	if depth > maxPartsDepth {
		return ""
	}
	switch value := value.(type) {
	case canonical.Object:
		return texts(held(value), depth+1)
	case []any:
		joined := ""
		for at, part := range value {
			if at > 0 {
				joined += "\n"
			}
			joined += texts(part, depth+1)
		}
		return joined
	default:
		return ""
	}
}
