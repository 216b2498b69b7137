package eval

import (
	"math"
	"sort"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// source stands in a variable, or in an attribute of a namespace, while a loop
// is traced. It notes which of its passes read the value that was there when the
// loop began, and how much of it they learnt: of a number, or of the length of a
// list, often only that it is beyond some other number.
type source struct {
	in    *section
	place int         // see Trace.places
	v     value.Value // when the loop began; nil for a variable that is not set
	kind  sourceKind
	n     int64 // the number, or the length
	reads []read
	seeks []*seekReads
	late  bool    // v was set in the pass under way: see later
	base  *source // the list of which v is the rest from an item on; nil for none
	from  int
	run   int // the one that v is of
}

type sourceKind uint8

const (
	plainSource sourceKind = iota
	numberSource
	listSource
)

// read says that the passes up to this one did what they did since n is in
// [lo, hi]; of a value that is no number, that they read it.
type read struct {
	pass   int
	lo, hi int64
}

// TypeName implements value.Value. No template sees it.
func (s *source) TypeName() string { return "source" }

func (s *source) set(v value.Value) {
	s.v, s.kind, s.n = v, plainSource, 0
	switch v := v.(type) {
	case *value.Int:
		if v.Big == nil {
			s.kind, s.n = numberSource, v.V
		}
	case *value.List:
		s.kind, s.n = listSource, int64(len(v.Items))
	}
}

// value reads all of the value. It is nil for a variable that is not set.
func (s *source) value() value.Value {
	if s.late {
		s.in.busy = true
		return s.v
	}
	s.narrow(s.n, s.n)
	return s.v
}

// narrow notes that the pass under way needs n to be in [lo, hi].
func (s *source) narrow(lo, hi int64) {
	if s.base != nil {
		if lo += int64(s.from); lo <= int64(s.from) { // no list is shorter
			lo = math.MinInt64
		}
		if hi < math.MaxInt64 {
			hi += int64(s.from)
		}
		s.base.narrow(lo, hi)
		return
	}
	old := read{lo: math.MinInt64, hi: math.MaxInt64}
	if k := len(s.reads); k > 0 {
		old = s.reads[k-1]
	}
	if s.in.backward { // whose passes are kept for equal values only
		lo, hi = s.n, s.n
		if len(s.reads) == 0 {
			s.in.backwards.reads = append(s.in.backwards.reads, s)
		}
	}
	now := read{s.in.pass, max(lo, old.lo), min(hi, old.hi)}
	if len(s.reads) == 0 || now.lo != old.lo || now.hi != old.hi {
		s.reads = append(s.reads, now)
	}
}

// forget drops what passes from the given one on read.
func (s *source) forget(pass int) {
	s.reads = s.reads[:sort.Search(len(s.reads), func(i int) bool { return s.reads[i].pass >= pass })]
	for _, r := range s.seeks {
		r.forget(pass)
	}
}

// holds returns the first pass that may do something else if the value is v.
func (s *source) holds(v value.Value) int {
	if len(s.reads) == 0 {
		return math.MaxInt
	}
	var now source
	now.set(v)
	if !now.comparable(s) {
		if same(s.v, v) {
			return math.MaxInt
		}
		return s.reads[0].pass
	}
	i := sort.Search(len(s.reads), func(i int) bool { return now.n < s.reads[i].lo || now.n > s.reads[i].hi })
	if i == len(s.reads) {
		return math.MaxInt
	}
	return s.reads[i].pass
}

// comparable reports whether two numbers, or lists, differ in nothing but n.
func (s *source) comparable(o *source) bool {
	switch a := s.v.(type) {
	case *value.Int:
		b, ok := o.v.(*value.Int)
		return ok && s.kind == numberSource && o.kind == numberSource && a.F == b.F
	case *value.List:
		b, ok := o.v.(*value.List)
		return ok && a.Tuple == b.Tuple && a.Group == b.Group && a.F == b.F && sameStart(a.Items, b.Items)
	}
	return false
}

// sameStart reports whether one list is the beginning of the other.
func sameStart(a, b []value.Value) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return &a[0] == &b[0]
}

