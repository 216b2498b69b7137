package builtin

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/object"
	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// attrGetter returns a function that gets an attribute path such as "a.b.0" of an item.
func attrGetter(x *rt.Context, attr value.Value, fold bool, def value.Value) func(value.Value) value.Value {
	var parts []value.Value
	switch at := attr.(type) {
	case nil, *value.None:
	case *value.Str:
		if !x.Make(64 * len(at.S)) {
			break
		}
		for _, p := range strings.Split(at.S, ".") {
			if py.Is(value.Lit(p), x.Lim, "isdigit") && x.Lim.Digits(len(p)) {
				if n, ok := py.ParseInt(p, 10); ok {
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
			if !x.Step(1) {
				return value.Stopped
			}
			v = object.Getitem(x, v, p)
			if !value.IsNone(def) && value.IsUndefined(v) {
				v = def
			}
		}
		if s, ok := v.(*value.Str); ok && fold {
			return py.Lower(s, x.Lim)
		}
		return v
	}
}

func filterMap(x *rt.Context, v value.Value, a rt.Args) value.Value {
	pos := append([]value.Value(nil), a.Pos...)
	var get func(value.Value) value.Value
	if at := a.Get("attribute"); len(pos) == 0 && at != nil {
		for _, k := range a.Kw {
			if k.Name != "attribute" && k.Name != "default" {
				return failing(x, v, "Unexpected keyword argument '"+k.Name+"'")
			}
		}
		get = attrGetter(x, at, false, a.Get("default"))
	} else {
		if len(pos) == 0 {
			return failing(x, v, "map requires a filter argument")
		}
		rest := rt.Args{Pos: pos[1:], Kw: slices.Clone(a.Kw)}
		get = func(it value.Value) value.Value {
			if f := builtin(x, "filter", x.Lib.Filters, pos[0]); f != nil {
				return f(x, it, rest)
			}
			return value.Stopped
		}
	}
	return lazy(x, v, get)
}

// builtin returns the filter or test with the given name, nil after a failure.
func builtin[F any](x *rt.Context, what string, all map[string]F, name value.Value) (f F) {
	s, text := name.(*value.Str)
	if text {
		if f, ok := all[s.S]; ok {
			return f
		}
	}
	value.Hashable(x.Lim, name)
	x.Failf(value.Other, "No %s named %s.", what, value.ReprString(name))
	return f
}

// failing returns a generator over v that fails with msg unless v is empty.
func failing(x *rt.Context, v value.Value, msg string) *value.Iter {
	return generator(x, v, func() func() value.Value {
		if value.Truth(v) {
			x.Failf(value.Other, "%s", msg)
		}
		return each(nil)
	})
}

// lazy returns a generator of f(item) for the items of v. v may be any empty value.
func lazy(x *rt.Context, v value.Value, f func(value.Value) value.Value) *value.Iter {
	return generator(x, v, func() func() value.Value {
		if !value.Truth(v) {
			return each(nil)
		}
		return mapped(x, iterate(x, v), f)
	})
}

// mapped returns an iterator over the non-nil results of f for items.
func mapped(x *rt.Context, items func() value.Value, f func(value.Value) value.Value) func() value.Value {
	return func() value.Value {
		for it := items(); it != nil && x.Step(1); it = items() {
			r := f(it)
			if x.Err != nil {
				return nil
			}
			if r != nil {
				return r
			}
		}
		return nil
	}
}

// selection implements select, reject, selectattr and rejectattr.
func selection(byAttr, keep bool) rt.Func {
	return func(x *rt.Context, v value.Value, a rt.Args) value.Value {
		pos := append([]value.Value(nil), a.Pos...)
		get := func(it value.Value) value.Value { return it }
		if byAttr {
			if len(pos) == 0 {
				return failing(x, v, "Missing parameter for attribute name")
			}
			get = attrGetter(x, pos[0], false, nil)
			pos = pos[1:]
		}
		holds := value.Truth
		if len(pos) > 0 {
			rest := rt.Args{Pos: pos[1:], Kw: slices.Clone(a.Kw)}
			holds = func(it value.Value) bool {
				t := builtin(x, "test", x.Lib.Tests, pos[0])
				return t != nil && t(x, it, rest)
			}
		}
		return lazy(x, v, func(it value.Value) value.Value {
			if holds(get(it)) == keep {
				return it
			}
			return nil
		})
	}
}
