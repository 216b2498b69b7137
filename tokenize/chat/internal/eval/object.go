package eval

import (
	"cmp"
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Namespace is the object of namespace(): the only one whose attributes a
// template can set.
type Namespace struct {
	attrs *value.Dict
}

// TypeName implements value.Value.
func (n *Namespace) TypeName() string { return "Namespace" }

func (n *Namespace) set(name string, v value.Value) *value.Fault {
	if strings.HasPrefix(name, "_") {
		return value.Faultf(value.Security, "Chat templates cannot store underscore-prefixed attributes on a namespace, but got '%s'. Please rename the attribute.", name)
	}
	n.attrs.SetString(name, v)
	return nil
}

// maxSpaces is the number of namespaces whose memory is kept for the next run.
const maxSpaces = 256

// space is an empty namespace. When a run is over, nothing holds those that it made.
func (x *exec) space() *Namespace {
	if x.spaced == maxSpaces {
		return &Namespace{attrs: value.NewDict(2)}
	}
	if x.spaced == len(x.spaces) {
		x.spaces = append(x.spaces, &Namespace{attrs: value.NewDict(2)})
	}
	x.spaced++
	return x.spaces[x.spaced-1]
}

// Repr implements value.Reprer.
func (n *Namespace) Repr(t *value.Text, l *value.Limits, depth int) *value.Fault {
	t.Lit("<Namespace ")
	fault := value.WriteRepr(t, l, n.attrs, depth)
	t.Lit(">")
	return fault
}

// Cycler is the object of cycler().
type Cycler struct {
	items []value.Value
	pos   int
}

// TypeName implements value.Value.
func (c *Cycler) TypeName() string { return "Cycler" }

func (c *Cycler) attr(name string) value.Value {
	switch name {
	case "next":
		return &Func{Name: name, Fn: func(x *exec, a args) value.Value {
			if _, ok := x.bind(a, name, 0); !ok {
				return undefined
			}
			v := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return v
		}}
	case "reset":
		return &Func{Name: name, Fn: func(x *exec, a args) value.Value {
			if _, ok := x.bind(a, name, 0); !ok {
				return undefined
			}
			c.pos = 0
			return value.Nil
		}}
	case "current":
		return c.items[c.pos]
	case "pos":
		return value.NewInt(int64(c.pos))
	case "items":
		return &value.List{Items: c.items, Tuple: true}
	}
	return nil
}

// Joiner is the object of joiner(): its separator from the second call on.
type Joiner struct {
	sep  value.Value
	used bool
}

// TypeName implements value.Value.
func (j *Joiner) TypeName() string { return "Joiner" }

// selfRef is the variable self: the blocks of the template.
type selfRef struct{ x *exec }

// TypeName implements value.Value.
func (*selfRef) TypeName() string { return "TemplateReference" }

// Repr implements value.Reprer.
func (*selfRef) Repr(t *value.Text, _ *value.Limits, _ int) *value.Fault {
	t.Lit("<TemplateReference None>")
	return nil
}

// Iterate fails as Python does, which looks for the block 0.
func (s *selfRef) Iterate() func() value.Value {
	return func() value.Value {
		s.x.failf(value.Other, "0")
		return nil
	}
}

type blockRef struct{ name string }

// TypeName implements value.Value.
func (*blockRef) TypeName() string { return "BlockReference" }

// dictType is the global dict.
type dictType struct{}

// TypeName implements value.Value.
func (*dictType) TypeName() string { return "TemplateDict" }

// globals are the variables every template has. An input of the same name hides
// one.
var globals = map[string]value.Value{
	"range":     &Func{Name: "range", Fn: globalRange},
	"dict":      &dictType{},
	"namespace": &Func{Name: "namespace", Fn: globalNamespace},
	"cycler": &Func{Name: "cycler", Fn: func(x *exec, a args) value.Value {
		if len(a.kw) > 0 {
			return x.failf(value.Type, "cycler() takes no keyword arguments")
		}
		if len(a.pos) == 0 {
			return x.failf(value.Other, "at least one item has to be provided")
		}
		return &Cycler{items: append([]value.Value(nil), a.pos...)}
	}},
	"joiner": &Func{Name: "joiner", Fn: func(x *exec, a args) value.Value {
		p, _ := x.bind(a, "joiner", 0, "sep")
		if p[0] == nil {
			p[0] = value.Lit(", ")
		}
		return &Joiner{sep: p[0]}
	}},
	"lipsum": &Func{Name: "lipsum", Fn: func(x *exec, _ args) value.Value {
		return x.failf(value.Other, "lipsum() gives random text, which has no place in a reproducible batch")
	}},
	"raise_exception": &Func{Name: "raise_exception", Fn: func(x *exec, a args) value.Value {
		p, ok := x.bind(a, "raise_exception", 1, "message")
		if !ok {
			return undefined
		}
		msg := "None"
		if _, none := p[0].(*value.None); !none {
			msg = x.str(p[0]).S
		}
		return x.fail(&value.Fault{Class: value.Raised, Msg: msg})
	}},
	"strftime_now": &Func{Name: "strftime_now", Fn: func(x *exec, a args) value.Value {
		p, ok := x.bind(a, "strftime_now", 1, "format")
		if !ok {
			return undefined
		}
		f, ok := p[0].(*value.Str)
		if !ok {
			return x.failf(value.Type, "strftime() argument 1 must be str, not %s", p[0].TypeName())
		}
		if !x.spend(100 * len(f.S)) {
			return undefined
		}
		t := x.lim.NewText(f)
		t.Changed(strftime(x.in.Now(), f.S), f, 0, len(f.S))
		return t.Value()
	}},
}

func globalRange(x *exec, a args) value.Value {
	if len(a.kw) > 0 {
		return x.failf(value.Type, "range() takes no keyword arguments")
	}
	if len(a.pos) < 1 || len(a.pos) > 3 {
		return x.failf(value.Type, "range expected 1 to 3 arguments, got %d", len(a.pos))
	}
	var n [3]int64
	var from *value.Field
	for i, v := range a.pos {
		var ok bool
		if n[i], ok = x.intArg(v); !ok {
			return undefined
		}
		from = cmp.Or(from, value.Origin(v))
	}
	r := &value.Range{Start: n[0], Stop: n[1], Step: 1, F: from}
	switch len(a.pos) {
	case 1:
		r.Start, r.Stop = 0, n[0]
	case 3:
		r.Step = n[2]
	}
	if r.Step == 0 {
		return x.failf(value.Other, "range() arg 3 must not be zero")
	}
	if r.Len() > x.lim.Range {
		return x.failf(value.Other, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", x.lim.Range)
	}
	return r
}

func globalNamespace(x *exec, a args) value.Value {
	if !x.make(objectSize + entrySize*len(a.kw)) {
		return undefined
	}
	if len(a.pos) == 0 {
		ns := x.space()
		for _, k := range a.kw {
			x.fail(ns.set(k.name, k.v))
		}
		if x.err != nil {
			return undefined
		}
		return ns
	}
	d := x.newDict(a)
	if x.err != nil {
		return undefined
	}
	ns := x.space()
	src := d.(*value.Dict)
	for i := 0; i < src.Len(); i++ {
		name, ok := src.KeyString(i)
		if !ok {
			x.fail(ns.attrs.Set(&x.lim.Limits, src.Key(i), src.Val(i)))
			continue
		}
		x.fail(ns.set(name, src.Val(i)))
	}
	return ns
}

// newDict is dict(…).
func (x *exec) newDict(a args) value.Value {
	d := value.NewDict(len(a.kw))
	if !x.make(objectSize + entrySize*len(a.kw)) {
		return undefined
	}
	if len(a.pos) > 1 {
		return x.failf(value.Type, "dict expected at most 1 argument, got %d", len(a.pos))
	}
	if len(a.pos) == 1 {
		switch src := a.pos[0].(type) {
		case *value.Dict:
			if !x.make(entrySize * src.Len()) {
				return undefined
			}
			d = src.Clone(len(a.kw))
			d.F = nil
		case *value.Undefined:
			return x.fail(src.Use())
		default:
			pairs, _ := elements(x, a.pos[0])
			for i, p := range pairs {
				kv, fault := value.Elements(&x.lim.Limits, p)
				if fault != nil {
					return x.failf(value.Type, "cannot convert dictionary update sequence element #%d to a sequence", i)
				}
				if len(kv) != 2 {
					return x.failf(value.Other, "dictionary update sequence element #%d has length %d; 2 is required", i, len(kv))
				}
				x.fail(d.Set(&x.lim.Limits, kv[0], kv[1]))
			}
		}
	}
	for _, k := range a.kw {
		d.SetString(k.name, k.v)
	}
	return d
}
