package eval

import (
	"cmp"
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

func filterToJSON(x *exec, v value.Value, a args) value.Value {
	j := x.jsonForm(v, a)
	if j == nil {
		return undefined
	}
	t := x.buffer()
	defer func() { x.buffers = append(x.buffers, t) }()
	x.fail(j.Write(t, &x.lim.Limits, v))
	if x.err != nil {
		return undefined
	}
	return t.Value()
}

// emitJSON prints v in a form, nil after a failure.
func (x *exec) emitJSON(v value.Value, j *value.JSON) {
	if j == nil {
		return
	}
	x.fail(j.Write(x.out, &x.lim.Limits, v))
}

var plainJSON = value.NewJSON(nil)

// jsonForm reads the arguments of tojson for v; nil after a failure.
func (x *exec) jsonForm(v value.Value, a args) *value.JSON {
	if len(a.pos)+len(a.kw) == 0 {
		return plainJSON
	}
	p, ok := x.bind(a, "tojson", 0, "ensure_ascii", "indent", "separators", "sort_keys")
	if !ok {
		return nil
	}
	var sep []value.Value
	if !isNone(p[2]) {
		if sep, ok = elements(x, p[2]); !ok {
			return nil
		}
		if len(sep) != 2 {
			x.failf(value.Other, "separators must have 2 items, not %d", len(sep))
			return nil
		}
	}
	if _, text := v.(*value.Str); text { // of which Python looks at nothing else
		p[1], sep = nil, nil
	}
	indent, ok := x.indentArg(p[1])
	if !ok {
		return nil
	}
	j := value.NewJSON(indent)
	j.EnsureASCII = p[0] != nil && value.Truth(p[0])
	j.SortKeys = p[3] != nil && value.Truth(p[3])
	if sep != nil {
		item, ok1 := x.strArg(sep[0])
		key, ok2 := x.strArg(sep[1])
		if !ok1 || !ok2 {
			return nil
		}
		j.Item, j.Key = item.S, key.S
		j.From = cmp.Or(item.Field(), key.Field())
	}
	if s, ok := p[1].(*value.Str); ok {
		j.From = cmp.Or(s.Field(), j.From)
	}
	return j
}

// indentArg reads the indent of tojson: a number of blanks or a string.
func (x *exec) indentArg(v value.Value) (*string, bool) {
	if isNone(v) {
		return nil, true
	}
	if s, ok := v.(*value.Str); ok {
		return &s.S, true
	}
	n, ok := x.operandArg(v)
	if !ok {
		return nil, false
	}
	if n > int64(x.lim.Bytes) {
		x.failf(value.Limit, "indent of %d blanks, more than %d bytes", n, x.lim.Bytes)
		return nil, false
	}
	if !x.make(int(max(n, 0))) {
		return nil, false
	}
	s := strings.Repeat(" ", int(max(n, 0)))
	return &s, true
}
