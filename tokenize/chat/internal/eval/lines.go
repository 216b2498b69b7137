package eval

import (
	"slices"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// What a template writes in front of its loop over messages, the system text and the
// tools, is the same for every prompt of a conversation, and often longer than what
// is new. So the lines of a program, its statements outside of loops, are traced as
// the passes of a loop are. They share the variables of the program besides the
// namespaces, so those are put down, too, in front of each line.
//
// A line that was seen to do something else than the time before, or to run a
// traced loop, is run each time from then on. The lines between two such lines are a
// section, which is left out up to where a line reads what has changed. Of what a
// variable can hold, macros of the program are understood besides data and namespaces;
// after anything else no more of the section is left out. Nothing is traced behind the
// last loop, where the output is another each time.

// line is a statement of the program outside of loops, in line with the branches
// of its ifs.
type line struct {
	do stmt  // nil behind a branch: to[0] is next
	to []int // where the branches begin, if it is an if
}

// inLine appends the lines of a body.
func inLine(out []line, body []stmt) []line {
	for _, s := range body {
		at := len(out)
		out = append(out, line{do: s})
		branch, ok := s.(*ifStmt)
		if !ok {
			continue
		}
		var ends []int
		for _, body := range append(branch.bodies[:len(branch.bodies):len(branch.bodies)], branch.els) {
			out[at].to = append(out[at].to, len(out))
			out = inLine(out, body)
			ends = append(ends, len(out))
			out = append(out, line{})
		}
		for _, end := range ends {
			out[end].to = []int{len(out)}
		}
	}
	return out
}

// run runs the program.
func (t *Trace) run(x *exec) {
	code, lines := x.prog.root, x.prog.lines
	if t.again == nil {
		t.again, t.root.slots = make([]bool, len(lines)), make([]value.Value, len(code.fn.order))
	}
	clear(t.root.slots)
	x.act = &t.root
	x.enter(code.loads)
	for at := 0; at < len(lines); {
		at = t.before(x, at)
		t.at = at
		l := &lines[at]
		switch {
		case l.do == nil:
			at = l.to[0]
		case l.to != nil:
			at = l.to[l.do.(*ifStmt).branch(x)]
			continue
		case l.do.exec(x) != next:
			return
		default:
			at++
		}
		if !x.step(1) {
			return
		}
	}
}

// before is called in front of a line, and returns the one to go on with.
func (t *Trace) before(x *exec, at int) int {
	if t.active != nil {
		t.active.record(x, at)
		if t.eachTime(at) {
			t.close(x)
		}
	}
	for t.active == nil && !t.eachTime(at) {
		lt := t.open(x, beginning{line: at})
		if len(lt.passes) > 0 {
			at = lt.skip(x)
			continue
		}
		lt.forget(0)
		lt.put(x)
		lt.wrote = t.wrote
		lt.record(x, at)
	}
	return at
}

// skip leaves out the section up to the line that it returns, which is run each time
// from now on.
func (lt *section) skip(x *exec) int {
	t, k := lt.t, lt.agrees(x)
	lt.passes = lt.passes[:k+1]
	at := lt.passes[k].line
	t.active, t.again[at] = nil, true
	if k == 0 {
		return at
	}
	p := lt.leaveOut(x, k)
	if p.spaces != nil {
		for _, ns := range t.spaces {
			for i := range ns.attrs.Len() {
				ns.attrs.SetVal(i, lt.today(ns.attrs.Val(i)))
			}
		}
	}
	for _, s := range p.set {
		x.act.slots[s.slot] = lt.today(s.v)
	}
	return at
}

// today is what stands for a value of an earlier run in this one.
func (lt *section) today(v value.Value) value.Value {
	switch v := v.(type) {
	case *source:
		if v.base == nil {
			return lt.t.values[v.place]
		}
		if v.run != lt.t.runs {
			v.run = lt.t.runs
			v.set(restOf(lt.today(v.base), v.from))
		}
		return v.v
	case *Namespace:
		return lt.t.spaces[v.number-1]
	}
	return v
}

// eachTime reports whether a line is run, and no part of a section.
func (t *Trace) eachTime(at int) bool {
	return t.runs == 1 || t.again[at] || t.last > 0 && at >= t.last
}

// record puts down the state in front of a line.
func (lt *section) record(x *exec, at int) {
	p := lt.state(x)
	p.line = at
	var before passTrace
	if k := len(lt.passes); k > 0 {
		before = lt.passes[k-1]
	}
	if p.made = before.made; len(p.made) < len(lt.t.spaces)-lt.old {
		p.made = slices.Clone(lt.t.spaces[lt.old:])
	}
	set := lt.t.set[:0]
	for i, v := range x.act.slots {
		if v != value.Value(&lt.sources[len(x.inputs)+i]) {
			set = append(set, setting{i, v})
		}
	}
	if p.set, lt.t.set = before.set, set; !slices.Equal(set, p.set) {
		p.set = slices.Clone(set)
		for _, s := range set {
			switch s.v.(type) {
			case nil, *source, *Namespace, *Macro:
			default:
				if !frozen(s.v) {
					lt.stop()
				}
			}
		}
	}
	lt.pass = len(lt.passes)
	lt.passes = append(lt.passes, p)
}
