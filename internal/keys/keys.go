// Package keys remembers the keys of very many groups or rollouts, without a pointer for
// each: the collector follows every string of a map, over and over.
package keys

import "hash/maphash"

// Keys are numbered from 0 in the order they were added. The zero value is empty; several
// goroutines may read it.
type Keys struct {
	text    []byte // one key after the other
	ends    []int  // of each, in text
	numbers map[uint64]int32
	seed    maphash.Seed
}

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
	if k == nil || len(k.ends) == 0 {
		return 0, false
	}
	_, number, known = k.find(key)
	return number, known
}

// find is the number of a key, or the hash that is free for it: its own, or where that is
// another key's the next one.
func (k *Keys) find(key string) (hash uint64, number int, known bool) {
	for hash = maphash.String(k.seed, key); ; hash++ {
		n, taken := k.numbers[hash]
		if !taken || string(k.at(int(n))) == key {
			return hash, int(n), taken
		}
	}
}

// Add is the number of a key; added says that it had none yet.
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

// Table holds a value for each of very many keys, which it knows by their 64-bit hash alone:
// of two keys of one hash the second counts as the first. The zero value is empty; several
// goroutines may read it.
type Table[V any] struct {
	values map[uint64]V
	seed   maphash.Seed
}

// Len is how many keys there are.
func (t *Table[V]) Len() int { return len(t.values) }

// Of is the value of a key; known is false where it was not added.
func (t *Table[V]) Of(key string) (value V, known bool) {
	if len(t.values) == 0 {
		return value, false
	}
	value, known = t.values[maphash.String(t.seed, key)]
	return value, known
}

// Add gives a key its value, unless it has one.
func (t *Table[V]) Add(key string, value V) (added bool) {
	if _, known := t.Of(key); known {
		return false
	}
	t.Set(key, value)
	return true
}

// Set gives a key another value.
func (t *Table[V]) Set(key string, value V) {
	if t.values == nil {
		t.values, t.seed = map[uint64]V{}, maphash.MakeSeed()
	}
	t.values[maphash.String(t.seed, key)] = value
}
