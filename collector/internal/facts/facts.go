// Package facts owns what is known of providers' caches: the shipped table with an operator's overrides laid over it
// (spec/README.md, "Facts"). facts.json is generated from the Python package's facts.toml.
package facts

import (
	_ "embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
)

//go:embed facts.json
var shipped string

// Since is a lifetime that holds from a model of a family on.
type Since struct {
	Model   string
	Seconds float64
}

// Facts are what is known of one surface, tokens and seconds. A fact that nobody stated is nil; MinimumNote says where
// the minimum is from.
type Facts struct {
	Surface         string
	Provider        string
	Hosts           []string
	Block           *int64
	Minimum         *int64
	MinimumPrevious bool
	MinimumNote     string
	Retention       *float64
	Retentions      map[string]float64
	RetentionFrom   []Since
	WriteLag        float64
	Markers         bool
	Caches          bool
	Windows         map[string]int64
}

// Forms are fixed openings by which known clients' summarising calls and summaries are recognised.
type Forms struct {
	SystemOpenings, Instructions, SummaryOpenings []string
}

// Lore is every surface's facts and the fixed forms.
type Lore struct {
	surfaces map[string]*Facts
	served   map[string][]string
	Forms    Forms
}

// DefaultWriteLag is how many seconds a written prefix takes until it can be read, where no fact says it.
const DefaultWriteLag = 5

// Load gives the shipped facts under overrides: an object of surfaces, each with facts by their names in facts.toml. Of
// a fact that is a table an override replaces the entries that it names. `origin` is what is said of where they are from.
// An error names the surface, the fact and the value that cannot be one.
func Load(overrides canonical.Object, origin string) (*Lore, error) {
	document, err := canonical.Parse(shipped)
	if err != nil {
		return nil, fmt.Errorf("facts.json: %w", err)
	}
	whole := canonical.Mapping(document)
	lore := &Lore{surfaces: map[string]*Facts{}}
	for name, table := range canonical.Mapping(whole.Get("surface")).All() {
		found := unknown(name)
		if err := found.ship(canonical.Mapping(table)); err != nil {
			return nil, err
		}
		lore.surfaces[name] = &found
	}
	compaction := canonical.Mapping(whole.Get("compaction"))
	lore.Forms = Forms{
		SystemOpenings: texts(compaction.Get("system_openings")), Instructions: texts(compaction.Get("instructions")),
		SummaryOpenings: texts(compaction.Get("summary_openings")),
	}
	if err := lore.override(overrides, origin); err != nil {
		return nil, err
	}
	lore.serve()
	return lore, nil
}

// Of gives the facts of a surface; an unknown one has none.
func (l *Lore) Of(surface string) Facts {
	if found, ok := l.surfaces[surface]; ok {
		return *found
	}
	return unknown(surface)
}

// At gives the surface that is served at a host, `unknown` where no fact says so. Of a host that serves one below a path
// the host alone decides: who tells of a call tells no path.
func (l *Lore) At(host string) string {
	for _, surface := range slices.Sorted(maps.Keys(l.surfaces)) {
		for _, place := range l.surfaces[surface].Hosts {
			if serves(place, strings.ToLower(host)) {
				return surface
			}
		}
	}
	return "unknown"
}

func serves(place, host string) bool {
	wanted, _, _ := strings.Cut(place, "/")
	named, err := path.Match(wanted, host)
	return host == wanted || strings.HasSuffix(host, "."+wanted) || (named && err == nil)
}

func unknown(surface string) Facts {
	return Facts{Surface: surface, Provider: "unknown", WriteLag: DefaultWriteLag, Caches: true}
}

func (l *Lore) override(overrides canonical.Object, origin string) error {
	for name, table := range overrides.All() {
		rows, ok := table.(canonical.Object)
		if !ok {
			return fmt.Errorf("facts of %s must be a table, got %v", name, table)
		}
		found := l.Of(name)
		for fact, value := range rows.All() {
			if err := found.set(fact, value, origin); err != nil {
				return err
			}
		}
		l.surfaces[name] = &found
	}
	return nil
}

func (f *Facts) ship(table canonical.Object) error {
	for name, value := range table.Without("facts").All() {
		if err := f.set(name, value, ""); err != nil {
			return err
		}
	}
	for name, fact := range canonical.Mapping(table.Get("facts")).All() {
		row := canonical.Mapping(fact)
		origin := fmt.Sprintf("%s (%s)", canonical.Text(row.Get("origin")), canonical.Text(row.Get("date")))
		if err := f.set(name, row.Get("value"), origin); err != nil {
			return err
		}
	}
	return nil
}

