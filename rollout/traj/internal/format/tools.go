package format

import (
	"encoding/json"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// Tools returns the tool definitions of a list verbatim, nil for anything but a list.
func Tools(v Value) []rollout.Tool {
	var out []rollout.Tool
	for _, t := range v.Items() {
		out = append(out, definition(t))
	}
	return out
}

// definition returns one tool definition verbatim. Tables whose columns cannot hold an
// object write it as JSON text.
func definition(v Value) rollout.Tool {
	if s, ok := v.Text(); ok && strings.HasPrefix(s, "{") && json.Valid([]byte(s)) {
		return rollout.Tool(s)
	}
	return v.Clone()
}

// FunctionTools converts tool definitions of the Responses and Messages APIs to the form
// that chat templates expect; others are kept verbatim.
func FunctionTools(v Value) []rollout.Tool {
	var out []rollout.Tool
	for _, t := range v.Items() {
		out = append(out, FunctionTool(t))
	}
	return out
}

// Function returns the tool definition with f as its function object.
func Function(f *Object) rollout.Tool {
	var o Object
	o.Text("type", "function")
	o.Raw("function", f.End())
	return o.End()
}

// FunctionTool is FunctionTools for one definition.
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
