// Package keys stores the keys of very many groups or rollouts without a pointer for each, since the garbage
// collector follows every string of a map again and again.
package keys

import "hash/maphash"

// Keys numbers keys from 0 in the order in which they were added. The zero value is empty. Concurrent reads are
// safe.
type Keys struct {
	text    []byte // the concatenated keys
	ends    []int  // end of each key in text
	numbers map[uint64]int32
	seed    maphash.Seed
}

// Len returns the number of keys.
func (k *Keys) Len() int { return len(k.ends) }

// At returns the key with that number.
func (k *Keys) At(number int) string { return string(k.at(number)) }

func (k *Keys) at(number int) []byte {
	from := 0
	if number > 0 {
		from = k.ends[number-1]
	}
	return k.text[from:k.ends[number]]
}

// Of returns the number of a key; known is false if the key was not added, or k is nil.
func (k *Keys) Of(key string) (number int, known bool) {
	if k == nil || len(k.ends) == 0 {
		return 0, false
	}
	_, number, known = k.find(key)
	return number, known
}

// find returns the number of a key, or the free hash for it: its own, or the next free one if another key has
// that.
func (k *Keys) find(key string) (hash uint64, number int, known bool) {
	for hash = maphash.String(k.seed, key); ; hash++ {
		n, taken := k.numbers[hash]
		if !taken || string(k.at(int(n))) == key {
			return hash, int(n), taken
		}
	}
}

// Add returns the number of a key; added reports whether the key was new.
func (k *Keys) Add(key string) (number int, added bool) {
	if k.numbers == nil {
		k.numbers, k.seed = map[uint64]int32{}, maphash.MakeSeed()
	}
	hash, number, known := k.find(key)
	if !known {
		number = len(k.ends)
		k.text = append(k.text, key...)
		k.ends, k.numbers[hash] = append(k.ends, len(k.text)), int32(number)
	}
	return number, !known
}

// Table holds a value for each of very many keys, identified by their 64-bit hash alone: of two keys with the
// same hash the second counts as the first. The zero value is empty. Concurrent reads are safe.
type Table[V any] struct {
	values map[uint64]V
	seed   maphash.Seed
}

// Len returns the number of keys.
func (t *Table[V]) Len() int { return len(t.values) }

// Of returns the value of a key; known is false if the key was not added.
func (t *Table[V]) Of(key string) (value V, known bool) {
	if len(t.values) == 0 {
		return value, false
	}
	value, known = t.values[maphash.String(t.seed, key)]
	return value, known
}

// Add sets the value of a key, unless it has one.
func (t *Table[V]) Add(key string, value V) (added bool) {
	if _, known := t.Of(key); known {
		return false
	}
	t.Set(key, value)
	return true
}

// Set sets or replaces the value of a key.
func (t *Table[V]) Set(key string, value V) {
	if t.values == nil {
		t.values, t.seed = map[uint64]V{}, maphash.MakeSeed()
	}
	t.values[maphash.String(t.seed, key)] = value
}
