package builtin

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/pytext"
	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// filterPprint implements Python's pprint.pformat: one line if the value fits into 80 characters, else one item per
// line.
func filterPprint(x *rt.Context, v value.Value, _ rt.Params) value.Value {
	t := x.Buffer()
	defer func() { x.Release(t) }()
	pprint(x, t, v, 0, 0, 0)
	if x.Err != nil {
		return value.Stopped
	}
	return t.Value()
}

const pprintWidth = 80

func pprint(x *rt.Context, t *value.Text, v value.Value, indent, allowance, depth int) {
	if depth > x.Lim.Depth {
		x.Failf(value.Other, "maximum recursion depth exceeded")
		return
	}
	if !x.Step(1) {
		return
	}
	line := &value.Text{Lim: t.Lim}
	v = sortedDicts(x, v, depth)
	if value.WriteRepr(line, x.Lim, v, x.Lim.Depth); x.Err != nil {
		return
	}
	if utf8.RuneCount(line.B) <= pprintWidth-indent-allowance || ownRepr(v) {
		t.Text(line, 0)
		return
	}
	newline := func(n int) {
		t.Lit("\n")
		t.Blanks(n)
	}
	switch c := v.(type) {
	case *value.List:
		open, end := c.Brackets()
		t.Lit(open)
		for i, it := range c.Items {
			if i > 0 {
				t.Lit(",")
				newline(indent + 1)
			}
			rest := 1
			if i == len(c.Items)-1 {
				rest = allowance + len(end)
			}
			pprint(x, t, it, indent+1, rest, depth+1)
		}
		t.Lit(end)
	case *value.Dict:
		t.Lit("{")
		for i := 0; i < c.Len(); i++ {
			if i > 0 {
				t.Lit(",")
				newline(indent + 1)
			}
			before := len(t.B)
			value.WriteRepr(t, x.Lim, c.Key(i), x.Lim.Depth)
			t.Lit(": ")
			width := utf8.RuneCount(t.B[min(before, len(t.B)):])
			rest := 1
			if i == c.Len()-1 {
				rest = allowance + 1
			}
			pprint(x, t, c.Val(i), indent+1+width, rest, depth+1)
		}
		t.Lit("}")
	case *value.Str:
		pprintStr(x, t, c, indent, allowance, depth)
	default:
		t.Text(line, 0)
	}
}

// ownRepr reports whether the Python class of v has its own repr, which pprint writes unchanged: Markup and the
// tuples of groupby.
func ownRepr(v value.Value) bool {
	switch v := v.(type) {
	case *value.Str:
		return v.Markup
	case *value.List:
		return v.Group
	}
	return false
}

// sortedDicts returns v with the keys of its dicts sorted where possible, as pprint does.
func sortedDicts(x *rt.Context, v value.Value, depth int) value.Value {
	if depth > x.Lim.Depth || ownRepr(v) || !x.Step(1) {
		return v
	}
	switch c := v.(type) {
	case *value.Dict:
		if !x.Make(32 * c.Len()) {
			return v
		}
		keys := make([]value.Value, c.Len())
		for i := range keys {
			keys[i] = c.Key(i)
		}
		sorted := slices.Clone(keys)
		slices.SortStableFunc(sorted, func(a, b value.Value) int { return safeOrder(x, a, b) })
		d := value.NewDict(c.Len())
		for _, k := range sorted {
			d.Set(x.Lim, k, sortedDicts(x, c.Get(x.Lim, k), depth+1))
		}
		return d
	case *value.List:
		if !x.Make(64 + 16*len(c.Items)) {
			return v
		}
		items := make([]value.Value, len(c.Items))
		for i, it := range c.Items {
			items[i] = sortedDicts(x, it, depth+1)
		}
		return &value.List{Items: items, Tuple: c.Tuple}
	}
	return v
}

// safeOrder compares keys by value or, where Python cannot, by the name of their type.
func safeOrder(x *rt.Context, a, b value.Value) int {
	before := x.Err
	less, more := value.Compare(x.Lim, "<", a, b), value.Compare(x.Lim, ">", a, b)
	switch {
	case less:
		return -1
	case more:
		return 1
	case x.Err == before:
		return 0
	}
	x.Err = before
	return strings.Compare(a.TypeName(), b.TypeName())
}

// pprintStr splits a long string into adjacent literals at white space.
func pprintStr(x *rt.Context, t *value.Text, s *value.Str, indent, allowance, depth int) {
	lines := py.Lines(s, x.Lim, true)
	if len(lines) == 0 {
		value.WriteRepr(t, x.Lim, s, 2)
		return
	}
	if depth == 0 {
		indent++
		allowance++
	}
	repr := func(v value.Value) *value.Text {
		r := &value.Text{Lim: t.Lim}
		value.WriteRepr(r, x.Lim, v, 2)
		return r
	}
	runes := func(r *value.Text) int { return utf8.RuneCount(r.B) }
	var chunks []*value.Text
	for i, l := range lines {
		line := l.(*value.Str)
		width := pprintWidth - indent
		if i == len(lines)-1 {
			width -= allowance
		}
		whole := repr(line)
		if runes(whole) <= width {
			chunks = append(chunks, whole)
			continue
		}
		from, end := 0, 0
		for pos := 0; pos < len(line.S) && x.Step(1); {
			rest := line.S[pos:]
			if n := strings.IndexFunc(rest, pytext.IsSpace); n >= 0 {
				rest = strings.TrimLeftFunc(rest[n:], pytext.IsSpace)
			} else {
				rest = ""
			}
			word := len(line.S) - len(rest)
			w := pprintWidth - indent
			if word == len(line.S) && i == len(lines)-1 {
				w -= allowance
			}
			if r := repr(line.Slice(from, word)); runes(r) > w && end > from {
				chunks = append(chunks, repr(line.Slice(from, end)))
				from = end
			}
			end, pos = word, word
		}
		chunks = append(chunks, repr(line.Slice(from, len(line.S))))
	}
	if len(chunks) == 1 {
		t.Text(chunks[0], 0)
		return
	}
	if depth == 0 {
		t.Lit("(")
	}
	for i, c := range chunks {
		if i > 0 {
			t.Lit("\n")
			t.Blanks(indent)
		}
		t.Text(c, 0)
	}
	if depth == 0 {
		t.Lit(")")
	}
}
