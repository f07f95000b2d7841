package contextledgerprocessor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configopaque"
)

// Values of Config.Mode.
const (
	annotate  = "annotate"
	partition = "partition"
)

// Values of StateConfig.Replicas.
const (
	noReplicas     = "none"
	divideSessions = "sessions"
	divideCalls    = "calls"
)

// Config is what an operator can say of the processor.
type Config struct {
	// Mode is annotate, or partition: split batches by session and do nothing else.
	Mode string `mapstructure:"mode"`
	// Dialects are laid over the shipped table of dialects; they have the form of that table.
	Dialects map[string]any `mapstructure:"dialects"`
	// Facts are laid over the shipped facts of providers, by surface.
	Facts map[string]any `mapstructure:"facts"`
	// Hosts says what is served at a host, with or without a port.
	Hosts map[string]HostConfig `mapstructure:"hosts"`
	// InferExclusive takes a cached part above the input for a proof that the input leaves it out, where no rule says.
	InferExclusive bool `mapstructure:"infer_exclusive"`
	// DigestKey keys the digests that the processor makes; the same key as that of the agents.
	DigestKey configopaque.String `mapstructure:"digest_key"`
	// Content says what becomes of captured text.
	Content ContentConfig `mapstructure:"content"`
	// State bounds what is known of sessions.
	State StateConfig `mapstructure:"state"`
	// Storage is the storage extension that keeps the state over a restart.
	Storage *component.ID `mapstructure:"storage"`
	// SaveInterval is how often it is kept; what came since is lost when the process is killed.
	SaveInterval time.Duration `mapstructure:"save_interval"`
	// Partition is of the mode partition.
	Partition PartitionConfig `mapstructure:"partition"`

	_ struct{}
}

// HostConfig says which surface a host serves, and whose models if that is not the surface's provider.
type HostConfig struct {
	Surface  string `mapstructure:"surface"`
	Provider string `mapstructure:"provider"`

	_ struct{}
}

// ContentConfig says what becomes of prompts, answers and arguments of tools that an instrumentation captured.
type ContentConfig struct {
	// Read lets captured requests be digested, so that their sessions are followed message by message.
	Read bool `mapstructure:"read"`
	// Remove takes captured text away once it was read.
	Remove bool `mapstructure:"remove"`
	// Attributes are further names to remove, a `*` at the end stands for any ending.
	Attributes []string `mapstructure:"attributes"`

	_ struct{}
}

// StateConfig bounds what is known of sessions; beyond a bound the least recently used ones are forgotten.
type StateConfig struct {
	// MaxSessions and MaxMiB bound what is kept of calls: digests, counts and names.
	MaxSessions int `mapstructure:"max_sessions"`
	MaxMiB      int `mapstructure:"max_mib"`
	// CapturedMiB bounds the captured requests that are kept to hold the next ones against.
	CapturedMiB int `mapstructure:"captured_mib"`
	// Idle is after how long without a call a session is forgotten.
	Idle time.Duration `mapstructure:"idle"`
	// Alone says that this collector sees every call of every session: one that it does not know is then a new one.
	Alone bool `mapstructure:"alone"`
	// Replicas says what is divided among replicas of this collector, if there are any: none, sessions (a session goes to
	// one of them, until that is not there), or calls (a session's calls may go to any of them).
	Replicas string `mapstructure:"replicas"`

	_ struct{}
}

// PartitionConfig says under which name the session goes into the metadata of the request.
type PartitionConfig struct {
	MetadataKey string `mapstructure:"metadata_key"`

	_ struct{}
}

func createDefaultConfig() component.Config {
	return &Config{
		Mode:    annotate,
		Content: ContentConfig{Read: true},
		State: StateConfig{MaxSessions: 100_000, MaxMiB: 200, CapturedMiB: 64, Idle: 24 * time.Hour,
			Replicas: noReplicas},
		SaveInterval: time.Minute,
		Partition:    PartitionConfig{MetadataKey: "context-ledger-session"},
	}
}

// Validate names every field that cannot be meant, with its value.
func (c *Config) Validate() error {
	var errs []error
	if c.Mode != annotate && c.Mode != partition {
		errs = append(errs, fmt.Errorf("mode: %q is neither annotate nor partition", c.Mode))
	}
	if c.Partition.MetadataKey == "" {
		errs = append(errs, errors.New("partition::metadata_key: a name is needed"))
	}
	for _, name := range c.Content.Attributes {
		if name == "" || name == "*" || name == ours+"*" {
			errs = append(errs, fmt.Errorf("content::attributes: %q would take everything away", name))
		}
	}
	for host, says := range c.Hosts {
		if host == "" || says.Surface == "" && says.Provider == "" {
			errs = append(errs, fmt.Errorf("hosts: %q has neither surface nor provider", host))
		}
	}
	return errors.Join(append(append(errs, c.bounds()...), c.replicas(), c.tables())...)
}

// replicas says what of the replicas cannot be.
func (c *Config) replicas() error {
	switch {
	case !slices.Contains([]string{noReplicas, divideSessions, divideCalls}, c.State.Replicas):
		return fmt.Errorf("state::replicas: %q is neither none nor sessions nor calls", c.State.Replicas)
	case c.State.Alone && c.State.Replicas != noReplicas:
		return fmt.Errorf("state::alone: one of several replicas that divide %s does not see every call", c.State.Replicas)
	default:
		return nil
	}
}

// tables says what in the tables cannot be.
func (c *Config) tables() error {
	known, err := c.lore()
	if err != nil {
		return err
	}
	_, err = c.reader(known)
	return err
}

func (c *Config) bounds() []error {
	fields := []struct {
		name         string
		value, least int64
		shown        any
	}{
		{"state::max_sessions", int64(c.State.MaxSessions), 1, c.State.MaxSessions},
		{"state::max_mib", int64(c.State.MaxMiB), 1, c.State.MaxMiB},
		{"state::captured_mib", int64(c.State.CapturedMiB), 0, c.State.CapturedMiB},
		{"state::idle", int64(c.State.Idle), 1, c.State.Idle},
		{"save_interval", int64(c.SaveInterval), 1, c.SaveInterval},
	}
	var errs []error
	for _, field := range fields {
		if field.value < field.least {
			errs = append(errs, fmt.Errorf("%s: %v is too small", field.name, field.shown))
		}
	}
	return errs
}
