package pqread

import (
	"errors"
	"fmt"
	"hash/crc32"
)

// The page types of parquet.thrift.
const (
	dataPage       = 0
	dictionaryPage = 2
	dataPageV2     = 3
)

// A header is PageHeader of parquet.thrift with the header of its page type.
type header struct {
	typ, raw, packed         int // sizes before and after compression
	crc                      *uint32
	values                   int
	encoding                 encoding
	defEncoding, repEncoding encoding // version 1 only
	def, rep                 int      // bytes of levels, version 2 only
	plain                    bool     // uncompressed, version 2 only
}

func readHeader(c *compact) (out header) {
	c.structure(thriftStruct, func(id int, typ byte) {
		switch id {
		case 1:
			out.typ = c.i32(typ)
		case 2:
			out.raw = c.count(typ)
		case 3:
			out.packed = c.count(typ)
		case 4:
			sum := uint32(c.i32(typ))
			out.crc = &sum
		case 5:
			out.readData(c, typ)
		case 7:
			out.readDictionary(c, typ)
		case 8:
			out.readDataV2(c, typ)
		}
	})
	return out
}

func (h *header) readData(c *compact, typ byte) {
	c.structure(typ, func(id int, typ byte) {
		switch id {
		case 1:
			h.values = c.count(typ)
		case 2:
			h.encoding = encoding(c.i32(typ))
		case 3:
			h.defEncoding = encoding(c.i32(typ))
		case 4:
			h.repEncoding = encoding(c.i32(typ))
		}
	})
}

func (h *header) readDictionary(c *compact, typ byte) {
	c.structure(typ, func(id int, typ byte) {
		if id == 1 {
			h.values = c.count(typ)
		}
	})
}

func (h *header) readDataV2(c *compact, typ byte) {
	c.structure(typ, func(id int, typ byte) {
		switch id {
		case 1:
			h.values = c.count(typ)
		case 4:
			h.encoding = encoding(c.i32(typ))
		case 5:
			h.def = c.count(typ)
		case 6:
			h.rep = c.count(typ)
		case 7:
			h.plain = typ == thriftFalse
		}
	})
}

// pages reads the pages of a column chunk in order and collects their levels and values.
type pages struct {
	f      *File
	leaf   Leaf
	levels levelSink
	out    *Chunk

	codec   codec
	left    int64 // bytes that the chunk may still decompress to
	total   int64 // number of values in the chunk
	dict    *Chunk
	at, end int64  // file offset of the next page, end of the chunk
	window  []byte // bytes of the chunk from at on
	buf     []byte
}

// open starts a chunk.
func (p *pages) open(chunk *columnChunk) error {
	if err := chunk.check(p.f.size); err != nil {
		return err
	}
	p.codec, p.left, p.total, p.dict = chunk.codec, MostBytes(p.f.size), chunk.values, nil
	p.at, p.end, p.window = chunk.start(), chunk.start()+chunk.size, nil
	p.levels.n = 0
	return nil
}

// next reads pages up to and including the next one with values, which are appended to those
// held.
func (p *pages) next() error {
	for before := p.levels.n; p.levels.n == before; {
		if p.at >= p.end {
			return fmt.Errorf("the data end after %d of %d values", p.levels.n, p.total)
		}
		h, body, err := p.read()
		if err == nil {
			err = p.page(&h, body)
		}
		if err != nil {
			return fmt.Errorf("a page after %d of %d values: %w", before, p.total, err)
		}
	}
	return nil
}

// firstWindow is the number of bytes first read to find a page header.
const firstWindow = 64 << 10

// read returns the header and the body of the next page.
func (p *pages) read() (header, []byte, error) {
	for want := int64(firstWindow); ; want *= 8 {
		if err := p.fillWindow(want); err != nil {
			return header{}, nil, err
		}
		t := compact{b: p.window}
		h := readHeader(&t)
		if t.err != nil {
			if int64(len(p.window)) == p.end-p.at {
				return h, nil, t.err
			}
			continue
		}
		head := int64(len(p.window) - len(t.b))
		if int64(h.packed) > p.end-p.at-head {
			return h, nil, errShort
		}
		all := head + int64(h.packed)
		if err := p.fillWindow(all); err != nil {
			return h, nil, err
		}
		body := p.window[head:all]
		p.window = p.window[all:]
		p.at += all
		if h.crc != nil && *h.crc != crc32.ChecksumIEEE(body) {
			return h, nil, errors.New("its checksum differs: the file is damaged")
		}
		return h, body, nil
	}
}

