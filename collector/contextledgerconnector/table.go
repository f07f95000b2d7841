package contextledgerconnector

// table leads from hashes to numbers above 0. It has no pointers, and all that belongs to a hash beside one another: a
// map of Go looks in four places, which take most of the time of a batch where they are in no cache of the processor any
// more. The zero value is empty.
type table struct {
	// slots has each hash in the first free place from its own on; at most three quarters of them are taken.
	slots []slot
	many  int
}

// slot is free where the number is 0.
type slot struct {
	hash   uint64
	number int32
}

// leastSlots is how many slots a table has at least; a power of 2, as all sizes are.
const leastSlots = 64

// get gives the number of a hash, 0 where it has none.
func (t *table) get(hash uint64) int32 {
	if t.many == 0 {
		return 0
	}
	return t.slots[t.place(hash)].number
}

// set gives a hash a number, in the place of that which it may have.
func (t *table) set(hash uint64, number int32) {
	if 4*t.many >= 3*len(t.slots) {
		t.grow()
	}
	at := &t.slots[t.place(hash)]
	if at.number == 0 {
		t.many++
	}
	*at = slot{hash, number}
}

// place finds the slot of a hash, or that where it would be.
func (t *table) place(hash uint64) uint64 {
	last := uint64(len(t.slots) - 1)
	at := hash & last
	for t.slots[at].number != 0 && t.slots[at].hash != hash {
		at = (at + 1) & last
	}
	return at
}

func (t *table) grow() {
	held := t.slots
	t.slots = make([]slot, max(leastSlots, 2*len(held)))
	for _, one := range held {
		if one.number != 0 {
			t.slots[t.place(one.hash)] = one
		}
	}
}

// clear forgets everything and keeps the room for as much.
func (t *table) clear() {
	clear(t.slots)
	t.many = 0
}
