package eval

import "github.com/turnpack/turnpack/tokenize/chat/internal/value"

// argList is the code of the arguments of a call.
type argList struct {
	pos         []expr
	names       []string
	kw          []expr
	star, star2 expr
	simple      bool // positional only
}

func (l *argList) none() bool { return l.simple && len(l.pos) == 0 }

// stackMark is the top of both stacks of a run.
type stackMark struct{ values, keywords int }

func (x *exec) mark() stackMark { return stackMark{len(x.stack), len(x.keywords)} }

func (x *exec) pop(m stackMark) {
	x.stack, x.keywords = x.stack[:m.values], x.keywords[:m.keywords]
}

// eval pushes arguments on the stacks of the run; the caller pops them when the call
// is over, so callees copy what they keep.
func (l *argList) eval(x *exec) args {
	if l.none() {
		return args{}
	}
	mark := x.mark()
	for _, e := range l.pos {
		v := e.eval(x)
		x.stack = append(x.stack, v)
	}
	if l.simple {
		return args{pos: x.stack[mark.values:len(x.stack):len(x.stack)]}
	}
	if l.star != nil {
		items, fault := value.Elements(&x.lim.Limits, l.star.eval(x))
		x.fail(fault)
		x.stack = append(x.stack, items...)
	}
	a := args{pos: x.stack[mark.values:len(x.stack):len(x.stack)]}
	for i, e := range l.kw {
		v := e.eval(x)
		x.keywords = append(x.keywords, kwarg{l.names[i], v})
	}
	a.kw = x.keywords[mark.keywords:len(x.keywords):len(x.keywords)]
	if l.star2 != nil {
		v := l.star2.eval(x)
		if u, ok := v.(*value.Undefined); ok {
			x.fail(u.Use())
		}
		d, ok := v.(*value.Dict)
		if !ok {
			x.failf(value.Type, "argument after ** must be a mapping")
			return a
		}
		for i := 0; i < d.Len(); i++ {
			k, ok := d.KeyString(i)
			if !ok {
				x.failf(value.Type, "keywords must be strings")
				return a
			}
			if a.get(k) != nil {
				x.failf(value.Type, "got multiple values for keyword argument '%s'", k)
				return a
			}
			a.kw = append(a.kw, kwarg{k, d.Val(i)})
		}
	}
	return a
}

// elements is value.Elements with the limit of the run and the steps counted.
func elements(x *exec, v value.Value) ([]value.Value, bool) {
	items, fault := value.Elements(&x.lim.Limits, v)
	if fault != nil {
		x.fail(fault)
		return nil, false
	}
	return items, x.step(len(items))
}

// optInt is an optional index; None and nil are open, and one beyond 64 bits is as
// good as the largest.
func (x *exec) optInt(v value.Value) *int64 {
	if isNone(v) {
		return nil
	}
	if !value.IsInt(v) {
		x.failf(value.Type, "slice indices must be integers or None or have an __index__ method")
		return nil
	}
	n, ok := value.AsInt(v)
	if !ok {
		n = int64(v.(*value.Int).Big.Sign()) * (1<<63 - 1)
	}
	return &n
}

// operandArg is an integer that a builtin of Jinja's computes with, so that an
// Undefined fails as Undefined.
func (x *exec) operandArg(v value.Value) (int64, bool) {
	if u, ok := v.(*value.Undefined); ok {
		x.fail(u.Use())
		return 0, false
	}
	return x.intArg(v)
}

// intArg is an integer that goes to a builtin of Python's, which takes an
// Undefined for any object that is no integer.
func (x *exec) intArg(v value.Value) (int64, bool) {
	if !value.IsInt(v) {
		x.failf(value.Type, "'%s' object cannot be interpreted as an integer", v.TypeName())
		return 0, false
	}
	n, ok := value.AsInt(v)
	if !ok {
		x.failf(value.Other, "Python int too large to convert to C ssize_t")
	}
	return n, ok
}

// noAttr is the failure of a builtin that uses an attribute its value lacks.
func (x *exec) noAttr(v value.Value, name string) value.Value {
	if u, ok := v.(*value.Undefined); ok {
		return x.fail(u.Use())
	}
	return x.failf(value.Other, "'%s' object has no attribute '%s'", v.TypeName(), name)
}

// strArg is a string argument.
func (x *exec) strArg(v value.Value) (*value.Str, bool) {
	if s, ok := v.(*value.Str); ok {
		return s, true
	}
	x.failf(value.Type, "expected str instance, %s found", v.TypeName())
	return nil, false
}

// positional refuses keywords and checks the number of arguments.
func (x *exec) positional(a args, name string, min, max int) bool {
	if len(a.kw) > 0 {
		x.failf(value.Type, "%s() takes no keyword arguments", name)
		return false
	}
	if len(a.pos) < min || len(a.pos) > max {
		x.failf(value.Type, "%s() takes %d to %d arguments (%d given)", name, min, max, len(a.pos))
		return false
	}
	return true
}

func (x *exec) oneStr(a args, name string) (*value.Str, bool) {
	if !x.positional(a, name, 1, 1) {
		return nil, false
	}
	return x.strArg(a.pos[0])
}

// chars is an optional set of characters; nil means white space.
func (x *exec) chars(v value.Value, name string) (*value.Str, bool) {
	switch v := v.(type) {
	case nil, *value.None:
		return nil, true
	case *value.Str:
		return v, true
	}
	x.failf(value.Type, "%s arg must be None or str", name)
	return nil, false
}
