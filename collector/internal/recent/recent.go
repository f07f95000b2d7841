// Package recent owns maps that forget what was used least recently.
package recent

import "container/list"

// Map holds values by key in the order of their last use. It is not locked. The zero value is not usable: see New.
type Map[K comparable, V any] struct {
	places map[K]*list.Element
	order  *list.List
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// New makes an empty map.
func New[K comparable, V any]() *Map[K, V] {
	return &Map[K, V]{places: map[K]*list.Element{}, order: list.New()}
}

// Len is how many values there are.
func (m *Map[K, V]) Len() int {
	return len(m.places)
}

// Get gives a value without using it.
func (m *Map[K, V]) Get(key K) (V, bool) {
	place, ok := m.places[key]
	if !ok {
		var none V
		return none, false
	}
	return place.Value.(*entry[K, V]).value, true
}

// Put sets a value and makes it the one used last.
func (m *Map[K, V]) Put(key K, value V) {
	if place, ok := m.places[key]; ok {
		place.Value.(*entry[K, V]).value = value
		m.order.MoveToBack(place)
		return
	}
	m.places[key] = m.order.PushBack(&entry[K, V]{key, value})
}

// Bound puts a value and forgets the least recently used ones above a number.
func (m *Map[K, V]) Bound(key K, value V, most int) {
	m.Put(key, value)
	for m.Len() > most {
		oldest, _, _ := m.Oldest()
		m.Delete(oldest)
	}
}

// Delete forgets a key.
func (m *Map[K, V]) Delete(key K) {
	if place, ok := m.places[key]; ok {
		m.order.Remove(place)
		delete(m.places, key)
	}
}

// Oldest is what was used least recently.
func (m *Map[K, V]) Oldest() (K, V, bool) {
	if place := m.order.Front(); place != nil {
		found := place.Value.(*entry[K, V])
		return found.key, found.value, true
	}
	var key K
	var none V
	return key, none, false
}

// All are the values, the least recently used first. The map must not change meanwhile.
func (m *Map[K, V]) All(yield func(K, V) bool) {
	for place := m.order.Front(); place != nil; place = place.Next() {
		found := place.Value.(*entry[K, V])
		if !yield(found.key, found.value) {
			return
		}
	}
}
