package reward

import "hash/maphash"

// keyIndex numbers group keys in order of first appearance. It is a map from
// string to int with eight bytes per slot, so that a job of many groups whose
// rollouts arrive interleaved misses the cache once per look-up.
type keyIndex struct {
	seed  maphash.Seed
	slots []slot // a power of two, at most three quarters full
	keys  []string
}

type slot struct {
	tag    uint32 // upper half of the hash
	number uint32 // 1 + the key's number, 0 = free
}

func newKeyIndex() keyIndex {
	return keyIndex{seed: maphash.MakeSeed(), slots: make([]slot, 64)}
}

// find returns the number of key, or where to put it.
func (x *keyIndex) find(key string) (number int, at int, hash uint64, ok bool) {
	hash = maphash.String(x.seed, key)
	mask := uint64(len(x.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := x.slots[i]
		if s.number == 0 {
			return 0, int(i), hash, false
		}
		if s.tag == uint32(hash>>32) && x.keys[s.number-1] == key {
			return int(s.number - 1), int(i), hash, true
		}
	}
}

// get returns the number of key; false if it was never added.
func (x *keyIndex) get(key string) (int, bool) {
	if len(x.slots) == 0 {
		return 0, false
	}
	number, _, _, ok := x.find(key)
	return number, ok
}

// add returns the number of key, which is the number of keys before it when it
// is new.
func (x *keyIndex) add(key string) (number int, isNew bool) {
	number, at, hash, ok := x.find(key)
	if ok {
		return number, false
	}
	x.keys = append(x.keys, key)
	x.slots[at] = slot{uint32(hash >> 32), uint32(len(x.keys))}
	if 4*len(x.keys) > 3*len(x.slots) {
		x.grow()
	}
	return len(x.keys) - 1, true
}

func (x *keyIndex) grow() {
	x.slots = make([]slot, 2*len(x.slots))
	mask := uint64(len(x.slots) - 1)
	for n, key := range x.keys {
		hash := maphash.String(x.seed, key)
		i := hash & mask
		for x.slots[i].number != 0 {
			i = (i + 1) & mask
		}
		x.slots[i] = slot{uint32(hash >> 32), uint32(n + 1)}
	}
}
