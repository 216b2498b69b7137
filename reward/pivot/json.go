package pivot

import (
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// maxDepth bounds the nesting of arguments; the reference's interpreter fails at about the same depth.
const maxDepth = 990

// decode reads one JSON document as Python's json.loads does, except that half of a surrogate pair
// becomes U+FFFD.
func decode(s string) (value, error) {
	var doc jsonscan.Doc
	root, err := doc.Parse([]byte(s), jsonscan.Options{Depth: maxDepth, NonFinite: true})
	var syntax *jsonscan.SyntaxError
	if errors.As(err, &syntax) {
		return value{}, rollout.Errorf(rollout.KindFormat, rollout.Where{Byte: rollout.At(syntax.Offset)}, "expected JSON: %s", syntax.Msg)
	}
	return valueOf(root), err
}

func valueOf(j jsonscan.Value) value {
	switch j.Kind() {
	case jsonscan.Bool:
		b, _ := j.Bool()
		return value{kind: boolean, bool: b}
	case jsonscan.Number:
		return numberOf(string(j.Raw()))
	case jsonscan.String:
		return value{kind: text, text: j.String()}
	case jsonscan.Array:
		v := value{kind: list}
		for _, e := range j.Items() {
			v.list = append(v.list, valueOf(e))
		}
		return v
	case jsonscan.Object:
		v := value{kind: object, of: map[string]value{}}
		for key, member := range j.Members() {
			if _, again := v.of[key]; !again {
				v.keys = append(v.keys, key)
			}
			v.of[key] = valueOf(member)
		}
		return v
	}
	return value{}
}

// numberOf returns an integer for a literal in integer notation, else a float, which is infinite if it
// is out of range.
func numberOf(literal string) value {
	if strings.Trim(literal, "-0123456789") == "" {
		i, _ := new(big.Int).SetString(literal, 10)
		return value{kind: integer, int: i}
	}
	f, _ := strconv.ParseFloat(literal, 64)
	return value{kind: float, float: f}
}
