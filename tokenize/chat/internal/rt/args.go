package rt

import (
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Func implements a filter or a method: self|name(args) or self.name(args).
type Func func(x *Context, self value.Value, a Args) value.Value

// Test implements "v is name(args)".
type Test func(x *Context, v value.Value, a Args) bool

// Callable is a value that a template can call.
type Callable interface {
	value.Value
	Call(x *Context, a Args) value.Value
}

// Builtin is a global function or a bound method.
type Builtin struct {
	Fn func(x *Context, a Args) value.Value
}

// TypeName implements value.Value.
func (f *Builtin) TypeName() string { return "builtin_function_or_method" }

// Call implements Callable.
func (f *Builtin) Call(x *Context, a Args) value.Value { return f.Fn(x, a) }

// Args are the evaluated arguments of a call, valid only during it.
type Args struct {
	Pos []value.Value
	Kw  []Keyword
}

// Keyword is one name=value argument.
type Keyword struct {
	Name string
	V    value.Value
}

// Get returns the keyword argument of a name, or nil.
func (a *Args) Get(name string) value.Value {
	for i := range a.Kw {
		if a.Kw[i].Name == name {
			return a.Kw[i].V
		}
	}
	return nil
}

// None reports whether there are no arguments.
func (a *Args) None() bool { return len(a.Pos)+len(a.Kw) == 0 }

// Dict returns a new dict of the keyword arguments.
func (a *Args) Dict() *value.Dict {
	d := value.NewDict(len(a.Kw))
	for _, k := range a.Kw {
		d.SetString(k.Name, k.V)
	}
	return d
}

// Params holds arguments in parameter order, nil where none was given.
type Params [5]value.Value

// Flag returns the truth value of parameter i, or absent if it was not given.
func (p *Params) Flag(i int, absent bool) bool {
	if p[i] == nil {
		return absent
	}
	return value.Truth(p[i])
}

// Signature is the parameter list of a Python function: see Parse.
type Signature struct {
	name       string
	params     []string
	required   int  // number of leading parameters that must be given
	positional bool // no keyword arguments are accepted
}

// Parse parses "name(a, b=, c=, /)": parameters that end in = are optional, and with / at the end no argument may be
// given by keyword.
func Parse(text string) Signature {
	name, list, _ := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	s := Signature{name: name}
	for _, p := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		switch p, optional := strings.CutSuffix(p, "="); {
		case p == "/":
			s.positional = true
		default:
			s.params = append(s.params, p)
			if !optional {
				s.required = len(s.params)
			}
		}
	}
	return s
}

// Def declares a builtin by its Python signature, without the value that it is applied to: see Parse.
func Def(sig string, f func(x *Context, self value.Value, p Params) value.Value) Func {
	s := Parse(sig)
	return func(x *Context, self value.Value, a Args) value.Value {
		var p Params
		if !s.Bind(x, a, &p) {
			return value.Stopped
		}
		return f(x, self, p)
	}
}

// DefTest is Def for tests.
func DefTest(sig string, f func(x *Context, v value.Value, p Params) bool) Test {
	s := Parse(sig)
	return func(x *Context, v value.Value, a Args) bool {
		var p Params
		return s.Bind(x, a, &p) && f(x, v, p)
	}
}

// DefGlobal is Def for global functions.
func DefGlobal(sig string, f func(x *Context, p Params) value.Value) *Builtin {
	bound := Def(sig, func(x *Context, _ value.Value, p Params) value.Value { return f(x, p) })
	return &Builtin{Fn: func(x *Context, a Args) value.Value { return bound(x, nil, a) }}
}

// Bind assigns arguments to parameters as Python does. All entries of p must be nil before the call.
func (s *Signature) Bind(x *Context, a Args, p *Params) bool {
	if s.positional && len(a.Kw) > 0 {
		x.Failf(value.Type, "%s() takes no keyword arguments", s.name)
		return false
	}
	if len(a.Pos) > len(s.params) {
		x.Failf(value.Type, "%s() takes at most %d arguments (%d given)", s.name, len(s.params), len(a.Pos))
		return false
	}
	copy(p[:], a.Pos)
	if len(a.Kw) == 0 && len(a.Pos) >= s.required {
		return true
	}
	for _, k := range a.Kw {
		found := false
		for i, n := range s.params {
			if n != k.Name {
				continue
			}
			if p[i] != nil {
				x.Failf(value.Type, "%s() got multiple values for argument '%s'", s.name, n)
				return false
			}
			p[i], found = k.V, true
		}
		if !found {
			x.Failf(value.Type, "%s() got an unexpected keyword argument '%s'", s.name, k.Name)
			return false
		}
	}
	for i := range s.required {
		if p[i] == nil {
			x.Failf(value.Type, "%s() missing required argument: '%s'", s.name, s.params[i])
			return false
		}
	}
	return true
}

// OptInt returns an optional index: nil for None and nil, and the nearest int64 for an integer beyond 64 bits.
func (x *Context) OptInt(v value.Value) *int64 {
	if value.IsNone(v) {
		return nil
	}
	if !value.IsInt(v) {
		x.Failf(value.Type, "slice indices must be integers or None or have an __index__ method")
		return nil
	}
	n, ok := value.AsInt(v)
	if !ok {
		n = int64(v.(*value.Int).Big.Sign()) * (1<<63 - 1)
	}
	return &n
}

// The methods below convert an argument to a type. A wrong type is a failure, and the result is then 0, empty or nil.

// Operand returns an integer that a Jinja builtin computes with, absent for nil. An Undefined fails as Undefined.
func (x *Context) Operand(v value.Value, absent int64) int64 {
	if u, ok := v.(*value.Undefined); ok {
		x.Fail(u.Use())
	}
	return x.Int(v, absent)
}

// Int returns an integer for a Python builtin, absent for nil. An Undefined fails like any object that is not an
// integer.
func (x *Context) Int(v value.Value, absent int64) int64 {
	if v == nil {
		return absent
	}
	n, ok := value.AsInt(v)
	switch {
	case !value.IsInt(v):
		x.Failf(value.Type, "'%s' object cannot be interpreted as an integer", v.TypeName())
	case !ok:
		x.Failf(value.Other, "Python int too large to convert to C ssize_t")
		return 0
	}
	return n
}

// NoAttr fails because a builtin uses an attribute that v lacks.
func (x *Context) NoAttr(v value.Value, name string) value.Value {
	if u, ok := v.(*value.Undefined); ok {
		return x.Fail(u.Use())
	}
	return x.Failf(value.Other, "'%s' object has no attribute '%s'", v.TypeName(), name)
}

// StrArg returns a string argument.
func (x *Context) StrArg(v value.Value) *value.Str {
	s, ok := v.(*value.Str)
	if !ok {
		x.Failf(value.Type, "expected str instance, %s found", v.TypeName())
		return value.Empty
	}
	return s
}

// Chars returns an optional set of characters; nil means white space.
func (x *Context) Chars(v value.Value, name string) *value.Str {
	s, ok := v.(*value.Str)
	if !ok && !value.IsNone(v) {
		x.Failf(value.Type, "%s arg must be None or str", name)
	}
	return s
}
