package pq

import (
	"encoding/binary"

	"github.com/apache/arrow/go/v17/parquet"
)

// pageHeader appends a page header in Thrift's compact protocol (PageHeader of parquet.thrift),
// for a version 1 data page or a dictionary page.
func pageHeader(dst []byte, dict bool, raw, compressed, values int, enc parquet.Encoding) []byte {
	kind, own := 0, byte(2<<4|12) // field 5, a structure
	if dict {
		kind, own = 2, 4<<4|12 // field 7
	}
	i32 := func(n int) { dst = binary.AppendVarint(append(dst, 1<<4|5), int64(n)) } // appends the next field
	i32(kind)
	i32(raw)
	i32(compressed)
	dst = append(dst, own)
	i32(values)
	i32(int(enc))
	if !dict { // encodings of the definition and repetition levels
		i32(int(parquet.Encodings.RLE))
		i32(int(parquet.Encodings.RLE))
	}
	return append(dst, 0, 0)
}

// A cut is one data page: rows [fromRow, toRow) and their values.
type cut struct {
	fromRow, toRow int
	from, to       int // values
	levels         int // entries of the level streams
}

// cuts divides a chunk at row borders into pages of about pageBytes, measured by the plain size
// of the values.
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
