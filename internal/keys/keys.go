// Package keys numbers the keys of very many groups or rollouts. It keeps them in one piece,
// without a pointer for each: the collector follows every string of a map, over and over.
package keys

import "hash/maphash"

// Keys are numbered from 0 in the order they were added. The zero value is empty; several
// goroutines may read it.
type Keys struct {
	text  []byte // one key after the other
	ends  []int  // of each, in text
	slots []slot // a power of two, by hash
	seed  maphash.Seed
}

// slot holds the number of a key, counted from 1; 0 = free.
type slot struct{ hash, number uint32 }

// Len is how many keys there are.
func (k *Keys) Len() int { return len(k.ends) }

// At is the key of a number.
func (k *Keys) At(number int) string { return string(k.at(number)) }

func (k *Keys) at(number int) []byte {
	from := 0
	if number > 0 {
		from = k.ends[number-1]
	}
	return k.text[from:k.ends[number]]
}

// Of is the number of a key; known is false where it was not added, as in a nil Keys.
func (k *Keys) Of(key string) (number int, known bool) {
	if k == nil || len(k.slots) == 0 {
		return 0, false
	}
	s := &k.slots[k.find(key, uint32(maphash.String(k.seed, key)))]
	return int(s.number) - 1, s.number > 0
}

// Add is the number of a key; added says that it had none yet.
func (k *Keys) Add(key string) (number int, added bool) {
	if 2*len(k.ends) >= len(k.slots) {
		k.grow()
	}
	hash := uint32(maphash.String(k.seed, key))
	s := &k.slots[k.find(key, hash)]
	if s.number > 0 {
		return int(s.number) - 1, false
	}
	k.text = append(k.text, key...)
	k.ends = append(k.ends, len(k.text))
	*s = slot{hash, uint32(len(k.ends))}
	return len(k.ends) - 1, true
}

// find is the slot of a key, or the free one where it would go.
func (k *Keys) find(key string, hash uint32) int {
	mask := len(k.slots) - 1
	for i := int(hash) & mask; ; i = (i + 1) & mask {
		if s := k.slots[i]; s.number == 0 || s.hash == hash && string(k.at(int(s.number)-1)) == key {
			return i
		}
	}
}

func (k *Keys) grow() {
	if len(k.slots) == 0 {
		k.seed = maphash.MakeSeed()
	}
	old := k.slots
	k.slots = make([]slot, max(16, 2*len(old)))
	mask := len(k.slots) - 1
	for _, s := range old {
		if s.number == 0 {
			continue
		}
		i := int(s.hash) & mask
		for ; k.slots[i].number > 0; i = (i + 1) & mask {
		}
		k.slots[i] = s
	}
}
