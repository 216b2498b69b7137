package eval

import (
	"slices"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Most ifs of a template ask what one text of a message is:
//
//	{% if m.role == 'user' or m.role == 'system' and not loop.first %}…{% elif m.role == 'assistant' %}…{% elif m.role == 'tool' %}…
//
// Each text that they compare it with decides some of the conditions. So the text is
// looked up once, and the conditions that it makes false are not asked.

// choice is what the text under a key of a variable decides.
type choice struct {
	owner
	lookup
	texts []string
	keys  []value.Key // of the texts
	// first is, by text and in the end for anything else, the first condition that may hold;
	// holds says that it does.
	first []int
	holds []bool
}

// choose finds the choice of s, nil for none that pays.
func (s *ifStmt) choose() *choice {
	var c *choice
	n := 0
	for _, t := range s.tests {
		eachEquals(t, func(e *equalsExpr) {
			o, l := e.asks()
			if o == nil || c != nil && (o.slot != c.slot || l.key != c.lookup.key) {
				return
			}
			if c == nil {
				c = &choice{owner: *o, lookup: *l}
			}
			if n++; !slices.Contains(c.texts, e.text) {
				c.texts = append(c.texts, e.text)
			}
		})
	}
	if n < 2 {
		return nil
	}
	for _, t := range c.texts {
		c.keys = append(c.keys, value.NewKey(t))
	}
	for k := range len(c.texts) + 1 {
		i, holds := 0, false
		for ; i < len(s.tests); i++ {
			truth, known := c.decides(s.tests[i], k)
			if holds = truth; truth || !known {
				break
			}
		}
		c.first, c.holds = append(c.first, i), append(c.holds, holds)
	}
	return c
}

// eachEquals calls f for the comparisons with a text that a condition is made of.
func eachEquals(c cond, f func(*equalsExpr)) {
	switch c := c.(type) {
	case *equalsExpr:
		f(c)
	case *notExpr:
		eachEquals(c.x, f)
	case *logicExpr:
		eachEquals(c.leftCond, f)
		eachEquals(c.rightCond, f)
	}
}

// asks is the key of a variable that e compares, or nil.
func (e *equalsExpr) asks() (*owner, *lookup) {
	switch x := e.x.(type) {
	case *attrExpr:
		if x.plain && x.slot >= 0 {
			return &x.owner, &x.lookup
		}
	case *keyExpr:
		if x.slot >= 0 {
			return &x.owner, &x.lookup
		}
	}
	return nil, nil
}

// decides tells what a condition is for text k, if what stands in front of an answer
// is known, too: what is left out has no effect then.
func (c *choice) decides(t cond, k int) (truth, known bool) {
	switch t := t.(type) {
	case *equalsExpr:
		o, l := t.asks()
		if o == nil || o.slot != c.slot || l.key != c.lookup.key {
			return false, false
		}
		return (k < len(c.texts) && c.texts[k] == t.text) != t.not, true
	case *notExpr:
		truth, known = c.decides(t.x, k)
		return !truth && known, known
	case *logicExpr:
		if truth, known = c.decides(t.leftCond, k); known && truth != t.or {
			return c.decides(t.rightCond, k)
		}
		return truth, known
	}
	return false, false
}

// branch is the first condition that may hold, and whether it does. What is no dict
// may fail, so that is left to the conditions.
func (c *choice) branch(x *exec) (first int, holds bool) {
	d := c.dict(x)
	if d == nil {
		return 0, false
	}
	k := len(c.texts)
	if s, ok := c.in(x, d).(*value.Str); ok {
		h := value.Head(s.S)
		for i := range c.keys {
			if c.keys[i].Is(s.S, h) {
				k = i
				break
			}
		}
	}
	return c.first[k], c.holds[k]
}

// Others use what they just asked for:
//
//	{% if m.content is string %}{% set content = m.content %}…
//	{% if m.tool_calls %}{% for call in m.tool_calls %}…
//
// ask notes that for a condition and the statements that are run next, so that it is
// looked up once. Bodies that are run without their condition (seekCode.take) set no
// variables and print nothing.
func ask(t cond, body []stmt) {
	asked, ok := t.(*attrExpr)
	if is, test := t.(*testExpr); test && is.alone {
		asked, ok = is.x.(*attrExpr)
	}
	if !ok || asked.slot < 0 || len(body) == 0 {
		return
	}
	wants := func(e expr) bool {
		wanted, ok := e.(*attrExpr)
		if ok = ok && wanted.slot == asked.slot && wanted.name == asked.name; ok {
			asked.again = true
		}
		return ok
	}
	switch st := body[0].(type) {
	case *setNameStmt:
		st.again = wants(st.e)
	case *outputStmt:
		e := st.e
		if f, ok := e.(*filterExpr); ok && f.json {
			e = f.x
		}
		st.again = wants(e)
	case *forStmt:
		st.again = wants(st.iter)
	}
}

// found is what the condition in front found, nil for nothing.
func (x *exec) found() value.Value {
	return x.asked
}
