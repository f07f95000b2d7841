package normalise_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.yaml.in/yaml/v3"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/normalise"
)

func read(t *testing.T, options normalise.Options, raw map[string]any) call.Call {
	t.Helper()
	attrs := pcommon.NewMap()
	require.NoError(t, attrs.FromRaw(raw))
	found, _ := normaliser(t, options).Read(normalise.Subject{Signal: normalise.Traces, Names: []string{"chat"}, Attrs: attrs})
	return found
}

// An operator's word for a host goes before the shipped one, with a port before without; the name of an
// instrumentation's client stands where nothing is known of the host.
func TestOperatorSaysWhatAHostServes(t *testing.T) {
	hosts := map[string]normalise.Host{
		"gateway.local":      {Surface: "kimi_code"},
		"gateway.local:8443": {Surface: "in_house", Provider: "ours"},
		"api.openai.com":     {Surface: "azure_openai", Provider: "azure.ai.openai"},
	}
	for _, row := range []struct {
		host string
		port int64
		want call.Model
	}{
		{"gateway.local", 443, call.Model{Endpoint: "gateway.local", Surface: "kimi_code", Provider: "moonshot_ai"}},
		{"Gateway.Local", 8443, call.Model{Endpoint: "gateway.local:8443", Surface: "in_house", Provider: "ours"}},
		{"api.openai.com", 0, call.Model{Endpoint: "api.openai.com", Surface: "azure_openai", Provider: "azure.ai.openai"}},
		{"api.kimi.com", 0, call.Model{Endpoint: "api.kimi.com", Surface: "kimi_code", Provider: "moonshot_ai"}},
		{"bedrock-runtime.eu-west-1.amazonaws.com", 0, call.Model{
			Endpoint: "bedrock-runtime.eu-west-1.amazonaws.com", Surface: "aws_bedrock", Provider: "aws.bedrock",
		}},
		{"llm.intern", 0, call.Model{Endpoint: "llm.intern", Surface: "unknown", Provider: "openai"}},
	} {
		found := read(t, normalise.Options{Hosts: hosts}, map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "server.address": row.host, "server.port": row.port,
		})
		assert.Equal(t, row.want, found.Model, row.host)
	}
}

// Each word for a provider becomes the standard's; one that nobody knows stays.
func TestProvidersHaveOneName(t *testing.T) {
	for said, want := range map[string]string{
		"AWS": "aws.bedrock", "aws.bedrock": "aws.bedrock", "amazon-bedrock": "aws.bedrock", "az.ai.openai": "azure.ai.openai",
		"azure.ai.inference": "azure.ai.inference", "openai.responses": "openai", "Anthropic": "anthropic",
		"google.vertex.chat": "gcp.vertex_ai", "gcp.gemini": "gcp.gemini", "moonshot": "moonshot_ai", "acme.v1": "acme.v1",
	} {
		found := read(t, normalise.Options{}, map[string]any{"gen_ai.operation.name": "chat", "gen_ai.system": said})
		assert.Equal(t, want, found.Model.Provider, said)
	}
}

// A program of any language that knows its task and session says so under our names, which go before a conversation's.
func TestProgramNamesItsTaskAndSession(t *testing.T) {
	found := read(t, normalise.Options{}, map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "c-1", "gen_ai.usage.input_tokens": 10,
		"context_ledger.session_id": "s-1", "context_ledger.task_id": "fix-login", "context_ledger.repo_snapshot": "git:77d0",
	})

	assert.Equal(t, call.Task{ID: "fix-login", Session: "s-1", SessionSource: "explicit", Kind: "agent"}, found.Task)
	assert.Equal(t, call.Context{RepoSnapshot: "git:77d0"}, found.Context)
	assert.Equal(t, ptr(int64(10)), found.Usage.Input)
}

