package slime

import (
	"bufio"
	"encoding/binary"
	"math"
)

// pickler writes the opcodes of pickle protocol 2 that plain values need. Strings written with
// word are stored once.
type pickler struct {
	w     *bufio.Writer
	memo  map[string]int
	bytes [16]byte
}

func (p *pickler) op(b ...byte) { _, _ = p.w.Write(b) } // bufio keeps the first error

func (p *pickler) none() { p.op('N') }

func (p *pickler) bool(v bool) {
	if v {
		p.op(0x88)
		return
	}
	p.op(0x89)
}

func (p *pickler) int(v int64) {
	switch {
	case v >= 0 && v < 1<<8:
		p.op('K', byte(v))
	case v >= 0 && v < 1<<16:
		p.op('M', byte(v), byte(v>>8))
	default:
		p.op(binary.LittleEndian.AppendUint32(append(p.bytes[:0], 'J'), uint32(int32(v)))...)
	}
}

func (p *pickler) float(v float64) {
	p.op(binary.BigEndian.AppendUint64(append(p.bytes[:0], 'G'), math.Float64bits(v))...)
}

func (p *pickler) text(s string) {
	p.op(binary.LittleEndian.AppendUint32(append(p.bytes[:0], 'X'), uint32(len(s)))...)
	_, _ = p.w.WriteString(s)
}

// word writes a string that is likely to occur again.
func (p *pickler) word(s string) {
	if at, known := p.memo[s]; known {
		p.op('h', byte(at))
		return
	}
	p.text(s)
	if len(p.memo) < 256 {
		p.op('q', byte(len(p.memo)))
		p.memo[s] = len(p.memo)
	}
}

// key is word for a dictionary key; it returns p, to write the value.
func (p *pickler) key(s string) *pickler {
	p.word(s)
	return p
}

// batch is the number of items per APPENDS opcode.
const batch = 1000

// list writes a list of n values; item writes value i.
func (p *pickler) list(n int, item func(i int)) {
	p.op(']')
	for at := 0; at < n; at += batch {
		p.op('(')
		for i := at; i < min(n, at+batch); i++ {
			item(i)
		}
		p.op('e')
	}
}
