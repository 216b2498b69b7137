package detect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

var offered = []rollout.Tool{
	rollout.Tool(`{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}, "timeout": {"type": "integer", "minimum": 1}}, "required": ["command"], "additionalProperties": false}}}`),
	rollout.Tool(`{"name": "edit", "input_schema": {"type": "object", "properties": {"mode": {"enum": ["view", "create"]}, "range": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}}}}`),
	rollout.Tool(`{"type": "function", "function": {"name": "finish"}}`),
}

func calling(name, arguments string) rollout.Message {
	return rollout.Message{Role: rollout.RoleAssistant, ToolCalls: []rollout.ToolCall{{Name: name, Arguments: arguments}}}
}

func saying(text string) rollout.Message {
	return rollout.Message{Role: rollout.RoleAssistant, Content: text}
}

// faultsOf returns the names of the faults that d finds in m.
func faultsOf(d Detector, m rollout.Message, tools []rollout.Tool) string {
	var names []string
	for _, f := range d.Find(&m, tools) {
		names = append(names, string(f.Fault))
	}
	return strings.Join(names, ",")
}

func TestDetectCalls(t *testing.T) {
	for _, c := range []struct{ why, tool, arguments, want string }{
		{"valid", "bash", `{"command": "ls"}`, ""},
		{"a number without a fraction is an integer", "bash", `{"command": "ls", "timeout": 2.0}`, ""},
		{"spaces around", "bash", ` {"command": "ls"} `, ""},
		{"no arguments are an empty object", "finish", "", ""},
		{"nor is null", "finish", "null", ""},
		{"no schema", "finish", `{"any": [1]}`, ""},
		{"enum", "edit", `{"mode": "view", "range": [1, 2]}`, ""},
		{"unknown tool", "zsh", `{"command": "ls"}`, "unknown_tool"},
		{"no name", "", `{"command": "ls"}`, "unknown_tool"},
		{"cut off", "bash", `{"command": "l`, "arguments_not_json"},
		{"more than one value", "bash", `{"command": "ls"} {}`, "arguments_not_json"},
		{"a list", "bash", `["ls"]`, "arguments_not_json"},
		{"a string that holds an object", "bash", `"{\"command\": \"ls\"}"`, "arguments_not_json"},
		{"missing", "bash", "", "arguments_break_schema"},
		{"wrong type", "bash", `{"command": ["ls"]}`, "arguments_break_schema"},
		{"not declared", "bash", `{"command": "ls", "cwd": "/"}`, "arguments_break_schema"},
		{"out of range", "bash", `{"command": "ls", "timeout": 0}`, "arguments_break_schema"},
		{"no integer", "bash", `{"command": "ls", "timeout": 1.5}`, "arguments_break_schema"},
		{"not in the enum", "edit", `{"mode": "delete"}`, "arguments_break_schema"},
		{"too few items", "edit", `{"range": [1]}`, "arguments_break_schema"},
		{"item of another type", "edit", `{"range": [1, "2"]}`, "arguments_break_schema"},
	} {
		require.Equal(t, c.want, faultsOf(Detector{}, calling(c.tool, c.arguments), offered), c.why)
		require.Empty(t, faultsOf(Detector{Nemotron: true}, calling(c.tool, c.arguments), offered), "NeMo RL looks at text alone")
	}
	require.Empty(t, faultsOf(Detector{}, calling("zsh", `{"command": 1}`), nil), "the tools were not recorded")
	require.Equal(t, "arguments_not_json", faultsOf(Detector{}, calling("zsh", `ls`), nil))
	builtIn := append([]rollout.Tool{rollout.Tool(`{"type": "web_search"}`)}, offered...)
	require.Empty(t, faultsOf(Detector{}, calling("search", `{}`), builtIn), "a tool of the engine's own has a name that is not recorded")
	two := calling("bash", `{"command": "ls"}`)
	two.ToolCalls = append(two.ToolCalls, rollout.ToolCall{Name: "zsh"})
	got := Detector{}.Find(&two, offered)
	require.Equal(t, []Finding{{faultTool, 1, `no tool is named "zsh"`}}, got)
	require.Equal(t, reward.MessageFlags{InvalidToolCall: true}, Flags(got))
}

