package detect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
)

// toolset holds the tools that a model was offered.
type toolset struct {
	allNamed bool // every tool has a name, so that any other name is unknown
	schemas  map[string]any
}

func newToolset(tools []rollout.Tool) *toolset {
	s := &toolset{allNamed: len(tools) > 0, schemas: map[string]any{}}
	type function struct {
		Name        string          `json:"name"`
		Parameters  json.RawMessage `json:"parameters"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	for _, raw := range tools {
		var t struct {
			function
			Function function `json:"function"`
		}
		if json.Unmarshal(raw, &t) != nil {
			s.allNamed = false
			continue
		}
		f := t.function
		if f.Name == "" {
			f = t.Function
		}
		if f.Name == "" { // a built-in tool of the engine
			s.allNamed = false
			continue
		}
		schema := f.Parameters
		if schema == nil {
			schema = f.InputSchema
		}
		decoded, _ := decodeJSON(string(schema)) // a schema that is not JSON accepts everything
		s.schemas[f.Name] = decoded
	}
	return s
}

// check returns the fault of a call and its description, "" if it has none. Empty or null arguments
// count as an empty object, as in engines.
func (s *toolset) check(tool, arguments string) (Fault, string) {
	schema, known := s.schemas[tool]
	if tool == "" || s.allNamed && !known {
		return faultTool, fmt.Sprintf("no tool is named %q", tool)
	}
	var value any = map[string]any{}
	if text := strings.TrimSpace(arguments); text != "" && text != "null" {
		var err error
		if value, err = decodeJSON(text); err != nil {
			return faultArguments, fmt.Sprintf("the arguments of %q are no JSON: %v", tool, err)
		}
		if _, ok := value.(map[string]any); !ok {
			return faultArguments, fmt.Sprintf("the arguments of %q are no JSON object", tool)
		}
	}
	v := validation{root: schema, stepsLeft: maxSchemaSteps}
	if why := v.check(schema, value, "arguments"); why != "" && v.stepsLeft > 0 {
		return faultSchema, fmt.Sprintf("%q: %s", tool, why)
	}
	return "", ""
}

func decodeJSON(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the value")
	}
	return v, nil
}

// maxSchemaSteps bounds the work on one call. Schemas come from dumps, and references in them can
// double the work at every level; beyond the bound no fault is found.
const maxSchemaSteps = 20_000

// validation checks a value against a JSON schema, for the keywords used in tool definitions. Other
// keywords, and keywords whose own value has a wrong type, are ignored: an error of the tool's author
// is not the model's fault.
type validation struct {
	root      any
	stepsLeft int // remaining
}

func (v *validation) check(schema, value any, at string) string {
	if v.stepsLeft--; v.stepsLeft <= 0 {
		return "too much to check"
	}
	if allowed, ok := schema.(bool); ok && !allowed {
		return at + " is not allowed"
	}
	s, ok := schema.(map[string]any)
	if !ok {
		return ""
	}
	if ref, ok := s["$ref"].(string); ok {
		if why := v.check(v.resolve(ref), value, at); why != "" {
			return why
		}
	}
	if why := v.basic(s, value, at); why != "" {
		return why
	}
	if why := v.combined(s, value, at); why != "" {
		return why
	}
	switch x := value.(type) {
	case map[string]any:
		return v.object(s, x, at)
	case []any:
		return v.array(s, x, at)
	case string:
		return checkString(s, x, at)
	case json.Number:
		return checkNumber(s, x, at)
	}
	return ""
}

func (v *validation) basic(s map[string]any, value any, at string) string {
	if types := listOf(s["type"]); types != nil && (value != nil || s["nullable"] != true) {
		odd := slices.ContainsFunc(types, func(t any) bool { return !slices.Contains(jsonTypes, t) })
		if !odd && !slices.ContainsFunc(types, func(t any) bool { return isType(t.(string), value) }) {
			return fmt.Sprintf("%s is of type %s, expected %s", at, typeOf(value), joined(types))
		}
	}
	if values, ok := s["enum"].([]any); ok && !slices.ContainsFunc(values, func(e any) bool { return sameJSON(e, value) }) {
		return fmt.Sprintf("%s is none of the values of its enum", at)
	}
	if want, ok := s["const"]; ok && !sameJSON(want, value) {
		return at + " is not the constant"
	}
	return ""
}

func (v *validation) combined(s map[string]any, value any, at string) string {
	for _, all := range arrayOf(s["allOf"]) {
		if why := v.check(all, value, at); why != "" {
			return why
		}
	}
	fitting := func(key string, most int) string {
		of, fit := arrayOf(s[key]), 0
		for _, one := range of {
			if v.check(one, value, at) == "" {
				fit++
			}
		}
		if len(of) == 0 || fit > 0 && fit <= most {
			return ""
		}
		return fmt.Sprintf("%s fits %d of %s", at, fit, key)
	}
	if why := fitting("anyOf", math.MaxInt); why != "" {
		return why
	}
	if why := fitting("oneOf", 1); why != "" {
		return why
	}
	if not, ok := s["not"].(map[string]any); ok && v.check(not, value, at) == "" {
		return at + " fits what it must not"
	}
	return ""
}

func (v *validation) object(s map[string]any, value map[string]any, at string) string {
	for _, name := range arrayOf(s["required"]) {
		if key, ok := name.(string); ok {
			if _, has := value[key]; !has {
				return fmt.Sprintf("%s.%s is missing", at, key)
			}
		}
	}
	properties, _ := s["properties"].(map[string]any)
	patterns, _ := s["patternProperties"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(value)) {
		x := value[key]
		of, declared := properties[key]
		for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
			also := patterns[pattern]
			if re, err := regexp.Compile(pattern); err != nil || re.MatchString(key) {
				declared = true
				if err == nil {
					if why := v.check(also, x, at+"."+key); why != "" {
						return why
					}
				}
			}
		}
		if !declared {
			of = s["additionalProperties"]
		}
		if why := v.check(of, x, at+"."+key); why != "" {
			return why
		}
	}
	return outsideRange(s, "minProperties", "maxProperties", float64(len(value)), at+" has %g properties")
}

func (v *validation) array(s map[string]any, value []any, at string) string {
	prefix := arrayOf(s["prefixItems"])
	for i, x := range value {
		of := s["items"]
		if i < len(prefix) {
			of = prefix[i]
		}
		if why := v.check(of, x, fmt.Sprintf("%s[%d]", at, i)); why != "" {
			return why
		}
	}
	return outsideRange(s, "minItems", "maxItems", float64(len(value)), at+" has %g items")
}

func checkString(s map[string]any, x, at string) string {
	if pattern, ok := s["pattern"].(string); ok {
		if re, err := regexp.Compile(pattern); err == nil && !re.MatchString(x) {
			return fmt.Sprintf("%s does not match %s", at, pattern)
		}
	}
	return outsideRange(s, "minLength", "maxLength", float64(utf8.RuneCountInString(x)), at+" has %g characters")
}

func checkNumber(s map[string]any, x json.Number, at string) string {
	n, err := x.Float64()
	if err != nil {
		return ""
	}
	if low, ok := number64(s["exclusiveMinimum"]); ok && n <= low {
		return fmt.Sprintf("%s is %g, expected more than %g", at, n, low)
	}
	if high, ok := number64(s["exclusiveMaximum"]); ok && n >= high {
		return fmt.Sprintf("%s is %g, expected less than %g", at, n, high)
	}
	return outsideRange(s, "minimum", "maximum", n, at+" is %g")
}

func outsideRange(s map[string]any, min, max string, n float64, found string) string {
	if low, ok := number64(s[min]); ok && n < low {
		return fmt.Sprintf(found+", expected at least %g", n, low)
	}
	if high, ok := number64(s[max]); ok && n > high {
		return fmt.Sprintf(found+", expected at most %g", n, high)
	}
	return ""
}

// resolve follows a reference within the schema. It returns nil, which allows everything, where the
// reference has no target.
func (v *validation) resolve(ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok || path != "" && path[0] != '/' { // another document, or an anchor
		return nil
	}
	at := v.root
	for _, key := range strings.Split(path, "/")[1:] {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		object, _ := at.(map[string]any)
		at = object[key]
	}
	return at
}

var jsonTypes = []any{"object", "array", "string", "number", "integer", "boolean", "null"}

func isType(t string, value any) bool {
	got := typeOf(value)
	return got == t || t == "number" && got == "integer"
}

func typeOf(value any) string {
	switch x := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case json.Number:
		if n, err := x.Float64(); err == nil && n == math.Trunc(n) && !math.IsInf(n, 0) {
			return "integer"
		}
		return "number"
	}
	return "object"
}

func sameJSON(a, b any) bool {
	x, ok := number64(a)
	y, too := number64(b)
	if ok && too {
		return x == y
	}
	switch x := a.(type) {
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, sameJSON)
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, sameJSON)
	}
	return a == b
}

func number64(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

func arrayOf(v any) []any {
	list, _ := v.([]any)
	return list
}

// listOf returns a list, or a single string as a list of one.
func listOf(v any) []any {
	if s, ok := v.(string); ok {
		return []any{s}
	}
	return arrayOf(v)
}

func joined(types []any) string {
	words := make([]string, len(types))
	for i, t := range types {
		words[i] = fmt.Sprint(t)
	}
	return strings.Join(words, " or ")
}
