package pqread

import (
	"encoding/binary"
	"fmt"
)

// The types of Thrift's compact protocol. The type of a boolean field holds its value.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// deepest is the greatest nesting of structures; Parquet's are at most eight deep.
const deepest = 32

// A compact reads structures of Thrift's compact protocol from untrusted bytes: its time and
// memory are bounded by the number of bytes, never by a number in them. The first fault is kept
// in err, and everything read after it is zero.
type compact struct {
	b     []byte
	depth int
	err   error
}

func (c *compact) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
		c.b = nil
	}
}

func (c *compact) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.fail("a structure ends too early")
		return nil
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

func (c *compact) byte() byte {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *compact) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fail("a structure ends inside a number")
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *compact) zigzag() int64 {
	u := c.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// expect reports whether a value has the expected type. A value of another type is skipped, as if
// it were missing: fastparquet stores values that it does not know as booleans.
func (c *compact) expect(typ, want byte) bool {
	if typ != want {
		c.skip(typ)
		return false
	}
	return c.err == nil
}

// structure calls field for each field of a structure. If field reads nothing, the value is
// skipped: every value takes at least one byte, except booleans, which the type holds.
func (c *compact) structure(typ byte, field func(id int, typ byte)) {
	if !c.expect(typ, thriftStruct) || !c.deeper() {
		return
	}
	for id := 0; c.err == nil; {
		head := c.byte()
		if head == 0 {
			break
		}
		if head>>4 != 0 {
			id += int(head >> 4)
		} else {
			id = int(int16(c.zigzag()))
		}
		typ, left := head&15, len(c.b)
		if field(id, typ); len(c.b) == left {
			c.skip(typ)
		}
	}
	c.depth--
}

func (c *compact) deeper() bool {
	if c.depth++; c.depth > deepest {
		c.fail("structures are more than %d deep", deepest)
	}
	return c.err == nil
}

// list calls element for each element of a list. element must read or skip it; each takes at
// least one byte.
func (c *compact) list(typ byte, element func(typ byte)) {
	if !c.expect(typ, thriftList) || !c.deeper() {
		return
	}
	head := c.byte()
	n := uint64(head >> 4)
	if n == 15 {
		n = c.uvarint()
	}
	if n > uint64(len(c.b)) {
		c.fail("a list of %d elements has %d bytes left", n, len(c.b))
	}
	for ; n > 0 && c.err == nil; n-- {
		element(elementType(head & 15))
	}
	c.depth--
}

func (c *compact) i32(typ byte) int {
	if !c.expect(typ, thriftI32) {
		return 0
	}
	v := c.zigzag()
	if v != int64(int32(v)) {
		c.fail("%d is not a 32-bit number", v)
	}
	return int(int32(v))
}

// count reads a 32-bit number that must not be negative.
func (c *compact) count(typ byte) int {
	v := c.i32(typ)
	if v < 0 {
		c.fail("a size or count is %d", v)
	}
	return v
}

func (c *compact) i64(typ byte) int64 {
	if !c.expect(typ, thriftI64) {
		return 0
	}
	return c.zigzag()
}

func (c *compact) text(typ byte) string {
	if !c.expect(typ, thriftBinary) {
		return ""
	}
	return string(c.take(c.uvarint()))
}

// skip skips a value.
func (c *compact) skip(typ byte) {
	switch typ {
	case thriftTrue, thriftFalse:
	case thriftByte:
		c.take(1)
	case thriftI16, thriftI32, thriftI64:
		c.uvarint()
	case thriftDouble:
		c.take(8)
	case thriftUUID:
		c.take(16)
	case thriftBinary:
		c.take(c.uvarint())
	case thriftList, thriftSet:
		c.list(thriftList, c.skip)
	case thriftMap:
		c.skipMap()
	case thriftStruct:
		c.structure(typ, func(int, byte) {})
	default:
		c.fail("type %d is unknown", typ)
	}
}

// elementType returns the type of a list or map element, in which a boolean takes a byte.
func elementType(typ byte) byte {
	if typ == thriftTrue || typ == thriftFalse {
		return thriftByte
	}
	return typ
}

func (c *compact) skipMap() {
	n := c.uvarint()
	if n == 0 || !c.deeper() {
		return
	}
	types := c.byte()
	for ; n > 0 && c.err == nil; n-- {
		c.skip(elementType(types >> 4))
		c.skip(elementType(types & 15))
	}
	c.depth--
}
