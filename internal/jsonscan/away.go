package jsonscan

import (
	"cmp"
	"errors"
	"sort"
)

// Away is a string or a list of numbers whose text was left out of the parsed text, which
// has "" or [] in its place; a document larger than memory becomes small that way. The text
// was checked by StringPart or NumbersEnd and is read from Options.Store on demand.
type Away struct {
	At   int   // offset of "" or [] in the parsed text
	From int64 // offset of the text, without its quotes or brackets, in the store
	Len  int

	flags uint8
	saved int // lower bound on how many bytes decoding the string saves
	text  string
	given bool // text holds the decoded string; it is not in the store
}

// Given returns the Away of a string that a JSON writer has already decoded; the parsed
// text has "" at offset at. s must be UTF-8.
func Given(at int, s string) Away { return Away{At: at, Len: len(s), text: s, given: true} }

// StringPart checks b, the next bytes of string a, and updates a. It returns how many bytes
// of b are whole characters of the string and whether the closing quote follows them.
func (a *Away) StringPart(b []byte) (n int, closed bool, err error) {
	end, flags, saved, err := scanString(b, 0)
	if err == nil {
		n, closed = end-1, true
	} else if e, ok := errors.AsType[*SyntaxError](err); ok && e.Class == Truncated {
		n, err = end, nil
	}
	a.flags |= flags
	a.Len += n
	a.saved += saved
	return n, closed, err
}

// NumbersEnd returns the length of the list of finite numbers at the start of b, without
// its opening bracket and with the closing one; 0 if there is none, with cut set if b may
// end too early.
func NumbersEnd(b []byte) (n int, cut bool) {
	d := Doc{src: b}
	return d.packed(skipSpace(b, 0))
}

var errChanged = errors.New("a list of numbers is another one than before")

// numbers returns v, a list of numbers, with its text in memory.
func (v Value) numbers() Value {
	if v.n.flags&flagAway == 0 {
		return v
	}
	raw := v.Raw()
	if n, _ := NumbersEnd(raw[1:]); n != len(raw)-1 {
		v.d.err = cmp.Or(v.d.err, errChanged)
		return Value{}
	}
	return Value{d: &Doc{src: raw}, n: node{end: uint32(len(raw)), kind: Array, flags: flagPacked}}
}

// Err returns the error with which reading from the store failed. Values read since Parse
// are not valid then.
func (d *Doc) Err() error { return d.err }

// away returns what "" or [] at an offset of the parsed text stands for.
func (d *Doc) away(at uint32) (Away, bool) {
	i := d.awayFrom(at)
	if i == len(d.opt.Away) || d.opt.Away[i].At != int(at) {
		return Away{}, false
	}
	return d.opt.Away[i], true
}

// awayFrom returns the index of the first Away at or after an offset.
func (d *Doc) awayFrom(at uint32) int {
	return sort.Search(len(d.opt.Away), func(i int) bool { return d.opt.Away[i].At >= int(at) })
}

// within returns the Aways inside v.
func (v Value) within() []Away {
	if v.d == nil || len(v.d.opt.Away) == 0 {
		return nil
	}
	return v.d.opt.Away[v.d.awayFrom(v.n.start):v.d.awayFrom(v.n.end)]
}

// read fills b with a part of a's text.
func (d *Doc) read(b []byte, a Away, from int) []byte {
	if _, err := d.opt.Store.ReadAt(b, a.From+int64(from)); err != nil && d.err == nil {
		d.err = err
	}
	return b
}

// restore returns the source text of v with all Aways in place.
func (v Value) restore(away []Away) []byte {
	out := make([]byte, 0, v.Size())
	done := int(v.n.start)
	for _, a := range away {
		out = append(out, v.d.src[done:a.At+1]...)
		if a.given {
			out = AppendEscaped(out, a.text)
			done = a.At + 1
			continue
		}
		n := len(out)
		out = out[:n+a.Len]
		v.d.read(out[n:], a, 0)
		done = a.At + 1
	}
	return append(out, v.d.src[done:v.n.end]...)
}

// window is how much of an Away string is in memory besides its decoded form.
const window = 64 << 10

// parts calls use with the text of an Away string, part by part. use returns how many bytes
// it consumed, where the next part begins, and whether to continue.
func (v Value) parts(use func(b []byte, last bool) (n int, more bool)) {
	a, ok := v.d.away(v.n.start)
	if !ok {
		return
	}
	if a.given { // nothing in it is escaped
		use([]byte(a.text), true)
		return
	}
	if v.d.buf == nil {
		v.d.buf = make([]byte, window)
	}
	for from := 0; from < a.Len && v.d.err == nil; {
		b := v.d.read(v.d.buf[:min(window, a.Len-from)], a, from)
		n, more := use(b, from+len(b) == a.Len)
		if from += n; !more {
			return
		}
	}
}

func (v Value) awayText() string {
	a, _ := v.d.away(v.n.start)
	if a.given {
		return a.text
	}
	out := make([]byte, 0, a.Len-a.saved)
	v.parts(func(b []byte, last bool) (int, bool) {
		if v.n.flags&flagEscaped == 0 {
			out = append(out, b...)
			return len(b), true
		}
		var n int
		out, n = appendUnescaped(out, b, last)
		return n, true
	})
	return view(out)
}
