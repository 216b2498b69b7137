package pqread

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The values of a row group are limited over all its columns, since each is held while the next
// is read.
func TestRowGroupsAreJudgedByTheFile(t *testing.T) {
	const size, most = 1 << 20, 256 << 20
	group := func(rows int64, values ...int64) *footer {
		g := rowGroup{rows: rows}
		for _, n := range values {
			g.columns = append(g.columns, columnChunk{values: n})
		}
		return &footer{groups: []rowGroup{{rows: 1}, g}}
	}
	for _, f := range []*footer{group(1), group(most, most/2, most/2), group(5, 0, most)} {
		require.NoError(t, f.check(size))
	}
	for _, f := range []*footer{group(-1), group(most + 1), group(1, -1), group(1, most+1), group(1, most/2, most/2+1), group(1, 1<<62, 1<<62, 1<<62)} {
		require.ErrorContains(t, f.check(size), "row group 1 says it has")
	}
}

// schemaLines parses a schema of one line per element: dots for depth, ? for optional, * for
// repeated, # for INT96.
func schemaLines(text string) []element {
	var out []element
	var above []int // index of the last element at each depth
	for line := range strings.Lines(text) {
		name := strings.TrimSpace(line)
		depth := len(name) - len(strings.TrimLeft(name, "."))
		name = name[depth:]
		e := element{typ: Int64}
		switch name[len(name)-1] {
		case '?':
			e.repetition = optional
		case '*':
			e.repetition = repeated
		case '#':
			e.typ = Int96
		}
		e.name = strings.TrimRight(name, "?*#")
		if depth > 0 {
			out[above[depth-1]].children++
		}
		above = append(above[:depth], len(out))
		out = append(out, e)
	}
	return out
}

// The list layouts that writers use are read, and no other nesting.
func TestSchemaShapes(t *testing.T) {
	got, err := readTree(schemaLines(`schema
		.plain
		.optional?
		.time#
		.three?
		..list*
		...element?
		.hive
		..bag*
		...array_element
		.two?
		..array*
		.bare*
		.struct?
		..x
		..y?
		.both?
		..xs*
		..ys*
		.inner
		..deep
		...list*
		....element
		.pairs?
		..list*
		...element
		....first
		.map
		..key_value*
		...key
		...value?
		.matrix
		..list*
		...element
		....list*
		.....element
		.last`))
	require.NoError(t, err)
	require.Equal(t, []Leaf{
		{Name: "plain", Type: Int64, index: 0},
		{Name: "optional", Type: Int64, index: 1, maxDef: 1},
		{Name: "three", Type: Int64, List: true, maxRep: 1, index: 3, maxDef: 3, repDef: 2},
		{Name: "hive", Type: Int64, List: true, maxRep: 1, index: 4, maxDef: 1, repDef: 1},
		{Name: "two", Type: Int64, List: true, maxRep: 1, index: 5, maxDef: 2, repDef: 2},
		{Name: "bare", Type: Int64, List: true, maxRep: 1, index: 6, maxDef: 1, repDef: 1},
		{Name: "last", Type: Int64, index: 16},
	}, got.flat)
	for _, broken := range [][]element{nil, {{children: 2}, {name: "a"}}, {{children: 1}, {name: "a"}, {name: "b"}}} {
		_, err := readTree(broken)
		require.ErrorContains(t, err, "schema")
	}
	deep := schemaLines("schema")
	for range 100 {
		deep = append(deep, element{children: 1})
	}
	deep[0].children = 1
	_, err = readTree(append(deep, element{name: "a"}))
	require.ErrorContains(t, err, "deep")
}
