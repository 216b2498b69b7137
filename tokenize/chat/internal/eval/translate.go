package eval

import (
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

func (x *exec) makeTrans(a args) value.Value {
	if !x.positional(a, "maketrans", 1, 3) {
		return undefined
	}
	d := value.NewDict(8)
	if len(a.pos) == 1 {
		src, ok := a.pos[0].(*value.Dict)
		if !ok {
			return x.failf(value.Type, "if you give only one argument to maketrans it must be a dict")
		}
		for i := 0; i < src.Len(); i++ {
			key := src.Key(i)
			if s, ok := key.(*value.Str); ok {
				r := []rune(s.S)
				if len(r) != 1 {
					return x.failf(value.Other, "string keys in translate table must be of length 1")
				}
				key = value.NewInt(int64(r[0]))
			}
			x.fail(d.Set(&x.lim.Limits, key, src.Val(i)))
		}
		return d
	}
	var sets [3][]rune
	var by *value.Field
	for i, p := range a.pos {
		s, ok := x.strArg(p)
		if !ok || !x.make(4*len(s.S)) {
			return undefined
		}
		sets[i] = []rune(s.S)
		if i == 1 {
			by = s.Field()
		}
	}
	if len(sets[0]) != len(sets[1]) {
		return x.failf(value.Other, "the first two maketrans arguments must have equal length")
	}
	for i, r := range sets[0] {
		if !x.step(1) {
			return undefined
		}
		x.fail(d.Set(&x.lim.Limits, value.NewInt(int64(r)), &value.Int{V: int64(sets[1][i]), F: by}))
	}
	for _, r := range sets[2] {
		if !x.step(1) {
			return undefined
		}
		x.fail(d.Set(&x.lim.Limits, value.NewInt(int64(r)), value.Nil))
	}
	return d
}

// translate replaces the characters of s that table has an entry for.
func (x *exec) translate(s *value.Str, table value.Value) value.Value {
	switch table.(type) {
	case *value.None, *value.Bool, *value.Int, *value.Float:
		if s.S != "" {
			return x.failf(value.Type, "'%s' object is not subscriptable", table.TypeName())
		}
	}
	t := value.Text{Track: true, Lim: &x.lim.Limits}
	for i, end := 0, 0; i < len(s.S) && x.step(1) && x.make(128); i = end {
		r, n := utf8.DecodeRuneInString(s.S[i:])
		end = i + n
		switch v := x.getitem(table, value.NewInt(int64(r))).(type) {
		case *value.Str:
			if v.Field() != nil {
				t.Str(v)
			} else {
				t.Changed(v.S, s, i, end)
			}
		case *value.None:
		case *value.Int:
			n, ok := value.AsInt(v)
			if !ok || n < 0 || n > unicode.MaxRune {
				return x.failf(value.Other, "character mapping must be in range(0x110000)")
			}
			if v.F != nil {
				t.From(string(rune(n)), v.F, 0, 1)
			} else {
				t.Changed(string(rune(n)), s, i, end)
			}
		default:
			t.Part(s, i, end)
		}
		if len(t.B) > x.lim.Bytes {
			return x.failf(value.Limit, "translate makes more than %d bytes", x.lim.Bytes)
		}
	}
	out := t.Value()
	out.Markup = s.Markup
	return out
}
