package vectortest

import (
	"strings"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/attribution"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
)

// counts are where an API keeps its token counts, the first that is there wins. A disjoint input leaves out what was read
// and written. How every dialect of usage is read is the business of spec/vectors/surfaces, which are the process's own.
type counts struct {
	input, read, write, output       []string
	write5m, write1h, w30m, write12h string
	disjoint                         bool
}

var usages = map[string]counts{
	"chat": {
		input: []string{"prompt_tokens"},
		read:  []string{"cached_tokens", "prompt_tokens_details.cached_tokens", "prompt_cache_hit_tokens"},
		write: []string{"prompt_tokens_details.cache_write_tokens"}, output: []string{"completion_tokens"},
	},
	"responses": {
		input: []string{"input_tokens"}, read: []string{"input_tokens_details.cached_tokens"},
		write: []string{"input_tokens_details.cache_write_tokens"}, output: []string{"output_tokens"},
		w30m:     "input_tokens_details.cache_write_tokens_details.ttl_30m_tokens",
		write12h: "input_tokens_details.cache_write_tokens_details.ttl_12h_tokens",
	},
	"messages": {
		input: []string{"input_tokens"}, read: []string{"cache_read_input_tokens"},
		write: []string{"cache_creation_input_tokens"}, output: []string{"output_tokens"},
		write5m: "cache_creation.ephemeral_5m_input_tokens", write1h: "cache_creation.ephemeral_1h_input_tokens",
		disjoint: true,
	},
}

// Usage reads a usage object; a nil one tells nothing.
func Usage(api string, usage any) call.Usage {
	body, places := canonical.Mapping(usage), usages[api]
	found := call.Usage{
		Input: number(body, places.input...), CacheRead: number(body, places.read...), CacheWrite: number(body, places.write...),
		Output: number(body, places.output...), Write5m: number(body, places.write5m), Write1h: number(body, places.write1h),
		Write30m: number(body, places.w30m), Write12h: number(body, places.write12h),
	}
	if places.disjoint && found.Input != nil {
		whole := *found.Input
		for _, part := range []*int64{found.CacheRead, found.CacheWrite} {
			if part != nil {
				whole += *part
			}
		}
		found.Input = &whole
	}
	return found
}

func number(body canonical.Object, paths ...string) *int64 {
	for _, path := range paths {
		var value any = body
		for _, name := range strings.Split(path, ".") {
			value = canonical.Mapping(value).Get(name)
		}
		if found, ok := value.(int64); ok {
			return &found
		}
	}
	return nil
}

// Answer reads the answer to a request.
func Answer(api string, request, body canonical.Object, usage any) attribution.Answer {
	answer := attribution.Answer{
		Usage: Usage(api, usage), Response: canonical.Text(body.Get("id")), Served: canonical.Text(body.Get("model")),
		Route: canonical.Text(body.Get("provider")), Retention: retention(body), Verdict: verdict(api, request, body),
	}
	ends := map[string][]string{"chat": {"stop"}, "messages": {"end_turn"}, "responses": {"completed"}}
	for _, end := range ends[api] {
		answer.TurnEnded = answer.TurnEnded || ended(api, body) == end
	}
	return answer
}

func ended(api string, body canonical.Object) string {
	switch api {
	case "messages":
		return canonical.Text(body.Get("stop_reason"))
	case "responses":
		return canonical.Text(body.Get("status"))
	default:
		choices := canonical.Items(body.Get("choices"))
		if len(choices) == 0 {
			return ""
		}
		return canonical.Text(canonical.Mapping(choices[0]).Get("finish_reason"))
	}
}

// verdict is the provider's own word on a miss, or what its silence means.
func verdict(api string, request, body canonical.Object) string {
	if said := said(api, body); said != "" {
		return said
	}
	return silence(api, request, body)
}

func said(api string, body canonical.Object) string {
	if api == "messages" {
		diagnostics, told := body.Get("diagnostics").(canonical.Object)
		if !told {
			return ""
		}
		reason := diagnostics.Get("cache_miss_reason")
		return first(canonical.Text(reason), canonical.Text(canonical.Mapping(reason).Get("type")), "pending")
	}
	diagnostics := canonical.Mapping(body.Get("prompt_cache_diagnostics"))
	if len(diagnostics) == 0 {
		return ""
	}
	return first(canonical.Text(diagnostics.Get("reason")), canonical.Text(diagnostics.Get("type")), "pending")
}

