// Package canonical owns the one canonical form of a JSON value and its digest (spec/README.md, "Canonical form and
// digest"); what is digested is decided elsewhere.
//
// A JSON value is nil, bool, string, int64, *big.Int (an integer beyond 64 bits), float64, []any or Object. Object keeps
// the order in which its members were written, because a provider's prefix may depend on it.
package canonical

import "iter"

// Member is a name and its value in an Object.
type Member struct {
	Name  string
	Value any
}

// Object is a JSON object in the order in which it was written. A name stands once.
type Object []Member

// Get gives the value of a member, nil where there is none.
func (o Object) Get(name string) any {
	value, _ := o.Find(name)
	return value
}

// Find gives the value of a member and whether it is there.
func (o Object) Find(name string) (any, bool) {
	for _, member := range o {
		if member.Name == name {
			return member.Value, true
		}
	}
	return nil, false
}

// Without is the object without members of these names; the object itself if it has none of them.
func (o Object) Without(names ...string) Object {
	kept := make(Object, 0, len(o))
	for _, member := range o {
		if !contains(names, member.Name) {
			kept = append(kept, member)
		}
	}
	if len(kept) == len(o) {
		return o
	}
	return kept
}

// With is the object with a member set: in its place if it is there, else at the end. The object itself is not changed.
func (o Object) With(name string, value any) Object {
	set := make(Object, len(o), len(o)+1)
	copy(set, o)
	return set.put(name, value)
}

// All are the members in order.
func (o Object) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, member := range o {
			if !yield(member.Name, member.Value) {
				return
			}
		}
	}
}

func (o Object) put(name string, value any) Object {
	for at := range o {
		if o[at].Name == name {
			o[at].Value = value
			return o
		}
	}
	return append(o, Member{name, value})
}

func contains(names []string, name string) bool {
	for _, known := range names {
		if known == name {
			return true
		}
	}
	return false
}

// Mapping is an object as it is, anything else as an empty one.
func Mapping(value any) Object {
	object, _ := value.(Object)
	return object
}

// Items is a list as it is, anything else as an empty one.
func Items(value any) []any {
	items, _ := value.([]any)
	return items
}

// Text is a string as it is, anything else as an empty one.
func Text(value any) string {
	text, _ := value.(string)
	return text
}
