package facts

import (
	"maps"
	"slices"
)

// For gives the facts of a surface; where it is not known, those of the provider's only surface. A provider with several,
// or with none, leaves nothing known.
func (l *Lore) For(surface, provider string) Facts {
	if found, ok := l.surfaces[surface]; ok {
		return found
	}
	served := []string{}
	for _, name := range slices.Sorted(maps.Keys(l.surfaces)) {
		if l.surfaces[name].Provider == provider {
			served = append(served, name)
		}
	}
	if len(served) != 1 {
		return unknown(surface)
	}
	return l.surfaces[served[0]]
}
