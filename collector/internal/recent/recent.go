// Package recent owns maps that forget what was used least recently.
package recent

// Map holds values by key in the order of their last use. It is not locked. The zero value is not usable: see New.
type Map[K comparable, V any] struct {
	places map[K]*entry[K, V]
	// ends stands between the value that was used last and the one that was used least recently, in a ring of all.
	ends entry[K, V]
}

type entry[K comparable, V any] struct {
	before, after *entry[K, V]
	key           K
	value         V
}

// New makes an empty map.
func New[K comparable, V any]() *Map[K, V] {
	made := &Map[K, V]{places: map[K]*entry[K, V]{}}
	made.ends.before, made.ends.after = &made.ends, &made.ends
	return made
}

// Len is how many values there are.
func (m *Map[K, V]) Len() int {
	return len(m.places)
}

// Get gives a value without using it.
func (m *Map[K, V]) Get(key K) (V, bool) {
	found, ok := m.places[key]
	if !ok {
		var none V
		return none, false
	}
	return found.value, true
}

// Put sets a value and makes it the one used last. It says whether the key had one before.
func (m *Map[K, V]) Put(key K, value V) bool {
	if m.renew(key, value) {
		return true
	}
	m.add(&entry[K, V]{key: key, value: value})
	return false
}

// renew does as Put with a key that has a value, and says whether it has one.
func (m *Map[K, V]) renew(key K, value V) bool {
	found, known := m.places[key]
	if known {
		found.value = value
		found.leave()
		m.last(found)
	}
	return known
}

// Bound puts a value and forgets the least recently used ones above a number, which is above 0.
func (m *Map[K, V]) Bound(key K, value V, most int) {
	if m.renew(key, value) {
		return
	}
	if m.Len() < most {
		m.add(&entry[K, V]{key: key, value: value})
		return
	}
	// The room of the one that is forgotten is that of the new one.
	room := m.ends.after
	m.drop(room)
	room.key, room.value = key, value
	m.add(room)
	for m.Len() > most {
		m.drop(m.ends.after)
	}
}

// Delete forgets a key.
func (m *Map[K, V]) Delete(key K) {
	if found, ok := m.places[key]; ok {
		m.drop(found)
	}
}

// Oldest is what was used least recently.
func (m *Map[K, V]) Oldest() (K, V, bool) {
	return m.ends.after.key, m.ends.after.value, m.Len() > 0
}

// All are the values, the least recently used first. The map must not change meanwhile.
func (m *Map[K, V]) All(yield func(K, V) bool) {
	for found := m.ends.after; found != &m.ends; found = found.after {
		if !yield(found.key, found.value) {
			return
		}
	}
}

func (m *Map[K, V]) add(made *entry[K, V]) {
	m.places[made.key] = made
	m.last(made)
}

func (m *Map[K, V]) drop(gone *entry[K, V]) {
	delete(m.places, gone.key)
	gone.leave()
}

// last puts an entry that is in no ring behind all others.
func (m *Map[K, V]) last(e *entry[K, V]) {
	e.before, e.after = m.ends.before, &m.ends
	e.before.after, m.ends.before = e, e
}

func (e *entry[K, V]) leave() { e.before.after, e.after.before = e.after, e.before }
