// Package names owns sets of attribute names that are asked for names which they mostly do not have: a look at the first
// character, the last one and the length refuses most of them.
package names

import (
	"slices"
	"strings"
)

// Index numbers names in the order in which they are added. The zero value is empty.
type Index struct {
	// By the first and by the last character of names, their lengths, of which 64 are told apart.
	first, last [256]uint64
	numbers     map[string]int
}

// Add gives the number of a name, a new one if it has none yet.
func (x *Index) Add(name string) int {
	if number, known := x.numbers[name]; known {
		return number
	}
	if x.numbers == nil {
		x.numbers = map[string]int{}
	}
	number := len(x.numbers)
	x.numbers[name] = number
	if name != "" {
		x.first[name[0]] |= 1 << (len(name) % 64)
		x.last[name[len(name)-1]] |= 1 << (len(name) % 64)
	}
	return number
}

// Of gives the number of a name; false where it has none. The empty name has none.
func (x *Index) Of(name string) (int, bool) {
	if name == "" || x.first[name[0]]&x.last[name[len(name)-1]]>>(len(name)%64)&1 == 0 {
		return 0, false
	}
	number, known := x.numbers[name]
	return number, known
}

// Set is a set of names, some of them open at the end. The zero value is empty.
type Set struct {
	exact  Index
	starts [256][]string
	any    bool
}

// NewSet makes a set of names; a `*` at the end stands for any ending.
func NewSet(patterns ...string) *Set {
	made := &Set{}
	for _, pattern := range patterns {
		start, open := strings.CutSuffix(pattern, "*")
		switch {
		case !open:
			made.exact.Add(pattern)
		case start == "":
			made.any = true
		case !slices.Contains(made.starts[start[0]], start):
			made.starts[start[0]] = append(made.starts[start[0]], start)
		}
	}
	return made
}

// Has says whether a name is in the set. The empty name is in none but the set of all.
func (s *Set) Has(name string) bool {
	if name == "" || s.any {
		return s.any
	}
	if _, known := s.exact.Of(name); known {
		return true
	}
	for _, start := range s.starts[name[0]] {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	return false
}
