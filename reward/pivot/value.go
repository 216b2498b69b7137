package pivot

import (
	"math/big"
	"strings"

	"github.com/turnpack/turnpack/internal/pytext"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

type kind uint8

const (
	null kind = iota
	boolean
	integer
	float
	text
	list
	object
)

// value is a JSON value with Python's types: notation distinguishes integers from floats, and an
// object keeps the order of first insertion.
type value struct {
	kind  kind
	bool  bool
	int   *big.Int
	float float64
	text  string
	list  []value
	keys  []string
	of    map[string]value
}

func fields(s string) []string { return strings.FieldsFunc(s, pytext.IsSpace) }

func trim(s string) string { return strings.TrimFunc(s, pytext.IsSpace) }

// lower applies Unicode's full lower-casing, including the final sigma.
func lower(s string) string { return cases.Lower(language.Und).String(s) }

// str reproduces Python's str(): the text of a string, the repr of any other value.
func (v value) str() string {
	if v.kind == text {
		return v.text
	}
	return string(v.repr(nil))
}

func (v value) repr(b []byte) []byte {
	switch v.kind {
	case null:
		return append(b, "None"...)
	case boolean:
		if v.bool {
			return append(b, "True"...)
		}
		return append(b, "False"...)
	case integer:
		return v.int.Append(b, 10)
	case float:
		return append(b, pytext.Float(v.float)...)
	case text:
		return append(b, pytext.Quote(v.text)...)
	case list:
		b = append(b, '[')
		for i, e := range v.list {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = e.repr(b)
		}
		return append(b, ']')
	}
	b = append(b, '{')
	for i, k := range v.keys {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(append(b, pytext.Quote(k)...), ": "...)
		b = v.of[k].repr(b)
	}
	return append(b, '}')
}
