package eval

import (
	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// args are the evaluated arguments of a call, valid only during it.
type args struct {
	pos []value.Value
	kw  []kwarg
}

type kwarg struct {
	name string
	v    value.Value
}

func (a *args) get(name string) value.Value {
	for i := range a.kw {
		if a.kw[i].name == name {
			return a.kw[i].v
		}
	}
	return nil
}

// Func is a builtin or bound method.
type Func struct {
	Name string
	Fn   func(x *exec, a args) value.Value
}

// TypeName implements value.Value.
func (f *Func) TypeName() string { return "builtin_function_or_method" }

const maxParams = 8

// bind assigns arguments to parameter names as Python does; what was not given
// is nil. The first min parameters must be given.
func (x *exec) bind(a args, fn string, min int, names ...string) (p [maxParams]value.Value, ok bool) {
	if len(a.pos) > len(names) {
		x.failf(value.Type, "%s() takes at most %d arguments (%d given)", fn, len(names), len(a.pos))
		return p, false
	}
	copy(p[:], a.pos)
	for _, k := range a.kw {
		found := false
		for i, n := range names {
			if n != k.name {
				continue
			}
			if p[i] != nil {
				x.failf(value.Type, "%s() got multiple values for argument '%s'", fn, n)
				return p, false
			}
			p[i], found = k.v, true
		}
		if !found {
			x.failf(value.Type, "%s() got an unexpected keyword argument '%s'", fn, k.name)
			return p, false
		}
	}
	for i := range min {
		if p[i] == nil {
			x.failf(value.Type, "%s() missing required argument: '%s'", fn, names[i])
			return p, false
		}
	}
	return p, true
}

func (e *callExpr) eval(x *exec) value.Value {
	v := e.run(x, false)
	x.at(e.pos)
	if x.err != nil {
		return undefined
	}
	return v
}

// emit prints the result; a macro writes straight to the output.
func (e *callExpr) emit(x *exec) {
	v := e.run(x, true)
	if v != nil {
		x.write(v)
	}
	x.at(e.pos)
}

// run calls. With direct, a macro writes to the output and nil is returned.
func (e *callExpr) run(x *exec, direct bool) value.Value {
	var fn value.Value
	var method methodFunc
	var self value.Value
	if e.method != nil {
		self = e.method.x.eval(x)
		if method = x.lib.method(self, e.method.name); method == nil {
			fn = x.getattr(self, e.method.name, e.method.key)
			x.at(e.method.pos)
		}
	} else {
		fn = e.fn.eval(x)
	}
	if x.err != nil {
		return undefined
	}
	mark := x.mark()
	a := e.args.eval(x)
	var r value.Value = undefined
	switch {
	case x.err != nil:
	case method != nil:
		r = method(x, self, a)
		x.step(1)
	default:
		if m, ok := fn.(*Macro); ok {
			r = x.macro(m, a, direct && !x.escape)
		} else {
			r = x.invoke(fn, a)
		}
	}
	x.pop(mark)
	return r
}

// invoke calls any value.
func (x *exec) invoke(fn value.Value, a args) value.Value {
	if !x.step(1) {
		return undefined
	}
	switch f := fn.(type) {
	case *Func:
		return f.Fn(x, a)
	case *Macro:
		return x.macro(f, a, false)
	case *Loop:
		p, ok := x.bind(a, "__call__", 1, "iterable")
		if !ok {
			return undefined
		}
		if f.code == nil {
			return x.failf(value.Type, "The loop must have the 'recursive' marker to be called recursively.")
		}
		text, _ := x.capture(func() signal { return f.code.recurse(x, p[0], f.up, int(f.depth)+1) })
		return text
	case *Joiner:
		if _, ok := x.bind(a, "__call__", 0); !ok {
			return undefined
		}
		if !f.used {
			f.used = true
			return value.Empty
		}
		return f.sep
	case *blockRef:
		text, _ := x.capture(func() signal { x.block(f.name); return next })
		return text
	case *value.Undefined:
		return x.fail(f.Use())
	case *dictType:
		return x.newDict(a)
	}
	return x.failf(value.Type, "'%s' object is not callable", fn.TypeName())
}

// macroCode is the code of a macro or call block. Slots are -1 when the body
// does not use the special variable.
type macroCode struct {
	functionCode
	name                    string // empty for call blocks
	pos                     syntax.Pos
	params                  []param
	caller, kwargs, varargs int
	accessesCaller          bool
	explicitCaller          bool
}

type param struct {
	name string
	slot int
	def  expr // may be nil
}

// Macro is a macro together with the variables it was defined among.
type Macro struct {
	code *macroCode
	act  *activation
}

// TypeName implements value.Value.
func (m *Macro) TypeName() string { return "Macro" }

// Repr implements value.Reprer.
func (m *Macro) Repr(t *value.Text, _ *value.Limits, _ int) *value.Fault {
	if m.code.name == "" {
		t.Lit("<Macro anonymous>")
	} else {
		t.Lit("<Macro '" + m.code.name + "'>")
	}
	return nil
}

func (m *Macro) label() string {
	if m.code.name == "" {
		return "None"
	}
	return "'" + m.code.name + "'"
}

// macro calls a macro. With direct it writes to the current output and returns
// nil.
func (x *exec) macro(m *Macro, a args, direct bool) value.Value {
	c := m.code
	if !x.make(objectSize + 16*len(c.fn.order)) {
		return undefined
	}
	act := &activation{slots: make([]value.Value, len(c.fn.order)), up: m.act}
	if !x.bindMacro(m, a, act) || !x.descend() {
		return undefined
	}
	defer func() { x.depth-- }()
	body := func() signal {
		saved := x.act
		x.act = act
		x.enter(c.loads)
		for i := range c.params {
			p := &c.params[i]
			if act.slots[p.slot] != nil {
				continue
			}
			if p.def != nil {
				act.slots[p.slot] = p.def.eval(x)
			} else {
				act.slots[p.slot] = &value.Undefined{Hint: "parameter '" + p.name + "' was not provided", Name: value.Lit(p.name)}
			}
		}
		sig := x.run(c.body)
		x.act = saved
		return sig
	}
	if direct {
		unjoined := x.unjoined
		x.unjoined = nil
		body()
		x.joined()
		x.unjoined = unjoined
		return nil
	}
	text, _ := x.capture(body)
	if x.escape {
		return text.Safe()
	}
	return text
}

func (x *exec) bindMacro(m *Macro, a args, act *activation) bool {
	c := m.code
	n := min(len(a.pos), len(c.params))
	for i := range n {
		act.slots[c.params[i].slot] = a.pos[i]
	}
	used := make([]bool, len(a.kw))
	foundCaller := n == len(c.params) && c.explicitCaller
	for _, p := range c.params[n:] {
		for i, k := range a.kw {
			if k.name == p.name {
				act.slots[p.slot] = k.v
				used[i] = true
			}
		}
		foundCaller = foundCaller || p.name == "caller"
	}
	if c.accessesCaller && !foundCaller {
		var caller value.Value
		for i, k := range a.kw {
			if k.name == "caller" {
				caller = k.v
				used[i] = true
			}
		}
		if caller == nil {
			caller = &value.Undefined{Hint: "No caller defined", Name: value.Lit("caller")}
		} else if _, none := caller.(*value.None); none {
			caller = &value.Undefined{Hint: "No caller defined", Name: value.Lit("caller")}
		}
		if c.caller >= 0 {
			act.slots[c.caller] = caller
		}
	}
	if c.kwargs >= 0 {
		d := value.NewDict(len(a.kw))
		for i, k := range a.kw {
			if !used[i] {
				d.SetString(k.name, k.v)
			}
		}
		act.slots[c.kwargs] = d
	} else {
		for i, k := range a.kw {
			if used[i] {
				continue
			}
			if a.get("caller") != nil {
				x.failf(value.Type, "macro %s was invoked with two values for the special caller argument. This is most likely a bug.", m.label())
			} else {
				x.failf(value.Type, "macro %s takes no keyword argument '%s'", m.label(), k.name)
			}
			return false
		}
	}
	if c.varargs >= 0 {
		act.slots[c.varargs] = &value.List{Items: append([]value.Value{}, a.pos[n:]...), Tuple: true}
	} else if len(a.pos) > len(c.params) {
		x.failf(value.Type, "macro %s takes not more than %d argument(s)", m.label(), len(c.params))
		return false
	}
	return true
}
