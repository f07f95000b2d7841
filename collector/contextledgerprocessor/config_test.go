package contextledgerprocessor

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

// Every option is read by its name, and what is not said keeps its default.
func TestConfigIsRead(t *testing.T) {
	assert.Equal(t, createDefaultConfig(), load(t, "context_ledger"))
	storage := component.MustNewIDWithName("file_storage", "ledger")
	assert.Equal(t, &Config{
		Mode:     "annotate",
		Dialects: map[string]any{"providers": map[string]any{"our-proxy": "moonshot_ai"}},
		Facts:    map[string]any{"our_proxy": map[string]any{"block": 64}},
		Hosts: map[string]HostConfig{
			"llm.example.com:8443": {Surface: "kimi_open_platform", Provider: "moonshot_ai"},
		},
		InferExclusive: true,
		DigestKey:      "secret",
		Content:        ContentConfig{Remove: true, Attributes: []string{"our.prompt", "our.messages.*"}},
		State: StateConfig{MaxSessions: 5000, MaxMiB: 64, CapturedMiB: 16, Idle: time.Hour, Alone: true,
			Replicas: "none"},
		Storage:      &storage,
		SaveInterval: 10 * time.Second,
		Partition:    PartitionConfig{MetadataKey: "context-ledger-session"},
	}, load(t, "context_ledger/all"))
	split := load(t, "context_ledger/partition").(*Config)
	assert.Equal(t, PartitionConfig{MetadataKey: "session"}, split.Partition)
	assert.Equal(t, "sessions", load(t, "context_ledger/replica").(*Config).State.Replicas)
}

// A configuration that cannot be meant is refused, by field and value.
func TestConfigIsRefused(t *testing.T) {
	cases := map[string]string{
		"context_ledger/wrong_mode": "mode: \"both\" is neither annotate nor partition\n" +
			"partition::metadata_key: a name is needed",
		"context_ledger/wrong_numbers": "state::max_sessions: 0 is too small\n" +
			"state::max_mib: -1 is too small\n" +
			"state::captured_mib: -1 is too small\n" +
			"state::idle: 0s is too small\n" +
			"save_interval: -1s is too small",
		"context_ledger/wrong_replicas": "state::replicas: \"many\" is neither none nor sessions nor calls",
		"context_ledger/not_alone":      "state::alone: one of several replicas that divide calls does not see every call",
		"context_ledger/wrong_names": "content::attributes: \"*\" would take everything away\n" +
			"content::attributes: \"\" would take everything away\n" +
			"hosts: \"llm.example.com\" has neither surface nor provider",
		"context_ledger/wrong_dialects": `dialects: dialect "mine": role is "something", which is none of ` +
			`["call" "aggregate" "compaction" "none"]`,
		"context_ledger/wrong_facts": "facts: facts of openai: block cannot be many",
	}
	for name, message := range cases {
		assert.EqualError(t, confmap.Validate(load(t, name)), message, name)
	}
	require.NoError(t, confmap.Validate(createDefaultConfig()))
	require.NoError(t, confmap.Validate(load(t, "context_ledger/partition")))
}

// An option that there is not is refused, not overlooked.
func TestUnknownOptionIsRefused(t *testing.T) {
	all, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	part, err := all.Sub("context_ledger/unknown")
	require.NoError(t, err)
	assert.ErrorContains(t, part.Unmarshal(createDefaultConfig()), "has invalid keys: remove_content")
}

func load(t *testing.T, name string) component.Config {
	t.Helper()
	all, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	part, err := all.Sub(name)
	require.NoError(t, err)
	config := createDefaultConfig()
	require.NoError(t, part.Unmarshal(&config))
	return config
}
