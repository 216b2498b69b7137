package eval

import (
	"math"
	"slices"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// section is what is known of the passes of one loop, or of consecutive lines of
// the program, which are passes, too (see lines.go).
type section struct {
	beginning
	t       *Trace
	entry   mark
	old     int // namespaces in front of it
	sources []source
	layout  []int // see Trace
	names   []string
	length  source // of the list
	loop    *Loop
	pass    int // under way; 0 in a backward loop
	steps   int // of the run when the section began

	passes  []passTrace // by pass, before it
	stopped int         // the first pass that cannot be left out
	spaces  []*value.Dict
	wrote   int // Trace.wrote when spaces was taken

	backwards
}

// beginning is the first line of a section, or -1 and the loop over its items.
type beginning struct {
	line     int
	code     *forStmt
	items    []value.Value
	numbers  *value.Range // in place of items
	backward bool
}

// passTrace is the state before a pass. A source stands in spaces, and in slots,
// for what no pass wrote.
type passTrace struct {
	out       mark
	spaces    []*value.Dict
	steps     int
	completed bool // see section.before
	// Of a line of the program:
	line int
	set  []setting    // variables that the section has set
	made []*Namespace // by the section so far
}

type setting struct {
	slot int
	v    value.Value
}

// enter begins to trace a loop if it can be, or goes on with an earlier trace of it.
func (t *Trace) enter(x *exec, s *forStmt, l *Loop) {
	if t.runs == 1 || t.active != nil && t.active.loop != nil || l.next != nil || l.count() == 0 || len(x.prog.blocks) > 0 || l.backward && s.els != nil {
		return
	}
	if l.numbers != nil {
		if !s.outermost || l.numbers.Step != 1 {
			return
		}
	} else if d, ok := l.items[0].(*value.Dict); !ok || d.Message == 0 {
		return
	}
	t.looped = t.at + 1
	lt := t.open(x, beginning{line: -1, code: s, items: l.items, numbers: l.numbers, backward: l.backward})
	l.trace = lt
	lt.items, lt.numbers, lt.loop, lt.wrote, lt.ran = l.items, l.numbers, l, -1, false
	if lt.backward {
		return
	}
	l.i = min(lt.agrees(x), l.count(), lt.length.holds(l.size()))
	lt.forget(l.i)
	lt.put(x)
	if l.i > 0 {
		lt.spaces, lt.wrote = lt.leaveOut(x, l.i).spaces, t.wrote
	}
}

// open begins a section, or goes on with an earlier trace of it.
func (t *Trace) open(x *exec, now beginning) *section {
	t.look(x)
	i := slices.IndexFunc(t.sections[t.met:], func(lt *section) bool { return lt.continues(x, now) })
	if i < 0 {
		t.sections = slices.Insert(t.sections, t.met, t.trace(x, now))
	} else {
		t.sections = slices.Delete(t.sections, t.met, t.met+i)
	}
	t.active = t.sections[t.met]
	t.active.steps = x.steps
	t.met++
	return t.active
}

// trace begins a new trace.
func (t *Trace) trace(x *exec, now beginning) *section {
	lt := &section{beginning: now, t: t, entry: t.mark(x), old: len(t.spaces), stopped: math.MaxInt}
	lt.layout, lt.names = slices.Clone(t.layout), slices.Clone(t.names)
	lt.length.in = lt
	lt.sources = make([]source, len(t.values))
	for i := range lt.sources {
		lt.sources[i].in, lt.sources[i].place = lt, i
	}
	return lt
}

// continues reports whether the section that lt traced is the one that now begins:
// the same code, a loop over a list that begins like it, behind the same output.
func (lt *section) continues(x *exec, now beginning) bool {
	return lt.line == now.line && lt.code == now.code && lt.backward == now.backward && lt.startsLike(now) &&
		slices.Equal(lt.layout, lt.t.layout) && slices.Equal(lt.names, lt.t.names) && lt.t.repeats(x, lt.entry)
}

func (b beginning) startsLike(now beginning) bool {
	m, n := b.numbers, now.numbers
	if m == nil || n == nil {
		return m == n && sameStart(b.items, now.items)
	}
	return m.Start == n.Start && m.F == n.F
}

// agrees returns how many of the first passes would do the same again.
func (lt *section) agrees(x *exec) int {
	k := min(len(lt.passes)-1, lt.stopped)
	for i := range lt.sources {
		if s := &lt.sources[i]; len(s.reads)+len(s.seeks) > 0 {
			k = min(k, s.holds(lt.t.values[i]), s.finds(x, lt.t.values[i]))
		}
	}
	return max(k, 0)
}

// leaveOut goes on from the state in front of pass k.
func (lt *section) leaveOut(x *exec, k int) *passTrace {
	t, p := lt.t, &lt.passes[k]
	t.jump(x, p.out)
	t.leaveOut(x, p.steps)
	t.spaces = append(t.spaces, p.made...)
	for i, d := range p.spaces {
		t.spaces[i].attrs = d.Clone(0)
	}
	return p
}

// size is a value with the number of items.
func (l *Loop) size() value.Value {
	if l.numbers != nil {
		return value.NewInt(int64(l.numbers.Len()))
	}
	return &value.List{Items: l.items}
}

// places calls f for all that a pass can read besides its message: inputs, the
// variables of the functions around it, the attributes of namespaces. f returns
// what is to be there.
func (t *Trace) places(x *exec, f func(value.Value) value.Value) {
	each := func(list []value.Value) {
		for i, v := range list {
			if to := f(v); to != v {
				list[i] = to
			}
		}
	}
	each(x.inputs)
	for a := x.act; a != nil; a = a.up {
		each(a.slots)
	}
	for _, ns := range t.spaces {
		for i := range ns.attrs.Len() {
			ns.attrs.SetVal(i, f(ns.attrs.Val(i)))
		}
	}
}

// look takes down what is in all places, how many there are, and what else is not
// among them.
func (t *Trace) look(x *exec) {
	t.values = t.values[:0]
	t.places(x, func(v value.Value) value.Value { t.values = append(t.values, plain(v)); return v })
	t.layout, t.names = append(t.layout[:0], x.depth), t.names[:0]
	if x.escape {
		t.layout = append(t.layout, -1)
	}
	for a := x.act; a != nil; a = a.up {
		t.layout = append(t.layout, len(a.slots))
	}
	for _, ns := range t.spaces {
		t.layout = append(t.layout, ns.attrs.Len())
		for i := range ns.attrs.Len() {
			name, _ := ns.attrs.KeyString(i)
			t.names = append(t.names, name)
		}
	}
}

// put puts the sources in their places.
func (lt *section) put(x *exec) {
	i := -1
	lt.t.places(x, func(value.Value) value.Value { i++; return &lt.sources[i] })
}

// plain is the value behind a source. One that an earlier loop left in a variable
// of a scope that is over means nothing.
func plain(v value.Value) value.Value {
	if s, ok := v.(*source); ok {
		return s.v
	}
	return v
}

// forget drops what is known of the passes from k on, and takes over the values
// of this run.
func (lt *section) forget(k int) {
	lt.passes = lt.passes[:min(k+1, len(lt.passes))]
	if lt.stopped >= k {
		lt.stopped = math.MaxInt
	}
	for i := range lt.sources {
		lt.sources[i].forget(k)
		lt.sources[i].set(lt.t.values[i])
	}
	if lt.loop != nil {
		lt.length.forget(k)
		lt.length.set(lt.loop.size())
	}
}

// before is called in front of each pass, and once behind the last. It reports
// whether a pass before that ended in the ordinary way.
func (lt *section) before(x *exec, completed bool) bool {
	if lt.backward {
		lt.goBack(x)
		return completed
	}
	lt.pass = lt.loop.i
	if lt.pass < len(lt.passes) { // the loop goes on from here
		return lt.passes[lt.pass].completed
	}
	p := lt.state(x)
	p.completed = completed
	lt.passes = append(lt.passes, p)
	return completed
}

// state is the one of this moment.
func (lt *section) state(x *exec) passTrace {
	if lt.wrote != lt.t.wrote {
		lt.spaces, lt.wrote = make([]*value.Dict, len(lt.t.spaces)), lt.t.wrote
		for i, ns := range lt.t.spaces {
			lt.spaces[i] = ns.attrs.Clone(0)
		}
	}
	return passTrace{out: lt.t.mark(x), spaces: lt.spaces, steps: x.steps - lt.steps}
}

// leave ends the loop.
func (lt *section) leave(x *exec) {
	lt.t.close(x)
	lt.loop.trace = nil
	if lt.backward {
		lt.keep()
	}
}

// close ends the section under way.
func (t *Trace) close(x *exec) {
	t.places(x, plain)
	t.active = nil
}

// stop says that the pass under way cannot be left out.
func (lt *section) stop() {
	lt.stopped = min(lt.stopped, lt.pass)
	lt.busy = true
}

// looked notes that an attribute of the loop object was read.
func (l *Loop) looked(name string) {
	if l.trace == nil {
		return
	}
	lt, n := l.trace, int64(l.count())
	switch {
	case lt.backward:
		lt.busy = true
	case name == "changed":
		lt.stop()
	case name == "length", name == "revindex", name == "revindex0":
		lt.length.narrow(n, n)
	case name != "last" && name != "nextitem":
	case int64(l.i)+1 < n:
		lt.length.narrow(int64(l.i)+2, math.MaxInt64)
	default:
		lt.length.narrow(0, n)
	}
}
