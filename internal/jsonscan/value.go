package jsonscan

import (
	"bytes"
	"strconv"
)

// Value is one value of a Doc. The zero Value is absent; every method returns its zero
// result on it.
type Value struct {
	d *Doc
	n node
	i uint32 // index of n in d.nodes; meaningless for an element of a packed list
}

func (d *Doc) at(i uint32) Value { return Value{d: d, n: d.nodes[i], i: i} }

// Kind returns the kind of v.
func (v Value) Kind() Kind { return v.n.kind }

// IsNull reports whether the value is null or absent.
func (v Value) IsNull() bool { return v.n.kind <= Null }

// Offset returns the byte offset of v in the parsed text.
func (v Value) Offset() int { return int(v.n.start) }

// Raw returns the source text, nil if absent. It is a view of the parsed text if nothing in v
// is Given.
func (v Value) Raw() []byte {
	if given := v.within(); len(given) > 0 {
		return v.restore(given)
	}
	return v.parsed()
}

// parsed returns v's part of the parsed text.
func (v Value) parsed() []byte {
	if v.d == nil {
		return nil
	}
	return v.d.src[v.n.start:v.n.end:v.n.end]
}

// Size returns the length of the source text.
func (v Value) Size() int {
	n := int(v.n.end - v.n.start)
	for _, g := range v.within() {
		n += len(g.Text)
	}
	return n
}

// Clone returns a copy of the source text on one line: it drops the white space between
// tokens if that contains a line break. Numbers that are not finite become null, so that
// the copy is JSON.
func (v Value) Clone() []byte {
	if v.d == nil {
		return nil
	}
	text := v.Raw()
	if v.d.NonFinite || bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0 {
		return v.appendJoined(make([]byte, 0, len(text)), ",", ":")
	}
	if len(v.within()) > 0 { // it is a copy
		return text
	}
	return bytes.Clone(text)
}

// Spaced returns a copy with a space after each comma and colon, as Python writes JSON.
func (v Value) Spaced() []byte { return v.appendJoined(nil, ", ", ": ") }

func (v Value) appendJoined(dst []byte, comma, colon string) []byte {
	switch {
	case v.n.kind == Number && v.n.flags&flagNotFinit != 0:
		return append(dst, "null"...)
	case v.n.kind == Object:
		dst = append(dst, '{')
		for k, m := range v.Fields() {
			if dst[len(dst)-1] != '{' {
				dst = append(dst, comma...)
			}
			dst = append(append(dst, k.Raw()...), colon...)
			dst = m.appendJoined(dst, comma, colon)
		}
		return append(dst, '}')
	case v.n.kind == Array:
		dst = append(dst, '[')
		for i, m := range v.Items() {
			if i > 0 {
				dst = append(dst, comma...)
			}
			dst = m.appendJoined(dst, comma, colon)
		}
		return append(dst, ']')
	}
	return append(dst, v.Raw()...)
}

// Bool returns the boolean and whether it is one.
func (v Value) Bool() (value, ok bool) { return v.n.flags&flagTrue != 0, v.n.kind == Bool }

// True reports whether the value is the boolean true.
func (v Value) True() bool { return v.n.flags&flagTrue != 0 && v.n.kind == Bool }

// Float returns a finite number and whether it is one.
func (v Value) Float() (float64, bool) {
	if v.n.kind != Number || v.n.flags&flagNotFinit != 0 {
		return 0, false
	}
	f, err := strconv.ParseFloat(view(v.Raw()), 64)
	return f, err == nil
}

// Int returns an integer written without fraction or exponent (or with a zero
// fraction, as 3.0) and whether it is one.
func (v Value) Int() (int, bool) {
	if v.n.kind != Number || v.n.flags&flagNotFinit != 0 {
		return 0, false
	}
	text := view(v.parsed())
	if i, err := strconv.Atoi(text); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != float64(int(f)) || f > 1<<53 || f < -1<<53 {
		return 0, false
	}
	return int(f), true
}
