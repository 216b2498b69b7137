package eval

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// attrGetter returns the function that fetches "a.b.0" from an item.
func (x *exec) attrGetter(attr value.Value, fold bool, def value.Value) func(value.Value) value.Value {
	var parts []value.Value
	switch at := attr.(type) {
	case nil, *value.None:
	case *value.Str:
		if !x.make(64 * len(at.S)) {
			break
		}
		for _, p := range strings.Split(at.S, ".") {
			if d, _ := value.Lit(p).Is(&x.lim.Limits, "isdigit"); d {
				if n, ok := value.ParseInt(p, 10); ok {
					parts = append(parts, n)
					continue
				}
			}
			parts = append(parts, value.Lit(p))
		}
	default:
		parts = []value.Value{attr}
	}
	return func(v value.Value) value.Value {
		for _, p := range parts {
			if !x.step(1) {
				return undefined
			}
			v = x.getitem(v, p)
			if !isNone(def) && isUndefined(v) {
				v = def
			}
		}
		if s, ok := v.(*value.Str); ok && fold {
			return s.Lower(&x.lim.Limits)
		}
		return v
	}
}

func filterMap(x *exec, v value.Value, a args) value.Value {
	pos := append([]value.Value(nil), a.pos...)
	var each func(value.Value) value.Value
	if at := a.get("attribute"); len(pos) == 0 && at != nil {
		for _, k := range a.kw {
			if k.name != "attribute" && k.name != "default" {
				return failingIter(x, v, value.Other, "Unexpected keyword argument '"+k.name+"'")
			}
		}
		each = x.attrGetter(at, false, a.get("default"))
	} else {
		if len(pos) == 0 {
			return failingIter(x, v, value.Other, "map requires a filter argument")
		}
		name, ok := pos[0].(*value.Str)
		rest := args{pos: pos[1:], kw: slices.Clone(a.kw)}
		each = func(it value.Value) value.Value {
			var f filterFunc
			if ok {
				f = x.lib.filters[name.S]
			}
			if f == nil {
				x.fail(value.Hashable(&x.lim.Limits, pos[0]))
				return x.failf(value.Other, "No filter named %s.", value.ReprString(pos[0]))
			}
			return f(x, it, rest)
		}
	}
	return x.lazy(v, func(it value.Value) value.Value { return each(it) })
}

// failingIter is a generator over v that fails when it is first asked for an
// item, if there are any.
func failingIter(x *exec, v value.Value, c value.Class, msg string) *value.Iter {
	return &value.Iter{Name: "generator", Next: func() value.Value {
		if value.Truth(v) {
			x.fail(&value.Fault{Class: c, Msg: msg})
		}
		return nil
	}}
}

// lazy is a generator of f of each item, without those for which f gives nil.
// As in Jinja nothing happens before the first item is asked for.
func (x *exec) lazy(v value.Value, f func(value.Value) value.Value) *value.Iter {
	var source func() value.Value
	return &value.Iter{Name: "generator", Next: func() value.Value {
		if source == nil {
			source = func() value.Value { return nil }
			if value.Truth(v) {
				s, _, fault := value.Iterate(v)
				if fault != nil {
					x.fail(fault)
					return nil
				}
				source = s
			}
		}
		for it := source(); it != nil && x.step(1); it = source() {
			r := f(it)
			if x.err != nil {
				return nil
			}
			if r != nil {
				return r
			}
		}
		return nil
	}, Depth: x.nested(v)}
}

// selection is select, reject, selectattr and rejectattr.
func selection(byAttr, keep bool) filterFunc {
	return func(x *exec, v value.Value, a args) value.Value {
		pos := append([]value.Value(nil), a.pos...)
		get := func(it value.Value) value.Value { return it }
		if byAttr {
			if len(pos) == 0 {
				return failingIter(x, v, value.Other, "Missing parameter for attribute name")
			}
			get = x.attrGetter(pos[0], false, nil)
			pos = pos[1:]
		}
		holds := value.Truth
		if len(pos) > 0 {
			name, ok := pos[0].(*value.Str)
			rest := args{pos: pos[1:], kw: slices.Clone(a.kw)}
			holds = func(it value.Value) bool {
				var t testFunc
				if ok {
					t = x.lib.tests[name.S]
				}
				if t == nil {
					x.fail(value.Hashable(&x.lim.Limits, pos[0]))
					x.failf(value.Other, "No test named %s.", value.ReprString(pos[0]))
					return false
				}
				return t(x, it, rest)
			}
		}
		return x.lazy(v, func(it value.Value) value.Value {
			if holds(get(it)) == keep {
				return it
			}
			return nil
		})
	}
}
