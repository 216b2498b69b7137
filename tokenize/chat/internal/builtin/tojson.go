package builtin

import (
	"cmp"

	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

var signatureJSON = rt.Parse("tojson(ensure_ascii=, indent=, separators=, sort_keys=)")

func filterToJSON(x *rt.Context, v value.Value, a rt.Args) value.Value {
	return x.Write(func(t *value.Text) { WriteJSON(x, t, v, a) })
}

// WriteJSON appends the result of the filter tojson for v.
func WriteJSON(x *rt.Context, t *value.Text, v value.Value, a rt.Args) {
	form := plainJSON
	if !a.None() {
		var p rt.Params
		if !signatureJSON.Bind(x, a, &p) {
			return
		}
		if form = jsonForm(x, v, p); x.Err != nil {
			return
		}
	}
	form.Write(t, x.Lim, v)
}

var plainJSON = value.NewJSON(nil)

// jsonForm returns the options for the parameters of tojson, nil after a failure.
func jsonForm(x *rt.Context, v value.Value, p rt.Params) *value.JSON {
	var sep []value.Value
	if !value.IsNone(p[2]) {
		if sep = x.Elements(p[2]); len(sep) != 2 {
			x.Failf(value.Other, "separators must have 2 items, not %d", len(sep))
			return nil
		}
	}
	if _, text := v.(*value.Str); text { // for a string Python ignores the other options
		p[1], sep = nil, nil
	}
	j := value.NewJSON(nil)
	if !value.IsNone(p[1]) {
		indent := indentText(x, p[1])
		j = value.NewJSON(&indent.S)
		j.From = indent.Field()
	}
	j.EnsureASCII = p.Flag(0, false)
	j.SortKeys = p.Flag(3, false)
	if sep != nil {
		item, key := x.StrArg(sep[0]), x.StrArg(sep[1])
		j.Item, j.Key = item.S, key.S
		j.From = cmp.Or(j.From, item.Field(), key.Field())
	}
	return j
}
