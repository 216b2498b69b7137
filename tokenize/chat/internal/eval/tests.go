package eval

import "github.com/turnpack/turnpack/tokenize/chat/internal/value"

// testFunc answers "v is name(args)".
type testFunc func(x *exec, v value.Value, a args) bool

// typeTests are the tests that have no arguments and only look at their value.
var typeTests = map[string]func(v value.Value) bool{
	"defined":   func(v value.Value) bool { _, u := v.(*value.Undefined); return !u },
	"undefined": func(v value.Value) bool { _, u := v.(*value.Undefined); return u },
	"none":      func(v value.Value) bool { _, ok := v.(*value.None); return ok },
	"boolean":   func(v value.Value) bool { _, ok := v.(*value.Bool); return ok },
	"true":      func(v value.Value) bool { b, ok := v.(*value.Bool); return ok && b.V },
	"false":     func(v value.Value) bool { b, ok := v.(*value.Bool); return ok && !b.V },
	"integer":   func(v value.Value) bool { _, ok := v.(*value.Int); return ok },
	"float":     func(v value.Value) bool { _, ok := v.(*value.Float); return ok },
	"string":    func(v value.Value) bool { _, ok := v.(*value.Str); return ok },
	"mapping":   func(v value.Value) bool { _, ok := v.(*value.Dict); return ok },
	"escaped":   func(v value.Value) bool { s, ok := v.(*value.Str); return ok && s.Markup },
	"callable":  callable,
	"iterable":  iterable,
	"number": func(v value.Value) bool {
		switch v.(type) {
		case *value.Int, *value.Bool, *value.Float:
			return true
		}
		return false
	},
	"sequence": func(v value.Value) bool {
		switch v.(type) {
		case *value.Str, *value.List, *value.Dict, *value.Range, *value.Bytes, *value.Undefined:
			return true
		}
		return false
	},
}

// tests are the tests of Jinja. Adding one is adding an entry.
var tests = newTests()

func newTests() map[string]testFunc {
	cmp := func(op string) testFunc {
		return func(x *exec, v value.Value, a args) bool {
			if !x.positional(a, op, 1, 1) {
				return false
			}
			r, fault := x.compare(op, v, a.pos[0])
			x.fail(fault)
			return r
		}
	}
	plain := func(name string, f func(value.Value) bool) testFunc {
		return func(x *exec, v value.Value, a args) bool {
			if len(a.pos)+len(a.kw) > 0 {
				x.failf(value.Type, "test_%s() takes 1 positional argument but %d were given", name, 1+len(a.pos))
				return false
			}
			return f(v)
		}
	}
	mod := func(name string, want int64) testFunc {
		return func(x *exec, v value.Value, a args) bool {
			if _, ok := x.bind(a, name, 0); !ok {
				return false
			}
			r := x.val(value.Arith(&x.lim.Limits, "%", v, value.NewInt(2)))
			eq, fault := value.Equal(&x.lim.Limits, r, value.NewInt(want))
			x.fail(fault)
			return eq
		}
	}
	named := func(known func(lib *library, name string) bool) testFunc {
		return func(x *exec, v value.Value, a args) bool {
			if _, ok := x.bind(a, "test", 0); !ok {
				return false
			}
			x.fail(value.Hashable(&x.lim.Limits, v))
			s, ok := v.(*value.Str)
			return ok && known(x.lib, s.S)
		}
	}
	m := map[string]testFunc{
		"odd":  mod("odd", 1),
		"even": mod("even", 0),
		"divisibleby": func(x *exec, v value.Value, a args) bool {
			p, ok := x.bind(a, "divisibleby", 1, "num")
			if !ok {
				return false
			}
			r := x.val(value.Arith(&x.lim.Limits, "%", v, p[0]))
			eq, fault := value.Equal(&x.lim.Limits, r, value.NewInt(0))
			x.fail(fault)
			return eq
		},
		"filter": named(func(lib *library, s string) bool { return lib.filters[s] != nil }),
		"test":   named(func(lib *library, s string) bool { return lib.tests[s] != nil }),
		"sameas": func(x *exec, v value.Value, a args) bool {
			p, ok := x.bind(a, "sameas", 1, "other")
			return ok && value.Same(v, p[0])
		},
		"in": func(x *exec, v value.Value, a args) bool {
			p, ok := x.bind(a, "in", 1, "seq")
			if !ok {
				return false
			}
			r, fault := x.compare("in", v, p[0])
			x.fail(fault)
			return r
		},
		"lower": func(x *exec, v value.Value, a args) bool {
			x.bind(a, "lower", 0)
			r, _ := x.str(v).Is(&x.lim.Limits, "islower")
			return r
		},
		"upper": func(x *exec, v value.Value, a args) bool {
			x.bind(a, "upper", 0)
			r, _ := x.str(v).Is(&x.lim.Limits, "isupper")
			return r
		},
	}
	for name, f := range typeTests {
		m[name] = plain(name, f)
	}
	for op, names := range map[string][]string{
		"==": {"==", "eq", "equalto"}, "!=": {"!=", "ne"},
		">": {">", "gt", "greaterthan"}, ">=": {">=", "ge"},
		"<": {"<", "lt", "lessthan"}, "<=": {"<=", "le"},
	} {
		for _, n := range names {
			m[n] = cmp(op)
		}
	}
	return m
}

func callable(v value.Value) bool {
	switch v.(type) {
	case *Func, *Macro, *Joiner, *blockRef, *dictType, *value.Undefined, *Loop:
		return true
	}
	return false
}

func iterable(v value.Value) bool {
	switch v.(type) {
	case *value.Str, *value.List, *value.Dict:
		return true
	}
	_, _, fault := value.Iterate(v)
	return fault == nil
}
