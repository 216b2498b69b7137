package pqread

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// Rows reads the rows of a file as JSON objects, in order. It holds one page and one
// dictionary per column in memory.
//
// Structures become objects, lists become lists, maps with text keys become objects, other maps
// lists of pairs. Null members are left out, since tables write every member of every
// structure; only the content of a message is written as null, which has a meaning there.
// Binary values that are not valid text are written in base64.
type Rows struct {
	f       *File
	cursors []*cursor
	group   int   // of the next row
	left    int64 // rows left in the group
	row     int
	out     []byte
	most    int
	err     error
	gives   bool
	key     bool             // the key of a map is being written
	given   []jsonscan.Given // long texts of the row
	held    int              // their total length
}

// Give makes the following rows hold "" in place of long texts, which Given returns unescaped,
// so that they need not be escaped and parsed. The texts of a page share its memory, which
// stays allocated as long as one of them is in use.
func (r *Rows) Give() { r.gives = true }

// Given returns the long texts of the row that Next last returned, and their total length.
func (r *Rows) Given() (texts []jsonscan.Given, bytes int) { return r.given, r.held }

// NewRows returns the rows of f. A row of more than most bytes is an error; 0 means 1 GiB.
func NewRows(f *File, most int) *Rows {
	if most <= 0 {
		most = 1 << 30
	}
	out := &Rows{f: f, group: -1, most: most}
	for _, l := range f.all {
		out.cursors = append(out.cursors, &cursor{pages: pages{f: f, leaf: l, out: &Chunk{}}})
	}
	return out
}

// Row returns the number of the row that Next last returned, from 1.
func (r *Rows) Row() int { return r.row }

