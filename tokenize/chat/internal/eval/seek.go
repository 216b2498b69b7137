package eval

import (
	"slices"
	"sort"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Templates look through the messages in front of each of them, for a later one of
// some kind, or for the call that a tool result answers:
//
//	{% for m in messages[loop.index:] %}{% if m.role == 'assistant' %}{% set ns.found = true %}{% endif %}{% endfor %}
//
//	{% for m in messages %}{% for c in m.tool_calls %}
//	  {% if c.id == id %}{% set ns.name = c.function.name %}{% endif %}
//	{% endfor %}{% endfor %}
//
// That takes time in the square of the conversation, and most passes of such a
// loop do nothing. Which ones do is a matter of the messages alone, and of the text that
// something in them is compared with. So an index is made of the messages
// once, and the loop does the passes that the index gives.
//
// seekCode says what a pass of the loop has to meet to do anything. It leaves out
// conditions on other things than the message, so more passes may meet it.
type seekCode struct {
	number int // of the loop among those of the program
	list   *nameExpr
	start  expr // of a slice of list, or nil
	path   []seekStep
	key    expr      // what is compared, in the message; nil for nothing
	with   *nameExpr // what it is compared with
	then   []stmt    // what a pass does that meets all this
	more   bool      // it has other conditions
}

// seekStep is a condition on the message, or a loop over something in it.
type seekStep struct {
	gate cond
	each *forStmt
}

// findSeek looks whether s is such a loop.
func (s *forStmt) findSeek(number int) bool {
	k := &seekCode{number: number}
	switch e := s.iter.(type) {
	case *nameExpr:
		k.list = e
	case *sliceExpr:
		k.list, _ = e.x.(*nameExpr)
		if k.start = e.parts[0]; k.start == nil || e.parts[1] != nil || e.parts[2] != nil || !computes(k.start) {
			return false
		}
	}
	if k.list == nil || !s.plainLoop() || !k.take(s.body, []int{s.single}) || k.key == nil && len(k.path) == 0 {
		return false
	}
	s.seek = k
	return true
}

// plainLoop reports whether s has a body that is run for each item, and nothing else.
func (s *forStmt) plainLoop() bool {
	return s.test == nil && s.els == nil && !s.recursive && s.loopSlot < 0 && s.single >= 0
}

// take looks at a body inside loops whose items are in the given slots.
func (k *seekCode) take(body []stmt, items []int) bool {
	if len(body) == 1 {
		switch st := body[0].(type) {
		case *ifStmt:
			return len(st.tests) == 1 && st.els == nil && k.condition(st.tests[0], items) && k.take(st.bodies[0], items)
		case *forStmt:
			inner := []int{items[len(items)-1]}
			if !st.plainLoop() || len(st.loads) > 0 || !asks(st.iter, inner) {
				return false
			}
			k.path, k.more = append(k.path, seekStep{each: st}), true
			return k.take(st.body, append(slices.Clone(items), st.single))
		}
	}
	for _, st := range body {
		switch st := st.(type) {
		case *setStmt:
			if to, ok := st.target.(*attrTarget); !ok || isItem(to.ns, items) {
				return false
			}
		case settledStmt:
		default:
			return false
		}
	}
	k.then = body
	return true
}

// condition takes apart what is joined by and.
func (k *seekCode) condition(c cond, items []int) bool {
	switch c := c.(type) {
	case *logicExpr:
		if !c.or {
			return k.condition(c.leftCond, items) && k.condition(c.rightCond, items)
		}
	case *compareExpr:
		if len(c.ops) == 1 && c.ops[0] == "==" {
			for _, side := range [][2]expr{{c.x, c.rest[0]}, {c.rest[0], c.x}} {
				if name, ok := side[1].(*nameExpr); ok && !isItem(name, items) && asks(side[0], items) {
					if k.key == nil {
						k.key, k.with = side[0], name
					}
					k.more = true
					return true
				}
			}
		}
	}
	if asksNothing(c, items) {
		k.more = true
		return true
	}
	e, ok := c.(expr)
	if ok = ok && asks(e, items); ok && k.key == nil {
		k.path = append(k.path, seekStep{gate: c})
	}
	return ok
}

// asks reports whether an expression depends on the items alone, and has no effect but
// that it may fail.
func asks(e expr, items []int) bool {
	all := func(list ...expr) bool {
		return !slices.ContainsFunc(list, func(e expr) bool { return !asks(e, items) })
	}
	switch e := e.(type) {
	case *constExpr:
		return true
	case *nameExpr:
		return isItem(e, items)
	case *attrExpr:
		return e.plain && asks(e.x, items)
	case *keyExpr:
		return asks(e.x, items)
	case *callExpr: // m.get('key')
		return e.method != nil && e.method.name == "get" && e.args.simple && all(e.args.pos...) && asks(e.method.x, items)
	case *logicExpr:
		return all(e.left, e.right)
	case *notExpr:
		x, ok := e.x.(expr)
		return ok && asks(x, items)
	case anyCond:
		return asks(e.expr, items)
	case *equalsExpr:
		return asks(e.x, items)
	case *containsExpr:
		return asks(e.x, items)
	case *compareExpr:
		return asks(e.x, items) && all(e.rest...)
	case *testExpr:
		return e.is != nil && asks(e.x, items)
	}
	return false
}

// asksNothing reports whether a condition is a test of a type of another variable.
func asksNothing(c cond, items []int) bool {
	switch c := c.(type) {
	case *notExpr:
		return asksNothing(c.x, items)
	case *testExpr:
		name, ok := c.x.(*nameExpr)
		return ok && c.is != nil && !isItem(name, items)
	case *nameExpr:
		return !isItem(c, items)
	case anyCond:
		name, ok := c.expr.(*nameExpr)
		return ok && !isItem(name, items)
	}
	return false
}

func isItem(e expr, items []int) bool {
	n, ok := e.(*nameExpr)
	return ok && n.depth == 0 && slices.Contains(items, n.slot)
}

// seekIndex says which messages have what a loop looks for, by their number.
type seekIndex struct {
	known  int   // messages looked at
	always []int // those that the loop is to see whatever it looks for
	keys   map[string][]int
	failed bool // a condition did
}

// next is the first message from i on that the loop must see, or a large number.
func (ix *seekIndex) next(key string, i int) int {
	n := after(ix.always, i)
	if len(ix.keys) == 0 {
		return n
	}
	if list := ix.keys[key]; len(list) > 0 {
		n = min(n, after(list, i))
	}
	return n
}

// after is the first of an ordered list that is i or more.
func after(list []int, i int) int {
	if k := sort.SearchInts(list, i); k < len(list) {
		return list[k]
	}
	return maxMessages
}

const maxMessages = 1 << 40

// run does the loop; ok is false if it is to be done pass by pass.
func (k *seekCode) run(x *exec, s *forStmt) (sig signal, ok bool) {
	list, _ := k.list.eval(x).(*value.List)
	if list == nil || x.err != nil {
		return next, false
	}
	items := list.Items
	if k.start != nil {
		at, ok := value.AsInt(k.start.eval(x))
		if !ok || at < 0 || x.err != nil {
			return next, false
		}
		items = items[min(int(at), len(items)):]
	}
	from, ok := x.numbers(items)
	if !ok {
		return next, false
	}
	x.enter(s.loads)
	key := ""
	if k.with != nil { // anything that is no text equals no text
		if v, ok := k.with.eval(x).(*value.Str); ok {
			key = "=" + v.S
		}
	}
	ix := x.index(s)
	end := from + len(items)
	ix.extend(x, s, end)
	body := s.body
	if !k.more && !ix.failed {
		body = k.then
	}
	for i := ix.next(key, from); i < end; i = ix.next(key, i+1) {
		if !x.step(1) {
			return halt, true
		}
		x.act.slots[s.single] = x.in.Messages[i]
		x.enter(s.loads)
		sig := x.run(body)
		if sig == halt {
			return halt, true
		}
		if sig == settled {
			break
		}
	}
	if x.err != nil {
		x.at(s.pos)
		return halt, true
	}
	x.leave(s.clear)
	return next, true
}

// numbers tells which message the first of items is, if they are all messages from
// there on.
func (x *exec) numbers(items []value.Value) (from int, ok bool) {
	if len(items) == 0 {
		return 0, false
	}
	d, ok := items[0].(*value.Dict)
	if !ok || d.Message == 0 {
		return 0, false
	}
	from = int(d.Message) - 1
	if x.in.Place != nil {
		from = int(x.in.Place[from])
	}
	return from, from >= 0 && from+len(items) <= len(x.in.Messages) && &x.in.Messages[from] == &items[0]
}

// index is the one for a loop.
func (x *exec) index(s *forStmt) *seekIndex {
	if len(x.indexes) == 0 {
		x.indexes = make([]seekIndex, x.prog.seeks)
	}
	return &x.indexes[s.seek.number]
}

// extend looks at messages up to end.
func (ix *seekIndex) extend(x *exec, s *forStmt, end int) {
	if ix.known >= end {
		return
	}
	if ix.keys == nil {
		ix.keys = map[string][]int{}
	}
	steps, act := x.steps, x.act
	x.act = &activation{slots: make([]value.Value, len(s.fn.order))}
	for ; ix.known < end; ix.known++ {
		x.act.slots[s.single] = x.in.Messages[ix.known]
		always := s.seek.collect(x, s.seek.path, func(key string) {
			if list := ix.keys[key]; len(list) == 0 || list[len(list)-1] < ix.known {
				ix.keys[key] = append(list, ix.known)
			}
		})
		if x.err != nil {
			x.err, x.errPos, always, ix.failed = nil, -1, true, true
		}
		if always {
			ix.always = append(ix.always, ix.known)
		}
	}
	x.steps, x.act = steps, act
	x.pause = min((steps>>10+1)<<10, x.lim.Steps+1)
}

// reset forgets all messages.
func (ix *seekIndex) reset() {
	clear(ix.keys)
	ix.known, ix.always, ix.failed = 0, ix.always[:0], false
}

// collect calls f with each text that a message compares. It reports whether the
// loop must see the message whatever it looks for.
func (k *seekCode) collect(x *exec, path []seekStep, f func(key string)) (always bool) {
	for i, p := range path {
		if p.gate != nil {
			if !p.gate.truth(x) {
				return false
			}
			continue
		}
		items, fault := value.Elements(p.each.iter.eval(x), x.lim.Items)
		x.fail(fault)
		for _, item := range items {
			if x.err != nil {
				break
			}
			x.act.slots[p.each.single] = item
			always = k.collect(x, path[i+1:], f) || always
		}
		return always
	}
	if k.key == nil {
		return true
	}
	if v, ok := k.key.eval(x).(*value.Str); ok {
		f("=" + v.S)
		return false
	}
	return true
}

// computes reports whether e does nothing but compute.
func computes(e expr) bool {
	switch e := e.(type) {
	case *constExpr, *nameExpr:
		return true
	case *attrExpr:
		return computes(e.x)
	case *binaryExpr:
		return computes(e.left) && computes(e.right)
	case *sumExpr:
		return !slices.ContainsFunc(e.terms, func(e expr) bool { return !computes(e) })
	case *filterExpr:
		return e.length && computes(e.x)
	}
	return false
}
