package eval

import (
	"fmt"

	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/scope"
	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

type forStmt struct {
	functionCode
	pos       syntax.Pos
	iter      expr
	test      *testCode
	target    target
	steps     int  // work steps of a pass
	loopSlot  int  // slot of the loop object, -1 when the body does not use it
	idle      expr // once true, all later passes do nothing; nil if there is no such condition
	settles   int  // idle is not evaluated before this pass
	replays   bool // passes can be replayed: see Replay
	recursive bool
	clear     []int
	elsLoads  []scope.Start
	els       []stmt
}

// testCode is the condition of "for … if …".
type testCode struct {
	functionCode
	target target
	test   expr
	steps  int
}

func (s *forStmt) exec(x *exec) signal {
	v := s.iter.eval(x)
	if s.recursive {
		text, sig := x.capture(func() signal { return s.recurse(x, v, x.act, 0) })
		x.out.Str(text)
		return sig
	}
	return s.loop(x, v, 0, nil)
}

// recurse runs the loop as the function that a recursive loop(…) calls.
func (s *forStmt) recurse(x *exec, v value.Value, up *activation, depth int) signal {
	if !x.descend() {
		return halt
	}
	a, saved := x.activate(s.fn, up), x.act
	if a == nil {
		return halt
	}
	x.act = a
	sig := s.loop(x, v, depth, up)
	x.act = saved
	x.depth--
	return sig
}

func (s *forStmt) loop(x *exec, v value.Value, depth int, up *activation) signal {
	if x.Err != nil || !x.Make(rt.ObjectSize) {
		return halt
	}
	l := &Loop{x: x, depth: int64(depth)}
	if s.recursive {
		l.code, l.up = s, up
	}
	switch it := v.(type) {
	case *value.List:
		l.items = it.Items
	case *value.Iter:
		l.next, l.nested = it.Next, x.Nested(it)
	case *Loop:
		l.next, l.nested = it.Iterate(), x.Nested(it)
	case *value.Range:
		l.next, _ = value.Iterate(it)
		l.sure = true
	default:
		if l.items = value.Elements(x.Lim, v); x.Err != nil {
			x.at(s.pos)
			return halt
		}
	}
	if s.test != nil {
		l.filter(x, s.test)
	}
	return s.iterate(x, l)
}

func (s *forStmt) iterate(x *exec, l *Loop) signal {
	slots := x.act.slots
	completed := false
	messages := !x.inLoop && x.out == x.root
	replays := messages && s.replays && x.replay != nil && !x.Escape && l.next == nil && x.replay.resume(x, s, l)
	for ; l.has(l.i); l.i++ {
		if !x.Step(s.steps) {
			return halt
		}
		item := l.items[l.i]
		if replays {
			x.replay.startPass(x)
		}
		s.target.assign(x, item)
		if s.loopSlot >= 0 {
			slots[s.loopSlot] = l
		}
		x.enter(s.loads)
		if s.idle != nil && l.i >= s.settles && (l.next == nil || l.sure) && x.truth(s.idle) && x.Err == nil { // no read can fail
			completed = true
			break
		}
		sig := x.pass(s.body, item, messages)
		if replays {
			replays = x.replay.recordPass(x, item, sig)
		}
		if sig == halt {
			return halt
		}
		if sig == breakLoop {
			break
		}
		completed = completed || sig == next
	}
	l.i = min(l.i, len(l.items)-1) // the loop object may be kept after the loop
	if x.Err != nil {
		x.at(s.pos)
		return halt
	}
	x.leave(s.clear)
	if !completed && s.els != nil {
		x.enter(s.elsLoads)
		return x.run(s.els)
	}
	return next
}

// pass runs one pass of a loop and, if item is a message, records the extent of its output.
func (x *exec) pass(body []stmt, item value.Value, messages bool) signal {
	d, ok := item.(*value.Dict)
	if !messages || !ok || d.Message == 0 {
		return x.run(body)
	}
	start := len(x.out.B)
	x.inLoop = true
	sig := x.run(body)
	x.inLoop = false
	if len(x.out.B) > start {
		x.output.Messages = append(x.output.Messages, Extent{int(d.Message) - 1, start, len(x.out.B)})
	}
	return sig
}

// Loop is the loop object. Items beyond the current one are read only when an attribute needs them.
type Loop struct {
	x       *exec
	items   []value.Value
	next    func() value.Value // source of further items; nil when all have been read
	sure    bool               // next cannot fail
	i       int
	depth   int64
	code    *forStmt // the loop statement if recursive, else nil
	up      *activation
	changed value.Value
	nested  int
}

// has reads items up to index i and reports whether there is one.
func (l *Loop) has(i int) bool {
	for l.next != nil && i >= len(l.items) {
		v := l.next()
		if v == nil {
			l.next = nil
			break
		}
		l.items = append(l.items, v)
	}
	return i < len(l.items)
}

// filter keeps the items for which the loop's condition holds.
func (l *Loop) filter(x *exec, t *testCode) {
	source := *l
	up := x.act
	i := 0
	l.items, l.sure = nil, false
	l.next = func() value.Value {
		for source.has(i) && x.Step(t.steps) {
			item := source.items[i]
			i++
			a, saved := x.activate(t.fn, up), x.act
			if a == nil {
				break
			}
			x.act = a
			x.enter(t.loads)
			t.target.assign(x, item)
			ok := x.truth(t.test)
			x.act = saved
			if ok && x.Err == nil {
				return item
			}
		}
		return nil
	}
}

// TypeName implements value.Value.
func (l *Loop) TypeName() string { return "LoopContext" }

// Len returns the number of items, for which it reads all of them.
func (l *Loop) Len() int {
	for l.next != nil {
		l.has(len(l.items))
	}
	return len(l.items)
}

// left returns the number of items from index i on.
func (l *Loop) left(i int) value.Value { return value.NewInt(int64(l.Len() - i)) }

// Iterate advances the loop itself: each step returns a tuple of the next item and the loop object.
func (l *Loop) Iterate() func() value.Value {
	return func() value.Value {
		if !l.has(l.i + 1) {
			return nil
		}
		l.i++
		return &value.List{Items: []value.Value{l.items[l.i], l}, Tuple: true}
	}
}

// Repr implements value.Reprer.
func (l *Loop) Repr(t *value.Text, _ *value.Limits, _ int) {
	n := l.Len()
	t.Lit(fmt.Sprintf("<LoopContext %d/%d>", l.i+1, n))
}

// Call implements rt.Callable: it calls a recursive loop.
func (l *Loop) Call(x *rt.Context, a rt.Args) value.Value {
	var p rt.Params
	if !signatureLoop.Bind(x, a, &p) {
		return value.Stopped
	}
	if l.code == nil {
		return x.Failf(value.Type, "The loop must have the 'recursive' marker to be called recursively.")
	}
	text, _ := l.x.capture(func() signal { return l.code.recurse(l.x, p[0], l.up, int(l.depth)+1) })
	return text
}

var signatureLoop = rt.Parse("__call__(iterable)")

// Nested returns the number of nested iterators that the loop reads from.
func (l *Loop) Nested() int { return l.nested }

// Attr implements object.Attrs.
func (l *Loop) Attr(name string) value.Value {
	if f := loopAttrs[name]; f != nil {
		return f(l)
	}
	return nil
}

// loopAttrs are the attributes of the loop object; they never return nil.
var loopAttrs = map[string]func(l *Loop) value.Value{
	"index":     func(l *Loop) value.Value { return value.NewInt(int64(l.i) + 1) },
	"index0":    func(l *Loop) value.Value { return value.NewInt(int64(l.i)) },
	"first":     func(l *Loop) value.Value { return value.NewBool(l.i == 0) },
	"last":      func(l *Loop) value.Value { return value.NewBool(!l.has(l.i + 1)) },
	"length":    func(l *Loop) value.Value { return l.left(0) },
	"revindex":  func(l *Loop) value.Value { return l.left(l.i) },
	"revindex0": func(l *Loop) value.Value { return l.left(l.i + 1) },
	"depth":     func(l *Loop) value.Value { return value.NewInt(l.depth + 1) },
	"depth0":    func(l *Loop) value.Value { return value.NewInt(l.depth) },
	"previtem": func(l *Loop) value.Value {
		if l.i > 0 {
			return l.items[l.i-1]
		}
		return &value.Undefined{Hint: "there is no previous item"}
	},
	"nextitem": func(l *Loop) value.Value {
		if l.has(l.i + 1) {
			return l.items[l.i+1]
		}
		return &value.Undefined{Hint: "there is no next item"}
	},
	"cycle": func(l *Loop) value.Value {
		return &rt.Builtin{Fn: func(x *rt.Context, a rt.Args) value.Value {
			if len(a.Pos) == 0 {
				return x.Failf(value.Type, "no items for cycling given")
			}
			return a.Pos[l.i%len(a.Pos)]
		}}
	},
	"changed": func(l *Loop) value.Value {
		return &rt.Builtin{Fn: func(x *rt.Context, a rt.Args) value.Value {
			if !x.Make(rt.ObjectSize + 16*len(a.Pos)) {
				return value.Stopped
			}
			now := &value.List{Items: append([]value.Value(nil), a.Pos...), Tuple: true}
			if l.changed != nil && value.Equal(x.Lim, l.changed, now) {
				return value.False
			}
			l.changed = now
			return value.True
		}}
	},
}

// selfRef is the variable self: the blocks of the template.
type selfRef struct{ x *exec }

// TypeName implements value.Value.
func (*selfRef) TypeName() string { return "TemplateReference" }

// Repr implements value.Reprer.
func (*selfRef) Repr(t *value.Text, _ *value.Limits, _ int) { t.Lit("<TemplateReference None>") }

// Item implements object.Items.
func (s *selfRef) Item(name string) value.Value {
	if s.x.prog.blocks[name] == nil {
		return nil
	}
	return &blockRef{s.x, name}
}

// Iterate returns an iterator that fails as in Python, which looks for a block named 0.
func (s *selfRef) Iterate() func() value.Value {
	return func() value.Value {
		s.x.Failf(value.Other, "0")
		return nil
	}
}

// blockRef is self.name.
type blockRef struct {
	x    *exec
	name string
}

// TypeName implements value.Value.
func (*blockRef) TypeName() string { return "BlockReference" }

// Call implements rt.Callable.
func (b *blockRef) Call(*rt.Context, rt.Args) value.Value {
	text, _ := b.x.capture(func() signal { return b.x.block(b.x.prog.blocks[b.name]) })
	return text
}