// item reads element i of a list.
func (s *source) item(x *exec, key value.Value) value.Value {
	i, ok := value.AsInt(key)
	if !ok || i < 0 || x.err != nil {
		return x.getitem(s.value(), key)
	}
	if i < s.n {
		s.narrow(i+1, math.MaxInt64)
	} else {
		s.narrow(math.MinInt64, i)
	}
	return x.getitem(s.v, key)
}

// compare is n+off op v; ok is false for other operators, and unless v is a number.
func (s *source) compare(op string, off int64, v value.Value) (holds, ok bool) {
	const far = 1 << 40
	c, ok := v.(*value.Int)
	if !ok || c.Big != nil || max(off, c.V, s.n) > far || min(off, c.V, s.n) < -far {
		return false, false
	}
	p := c.V - off
	less := func(p int64) bool { // n < p
		if s.n < p {
			s.narrow(math.MinInt64, p-1)
			return true
		}
		s.narrow(p, math.MaxInt64)
		return false
	}
	switch op {
	case "<":
		return less(p), true
	case "<=":
		return less(p + 1), true
	case ">":
		return !less(p + 1), true
	case ">=":
		return !less(p), true
	case "==":
		return !less(p) && less(p+1), true
	case "!=":
		return less(p) || !less(p+1), true
	}
	return false, false
}

// traced is the value that was found in a namespace.
func traced(v value.Value) value.Value {
	if s, ok := v.(*source); ok {
		return s.value()
	}
	return v
}

// source is what traces the variable, or nil.
func (e *nameExpr) source(x *exec) *source {
	s, _ := x.act.outer(e.depth).slots[e.slot].(*source)
	if s != nil && s.late {
		return nil
	}
	return s
}

// list is the source of a list that e names, or nil.
func (x *exec) list(e expr) *source {
	if n, ok := e.(*nameExpr); ok {
		if s := n.source(x); s != nil && s.kind == listSource {
			return s
		}
	}
	return nil
}

// rest is the source for a list that is another one, or one from an item on, whose
// length is not read yet; or nil.
func (x *exec) rest(e expr) *source {
	from := 0
	if part, ok := e.(*sliceExpr); ok {
		e, from = part.x, part.rest
	}
	s := x.list(e)
	if s == nil {
		return nil
	}
	s.narrow(math.MinInt64, math.MaxInt64) // it is a list
	if from == 0 {
		return s
	}
	r := &source{in: s.in, base: s, from: from, run: x.trace.runs}
	r.set(restOf(s.v, from))
	return r
}

// isRest reports whether e is the rest of what a variable holds.
func isRest(e expr) bool {
	part, ok := e.(*sliceExpr)
	if !ok || part.rest == 0 {
		return false
	}
	_, ok = part.x.(*nameExpr)
	return ok
}

// restOf is list[from:].
func restOf(list value.Value, from int) value.Value {
	l := list.(*value.List)
	n := len(l.Items)
	return &value.List{Items: l.Items[min(from, n):n:n], Tuple: l.Tuple}
}

// linear takes e apart into a number that is traced and one that is not.
func (x *exec) linear(e expr) (s *source, off int64) {
	switch e := e.(type) {
	case *nameExpr:
		if s := e.source(x); s != nil && s.kind == numberSource {
			return s, 0
		}
	case *attrExpr:
		name, ok := e.x.(*nameExpr)
		if !ok || !e.plain {
			break
		}
		if ns, ok := name.eval(x).(*Namespace); ok {
			if s, ok := e.lookup.in(x, ns.attrs).(*source); ok && s.kind == numberSource {
				return s, 0
			}
		}
	case *filterExpr:
		if e.length {
			return x.list(e.x), 0
		}
	case *binaryExpr:
		if k, ok := e.right.(*constExpr); ok && e.minus {
			if c, ok := k.v.(*value.Int); ok && c.Big == nil {
				s, off := x.linear(e.left)
				return s, off - c.V
			}
		}
	}
	return nil, 0
}