// A span says when the call was, and that it failed where no class of an error is told.
func TestSpanSaysWhenAndWhetherItFailed(t *testing.T) {
	span := ptrace.NewSpan()
	span.SetName("chat gpt-4o")
	span.SetTraceID(pcommon.TraceID{1})
	span.SetSpanID(pcommon.SpanID{2})
	span.SetParentSpanID(pcommon.SpanID{3})
	span.SetStartTimestamp(1_000_000_000)
	span.SetEndTimestamp(3_500_000_000)
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Attributes().PutStr("gen_ai.operation.name", "chat")

	found, kind := normaliser(t, normalise.Options{}).Span(pcommon.NewInstrumentationScope(), span)

	assert.Equal(t, normalise.Call, kind)
	assert.Equal(t, call.Place{
		Trace: pcommon.TraceID{1}, Span: pcommon.SpanID{2}, Parent: pcommon.SpanID{3},
		Start: time.Unix(1, 0).UTC(), End: time.Unix(3, 500_000_000).UTC(),
	}, found.Place)
	assert.Equal(t, "_OTHER", found.Request.ErrorType)
}

// A log record of a client is written when the call is over, an entry of ours says when it began.
func TestLogSaysWhenTheCallWas(t *testing.T) {
	n := normaliser(t, normalise.Options{})
	theirs := plog.NewLogRecord()
	theirs.SetObservedTimestamp(10_000_000_000)
	theirs.Body().SetStr("claude_code.api_request")
	theirs.Attributes().PutInt("duration_ms", 4200)
	theirs.Attributes().PutInt("input_tokens", 5)
	ours := plog.NewLogRecord()
	ours.SetTimestamp(20_000_000_000)
	ours.SetEventName("context_ledger.entry")
	ours.Attributes().PutDouble("context_ledger.started_at", 20)
	ours.Attributes().PutDouble("context_ledger.duration", 1.5)

	for record, want := range map[plog.LogRecord]call.Place{
		theirs: {Start: time.Unix(5, 800_000_000).UTC(), End: time.Unix(10, 0).UTC()},
		ours:   {Start: time.Unix(20, 0).UTC(), End: time.Unix(21, 500_000_000).UTC()},
	} {
		found, kind := n.Log(pcommon.NewInstrumentationScope(), record)
		assert.Equal(t, normalise.Call, kind)
		assert.Equal(t, want, found.Place)
	}
}

// A client's log record stands in the span of its turn, which is not that of the call; the standard's event does, and so
// does an entry.
func TestLogStandsInTheSpanOfItsCallOrOfItsTurn(t *testing.T) {
	n := normaliser(t, normalise.Options{})
	for name, own := range map[string]bool{
		"claude_code.api_request": false, "gen_ai.client.inference.operation.details": true, "context_ledger.entry": true,
	} {
		record := plog.NewLogRecord()
		record.SetEventName(name)
		record.SetTraceID(pcommon.TraceID{1})
		record.SetSpanID(pcommon.SpanID{2})
		record.Attributes().PutInt("input_tokens", 5)
		record.Attributes().PutStr("gen_ai.request.model", "m")
		if name == "context_ledger.entry" {
			record.Attributes().PutStr("context_ledger.entry_id", "e-1")
		}

		found, kind := n.Log(pcommon.NewInstrumentationScope(), record)

		require.Equal(t, normalise.Call, kind)
		assert.Equal(t, own, found.Place.Span == pcommon.SpanID{2}, name)
		assert.Equal(t, !own, found.Place.Parent == pcommon.SpanID{2}, name)
	}
}

// An operator's dialect of a known name replaces it, one of another name is tried first.
func TestOperatorsTableGoesFirst(t *testing.T) {
	table, err := normalise.ReadTable([]byte(`
dialects:
  - name: in_house
    extends: gen_ai
    when: [{has: [acme.llm]}]
    roles: [{is: call, when: {}}]
    fields: {input_tokens: [{from: acme.in}], cached_tokens: [{from: acme.cached}]}
    usage: [{rule: in_house, includes_cache: "no"}]
`))
	require.NoError(t, err)

	found := read(t, normalise.Options{Table: table}, map[string]any{
		"acme.llm": true, "acme.in": 10, "acme.cached": 90, "gen_ai.request.model": "m",
	})

	assert.Equal(t, call.Usage{
		Report: "reported", Source: "telemetry", Input: ptr(int64(100)), CacheRead: ptr(int64(90)),
	}, found.Usage)
	assert.Equal(t, call.Origin{Dialect: "in_house", Rule: "in_house"}, found.Origin)
	assert.Equal(t, "m", found.Model.Requested)
}

