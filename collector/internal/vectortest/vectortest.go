// Package vectortest runs the vectors of spec/vectors in the tests of other packages: an input, what must come of it, and
// why.
package vectortest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
)

// Runner makes of a vector's input what is compared with its want. What it gives must be a value that encoding/json
// writes. Parts of it that the want does not speak of are left out of the comparison.
type Runner func(t *testing.T, input canonical.Object) any

// Elsewhere are vectors by name, members of a want by their path (`cache.idle_seconds`), or such members of one vector
// (`name: path`), that are none of the collector's, each with the reason.
type Elsewhere map[string]string

// Run runs every vector of a file or folder of spec/vectors.
func Run(t *testing.T, kind string, elsewhere Elsewhere, run Runner) {
	t.Helper()
	RunOf(t, kind, nil, elsewhere, run)
}

// RunOf runs the vectors of these names, all where none is named.
func RunOf(t *testing.T, kind string, names []string, elsewhere Elsewhere, run Runner) {
	t.Helper()
	used := map[string]bool{}
	for _, file := range files(t, kind) {
		for _, one := range read(t, file) {
			name := canonical.Text(one.Get("name"))
			if len(names) > 0 && !slices.Contains(names, name) {
				continue
			}
			if reason, not := elsewhere[name]; not {
				used[name] = true
				t.Logf("%s: not the collector's: %s", name, reason)
				continue
			}
			t.Run(name, func(t *testing.T) { check(t, one, elsewhere, used, run) })
		}
	}
	for name := range elsewhere {
		if !used[name] {
			t.Errorf("no vector speaks of %q", name)
		}
	}
}

func check(t *testing.T, one canonical.Object, elsewhere Elsewhere, used map[string]bool, run Runner) {
	if canonical.Text(one.Get("why")) == "" {
		t.Fatal("a vector without its reason")
	}
	skip := skipper{canonical.Text(one.Get("name")), elsewhere, used}
	want := skip.ours(plain(t, canonical.Wire(one.Get("want"))), "")
	raw, err := json.Marshal(run(t, canonical.Mapping(one.Get("input"))))
	if err != nil {
		t.Fatal(err)
	}
	if found := pruned(plain(t, raw), want); !reflect.DeepEqual(found, want) {
		t.Errorf("found %s\n want %s", written(t, found), written(t, want))
	}
}

type skipper struct {
	vector    string
	elsewhere Elsewhere
	used      map[string]bool
}

// ours is a want without the members that are none of the collector's.
func (s skipper) ours(want any, path string) any {
	switch want := want.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, part := range want {
			inner := strings.TrimPrefix(path+"."+name, ".")
			if !s.skips(inner) {
				kept[name] = s.ours(part, inner)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(want))
		for at, part := range want {
			kept[at] = s.ours(part, path)
		}
		return kept
	default:
		return want
	}
}

func (s skipper) skips(path string) bool {
	for _, key := range []string{path, s.vector + ": " + path} {
		if _, not := s.elsewhere[key]; not {
			s.used[key] = true
			return true
		}
	}
	return false
}

// pruned are the parts of a value that a vector speaks of.
func pruned(value, want any) any {
	switch want := want.(type) {
	case map[string]any:
		given, ok := value.(map[string]any)
		if !ok {
			return value
		}
		kept := map[string]any{}
		for name, part := range want {
			kept[name] = pruned(given[name], part)
		}
		return kept
	case []any:
		given, ok := value.([]any)
		if !ok || len(given) != len(want) {
			return value
		}
		kept := make([]any, len(given))
		for at, part := range want {
			kept[at] = pruned(given[at], part)
		}
		return kept
	default:
		return value
	}
}

func plain(t *testing.T, raw []byte) any {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func written(t *testing.T, value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func files(t *testing.T, kind string) []string {
	folder := filepath.Join(root(t), "spec", "vectors")
	if single := filepath.Join(folder, kind+".json"); exists(single) {
		return []string{single}
	}
	found, err := filepath.Glob(filepath.Join(folder, kind, "*.json"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no vectors of %s: %v", kind, err)
	}
	return found
}

// root is the repository, which lies above the package whose tests run.
func root(t *testing.T) string {
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for !exists(filepath.Join(folder, "spec", "vectors")) {
		above := filepath.Dir(folder)
		if above == folder {
			t.Fatal("spec/vectors is in no folder above")
		}
		folder = above
	}
	return folder
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func read(t *testing.T, file string) []canonical.Object {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	document, err := canonical.Parse(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	cases := []canonical.Object{}
	for _, one := range canonical.Items(canonical.Mapping(document).Get("cases")) {
		cases = append(cases, canonical.Mapping(one))
	}
	return cases
}
