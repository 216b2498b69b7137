package pq

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
)

var errShort = errors.New("a page ends before its values do")

// readSplit decodes a chunk whose pages may be BYTE_STREAM_SPLIT, which
// arrow/go v17 cannot. Pages of the chunk in PLAIN encoding are read too;
// others are refused.
func readSplit(rg *file.RowGroupReader, leaf Leaf, out *Chunk, levels *levelSink) error {
	pages, err := rg.GetColumnPageReader(leaf.index)
	if err != nil {
		return err
	}
	for pages.Next() {
		var data []byte
		var n int
		p := pages.Page()
		switch p := p.(type) {
		case *file.DataPageV1:
			data, n = p.Data(), int(p.NumValues())
			if leaf.List {
				if data, err = prefixedLevels(data, &levels.rep, n, 1); err != nil {
					return err
				}
			}
			if leaf.maxDef > 0 {
				if data, err = prefixedLevels(data, &levels.def, n, leaf.maxDef); err != nil {
					return err
				}
			}
		case *file.DataPageV2:
			data, n = p.Data(), int(p.NumValues())
			rep, def := int(p.RepetitionLevelByteLen()), int(p.DefinitionLevelByteLen())
			if rep < 0 || def < 0 || rep+def > len(data) {
				return errShort
			}
			if leaf.List {
				if err := readLevels(data[:rep], &levels.rep, n, 1); err != nil {
					return err
				}
			}
			if leaf.maxDef > 0 {
				if err := readLevels(data[rep:rep+def], &levels.def, n, leaf.maxDef); err != nil {
					return err
				}
			}
			data = data[rep+def:]
		default:
			continue
		}
		if leaf.maxDef == 0 {
			levels.def = append(levels.def, make([]int16, n)...)
		}
		present := 0
		for _, d := range levels.def[len(levels.def)-n:] {
			if d == leaf.maxDef {
				present++
			}
		}
		if err := splitValues(data, parquet.Encoding(p.Encoding()), leaf.Type, present, out); err != nil {
			return err
		}
	}
	return pages.Err()
}

func splitValues(data []byte, enc parquet.Encoding, t parquet.Type, n int, out *Chunk) error {
	size := 4
	if t == parquet.Types.Int64 || t == parquet.Types.Double {
		size = 8
	}
	if n > len(data)/size {
		return errShort
	}
	var at, step int
	switch enc {
	case byteStreamSplit:
		at, step = 1, n
	case parquet.Encodings.Plain:
		at, step = size, 1
	default:
		return fmt.Errorf("a page in encoding %s beside BYTE_STREAM_SPLIT is not read", enc)
	}
	for i := range n {
		var u uint64
		for b := range size {
			u |= uint64(data[i*at+b*step]) << (8 * b)
		}
		switch t {
		case parquet.Types.Float:
			out.Floats = append(out.Floats, math.Float32frombits(uint32(u)))
		case parquet.Types.Double:
			out.Doubles = append(out.Doubles, math.Float64frombits(u))
		case parquet.Types.Int32:
			out.Ints = append(out.Ints, int32(uint32(u)))
		case parquet.Types.Int64:
			out.Longs = append(out.Longs, int64(u))
		default:
			return fmt.Errorf("BYTE_STREAM_SPLIT of type %s is not read", t)
		}
	}
	return nil
}

// prefixedLevels reads a level stream with a four-byte length before it and
// returns what follows.
func prefixedLevels(data []byte, dst *[]int16, n int, top int16) ([]byte, error) {
	if len(data) < 4 {
		return nil, errShort
	}
	size := binary.LittleEndian.Uint32(data)
	data = data[4:]
	if uint64(size) > uint64(len(data)) {
		return nil, errShort
	}
	return data[size:], readLevels(data[:size], dst, n, top)
}

// readLevels decodes n levels of the RLE / bit-packing hybrid.
func readLevels(data []byte, dst *[]int16, n int, top int16) error {
	width := widthOf(int(top))
	for n > 0 {
		head, k := binary.Uvarint(data)
		if k <= 0 {
			return errShort
		}
		data = data[k:]
		if head&1 == 0 {
			if len(data) < 1 || head>>1 == 0 {
				return errShort
			}
			v, run := int16(data[0]), int(min(head>>1, uint64(n)))
			if v > top {
				return fmt.Errorf("level %d is above %d", v, top)
			}
			data = data[1:]
			for range run {
				*dst = append(*dst, v)
			}
			n -= run
			continue
		}
		groups := head >> 1
		if groups == 0 || groups > uint64(len(data)/width) {
			return errShort
		}
		for i := 0; i < int(groups)*8 && n > 0; i++ {
			var v int16
			for b := range width {
				at := i*width + b
				v |= int16(data[at/8]>>(at%8)&1) << b
			}
			if v > top {
				return fmt.Errorf("level %d is above %d", v, top)
			}
			*dst = append(*dst, v)
			n--
		}
		data = data[int(groups)*width:]
	}
	return nil
}
