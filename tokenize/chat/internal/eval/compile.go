package eval

import (
	"fmt"
	"slices"
	"sync"

	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Program is a compiled template. It does not change and is safe for
// concurrent use.
type Program struct {
	root    *functionCode
	blocks  map[string]*blockCode
	resolve []string  // names looked up in the inputs, once per run
	lookups int       // how many lookup the code has
	markup  bool      // a value may be Markup
	idle    sync.Pool // of *exec: memory for the next run
}

// functionCode is the code of one function (see scope.go).
type functionCode struct {
	fn    *function
	loads []loadCode
	body  []stmt
}

type blockCode struct {
	functionCode
	self, super *variable
}

// loadCode initialises one variable when its scope is entered.
type loadCode struct {
	slot  int
	kind  loadKind
	depth int // of loadAlias: functions to go up
	from  int // of loadAlias: slot; of loadResolve: index into Program.resolve
}

// Compile turns a parsed template into a program. Errors are *syntax.Error.
func Compile(body []syntax.Stmt) (*Program, error) {
	c := &compiler{prog: &Program{blocks: map[string]*blockCode{}}, resolveIndex: map[string]int{}}
	c.template(body)
	if c.err != nil {
		return nil, c.err
	}
	return c.prog, nil
}

type compiler struct {
	prog         *Program
	resolveIndex map[string]int
	err          *syntax.Error
	hasBlocks    bool
	blockDefs    []*syntax.Block
	nodes        int // of the statement that is being compiled: see chargeStmt
}

// frame is the place in the program that is being compiled.
type frame struct {
	*scope
	top  bool // statements here store into the exported names
	soft bool // inside a branch: an unknown filter fails when reached
	loop bool // break and continue are allowed
}

func (f frame) branch() frame { f.soft = true; return f }

func (f frame) inner() frame {
	return frame{scope: newScope(f.fn, f.scope), loop: f.loop}
}

func (f frame) function() frame {
	return frame{scope: newScope(newFunction(f.fn), f.scope)}
}

func (c *compiler) fail(pos syntax.Pos, msg string, args ...any) {
	if c.err == nil {
		c.err = &syntax.Error{Pos: pos, Msg: fmt.Sprintf(msg, args...)}
	}
}

func (c *compiler) failPython(pos syntax.Pos, msg string, args ...any) {
	if c.err == nil {
		c.fail(pos, msg, args...)
		c.err.Python = true
	}
}

func (c *compiler) template(body []syntax.Stmt) {
	seen := map[string]bool{}
	walkStmts(body, func(*syntax.Name) {}, func(s syntax.Stmt) {
		if b, ok := s.(*syntax.Block); ok {
			if seen[b.Name] {
				c.fail(b.At(), "block '%s' defined twice", b.Name)
			}
			seen[b.Name] = true
			c.blockDefs = append(c.blockDefs, b)
		}
	})
	c.hasBlocks = len(seen) > 0
	f := frame{scope: newScope(newFunction(nil), nil), top: true}
	var self *variable
	if mentions(body, "self")["self"] {
		self = f.param("self")
	}
	f.stmts(body)
	code := &functionCode{fn: f.fn, body: c.body(body, f)}
	code.loads = c.loads(f.scope)
	if self != nil {
		code.body = append([]stmt{&selfStmt{self.slot}}, code.body...)
	}
	c.prog.root = code
	for _, def := range c.blockDefs {
		b := &blockCode{}
		bf := frame{scope: newScope(newFunction(nil), nil)}
		m := mentions(def.Body, "self", "super")
		if m["self"] {
			b.self = bf.param("self")
		}
		if m["super"] {
			b.super = bf.param("super")
		}
		bf.stmts(def.Body)
		b.fn = bf.fn
		b.body = c.body(def.Body, bf)
		b.loads = c.loads(bf.scope)
		c.prog.blocks[def.Name] = b
	}
}

func (c *compiler) loads(s *scope) []loadCode {
	var out []loadCode
	for _, v := range s.fn.order { // a fixed order
		l, ok := s.loads[v]
		if !ok || l.kind == loadParam {
			continue
		}
		code := loadCode{slot: v.slot, kind: l.kind}
		switch l.kind {
		case loadAlias:
			code.depth, code.from = distance(s.fn, l.from.fn), l.from.slot
		case loadResolve:
			i, ok := c.resolveIndex[v.name]
			if !ok {
				i = len(c.prog.resolve)
				c.resolveIndex[v.name] = i
				c.prog.resolve = append(c.prog.resolve, v.name)
			}
			code.from = i
		}
		out = append(out, code)
	}
	return out
}

// slots lists all variables that a scope starts, for clearing them at its end.
func slots(s *scope) []int {
	var out []int
	for _, v := range s.fn.order {
		if _, ok := s.loads[v]; ok {
			out = append(out, v.slot)
		}
	}
	return out
}

func distance(from, to *function) int {
	n := 0
	for ; from != to; from = from.parent {
		n++
	}
	return n
}

func (c *compiler) body(list []syntax.Stmt, f frame) []stmt {
	outer := c.nodes
	var out []stmt
	for _, s := range list {
		c.nodes = 0
		first := len(out)
		out = c.stmt(out, s, f)
		if steps := c.nodes / nodesAStep; steps > 1 {
			out = slices.Insert(out, first, stmt(chargeStmt(steps)))
		}
	}
	c.nodes = outer
	return out
}

// size is the number of nodes of what compile compiles, which the statement around it
// does not count.
func (c *compiler) size(compile func()) int {
	outer := c.nodes
	c.nodes = 0
	compile()
	n := c.nodes
	c.nodes = outer
	return n
}

// stmt appends the code of one statement.
func (c *compiler) stmt(out []stmt, s syntax.Stmt, f frame) []stmt {
	switch n := s.(type) {
	case *syntax.Output:
		for _, e := range n.Nodes {
			if d, ok := e.(*syntax.Data); ok {
				out = join(out, &dataStmt{text: d.Text})
				continue
			}
			x := c.expr(e, f)
			if s := constStr(x); s != nil {
				out = join(out, &dataStmt{s.S, []*value.Str{s}})
				continue
			}
			out = append(out, &outputStmt{e: x})
		}
		return out
	case *syntax.Set:
		return append(out, c.set(n, f))
	case *syntax.SetBlock:
		in := f.inner()
		in.stmts(n.Body)
		st := &setBlockStmt{scopeCode: scopeCode{}, target: c.target(n.Target, f), export: c.exports(n.Target, f)}
		st.body = c.body(n.Body, in)
		if n.Filter != nil {
			st.filter = c.filter(n.Filter, in)
		}
		st.loads, st.clear = c.loads(in.scope), slots(in.scope)
		return append(out, st)
	case *syntax.If:
		b := f.branch()
		st := &ifStmt{}
		for _, x := range append([]*syntax.If{n}, n.Elifs...) {
			st.tests = append(st.tests, condition(c.expr(x.Test, b)))
			st.bodies = append(st.bodies, c.body(x.Body, b))
		}
		st.els = c.body(n.Else, b)
		return append(out, st)
	case *syntax.For:
		return append(out, c.forLoop(n, f))
	case *syntax.Macro:
		st := &macroStmt{code: c.macro(n.At(), n.Name, &n.Signature, n.Body, f), slot: f.find(n.Name).slot}
		st.depth = distance(f.fn, f.find(n.Name).fn)
		if f.top && c.hasBlocks {
			st.export = n.Name
		}
		return append(out, st)
	case *syntax.CallBlock:
		code := c.macro(n.At(), "", &n.Signature, n.Body, f)
		call := c.expr(n.Call, f).(*callExpr)
		if slices.Contains(call.args.names, "caller") {
			c.failPython(n.At(), "keyword argument repeated: caller")
		}
		call.args.names, call.args.kw, call.args.simple = append(call.args.names, "caller"), append(call.args.kw, &callerExpr{code}), false
		return append(out, &outputStmt{e: call})
	case *syntax.Generation:
		// transformers makes a call block of it: its body knows caller, kwargs and varargs.
		return append(out, &generationStmt{c.macro(n.At(), "", &syntax.Signature{}, n.Body, f)})
	case *syntax.FilterBlock:
		in := f.inner()
		in.stmts(n.Body)
		in.exprs(n.Filter)
		st := &filterBlockStmt{}
		st.body = c.body(n.Body, in)
		st.filter = c.filter(n.Filter, in)
		st.loads, st.clear = c.loads(in.scope), slots(in.scope)
		return append(out, st)
	case *syntax.With:
		in := f.inner()
		for _, t := range n.Targets {
			in.target(t, true)
		}
		in.stmts(n.Body)
		st := &withStmt{}
		for i, t := range n.Targets {
			st.targets = append(st.targets, c.target(t, in))
			st.values = append(st.values, c.expr(n.Values[i], f))
		}
		st.body = c.body(n.Body, in)
		st.loads, st.clear = c.loads(in.scope), slots(in.scope)
		return append(out, st)
	case *syntax.Scope:
		in := f.inner()
		in.exprs(n.Autoescape)
		in.stmts(n.Body)
		c.prog.markup = true
		st := &autoescapeStmt{on: c.expr(n.Autoescape, in)}
		st.body = c.body(n.Body, in)
		st.loads, st.clear = c.loads(in.scope), slots(in.scope)
		return append(out, st)
	case *syntax.Block:
		st := &blockStmt{name: n.Name}
		if n.Scoped {
			st.locals = map[string]*nameExpr{}
			for s := f.scope; s != nil; s = s.parent {
				for name := range s.stores {
					if st.locals[name] == nil {
						st.locals[name] = c.name(name, 0, f)
					}
				}
			}
		}
		return append(out, st)
	case *syntax.Load:
		if n.Tag == "extends" && !f.top {
			c.fail(n.At(), "cannot use extend from a non top-level scope")
		}
		return append(out, &loaderStmt{n.At(), c.expr(n.Template, f), n.Tag == "include", n.IgnoreMissing})
	case *syntax.Break, *syntax.Continue:
		_, isBreak := s.(*syntax.Break)
		if !f.loop {
			c.failPython(s.At(), "'%s' outside loop", map[bool]string{true: "break", false: "continue"}[isBreak])
		}
		if isBreak {
			return append(out, jumpStmt(breakLoop))
		}
		return append(out, jumpStmt(continueLoop))
	}
	return out
}

// exports lists the names a top-level assignment makes visible to blocks.
func (c *compiler) exports(target syntax.Expr, f frame) []string {
	if !f.top || !c.hasBlocks {
		return nil
	}
	var names []string
	walkExpr(target, func(n *syntax.Name) { names = append(names, n.Name) })
	return names
}

func (c *compiler) set(n *syntax.Set, f frame) stmt {
	v := c.expr(n.Value, f)
	t := c.target(n.Target, f)
	export := c.exports(n.Target, f)
	if name, ok := t.(*nameTarget); ok && export == nil && name.depth == 0 {
		return &setNameStmt{slot: name.slot, e: v}
	}
	return &setStmt{t, v, export}
}

// target compiles an assignment target.
func (c *compiler) target(e syntax.Expr, f frame) target {
	c.nodes++
	switch n := e.(type) {
	case *syntax.Name:
		v := f.find(n.Name)
		return &nameTarget{v.slot, distance(f.fn, v.fn), n.Name}
	case *syntax.NSRef:
		return &attrTarget{n.At(), c.name(n.Name, n.At(), f), n.Attr}
	case *syntax.Tuple:
		t := &tupleTarget{pos: n.At()}
		for _, item := range n.Items {
			t.items = append(t.items, c.target(item, f))
		}
		return t
	}
	c.fail(e.At(), "can't assign to this expression")
	return &nameTarget{}
}

func (c *compiler) forLoop(n *syntax.For, f frame) stmt {
	body := f.inner()
	if n.Recursive {
		body = f.function()
	}
	body.loop = true
	test := f.function()
	els := frame{scope: newScope(body.fn, f.scope), loop: f.loop && !n.Recursive}
	st := &forStmt{pos: n.At(), recursive: n.Recursive, loopSlot: -1}
	scoped := false
	check := func(nm *syntax.Name) {
		if nm.Store && nm.Name == "loop" {
			c.fail(nm.At(), "Can't assign to special loop variable in for-loop target")
		}
	}
	walkStmts([]syntax.Stmt{n}, check, func(s syntax.Stmt) {
		if b, ok := s.(*syntax.Block); ok {
			scoped = scoped || b.Scoped
		}
	})
	if n.Recursive || scoped || mentions(n.Body, "loop")["loop"] {
		st.loopSlot = body.param("loop").slot
	}
	body.target(n.Target, true)
	body.stmts(n.Body)
	st.iter = c.expr(n.Iter, f)
	if n.Test != nil {
		test.target(n.Target, true)
		test.exprs(n.Test)
		st.test = &testCode{}
		st.test.steps = 1 + c.size(func() { st.test.target, st.test.test = c.target(n.Target, test), c.expr(n.Test, test) })/nodesAStep
		st.test.fn, st.test.loads = test.fn, c.loads(test.scope)
	}
	st.steps = 1 + c.size(func() { st.target = c.target(n.Target, body) })/nodesAStep
	if t, ok := st.target.(*nameTarget); ok {
		st.single = t.slot
	} else {
		st.single = -1
	}
	st.body = c.body(n.Body, body)
	if st.single >= 0 && st.loopSlot < 0 {
		st.idle = c.idle(n, body)
	}
	st.loads = c.loads(body.scope)
	if !n.Recursive || len(n.Else) > 0 {
		st.clear = slots(body.scope)
	}
	if len(n.Else) > 0 {
		els.stmts(n.Else)
		st.els = c.body(n.Else, els)
		st.elsLoads = c.loads(els.scope)
	}
	st.fn = body.fn
	return st
}

// macro compiles the function of a macro or call block.
func (c *compiler) macro(pos syntax.Pos, name string, sig *syntax.Signature, body []syntax.Stmt, f frame) *macroCode {
	m := f.function()
	code := &macroCode{name: name, pos: pos, caller: -1, kwargs: -1, varargs: -1}
	special := map[string]bool{}
	seen := map[string]bool{}
	for i, p := range sig.Params {
		if seen[p.Name] {
			c.failPython(p.At(), "duplicate argument '%s' in function definition", p.Name)
		}
		seen[p.Name] = true
		if p.Name == "caller" {
			code.explicitCaller = true
			if i-len(sig.Params)+len(sig.Defaults) < 0 {
				special["caller without default"] = true
			}
		}
		code.params = append(code.params, param{name: p.Name, slot: m.param(p.Name).slot})
	}
	m.exprs(sig.Defaults...)
	found := mentions(body, "caller", "kwargs", "varargs")
	if found["caller"] {
		if special["caller without default"] {
			c.fail(pos, `When defining macros or call blocks the special "caller" argument must be omitted or be given a default.`)
		}
		code.accessesCaller = true
		if !code.explicitCaller {
			code.caller = m.param("caller").slot
		}
	}
	if found["kwargs"] && !seen["kwargs"] {
		code.kwargs = m.param("kwargs").slot
	}
	if found["varargs"] && !seen["varargs"] {
		code.varargs = m.param("varargs").slot
	}
	m.stmts(body)
	first := len(sig.Params) - len(sig.Defaults)
	code.steps = (len(code.params) + c.size(func() {
		for i := first; i < len(code.params); i++ {
			code.params[i].def = c.expr(sig.Defaults[i-first], m)
		}
	})) / nodesAStep
	code.fn, code.body = m.fn, c.body(body, m)
	code.loads = c.loads(m.scope)
	return code
}
