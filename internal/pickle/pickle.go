package pickle

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
)

// Object represents an object of a class, such as a tensor; its state is not read.
type Object struct{ Class string }

// Limits for values of untrusted pickles.
const (
	maxDepth  = 1 << 16 // open marks, and stack entries that are not list items
	maxValues = 1 << 30
	maxName   = 1 << 10
)

// unpickler builds plain values (nil, bool, int64, *big.Int beyond it, float64, string, []byte,
// *[]any, map[any]any, []any for tuples) from a pickle; it never instantiates a class.
type unpickler struct {
	data  []byte
	at    int
	stack []any
	marks []int
	memo  map[int]any
}

type fault string

func (u *unpickler) fail(format string, args ...any) {
	panic(fault(fmt.Sprintf("byte %d: ", u.at) + fmt.Sprintf(format, args...)))
}

// Load decodes the pickle at the start of data.
func Load(data []byte) (v any, err error) {
	u := &unpickler{data: data, memo: map[int]any{}}
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(fault)
			if !ok {
				panic(r)
			}
			err = fmt.Errorf("the pickle is damaged: %s", string(f))
		}
	}()
	for {
		if u.step() {
			return u.pop(), nil
		}
	}
}

func (u *unpickler) take(n int) []byte {
	if n < 0 || n > len(u.data)-u.at {
		u.fail("the data end inside a value")
	}
	u.at += n
	return u.data[u.at-n : u.at]
}

func (u *unpickler) u32() int { return int(binary.LittleEndian.Uint32(u.take(4))) }

func (u *unpickler) line() string {
	for i := u.at; i < len(u.data); i++ {
		if u.data[i] == '\n' {
			s := string(u.data[u.at:i])
			u.at = i + 1
			return s
		}
	}
	u.fail("the data end inside a name")
	return ""
}

func (u *unpickler) push(v any) {
	if len(u.stack) >= maxValues {
		u.fail("more than %d values", maxValues)
	}
	u.stack = append(u.stack, v)
}

func (u *unpickler) pop() any {
	if len(u.stack) == 0 || len(u.marks) > 0 && len(u.stack) <= u.marks[len(u.marks)-1] {
		u.fail("an operation lacks its value")
	}
	v := u.stack[len(u.stack)-1]
	u.stack = u.stack[:len(u.stack)-1]
	return v
}

func (u *unpickler) top() any {
	v := u.pop()
	u.stack = append(u.stack, v)
	return v
}

// since removes and returns the values after the last mark.
func (u *unpickler) since() []any {
	if len(u.marks) == 0 {
		u.fail("there is no mark")
	}
	at := u.marks[len(u.marks)-1]
	u.marks = u.marks[:len(u.marks)-1]
	v := u.stack[at:]
	u.stack = u.stack[:at:at]
	return v
}

func (u *unpickler) appendAll(items ...any) {
	switch l := u.top().(type) {
	case *[]any:
		*l = append(*l, items...)
	case Object:
	default:
		u.fail("values are appended to no list")
	}
}

func (u *unpickler) setAll(items []any) {
	if len(items)%2 != 0 {
		u.fail("a key has no value")
	}
	switch m := u.top().(type) {
	case map[any]any:
		for i := 0; i < len(items); i += 2 {
			switch items[i].(type) {
			case string, int64, bool, float64, nil:
				m[items[i]] = items[i+1]
			}
		}
	case Object:
	default:
		u.fail("keys are set in no dictionary")
	}
}

func (u *unpickler) remember(i int) { u.memo[i] = u.top() }

func (u *unpickler) pushMemo(i int) {
	v, known := u.memo[i]
	if !known {
		u.fail("value %d was not stored", i)
	}
	u.push(v)
}

