package pq

import (
	"io"

	"github.com/apache/arrow/go/v17/parquet/schema"
)

// A Node is a nested column or a member of one.
type Node struct {
	Name     string
	Kind     Kind
	Nullable bool
	// List makes the node a list; its elements are never null.
	List bool
	// Members make the node a structure; Kind is then ignored.
	Members []Node
}

func (n Node) node() (schema.Node, error) {
	if n.List {
		element := n
		element.Name, element.List, element.Nullable = "element", false, false
		x, err := element.node()
		if err != nil {
			return nil, err
		}
		return schema.ListOfWithName(n.Name, x, repetition(n.Nullable), -1)
	}
	if n.Members != nil {
		return group(n.Name, n.Nullable, n.Members)
	}
	var logical schema.LogicalType
	switch n.Kind {
	case Text:
		logical = schema.StringLogicalType{}
	case Int8:
		logical = schema.NewIntLogicalType(8, true)
	}
	return schema.NewPrimitiveNodeLogical(n.Name, repetition(n.Nullable), logical, physical(n.Kind), -1, -1)
}

func group(name string, nullable bool, members []Node) (*schema.GroupNode, error) {
	fields := make(schema.FieldList, len(members))
	for i, m := range members {
		var err error
		if fields[i], err = m.node(); err != nil {
			return nil, err
		}
	}
	return schema.NewGroupNode(name, repetition(nullable), fields, -1)
}

// leaves returns the columns that hold values, in tree order.
func (n Node) leaves(path string, rep, def int) []Column {
	path += n.Name
	if n.Nullable {
		def++
	}
	if n.List {
		path, rep, def = path+".list.element", rep+1, def+1
	}
	if n.Members == nil {
		return []Column{{Name: path, Kind: n.Kind, leaf: true, maxRep: rep, topDef: def}}
	}
	var out []Column
	for _, m := range n.Members {
		out = append(out, m.leaves(path+".", rep, def)...)
	}
	return out
}

// NewTreeWriter starts a file of nested columns and returns its leaves. A row group takes the
// values of the leaves with their levels: one entry in Rep and Def for each value and for each
// missing value, but values only where present.
func NewTreeWriter(w io.Writer, tree []Node, level int) (*Writer, []Column, error) {
	var columns []Column
	for _, n := range tree {
		columns = append(columns, n.leaves("", 0, 0)...)
	}
	out, err := newWriter(w, tree, columns, level)
	return out, columns, err
}

// Depth returns the definition level of a value that is present.
func (c Column) Depth() int { return c.topDef }

// leafCuts is cuts for a leaf of a tree.
func leafCuts(c Column, v *Values, pageBytes int) []cut {
	var out []cut
	p, bytes := cut{}, 0
	for i, d := range v.Def {
		if v.Rep[i] == 0 && bytes > pageBytes {
			out = append(out, p)
			p, bytes = cut{fromRow: i, toRow: i, from: p.to, to: p.to}, 0
		}
		p.toRow++ // rows of a leaf's cut are entries of its levels
		p.levels++
		if int(d) != c.topDef {
			continue
		}
		if bytes += 8; c.Kind == Text {
			bytes += len(v.Texts[p.to])
		}
		p.to++
	}
	return append(out, p)
}

// leafLevels appends the repetition and definition levels of a page.
func leafLevels(dst []byte, c Column, v *Values, p cut) []byte {
	for k, levels := range [][]uint8{v.Rep[p.fromRow:p.toRow], v.Def[p.fromRow:p.toRow]} {
		top := c.topDef
		if k == 0 {
			top = c.maxRep
		}
		if top == 0 {
			continue
		}
		dst = appendLevels(dst, func(h *hybrid) { runs(levels, func(level uint8, n int) { h.run(uint32(level), n) }) }, top)
	}
	return dst
}