// truthTraced is truth for one comparison, of which either side may be a number
// that is traced.
func (e *compareExpr) truthTraced(x *exec) bool {
	op, l, r := e.ops[0], e.x, e.rest[0]
	s, off := x.linear(l)
	if s == nil {
		left := l.eval(x)
		if s, off = x.linear(r); s != nil && mirrored[op] != "" {
			if holds, ok := s.compare(mirrored[op], off, left); ok {
				return holds
			}
		}
		return e.holds(x, op, left, r.eval(x))
	}
	right := r.eval(x)
	if holds, ok := s.compare(op, off, right); ok {
		return holds
	}
	return e.holds(x, op, l.eval(x), right)
}

// boundedRange is a range up to a number that is traced, plus off.
type boundedRange struct {
	*value.Range
	end *source
	off int64
}

// boundedRange is what e makes, if it is range(n) or range(a, n) for such a number.
func (x *exec) boundedRange(e expr) (r boundedRange, ok bool) {
	call, ok := e.(*callExpr)
	if lt := x.trace.active; !ok || lt == nil || lt.loop == nil || !call.args.simple || len(call.args.pos) == 0 || len(call.args.pos) > 2 || x.err != nil {
		return r, false
	}
	if name, ok := call.fn.(*nameExpr); !ok || name.eval(x) != x.lib.globals["range"] {
		return r, false
	}
	first, last := int64(0), call.args.pos[len(call.args.pos)-1]
	if len(call.args.pos) == 2 {
		if !computes(call.args.pos[0]) {
			return r, false
		}
		n, ok := call.args.pos[0].eval(x).(*value.Int)
		if !ok || n.Big != nil || n.F != nil {
			return r, false
		}
		first = n.V
	}
	if r.end, r.off = x.linear(last); r.end == nil || r.end.kind == numberSource && value.Origin(r.end.v) != nil {
		return r, false
	}
	r.Range = &value.Range{Start: first, Stop: r.end.n + r.off, Step: 1}
	return r, r.Len() <= min(x.lim.Range, x.lim.Items)
}

// has notes that a loop asked for item i.
func (r *boundedRange) has(i int) bool {
	if r.end == nil {
		return true
	}
	_, ok := r.end.compare(">", r.off, value.NewInt(r.Start+int64(i)))
	if !ok {
		r.whole()
	}
	return true
}

// whole notes that a loop asked for the number of items.
func (r *boundedRange) whole() {
	if r.end != nil {
		r.end.value()
	}
}

var mirrored = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}

// same reports whether no program can tell a from b, where a is of an earlier run
// and b of this one.
func same(a, b value.Value) bool {
	if a == b {
		return true
	}
	switch a := a.(type) {
	case *value.Str:
		b, ok := b.(*value.Str)
		return ok && a.Identical(b)
	case *value.Bool:
		b, ok := b.(*value.Bool)
		return ok && *a == *b
	case *value.None:
		b, ok := b.(*value.None)
		return ok && *a == *b
	case *value.Int:
		b, ok := b.(*value.Int)
		return ok && *a == *b // big ones only if they are one object
	case *value.Float:
		b, ok := b.(*value.Float)
		return ok && math.Float64bits(a.V) == math.Float64bits(b.V) && a.F == b.F
	case *value.Undefined:
		b, ok := b.(*value.Undefined)
		return ok && a.Hint == b.Hint && a.Unsafe == b.Unsafe && a.Obj == nil && b.Obj == nil && a.Name != nil && b.Name != nil && same(a.Name, b.Name)
	case *value.List:
		b, ok := b.(*value.List)
		if !ok || a.Tuple != b.Tuple || a.Group != b.Group || a.F != b.F || len(a.Items) != len(b.Items) {
			return false
		}
		if sameStart(a.Items, b.Items) {
			return true
		}
		for i := range a.Items {
			if !same(a.Items[i], b.Items[i]) {
				return false
			}
		}
		return true
	case *Namespace:
		b, ok := b.(*Namespace)
		return ok && a.number == b.number && a.number > 0
	case *Macro:
		b, ok := b.(*Macro)
		return ok && a.code == b.code && a.act.up == nil && b.act.up == nil
	}
	return false
}
