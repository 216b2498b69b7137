package eval

import (
	"fmt"
	"slices"
	"sync"

	"github.com/turnpack/turnpack/tokenize/chat/internal/scope"
	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Program is a compiled template. It does not change and is safe for
// concurrent use.
type Program struct {
	root    *functionCode
	blocks  map[string]*blockCode
	resolve []string  // names looked up in the inputs, once per run
	attrs   int       // how many attrExpr the code has
	markup  bool      // a value may be Markup
	idle    sync.Pool // of *exec: memory for the next run
}

// functionCode is the code of one function (see package scope).
type functionCode struct {
	fn    *scope.Function
	loads []loadCode
	body  []stmt
}

type blockCode struct {
	functionCode
	self, super *scope.Variable
}

// loadCode initialises one variable when its scope is entered.
type loadCode struct {
	slot  int
	kind  scope.Kind
	depth int // of scope.Alias: functions to go up
	from  int // of scope.Alias: slot; of scope.Resolve: index into Program.resolve
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
	nodes        int         // of the statement that is being compiled: see chargeStmt
	pass         *scope.Pass // what is being compiled is a part of, else nil
}

// frame is the place in the program that is being compiled.
type frame struct {
	*scope.Scope
	top  bool // statements here store into the exported names
	soft bool // inside a branch: an unknown filter fails when reached
	loop bool // break and continue are allowed
}

func (f frame) branch() frame { f.soft = true; return f }

func (f frame) inner() frame {
	return frame{Scope: scope.New(f.Fn, f.Scope), loop: f.loop}
}

func (f frame) function() frame {
	return frame{Scope: scope.New(scope.NewFunction(f.Fn), f.Scope)}
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
	syntax.Walk(body, func(*syntax.Name) {}, func(s syntax.Stmt) {
		if b, ok := s.(*syntax.Block); ok {
			if seen[b.Name] {
				c.fail(b.At(), "block '%s' defined twice", b.Name)
			}
			seen[b.Name] = true
			c.blockDefs = append(c.blockDefs, b)
		}
	})
	c.hasBlocks = len(seen) > 0
	f := frame{Scope: scope.New(scope.NewFunction(nil), nil), top: true}
	var self *scope.Variable
	if syntax.Mentions(body, "self")["self"] {
		self = f.Param("self")
	}
	f.Stmts(body)
	code := &functionCode{fn: f.Fn, body: c.body(body, f)}
	code.loads = c.loads(f.Scope)
	if self != nil {
		code.body = append([]stmt{&selfStmt{self.Slot}}, code.body...)
	}
	c.prog.root = code
	for _, def := range c.blockDefs {
		b := &blockCode{}
		bf := frame{Scope: scope.New(scope.NewFunction(nil), nil)}
		m := syntax.Mentions(def.Body, "self", "super")
		if m["self"] {
			b.self = bf.Param("self")
		}
		if m["super"] {
			b.super = bf.Param("super")
		}
		bf.Stmts(def.Body)
		b.fn = bf.Fn
		b.body = c.body(def.Body, bf)
		b.loads = c.loads(bf.Scope)
		c.prog.blocks[def.Name] = b
	}
}

func (c *compiler) loads(s *scope.Scope) []loadCode {
	var out []loadCode
	for _, v := range s.Fn.Order { // a fixed order
		l, ok := s.Loads[v]
		if !ok || l.Kind == scope.Param {
			continue
		}
		code := loadCode{slot: v.Slot, kind: l.Kind}
		switch l.Kind {
		case scope.Alias:
			code.depth, code.from = distance(s.Fn, l.From.Fn), l.From.Slot
		case scope.Resolve:
			i, ok := c.resolveIndex[v.Name]
			if !ok {
				i = len(c.prog.resolve)
				c.resolveIndex[v.Name] = i
				c.prog.resolve = append(c.prog.resolve, v.Name)
			}
			code.from = i
		}
		out = append(out, code)
	}
	return out
}

// slots lists all variables that a scope starts, for clearing them at its end.
func slots(s *scope.Scope) []int {
	var out []int
	for _, v := range s.Fn.Order {
		if _, ok := s.Loads[v]; ok {
			out = append(out, v.Slot)
		}
	}
	return out
}

func distance(from, to *scope.Function) int {
	n := 0
	for ; from != to; from = from.Parent {
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
		in.Stmts(n.Body)
		st := &setBlockStmt{scopeCode: scopeCode{}, target: c.target(n.Target, f), export: c.exports(n.Target, f)}
		st.body = c.body(n.Body, in)
		if n.Filter != nil {
			st.filter = c.filter(n.Filter, in)
		}
		st.loads, st.clear = c.loads(in.Scope), slots(in.Scope)
		return append(out, st)
	case *syntax.If:
		b := f.branch()
		st := &ifStmt{}
		for _, x := range append([]*syntax.If{n}, n.Elifs...) {
			st.tests = append(st.tests, c.cond(x.Test, b))
			st.bodies = append(st.bodies, c.body(x.Body, b))
		}
		st.els = c.body(n.Else, b)
		return append(out, st)
	case *syntax.For:
		return append(out, c.forLoop(n, f))
	case *syntax.Macro:
		st := &macroStmt{code: c.macro(n.At(), n.Name, &n.Signature, n.Body, f), slot: f.Find(n.Name).Slot}
		st.depth = distance(f.Fn, f.Find(n.Name).Fn)
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
		in.Stmts(n.Body)
		in.Exprs(n.Filter)
		st := &filterBlockStmt{}
		st.body = c.body(n.Body, in)
		st.filter = c.filter(n.Filter, in)
		st.loads, st.clear = c.loads(in.Scope), slots(in.Scope)
		return append(out, st)
	case *syntax.With:
		in := f.inner()
		for _, t := range n.Targets {
			in.Target(t, true)
		}
		in.Stmts(n.Body)
		st := &withStmt{}
		for i, t := range n.Targets {
			st.targets = append(st.targets, c.target(t, in))
			st.values = append(st.values, c.expr(n.Values[i], f))
		}
		st.body = c.body(n.Body, in)
		st.loads, st.clear = c.loads(in.Scope), slots(in.Scope)
		return append(out, st)
	case *syntax.Scope:
		in := f.inner()
		in.Exprs(n.Autoescape)
		in.Stmts(n.Body)
		c.prog.markup = true
		st := &autoescapeStmt{on: c.expr(n.Autoescape, in)}
		st.body = c.body(n.Body, in)
		st.loads, st.clear = c.loads(in.Scope), slots(in.Scope)
		return append(out, st)
	case *syntax.Block:
		st := &blockStmt{name: n.Name}
		if n.Scoped {
			st.locals = map[string]*nameExpr{}
			for s := f.Scope; s != nil; s = s.Parent {
				for name := range s.Stores {
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
	syntax.EachName(target, func(n *syntax.Name) { names = append(names, n.Name) })
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
		v := f.Find(n.Name)
		return &nameTarget{v.Slot, distance(f.Fn, v.Fn), n.Name}
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
	els := frame{Scope: scope.New(body.Fn, f.Scope), loop: f.loop && !n.Recursive}
	st := &forStmt{pos: n.At(), recursive: n.Recursive, loopSlot: -1}
	scoped, replays := false, true
	check := func(nm *syntax.Name) {
		if nm.Store && nm.Name == "loop" {
			c.fail(nm.At(), "Can't assign to special loop variable in for-loop target")
		}
	}
	syntax.Walk([]syntax.Stmt{n}, check, func(s syntax.Stmt) {
		switch s := s.(type) {
		case *syntax.Block:
			scoped = scoped || s.Scoped
		case *syntax.Macro:
			replays = replays && s.Name != "loop"
		}
	})
	if n.Recursive || scoped || syntax.Mentions(n.Body, "loop")["loop"] {
		st.loopSlot = body.Param("loop").Slot
	}
	body.Target(n.Target, true)
	body.Stmts(n.Body)
	st.iter = c.expr(n.Iter, f)
	if n.Test != nil {
		test.Target(n.Target, true)
		test.Exprs(n.Test)
		st.test = &testCode{}
		st.test.steps = 1 + c.size(func() { st.test.target, st.test.test = c.target(n.Target, test), c.expr(n.Test, test) })/nodesAStep
		st.test.fn, st.test.loads = test.Fn, c.loads(test.Scope)
	}
	replays = replays && c.pass == nil && f.Fn.Parent == nil && !f.loop && !c.hasBlocks && n.Test == nil && !n.Recursive && len(n.Else) == 0
	if replays {
		c.pass = &scope.Pass{Scope: body.Scope}
	}
	st.steps = 1 + c.size(func() { st.target = c.target(n.Target, body) })/nodesAStep
	if t, ok := st.target.(*nameTarget); ok {
		st.single = t.slot
	} else {
		st.single = -1
	}
	st.body = c.body(n.Body, body)
	if st.single >= 0 {
		st.idle, st.settles = c.idle(n, body), min(len(n.Body)-1, 1)
	}
	if replays {
		st.replays = !c.pass.Open && st.single >= 0 && st.idle == nil
		c.pass = nil
	}
	st.loads = c.loads(body.Scope)
	if !n.Recursive || len(n.Else) > 0 {
		st.clear = slots(body.Scope)
	}
	if len(n.Else) > 0 {
		els.Stmts(n.Else)
		st.els = c.body(n.Else, els)
		st.elsLoads = c.loads(els.Scope)
	}
	st.fn = body.Fn
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
		code.params = append(code.params, param{name: p.Name, slot: m.Param(p.Name).Slot})
	}
	m.Exprs(sig.Defaults...)
	found := syntax.Mentions(body, "caller", "kwargs", "varargs")
	if found["caller"] {
		if special["caller without default"] {
			c.fail(pos, `When defining macros or call blocks the special "caller" argument must be omitted or be given a default.`)
		}
		code.accessesCaller = true
		if !code.explicitCaller {
			code.caller = m.Param("caller").Slot
		}
	}
	if found["kwargs"] && !seen["kwargs"] {
		code.kwargs = m.Param("kwargs").Slot
	}
	if found["varargs"] && !seen["varargs"] {
		code.varargs = m.Param("varargs").Slot
	}
	m.Stmts(body)
	first := len(sig.Params) - len(sig.Defaults)
	code.steps = (len(code.params) + c.size(func() {
		for i := first; i < len(code.params); i++ {
			code.params[i].def = c.expr(sig.Defaults[i-first], m)
		}
	})) / nodesAStep
	code.fn, code.body = m.Fn, c.body(body, m)
	code.loads = c.loads(m.Scope)
	return code
}
