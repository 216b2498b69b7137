package arrowfile

import "fmt"

// flat holds a FlatBuffers message of untrusted bytes. Every offset is checked before it is
// followed. The first fault is kept in err, and everything read after it is zero.
type flat struct {
	b   string // texts share its memory
	err error
}

func (f *flat) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// uint reads a little-endian number of width bytes.
func (f *flat) uint(at, width int) (v uint64) {
	if f.err != nil || at < 0 || at > len(f.b)-width {
		f.fail("an offset leads out of the metadata")
		return 0
	}
	for i := range width {
		v |= uint64(f.b[at+i]) << (8 * i)
	}
	return v
}

// ref returns the target of the offset stored at at, or 0 after a fault.
func (f *flat) ref(at int) int {
	n := int(f.uint(at, 4))
	if n <= 0 || n > len(f.b)-at {
		f.fail("an offset leads out of the metadata")
		return 0
	}
	return at + n
}

func (f *flat) root() table { return table{f, f.ref(0)} }

// A table is a FlatBuffers table, whose fields may be missing. With at 0, all are.
type table struct {
	*flat
	at int
}

// slot returns the position of field n, or 0 if it is missing.
func (t table) slot(n int) int {
	if t.at == 0 {
		return 0
	}
	fields := t.at - int(int32(t.uint(t.at, 4)))
	if 4+2*n+2 > int(t.uint(fields, 2)) {
		return 0
	}
	if off := int(t.uint(fields+4+2*n, 2)); off != 0 {
		return t.at + off
	}
	return 0
}

// number returns field n, a number of width bytes, or 0 if it is missing.
func (t table) number(n, width int) uint64 {
	if at := t.slot(n); at != 0 {
		return t.uint(at, width)
	}
	return 0
}

func (t table) table(n int) table {
	if at := t.slot(n); at != 0 {
		return table{t.flat, t.ref(at)}
	}
	return table{t.flat, 0}
}

// vector returns field n, a list of elements of size bytes; it is empty if missing.
func (t table) vector(n, size int) vector {
	at := t.slot(n)
	if at == 0 {
		return vector{flat: t.flat}
	}
	at = t.ref(at)
	count := t.uint(at, 4)
	if t.err != nil || count > uint64(len(t.b)-at-4)/uint64(size) {
		t.fail("a list of %d leads out of the metadata", count)
		return vector{flat: t.flat}
	}
	return vector{t.flat, at + 4, size, int(count)}
}

func (t table) text(n int) string {
	v := t.vector(n, 1)
	return t.b[v.at : v.at+v.n]
}

type vector struct {
	*flat
	at, size, n int
}

// table returns element i of a list of tables.
func (v vector) table(i int) table { return table{v.flat, v.ref(v.at + 4*i)} }

// int64 returns the 64-bit number at byte off of element i.
func (v vector) int64(i, off int) int64 { return int64(v.uint(v.at+i*v.size+off, 8)) }
