package eval

import (
	"github.com/turnpack/turnpack/tokenize/chat/internal/object"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

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
func (l *argList) eval(x *exec) rt.Args {
	if l.none() {
		return rt.Args{}
	}
	mark := x.mark()
	for _, e := range l.pos {
		v := e.eval(x)
		x.stack = append(x.stack, v)
	}
	if l.simple {
		return rt.Args{Pos: x.stack[mark.values:len(x.stack):len(x.stack)]}
	}
	if l.star != nil {
		items, fault := value.Elements(x.Lim, l.star.eval(x))
		x.Fail(fault)
		x.stack = append(x.stack, items...)
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
		return rt.Stopped
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
	var method rt.Func
	var self value.Value
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
		return rt.Stopped
	}
	mark := x.mark()
	a := e.args.eval(x)
	var r value.Value = rt.Stopped
	switch {
	case x.Err != nil:
	case method != nil:
		r = method(&x.Context, self, a)
		x.Step(1)
		if _, ok := self.(*value.Dict); !ok { // those give what is there
			x.gave(r)
		}
	default:
		switch f := fn.(type) {
		case *Macro:
			x.Step(1)
			r = f.call(a, direct && !x.Escape)
		case rt.Callable:
			x.Step(1)
			r = f.Call(&x.Context, a)
			x.gave(r)
		case *value.Undefined:
			x.Fail(f.Use())
		default:
			x.Failf(value.Type, "'%s' object is not callable", fn.TypeName())
		}
	}
	x.pop(mark)
	return r
}

// gave counts the memory of a call that gave v.
func (x *exec) gave(v value.Value) {
	switch v.(type) {
	case *value.Bool, *value.Int, *value.None, *value.Undefined:
	default:
		x.Make(rt.CallSize)
	}
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
	steps                   int // of the parameters
}

type param struct {
	name string
	slot int
	def  expr // may be nil
}

// Macro is a macro together with the variables it was defined among.
type Macro struct {
	x    *exec
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

// Call implements rt.Callable.
func (m *Macro) Call(_ *rt.Context, a rt.Args) value.Value { return m.call(a, false) }

// call calls the macro. With direct it writes to the current output and returns nil.
func (m *Macro) call(a rt.Args, direct bool) value.Value {
	x, c := m.x, m.code
	if !x.Make(rt.ObjectSize + 16*len(c.fn.Order)) {
		return rt.Stopped
	}
	act := &activation{slots: make([]value.Value, len(c.fn.Order)), up: m.act}
	if !x.Step(c.steps+len(a.Kw)*(1+len(c.params))/nodesAStep) || !m.bind(a, act) || !x.descend() {
		return rt.Stopped
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
	if x.Escape {
		return text.Safe()
	}
	return text
}

// bind sets the variables of a call to its arguments.
func (m *Macro) bind(a rt.Args, act *activation) bool {
	x, c := m.x, m.code
	n := min(len(a.Pos), len(c.params))
	for i := range n {
		act.slots[c.params[i].slot] = a.Pos[i]
	}
	used := make([]bool, len(a.Kw))
	foundCaller := n == len(c.params) && c.explicitCaller
	for _, p := range c.params[n:] {
		for i, k := range a.Kw {
			if k.Name == p.name {
				act.slots[p.slot] = k.V
				used[i] = true
			}
		}
		foundCaller = foundCaller || p.name == "caller"
	}
	if c.accessesCaller && !foundCaller {
		var caller value.Value
		for i, k := range a.Kw {
			if k.Name == "caller" {
				caller = k.V
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
		d := value.NewDict(len(a.Kw))
		for i, k := range a.Kw {
			if !used[i] {
				d.SetString(k.Name, k.V)
			}
		}
		act.slots[c.kwargs] = d
	} else {
		for i, k := range a.Kw {
			if used[i] {
				continue
			}
			if a.Get("caller") != nil {
				x.Failf(value.Type, "macro %s was invoked with two values for the special caller argument. This is most likely a bug.", m.label())
			} else {
				x.Failf(value.Type, "macro %s takes no keyword argument '%s'", m.label(), k.Name)
			}
			return false
		}
	}
	if c.varargs >= 0 {
		act.slots[c.varargs] = &value.List{Items: append([]value.Value{}, a.Pos[n:]...), Tuple: true}
	} else if len(a.Pos) > len(c.params) {
		x.Failf(value.Type, "macro %s takes not more than %d argument(s)", m.label(), len(c.params))
		return false
	}
	return true
}

// Attr implements object.Attrs.
func (m *Macro) Attr(name string) value.Value {
	switch name {
	case "name":
		if m.code.name == "" {
			return value.Nil
		}
		return value.Lit(m.code.name)
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