func ptr[T any](value T) *T { return &value }

// A dialect that extends another one needs to say only what is different, and is found by the same signs.
func TestOperatorsRowSaysOnlyWhatIsDifferent(t *testing.T) {
	table, err := normalise.ReadTable([]byte(`
dialects:
  - name: our_openlit
    extends: openlit
    usage: [{rule: our_openlit.anthropic, when: {provider: [anthropic]}, includes_cache: "no"}]
`))
	require.NoError(t, err)
	attrs := map[string]any{
		"telemetry.sdk.name": "openlit", "gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic",
		"gen_ai.usage.input_tokens": 100, "gen_ai.usage.cache_read.input_tokens": 900,
	}

	found := read(t, normalise.Options{Table: table}, attrs)
	attrs["gen_ai.provider.name"] = "openai"
	other := read(t, normalise.Options{Table: table}, attrs)

	assert.Equal(t, call.Origin{Dialect: "our_openlit", Rule: "our_openlit.anthropic"}, found.Origin)
	assert.Equal(t, ptr(int64(1000)), found.Usage.Input)
	assert.Equal(t, "ambiguous:openlit", other.Origin.Rule)
}

// A table that cannot be is refused with the place of what is wrong in it.
func TestTableSaysWhatIsWrongInIt(t *testing.T) {
	for text, want := range map[string]string{
		"dialects: [{name: a, when: [{signal: metrics}]}]":                 `dialect "a": signal is "metrics"`,
		"dialects: [{name: a, when: [{below: new}]}]":                      `dialect "a": below is "new", which is no version`,
		"dialects: [{name: a, roles: [{is: span}]}]":                       `dialect "a": role is "span"`,
		"dialects: [{name: a, fields: {colour: [{from: x}]}}]":             `dialect "a": field "colour" is none of the registry`,
		"dialects: [{name: a, fields: {model_id: [{from: x, value: y}]}}]": `dialect "a": field "model_id": a source has either`,
		"dialects: [{name: a, usage: [{rule: r, includes_cache: maybe}]}]": `dialect "a": includes_cache of r is "maybe"`,
		"dialects: [{name: a, extends: nobody}]":                           `dialect "a": extends "nobody"`,
		"dialects: [{name: a, extends: b}, {name: b, extends: a}]":         `dialect "a": extends "b", which is none or extends it`,
		"dialects: [{name: a}, {name: a}]":                                 `dialect "a": a dialect has a name of its own`,
	} {
		table, err := normalise.ReadTable([]byte(text))
		require.NoError(t, err)
		_, err = normalise.New(normalise.Options{Table: table})
		assert.ErrorContains(t, err, want)
	}
	_, err := normalise.ReadTable([]byte("dialects: [{nmae: a}]"))
	assert.ErrorContains(t, err, "field nmae not found")
}

// Many pipelines read at once, and each gets what is its own.
func TestManyReadAtOnce(t *testing.T) {
	n := normaliser(t, normalise.Options{Content: true})
	every := everyCase(t)
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for _, row := range every {
				attrs := pcommon.NewMap()
				assert.NoError(t, attrs.FromRaw(row.Attrs))
				found, _ := n.Read(row.subject(attrs))
				found.Write(attrs)
				assert.Equal(t, comparable(row.Want)["dialect"], added(attrs)["dialect"], row.Name)
			}
		})
	}
	done.Wait()
}

// The rows that docs/dialects.md shows are ones.
func TestExampleInTheDocumentsIsATable(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "dialects.md"))
	require.NoError(t, err)
	_, after, found := strings.Cut(string(page), "```yaml\n")
	require.True(t, found)
	example, _, _ := strings.Cut(after, "```")
	var config struct {
		Processors map[string]struct{ Dialects map[string]any }
	}
	require.NoError(t, yaml.Unmarshal([]byte(example), &config))
	text, err := yaml.Marshal(config.Processors["context_ledger"].Dialects)
	require.NoError(t, err)

	table, err := normalise.ReadTable(text)

	require.NoError(t, err)
	require.Len(t, table.Dialects, 2)
	normaliser(t, normalise.Options{Table: table})
}