func silence(api string, request, body canonical.Object) string {
	options := canonical.Mapping(request.Get("prompt_cache_options"))
	_, compared := options.Find("comparison_response_id")
	asked := map[string]bool{"messages": request.Get("diagnostics") != nil, "responses": compared}[api]
	against := canonical.Text(canonical.Mapping(request.Get("diagnostics")).Get("previous_message_id"))
	switch {
	case !asked:
		return "not_requested"
	case api != "messages" || ended(api, body) == "":
		return "not_answered"
	case against != "":
		return attribution.NoDivergence
	default:
		return "no_comparison"
	}
}

// Calls are the calls of a lineage vector. Each starts from `base` and from the messages of the call named by `after`, to
// which `append` is added; `set` replaces members of the body, `edit` single messages and `replace` runs of them, in that
// order. One with `times` and `every` stands for as many equal calls, so many seconds apart. `body`, `surface` and `api`
// are there in each.
func Calls(input canonical.Object) []canonical.Object {
	done := []canonical.Object{}
	for _, one := range canonical.Items(input.Get("calls")) {
		for _, given := range repeated(canonical.Mapping(one)) {
			for _, member := range []string{"surface", "api"} {
				if _, own := given.Find(member); !own {
					given = given.With(member, input.Get(member))
				}
			}
			if given.Get("api") == nil {
				given = given.With("api", "chat")
			}
			done = append(done, given.With("body", body(canonical.Mapping(input.Get("base")), given, done)))
		}
	}
	return done
}

func repeated(one canonical.Object) []canonical.Object {
	times, many := one.Get("times").(int64)
	if !many {
		return []canonical.Object{one}
	}
	each := []canonical.Object{}
	for at := range times {
		each = append(each, one.With("at", Number(one.Get("at"))+float64(at)*Number(one.Get("every"))))
	}
	return each
}

// Number is a number as a float, 0 for anything else.
func Number(value any) float64 {
	switch value := value.(type) {
	case int64:
		return float64(value)
	case float64:
		return value
	default:
		return 0
	}
}

func body(base, given canonical.Object, done []canonical.Object) canonical.Object {
	whole := base
	if after, ok := given.Get("after").(int64); ok {
		whole = canonical.Mapping(done[after].Get("body"))
	}
	for name, value := range canonical.Mapping(given.Get("set")).All() {
		whole = whole.With(name, value)
	}
	member := Dialects[canonical.Text(given.Get("api"))].messages
	messages := append([]any{}, canonical.Items(whole.Get(member))...)
	for index, message := range canonical.Mapping(given.Get("edit")).All() {
		at := 0
		for _, digit := range index {
			at = 10*at + int(digit-'0')
		}
		messages[at] = message
	}
	for _, run := range canonical.Items(given.Get("replace")) {
		parts := canonical.Items(run)
		start, end := int(Number(parts[0])), min(int(Number(parts[1])), len(messages))
		kept := append([]any{}, messages[:start]...)
		messages = append(append(kept, canonical.Items(parts[2])...), messages[end:]...)
	}
	return whole.With(member, append(messages, canonical.Items(given.Get("append"))...))
}

// Sent is the request of one of Calls.
func Sent(given canonical.Object) segments.Request {
	return Request(canonical.Text(given.Get("api")), canonical.Mapping(given.Get("body")))
}

// Answered is the answer of one of Calls, the `number`th; nothing where the vector says nothing of one.
func Answered(given canonical.Object, number string) attribution.Answer {
	body, api := canonical.Mapping(given.Get("body")), canonical.Text(given.Get("api"))
	answered := canonical.Object{{Name: "id", Value: number}, {Name: "model", Value: body.Get("model")}}
	own, usage := canonical.Mapping(given.Get("answer")), given.Get("usage")
	for name, value := range own.All() {
		answered = answered.With(name, value)
		if name == "usage" {
			usage = value
		}
	}
	if _, fails := given.Find("fails"); fails || (usage == nil && len(own) == 0) {
		return attribution.Answer{Verdict: silence(api, body, nil)}
	}
	return Answer(api, body, answered, usage)
}
