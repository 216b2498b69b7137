package pqread

import "encoding/binary"

// readDelta decodes n values of DELTA_BINARY_PACKED and returns the rest of data.
func readDelta(data []byte, n int) (out []int64, rest []byte, err error) {
	next := func() (v uint64) {
		u, k := binary.Uvarint(data)
		if k <= 0 {
			err = errShort
			return 0
		}
		data = data[k:]
		return u
	}
	zigzag := func() int64 {
		u := next()
		return int64(u>>1) ^ -int64(u&1)
	}
	block, minis, total, last := next(), next(), next(), zigzag()
	if err != nil {
		return nil, nil, err
	}
	if minis == 0 || block == 0 || block%(8*minis) != 0 || block > 1<<20 || total != uint64(n) {
		return nil, nil, errShort
	}
	per := int(block / minis)
	if n > 0 {
		out = append(out, last)
	}
	for len(out) < n {
		lowest := zigzag()
		if err != nil || uint64(len(data)) < minis {
			return nil, nil, errShort
		}
		widths := data[:minis]
		data = data[minis:]
		for _, width := range widths {
			if len(out) >= n {
				break
			}
			size := per * int(width) / 8
			if width > 64 || size > len(data) {
				return nil, nil, errShort
			}
			for i := 0; i < per && len(out) < n; i++ {
				last += lowest + int64(bitsAt(data, i*int(width), int(width)))
				out = append(out, last)
			}
			data = data[size:]
		}
	}
	return out, data, nil
}

// bitsAt reads width bits from bit offset at.
func bitsAt(data []byte, at, width int) (v uint64) {
	for i := 0; i < width; {
		take := min(8-at%8, width-i)
		v |= (uint64(data[at/8]) >> (at % 8) & (1<<take - 1)) << i
		at += take
		i += take
	}
	return v
}

// readDeltaTexts decodes n values of DELTA_LENGTH_BYTE_ARRAY and returns the rest of data.
func readDeltaTexts(data []byte, n int) (out []string, rest []byte, err error) {
	lens, data, err := readDelta(data, n)
	if err != nil {
		return nil, nil, err
	}
	for _, size := range lens {
		if size < 0 || size > int64(len(data)) {
			return nil, nil, errShort
		}
		out = append(out, string(data[:size]))
		data = data[size:]
	}
	return out, data, nil
}

// appendPrefixed decodes n values of DELTA_BYTE_ARRAY. Few bytes can repeat a long text many
// times, so the texts count against the chunk's memory limit as pages do.
func (p *pages) appendPrefixed(data []byte, n int) error {
	prefixes, data, err := readDelta(data, n)
	if err != nil {
		return err
	}
	suffixes, _, err := readDeltaTexts(data, n)
	if err != nil {
		return err
	}
	last := ""
	for i, size := range prefixes {
		if size < 0 || size > int64(len(last)) {
			return errShort
		}
		if err := p.spend(int(size)); err != nil {
			return err
		}
		last = last[:size] + suffixes[i]
		p.out.Texts = append(p.out.Texts, last)
	}
	return nil
}
