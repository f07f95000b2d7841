package normalise

// Dialects gives the names of all dialects, in the order in which they are tried.
func (n *Normaliser) Dialects() []string {
	found := make([]string, len(n.dialects))
	for i := range n.dialects {
		found[i] = n.dialects[i].name
	}
	return found
}
