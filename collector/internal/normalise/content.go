package normalise

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
)

const (
	// maxCaptured is the longest text of captured messages that is looked at, in bytes.
	maxCaptured = 16 << 20
	// maxParts is how many messages or tools a captured request can have.
	maxParts = 20_000
)

// Capture says where a dialect keeps the parts of a request, if its user had them captured. A place that ends in `.` is
// the beginning of names in which a number stands for the part.
type Capture struct {
	Tools    []string `yaml:"tools"`
	System   []string `yaml:"system"`
	Messages []string `yaml:"messages"`
}

// ContentOf gives the attributes of a dialect that hold what was sent or answered, some of them with a `*` at the end.
func (n *Normaliser) ContentOf(dialect string) []string {
	for i := range n.dialects {
		if n.dialects[i].name == dialect {
			return n.dialects[i].content
		}
	}
	return nil
}

// captured reads the request of a call; nil where no message of it was captured. Leading messages of the roles system and
// developer are a part of the system part, wherever a dialect keeps them.
func (d *dialect) captured(attrs pcommon.Map) *call.Content {
	for i := range d.capture {
		places := &d.capture[i]
		messages := parts(attrs, places.Messages, "messages", "input")
		if len(messages) == 0 {
			continue
		}
		found := &call.Content{Form: d.name, Tools: parts(attrs, places.Tools, "tools"), System: parts(attrs, places.System, "system")}
		leading := 0
		for leading < len(messages) && instructs(messages[leading]) {
			leading++
		}
		found.System = append(found.System, messages[:leading]...)
		found.Messages = messages[leading:]
		return found
	}
	return nil
}

// parts gives the parts at the first place that holds any, each as JSON. Members are where they are in a whole request.
func parts(attrs pcommon.Map, places []string, members ...string) [][]byte {
	for _, place := range places {
		found := listedParts(attrs, place, members)
		if strings.HasSuffix(place, ".") {
			found = numbered(attrs, place)
		}
		if len(found) > 0 && len(found) <= maxParts {
			return found
		}
	}
	return nil
}

// listedParts gives the items of a list, which may be a text of JSON, or texts of JSON in a list; of anything else, it
// alone.
func listedParts(attrs pcommon.Map, place string, members []string) [][]byte {
	value, ok := attrs.Get(place)
	if !ok {
		return nil
	}
	switch value.Type() {
	case pcommon.ValueTypeStr:
		return itemsOf(value.Str(), members)
	case pcommon.ValueTypeSlice:
		var found [][]byte
		for _, item := range value.Slice().All() {
			if text, err := asJSON(item); err == nil {
				found = append(found, text)
			}
		}
		return found
	default:
		return nil
	}
}

func asJSON(value pcommon.Value) ([]byte, error) {
	if value.Type() == pcommon.ValueTypeStr && json.Valid([]byte(value.Str())) {
		return []byte(value.Str()), nil
	}
	return json.Marshal(value.AsRaw())
}

// itemsOf gives the items of a list in JSON; of an object those of the first of some members that is one, and of a list
// in a list those of the inner one, as some write them.
func itemsOf(text string, members []string) [][]byte {
	if len(text) > maxCaptured {
		return nil
	}
	items := unlisted([]byte(text))
	var object map[string]json.RawMessage
	if items == nil && json.Unmarshal([]byte(text), &object) == nil {
		for at := 0; at < len(members) && items == nil; at++ {
			items = unlisted(object[members[at]])
		}
	}
	if len(items) == 1 {
		if inner := unlisted(items[0]); inner != nil {
			items = inner
		}
	}
	found := make([][]byte, len(items))
	for i, item := range items {
		found[i] = item
	}
	return found
}

// unlisted gives the items of a list in JSON; nil where it is none.
func unlisted(text []byte) []json.RawMessage {
	var items []json.RawMessage
	if json.Unmarshal(text, &items) != nil {
		return nil
	}
	return items
}

// instructs says whether a message is one of those that stand before the history.
func instructs(message []byte) bool {
	var said struct{ Role, Type string }
	if json.Unmarshal(message, &said) != nil {
		return false
	}
	role := cmp.Or(said.Role, said.Type)
	return role == "system" || role == "developer"
}

// numbered gives the parts that stand under names with a number: `llm.input_messages.0.message.role` and the like are
// one object for each number, with what follows it as names.
func numbered(attrs pcommon.Map, start string) [][]byte {
	objects := map[int]map[string]any{}
	for key, value := range attrs.All() {
		rest, ok := strings.CutPrefix(key, start)
		if !ok {
			continue
		}
		digits, name, _ := strings.Cut(rest, ".")
		at, err := strconv.Atoi(digits)
		if err != nil || at < 0 || at >= maxParts {
			continue
		}
		if objects[at] == nil {
			objects[at] = map[string]any{}
		}
		objects[at][strings.TrimPrefix(strings.TrimPrefix(name, "message."), "tool.")] = value.AsRaw()
	}
	return inOrder(objects)
}

// inOrder gives the objects by their numbers; none where a number is left out: an SDK whose span has as many attributes as
// it may takes away the first ones, and what is left is no request.
func inOrder(objects map[int]map[string]any) [][]byte {
	var found [][]byte
	for at := range len(objects) {
		if objects[at] == nil {
			return nil
		}
		if text, err := json.Marshal(objects[at]); err == nil {
			found = append(found, text)
		}
	}
	return found
}
