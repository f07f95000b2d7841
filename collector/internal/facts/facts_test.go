package facts_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/facts"
)

func overrides(t *testing.T, text string) canonical.Object {
	value, err := canonical.Parse(text)
	require.NoError(t, err)
	return canonical.Mapping(value)
}

// A fact that nobody stated of a surface is unknown.
func TestUnknownSurface(t *testing.T) {
	lore, err := facts.Load(nil, "")
	require.NoError(t, err)
	assert.Equal(t, facts.Facts{Surface: "elsewhere", Provider: "unknown", WriteLag: 5, Caches: true}, lore.Of("elsewhere"))
}

// An override replaces a fact, of a table the entries that it names, and is said to be where the minimum is from.
func TestOverrides(t *testing.T) {
	lore, err := facts.Load(overrides(t, `{"anthropic": {"minimum": 2048, "retentions": {"5m": 60}}}`), "the configuration")
	require.NoError(t, err)
	found := lore.Of("anthropic")
	assert.Equal(t, int64(2048), *found.Minimum)
	assert.Equal(t, "the configuration", found.MinimumNote)
	assert.Equal(t, map[string]float64{"5m": 60, "1h": 3600}, found.Retentions)
}

// What is no fact, or cannot be its value, is named.
func TestBadOverrides(t *testing.T) {
	for text, said := range map[string]string{
		`{"openai": 1}`:                          "facts of openai must be a table, got 1",
		`{"openai": {"block": "128"}}`:           "facts of openai: block cannot be 128",
		`{"openai": {"block": 0}}`:               "facts of openai: block cannot be 0",
		`{"openai": {"retention": -1}}`:          "facts of openai: retention cannot be -1",
		`{"openai": {"retentions": {"5m": ""}}}`: "facts of openai: retentions cannot be [{5m }]",
	} {
		_, err := facts.Load(overrides(t, text), "")
		assert.EqualError(t, err, said)
	}
	_, err := facts.Load(overrides(t, `{"openai": {"blok": 1}}`), "")
	assert.ErrorContains(t, err, `"blok" is not a fact; known are [block caches`)
}

// How long a prefix is kept goes by what was asked for, else by the model's version, else by what is usual.
func TestLifetime(t *testing.T) {
	lore, err := facts.Load(nil, "")
	require.NoError(t, err)
	openai := lore.Of("openai")
	assert.Equal(t, 43200.0, *openai.Lifetime("12h", "gpt-5.6"))
	assert.Equal(t, 1800.0, *openai.Lifetime("", "gpt-5.10"))
	assert.Equal(t, 300.0, *openai.Lifetime("forever", "gpt-5.5"))
	assert.Nil(t, lore.Of("elsewhere").Lifetime("", "gpt-5.6"))
}

// A model reaches an older one of its family, going by numbers, and no other.
func TestReaches(t *testing.T) {
	for _, row := range []struct {
		model, first string
		reaches      bool
	}{
		{"gpt-5.6", "gpt-5.6", true}, {"gpt-5.10-mini", "gpt-5.6", true}, {"gpt-5", "gpt-5.6", false}, {"gpt-6", "gpt-5.6", true},
		{"gpt-5.", "gpt-5", true}, {"o-5.6", "gpt-5.6", false}, {"5.6", "gpt-5.6", false}, {"gpt", "gpt-5.6", false},
		{"GPT-5.6", "gpt-5.6", false}, {"", "gpt-5.6", false}, {"anything", "", true}, {"gpt-", "gpt-5.6", false},
		{"gpt-99999999999999999999", "gpt-5.6", true},
	} {
		assert.Equal(t, row.reaches, facts.Reaches(row.model, row.first), "%s reaches %s", row.model, row.first)
	}
}
