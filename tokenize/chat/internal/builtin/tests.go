package builtin

import (
	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// typeTests are the tests without arguments that only examine their value.
var typeTests = map[string]func(v value.Value) bool{
	"defined":   func(v value.Value) bool { return !value.IsUndefined(v) },
	"undefined": value.IsUndefined,
	"none":      is[*value.None],
	"boolean":   is[*value.Bool],
	"true":      func(v value.Value) bool { b, ok := v.(*value.Bool); return ok && b.V },
	"false":     func(v value.Value) bool { b, ok := v.(*value.Bool); return ok && !b.V },
	"integer":   is[*value.Int],
	"float":     is[*value.Float],
	"string":    is[*value.Str],
	"mapping":   is[*value.Dict],
	"escaped":   func(v value.Value) bool { s, ok := v.(*value.Str); return ok && s.Markup },
	"callable":  callable,
	"iterable":  iterable,
	"number":    func(v value.Value) bool { return value.NumberOf(v).OK() },
	"sequence": func(v value.Value) bool {
		switch v.(type) {
		case *value.Str, *value.List, *value.Dict, *value.Range, *value.Bytes, *value.Undefined:
			return true
		}
		return false
	},
}

func is[T value.Value](v value.Value) bool {
	_, ok := v.(T)
	return ok
}

// tests are the tests of Jinja. A new test is a new entry, as with filters.
var tests = newTests()

func newTests() map[string]rt.Test {
	m := map[string]rt.Test{
		"odd":         rt.DefTest("odd()", func(x *rt.Context, v value.Value, _ rt.Params) bool { return remainder(x, v, value.NewInt(2), 1) }),
		"even":        rt.DefTest("even()", func(x *rt.Context, v value.Value, _ rt.Params) bool { return remainder(x, v, value.NewInt(2), 0) }),
		"divisibleby": rt.DefTest("divisibleby(num)", func(x *rt.Context, v value.Value, p rt.Params) bool { return remainder(x, v, p[0], 0) }),
		"filter":      named(func(lib *rt.Library, s string) bool { return lib.Filters[s] != nil }),
		"test":        named(func(lib *rt.Library, s string) bool { return lib.Tests[s] != nil }),
		"sameas":      rt.DefTest("sameas(other)", func(_ *rt.Context, v value.Value, p rt.Params) bool { return value.Same(v, p[0]) }),
		"in":          comparison("in(seq)", "in"),
		"lower":       textual("islower"),
		"upper":       textual("isupper"),
	}
	for name, f := range typeTests {
		m[name] = rt.DefTest("test_"+name+"()", func(_ *rt.Context, v value.Value, _ rt.Params) bool { return f(v) })
	}
	for op, names := range map[string][]string{
		"==": {"==", "eq", "equalto"}, "!=": {"!=", "ne"},
		">": {">", "gt", "greaterthan"}, ">=": {">=", "ge"},
		"<": {"<", "lt", "lessthan"}, "<=": {"<=", "le"},
	} {
		for _, n := range names {
			m[n] = comparison(n+"(other, /)", op)
		}
	}
	return m
}

func comparison(sig, op string) rt.Test {
	return rt.DefTest(sig, func(x *rt.Context, v value.Value, p rt.Params) bool {
		return value.Relation(x.Lim, op, v, p[0])
	})
}

// remainder reports whether v % by is want.
func remainder(x *rt.Context, v, by value.Value, want int64) bool {
	return value.Equal(x.Lim, py.Arith(x.Lim, "%", v, by), value.NewInt(want))
}

// named returns a test for whether a builtin of a given name exists.
func named(known func(lib *rt.Library, name string) bool) rt.Test {
	return rt.DefTest("test()", func(x *rt.Context, v value.Value, _ rt.Params) bool {
		value.Hashable(x.Lim, v)
		s, ok := v.(*value.Str)
		return ok && known(x.Lib, s.S)
	})
}

// textual returns a test that calls a method of str.
func textual(method string) rt.Test {
	return rt.DefTest(method+"()", func(x *rt.Context, v value.Value, _ rt.Params) bool {
		return py.Is(x.Str(v), x.Lim, method)
	})
}

func callable(v value.Value) bool { return is[rt.Callable](v) || value.IsUndefined(v) }

func iterable(v value.Value) bool {
	switch v.(type) { // the types that templates test most
	case *value.Str, *value.List, *value.Dict:
		return true
	}
	next, _ := value.Iterate(v)
	return next != nil
}
