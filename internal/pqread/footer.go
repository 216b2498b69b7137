package pqread

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A footer holds the fields of FileMetaData (parquet.thrift) that are used.
type footer struct {
	schema []element
	groups []rowGroup
	kv     []KV
}

// An element is one node of the schema tree, which is stored in depth-first order.
type element struct {
	name       string
	typ        Type
	repetition repetition
	children   int
	text       bool // annotated as text
	list, pair bool // annotated as a list, as a map
	unsigned   bool // annotated as an unsigned number
	half       bool // annotated as a 16-bit float
	decimal    bool // annotated as a decimal with scale digits after the point
	scale      int
	width      int // bytes of a fixed-length value
}

type rowGroup struct {
	rows    int64
	columns []columnChunk
}

// A columnChunk says where the pages of one column of a row group are.
type columnChunk struct {
	codec            codec
	values           int64
	size             int64 // compressed, with page headers
	data, dictionary int64 // offsets of the first data page and of the dictionary page
	elsewhere        bool  // stored in another file
	encrypted        bool
}

// start returns the offset of the first page. Some writers leave out the dictionary's offset,
// or write 0.
func (c *columnChunk) start() int64 {
	if c.dictionary > 0 {
		return min(c.data, c.dictionary)
	}
	return c.data
}

// check returns an error for a chunk that cannot be read, before anything is allocated for it.
func (c *columnChunk) check(fileSize int64) error {
	switch at := c.start(); {
	case c.encrypted:
		return errors.New("the column is encrypted")
	case c.elsewhere:
		return errors.New("the column is in another file")
	case at < 0 || c.size < 0 || at > fileSize || c.size > fileSize-at:
		return fmt.Errorf("a column chunk of %d bytes at %d lies outside the file of %d bytes", c.size, at, fileSize)
	}
	return nil
}

// readFooter reads the footer at the end of a Parquet file.
func readFooter(r io.ReaderAt, size int64) (*footer, error) {
	const encrypted, tail = "PARE", 8 // length of the metadata, then magic
	if size < int64(len(magic))+tail {
		return nil, fmt.Errorf("a file of %d bytes is too short", size)
	}
	head, end := make([]byte, len(magic)), make([]byte, tail)
	if err := readAt(r, head, 0); err != nil {
		return nil, err
	}
	if string(head) == encrypted {
		return nil, errors.New("the file is encrypted")
	}
	if string(head) != magic {
		return nil, fmt.Errorf("not a Parquet file: it does not start with %s", magic)
	}
	if err := readAt(r, end, size-tail); err != nil {
		return nil, err
	}
	if string(end[4:]) != magic {
		return nil, fmt.Errorf("the file does not end with %s: it was cut, or never finished", magic)
	}
	n := int64(binary.LittleEndian.Uint32(end))
	if n > size-int64(len(magic))-tail {
		return nil, fmt.Errorf("metadata of %d bytes do not fit a file of %d", n, size)
	}
	data := make([]byte, n)
	if err := readAt(r, data, size-tail-n); err != nil {
		return nil, err
	}
	var out footer
	c := compact{b: data}
	out.read(&c)
	if c.err != nil {
		return nil, fmt.Errorf("metadata: %w", c.err)
	}
	return &out, out.check(size)
}

// readAt fills b. For the last bytes of a file ReadAt may return io.EOF too, which is not an
// error here.
func readAt(r io.ReaderAt, b []byte, at int64) error {
	if n, err := r.ReadAt(b, at); n < len(b) {
		return fmt.Errorf("read %d bytes at %d: %w", len(b), at, err)
	}
	return nil
}

func (f *footer) read(c *compact) {
	c.structure(thriftStruct, func(id int, typ byte) {
		switch id {
		case 2:
			c.list(typ, func(typ byte) { f.schema = append(f.schema, readElement(c, typ)) })
		case 4:
			c.list(typ, func(typ byte) { f.groups = append(f.groups, readRowGroup(c, typ)) })
		case 5:
			c.list(typ, func(typ byte) { f.kv = append(f.kv, readKV(c, typ)) })
		}
	})
}