func TestDetectText(t *testing.T) {
	reasoned := func(reasoning, text string) rollout.Message {
		return rollout.Message{Role: rollout.RoleAssistant, Reasoning: reasoning, Content: text}
	}
	beside := calling("bash", `{"command": "ls"}`)
	beside.Content = "now <tool_call>"
	const good = `<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>`
	for _, c := range []struct {
		why           string
		m             rollout.Message
		all, nemotron string
	}{
		{"plain", saying("done"), "", ""},
		{"nothing at all", saying(""), "", ""},
		{"a whole call that nobody parsed", saying("ls first\n" + good), "", "call_in_text"},
		{"two of them", saying(good + good), "", "call_in_text"},
		{"Qwen3-Coder's spelling", saying("<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>"), "", "call_in_text"},
		{"the same cut off", saying("<tool_call>\n<function=bash>\n<parameter=command>\nls\n</tool_call>"), "call_in_text", "call_in_text"},
		{"no JSON", saying(`<tool_call>{"name": "bash", "arguments": {"command": "ls}}</tool_call>`), "call_in_text", "call_in_text"},
		{"unknown tool", saying(`<tool_call>{"name": "zsh", "arguments": {}}</tool_call>`), "call_in_text", "call_in_text"},
		{"against the schema", saying(`<function_call>{"name": "bash", "parameters": {"command": 1}}</function_call>`), "call_in_text", "call_in_text"},
		{"no end", saying(`<tool_call>{"name": "bash", "arguments": {"command": "ls"}}`), "call_in_text", "call_in_text"},
		{"no beginning", saying(`{"name": "bash"}</tool_call>`), "call_in_text", "call_in_text"},
		{"a marker beside a parsed call", beside, "call_in_text", ""},
		{"in reasoning that nothing follows", reasoned("let me <tool_call>", ""), "call_in_text", "call_in_text"},
		{"in reasoning before a reply", reasoned("let me <tool_call>", "done"), "", ""},

		{"balanced reasoning that nobody parsed", saying("<think>hm</think>done"), "", "malformed_thinking"},
		{"reasoning that the prompt began", saying("hm</think>done"), "", "malformed_thinking"},
		{"no end", saying("<think>hm"), "malformed_thinking", "malformed_thinking"},
		{"begun twice", saying("<think><think>hm</think>done"), "malformed_thinking", "malformed_thinking"},
		{"ended twice", saying("<think>hm</think></think>done"), "malformed_thinking", "malformed_thinking"},
		{"ended twice, begun by the prompt", saying("hm</think></think>done"), "malformed_thinking", "malformed_thinking"},
		{"a marker after parsed reasoning", reasoned("hm", "</think>done"), "malformed_thinking", "malformed_thinking"},
		{"one pair in reasoning alone", reasoned("<think>hm</think>", ""), "", ""},
		{"two in reasoning alone", reasoned("<think><think>hm", ""), "malformed_thinking", "malformed_thinking"},
		{"two in reasoning before a reply", reasoned("<think><think>hm", "done"), "malformed_thinking", ""},
		{"both", saying("<think><tool_call>"), "call_in_text,malformed_thinking", "call_in_text,malformed_thinking"},
	} {
		require.Equal(t, c.all, faultsOf(Detector{}, c.m, offered), c.why)
		require.Equal(t, c.nemotron, faultsOf(Detector{Nemotron: true}, c.m, offered), c.why)
	}
	own := Detector{CallMarks: []string{"[CALL]", "[/CALL]"}, ThinkingMarks: [2]string{"[THINK]", "[/THINK]"}}
	require.NoError(t, own.Validate())
	require.Equal(t, "call_in_text,malformed_thinking", faultsOf(own, saying("[CALL][THINK]"), offered))
	require.Empty(t, faultsOf(own, saying("<think><tool_call>"), offered))
	err := Detector{CallMarks: []string{"a", "", "c"}, ThinkingMarks: [2]string{"a"}}.Validate()
	for _, part := range []string{"found 3 marks", "empty mark", "both or none"} {
		require.ErrorContains(t, err, part)
	}
}

// Faults flagged in the dump are found by every Detector.
func TestDetectRecorded(t *testing.T) {
	m := saying("fine")
	m.Extra = map[string]json.RawMessage{"is_invalid_tool_call": json.RawMessage("true"), "has_malformed_thinking": json.RawMessage("false")}
	for _, d := range []Detector{{}, {Nemotron: true}} {
		require.Equal(t, "recorded_invalid_call", faultsOf(d, m, nil))
	}
	m.Extra["has_malformed_thinking"] = json.RawMessage(" true")
	require.Equal(t, reward.MessageFlags{InvalidToolCall: true, MalformedThinking: true}, Flags(Detector{}.Find(&m, nil)))
}

