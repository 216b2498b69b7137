// Package keys remembers the keys of very many groups or rollouts.
package keys

import (
	"hash/maphash"
	"strings"
)

// Keys are numbered from 0 in the order they were added. The zero value is empty; several
// goroutines may read it.
type Keys struct {
	names   []string
	numbers map[string]int32
}

// Len is how many keys there are.
func (k *Keys) Len() int { return len(k.names) }

// At is the key of a number.
func (k *Keys) At(number int) string { return k.names[number] }

// Of is the number of a key; known is false where it was not added, as in a nil Keys.
func (k *Keys) Of(key string) (number int, known bool) {
	if k == nil {
		return 0, false
	}
	n, known := k.numbers[key]
	return int(n), known
}

// Add is the number of a key; added says that it had none yet.
func (k *Keys) Add(key string) (number int, added bool) {
	if number, known := k.Of(key); known {
		return number, false
	}
	if k.numbers == nil {
		k.numbers = map[string]int32{}
	}
	key = strings.Clone(key) // the text that it is a part of may be long
	number = len(k.names)
	k.names, k.numbers[key] = append(k.names, key), int32(number)
	return number, true
}

// Table holds a value for each of very many keys, which it knows by their 64-bit hash alone:
// of two keys of one hash the second counts as the first. The zero value is empty; several
// goroutines may read it.
type Table[V any] struct {
	values map[uint64]V // without a pointer for each key, which the collector would follow
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
