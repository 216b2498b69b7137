package pqread

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

var errShort = errors.New("a page ends before its values do")

// appendValues decodes n values in encoding enc.
func (p *pages) appendValues(enc encoding, data []byte, n int) error {
	if n == 0 {
		return nil
	}
	out, typ := p.out, p.leaf.Type
	switch {
	case enc == plain:
		return appendPlainValues(out, &p.leaf, data, n)
	case enc == rleDictionary || enc == plainDictionary:
		if p.dict == nil {
			return errors.New("a page refers to a dictionary that is not there")
		}
		return appendDictValues(out, typ, data, n, p.dict)
	case enc == byteStreamSplit:
		return appendSplitValues(out, &p.leaf, data, n)
	case enc == deltaBinaryPacked && (typ == Int32 || typ == Int64):
		v, _, err := readDelta(data, n)
		for _, x := range v {
			if typ == Int32 {
				out.Ints = append(out.Ints, int32(x))
			} else {
				out.Longs = append(out.Longs, x)
			}
		}
		return err
	case enc == deltaLengthByteArray && typ == ByteArray:
		texts, _, err := readDeltaTexts(data, n)
		out.Texts = append(out.Texts, texts...)
		return err
	case enc == deltaByteArray && (typ == ByteArray || typ == Fixed):
		return p.appendPrefixed(data, n)
	case enc == rle && typ == Boolean:
		var bits []int16
		_, err := prefixedLevels(data, &bits, n, 1)
		for _, b := range bits {
			out.Ints = append(out.Ints, int32(b))
		}
		return err
	}
	return fmt.Errorf("encoding %s of type %s is not read", enc, typ)
}

func appendPlainValues(out *Chunk, leaf *Leaf, data []byte, n int) error {
	t := leaf.Type
	le := binary.LittleEndian
	switch t {
	case Boolean:
		if len(data) < (n+7)/8 {
			return errShort
		}
		for i := range n {
			out.Ints = append(out.Ints, int32(data[i/8]>>(i%8)&1))
		}
	case Int32, Float:
		if n > len(data)/4 {
			return errShort
		}
		if t == Int32 {
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
	case Int64, Double:
		if n > len(data)/8 {
			return errShort
		}
		for i := range n {
			u := le.Uint64(data[8*i:])
			if t == Int64 {
				out.Longs = append(out.Longs, int64(u))
			} else {
				out.Doubles = append(out.Doubles, math.Float64frombits(u))
			}
		}
	case ByteArray:
		if n > len(data)/4 {
			return errShort
		}
		all, at := string(data), 0 // one copy of the page, shared by the texts
		var texts []string
		out.Texts, texts = grown(out.Texts, n)
		for i := range texts {
			if len(data)-at < 4 {
				return errShort
			}
			size := le.Uint32(data[at:])
			at += 4
			if uint64(size) > uint64(len(data)-at) {
				return errShort
			}
			texts[i] = all[at : at+int(size)]
			at += int(size)
		}
	case Fixed, Int96:
		width := leaf.width
		if t == Int96 {
			width = 12
		}
		if width > 0 && n > len(data)/width {
			return errShort
		}
		for i := range n {
			out.Texts = append(out.Texts, string(data[i*width:(i+1)*width]))
		}
	default:
		return fmt.Errorf("type %s is not read", t)
	}
	return nil
}

// grown returns s extended by n values, and the new part.
func grown[T any](s []T, n int) (all, added []T) {
	at := len(s)
	if cap(s)-at < n {
		s = append(make([]T, 0, max(2*cap(s), at+n)), s...)
	}
	s = s[:at+n]
	return s, s[at:]
}

// appendSplitValues decodes n values of BYTE_STREAM_SPLIT, which stores the bytes of each
// number apart.
func appendSplitValues(out *Chunk, leaf *Leaf, data []byte, n int) error {
	size := 4
	switch leaf.Type {
	case Int32, Float:
	case Int64, Double:
		size = 8
	default:
		return fmt.Errorf("BYTE_STREAM_SPLIT of type %s is not read", leaf.Type)
	}
	if n > len(data)/size {
		return errShort
	}
	joined := make([]byte, n*size)
	for b := range size {
		for i, x := range data[b*n : (b+1)*n] {
			joined[i*size+b] = x
		}
	}
	return appendPlainValues(out, leaf, joined, n)
}

func appendDictValues(out *Chunk, t Type, data []byte, n int, dict *Chunk) error {
	if len(data) < 1 || data[0] > 32 {
		return errShort
	}
	width := int(data[0])
	data = data[1:]
	var err error
	switch t {
	case Int32:
		out.Ints, err = pick(out.Ints, dict.Ints, data, width, n)
	case Int64:
		out.Longs, err = pick(out.Longs, dict.Longs, data, width, n)
	case Float:
		out.Floats, err = pick(out.Floats, dict.Floats, data, width, n)
	case Double:
		out.Doubles, err = pick(out.Doubles, dict.Doubles, data, width, n)
	case ByteArray, Fixed, Int96:
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
		if times == 1 {
			dst = append(dst, dict[v])
			return nil
		}
		var at []T
		dst, at = grown(dst, times)
		for i := range at {
			at[i] = dict[v]
		}
		return nil
	})
	return dst, err
}

// prefixedLevels reads a level stream after its four-byte length and returns the rest of data.
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

// widthOf returns the number of bits needed for values 0 … max.
func widthOf(max int) int { return bits.Len(uint(max)) }

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

// readHybrid decodes n values of the RLE / bit-packing hybrid and calls emit for each value
// with its number of repetitions.
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
