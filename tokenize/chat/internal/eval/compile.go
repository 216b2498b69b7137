package eval

import (
	"fmt"
	"slices"
	"sync"

	"github.com/turnpack/turnpack/tokenize/chat/internal/scope"
	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
)

// Program is a compiled template. It is immutable and safe for concurrent use.
type Program struct {
	root    *blockCode
	blocks  map[string]*blockCode
	resolve []string  // names that are looked up in the inputs once per run
	attrs   int       // number of attrExpr nodes
	markup  bool      // values may be Markup
	idle    sync.Pool // of *exec, whose memory the next run reuses
}

// functionCode is the code of one function (see package scope).
type functionCode struct {
	fn    *scope.Function
	loads []scope.Start
	body  []stmt
}

// blockCode is the template or a block of it.
type blockCode struct {
	functionCode
	name        string
	self, super int // slots of the variables self and super, -1 if the body does not use them
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
	pass         *scope.Pass // the loop pass being compiled, nil outside of one
}

// frame is the context of the code being compiled.
type frame struct {
	*scope.Scope
	top  bool // statements here assign exported names
	soft bool // inside a branch: an unknown filter fails only when it is reached
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
	var blocks []*syntax.Block
	seen := map[string]bool{}
	syntax.Walk(body, func(*syntax.Name) {}, func(s syntax.Stmt) {
		if b, ok := s.(*syntax.Block); ok {
			if seen[b.Name] {
				c.fail(b.At(), "block '%s' defined twice", b.Name)
			}
			seen[b.Name] = true
			blocks = append(blocks, b)
		}
	})
	c.hasBlocks = len(seen) > 0
	c.prog.root = c.block("", body, frame{top: true}, "self")
	for _, b := range blocks {
		c.prog.blocks[b.Name] = c.block(b.Name, b.Body, frame{}, "self", "super")
	}
}

func (c *compiler) block(name string, body []syntax.Stmt, f frame, special ...string) *blockCode {
	f.Scope = scope.New(scope.NewFunction(nil), nil)
	slot := params(f, body, nil, special...)
	f.Stmts(body)
	b := &blockCode{name: name, self: slot("self"), super: slot("super")}
	b.functionCode = c.function(body, f)
	return b
}

// function compiles the body of a function.
func (c *compiler) function(body []syntax.Stmt, f frame) functionCode {
	code := c.body(body, f)
	return functionCode{f.Fn, c.loads(f.Scope), code}
}

// params declares as parameters those special names that the body mentions and that are not hidden. slot returns the
// slot of a name, -1 if it was not declared.
func params(f frame, body []syntax.Stmt, hidden map[string]bool, special ...string) (slot func(name string) int) {
	slots := map[string]int{}
	found := syntax.Mentions(body, special...)
	for _, name := range special {
		if slots[name] = -1; found[name] && !hidden[name] {
			slots[name] = f.Param(name).Slot
		}
	}
	return func(name string) int {
		if s, ok := slots[name]; ok {
			return s
		}
		return -1
	}
}

// loads returns how the variables of a scope are initialised.
func (c *compiler) loads(s *scope.Scope) []scope.Start {
	starts := s.Starts()
	for i, v := range starts {
		if v.Kind != scope.Resolve {
			continue
		}
		k, ok := c.resolveIndex[v.Name]
		if !ok {
			k = len(c.prog.resolve)
			c.resolveIndex[v.Name] = k
			c.prog.resolve = append(c.prog.resolve, v.Name)
		}
		starts[i].From = k
	}
	return starts
}

func (c *compiler) body(list []syntax.Stmt, f frame) []stmt {
	var out []stmt
	for _, s := range list {
		if steps := syntax.Size(s) / nodesAStep; steps > 1 {
			out = append(out, chargeStmt(steps))
		}
		out = append(out, c.stmt(s, f))
	}
	return out
}

