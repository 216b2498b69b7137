package eval

import (
	"slices"

	"github.com/turnpack/turnpack/tokenize/chat/internal/object"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// argList is the compiled arguments of a call.
type argList struct {
	pos         []expr
	names       []string
	kw          []expr
	star, star2 expr
	simple      bool // positional arguments only
}

// stackMark holds the heights of both stacks of a run.
type stackMark struct{ values, keywords int }

func (x *exec) mark() stackMark { return stackMark{len(x.stack), len(x.keywords)} }

func (x *exec) pop(m stackMark) {
	x.stack, x.keywords = x.stack[:m.values], x.keywords[:m.keywords]
}

// eval pushes the arguments on the stacks of the run. The caller pops them after the call, so callees copy what they
// keep.
func (l *argList) eval(x *exec) rt.Args {
	mark := x.mark()
	for _, e := range l.pos {
		v := e.eval(x)
		x.stack = append(x.stack, v)
	}
	if l.simple {
		return rt.Args{Pos: x.stack[mark.values:len(x.stack):len(x.stack)]}
	}
	if l.star != nil {
		x.stack = append(x.stack, value.Elements(x.Lim, l.star.eval(x))...)
	}
	a := rt.Args{Pos: x.stack[mark.values:len(x.stack):len(x.stack)]}
	for i, e := range l.kw {
		v := e.eval(x)
		x.keywords = append(x.keywords, rt.Keyword{Name: l.names[i], V: v})
	}
	a.Kw = x.keywords[mark.keywords:len(x.keywords):len(x.keywords)]
	if l.star2 != nil {
		v := l.star2.eval(x)
		if u, ok := v.(*value.Undefined); ok {
			x.Fail(u.Use())
		}
		d, ok := v.(*value.Dict)
		if !ok {
			x.Failf(value.Type, "argument after ** must be a mapping")
			return a
		}
		if !x.Make(200*d.Len()) || !x.Step(d.Len()*(1+len(l.kw))/nodesAStep) {
			return a
		}
		named := a
		for i := 0; i < d.Len(); i++ {
			k, ok := d.KeyString(i)
			if !ok {
				x.Failf(value.Type, "keywords must be strings")
				return a
			}
			if named.Get(k) != nil {
				x.Failf(value.Type, "got multiple values for keyword argument '%s'", k)
				return a
			}
			a.Kw = append(a.Kw, rt.Keyword{Name: k, V: d.Val(i)})
		}
	}
	return a
}

func (e *callExpr) eval(x *exec) value.Value {
	v := e.run(x, false)
	x.at(e.pos)
	if x.Err != nil {
		return value.Stopped
	}
	return v
}

// run makes the call. With direct set, a macro writes to the output and run returns nil.
func (e *callExpr) run(x *exec, direct bool) value.Value {
	var fn, self value.Value
	var method rt.Func
	if e.method != nil {
		self = e.method.x.eval(x)
		if method = object.Method(&x.Context, self, e.method.name); method == nil {
			fn = object.Getattr(&x.Context, self, e.method.name, e.method.key)
			x.at(e.method.pos)
		}
	} else {
		fn = e.fn.eval(x)
	}
	if x.Err != nil {
		return value.Stopped
	}
	mark := x.mark()
	a := e.args.eval(x)
	var r value.Value = value.Stopped
	switch {
	case x.Err != nil:
	case method != nil:
		r = method(&x.Context, self, a)
		x.Step(1)
		if _, ok := self.(*value.Dict); !ok { // methods of a dict return existing values
			x.countResult(r)
		}
	default:
		switch f := fn.(type) {
		case *Macro:
			x.Step(1)
			r = f.call(a, direct)
		case rt.Callable:
			x.Step(1)
			r = f.Call(&x.Context, a)
			x.countResult(r)
		case *value.Undefined:
			x.Fail(f.Use())
		default:
			x.Failf(value.Type, "'%s' object is not callable", fn.TypeName())
		}
	}
	x.pop(mark)
	return r
}

// countResult counts the memory of v, the result of a call.
func (x *exec) countResult(v value.Value) {
	switch v.(type) {
	case *value.Bool, *value.Int, *value.None, *value.Undefined:
	default:
		x.Make(rt.CallSize)
	}
}

// macroCode is the code of a macro or call block. A slot is -1 if the body does not use that special variable.
type macroCode struct {
	functionCode
	name                    string // empty for call blocks
	pos                     syntax.Pos
	params                  []*param
	caller, kwargs, varargs int
	accessesCaller          bool
	explicitCaller          bool
	steps                   int // work steps of binding the parameters
}

type param struct {
	name string
	slot int
	def  expr // default value, may be nil
}

// exec sets the parameter to its default if the call gave no argument for it.
func (p *param) exec(x *exec) signal {
	switch slots := x.act.slots; {
	case slots[p.slot] != nil:
	case p.def != nil:
		slots[p.slot] = p.def.eval(x)
	default:
		slots[p.slot] = &value.Undefined{Hint: "parameter '" + p.name + "' was not provided", Name: value.Lit(p.name)}
	}
	return next
}

// Macro is a macro with the variables of the function that defines it.
type Macro struct {
	x    *exec
	code *macroCode
	act  *activation
}

// TypeName implements value.Value.
func (m *Macro) TypeName() string { return "Macro" }

// Repr implements value.Reprer.
func (m *Macro) Repr(t *value.Text, _ *value.Limits, _ int) {
	t.Lit("<Macro " + m.label("anonymous") + ">")
}

// label returns the quoted name of the macro, or none if it has no name.
func (m *Macro) label(none string) string {
	if m.code.name == "" {
		return none
	}
	return "'" + m.code.name + "'"
}

// Call implements rt.Callable.
func (m *Macro) Call(_ *rt.Context, a rt.Args) value.Value { return m.call(a, false) }

// call calls the macro. With direct set, the macro writes to the current output and call returns nil.
func (m *Macro) call(a rt.Args, direct bool) value.Value {
	x, c := m.x, m.code
	act := x.activate(c.fn, m.act)
	if act == nil || !x.Step(c.steps+len(a.Kw)*(1+len(c.params))/nodesAStep) || !m.bind(a, act.slots) || !x.descend() {
		return value.Stopped
	}
	defer func() { x.depth-- }()
	if direct {
		unjoined := x.unjoined
		x.unjoined = nil
		x.call(&c.functionCode, act)
		x.checkJoined()
		x.unjoined = unjoined
		return nil
	}
	text, _ := x.capture(func() signal { return x.call(&c.functionCode, act) })
	if x.Escape {
		return text.Safe()
	}
	return text
}

// bind assigns the arguments of a call to the macro's parameters as Jinja does.
func (m *Macro) bind(a rt.Args, slots []value.Value) bool {
	x, c := m.x, m.code
	n := min(len(a.Pos), len(c.params))
	for i := range n {
		slots[c.params[i].slot] = a.Pos[i]
	}
	named := slices.Clone(a.Kw)
	take := func(name string) (v value.Value) {
		named = slices.DeleteFunc(named, func(k rt.Keyword) bool {
			if k.Name == name {
				v = k.V
			}
			return k.Name == name
		})
		return v
	}
	foundCaller := n == len(c.params) && c.explicitCaller
	for _, p := range c.params[n:] {
		slots[p.slot] = take(p.name)
		foundCaller = foundCaller || p.name == "caller"
	}
	if c.accessesCaller && !foundCaller {
		caller := take("caller")
		if value.IsNone(caller) {
			caller = &value.Undefined{Hint: "No caller defined", Name: value.Lit("caller")}
		}
		if c.caller >= 0 {
			slots[c.caller] = caller
		}
	}
	rest := rt.Args{Pos: a.Pos[n:], Kw: named}
	switch {
	case c.kwargs >= 0:
		slots[c.kwargs] = rest.Dict()
	case rest.Get("caller") != nil:
		x.Failf(value.Type, "macro %s was invoked with two values for the special caller argument. This is most likely a bug.", m.label("None"))
	case len(named) > 0:
		x.Failf(value.Type, "macro %s takes no keyword argument '%s'", m.label("None"), named[0].Name)
	}
	switch {
	case c.varargs >= 0:
		slots[c.varargs] = &value.List{Items: append([]value.Value{}, rest.Pos...), Tuple: true}
	case len(rest.Pos) > 0:
		x.Failf(value.Type, "macro %s takes not more than %d argument(s)", m.label("None"), len(c.params))
	}
	return x.Err == nil
}

// Attr implements object.Attrs.
func (m *Macro) Attr(name string) value.Value {
	switch name {
	case "name":
		if m.code.name != "" {
			return value.Lit(m.code.name)
		}
		return value.Nil
	case "arguments":
		l := &value.List{Tuple: true}
		for _, p := range m.code.params {
			l.Items = append(l.Items, value.Lit(p.name))
		}
		return l
	case "catch_kwargs":
		return value.NewBool(m.code.kwargs >= 0)
	case "catch_varargs":
		return value.NewBool(m.code.varargs >= 0)
	case "caller":
		return value.NewBool(m.code.accessesCaller)
	case "explicit_caller":
		return value.NewBool(m.code.explicitCaller)
	}
	return nil
}
