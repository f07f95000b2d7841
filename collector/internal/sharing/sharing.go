// Package sharing keeps one value for all who come with the same key, for as long as one of them holds it. The service
// makes a component once for each pipeline and signal it stands in; what these instances know together is such a value,
// and the pointer to their configuration is its key.
package sharing

import "sync"

// Values has the values that are held by somebody. The zero value is ready to use.
type Values[K comparable, V any] struct {
	mu   sync.Mutex
	held map[K]*shared[V]
}

type shared[V any] struct {
	value   V
	holders int
}

// Lease is one holder's claim on a value.
type Lease[K comparable, V any] struct {
	Value V
	key   K
	of    *Values[K, V]
	once  sync.Once
}

// Take gives a claim on the value of the key, which `create` makes where nobody holds it; its error is handed on.
func (v *Values[K, V]) Take(key K, create func() (V, error)) (*Lease[K, V], error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	found, ok := v.held[key]
	if !ok {
		made, err := create()
		if err != nil {
			return nil, err
		}
		if v.held == nil {
			v.held = map[K]*shared[V]{}
		}
		found = &shared[V]{value: made}
		v.held[key] = found
	}
	found.holders++
	return &Lease[K, V]{Value: found.value, key: key, of: v}, nil
}

// Release gives the claim back and tells whether it was the last one on the value. Doing it again does nothing and
// tells false.
func (l *Lease[K, V]) Release() bool {
	last := false
	l.once.Do(func() { last = l.of.release(l.key) })
	return last
}

func (v *Values[K, V]) release(key K) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	found := v.held[key]
	found.holders--
	if found.holders > 0 {
		return false
	}
	delete(v.held, key)
	return true
}
