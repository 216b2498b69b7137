package literal

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// Types is a set of JSON schema types.
type Types uint8

const (
	null Types = 1 << iota
	integer
	number
	boolean
	object
	array
	String

	// JSON is any value except text.
	JSON = null | number | boolean | object | array
)

// Space is the white space of all formats.
const Space = " \t\r\n"

// typeNames holds the type names of JSON schema and others that tools use, as vLLM 0.33 reads them
// (tool_parsers/utils.py).
var typeNames = map[string]Types{
	"null": null, "string": String, "integer": integer, "number": number,
	"boolean": boolean, "object": object, "array": array,
	"str": String, "text": String, "varchar": String, "char": String, "enum": String,
	"int": integer, "int32": integer, "int64": integer, "uint": integer, "uint32": integer,
	"uint64": integer, "long": integer, "short": integer, "unsigned": integer,
	"float": number, "float32": number, "float64": number, "double": number,
	"bool": boolean, "dict": object, "arr": array, "list": array, "sequence": array,
}

// Schemas holds the parameter types of the offered tools.
type Schemas map[string]map[string]Types

type schemaNode struct {
	Type                any               `json:"type"`
	Enum                []json.RawMessage `json:"enum"`
	AnyOf, OneOf, AllOf []schemaNode
}

// NewSchemas reads the schemas of tools; schemas that cannot be read give no types.
func NewSchemas(tools []rollout.Tool) Schemas {
	if len(tools) == 0 {
		return nil
	}
	type function struct {
		Name       string `json:"name"`
		Parameters struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"parameters"`
		InputSchema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"input_schema"`
	}
	out := Schemas{}
	for _, raw := range tools {
		var tool struct {
			function
			Function *function `json:"function"`
		}
		_ = json.Unmarshal(raw, &tool) // a tool of another shape gives no types
		f := tool.function
		if tool.Function != nil {
			f = *tool.Function
		}
		properties := f.Parameters.Properties
		if properties == nil {
			properties = f.InputSchema.Properties
		}
		of := map[string]Types{}
		for name, p := range properties {
			var n schemaNode
			if json.Unmarshal(p, &n) == nil {
				of[name] = n.types()
			}
		}
		out[f.Name] = of
	}
	return out
}

func (n *schemaNode) types() Types {
	var t Types
	switch v := n.Type.(type) {
	case string:
		t |= typeNames[strings.ToLower(strings.TrimSpace(v))]
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok {
				t |= typeNames[strings.ToLower(strings.TrimSpace(s))]
			}
		}
	}
	for _, raw := range n.Enum {
		switch s := string(raw); s[0] {
		case 'n':
			t |= null
		case 't', 'f':
			t |= boolean
		case '"':
			t |= String
		case '[':
			t |= array
		case '{':
			t |= object
		default:
			if strings.ContainsAny(s, ".eE") {
				t |= number
			} else {
				t |= integer
			}
		}
	}
	for _, list := range [][]schemaNode{n.AnyOf, n.OneOf, n.AllOf} {
		for i := range list {
			t |= list[i].types()
		}
	}
	return t
}

// Knows reports whether a tool was offered; if no tools are given, any tool was.
func (s Schemas) Knows(tool string) bool {
	_, ok := s[tool]
	return ok || s == nil
}

// Of returns the types that a parameter may have. A parameter without a type is text.
func (s Schemas) Of(tool, parameter string) Types {
	if t := s[tool][parameter]; t != 0 {
		return t
	}
	return String
}

// Value returns the JSON value of a parameter written as text: of the first type, in the order of
// the constants, that the text is a value of, else a string.
func (t Types) Value(text string) string {
	trimmed := strings.TrimSpace(text)
	switch lower := strings.ToLower(trimmed); {
	case t&null != 0 && lower == "null":
		return "null"
	case t&(integer|number) != 0 && isInteger(trimmed):
		return canonicalInteger(trimmed)
	case t&number != 0 && isNumber(trimmed):
		return canonicalNumber(trimmed)
	case t&boolean != 0 && (lower == "true" || lower == "1"):
		return "true"
	case t&boolean != 0 && (lower == "false" || lower == "0"):
		return "false"
	case t&(object|array) != 0 && trimmed != "" && json.Valid([]byte(trimmed)):
		return trimmed
	case t&String == 0 && trimmed != "" && json.Valid([]byte(trimmed)) && (isNumber(trimmed) || strings.IndexByte("-0123456789", trimmed[0]) < 0):
		return trimmed
	}
	return Quote(text)
}

func isInteger(s string) bool {
	s = strings.TrimLeft(s[:min(1, len(s))], "+-") + s[min(1, len(s)):]
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func canonicalInteger(s string) string {
	sign := ""
	if s[0] == '-' {
		sign = "-"
	}
	digits := strings.TrimLeft(s, "+-0")
	if digits == "" {
		return "0"
	}
	return sign + digits
}

func isNumber(s string) bool {
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

func canonicalNumber(s string) string {
	if json.Valid([]byte(s)) {
		return s
	}
	f, _ := strconv.ParseFloat(s, 64)
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// Quote returns s as a JSON string.
func Quote(s string) string { return `"` + Escaped(s) + `"` }

// Escaped returns s escaped for a JSON string. Text may be escaped piece by piece.
func Escaped(s string) string { return string(jsonscan.AppendEscaped(nil, s)) }
