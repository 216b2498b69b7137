package jsonscan

import (
	"bytes"
	"iter"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// Value is one value of a Doc; the zero Value is an absent one, on which every
// method answers with nothing.
type Value struct {
	d *Doc
	n node
	i uint32 // index of n in d.nodes; meaningless for an element of a packed list
}

func (d *Doc) at(i uint32) Value { return Value{d: d, n: d.nodes[i], i: i} }

// Kind says what the value is.
func (v Value) Kind() Kind { return v.n.kind }

// IsNull reports whether the value is null or absent.
func (v Value) IsNull() bool { return v.n.kind <= Null }

// Offset is the byte offset of the value in the parsed text.
func (v Value) Offset() int { return int(v.n.start) }

// Raw returns the source text, a view of the parsed one where nothing of it is
// away, nil when absent.
func (v Value) Raw() []byte {
	if away := v.within(); len(away) > 0 {
		return v.restore(away)
	}
	return v.parsed()
}

// parsed is the part of the parsed text that v is.
func (v Value) parsed() []byte {
	if v.d == nil {
		return nil
	}
	return v.d.src[v.n.start:v.n.end:v.n.end]
}

// Size is the length of the source text.
func (v Value) Size() int {
	n := int(v.n.end - v.n.start)
	for _, a := range v.within() {
		n += a.Len
	}
	return n
}

// Clone returns a copy of the source text that fits on one line: white space
// between tokens goes where a line break is among it. Numbers that are not finite
// become null, so that the copy is JSON.
func (v Value) Clone() []byte {
	if v.d == nil {
		return nil
	}
	text, away := v.parsed(), v.within()
	if len(away) > 0 && !broken(text) { // else it is not needed
		text = v.restore(away)
	}
	switch {
	case v.d.NonFinite || broken(text):
		return v.appendCompact(make([]byte, 0, v.Size()))
	case len(away) > 0:
		return text
	}
	return bytes.Clone(text)
}

func broken(text []byte) bool {
	return bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0
}

func (v Value) appendCompact(dst []byte) []byte {
	switch {
	case v.n.kind == Number && v.n.flags&flagNotFinit != 0:
		return append(dst, "null"...)
	case v.n.kind == Object:
		dst = append(dst, '{')
		for k, m := range v.Fields() {
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(append(dst, k.Raw()...), ':')
			dst = m.appendCompact(dst)
		}
		return append(dst, '}')
	case v.n.kind == Array:
		dst = append(dst, '[')
		for i, m := range v.Items() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = m.appendCompact(dst)
		}
		return append(dst, ']')
	}
	return append(dst, v.Raw()...)
}

// Bool returns the boolean and whether it is one.
func (v Value) Bool() (value, ok bool) { return v.n.flags&flagTrue != 0, v.n.kind == Bool }

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
	if i, err := strconv.Atoi(view(v.Raw())); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(view(v.Raw()), 64)
	if err != nil || f != float64(int(f)) || f > 1<<53 || f < -1<<53 {
		return 0, false
	}
	return int(f), true
}

// Text returns the decoded string and whether it is one. The string is a copy.
// A lone surrogate escape becomes U+FFFD; LoneSurrogate finds it.
func (v Value) Text() (string, bool) {
	if v.n.kind != String {
		return "", false
	}
	if v.n.flags&flagAway != 0 {
		return v.awayText(), true
	}
	inner := v.d.src[v.n.start+1 : v.n.end-1]
	if v.n.flags&flagEscaped == 0 {
		return string(inner), true
	}
	return view(unescape(inner)), true
}

// TextIn is Text for a caller who holds the parsed text as a string: the result
// shares that where nothing is escaped.
func (v Value) TextIn(text string) (string, bool) {
	if v.n.kind != String || v.n.flags&(flagEscaped|flagAway) != 0 {
		return v.Text()
	}
	return text[v.n.start+1 : v.n.end-1], true
}

// String returns the decoded string, "" when it is none.
func (v Value) String() string { s, _ := v.Text(); return s }

// Is reports whether the value is the string s.
func (v Value) Is(s string) bool {
	if v.n.kind != String {
		return false
	}
	if v.n.flags&flagAway != 0 {
		// An escape of six bytes stands for one byte at least.
		if n := v.Size() - 2; n < len(s) || n > 6*len(s) {
			return false
		}
	} else if v.n.flags&flagEscaped == 0 {
		return string(v.d.src[v.n.start+1:v.n.end-1]) == s
	}
	return v.String() == s
}

// A Doc keeps this many words, none longer than maxWord bytes.
const maxWords, maxWord = 1 << 10, 32

// Word is String for texts that recur, such as keys and roles: equal ones of a
// Doc share their memory, over calls of Parse too.
func (v Value) Word() string {
	if v.n.kind != String || v.n.flags&(flagEscaped|flagAway) != 0 || v.n.end-v.n.start > maxWord+2 {
		return v.String()
	}
	inner := v.d.src[v.n.start+1 : v.n.end-1]
	if s, ok := v.d.words[string(inner)]; ok {
		return s
	}
	s := string(inner)
	if v.d.words == nil {
		v.d.words = map[string]string{}
	}
	if len(v.d.words) < maxWords {
		v.d.words[s] = s
	}
	return s
}

