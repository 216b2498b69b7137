package pq

import (
	"encoding/binary"

	"github.com/apache/arrow/go/v17/parquet"
)

// pageHeader appends the header of a page in Thrift's compact protocol
// (PageHeader of parquet.thrift): a version 1 data page, or a dictionary page.
func pageHeader(dst []byte, dict bool, raw, compressed, values int, enc parquet.Encoding) []byte {
	const (
		i32       = 5
		structure = 12
	)
	field := func(delta, typ byte) { dst = append(dst, delta<<4|typ) }
	num := func(n int) { dst = binary.AppendUvarint(dst, uint64(uint32(int32(n)<<1^int32(n)>>31))) }
	field(1, i32)
	if dict {
		num(2)
	} else {
		num(0)
	}
	field(1, i32)
	num(raw)
	field(1, i32)
	num(compressed)
	if dict {
		field(4, structure) // field 7
		field(1, i32)
		num(values)
		field(1, i32)
		num(int(enc))
	} else {
		field(2, structure) // field 5
		field(1, i32)
		num(values)
		field(1, i32)
		num(int(enc))
		field(1, i32)
		num(int(parquet.Encodings.RLE))
		field(1, i32)
		num(int(parquet.Encodings.RLE))
	}
	return append(dst, 0, 0)
}

// A cut is one data page: rows [fromRow, toRow) and the values they hold.
type cut struct {
	fromRow, toRow int
	from, to       int // values
	levels         int // entries of the level streams
}

// cuts divides a chunk at row borders into pages of about pageBytes, computed
// from the plain size of the values.
func cuts(c Column, v *Values, rows, pageBytes int) []cut {
	if c.leaf {
		return leafCuts(c, v, pageBytes)
	}
	size := 4
	if c.Kind == Int64 {
		size = 8
	}
	var out []cut
	p, bytes := cut{}, 0
	for row := range rows {
		n, levels := 1, 1
		switch {
		case c.List:
			n = max(0, int(v.Lens[row]))
			levels = max(1, n)
		case c.Nullable && v.Nulls[row]:
			n = 0
		}
		add := n * size
		if c.Kind == Text && n == 1 {
			add = 4 + len(v.Texts[row])
		}
		if bytes > 0 && bytes+add > pageBytes {
			out = append(out, p)
			p, bytes = cut{fromRow: row, toRow: row, from: p.to, to: p.to}, 0
		}
		p.toRow++
		p.to += n
		p.levels += levels
		bytes += add
	}
	return append(out, p)
}