// Messages that no turn sampled are not checked.
func TestDetectSampledMessages(t *testing.T) {
	bad := saying("<think>")
	r := &rollout.Rollout{Messages: []rollout.Message{saying("x"), bad, bad}}
	r.Messages[2].Sampled = rollout.SampledByPolicy
	got := Detector{}.FindAll(r)
	require.Len(t, got, 1)
	require.Equal(t, faultThinking, got[2][0].Fault)
	require.Empty(t, Detector{}.FindAll(nil))
	require.Empty(t, Detector{}.Find(nil, nil))
}

// Schemas in dumps can be malformed: unreadable parts check nothing, and the work on one call is
// bounded.
func TestOddSchemas(t *testing.T) {
	check := func(schema, arguments string) string {
		return faultsOf(Detector{}, calling("f", arguments), []rollout.Tool{rollout.Tool(`{"name": "f", "parameters": ` + schema + `}`)})
	}
	for _, schema := range []string{`{"type": "dict"}`, `{"required": true}`, `{"properties": []}`, `{"properties": {"a": {"type": 3}}}`, `null`, `true`, `"x"`, `{}`,
		`{"$ref": "#"}`, `{"anyOf": [{"$ref": "#"}]}`, `{"anyOf": []}`, `{"$ref": "http://other/x"}`, `{"enum": [{"a": "c"}, {"a": "b"}]}`, `{"type": "object", "properties": {"a": {"$ref": "#place"}}, "$defs": {"p": {"$anchor": "place"}}}`, `{"properties": {"a": {"pattern": "(?=x)"}}}`, `{"properties": {"a": {"enum": 3}}}`, `{"properties": {"a": {"minLength": "3"}}}`} {
		require.Empty(t, check(schema, `{"a": "b"}`), schema)
	}
	require.Empty(t, check(`{"properties": {"a": {"const": {"b": [1]}}}}`, `{"a": {"b": [1.0]}}`), "numbers are alike at any depth")
	require.NotEmpty(t, check(`{"properties": {"a": {"const": {"b": [1]}}}}`, `{"a": {"b": [1, 1]}}`))
	var doubling strings.Builder
	doubling.WriteString(`{"$defs": {"a0": {"type": "string"}`)
	for i := 1; i < 60; i++ {
		fmt.Fprintf(&doubling, `, "a%d": {"allOf": [{"$ref": "#/$defs/a%d"}, {"$ref": "#/$defs/a%d"}]}`, i, i-1, i-1)
	}
	doubling.WriteString(`}, "properties": {"a": {"$ref": "#/$defs/a59"}}}`)
	require.Empty(t, check(doubling.String(), `{"a": "b"}`))
	require.Empty(t, check(`{"type": "object"}`, strings.Repeat(`{"a":`, 5000)+"1"+strings.Repeat("}", 5000)))

	for arguments, bad := range map[string]bool{`{"a": "x"}`: false, `{"a": 2}`: false, `{"a": null}`: false, `{"a": true}`: true, `{"a": 9}`: true, `{"b": 1}`: false, `{"b": "1"}`: true, `{"c_1": ""}`: true, `{"d": {"e": {}}}`: false, `{"d": {"e": {"e": 1}}}`: true, `{"f": 1.0}`: false, `{"f": 2}`: true} {
		got := check(`{"$defs": {"node": {"type": "object", "properties": {"e": {"$ref": "#/$defs/node"}}}},
			"properties": {"a": {"anyOf": [{"type": ["string", "null"]}, {"type": "number", "exclusiveMaximum": 9}]}, "b": {"not": {"type": "string"}}, "d": {"$ref": "#/$defs/node"}, "f": {"const": 1}},
			"patternProperties": {"^c_": {"minLength": 1}}}`, arguments)
		require.Equal(t, bad, got == "arguments_break_schema", arguments)
	}
	require.Empty(t, check(`{"properties": {"a": {"type": "string", "nullable": true}}}`, `{"a": null}`))
	require.NotEmpty(t, check(`{"properties": {"a": {"oneOf": [{"type": "string"}, {"minLength": 1}]}}}`, `{"a": "b"}`))
	require.NotEmpty(t, check(`{"maxProperties": 1}`, `{"a": 1, "b": 2}`))
}
