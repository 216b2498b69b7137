package rx

import (
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// frame is a place to go on from. A span frame (lo ≥ 0) stands for all the
// lengths between lo and at.
type frame struct {
	pc     int32
	at, lo int32
	lazy   bool
}

type matcher struct {
	re    *Regexp
	s     []byte
	stack []frame
	err   error
}

// Find returns the leftmost match that starts at or after from.
func (re *Regexp) Find(s []byte, from int) (start, end int, ok bool, err error) {
	m, _ := re.stack.Get().(*matcher)
	if m == nil {
		m = &matcher{re: re}
	}
	m.s, m.err = s, nil
	defer func() {
		m.s = nil
		re.stack.Put(m)
	}()
	for at := from; at <= len(s); {
		m.stack = m.stack[:0]
		if end := m.run(0, at); end >= 0 {
			return at, end, true, nil
		}
		if m.err != nil {
			return 0, 0, false, m.err
		}
		if at == len(s) {
			break
		}
		_, size := uni.DecodeRune(s[at:])
		at += size
	}
	return 0, 0, false, nil
}

// All appends the successive matches in s. An empty match right behind another
// match does not count.
func (re *Regexp) All(dst [][2]int, s []byte) ([][2]int, error) {
	last := -1
	for at := 0; at <= len(s); {
		a, b, ok, err := re.Find(s, at)
		if err != nil || !ok {
			return dst, err
		}
		if a == b && a == last {
			if at >= len(s) {
				break
			}
			_, size := uni.DecodeRune(s[at:])
			at += size
			continue
		}
		dst = append(dst, [2]int{a, b})
		at, last = b, b
	}
	return dst, nil
}

// run executes from pc at p and returns the end of the match or −1. Frames below
// the entry's stack height are left alone.
func (m *matcher) run(pc, p int) int {
	floor := len(m.stack)
	prog, s := m.re.prog, m.s
	for {
		if m.err != nil || len(m.stack) > maxStack {
			m.err = ErrTooComplex
			return -1
		}
		ok := true
		switch in := &prog[pc]; in.op {
		case opMatch:
			m.stack = m.stack[:floor]
			return p
		case opSet:
			ok = false
			if p < len(s) {
				r, size := uni.DecodeRune(s[p:])
				if in.set.has(r) {
					ok, p = true, p+size
				}
			}
			pc++
		case opSpan:
			p, ok = m.span(in, pc, p)
			pc++
		case opSplit:
			m.stack = append(m.stack, frame{pc: int32(in.b), at: int32(p), lo: -1})
			pc = in.a
		case opJump:
			pc = in.a
		case opAtomic:
			if p = m.run(pc+1, p); p < 0 {
				ok = false
			}
			pc = in.a
		case opLook:
			at := p
			for n := in.width; n > 0 && at >= 0; n-- {
				at = back(s, at)
			}
			found := at >= 0 && m.run(pc+1, at) >= 0
			ok = found != in.negate
			pc = in.a
		case opBegin:
			ok = p == 0
			pc++
		case opEnd:
			ok = p == len(s)
			pc++
		case opBeginLine:
			ok = p == 0 || s[p-1] == '\n' && p < len(s)
			pc++
		case opEndLine:
			ok = p == len(s) || s[p] == '\n'
			pc++
		case opWordEdge:
			ok = (m.wordAt(p) != m.wordAt(back(s, p))) != in.negate
			pc++
		}
		if !ok {
			if pc, p = m.resume(floor); pc < 0 {
				return -1
			}
		}
	}
}

// resume takes the next place to try, −1 for none above floor.
func (m *matcher) resume(floor int) (pc, p int) {
	if len(m.stack) <= floor {
		return -1, -1
	}
	f := &m.stack[len(m.stack)-1]
	pc, p = int(f.pc), int(f.at)
	switch {
	case f.lo < 0:
		m.stack = m.stack[:len(m.stack)-1]
	case f.lazy:
		// one character more; lo holds how many may still be taken
		in := &m.re.prog[pc-1]
		if p < len(m.s) && f.lo > 0 {
			if r, size := uni.DecodeRune(m.s[p:]); in.set.has(r) {
				f.at, f.lo = int32(p+size), f.lo-1
				return pc, p + size
			}
		}
		m.stack = m.stack[:len(m.stack)-1]
		return m.resume(floor)
	default:
		p = back(m.s, p)
		if p <= int(f.lo) {
			m.stack = m.stack[:len(m.stack)-1]
		} else {
			f.at = int32(p)
		}
	}
	return pc, p
}

func (m *matcher) span(in *inst, pc, p int) (int, bool) {
	limit := in.max
	if limit < 0 {
		limit = len(m.s)
	}
	if !in.greedy {
		limit = in.min
	}
	n, lo := 0, p
	for n < limit && p < len(m.s) {
		r, size := uni.DecodeRune(m.s[p:])
		if !in.set.has(r) {
			break
		}
		p += size
		if n++; n == in.min {
			lo = p
		}
	}
	if n < in.min {
		return p, false
	}
	if !in.greedy {
		room := len(m.s)
		if in.max >= 0 {
			room = in.max - in.min
		}
		m.stack = append(m.stack, frame{pc: int32(pc + 1), at: int32(p), lo: int32(room), lazy: true})
	} else if p > lo {
		m.stack = append(m.stack, frame{pc: int32(pc + 1), at: int32(p), lo: int32(lo)})
	}
	return p, true
}

func back(s []byte, p int) int {
	p--
	for p > 0 && s[p]&0xC0 == 0x80 {
		p--
	}
	return p
}

func (m *matcher) wordAt(p int) bool {
	if p < 0 || p >= len(m.s) {
		return false
	}
	r, _ := utf8.DecodeRune(m.s[p:])
	return m.re.word.has(r)
}
