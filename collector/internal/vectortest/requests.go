package vectortest

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
)

// The vectors of segments and lineage speak in bodies of providers' APIs, which no collector sees: it reads captured
// parts. These readers turn such a body into what a reader of captured parts gives.

// Dialect is how an API writes a request: where its messages stand, which roles lead them, and what it calls settings.
type Dialect struct {
	messages   string
	leading    []string
	settings   []string
	unrendered []string
}

// Dialects are the APIs by their names in vectors.
var Dialects = map[string]Dialect{
	"chat": {
		messages: "messages", leading: []string{"system", "developer"},
		settings: []string{
			"tool_choice", "parallel_tool_calls", "response_format", "service_tier", "verbosity", "thinking",
			"web_search_options", "modalities", "functions", "function_call",
		},
	},
	"responses": {
		messages: "input", leading: []string{"system", "developer"}, unrendered: []string{"id", "status"},
		settings: []string{
			"tool_choice", "parallel_tool_calls", "text", "service_tier", "truncation", "include", "context_management",
		},
	},
	"messages": {
		messages: "messages", leading: []string{"system"},
		settings: []string{
			"tool_choice", "service_tier", "thinking", "context_management", "container", "mcp_servers", "speed",
		},
	},
}

// Request reads a body.
func Request(api string, body canonical.Object) segments.Request {
	dialect := Dialects[api]
	messages := canonical.Items(body.Get(dialect.messages))
	if text, ok := body.Get(dialect.messages).(string); ok {
		messages = []any{canonical.Object{{Name: "role", Value: "user"}, {Name: "content", Value: text}}}
	}
	lead := led(messages, dialect.leading)
	blocks := blocks(api, body)
	tools := canonical.Items(body.Get("tools"))
	request := segments.Request{
		Model: canonical.Text(body.Get("model")), Tools: tools, System: slices.Concat(blocks, messages[:lead]),
		Messages: messages[lead:], Offset: lead, Unrendered: dialect.unrendered, Settings: settings(body, dialect.settings),
		Effort: effort(api, body), CacheKey: canonical.Text(body.Get("prompt_cache_key")), Conversation: conversation(body),
		PreviousResponse: canonical.Text(body.Get("previous_response_id")), Retention: retention(body),
		Breakpoints: segments.Breakpoints(tools, messages[:lead], messages[lead:]),
	}
	if api == "messages" {
		anthropic(&request, body, blocks, messages)
	}
	return request
}

// led is how many messages at the front come from one of the roles and carry text, not tools.
func led(messages []any, roles []string) int {
	for at, message := range messages {
		_, tools := canonical.Mapping(message).Find("tools")
		if tools || !slices.Contains(roles, canonical.Text(canonical.Mapping(message).Get("role"))) {
			return at
		}
	}
	return len(messages)
}

func blocks(api string, body canonical.Object) []any {
	member := map[string]string{"responses": "instructions", "messages": "system"}[api]
	if text := canonical.Text(body.Get(member)); text != "" {
		return []any{text}
	}
	return canonical.Items(body.Get(member))
}

var budgets = []string{"budget_tokens", "max_tokens"}

func settings(body canonical.Object, names []string) canonical.Object {
	found := canonical.Object{}
	for _, name := range names {
		value := body.Get(name)
		if thinking, ok := value.(canonical.Object); ok && name == "thinking" {
			value = thinking.Without(append([]string{"effort"}, budgets...)...)
		}
		if value != nil {
			found = append(found, canonical.Member{Name: name, Value: value})
		}
	}
	return found
}

func effort(api string, body canonical.Object) string {
	switch api {
	case "responses":
		return effortOf(body.Get("reasoning"))
	case "messages":
		output := canonical.Mapping(body.Get("output_config"))
		return first(canonical.Text(output.Get("effort")), effortOf(body.Get("thinking")))
	default:
		said := canonical.Text(body.Get("reasoning_effort"))
		return first(said, effortOf(body.Get("reasoning")), effortOf(body.Get("thinking")))
	}
}

func effortOf(thinking any) string {
	body := canonical.Mapping(thinking)
	if effort := canonical.Text(body.Get("effort")); effort != "" {
		return effort
	}
	for _, name := range budgets {
		if count, ok := body.Get(name).(int64); ok {
			return fmt.Sprintf("budget:%d", count)
		}
	}
	return ""
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

func conversation(body canonical.Object) string {
	metadata := canonical.Mapping(body.Get("metadata"))
	return first(
		canonical.Text(body.Get("conversation")), canonical.Text(canonical.Mapping(body.Get("conversation")).Get("id")),
		canonical.Text(metadata.Get("session_id")), canonical.Text(metadata.Get("conversation_id")),
		canonical.Text(metadata.Get("thread_id")),
	)
}

func retention(body canonical.Object) string {
	options := canonical.Mapping(body.Get("prompt_cache_options"))
	return first(canonical.Text(options.Get("ttl")), canonical.Text(body.Get("prompt_cache_retention")))
}

var (
	sessionForm = regexp.MustCompile(`session_([0-9a-f-]{36})`)
	versionForm = regexp.MustCompile(`cc_version=(\d[\w.]{0,31})`)
)

// anthropic reads what only the Messages API has: markers that ask for a lifetime, and what Claude Code writes into the
// user id and the first system block.
func anthropic(request *segments.Request, body canonical.Object, blocks, messages []any) {
	request.Breakpoints = segments.Breakpoints(request.Tools, blocks, messages)
	if body.Get("cache_control") != nil {
		request.Breakpoints["automatic"] = 1
	}
	if request.Conversation == "" {
		request.Conversation = found(sessionForm, canonical.Text(canonical.Mapping(body.Get("metadata")).Get("user_id")))
	}
	request.Retention = asked(body, slices.Concat(request.Tools, blocks), messages)
	if len(blocks) > 0 {
		text := first(canonical.Text(blocks[0]), canonical.Text(canonical.Mapping(blocks[0]).Get("text")))
		request.ClientVersion = found(versionForm, text)
	}
}

func found(form *regexp.Regexp, text string) string {
	if match := form.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return ""
}

// asked is the lifetime asked for by the last marker that names one.
func asked(body canonical.Object, blocks, messages []any) string {
	parts := append([]any{body}, blocks...)
	for _, message := range messages[max(0, len(messages)-2):] {
		parts = append(append(parts, message), canonical.Items(canonical.Mapping(message).Get("content"))...)
	}
	lifetime := ""
	for _, part := range parts {
		mark := canonical.Mapping(canonical.Mapping(part).Get("cache_control"))
		switch ttl := canonical.Text(mark.Get("ttl")); {
		case ttl != "":
			lifetime = ttl
		case len(mark) > 0 && lifetime == "":
			lifetime = "5m"
		}
	}
	return lifetime
}
