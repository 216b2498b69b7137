package frameworks

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// tree holds attributes by the parts of their dotted keys.
type tree struct {
	raw  json.RawMessage
	keys []string
	kids map[string]*tree
}

func (n *tree) put(path []string, raw json.RawMessage) {
	for _, word := range path {
		if n.kids[word] == nil {
			if n.kids == nil {
				n.kids = map[string]*tree{}
			}
			n.kids[word] = &tree{}
			n.keys = append(n.keys, word)
		}
		n = n.kids[word]
	}
	n.raw = raw
}

// append writes a tree as JSON; a node whose keys are all numbers is a list.
func (n *tree) append(b []byte) []byte {
	if n.kids == nil {
		return append(b, n.raw...)
	}
	numbered := !slices.ContainsFunc(n.keys, func(k string) bool { _, err := strconv.Atoi(k); return err != nil })
	if numbered {
		slices.SortFunc(n.keys, func(a, b string) int {
			x, _ := strconv.Atoi(a)
			y, _ := strconv.Atoi(b)
			return x - y
		})
	}
	open, end := byte('{'), byte('}')
	if numbered {
		open, end = '[', ']'
	}
	b = append(b, open)
	for i, k := range n.keys {
		if i > 0 {
			b = append(b, ',')
		}
		if !numbered {
			b = append(append(b, format.Quote(k)...), ':')
		}
		b = n.kids[k].append(b)
	}
	return append(b, end)
}

// anyValue returns a value of the OpenTelemetry protocol as JSON, nil if there is none. Its
// numbers may be strings.
func anyValue(v format.Value) []byte {
	for kind, x := range v.Members() {
		switch kind {
		case "stringValue", "doubleValue", "boolValue":
			return x.Clone()
		case "intValue":
			if s, ok := x.Text(); ok {
				return []byte(s)
			}
			return x.Clone()
		case "arrayValue":
			var list [][]byte
			for _, y := range x.Get("values").Items() {
				list = append(list, orNull(anyValue(y)))
			}
			return format.Array(list)
		case "kvlistValue":
			var o format.Object
			for _, y := range x.Get("values").Items() {
				o.Raw(y.Get("key").String(), orNull(anyValue(y.Get("value"))))
			}
			return o.End()
		}
	}
	return nil
}

func orNull(b []byte) []byte {
	if b == nil {
		return []byte("null")
	}
	return b
}

// attributes returns the attributes of a span as one object. They may be written flat,
// nested, or as the list of the protocol.
func attributes(in *format.File, v format.Value) (format.Value, error) {
	var t tree
	put := func(key string, raw []byte) { t.put(strings.SplitN(key, ".", 32), raw) }
	list := v.Get("attributes")
	for key, x := range list.Members() {
		put(key, x.Clone())
	}
	for _, x := range list.Items() {
		if value := anyValue(x.Get("value")); value != nil {
			put(x.Get("key").String(), value)
		}
	}
	text := []byte("{}")
	if t.kids != nil {
		text = t.append(nil)
	}
	out, err := in.Parse(bytes.TrimSpace(text))
	if err != nil {
		return out, in.Fail(0, "/attributes", "the attributes contradict each other: %s", err)
	}
	return out, nil
}
