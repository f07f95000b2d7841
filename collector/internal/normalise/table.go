package normalise

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

//go:embed dialects.yaml
var shipped []byte

// Table is what dialects.yaml holds; its head says what each part means.
type Table struct {
	Providers map[string]string `yaml:"providers"`
	Dialects  []Dialect         `yaml:"dialects"`
}

// Dialect is one way to tell of a model call.
type Dialect struct {
	Name     string              `yaml:"name"`
	Extends  string              `yaml:"extends"`
	When     []Condition         `yaml:"when"`
	Roles    []Role              `yaml:"roles"`
	Fields   map[string][]Source `yaml:"fields"`
	Replaces []string            `yaml:"replaces"`
	Usage    []Rule              `yaml:"usage"`
	Content  []string            `yaml:"content"`
	Captures []Capture           `yaml:"captures"`
}

// Condition holds where all that it names does.
type Condition struct {
	Signal   string              `yaml:"signal"`
	Scope    []string            `yaml:"scope"`
	Name     []string            `yaml:"name"`
	From     string              `yaml:"from"`
	Below    string              `yaml:"below"`
	Has      []string            `yaml:"has"`
	Lacks    []string            `yaml:"lacks"`
	Attr     map[string][]string `yaml:"attr"`
	Provider []string            `yaml:"provider"`
	Model    []string            `yaml:"model"`
}

// Role says what a record is where its condition holds.
type Role struct {
	Is   string    `yaml:"is"`
	When Condition `yaml:"when"`
}

// Source is a place where a field's value may stand.
type Source struct {
	From  string            `yaml:"from"`
	Value string            `yaml:"value"`
	Key   string            `yaml:"key"`
	Path  string            `yaml:"path"`
	Per   float64           `yaml:"per"`
	Words map[string]string `yaml:"words"`
	As    string            `yaml:"as"`
	Zero  []string          `yaml:"zero_of"`
	Alias bool              `yaml:"alias"`
}

// Rule says how input tokens are read where its condition holds.
type Rule struct {
	Rule          string    `yaml:"rule"`
	When          Condition `yaml:"when"`
	Input         string    `yaml:"input"`
	Cached        string    `yaml:"cached"`
	IncludesCache string    `yaml:"includes_cache"`
	Apart         bool      `yaml:"apart"`
}

// The words that a table's parts can have.
var (
	roleWords     = []string{"call", "aggregate", "compaction", "none"}
	includesWords = []string{includesYes, includesNo, includesUnlisted, includesHidden}
	signalWords   = []string{"", Traces, Logs}
	asWords       = []string{"", asList, asHost, asTools}
)

// ReadTable reads a table in YAML. An error says which dialect and which part of it is none.
func ReadTable(text []byte) (Table, error) {
	var found Table
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&found); err != nil && !errors.Is(err, io.EOF) {
		return Table{}, fmt.Errorf("table of dialects: %w", err)
	}
	return found, nil
}

// Over lays a table over another: dialects of a name that is there replace it, others are tried first.
func (t Table) Over(base Table) Table {
	laid := Table{Providers: map[string]string{}}
	for _, table := range []Table{base, t} {
		for word, provider := range table.Providers {
			laid.Providers[word] = provider
		}
	}
	named := func(name string) func(Dialect) bool { return func(d Dialect) bool { return d.Name == name } }
	for _, dialect := range t.Dialects {
		if !slices.ContainsFunc(base.Dialects, named(dialect.Name)) {
			laid.Dialects = append(laid.Dialects, dialect)
		}
	}
	for _, dialect := range base.Dialects {
		if at := slices.IndexFunc(t.Dialects, named(dialect.Name)); at >= 0 {
			dialect = t.Dialects[at]
		}
		laid.Dialects = append(laid.Dialects, dialect)
	}
	return laid
}

