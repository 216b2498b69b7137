package object

import (
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// maketrans implements str.maketrans: it builds the table of str.translate from a dict or from two or three strings.
func maketrans(x *rt.Context, _ value.Value, p rt.Params) value.Value {
	d := value.NewDict(8)
	if p[1] == nil {
		src, ok := p[0].(*value.Dict)
		if !ok {
			return x.Failf(value.Type, "if you give only one argument to maketrans it must be a dict")
		}
		for i := 0; i < src.Len(); i++ {
			key := src.Key(i)
			if s, ok := key.(*value.Str); ok {
				r := []rune(s.S)
				if len(r) != 1 {
					return x.Failf(value.Other, "string keys in translate table must be of length 1")
				}
				key = value.NewInt(int64(r[0]))
			}
			d.Set(x.Lim, key, src.Val(i))
		}
		return d
	}
	var sets [3][]rune
	var by *value.Field
	for i, v := range p[:3] {
		if v == nil {
			break
		}
		s := x.StrArg(v)
		if !x.Make(4 * len(s.S)) {
			return value.Stopped
		}
		sets[i] = []rune(s.S)
		if i == 1 {
			by = s.Field()
		}
	}
	if len(sets[0]) != len(sets[1]) {
		return x.Failf(value.Other, "the first two maketrans arguments must have equal length")
	}
	for i, r := range sets[0] {
		if !x.Step(1) {
			return value.Stopped
		}
		d.Set(x.Lim, value.NewInt(int64(r)), &value.Int{V: int64(sets[1][i]), F: by})
	}
	for _, r := range sets[2] {
		if !x.Step(1) {
			return value.Stopped
		}
		d.Set(x.Lim, value.NewInt(int64(r)), value.Nil)
	}
	return d
}

// translate implements str.translate: it replaces the characters of s that have an entry in the table.
func translate(x *rt.Context, s *value.Str, p rt.Params) value.Value {
	table := p[0]
	switch table.(type) {
	case *value.None, *value.Bool, *value.Int, *value.Float:
		if s.S != "" {
			return x.Failf(value.Type, "'%s' object is not subscriptable", table.TypeName())
		}
	}
	t := value.Text{Lim: x.Lim}
	for i, end := 0, 0; i < len(s.S) && x.Step(1) && x.Make(128); i = end {
		r, n := utf8.DecodeRuneInString(s.S[i:])
		end = i + n
		switch v := Getitem(x, table, value.NewInt(int64(r))).(type) {
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
				return x.Failf(value.Other, "character mapping must be in range(0x110000)")
			}
			if v.F != nil {
				t.From(string(rune(n)), v.F, 0, 1)
			} else {
				t.Changed(string(rune(n)), s, i, end)
			}
		default:
			t.Part(s, i, end)
		}
		if len(t.B) > x.Lim.Bytes {
			return x.Failf(value.Limit, "translate makes more than %d bytes", x.Lim.Bytes)
		}
	}
	out := t.Value()
	out.Markup = s.Markup
	return out
}
