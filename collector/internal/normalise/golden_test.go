package normalise_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.yaml.in/yaml/v3"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/facts"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/normalise"
)

// golden is one record of a dialect and all that a normaliser adds to it.
type golden struct {
	Name    string         `yaml:"name"`
	Why     string         `yaml:"why"`
	Signal  string         `yaml:"signal"`
	Scope   string         `yaml:"scope"`
	Version string         `yaml:"version"`
	Record  string         `yaml:"record"`
	Attrs   map[string]any `yaml:"attrs"`
	Infer   bool           `yaml:"infer"`
	Kind    string         `yaml:"kind"`
	Want    map[string]any `yaml:"want"`
}

var kinds = map[normalise.Kind]string{
	normalise.None: "none", normalise.Call: "call", normalise.Aggregate: "aggregate",
	normalise.Compaction: "compaction", normalise.Outcome: "outcome",
}

// What each dialect's records say is what testdata tells: names, prompt, provider, and by which rule they were read. A
// second normaliser finds the same and changes nothing.
func TestDialects(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var cases []golden
		require.NoError(t, yaml.Unmarshal(text, &cases))
		for _, row := range cases {
			t.Run(filepath.Base(file)+"/"+row.Name, func(t *testing.T) { row.run(t) })
		}
	}
}

func (g golden) run(t *testing.T) {
	require.NotEmpty(t, g.Why)
	n := normaliser(t, normalise.Options{Infer: g.Infer})
	attrs := pcommon.NewMap()
	require.NoError(t, attrs.FromRaw(g.Attrs))
	before := attrs.AsRaw()

	found, kind := n.Read(g.subject(attrs))
	require.Equal(t, before, attrs.AsRaw(), "reading changes nothing")
	found.Write(attrs)

	assert.Equal(t, g.Kind, kinds[kind])
	assert.Equal(t, comparable(g.Want), added(attrs))
	if kind == normalise.None {
		return
	}
	found.WriteAll(attrs)
	assert.Equal(t, before, original(attrs, before), "what it said of itself stays")

	once := attrs.AsRaw()
	again, same := n.Read(g.subject(attrs))
	again.WriteAll(attrs)
	assert.Equal(t, kind, same)
	assert.Equal(t, once, attrs.AsRaw(), "a second time changes nothing")
}

func (g golden) subject(attrs pcommon.Map) normalise.Subject {
	return normalise.Subject{
		Signal: g.Signal, Scope: g.Scope, Version: g.Version, Names: []string{g.Record}, Attrs: attrs,
	}
}

func normaliser(t testing.TB, options normalise.Options) *normalise.Normaliser {
	t.Helper()
	lore, err := facts.Load(nil, "")
	require.NoError(t, err)
	options.Lore = lore
	made, err := normalise.New(options)
	require.NoError(t, err)
	return made
}

// added gives what stands under our own names, without the prefix.
func added(attrs pcommon.Map) map[string]any {
	found := map[string]any{}
	for key, value := range attrs.AsRaw() {
		if name, ours := strings.CutPrefix(key, "context_ledger."); ours {
			found[name] = value
		}
	}
	return found
}

func original(attrs pcommon.Map, before map[string]any) map[string]any {
	found := attrs.AsRaw()
	maps.DeleteFunc(found, func(key string, _ any) bool { _, ok := before[key]; return !ok })
	return found
}

// comparable gives values as attributes have them: YAML's whole numbers are of another type.
func comparable(raw map[string]any) map[string]any {
	attrs := pcommon.NewMap()
	if err := attrs.FromRaw(raw); err != nil {
		panic(err)
	}
	return attrs.AsRaw()
}