// Validate says what in a table cannot be.
func (t Table) Validate() error {
	var found []error
	seen := map[string]bool{}
	for _, dialect := range t.Dialects {
		for _, err := range dialect.wrong() {
			found = append(found, fmt.Errorf("dialect %q: %w", dialect.Name, err))
		}
		if dialect.Name == "" || seen[dialect.Name] {
			found = append(found, fmt.Errorf("dialect %q: a dialect has a name of its own", dialect.Name))
		}
		seen[dialect.Name] = true
		if !t.founded(dialect) {
			found = append(found, fmt.Errorf("dialect %q: extends %q, which is none or extends it in turn", dialect.Name, dialect.Extends))
		}
	}
	return errors.Join(found...)
}

func (t Table) named(name string) (Dialect, bool) {
	at := slices.IndexFunc(t.Dialects, func(d Dialect) bool { return d.Name == name })
	if at < 0 {
		return Dialect{}, false
	}
	return t.Dialects[at], true
}

// founded says whether what a dialect extends is there, and ends in one that extends none.
func (t Table) founded(dialect Dialect) bool {
	for range t.Dialects {
		if dialect.Extends == "" {
			return true
		}
		var ok bool
		if dialect, ok = t.named(dialect.Extends); !ok {
			return false
		}
	}
	return dialect.Extends == ""
}

// whole gives a dialect with all that it extends: roles, rules and content come after its own, fields before its own but
// for those that it replaces, and what shows it only if it says nothing itself.
func (t Table) whole(own Dialect) Dialect {
	if own.Extends == "" {
		return own
	}
	base, _ := t.named(own.Extends)
	base = t.whole(base)
	if own.When == nil {
		own.When = base.When
	}
	own.Roles, own.Usage = slices.Concat(own.Roles, base.Roles), slices.Concat(own.Usage, base.Usage)
	own.Content, own.Captures = slices.Concat(own.Content, base.Content), slices.Concat(own.Captures, base.Captures)
	fields := map[string][]Source{}
	maps.Copy(fields, own.Fields)
	for name, sources := range base.Fields {
		if !slices.Contains(own.Replaces, name) {
			fields[name] = slices.Concat(sources, own.Fields[name])
		}
	}
	own.Fields = fields
	return own
}

func (d Dialect) wrong() []error {
	var found []error
	for _, condition := range d.conditions() {
		found = append(found, oneOf("signal", condition.Signal, signalWords), version("from", condition.From), version("below", condition.Below))
	}
	for _, role := range d.Roles {
		found = append(found, oneOf("role", role.Is, roleWords))
	}
	for _, rule := range d.Usage {
		found = append(found, oneOf("includes_cache of "+rule.Rule, rule.IncludesCache, includesWords), filled("rule", rule.Rule))
	}
	for name, sources := range d.Fields {
		if _, ok := fieldOf(name); !ok {
			found = append(found, fmt.Errorf("field %q is none of the registry", name))
		}
		for _, source := range sources {
			found = append(found, source.wrong(name)...)
		}
	}
	return slices.DeleteFunc(found, func(err error) bool { return err == nil })
}

func (d Dialect) conditions() []Condition {
	found := slices.Clone(d.When)
	for _, role := range d.Roles {
		found = append(found, role.When)
	}
	for _, rule := range d.Usage {
		found = append(found, rule.When)
	}
	return found
}

func (s Source) wrong(field string) []error {
	found := []error{oneOf("as of "+field, s.As, asWords)}
	if (s.From == "") == (s.Value == "") {
		found = append(found, fmt.Errorf("field %q: a source has either an attribute (from) or a value", field))
	}
	return found
}

func oneOf(what, word string, known []string) error {
	if slices.Contains(known, word) {
		return nil
	}
	return fmt.Errorf("%s is %q, which is none of %q", what, word, known)
}

func filled(what, text string) error {
	if text == "" {
		return fmt.Errorf("%s has no name", what)
	}
	return nil
}

func version(what, text string) error {
	if text == "" || numbers(text) != nil {
		return nil
	}
	return fmt.Errorf("%s is %q, which is no version", what, text)
}
