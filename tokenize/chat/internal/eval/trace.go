package eval

import (
	"bytes"
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
