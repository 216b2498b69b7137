package jsonscan

import "sort"

// Given is a string that a JSON writer has at hand decoded. The parsed text has "" in its
// place, so that a long text of a table is neither escaped nor scanned.
type Given struct {
	At   int    // offset of "" in the parsed text
	Text string // UTF-8
}

// given returns the index of the first Given at or after an offset.
func (d *Doc) given(at uint32) int {
	return sort.Search(len(d.opt.Given), func(i int) bool { return d.opt.Given[i].At >= int(at) })
}

// isGiven reports whether the string at an offset is Given.
func (d *Doc) isGiven(at int) bool {
	i := d.given(uint32(at))
	return i < len(d.opt.Given) && d.opt.Given[i].At == at
}

// within returns the Givens inside v.
func (v Value) within() []Given {
	if v.d == nil || len(v.d.opt.Given) == 0 {
		return nil
	}
	return v.d.opt.Given[v.d.given(v.n.start):v.d.given(v.n.end)]
}

// restore returns the source text of v with all Givens in place.
func (v Value) restore(given []Given) []byte {
	out := make([]byte, 0, v.Size())
	done := int(v.n.start)
	for _, g := range given {
		out = AppendEscaped(append(out, v.d.src[done:g.At+1]...), g.Text)
		done = g.At + 1
	}
	return append(out, v.d.src[done:v.n.end]...)
}
