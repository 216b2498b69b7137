package eval

import (
	"bytes"
	"math"
	"slices"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// A Trace lets the runs of a program over prefixes of one conversation leave out
// what an earlier run has done. It rests on what that run was seen to read, not
// on what templates usually do.
//
// A loop over messages is traced, unless what it writes is captured. Two passes share
// nothing but namespaces (what a pass sets ends with it) and the output, so a
// pass is a function of its message, of the namespaces and of whatever else it
// reads: variables, inputs, the length of the list. While the loop runs, a source
// stands in the place of each of these, and notes the passes that read it; before
// each pass the namespaces and the length of the output are put down. When the
// next run reaches the loop with the same output, each
// source says up to which pass its value of today would have done the same. The
// loop goes on from there, with the namespaces and the output of then.
//
// Whatever is not understood ends the part that can be left out: an object that
// changes and is no namespace (cycler, joiner, an iterator, loop.changed), or a
// namespace that is given one. A list that is read as a whole holds for its length
// only.
//
// A loop over the messages from the last to the first (Qwen's, which looks for the
// last question) begins with what is new. backward.go tells what it leaves out, and
// lines.go what is left out in front of loops and between them.
//
// A Trace is for one goroutine, one program and the same inputs but for the
// messages and their number.
type Trace struct {
	// What the last run wrote.
	Text     []byte
	Runs     []value.Run
	Gens     [][2]int
	Messages []Extent
	// Kept says how many bytes of that, and of their origins, are as the run
	// before wrote them.
	Kept int
	// Steps counts the steps that the last run did, without those it left out.
	Steps int

	sections []*section
	indexes  []seekIndex
	root     activation // the variables of the program
	again    []bool     // by line: it is run each time
	last     int        // lines up to the last traced loop of the run before; 0 if not known
	runs     int        // begun; the first is not traced, as many are the only one
	// Of the run under way:
	from   mark // the output up to here is the one of the run before
	met    int  // sections so far
	active *section
	at     int // line
	looped int // lines up to the last traced loop
	spaces []*Namespace
	wrote  int // namespaces and their attributes
	left   int // steps left out
	// What look finds: the values that a pass can read, their number in each place,
	// and the names of attributes.
	values []value.Value
	layout []int
	names  []string
	set    []setting
}

// leaveOut counts steps of an earlier run, so that limits hold as ever.
func (t *Trace) leaveOut(x *exec, steps int) {
	x.steps += steps
	t.left += steps
}

// mark is a place in the output, and the last run there, which may grow.
type mark struct {
	text, runs, gens, messages int
	last                       value.Run
}

// LeftOut tells how many of Runs and Messages the last run took over from the one
// before.
func (t *Trace) LeftOut() (runs, messages int) { return t.from.runs, t.from.messages }

func (t *Trace) start() {
	t.from, t.met, t.active, t.spaces, t.wrote, t.left = mark{}, 0, nil, t.spaces[:0], 0, 0
	t.last, t.looped = t.looped, 0
	t.runs++
}

// mark is the place where the output ends now.
func (t *Trace) mark(x *exec) mark {
	out := &x.output
	m := mark{t.from.text + len(out.Text.B), t.from.runs + len(out.Text.Runs), t.from.gens + len(out.Text.Gens), t.from.messages + len(out.Messages), value.Run{}}
	if k := len(out.Text.Runs); k > 0 {
		m.last = out.Text.Runs[k-1]
		m.last.At += int32(t.from.text)
	}
	return m
}

// jump goes on from an earlier place in the output of the run before. The last
// run comes along, in case it grows.
func (t *Trace) jump(x *exec, m mark) {
	out := &x.output
	out.Text.Reset()
	out.Messages = out.Messages[:0]
	t.from = m
	if m.runs > 0 {
		t.from.runs--
		m.last.At -= int32(m.text)
		out.Text.Runs = append(out.Text.Runs, m.last)
	}
}

// repeats reports whether the output so far is what the run before had written at m.
func (t *Trace) repeats(x *exec, m mark) bool {
	if now := t.mark(x); now != m || !bytes.Equal(x.root.B, t.Text[t.from.text:m.text]) {
		return false
	}
	for i, r := range x.root.Runs {
		r.At += int32(t.from.text)
		if k := t.from.runs + i; k < m.runs-1 && r != t.Runs[k] {
			return false
		}
	}
	for i, e := range x.output.Messages {
		if (Extent{e.Message, e.Start + t.from.text, e.End + t.from.text}) != t.Messages[t.from.messages+i] {
			return false
		}
	}
	for i, g := range x.root.Gens {
		if [2]int{g[0] + t.from.text, g[1] + t.from.text} != t.Gens[t.from.gens+i] {
			return false
		}
	}
	return true
}

// finish puts what the run wrote behind what it left out.
func (t *Trace) finish(x *exec) {
	out := &x.output
	kept := t.from.text + common(t.Text[t.from.text:], out.Text.B)
	t.Text = append(t.Text[:t.from.text], out.Text.B...)
	old := t.Runs[t.from.runs:]
	for i := range out.Text.Runs {
		r := &out.Text.Runs[i]
		r.At += int32(t.from.text)
		if i >= len(old) || old[i] != *r {
			kept = min(kept, int(r.At))
			if i < len(old) {
				kept = min(kept, int(old[i].At))
			}
		}
	}
	if k := len(out.Text.Runs); k < len(old) {
		kept = min(kept, int(old[k].At))
	}
	t.Runs = append(t.Runs[:t.from.runs], out.Text.Runs...)
	t.Gens = t.Gens[:t.from.gens]
	for _, g := range out.Text.Gens {
		t.Gens = append(t.Gens, [2]int{g[0] + t.from.text, g[1] + t.from.text})
	}
	t.Messages = t.Messages[:t.from.messages]
	for _, e := range out.Messages {
		t.Messages = append(t.Messages, Extent{e.Message, e.Start + t.from.text, e.End + t.from.text})
	}
	t.Kept, t.Steps = kept, x.steps-t.left
	t.sections = t.sections[:t.met]
	clear(t.values)
}

func common(a, b []byte) int {
	n := min(len(a), len(b))
	if bytes.Equal(a[:n], b[:n]) {
		return n
	}
	i := 0
	for a[i] == b[i] {
		i++
	}
	return i
}

// drop forgets all, after a run that failed.
func (t *Trace) drop() {
	if t != nil {
		*t = Trace{}
	}
}

// made takes down a namespace. Those that a pass of a loop makes end with it.
func (t *Trace) made(ns *Namespace) {
	if t == nil || t.active != nil && t.active.loop != nil {
		return
	}
	t.spaces = append(t.spaces, ns)
	ns.number = len(t.spaces)
	t.wrote++
	if t.active != nil && !frozen(ns.attrs) {
		t.active.stop()
	}
}

// writes notes that a namespace is given v.
func (t *Trace) writes(v value.Value) {
	if t == nil {
		return
	}
	t.wrote++
	if t.active != nil && !frozen(v) {
		t.active.stop()
	}
}

// frozen reports whether v is data that nothing can change.
func frozen(v value.Value) bool {
	switch v := v.(type) {
	case *value.Str, *value.Bool, *value.None, *value.Int, *value.Float, *value.Undefined, *value.Range, *value.Bytes:
		return true
	case *value.List:
		return v.F != nil || !slices.ContainsFunc(v.Items, func(v value.Value) bool { return !frozen(v) })
	case *value.Dict:
		for i := range v.Len() {
			if v.F == nil && !frozen(v.Val(i)) {
				return false
			}
		}
		return true
	}
	return false
}

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
