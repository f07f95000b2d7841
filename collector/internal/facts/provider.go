package facts

import (
	"maps"
	"slices"
)

// For gives the facts of a surface; where it is not known, those of the provider's only surface. A provider with several,
// or with none, leaves nothing known. What is given must not be changed.
func (l *Lore) For(surface, provider string) *Facts {
	if found, ok := l.surfaces[surface]; ok {
		return found
	}
	if served := l.served[provider]; len(served) == 1 {
		return l.surfaces[served[0]]
	}
	none := unknown(surface)
	return &none
}

// serve notes which surfaces each provider has.
func (l *Lore) serve() {
	l.served = map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(l.surfaces)) {
		provider := l.surfaces[name].Provider
		l.served[provider] = append(l.served[provider], name)
	}
}
