package jsonscan

import (
	"bytes"
	"iter"
	"slices"
	"strconv"
)

// Get returns the member with the key, the last one if it occurs twice, as most readers do;
// absent if there is none.
func (v Value) Get(key string) Value {
	if v.n.kind != Object {
		return Value{}
	}
	var found Value
	for i := v.i + 1; i < v.n.next; i = v.d.nodes[i+1].next {
		// Most keys differ in length, which is cheaper to compare.
		k := &v.d.nodes[i]
		if (k.flags&flagEscaped != 0 || int(k.end-k.start) == len(key)+2) && v.d.at(i).Is(key) {
			found = v.d.at(i + 1)
		}
	}
	return found
}

// Path calls Get for each key in turn.
func (v Value) Path(keys ...string) Value {
	for _, k := range keys {
		v = v.Get(k)
	}
	return v
}

// Members yields the decoded keys and values of an object in source order.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for k, m := range v.Fields() {
			if !yield(k.Word(), m) {
				return
			}
		}
	}
}

// Fields yields the keys, as string values, and values of an object in source order.
func (v Value) Fields() iter.Seq2[Value, Value] {
	return func(yield func(Value, Value) bool) {
		if v.n.kind != Object {
			return
		}
		for i := v.i + 1; i < v.n.next; {
			m := v.d.at(i + 1)
			if !yield(v.d.at(i), m) {
				return
			}
			i = m.n.next
		}
	}
}

// Items yields the elements of a list.
func (v Value) Items() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		switch {
		case v.n.kind != Array:
		case v.n.flags&flagPacked != 0:
			v.packedItems(yield)
		default:
			n := 0
			for i := v.i + 1; i < v.n.next; n++ {
				m := v.d.at(i)
				if !yield(n, m) {
					return
				}
				i = m.n.next
			}
		}
	}
}

// First returns the first element of a list, absent if there is none.
func (v Value) First() Value {
	for _, x := range v.Items() {
		return x
	}
	return Value{}
}

// Pair returns the elements of a two-element list that are not both numbers.
func (v Value) Pair() (a, b Value, ok bool) {
	if v.n.kind != Array || v.n.flags&flagPacked != 0 || v.i+1 == v.n.next {
		return Value{}, Value{}, false
	}
	if a = v.d.at(v.i + 1); a.n.next == v.n.next {
		return Value{}, Value{}, false
	}
	b = v.d.at(a.n.next)
	return a, b, b.n.next == v.n.next
}

func (v Value) packedItems(yield func(int, Value) bool) {
	n := 0
	for i, src := v.n.start+1, v.d.src; ; n++ {
		for src[i] <= ' ' {
			i++
		}
		start := i
		for src[i] > ' ' && src[i] != ',' && src[i] != ']' {
			i++
		}
		if !yield(n, Value{d: v.d, n: node{start: start, end: i, kind: Number}}) {
			return
		}
		for src[i] <= ' ' {
			i++
		}
		if src[i] == ']' {
			return
		}
		i++
	}
}

// Len returns the number of elements of a list or members of an object.
func (v Value) Len() int {
	n := 0
	if v.n.kind == Object {
		for range v.Fields() {
			n++
		}
		return n
	}
	if v.n.kind == Array && v.n.flags&flagPacked != 0 {
		return bytes.Count(v.Raw(), []byte{','}) + 1
	}
	for range v.Items() {
		n++
	}
	return n
}

// Within returns the number of keys and values in v at any depth, except in lists of
// numbers.
func (v Value) Within() int {
	if v.d == nil || v.n.kind < Array {
		return 0
	}
	return int(v.n.next-v.i) - 1
}

// DuplicateKey returns the first key that occurs twice in an object.
func (v Value) DuplicateKey() (Value, bool) {
	seen := map[string]bool{}
	for k := range v.Fields() {
		s := k.String()
		if seen[s] {
			return k, true
		}
		seen[s] = true
	}
	return Value{}, false
}

// AppendInt32 appends a list of integers to dst. If an element is not an integer of 32
// bits, it returns that element and false.
func (v Value) AppendInt32(dst []int32) ([]int32, Value, bool) {
	if v.n.kind == Array && v.n.flags&flagPacked != 0 {
		dst = slices.Grow(dst, v.Len())
	}
	for _, m := range v.Items() {
		i, ok := m.Int()
		if !ok || int(int32(i)) != i {
			return dst, m, false
		}
		dst = append(dst, int32(i))
	}
	return dst, Value{}, true
}

// AppendFloat32 appends a list of finite numbers to dst. If an element is not one, it
// returns that element and false.
func (v Value) AppendFloat32(dst []float32) ([]float32, Value, bool) {
	if v.n.kind == Array && v.n.flags&flagPacked != 0 {
		dst = slices.Grow(dst, v.Len())
	}
	for _, m := range v.Items() {
		if m.n.kind != Number || m.n.flags&flagNotFinit != 0 {
			return dst, m, false
		}
		f, err := strconv.ParseFloat(view(m.Raw()), 32)
		if err != nil {
			return dst, m, false
		}
		dst = append(dst, float32(f))
	}
	return dst, Value{}, true
}
