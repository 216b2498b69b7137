package pqread

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// leaves returns the columns of a schema that can be read, and says of the
// others why not.
func leaves(schema []element) (out []Leaf, skipped []string, err error) {
	if len(schema) == 0 {
		return nil, nil, errors.New("the schema is empty")
	}
	n := 0
	t := tree{rest: schema[1:], leaf: func(path []element) {
		leaf, reason := leafOf(path)
		leaf.index = n
		n++
		if reason != "" {
			skipped = append(skipped, dotted(path)+": "+reason)
			return
		}
		out = append(out, leaf)
	}}
	for range schema[0].children {
		if err := t.walk(nil); err != nil {
			return nil, nil, err
		}
	}
	if len(t.rest) > 0 {
		return nil, nil, fmt.Errorf("the schema has %d elements outside of its tree", len(t.rest))
	}
	return out, skipped, nil
}

// tree walks a schema tree; leaf is given the path from a top-level element.
type tree struct {
	rest []element
	leaf func(path []element)
}

func (t *tree) walk(above []element) error {
	if len(t.rest) == 0 {
		return errors.New("the schema ends before its tree does")
	}
	e := t.rest[0]
	t.rest = t.rest[1:]
	path := append(above, e)
	if len(path) > deepest {
		return fmt.Errorf("the schema is more than %d levels deep", deepest)
	}
	if e.children == 0 {
		t.leaf(path)
	}
	for range e.children {
		if err := t.walk(path); err != nil {
			return err
		}
	}
	return nil
}

func dotted(path []element) string {
	names := make([]string, len(path))
	for i, e := range path {
		names[i] = e.name
	}
	return strings.Join(names, ".")
}

// count is the number of elements of one repetition.
func count(path []element, r repetition) (n int16) {
	for _, e := range path {
		if e.repetition == r {
			n++
		}
	}
	return n
}

func leafOf(path []element) (out Leaf, reason string) {
	e := path[len(path)-1]
	lists := count(path, repeated)
	out = Leaf{Name: path[0].name, Type: e.typ, Text: e.text, List: lists > 0, maxRep: lists, maxDef: lists + count(path, optional)}
	if e.typ == Fixed || e.typ == Int96 {
		return out, "type " + e.typ.String() + " is not read"
	}
	if lists > 1 {
		return out, "lists of lists are not read"
	}
	if lists == 0 {
		if len(path) > 1 {
			return out, "fields of structures are not read"
		}
		out.Nullable = out.maxDef > 0
		return out, ""
	}
	at := slices.IndexFunc(path, func(e element) bool { return e.repetition == repeated })
	switch inside := path[at+1:]; {
	case len(inside) > 1 || path[at].children > 1:
		return out, "lists of structures are not read"
	case at > 1 || at == 1 && path[0].children > 1:
		return out, "lists inside structures are not read"
	default:
		// The definition levels below the repeated element belong to the list's own.
		out.repDef = out.maxDef - count(inside, optional)
		out.Nullable = out.repDef > 1
		return out, ""
	}
}