// LoneSurrogate reports whether the string holds an escape that is half of a
// surrogate pair.
func (v Value) LoneSurrogate() bool {
	if v.n.kind != String || v.n.flags&flagUnicode == 0 {
		return false
	}
	found := false
	scan := func(b []byte, last bool) (n int, more bool) {
		n, found = findLone(b, last)
		return n, !found
	}
	if v.n.flags&flagAway != 0 {
		v.parts(scan)
	} else {
		scan(v.d.src[v.n.start+1:v.n.end-1], true)
	}
	return found
}

// escapeBytes is the longest escape, a surrogate pair.
const escapeBytes = 12

// cutOff reports whether the escape at the start of b ends early, as none does
// that was checked: the file of a text that is away was changed meanwhile.
func cutOff(b []byte) bool { return len(b) < 2 || b[1] == 'u' && len(b) < 6 }

// findLone looks for half a surrogate pair in escaped text and returns how far
// it got: before an escape that may be cut off, unless b is the last part.
func findLone(b []byte, last bool) (n int, found bool) {
	for n < len(b) {
		k := bytes.IndexByte(b[n:], '\\')
		if k < 0 {
			return len(b), false
		}
		if n += k; !last && len(b)-n < escapeBytes {
			return n, false
		}
		if cutOff(b[n:]) {
			return len(b), false
		}
		if b[n+1] != 'u' {
			n += 2
			continue
		}
		r, size := unescapeRune(b[n:])
		if r == utf8.RuneError && !bytes.EqualFold(b[n+2:n+6], []byte("fffd")) {
			return n, true
		}
		n += size
	}
	return n, false
}

func unescape(b []byte) []byte {
	out, _ := appendUnescaped(make([]byte, 0, len(b)), b, true)
	return out
}

// appendUnescaped decodes b, up to an escape that may be cut off unless b is the
// last part, and returns how much of it.
func appendUnescaped(out, b []byte, last bool) ([]byte, int) {
	whole := len(b)
	for {
		k := bytes.IndexByte(b, '\\')
		if k < 0 {
			return append(out, b...), whole
		}
		out = append(out, b[:k]...)
		if b = b[k:]; !last && len(b) < escapeBytes {
			return out, whole - len(b)
		}
		if cutOff(b) {
			return append(out, b...), whole
		}
		switch c := b[1]; c {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r, n := unescapeRune(b)
			out = utf8.AppendRune(out, r)
			b = b[n:]
			continue
		default:
			out = append(out, c)
		}
		b = b[2:]
	}
}

// unescapeRune decodes the \u escape, or the pair of them, at the start of b.
func unescapeRune(b []byte) (rune, int) {
	r := hex4(b[2:])
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if p := utf16.DecodeRune(r, hex4(b[8:])); p != utf8.RuneError {
			return p, 12
		}
	}
	return utf8.RuneError, 6
}

func hex4(b []byte) rune {
	return rune(hex(b[0])<<12 | hex(b[1])<<8 | hex(b[2])<<4 | hex(b[3]))
}

// view reads b as a string without a copy: b must not change while it is used.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Get returns the member of that key, the last one when it occurs twice, as
// most readers do; absent when v is no object.
func (v Value) Get(key string) Value {
	if v.n.kind != Object {
		return Value{}
	}
	var found Value
	for i := v.i + 1; i < v.n.next; i = v.d.nodes[i+1].next {
		// Most keys differ in length, which is cheaper to see.
		k := &v.d.nodes[i]
		if (k.flags&flagEscaped != 0 || int(k.end-k.start) == len(key)+2) && v.d.at(i).Is(key) {
			found = v.d.at(i + 1)
		}
	}
	return found
}

// Path follows member keys.
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

// Fields yields the keys, which are strings, and values of an object in source
// order.
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
			v.numbers().packedItems(yield)
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

func (v Value) packedItems(yield func(int, Value) bool) {
	if v.d == nil {
		return
	}
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

// Len counts the elements of a list or the members of an object.
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

func sameKey(a, b Value) bool {
	if (a.n.flags|b.n.flags)&flagEscaped == 0 {
		return bytes.Equal(a.Raw(), b.Raw())
	}
	return a.String() == b.String()
}

// DuplicateKey returns the first key that occurs twice in an object.
func (v Value) DuplicateKey() (Value, bool) {
	if v.n.kind != Object {
		return Value{}, false
	}
	if v.Len() <= 16 {
		for k := range v.Fields() {
			for o := range v.Fields() {
				if o.n.start >= k.n.start {
					break
				}
				if sameKey(o, k) {
					return k, true
				}
			}
		}
		return Value{}, false
	}
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

// AppendInt32 appends a list of integers to dst. When an element is not one
// that fits, it returns that element.
func (v Value) AppendInt32(dst []int32) ([]int32, Value, bool) {
	if v.n.kind == Array && v.n.flags&flagPacked != 0 {
		v = v.numbers()
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

// AppendFloat32 appends a list of finite numbers to dst. When an element is not
// one, it returns that element.
func (v Value) AppendFloat32(dst []float32) ([]float32, Value, bool) {
	if v.n.kind == Array && v.n.flags&flagPacked != 0 {
		v = v.numbers()
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