// setters say, by its name, what becomes of a fact; they say false of a value that cannot be one.
var setters = map[string]func(*Facts, any) bool{
	"provider": func(f *Facts, value any) bool { return text(&f.Provider, value) },
	"hosts": func(f *Facts, value any) bool {
		f.Hosts = texts(value)
		return len(f.Hosts) == len(canonical.Items(value))
	},
	"block":            func(f *Facts, value any) bool { return count(&f.Block, value) && *f.Block > 0 },
	"minimum":          func(f *Facts, value any) bool { return count(&f.Minimum, value) },
	"minimum_previous": func(f *Facts, value any) bool { return flag(&f.MinimumPrevious, value) },
	"retention":        func(f *Facts, value any) bool { return optional(&f.Retention, value) },
	"retentions":       func(f *Facts, value any) bool { return table(&f.Retentions, value, seconds) },
	"retention_from":   setSince,
	"write_lag":        func(f *Facts, value any) bool { return number(&f.WriteLag, value) },
	"markers":          func(f *Facts, value any) bool { return flag(&f.Markers, value) },
	"caches":           func(f *Facts, value any) bool { return flag(&f.Caches, value) },
	"windows":          func(f *Facts, value any) bool { return table(&f.Windows, value, whole) },
	// What only a client acts on.
	"price": ignored, "unit": ignored, "diagnostics": ignored, "reasoning_replayed": ignored,
}

func ignored(*Facts, any) bool { return true }

func (f *Facts) set(name string, value any, origin string) error {
	setter, known := setters[name]
	if !known {
		return fmt.Errorf("facts of %s: %q is not a fact; known are %v", f.Surface, name, slices.Sorted(maps.Keys(setters)))
	}
	if !setter(f, value) {
		return fmt.Errorf("facts of %s: %s cannot be %v", f.Surface, name, value)
	}
	if name == "minimum" {
		f.MinimumNote = origin
	}
	return nil
}

func setSince(f *Facts, value any) bool {
	rows, ok := value.(canonical.Object)
	for model, kept := range rows.All() {
		lasts, fits := seconds(kept)
		if !fits {
			return false
		}
		f.RetentionFrom = append([]Since{{model, lasts}}, f.RetentionFrom...)
	}
	return ok
}

func text(into *string, value any) bool {
	*into = canonical.Text(value)
	return *into != ""
}

func flag(into *bool, value any) bool {
	found, ok := value.(bool)
	*into = found
	return ok
}

func count(into **int64, value any) bool {
	found, ok := whole(value)
	*into = &found
	return ok
}

func number(into *float64, value any) bool {
	found, ok := seconds(value)
	*into = found
	return ok
}

func optional(into **float64, value any) bool {
	found, ok := seconds(value)
	*into = &found
	return ok
}

func table[T any](into *map[string]T, value any, fits func(any) (T, bool)) bool {
	rows, ok := value.(canonical.Object)
	laid := maps.Clone(*into)
	if laid == nil {
		laid = map[string]T{}
	}
	for name, item := range rows.All() {
		if laid[name], ok = fits(item); !ok {
			return false
		}
	}
	*into = laid
	return ok
}

func whole(value any) (int64, bool) {
	found, ok := value.(int64)
	return found, ok && found >= 0
}

func seconds(value any) (float64, bool) {
	switch value := value.(type) {
	case int64:
		return float64(value), value >= 0
	case float64:
		return value, value >= 0
	default:
		return 0, false
	}
}

func texts(value any) []string {
	found := []string{}
	for _, item := range canonical.Items(value) {
		if said := canonical.Text(item); said != "" {
			found = append(found, said)
		}
	}
	return found
}

// Lifetime is how many seconds a cached prefix of a model lives, given what the request asked for (empty: nothing); nil
// is unknown.
func (f Facts) Lifetime(asked, model string) *float64 {
	if kept, ok := f.Retentions[asked]; ok {
		return &kept
	}
	for at := range f.RetentionFrom {
		if since := &f.RetentionFrom[at]; Reaches(model, since.Model) {
			return &since.Seconds
		}
	}
	return f.Retention
}

// Reaches says whether a model is of the same family as `first` and no older, going by the version in its name (`gpt-5.6`);
// every model reaches an empty `first`.
func Reaches(model, first string) bool {
	if first == "" {
		return true
	}
	family, major, minor := version(model)
	of, leastMajor, leastMinor := version(first)
	if family == "" || family != of {
		return false
	}
	if major != leastMajor {
		return major > leastMajor
	}
	return minor >= leastMinor
}

// version reads a name that begins with lower-case letters, a dash and a number, perhaps with another one after a dot; no
// family is none.
func version(model string) (family string, major, minor int) {
	dash := 0
	for dash < len(model) && model[dash] >= 'a' && model[dash] <= 'z' {
		dash++
	}
	if dash == 0 || dash == len(model) || model[dash] != '-' {
		return "", 0, 0
	}
	first, after := digits(model[dash+1:])
	if first == "" {
		return "", 0, 0
	}
	if strings.HasPrefix(after, ".") {
		second, _ := digits(after[1:])
		minor = numeral(second)
	}
	return model[:dash], numeral(first), minor
}

func digits(text string) (found, rest string) {
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	return text[:end], text[end:]
}

func numeral(digits string) int {
	found, _ := strconv.Atoi(digits)
	return found
}