// stmt compiles one statement.
func (c *compiler) stmt(s syntax.Stmt, f frame) stmt {
	switch n := s.(type) {
	case *syntax.Output:
		return &outputStmt{c.exprs(n.Nodes, f)}
	case *syntax.Set:
		v := c.expr(n.Value, f)
		return &setStmt{c.target(n.Target, f), v, c.exports(n.Target, f)}
	case *syntax.SetBlock:
		in := f.inner()
		in.Stmts(n.Body)
		return &setBlockStmt{c.capture(n.Body, n.Filter, in), c.target(n.Target, f), c.exports(n.Target, f)}
	case *syntax.If:
		b := f.branch()
		st := &ifStmt{}
		for _, x := range append([]*syntax.If{n}, n.Elifs...) {
			st.tests = append(st.tests, c.cond(x.Test, b))
			st.bodies = append(st.bodies, c.body(x.Body, b))
		}
		st.els = c.body(n.Else, b)
		return st
	case *syntax.For:
		return c.forLoop(n, f)
	case *syntax.Macro:
		v := f.Find(n.Name)
		code := c.macro(n.At(), n.Name, &n.Signature, n.Body, f)
		return &macroStmt{code, v.Slot, f.Fn.Distance(v), c.exports(&syntax.Name{Name: n.Name}, f)}
	case *syntax.CallBlock:
		return c.callBlock(n, f)
	case *syntax.Generation:
		// transformers compiles it to a call block, whose body can use caller, kwargs and varargs.
		return &generationStmt{c.macro(n.At(), "", &syntax.Signature{}, n.Body, f)}
	case *syntax.FilterBlock:
		in := f.inner()
		in.Stmts(n.Body)
		in.Exprs(n.Filter)
		return &filterBlockStmt{c.capture(n.Body, n.Filter, in)}
	case *syntax.With:
		in := f.inner()
		for _, t := range n.Targets {
			in.Target(t, true)
		}
		in.Stmts(n.Body)
		targets, values := c.targets(n.Targets, in), c.exprs(n.Values, f)
		return &withStmt{c.scoped(n.Body, in), targets, values}
	case *syntax.Scope:
		in := f.inner()
		in.Exprs(n.Autoescape)
		in.Stmts(n.Body)
		c.prog.markup = true
		on := c.expr(n.Autoescape, in)
		return &autoescapeStmt{c.scoped(n.Body, in), on}
	case *syntax.Block:
		return c.blockHere(n, f)
	case *syntax.Load:
		if n.Tag == "extends" && !f.top {
			c.fail(n.At(), "cannot use extend from a non top-level scope")
		}
		return &loaderStmt{n.At(), c.expr(n.Template, f), n.Tag == "include", n.IgnoreMissing}
	case *syntax.Break:
		return c.jump(n.At(), "break", breakLoop, f)
	}
	return c.jump(s.At(), "continue", continueLoop, f)
}

func (c *compiler) jump(pos syntax.Pos, name string, sig signal, f frame) stmt {
	if !f.loop {
		c.failPython(pos, "'%s' outside loop", name)
	}
	return jumpStmt(sig)
}

// scoped compiles the body of a scope inside a function.
func (c *compiler) scoped(body []syntax.Stmt, in frame) scopeCode {
	code := c.body(body, in)
	return scopeCode{c.loads(in.Scope), in.Slots(), code}
}

// capture compiles a scope whose output becomes a value.
func (c *compiler) capture(body []syntax.Stmt, filter *syntax.Filter, in frame) (code captureCode) {
	code.scopeCode = c.scoped(body, in)
	if filter != nil {
		code.filter = c.filter(filter, in)
	}
	return code
}

// callBlock compiles a call block: its body becomes one more argument of the call.
func (c *compiler) callBlock(n *syntax.CallBlock, f frame) stmt {
	code := c.macro(n.At(), "", &n.Signature, n.Body, f)
	call := c.expr(n.Call, f).(*callExpr)
	a := &call.args
	if slices.Contains(a.names, "caller") {
		c.failPython(n.At(), "keyword argument repeated: caller")
	}
	a.names, a.kw, a.simple = append(a.names, "caller"), append(a.kw, &callerExpr{code}), false
	return &outputStmt{[]expr{call}}
}

// blockHere compiles the place where a block is rendered. A scoped block sees the variables of that place.
func (c *compiler) blockHere(n *syntax.Block, f frame) stmt {
	st := &blockStmt{name: n.Name}
	if !n.Scoped {
		return st
	}
	st.locals = map[string]*nameExpr{}
	for s := f.Scope; s != nil; s = s.Parent {
		for name := range s.Stores {
			if st.locals[name] == nil {
				st.locals[name] = c.name(name, 0, f)
			}
		}
	}
	return st
}

// exports lists the names that a top-level assignment makes visible to blocks.
func (c *compiler) exports(target syntax.Expr, f frame) []string {
	if !f.top || !c.hasBlocks {
		return nil
	}
	var names []string
	syntax.EachName(target, func(n *syntax.Name) { names = append(names, n.Name) })
	return names
}

// target compiles an assignment target.
func (c *compiler) target(e syntax.Expr, f frame) target {
	switch n := e.(type) {
	case *syntax.Name:
		v := f.Find(n.Name)
		return &nameTarget{v.Slot, f.Fn.Distance(v)}
	case *syntax.NSRef:
		return &attrTarget{n.At(), c.name(n.Name, n.At(), f), n.Attr}
	case *syntax.Tuple:
		return &tupleTarget{n.At(), c.targets(n.Items, f)}
	}
	c.fail(e.At(), "can't assign to this expression")
	return &nameTarget{}
}