// fillWindow makes window hold at least n bytes of the chunk, or all that are left.
func (p *pages) fillWindow(n int64) error {
	n = min(n, p.end-p.at)
	if int64(len(p.window)) >= n {
		return nil
	}
	have := len(p.window)
	if int64(cap(p.buf)) < n {
		bigger := make([]byte, max(n, firstWindow))
		copy(bigger, p.window)
		p.buf = bigger
	} else {
		p.buf = p.buf[:cap(p.buf)]
		copy(p.buf, p.window)
	}
	// Fill the rest of the buffer too, to save a later read.
	n = min(int64(len(p.buf)), p.end-p.at)
	p.window = p.buf[:n]
	return readAt(p.f.r, p.window[have:], p.at+int64(have))
}

func (p *pages) page(h *header, body []byte) error {
	switch h.typ {
	case dictionaryPage:
		data, err := p.uncompressed(body, h.raw)
		if err != nil {
			return fmt.Errorf("dictionary: %w", err)
		}
		p.dict = &Chunk{}
		if err := appendPlainValues(p.dict, &p.leaf, data, h.values); err != nil {
			return fmt.Errorf("dictionary: %w", err)
		}
		return nil
	case dataPage, dataPageV2:
	default:
		return nil
	}
	// Checked before run-length encoded values are expanded.
	if int64(h.values) > p.total-int64(p.levels.n) {
		return fmt.Errorf("a page of %d values follows %d of %d", h.values, p.levels.n, p.total)
	}
	open := p.openData
	if h.typ == dataPageV2 {
		open = p.openDataV2
	}
	data, err := open(h, body)
	if err != nil {
		return err
	}
	present := h.values
	if p.leaf.maxDef > 0 {
		present = 0
		for _, d := range p.levels.def[len(p.levels.def)-h.values:] {
			if d == p.leaf.maxDef {
				present++
			}
		}
	}
	p.levels.n += h.values
	return p.appendValues(h.encoding, data, present)
}

// openData reads the levels of a version 1 page and returns its encoded values.
func (p *pages) openData(h *header, body []byte) ([]byte, error) {
	data, err := p.uncompressed(body, h.raw)
	if p.leaf.maxRep > 0 && err == nil {
		data, err = levelStream(h.repEncoding, data, &p.levels.rep, h.values, p.leaf.maxRep)
	}
	if p.leaf.maxDef > 0 && err == nil {
		data, err = levelStream(h.defEncoding, data, &p.levels.def, h.values, p.leaf.maxDef)
	}
	return data, err
}

func levelStream(enc encoding, data []byte, dst *[]int16, n int, top int16) ([]byte, error) {
	if enc != rle {
		return nil, fmt.Errorf("levels in encoding %s are not read", enc)
	}
	return prefixedLevels(data, dst, n, top)
}

// openDataV2 reads the levels of a version 2 page, which are never compressed, and returns its
// encoded values.
func (p *pages) openDataV2(h *header, body []byte) ([]byte, error) {
	if h.rep > len(body) || h.def > len(body)-h.rep || h.raw < h.rep+h.def {
		return nil, errShort
	}
	rep, def, data := body[:h.rep], body[h.rep:h.rep+h.def], body[h.rep+h.def:]
	if p.leaf.maxRep > 0 {
		if err := readLevels(rep, &p.levels.rep, h.values, p.leaf.maxRep); err != nil {
			return nil, err
		}
	}
	if p.leaf.maxDef > 0 {
		if err := readLevels(def, &p.levels.def, h.values, p.leaf.maxDef); err != nil {
			return nil, err
		}
	}
	if h.plain {
		return data, nil
	}
	return p.uncompressed(data, h.raw-h.rep-h.def)
}

// uncompressed returns the size bytes that body decompresses to. They are valid until the next
// page.
func (p *pages) uncompressed(body []byte, size int) ([]byte, error) {
	if err := p.spend(size); err != nil {
		return nil, err
	}
	return p.f.unpack.page(body, size, p.codec)
}

// spend counts n bytes against the chunk's memory limit.
func (p *pages) spend(n int) error {
	if p.left -= int64(n); p.left < 0 {
		return errors.New("the column chunk needs more memory than a file of its size can be meant to")
	}
	return nil
}