func readElement(c *compact, typ byte) (out element) {
	c.structure(typ, func(id int, typ byte) {
		switch id {
		case 1:
			out.typ = Type(c.i32(typ))
		case 2:
			out.width = c.count(typ)
		case 3:
			out.repetition = repetition(c.i32(typ))
		case 4:
			out.name = c.text(typ)
		case 5:
			out.children = c.count(typ)
		case 6:
			out.annotate(c.i32(typ))
		case 7:
			out.scale = c.i32(typ)
		case 10:
			out.readLogical(c, typ)
		}
	})
	return out
}

// annotate sets the annotation of a ConvertedType, the older form.
func (e *element) annotate(converted int) {
	switch converted {
	case 0, 4, 19: // UTF8, ENUM, JSON
		e.text = true
	case 1, 2: // MAP, MAP_KEY_VALUE
		e.pair = true
	case 3:
		e.list = true
	case 5:
		e.decimal = true
	case 11, 12, 13, 14: // UINT_8 to UINT_64
		e.unsigned = true
	}
}

// readLogical reads the annotation of a LogicalType, the newer form.
func (e *element) readLogical(c *compact, typ byte) {
	c.structure(typ, func(id int, typ byte) {
		switch id {
		case 1, 4, 12: // STRING, ENUM, JSON
			e.text = true
		case 2:
			e.pair = true
		case 3:
			e.list = true
		case 5:
			e.decimal = true
			c.structure(typ, func(id int, typ byte) {
				if id == 1 {
					e.scale = c.i32(typ)
				}
			})
		case 10: // INTEGER
			c.structure(typ, func(id int, typ byte) {
				if id == 2 {
					e.unsigned = typ == thriftFalse
				}
			})
		case 15:
			e.half = true
		}
	})
}

func readRowGroup(c *compact, typ byte) (out rowGroup) {
	c.structure(typ, func(id int, typ byte) {
		switch id {
		case 1:
			c.list(typ, func(typ byte) { out.columns = append(out.columns, readColumnChunk(c, typ)) })
		case 3:
			out.rows = c.i64(typ)
		}
	})
	return out
}

func readColumnChunk(c *compact, typ byte) (out columnChunk) {
	c.structure(typ, func(id int, typ byte) {
		switch id {
		case 1:
			out.elsewhere = c.text(typ) != ""
		case 3:
			readColumnMetaData(c, typ, &out)
		case 8:
			out.encrypted = true
		}
	})
	return out
}

func readColumnMetaData(c *compact, typ byte, out *columnChunk) {
	c.structure(typ, func(id int, typ byte) {
		switch id {
		case 4:
			out.codec = codec(c.i32(typ))
		case 5:
			out.values = c.i64(typ)
		case 7:
			out.size = c.i64(typ)
		case 9:
			out.data = c.i64(typ)
		case 11:
			out.dictionary = c.i64(typ)
		}
	})
}

func readKV(c *compact, typ byte) (out KV) {
	c.structure(typ, func(id int, typ byte) {
		switch id {
		case 1:
			out.Key = c.text(typ)
		case 2:
			out.Value = c.text(typ)
		}
	})
	return out
}

// check returns an error for row groups with more values than a file of this size can plausibly
// hold: a run of a few bytes can stand for any number of equal values.
func (f *footer) check(fileSize int64) error {
	most := MostValues(fileSize)
	for i, g := range f.groups {
		if g.rows < 0 || g.rows > most {
			return fmt.Errorf("row group %d says it has %d rows, at most %d are read from a file of %d bytes", i, g.rows, most, fileSize)
		}
		left := most
		for _, c := range g.columns {
			if c.values < 0 || c.values > left {
				return fmt.Errorf("row group %d says it has columns of more than %d values together, the most that are read from a file of %d bytes", i, most, fileSize)
			}
			left -= c.values
		}
	}
	return nil
}
