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
	defEncoding, repEncoding encoding // version 1
	def, rep                 int      // bytes of levels, version 2
	plain                    bool     // not compressed, version 2
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
		default:
			c.skip(typ)
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
		default:
			c.skip(typ)
		}
	})
}

func (h *header) readDictionary(c *compact, typ byte) {
	c.structure(typ, func(id int, typ byte) {
		if id == 1 {
			h.values = c.count(typ)
			return
		}
		c.skip(typ)
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
			c.skip(typ)
		default:
			c.skip(typ)
		}
	})
}

// pages decodes the pages of a column chunk.
type pages struct {
	leaf   Leaf
	codec  codec
	unpack *decompressor
	left   int64 // bytes that may still be taken by what is decompressed
	total  int64 // values of the chunk
	levels levelSink
	dict   *Chunk
	out    *Chunk
}

// read decodes the chunk stored in data.
func (p *pages) read(data []byte) error {
	c := compact{b: data}
	for int64(p.levels.n) < p.total {
		if len(c.b) == 0 {
			return fmt.Errorf("the data end after %d of %d values", p.levels.n, p.total)
		}
		h := readHeader(&c)
		body := c.take(uint64(h.packed))
		if c.err != nil {
			return fmt.Errorf("a page after %d of %d values: %w", p.levels.n, p.total, c.err)
		}
		if h.crc != nil && *h.crc != crc32.ChecksumIEEE(body) {
			return fmt.Errorf("a page after %d of %d values: its checksum differs: the file is damaged", p.levels.n, p.total)
		}
		if err := p.page(&h, body); err != nil {
			return err
		}
	}
	return nil
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
	// Judged before runs of a few bytes are written out as values.
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

// openData reads the levels of a version 1 page and returns its values.
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

// openDataV2 reads the levels of a version 2 page, which are never compressed,
// and returns its values.
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

// uncompressed returns the size bytes that body holds; they are good until the
// next page.
func (p *pages) uncompressed(body []byte, size int) ([]byte, error) {
	if err := p.spend(size); err != nil {
		return nil, err
	}
	return p.unpack.page(body, size, p.codec)
}

// spend takes n bytes from what the chunk may need.
func (p *pages) spend(n int) error {
	if p.left -= int64(n); p.left < 0 {
		return errors.New("the column chunk needs more memory than a file of its size can be meant to")
	}
	return nil
}
