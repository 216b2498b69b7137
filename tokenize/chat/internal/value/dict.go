package value

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Dict is a dict in insertion order.
type Dict struct {
	entries []entry
	index   map[hash]int32 // nil while the dict is small
	F       *Field         // set for dicts of the input
	// Message is 1 + the index of the message, or 0 if the dict is not a message.
	Message int32
}

type entry struct {
	h   hash
	key Value // nil for a string without origin
	val Value
}

// hash identifies a key: keys that are equal in Python have equal hashes.
type hash struct {
	kind byte // 's' string, 'n' number, 'o' None, 't' tuple, 'u' undefined, 'b' bytes, 'r' range
	s    string
}

const smallDict = 8

// NewDict returns an empty dict with room for n entries.
func NewDict(n int) *Dict { return &Dict{entries: make([]entry, 0, n)} }

// Len returns the number of entries.
func (d *Dict) Len() int { return len(d.entries) }

// Key returns key i in insertion order.
func (d *Dict) Key(i int) Value {
	e := &d.entries[i]
	if e.key == nil {
		return Lit(e.h.s)
	}
	return e.key
}

// KeyString returns key i and whether it is a string.
func (d *Dict) KeyString(i int) (string, bool) {
	return d.entries[i].h.s, d.entries[i].h.kind == 's'
}

// Val returns value i in insertion order.
func (d *Dict) Val(i int) Value { return d.entries[i].val }

func (d *Dict) find(h hash) int {
	if d.index != nil {
		if i, ok := d.index[h]; ok {
			return int(i)
		}
		return -1
	}
	for i := range d.entries {
		if e := &d.entries[i]; e.h.kind == h.kind && e.h.s == h.s {
			return i
		}
	}
	return -1
}

// GetString returns the value of a string key, or nil.
func (d *Dict) GetString(key string) Value {
	if i := d.find(hash{'s', key}); i >= 0 {
		return d.entries[i].val
	}
	return nil
}

// Lookup is GetString with a hint: *near is the index at which the key was last found, or 0. It helps because
// messages mostly have the same keys in the same order.
func (d *Dict) Lookup(key string, near *uint8) Value {
	if i := int(*near); i < len(d.entries) {
		if e := &d.entries[i]; e.h.s == key && e.h.kind == 's' {
			return e.val
		}
	}
	i := d.find(hash{'s', key})
	if i < 0 {
		return nil
	}
	*near = uint8(i)
	return d.entries[i].val
}

// Get returns the value of a key, or nil. An unhashable key is a failure.
func (d *Dict) Get(l *Limits, key Value) Value {
	if s, ok := key.(*Str); ok {
		return d.GetString(s.S)
	}
	h := hashOf(l, key, l.Depth)
	if i := d.find(h); i >= 0 && l.Err == nil {
		return d.entries[i].val
	}
	return nil
}

// entrySize is the approximate memory of a dict entry in bytes.
const entrySize = 128

// SetString stores a value under a string key.
func (d *Dict) SetString(key string, v Value) { d.put(hash{'s', key}, nil, v) }

// Set stores a value. An existing key keeps its place and its first spelling,
// as in Python.
func (d *Dict) Set(l *Limits, key, v Value) {
	if h := hashOf(l, key, l.Depth); l.Make(entrySize) {
		d.put(h, key, v)
	}
}

func (d *Dict) put(h hash, key, v Value) {
	if i := d.find(h); i >= 0 {
		d.entries[i].val = v
		return
	}
	d.entries = append(d.entries, entry{h, key, v})
	if d.index != nil {
		d.index[h] = int32(len(d.entries) - 1)
	} else if len(d.entries) > smallDict {
		d.index = make(map[hash]int32, 2*len(d.entries))
		for i := range d.entries {
			d.index[d.entries[i].h] = int32(i)
		}
	}
}

// Clone returns a copy with room for n more entries.
func (d *Dict) Clone(n int) *Dict {
	return &Dict{entries: append(make([]entry, 0, len(d.entries)+n), d.entries...), index: maps.Clone(d.index), F: d.F, Message: d.Message}
}

// Hashable fails if v cannot be a dict key.
func Hashable(l *Limits, v Value) { hashOf(l, v, l.Depth) }

func hashOf(l *Limits, v Value, depth int) hash {
	if depth <= 0 {
		l.Failf(Other, "maximum recursion depth exceeded while hashing")
	}
	if !l.Spend(16) {
		return hash{}
	}
	switch v := v.(type) {
	case *Str:
		return hash{'s', v.S}
	case *None:
		return hash{'o', ""}
	case *Bool:
		if v.V {
			return hash{'n', "1"}
		}
		return hash{'n', "0"}
	case *Int:
		l.digits(v)
		return hash{'n', v.String()}
	case *Float:
		if v.V == math.Trunc(v.V) && !math.IsInf(v.V, 0) {
			l.Float(v.V)
			b, _ := new(big.Float).SetFloat64(v.V).Int(nil)
			return hash{'n', b.String()}
		}
		return hash{'n', strconv.FormatFloat(v.V, 'g', -1, 64)}
	case *Undefined:
		return hash{'u', ""}
	case *Bytes:
		return hash{'b', v.B}
	case *Range:
		key := [3]int64{int64(v.Len()), v.Start, v.Step} // what equal ranges share
		if key[0] == 0 {
			key[1] = 0
		}
		if key[0] < 2 {
			key[2] = 0
		}
		return hash{'r', fmt.Sprint(key)}
	case *List:
		if v.Tuple {
			var b strings.Builder
			for _, x := range v.Items {
				h := hashOf(l, x, depth-1)
				if !l.Make(4 * (len(h.s) + 8)) { // each level copies the text
					return hash{}
				}
				b.WriteByte(h.kind)
				b.WriteString(strconv.Itoa(len(h.s)))
				b.WriteByte(':')
				b.WriteString(h.s)
			}
			return hash{'t', b.String()}
		}
		l.Failf(Type, "unhashable type: 'list'")
	case *Dict, *View:
		l.Failf(Type, "unhashable type: '%s'", v.TypeName())
	}
	return hash{'p', v.TypeName() + identity(v)}
}

// SetKey stores a value under a string key that has an origin.
func (d *Dict) SetKey(key *Str, v Value) { d.put(hash{'s', key.S}, key, v) }

// CopyEntry stores entry i of o, a dict at the same place of the input as d.
func (d *Dict) CopyEntry(o *Dict, i int) { d.put(o.entries[i].h, o.entries[i].key, o.entries[i].val) }
