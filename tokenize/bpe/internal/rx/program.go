package rx

import (
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

type op uint8

const (
	opMatch     op = iota
	opSet          // one character
	opSpan         // min..max characters of set, giving back one by one
	opSplit        // try a, then b
	opJump         // go to a
	opAtomic       // run at pc+1, then go to a
	opLook         // run at pc+1, then go to a
	opBegin        // text
	opEnd          // text
	opBeginLine    // line
	opEndLine      // line
	opWordEdge
)

type inst struct {
	op       op
	set      *charset
	a, b     int
	min, max int
	negate   bool
	width    int // look-behind: characters to step back
	greedy   bool
}

// charset tests membership: ASCII by bitmap, the rest by binary search.
type charset struct {
	ascii [2]uint64
	set   uni.Set
}

func (c *charset) has(r rune) bool {
	if r < 0x80 {
		return c.ascii[r>>6]>>(r&63)&1 != 0
	}
	return c.set.Contains(r)
}

// Regexp is a compiled pattern, safe for concurrent use.
type Regexp struct {
	prog  []inst
	empty bool
	word  *charset
	stack sync.Pool
}

// MayBeEmpty reports whether a match may have no character.
func (re *Regexp) MayBeEmpty() bool { return re.empty }

const maxProgram = 100_000

// maxStack bounds what one match may remember: 16 bytes each.
const maxStack = 16 << 20

// ErrTooComplex says that a match was given up for want of memory.
var ErrTooComplex = errors.New("the pattern needs more backtracking on this text than is allowed")

// Compile compiles pattern or says which construct it refuses.
func Compile(u *uni.Tables, pattern string, flavor Flavor) (*Regexp, error) {
	if !utf8.ValidString(pattern) {
		return nil, errors.New("the pattern is not valid UTF-8")
	}
	p := &parser{u: u, s: pattern, flavor: flavor}
	tree := p.alternatives()
	if p.err == nil && p.more() {
		p.fail("an unmatched )")
	}
	if p.err != nil {
		return nil, p.err
	}
	word, _ := u.Set("word")
	if flavor == Rust {
		word, _ = u.Set("added_word")
	}
	c := &compiler{re: &Regexp{word: newCharset(word), empty: empty(tree)}}
	c.emit(tree)
	c.add(inst{op: opMatch})
	if c.err != nil {
		return nil, c.err
	}
	return c.re, nil
}

func newCharset(s uni.Set) *charset {
	c := &charset{set: s}
	for r := rune(0); r < 0x80; r++ {
		if s.Contains(r) {
			c.ascii[r>>6] |= 1 << (r & 63)
		}
	}
	return c
}

type compiler struct {
	re  *Regexp
	err error
}

func (c *compiler) add(i inst) int {
	if len(c.re.prog) >= maxProgram {
		c.err = fmt.Errorf("the pattern compiles to more than %d instructions", maxProgram)
		return 0
	}
	c.re.prog = append(c.re.prog, i)
	return len(c.re.prog) - 1
}

func (c *compiler) here() int { return len(c.re.prog) }

func (c *compiler) emit(n *node) {
	if c.err != nil {
		return
	}
	switch n.kind {
	case kSet:
		c.add(inst{op: opSet, set: newCharset(n.set)})
	case kCat:
		for _, s := range n.subs {
			c.emit(s)
		}
	case kAlt:
		var ends []int
		for i, s := range n.subs {
			if i == len(n.subs)-1 {
				c.emit(s)
				break
			}
			split := c.add(inst{op: opSplit})
			c.re.prog[split].a = c.here()
			c.emit(s)
			ends = append(ends, c.add(inst{op: opJump}))
			c.re.prog[split].b = c.here()
		}
		for _, e := range ends {
			c.re.prog[e].a = c.here()
		}
	case kRepeat:
		c.repeat(n)
	case kAtomic:
		at := c.add(inst{op: opAtomic})
		c.emit(n.subs[0])
		c.add(inst{op: opMatch})
		c.re.prog[at].a = c.here()
	case kLook:
		at := c.add(inst{op: opLook, negate: n.negate})
		if n.behind {
			w, ok := width(n.subs[0])
			if !ok {
				c.err = errors.New("a look-behind of varying width")
				return
			}
			c.re.prog[at].width = w
		}
		c.emit(n.subs[0])
		c.add(inst{op: opMatch})
		c.re.prog[at].a = c.here()
	case kBegin:
		c.add(inst{op: opBegin})
	case kEnd:
		c.add(inst{op: opEnd})
	case kBeginLine:
		c.add(inst{op: opBeginLine})
	case kEndLine:
		c.add(inst{op: opEndLine})
	case kWordEdge:
		c.add(inst{op: opWordEdge, negate: n.negate})
	}
}

func (c *compiler) repeat(n *node) {
	sub := n.subs[0]
	if sub.kind == kSet {
		c.add(inst{op: opSpan, set: newCharset(sub.set), min: n.min, max: n.max, greedy: !n.lazy})
		return
	}
	if empty(sub) {
		c.err = errors.New("a repeat of something that can be empty")
		return
	}
	branch := func(split, body, after int) {
		if n.lazy {
			body, after = after, body
		}
		c.re.prog[split].a, c.re.prog[split].b = body, after
	}
	for range n.min {
		c.emit(sub)
	}
	if n.max < 0 {
		split := c.add(inst{op: opSplit})
		c.emit(sub)
		c.add(inst{op: opJump, a: split})
		branch(split, split+1, c.here())
		return
	}
	var splits []int
	for range n.max - n.min {
		splits = append(splits, c.add(inst{op: opSplit}))
		c.emit(sub)
	}
	if c.err != nil {
		return
	}
	for _, s := range splits {
		branch(s, s+1, c.here())
	}
}

// width is the fixed number of characters of n.
func width(n *node) (int, bool) {
	switch n.kind {
	case kSet:
		return 1, true
	case kCat:
		sum := 0
		for _, s := range n.subs {
			w, ok := width(s)
			if !ok {
				return 0, false
			}
			sum += w
		}
		return sum, true
	case kAlt:
		first, ok := width(n.subs[0])
		for _, s := range n.subs[1:] {
			w, same := width(s)
			ok = ok && same && w == first
		}
		return first, ok
	case kAtomic:
		return width(n.subs[0])
	case kRepeat:
		w, ok := width(n.subs[0])
		return w * n.min, ok && n.min == n.max
	}
	return 0, true
}

func empty(n *node) bool {
	switch n.kind {
	case kSet:
		return false
	case kCat:
		for _, s := range n.subs {
			if !empty(s) {
				return false
			}
		}
		return true
	case kAlt:
		for _, s := range n.subs {
			if empty(s) {
				return true
			}
		}
		return false
	case kRepeat:
		return n.min == 0 || empty(n.subs[0])
	case kAtomic:
		return empty(n.subs[0])
	}
	return true
}