func (c *compiler) targets(list []syntax.Expr, f frame) (out []target) {
	for _, e := range list {
		out = append(out, c.target(e, f))
	}
	return out
}

func (c *compiler) forLoop(n *syntax.For, f frame) stmt {
	body := f.inner()
	if n.Recursive {
		body = f.function()
	}
	body.loop = true
	st := &forStmt{pos: n.At(), recursive: n.Recursive, loopSlot: -1}
	scoped, named := c.inLoop(n)
	if n.Recursive || scoped || syntax.Mentions(n.Body, "loop")["loop"] {
		st.loopSlot = body.Param("loop").Slot
	}
	body.Target(n.Target, true)
	body.Stmts(n.Body)
	st.iter = c.expr(n.Iter, f)
	if n.Test != nil {
		test := f.function()
		test.Target(n.Target, true)
		test.Exprs(n.Test)
		st.test = &testCode{target: c.target(n.Target, test), test: c.expr(n.Test, test), steps: 1 + syntax.Nodes(n.Target, n.Test)/nodesAStep}
		st.test.functionCode = c.function(nil, test)
	}
	_, single := n.Target.(*syntax.Name)
	st.replays = single && !named && c.pass == nil && f.Fn.Parent == nil && !f.loop && !c.hasBlocks && n.Test == nil && !n.Recursive && len(n.Else) == 0
	if st.replays {
		c.pass = &scope.Pass{Scope: body.Scope}
	}
	st.target, st.steps = c.target(n.Target, body), 1+syntax.Nodes(n.Target)/nodesAStep
	st.body = c.body(n.Body, body)
	if test, not := scope.Idle(n); test != nil && single {
		if st.idle, st.settles = c.expr(test, body), min(len(n.Body)-1, 1); not {
			st.idle = &notExpr{st.idle}
		}
	}
	if st.replays {
		st.replays = !c.pass.Open && st.idle == nil
		c.pass = nil
	}
	st.fn, st.loads = body.Fn, c.loads(body.Scope)
	if !n.Recursive || len(n.Else) > 0 {
		st.clear = body.Slots()
	}
	if len(n.Else) > 0 {
		els := frame{Scope: scope.New(body.Fn, f.Scope), loop: f.loop && !n.Recursive}
		els.Stmts(n.Else)
		st.els = c.body(n.Else, els)
		st.elsLoads = c.loads(els.Scope)
	}
	return st
}

// inLoop rejects what is not allowed in a loop. scoped reports whether the loop contains a scoped block, named
// whether it contains a macro called loop.
func (c *compiler) inLoop(n *syntax.For) (scoped, named bool) {
	check := func(name *syntax.Name) {
		if name.Store && name.Name == "loop" {
			c.fail(name.At(), "Can't assign to special loop variable in for-loop target")
		}
	}
	syntax.Walk([]syntax.Stmt{n}, check, func(s syntax.Stmt) {
		switch s := s.(type) {
		case *syntax.Block:
			scoped = scoped || s.Scoped
		case *syntax.Macro:
			named = named || s.Name == "loop"
		}
	})
	return scoped, named
}

// macro compiles the function of a macro or call block.
func (c *compiler) macro(pos syntax.Pos, name string, sig *syntax.Signature, body []syntax.Stmt, f frame) *macroCode {
	m := f.function()
	first := len(sig.Params) - len(sig.Defaults) // index of the first parameter with a default
	code := &macroCode{name: name, pos: pos, accessesCaller: syntax.Mentions(body, "caller")["caller"]}
	seen := map[string]bool{}
	for i, p := range sig.Params {
		if seen[p.Name] {
			c.failPython(p.At(), "duplicate argument '%s' in function definition", p.Name)
		}
		seen[p.Name] = true
		if p.Name == "caller" && i < first && code.accessesCaller {
			c.fail(pos, `When defining macros or call blocks the special "caller" argument must be omitted or be given a default.`)
		}
		code.params = append(code.params, &param{name: p.Name, slot: m.Param(p.Name).Slot})
	}
	code.explicitCaller = seen["caller"]
	m.Exprs(sig.Defaults...)
	slot := params(m, body, seen, "caller", "kwargs", "varargs")
	code.caller, code.kwargs, code.varargs = slot("caller"), slot("kwargs"), slot("varargs")
	m.Stmts(body)
	code.steps = (len(code.params) + syntax.Nodes(sig.Defaults...)) / nodesAStep
	var bind []stmt
	for i, p := range code.params {
		if i >= first {
			p.def = c.expr(sig.Defaults[i-first], m)
		}
		bind = append(bind, p)
	}
	code.functionCode = c.function(body, m)
	code.body = append(bind, code.body...)
	return code
}