// step runs one operation and reports whether it was the last one.
func (u *unpickler) step() bool {
	switch op := u.take(1)[0]; op {
	case 0x80: // PROTO
		u.take(1)
	case 0x95: // FRAME
		u.take(8)
	case '.':
		return true
	case '(':
		if len(u.marks) > maxDepth {
			u.fail("nested more than %d deep", maxDepth)
		}
		u.marks = append(u.marks, len(u.stack))
	case '0':
		u.pop()
	case '1':
		u.since()
	case 'N':
		u.push(nil)
	case 0x88:
		u.push(true)
	case 0x89:
		u.push(false)
	case 'K':
		u.push(int64(u.take(1)[0]))
	case 'M':
		u.push(int64(binary.LittleEndian.Uint16(u.take(2))))
	case 'J':
		u.push(int64(int32(u.u32())))
	case 0x8a: // LONG1
		u.long(int(u.take(1)[0]))
	case 'G':
		u.push(math.Float64frombits(binary.BigEndian.Uint64(u.take(8))))
	case 'X':
		u.push(string(u.take(u.u32())))
	case 0x8c: // SHORT_BINUNICODE
		u.push(string(u.take(int(u.take(1)[0]))))
	case 'T', 'B': // BINSTRING, BINBYTES
		u.push(append([]byte{}, u.take(u.u32())...))
	case 'U', 'C': // SHORT_BINSTRING, SHORT_BINBYTES
		u.push(append([]byte{}, u.take(int(u.take(1)[0]))...))
	default:
		u.structure(op)
	}
	return false
}

func (u *unpickler) long(n int) {
	b := u.take(n)
	if n > 8 {
		b = slices.Clone(b)
		slices.Reverse(b)
		v := new(big.Int).SetBytes(b)
		if b[0]&0x80 != 0 { // two's complement
			v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
		}
		u.push(v)
		return
	}
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	if n > 0 && n < 8 && b[n-1]&0x80 != 0 {
		v |= ^uint64(0) << (8 * n)
	}
	u.push(int64(v))
}

// structure runs the operations on containers, the memo and classes.
func (u *unpickler) structure(op byte) {
	switch op {
	case ']':
		u.push(&[]any{})
	case '}':
		u.push(map[any]any{})
	case ')':
		u.push([]any{})
	case 0x8f: // EMPTY_SET
		u.push(Object{"set"})
	case 'a':
		v := u.pop()
		u.appendAll(v)
	case 'e', 0x90: // APPENDS, ADDITEMS
		u.appendAll(u.since()...)
	case 's':
		v := u.pop()
		k := u.pop()
		u.setAll([]any{k, v})
	case 'u':
		u.setAll(u.since())
	case 't':
		u.push(append([]any{}, u.since()...))
	case 0x85, 0x86, 0x87: // TUPLE1 … 3
		t := make([]any, op-0x84)
		for i := len(t) - 1; i >= 0; i-- {
			t[i] = u.pop()
		}
		u.push(t)
	case 'q':
		u.remember(int(u.take(1)[0]))
	case 'r':
		u.remember(u.u32())
	case 0x94: // MEMOIZE
		u.remember(len(u.memo))
	case 'h':
		u.pushMemo(int(u.take(1)[0]))
	case 'j':
		u.pushMemo(u.u32())
	case 'c': // GLOBAL
		u.push(Object{u.line() + "." + u.line()})
	case 0x93: // STACK_GLOBAL
		name, isText := u.pop().(string)
		module, isTextToo := u.pop().(string)
		if !isText || !isTextToo || len(name)+len(module) > maxName {
			u.fail("the name of a class is no text, or longer than %d bytes", maxName)
		}
		u.push(Object{module + "." + name})
	case 'R', 0x81: // REDUCE, NEWOBJ
		args := u.pop()
		u.object(u.pop(), args)
	case 'Q': // BINPERSID
		u.pop()
		u.push(Object{"storage"})
	case 'b': // BUILD
		if state := u.pop(); isBatch(state) {
			u.pop()
			u.push(state)
		}
	default:
		u.fail("operation 0x%02x is not read", op)
	}
}

// isBatch reports whether state is that of a SkyRL training batch.
func isBatch(state any) bool {
	m, ok := state.(map[any]any)
	return ok && m["batch_dict"] != nil && m["batch_size"] != nil
}

// object pushes an Object for a constructor call, but a dictionary for an ordered
// dictionary and the state for a SkyRL training batch.
func (u *unpickler) object(callee, args any) {
	o, ok := callee.(Object)
	if list, _ := args.([]any); len(list) == 2 && isBatch(list[1]) {
		u.push(list[1])
		return
	}
	if ok && o.Class == "collections.OrderedDict" {
		u.push(map[any]any{})
		return
	}
	u.push(o)
}
