package contextledgerprocessor

import (
	"encoding/json"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/facts"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/ledger"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/normalise"
)

// lore gives the shipped facts of providers under those of the configuration.
func (c *Config) lore() (*facts.Lore, error) {
	text, err := json.Marshal(c.Facts)
	if err != nil {
		return nil, fmt.Errorf("facts: %w", err)
	}
	overrides, err := canonical.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("facts: %w", err)
	}
	found, err := facts.Load(canonical.Mapping(overrides), "the collector's configuration")
	if err != nil {
		return nil, fmt.Errorf("facts: %w", err)
	}
	return found, nil
}

// reader makes a reader of the shipped dialects under those of the configuration.
func (c *Config) reader(known *facts.Lore) (*normalise.Normaliser, error) {
	text, err := yaml.Marshal(c.Dialects)
	if err != nil {
		return nil, fmt.Errorf("dialects: %w", err)
	}
	table, err := normalise.ReadTable(text)
	if err != nil {
		return nil, fmt.Errorf("dialects: %w", err)
	}
	hosts := make(map[string]normalise.Host, len(c.Hosts))
	for host, says := range c.Hosts {
		hosts[host] = normalise.Host{Surface: says.Surface, Provider: says.Provider}
	}
	made, err := normalise.New(normalise.Options{
		Table: table, Hosts: hosts, Lore: known, Infer: c.InferExclusive, DigestKey: string(c.DigestKey),
		Content: c.Content.Read && c.Mode == annotate,
	})
	if err != nil {
		return nil, fmt.Errorf("dialects: %w", err)
	}
	return made, nil
}

// sessions makes a state that knows of no session yet.
func (c *Config) sessions(known *facts.Lore, now time.Time) (*ledger.State, error) {
	captured := 0
	if c.Content.Read {
		captured = c.State.CapturedMiB << 20
	}
	return ledger.New(ledger.Options{
		Sessions: c.State.MaxSessions, Bytes: int64(c.State.MaxMiB) << 20, CapturedBytes: captured, Idle: c.State.Idle,
		Alone: c.State.Alone, Moving: c.State.Replicas == divideSessions, Split: c.State.Replicas == divideCalls,
		Key: string(c.DigestKey), Lore: known,
	}, now)
}
