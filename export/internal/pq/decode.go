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

// readPages decodes the pages of a chunk that says it holds total values.
func readPages(pages file.PageReader, leaf Leaf, total int64, out *Chunk, levels *levelSink) error {
	var dict *Chunk
	for pages.Next() {
		var data []byte
		var n int
		p := pages.Page()
		switch p := p.(type) {
		case *file.DictionaryPage:
			dict = &Chunk{}
			if err := appendValues(dict, leaf, parquet.Encodings.Plain, p.Data(), int(p.NumValues()), nil); err != nil {
				return fmt.Errorf("dictionary: %w", err)
			}
			continue
		case *file.DataPageV1:
			data, n = p.Data(), int(p.NumValues())
			if err := fits(n, levels, total); err != nil {
				return err
			}
			var err error
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
			if err := fits(n, levels, total); err != nil {
				return err
			}
			rep, def := int(p.RepetitionLevelByteLen()), int(p.DefinitionLevelByteLen())
			if rep > len(data) || def > len(data)-rep {
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
		present := n
		if leaf.maxDef > 0 {
			present = 0
			for _, d := range levels.def[len(levels.def)-n:] {
				if d == leaf.maxDef {
					present++
				}
			}
		}
		levels.n += n
		if err := appendValues(out, leaf, parquet.Encoding(p.Encoding()), data, present, dict); err != nil {
			return err
		}
	}
	if err := pages.Err(); err != nil {
		return err
	}
	if int64(levels.n) != total {
		return fmt.Errorf("the data end after %d of %d values", levels.n, total)
	}
	return nil
}

// fits refuses a page of more values than its chunk has left, before runs of a
// few bytes are written out as values.
func fits(n int, levels *levelSink, total int64) error {
	if int64(n) > total-int64(levels.n) {
		return fmt.Errorf("a page of %d values follows %d of %d", n, levels.n, total)
	}
	return nil
}

// appendValues decodes n values in encoding enc.
func appendValues(out *Chunk, leaf Leaf, enc parquet.Encoding, data []byte, n int, dict *Chunk) error {
	if n == 0 {
		return nil
	}
	switch {
	case enc == parquet.Encodings.Plain:
		return appendPlainValues(out, leaf.Type, data, n)
	case enc == parquet.Encodings.RLEDict || enc == parquet.Encodings.PlainDict:
		if dict == nil {
			return errors.New("a page refers to a dictionary that is not there")
		}
		return appendDictValues(out, leaf.Type, data, n, dict)
	case enc == byteStreamSplit:
		return appendSplitValues(out, leaf.Type, data, n)
	case enc == parquet.Encodings.DeltaBinaryPacked && (leaf.Type == parquet.Types.Int32 || leaf.Type == parquet.Types.Int64):
		v, _, err := readDelta(data, n)
		for _, x := range v {
			if leaf.Type == parquet.Types.Int32 {
				out.Ints = append(out.Ints, int32(x))
			} else {
				out.Longs = append(out.Longs, x)
			}
		}
		return err
	case enc == parquet.Encodings.DeltaLengthByteArray && leaf.Type == parquet.Types.ByteArray:
		texts, _, err := readDeltaTexts(data, n)
		out.Texts = append(out.Texts, texts...)
		return err
	case enc == parquet.Encodings.DeltaByteArray && leaf.Type == parquet.Types.ByteArray:
		return appendPrefixed(out, data, n)
	case enc == parquet.Encodings.RLE && leaf.Type == parquet.Types.Boolean:
		var bits []int16
		_, err := prefixedLevels(data, &bits, n, 1)
		for _, b := range bits {
			out.Bools = append(out.Bools, b == 1)
		}
		return err
	}
	return fmt.Errorf("encoding %s of type %s is not read", enc, leaf.Type)
}

func appendPlainValues(out *Chunk, t parquet.Type, data []byte, n int) error {
	le := binary.LittleEndian
	switch t {
	case parquet.Types.Boolean:
		if len(data) < (n+7)/8 {
			return errShort
		}
		for i := range n {
			out.Bools = append(out.Bools, data[i/8]>>(i%8)&1 == 1)
		}
	case parquet.Types.Int32, parquet.Types.Float:
		if n > len(data)/4 {
			return errShort
		}
		if t == parquet.Types.Int32 {
			var at []int32
			out.Ints, at = grown(out.Ints, n)
			for i := range at {
				at[i] = int32(le.Uint32(data[4*i:]))
			}
			return nil
		}
		var at []float32
		out.Floats, at = grown(out.Floats, n)
		for i := range at {
			at[i] = math.Float32frombits(le.Uint32(data[4*i:]))
		}
	case parquet.Types.Int64, parquet.Types.Double:
		if n > len(data)/8 {
			return errShort
		}
		for i := range n {
			u := le.Uint64(data[8*i:])
			if t == parquet.Types.Int64 {
				out.Longs = append(out.Longs, int64(u))
			} else {
				out.Doubles = append(out.Doubles, math.Float64frombits(u))
			}
		}
	case parquet.Types.ByteArray:
		for range n {
			if len(data) < 4 {
				return errShort
			}
			size := le.Uint32(data)
			data = data[4:]
			if uint64(size) > uint64(len(data)) {
				return errShort
			}
			out.Texts = append(out.Texts, string(data[:size]))
			data = data[size:]
		}
	default:
		return fmt.Errorf("type %s is not read", t)
	}
	return nil
}

// grown makes s n values longer and returns it with the new part.
func grown[T any](s []T, n int) (all, added []T) {
	at := len(s)
	if cap(s)-at < n {
		s = append(make([]T, 0, max(2*cap(s), at+n)), s...)
	}
	s = s[:at+n]
	return s, s[at:]
}

func appendSplitValues(out *Chunk, t parquet.Type, data []byte, n int) error {
	size := 4
	if t == parquet.Types.Int64 || t == parquet.Types.Double {
		size = 8
	}
	if n > len(data)/size {
		return errShort
	}
	if t == parquet.Types.Float {
		b0, b1, b2, b3 := data[:n], data[n:2*n], data[2*n:3*n], data[3*n:4*n]
		var at []float32
		out.Floats, at = grown(out.Floats, n)
		for i := range at {
			at[i] = math.Float32frombits(uint32(b0[i]) | uint32(b1[i])<<8 | uint32(b2[i])<<16 | uint32(b3[i])<<24)
		}
		return nil
	}
	for i := range n {
		var u uint64
		for b := range size {
			u |= uint64(data[b*n+i]) << (8 * b)
		}
		switch t {
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

func appendDictValues(out *Chunk, t parquet.Type, data []byte, n int, dict *Chunk) error {
	if len(data) < 1 || data[0] > 32 {
		return errShort
	}
	width := int(data[0])
	data = data[1:]
	var err error
	switch t {
	case parquet.Types.Int32:
		out.Ints, err = pick(out.Ints, dict.Ints, data, width, n)
	case parquet.Types.Int64:
		out.Longs, err = pick(out.Longs, dict.Longs, data, width, n)
	case parquet.Types.Float:
		out.Floats, err = pick(out.Floats, dict.Floats, data, width, n)
	case parquet.Types.Double:
		out.Doubles, err = pick(out.Doubles, dict.Doubles, data, width, n)
	case parquet.Types.ByteArray:
		out.Texts, err = pick(out.Texts, dict.Texts, data, width, n)
	default:
		err = fmt.Errorf("a dictionary of type %s is not read", t)
	}
	return err
}

func pick[T any](dst, dict []T, data []byte, width, n int) ([]T, error) {
	err := readHybrid(data, width, n, func(v uint32, times int) error {
		if uint64(v) >= uint64(len(dict)) {
			return fmt.Errorf("index %d is outside a dictionary of %d values", v, len(dict))
		}
		x := dict[v]
		for range times {
			dst = append(dst, x)
		}
		return nil
	})
	return dst, err
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

func readLevels(data []byte, dst *[]int16, n int, top int16) error {
	return readHybrid(data, widthOf(int(top)), n, func(v uint32, times int) error {
		if v > uint32(top) {
			return fmt.Errorf("level %d is above %d", v, top)
		}
		var at []int16
		*dst, at = grown(*dst, times)
		for i := range at {
			at[i] = int16(v)
		}
		return nil
	})
}

// readHybrid decodes n values of the RLE / bit-packing hybrid; each is given
// with how often it follows.
func readHybrid(data []byte, width, n int, emit func(v uint32, times int) error) error {
	bytes := (width + 7) / 8
	for n > 0 {
		head, k := binary.Uvarint(data)
		if k <= 0 {
			return errShort
		}
		data = data[k:]
		if head&1 == 0 {
			if len(data) < bytes || head == 0 {
				return errShort
			}
			var v uint32
			for i := range bytes {
				v |= uint32(data[i]) << (8 * i)
			}
			data = data[bytes:]
			run := int(min(head>>1, uint64(n)))
			if err := emit(v, run); err != nil {
				return err
			}
			n -= run
			continue
		}
		groups := head >> 1
		// Some writers shorten the last group to the bytes it needs.
		need := (min(groups, uint64(n+7)/8)*uint64(width)*8 + 7) / 8
		if short := (uint64(n)*uint64(width) + 7) / 8; need > short {
			need = short
		}
		if groups == 0 || need > uint64(len(data)) {
			return errShort
		}
		count := n
		if groups < uint64(n+7)/8 {
			count = int(groups) * 8
		}
		var acc uint64
		held, at := 0, 0
		mask := uint64(1)<<width - 1
		for range count {
			for held < width {
				acc |= uint64(data[at]) << held
				at++
				held += 8
			}
			if err := emit(uint32(acc&mask), 1); err != nil {
				return err
			}
			acc >>= width
			held -= width
		}
		n -= count
		data = data[min(groups*uint64(width), uint64(len(data))):]
	}
	return nil
}
