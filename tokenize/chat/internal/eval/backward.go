package eval

import (
	"slices"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// backwards is what is known of a loop from the last message to the first. Many
// of its passes do nothing: they write neither to the output nor to a namespace.
// Such a pass does nothing again while what it read is the same, so the loop can
// go past a stretch of them in one step.
type backwards struct {
	known, found []stretch // of the run before, and of this one
	at           stretch   // the one that grows with each pass that does nothing
	reads        []*source // since it began
	ran          bool      // a pass is under way
	busy         bool      // it did something that cannot be left out
	lost         bool      // no more is known
	out          mark      // in front of it
	done         int       // steps in front of it
}

// stretch is a run of passes, over items[lo:hi], that do nothing.
type stretch struct {
	lo, hi int
	steps  int
	needs  []need
}

// need is a value that the passes of a stretch read.
type need struct {
	s *source
	v value.Value
}

// retrace begins a stretch in front of the pass over items[at-1], with the values
// of this moment.
func (lt *section) retrace(x *exec, at int) {
	lt.at, lt.reads, lt.wrote = stretch{lo: at, hi: at}, lt.reads[:0], lt.t.wrote
	lt.t.look(x)
	if !slices.Equal(lt.t.layout, lt.layout) || !slices.Equal(lt.t.names, lt.names) {
		lt.lost, lt.known, lt.found = true, nil, nil // a namespace has got another attribute
		return
	}
	for i, v := range lt.t.values {
		lt.sources[i].reads = lt.sources[i].reads[:0]
		lt.sources[i].set(v)
	}
	lt.put(x)
}

// goBack is called in front of each pass and behind the last.
func (lt *section) goBack(x *exec) {
	if lt.lost {
		return
	}
	l := lt.loop
	if at := len(lt.items) - l.i; !lt.ran {
		lt.known, lt.found = lt.found, lt.known[:0]
		lt.retrace(x, at)
	} else if lt.busy || lt.wrote != lt.t.wrote || lt.out != lt.t.mark(x) {
		lt.keep()
		lt.retrace(x, at)
	} else {
		lt.grow(at, x.steps-lt.done)
	}
	for i := 0; i < len(lt.known); i++ {
		if k := &lt.known[i]; k.hi == len(lt.items)-l.i && k.lo < k.hi && k.again() {
			for _, n := range k.needs {
				n.s.narrow(0, 0)
			}
			lt.grow(k.lo, k.steps)
			lt.t.leaveOut(x, k.steps)
			l.i += k.hi - k.lo
			i = -1
		}
	}
	lt.ran, lt.busy, lt.out, lt.done = true, false, lt.t.mark(x), x.steps
}

// again reports whether the passes of k do nothing this time, too.
func (k *stretch) again() bool {
	for _, n := range k.needs {
		if !same(n.v, n.s.v) {
			return false
		}
	}
	return true
}

func (lt *section) grow(lo, steps int) {
	lt.at.lo, lt.at.steps = lo, lt.at.steps+steps
	for _, s := range lt.reads[len(lt.at.needs):] {
		lt.at.needs = append(lt.at.needs, need{s, s.v})
	}
}

// keep ends the stretch that grows.
func (lt *section) keep() {
	if !lt.lost && lt.at.lo < lt.at.hi {
		lt.found = append(lt.found, lt.at)
	}
}

// later evaluates what a pass sets a variable to. If that reads more than the pass
// did so far, as in
//
//	{% set index = (messages | length - 1) - loop.index0 %}
//
// the pass has read it only when it reads the variable, if it ever does.
func (t *Trace) later(x *exec, e expr) value.Value {
	lt := t.active
	if lt == nil {
		return e.eval(x)
	}
	if !lt.backward {
		if s := x.rest(e); s != nil {
			return s
		}
		return e.eval(x)
	}
	busy, n := lt.busy, len(lt.reads)
	lt.busy = false
	v := e.eval(x)
	late := lt.busy || len(lt.reads) > n
	lt.busy = busy
	if !late {
		return v
	}
	for _, s := range lt.reads[n:] {
		s.reads = s.reads[:0]
	}
	lt.reads = lt.reads[:n]
	return &source{in: lt, v: v, late: true}
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