// Next returns the next row, which is valid until the next call, or io.EOF after the last.
// Other errors are final.
func (r *Rows) Next() ([]byte, error) {
	if r.err == nil {
		r.err = r.next()
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.out, nil
}

func (r *Rows) next() error {
	for r.left == 0 {
		if err := r.ended(); err != nil {
			return err
		}
		if r.group++; r.group == len(r.f.foot.groups) {
			r.group--
			return io.EOF
		}
		if err := r.open(&r.f.foot.groups[r.group]); err != nil {
			return err
		}
	}
	r.left--
	r.row++
	for _, c := range r.cursors {
		if err := c.rowStarts(); err != nil {
			return r.located(err)
		}
	}
	var err error
	r.given, r.held = r.given[:0], 0
	if r.out, err = r.members(r.out[:0], r.f.columns, false); err != nil {
		return r.located(err)
	}
	return nil
}

func (r *Rows) located(err error) error { return fmt.Errorf("row group %d: %w", r.group, err) }

// ended returns an error if a column continues after the last row of the group.
func (r *Rows) ended() error {
	for _, c := range r.cursors {
		if c.loaded {
			if more, err := c.more(); err != nil || more {
				return r.located(cmp.Or(err, fmt.Errorf("column %s goes on after the last row", c.leaf.Name)))
			}
		}
	}
	return nil
}

func (r *Rows) open(g *rowGroup) error {
	if len(g.columns) != len(r.cursors) {
		return fmt.Errorf("row group %d has %d columns, the schema %d", r.group, len(g.columns), len(r.cursors))
	}
	r.left = g.rows
	for i, c := range r.cursors {
		if err := c.open(&g.columns[i]); err != nil {
			return r.located(err)
		}
	}
	return nil
}

var errLevels = errors.New("the levels of columns contradict each other")

// Comma appends a comma, unless b ends with the start of an object or list.
func Comma(b []byte) []byte {
	if last := b[len(b)-1]; last == '{' || last == '[' {
		return b
	}
	return append(b, ',')
}

// members writes an object of the non-null members.
func (r *Rows) members(b []byte, nodes []*node, message bool) ([]byte, error) {
	b = append(b, '{')
	for _, n := range nodes {
		at := len(b)
		b = append(Comma(b), n.key...)
		var there bool
		var err error
		if b, there, err = r.field(b, n); err != nil {
			return b, err
		}
		switch {
		case there:
		case message && n.name == "content":
			b = append(b, "null"...)
		default:
			b = b[:at]
		}
		if len(b) > r.most {
			return b, fmt.Errorf("a row of more than %d bytes", r.most)
		}
	}
	return append(b, '}'), nil
}

// field writes a value; there is false if it is null, in which case nothing is written.
func (r *Rows) field(b []byte, n *node) (out []byte, there bool, err error) {
	switch n.repetition {
	case repeated:
		b, err = r.items(b, n)
		return b, true, err
	case optional:
		if r.cursors[n.from].def() < n.def {
			return b, false, r.skip(n)
		}
	}
	b, err = r.content(b, n)
	return b, true, err
}

// skip skips a null value.
func (r *Rows) skip(n *node) error {
	for _, c := range r.cursors[n.from:n.to] {
		if c.def() >= n.def {
			return errLevels
		}
		if err := c.step(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Rows) content(b []byte, n *node) ([]byte, error) {
	switch {
	case n.kids == nil:
		c := r.cursors[n.from]
		if s, long := c.longText(n); r.gives && !r.key && long && utf8.ValidString(s) {
			r.given = append(r.given, jsonscan.Given{At: len(b), Text: s})
			if r.held += len(s); r.held > r.most {
				return b, fmt.Errorf("a row of more than %d bytes", r.most)
			}
			return append(b, '"', '"'), c.step()
		}
		b, err := c.value(b, n)
		if err != nil {
			return b, err
		}
		return b, c.step()
	case n.inner != nil && n.pairs:
		return r.pairs(b, n.inner)
	case n.inner != nil:
		return r.items(b, n.inner)
	}
	return r.members(b, n.kids, n.message)
}

// elements calls write for each element of a repeated node.
func (r *Rows) elements(n *node, write func() error) error {
	first := r.cursors[n.from]
	if first.def() < n.def {
		return r.skip(n)
	}
	for {
		if err := write(); err != nil {
			return err
		}
		goesOn := first.there() && first.rep() >= n.rep
		for _, c := range r.cursors[n.from:n.to] {
			if more := c.there() && c.rep() >= n.rep; more != goesOn || more && (c.rep() > n.rep || c.def() < n.def) {
				return errLevels
			}
		}
		if !goesOn {
			return nil
		}
	}
}

func (r *Rows) items(b []byte, n *node) ([]byte, error) {
	b = append(b, '[')
	err := r.elements(n, func() error {
		b = Comma(b)
		there := true
		var err error
		if n.element != nil {
			b, there, err = r.field(b, n.element)
		} else {
			b, err = r.content(b, n)
		}
		if !there {
			b = append(b, "null"...)
		}
		if err == nil && len(b) > r.most {
			err = fmt.Errorf("a row of more than %d bytes", r.most)
		}
		return err
	})
	return append(b, ']'), err
}

// pairs writes a map with text keys as an object.
func (r *Rows) pairs(b []byte, n *node) ([]byte, error) {
	b = append(b, '{')
	err := r.elements(n, func() error {
		at := len(b)
		b = Comma(b)
		var there bool
		var err error
		if b, there, err = r.pair(b, n); err == nil && len(b) > r.most {
			err = fmt.Errorf("a row of more than %d bytes", r.most)
		}
		if !there {
			b = b[:at]
		}
		return err
	})
	return append(b, '}'), err
}

func (r *Rows) pair(b []byte, n *node) (out []byte, there bool, err error) {
	r.key = true
	b, there, err = r.field(b, n.kids[0])
	if r.key = false; err != nil {
		return b, false, err
	}
	if !there {
		return b, false, errors.New("a map has null as a key")
	}
	b = append(b, ':')
	return r.field(b, n.kids[1])
}

// A cursor is a position in a column, with the page that it is in.
type cursor struct {
	pages
	loaded bool // a chunk has been opened
	i, n   int  // index of the current entry in the page, number of its entries
	v      int  // index of the current value in the page
}

func (c *cursor) open(chunk *columnChunk) error {
	c.loaded, c.i, c.n, c.v = true, 0, 0, 0
	return c.pages.open(chunk)
}

// more reports whether there is an entry left, and loads its page.
func (c *cursor) more() (bool, error) {
	if c.i < c.n {
		return true, nil
	}
	before := c.levels.n
	if int64(before) >= c.total {
		return false, nil
	}
	c.levels.def, c.levels.rep = c.levels.def[:0], c.levels.rep[:0]
	o := c.out
	*o = Chunk{Ints: o.Ints[:0], Longs: o.Longs[:0], Floats: o.Floats[:0], Doubles: o.Doubles[:0], Texts: o.Texts[:0]}
	if err := c.next(); err != nil {
		return false, fmt.Errorf("column %s: %w", c.leaf.Name, err)
	}
	c.i, c.n, c.v = 0, c.levels.n-before, 0
	return true, nil
}

// rowStarts checks that the current entry starts a row.
func (c *cursor) rowStarts() error {
	more, err := c.more()
	if err != nil {
		return err
	}
	if !more {
		return fmt.Errorf("column %s ends before the rows do", c.leaf.Name)
	}
	if c.rep() != 0 {
		return errLevels
	}
	return nil
}

// step moves to the next entry and loads its page.
func (c *cursor) step() error {
	if c.i >= c.n {
		return errLevels
	}
	if c.def() == c.leaf.maxDef {
		c.v++
	}
	c.i++
	_, err := c.more()
	return err
}

// there reports whether the cursor is at an entry.
func (c *cursor) there() bool { return c.i < c.n }

// rep returns the repetition level of the entry, 0 if there is none.
func (c *cursor) rep() int16 {
	if c.leaf.maxRep == 0 || c.i >= c.n {
		return 0
	}
	return c.levels.rep[c.i]
}

// def returns the definition level of the entry, -1 if there is none.
func (c *cursor) def() int16 {
	switch {
	case c.i >= c.n:
		return -1
	case c.leaf.maxDef == 0:
		return 0
	}
	return c.levels.def[c.i]
}
