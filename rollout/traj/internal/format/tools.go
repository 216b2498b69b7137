package format

import (
	"encoding/json"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// Tools keeps tool definitions verbatim; anything but a list is none.
func Tools(v Value) []rollout.Tool {
	var out []rollout.Tool
	for _, t := range v.Items() {
		out = append(out, definition(t))
	}
	return out
}

// definition is one tool definition. Tables whose columns cannot hold one write
// it as JSON text.
func definition(v Value) rollout.Tool {
	if s, ok := v.Text(); ok && strings.HasPrefix(s, "{") && json.Valid([]byte(s)) {
		return rollout.Tool(s)
	}
	return v.Clone()
}

// FunctionTools brings tool definitions of the Responses and Messages APIs into
// the shape chat templates expect; others are kept verbatim.
func FunctionTools(v Value) []rollout.Tool {
	var out []rollout.Tool
	for _, t := range v.Items() {
		out = append(out, FunctionTool(t))
	}
	return out
}

// Function is the definition of a tool by the object of its function.
func Function(f *Object) rollout.Tool {
	var o Object
	o.Text("type", "function")
	o.Raw("function", f.End())
	return o.End()
}

// FunctionTool is one of them.
func FunctionTool(t Value) rollout.Tool {
	if t.Get("function").Kind() == jsonscan.Object || t.Get("name").Kind() != jsonscan.String {
		return definition(t)
	}
	var f Object
	for key, x := range t.Members() {
		switch key {
		case "type", "cache_control":
			continue
		case "input_schema":
			key = "parameters"
		}
		if x.IsNull() {
			continue
		}
		f.Raw(key, x.Clone())
	}
	return Function(&f)
}
