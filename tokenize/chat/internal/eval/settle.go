package eval

import (
	"slices"

	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Templates look for a later message of some kind with a loop that only sets a
// flag:
//
//	{% for m in messages[loop.index:] %}{% if m.role == 'assistant' %}{% set ns.found = true %}{% endif %}{% endfor %}
//
// For each message, that reads all that follow. Once the flag is set the other
// passes can only set it to the same value again, so such a loop ends there.

// settledStmt says that no later pass of the loop changes anything, if all items
// that are left are dicts.
type settledStmt struct{}

func (settledStmt) exec(*exec) signal { return settled }

// Others keep a flag that each pass asks before anything else:
//
//	{% for k in range(loop.index, messages|length) %}{% if not ns.found %}…{% set ns.found = true %}{% endif %}{% endfor %}
//
//	{% for m in messages[::-1] %}{% set i = loop.index0 %}{% if ns.seeking and … %}{% set ns.seeking = false %}{% endif %}{% endfor %}
//
// A pass that the flag turns away does nothing, so none that follows does anything.

// latchedStmt says that no later pass of the loop does anything.
type latchedStmt struct{}

func (latchedStmt) exec(*exec) signal { return latched }

// unlessStmt is a latchedStmt while its flag does not hold.
type unlessStmt struct{ flag cond }

func (s unlessStmt) exec(x *exec) signal {
	if !s.flag.truth(x) {
		return latched
	}
	return next
}

// latch lets the loop end at the first pass that is turned away. source is its body.
func (s *forStmt) latch(source []syntax.Stmt) {
	n := len(s.body) - 1
	if n < 0 || s.single < 0 || s.els != nil || !s.counts(s.body[:n]) || len(source) <= n || mentions(source[n:], "loop")["loop"] {
		return
	}
	branch, ok := s.body[n].(*ifStmt)
	if !ok {
		return
	}
	not, isNot := branch.tests[0].(*notExpr)
	switch flag := first(branch.tests[0]); {
	case isNot:
		if s.isFlag(not.x) && len(branch.tests) == 1 && branch.els == nil {
			branch.els = []stmt{latchedStmt{}}
		}
	case flag != branch.tests[0]:
		if s.isFlag(flag) && len(branch.tests) == 1 && branch.els == nil {
			branch.els = []stmt{unlessStmt{flag}}
		}
	case s.isFlag(flag) && len(branch.bodies[0]) == 0:
		branch.bodies[0] = []stmt{latchedStmt{}}
	}
}

// first is what a condition asks first: if it does not hold, the condition does not.
func first(c cond) cond {
	if and, ok := c.(*logicExpr); ok && !and.or {
		return first(and.leftCond)
	}
	return c
}

// counts reports whether statements only set variables of a pass, to sums that are in
// all passes of the same type.
func (s *forStmt) counts(list []stmt) bool {
	for _, st := range list {
		set, ok := st.(*setNameStmt)
		if !ok || !slices.Contains(s.clear, set.slot) || !s.isCount(set.e) {
			return false
		}
	}
	return true
}

func (s *forStmt) isCount(e expr) bool {
	switch e := e.(type) {
	case *constExpr:
		return true
	case *nameExpr:
		return !s.isItem(e) && !s.isLoop(e)
	case *attrExpr:
		return s.isLoop(e.x) && e.count > 0
	case *binaryExpr:
		return e.minus && s.isCount(e.left) && s.isCount(e.right)
	case *sumExpr:
		return !slices.ContainsFunc(e.terms, func(e expr) bool { return !s.isCount(e) })
	case *filterExpr:
		return e.length && s.isCount(e.x)
	}
	return false
}

// isFlag reports whether c asks an attribute of a variable that is not the item.
func (s *forStmt) isFlag(c cond) bool {
	e, ok := c.(*attrExpr)
	if !ok {
		return false
	}
	name, ok := e.x.(*nameExpr)
	return ok && e.plain && !s.isItem(e.x) && !(name.depth == 0 && slices.Contains(s.clear, name.slot))
}

// settle lets the loop end early where its only effect is to set attributes of
// namespaces to constants, under a condition that looks at nothing but the item.
func (s *forStmt) settle() {
	if len(s.body) != 1 || s.single < 0 || s.els != nil {
		return
	}
	branch, ok := s.body[0].(*ifStmt)
	if !ok || len(branch.tests) != 1 || branch.els != nil || !s.asksItem(branch.tests[0]) {
		return
	}
	for _, st := range branch.bodies[0] {
		if !s.setsConstant(st) {
			return
		}
	}
	branch.bodies[0] = append(branch.bodies[0], settledStmt{})
}

func (s *forStmt) setsConstant(st stmt) bool {
	set, ok := st.(*setStmt)
	if !ok {
		return false
	}
	to, ok := set.target.(*attrTarget)
	if !ok || s.isItem(to.ns) {
		return false
	}
	_, ok = set.e.(*constExpr)
	return ok
}

// asksItem reports whether a condition depends on the item alone, has no effect,
// and cannot fail where the item is a dict.
func (s *forStmt) asksItem(c cond) bool {
	switch c := c.(type) {
	case *logicExpr:
		return s.asksItem(c.leftCond) && s.asksItem(c.rightCond)
	case *notExpr:
		return s.asksItem(c.x)
	case *equalsExpr:
		return s.readsItem(c.x)
	case *containsExpr:
		return s.isItem(c.x)
	case *testExpr:
		return c.is != nil && s.readsItem(c.x)
	case *attrExpr:
		return s.readsItem(c)
	case anyCond:
		return s.readsItem(c.expr)
	}
	return false
}

// readsItem reports whether e is a field of the item.
func (s *forStmt) readsItem(e expr) bool {
	switch e := e.(type) {
	case *attrExpr:
		return e.plain && s.isItem(e.x)
	case *keyExpr:
		return s.isItem(e.x)
	}
	return false
}

func (s *forStmt) isItem(e expr) bool {
	n, ok := e.(*nameExpr)
	return ok && n.depth == 0 && n.slot == s.single
}

func (s *forStmt) isLoop(e expr) bool { return s.loopSlot >= 0 && isItem(e, []int{s.loopSlot}) }

// dictsLeft reports whether the items of all later passes are there, and dicts.
func (l *Loop) dictsLeft() bool {
	if l.next != nil || l.numbers != nil {
		return false
	}
	for i := l.i + 1; i < len(l.items); i++ {
		if _, ok := l.item(i).(*value.Dict); !ok {
			return false
		}
	}
	return true
}
