package builtin

import (
	"cmp"

	"github.com/turnpack/turnpack/internal/pytext"
	"github.com/turnpack/turnpack/tokenize/chat/internal/object"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// cycler is the result of cycler().
type cycler struct {
	items []value.Value
	pos   int
}

// TypeName implements value.Value.
func (c *cycler) TypeName() string { return "Cycler" }

// Attr implements object.Attrs.
func (c *cycler) Attr(name string) value.Value {
	switch name {
	case "next":
		return rt.DefGlobal("next()", func(*rt.Context, rt.Params) value.Value {
			v := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return v
		})
	case "reset":
		return rt.DefGlobal("reset()", func(*rt.Context, rt.Params) value.Value {
			c.pos = 0
			return value.Nil
		})
	case "current":
		return c.items[c.pos]
	case "pos":
		return value.NewInt(int64(c.pos))
	case "items":
		return &value.List{Items: c.items, Tuple: true}
	}
	return nil
}

// joiner is the result of joiner(): it returns its separator from the second call on.
type joiner struct {
	sep  value.Value
	used bool
}

// TypeName implements value.Value.
func (j *joiner) TypeName() string { return "Joiner" }

var signatureNone = rt.Parse("__call__()")

// Call implements rt.Callable.
func (j *joiner) Call(x *rt.Context, a rt.Args) value.Value {
	if !signatureNone.Bind(x, a, &rt.Params{}) {
		return value.Stopped
	}
	if !j.used {
		j.used = true
		return value.Empty
	}
	return j.sep
}

// globals are the variables that every template has. An input of the same name hides a global.
var globals = map[string]value.Value{
	"range":     rt.DefGlobal("range(start, stop=, step=, /)", globalRange),
	"dict":      &object.DictType{},
	"namespace": &rt.Builtin{Fn: object.NewNamespace},
	"cycler": &rt.Builtin{Fn: func(x *rt.Context, a rt.Args) value.Value {
		if len(a.Kw) > 0 {
			return x.Failf(value.Type, "cycler() takes no keyword arguments")
		}
		if len(a.Pos) == 0 {
			return x.Failf(value.Other, "at least one item has to be provided")
		}
		return &cycler{items: append([]value.Value(nil), a.Pos...)}
	}},
	"joiner": rt.DefGlobal("joiner(sep=)", func(_ *rt.Context, p rt.Params) value.Value {
		if p[0] == nil {
			p[0] = value.Lit(", ")
		}
		return &joiner{sep: p[0]}
	}),
	"lipsum": &rt.Builtin{Fn: func(x *rt.Context, _ rt.Args) value.Value {
		return x.Failf(value.Other, "lipsum() gives random text, which has no place in a reproducible batch")
	}},
	"raise_exception": rt.DefGlobal("raise_exception(message)", func(x *rt.Context, p rt.Params) value.Value {
		msg := "None"
		if !value.IsNone(p[0]) {
			msg = x.Str(p[0]).S
		}
		return x.Fail(&value.Fault{Class: value.Raised, Msg: msg})
	}),
	"strftime_now": rt.DefGlobal("strftime_now(format)", func(x *rt.Context, p rt.Params) value.Value {
		f, ok := p[0].(*value.Str)
		if !ok {
			return x.Failf(value.Type, "strftime() argument 1 must be str, not %s", p[0].TypeName())
		}
		if !x.Spend(100 * len(f.S)) {
			return value.Stopped
		}
		t := &value.Text{Lim: x.Lim}
		t.Changed(pytext.Strftime(x.Now(), f.S), f, 0, len(f.S))
		return t.Value()
	}),
}

func globalRange(x *rt.Context, p rt.Params) value.Value {
	n := [3]int64{2: 1}
	var from *value.Field
	for i, v := range p[:3] {
		if v == nil {
			continue
		}
		n[i] = x.Int(v, 0)
		from = cmp.Or(from, value.Origin(v))
	}
	r := &value.Range{Start: n[0], Stop: n[1], Step: n[2], F: from}
	if p[1] == nil {
		r.Start, r.Stop = 0, n[0]
	}
	if r.Step == 0 {
		return x.Failf(value.Other, "range() arg 3 must not be zero")
	}
	if r.Len() > x.Limits.Range {
		return x.Failf(value.Other, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", x.Limits.Range)
	}
	return r
}
