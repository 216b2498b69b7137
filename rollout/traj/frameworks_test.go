package traj_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// saidAll writes each message as a line: role, text, reasoning, calls and the id of the
// call that a result answers.
func saidAll(r *rollout.Rollout) string {
	var b strings.Builder
	for _, m := range r.Messages {
		fmt.Fprintf(&b, "%s:%s", m.Role, m.Content)
		if m.Reasoning != "" {
			fmt.Fprintf(&b, " <%s>", m.Reasoning)
		}
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, " %s=%s(%s)", c.ID, c.Name, c.Arguments)
		}
		if m.ToolCallID != "" {
			fmt.Fprintf(&b, " @%s", m.ToolCallID)
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// frameworks are conversations in the forms that agent frameworks write.
var frameworks = []struct {
	name, text, format string
	said               string
	contexts, codes    string
}{
	{"x.json", `[{"parts":[{"content":"sys","timestamp":"2025-01-01T00:00:00Z","dynamic_ref":null,"part_kind":"system-prompt"},{"content":"q","timestamp":"2025-01-01T00:00:00Z","part_kind":"user-prompt"}],"instructions":null,"kind":"request"},` +
		`{"parts":[{"content":"hm","signature":null,"part_kind":"thinking"},{"content":"look","part_kind":"text"},{"tool_name":"ls","args":"{\"p\": 1}","tool_call_id":"c","part_kind":"tool-call"}],"usage":{"input_tokens":1},"model_name":"m","kind":"response","finish_reason":"tool_call"},` +
		`{"parts":[{"tool_name":"ls","content":{"a":1.0},"tool_call_id":"c","metadata":null,"part_kind":"tool-return"}],"kind":"request"},{"parts":[{"content":"done","part_kind":"text"}],"kind":"response"},` +
		`{"parts":[{"content":"wrong","tool_name":null,"tool_call_id":"z","part_kind":"retry-prompt"}],"kind":"request"},{"parts":[{"content":"done 2","part_kind":"text"}],"kind":"response"}]`,
		"pydantic-ai", "system:sys\nuser:q\nassistant:look <hm> c=ls({\"p\": 1})\ntool:{\"a\":1.0} @c\nassistant:done\nuser:wrong\nassistant:done 2", "0 1; 0 1 2 3; ?", "context_lost"},
	// Since version 2 a retry is a result with an outcome, or a part of its own.
	{"x.json", `[{"parts":[{"content":"q","part_kind":"user-prompt"}],"kind":"request"},{"parts":[{"tool_name":"f","args":"{}","tool_call_id":"c","part_kind":"tool-call"}],"kind":"response"},` +
		`{"parts":[{"tool_name":"f","content":"no","tool_call_id":"c","outcome":"retried","retry":{"cause":"model_retry","attempt":1},"part_kind":"tool-return"}],"kind":"request"},{"parts":[{"content":"a","part_kind":"text"}],"kind":"response"},` +
		`{"parts":[{"content":"again","retry":{"cause":"model_retry"},"part_kind":"retry-feedback"}],"kind":"request"},{"parts":[{"content":"b","part_kind":"text"}],"kind":"response"}]`,
		"pydantic-ai", "user:q\nassistant: c=f({})\ntool:no @c\nassistant:a\nuser:again\nassistant:b", "0; ?; ?", "context_lost"},
	{"x.jsonl", `{"id":"r1","reward":1,"messages":[{"parts":[{"content":["a","b"],"part_kind":"user-prompt"}],"instructions":"be brief","kind":"request"},{"parts":[{"content":"c","part_kind":"text"}],"kind":"response"}]}`,
		"pydantic-ai", "system:be brief\nuser:ab\nassistant:c", "0 1", ""},
	{"x.json", `[{"type":"system","data":{"content":"s","additional_kwargs":{},"type":"system"}},{"type":"human","data":{"content":"q","type":"human"}},{"type":"ai","data":{"content":"","tool_calls":[{"name":"f","args":{"a":1},"id":"c","type":"tool_call"}],"additional_kwargs":{"reasoning_content":"hm"},"response_metadata":{"finish_reason":"tool_calls"}}},{"type":"tool","data":{"content":"r","tool_call_id":"c","name":"f"}},{"type":"ai","data":{"content":[{"type":"text","text":"d"}]}}]`,
		"langchain", "system:s\nuser:q\nassistant: <hm> c=f({\"a\":1})\ntool:r @c\nassistant:d", "0 1; 0 1 2 3", ""},
	{"x.json", `{"messages":[{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":["q","!"],"type":"human"}},{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{"content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"a"},{"type":"tool_use","id":"c","name":"f","input":{}}],"tool_calls":[{"name":"f","args":{},"id":"c"}]}}]}`,
		"langchain", "user:q!\nassistant:a <t> c=f({})", "0", ""},
	{"x.json", `{"values":{"messages":[{"type":"human","content":"q","additional_kwargs":{}},{"type":"ai","content":"a","additional_kwargs":{}}]},"next":[]}`,
		"langchain", "user:q\nassistant:a", "0", "system_not_recorded tools_not_recorded"},
	{"x.json", `{"id":"g","systemInstruction":{"parts":[{"text":"s"}]},"tools":[{"functionDeclarations":[{"name":"f","description":"d","parameters":{"type":"OBJECT"}}]}],"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"why","thought":true},{"text":"a"},{"functionCall":{"name":"f","args":{"x":1}},"thoughtSignature":"z"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"o"}}}]},{"role":"model","parts":[{"text":"b"}]}]}`,
		"gemini-contents", "system:s\nuser:q\nassistant:a <why> =f({\"x\":1})\ntool:o\nassistant:b", "0 1; 0 1 2 3", "result_without_call"},
	{"x.json", `{"sessionId":"s1","projectHash":"h","startTime":"t","lastUpdated":"t","messages":[{"id":"1","timestamp":"t","type":"user","content":[{"text":"q"}]},{"id":"2","timestamp":"t","type":"info","content":"updated"},{"id":"3","timestamp":"t","type":"gemini","content":"look","thoughts":[{"subject":"s","description":"d"}],"toolCalls":[{"id":"c","name":"ls","args":{"p":"."},"result":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"a.go"}}}],"status":"success"}],"model":"m"},{"id":"4","timestamp":"t","type":"gemini","content":"done"}]}`,
		"gemini-cli", "user:q\nassistant:look c=ls({\"p\":\".\"})\ntool:a.go @c\nassistant:done", "0; 0 1 2", "redacted_thinking system_not_recorded tools_not_recorded"},
	{"x.jsonl", `{"sessionId":"s1","projectHash":"h","startTime":"t"}` + "\n" + `{"id":"1","timestamp":"t","type":"user","content":"q"}` + "\n" + `{"id":"2","timestamp":"t","type":"gemini","content":""}` + "\n" + `{"id":"2","timestamp":"t","type":"gemini","content":"a"}` + "\n" + `{"$set":{"summary":"x"}}` + "\n" + `{"id":"3","type":"user","content":"no"}` + "\n" + `{"$rewindTo":"3"}` + "\n" + `{"id":"4","type":"user","content":"go"}` + "\n" + `{"id":"5","type":"gemini","content":[{"text":"b"}]}`,
		"gemini-cli", "user:q\nassistant:a\nuser:go\nassistant:b", "0; 0 1 2", "rewound system_not_recorded tools_not_recorded"},
	// Since 2026 what was sent stands beside the results in the reply's record; calls of the user's commands have no model.
	{"x.jsonl", lines(`{"sessionId":"s1","projectHash":"h","startTime":"t","kind":"main"}`, `{"id":"1","type":"user","content":[{"text":"q"}]}`,
		`{"id":"2","type":"gemini","content":[{"functionCall":{"id":"m","name":"save","args":{}}}]}`, `{"id":"3","type":"user","content":[{"functionResponse":{"id":"m","name":"save","response":{"output":"ok"}}}]}`,
		`{"id":"4","type":"gemini","content":"a","model":"m","toolCalls":[{"id":"c","name":"ls","args":{},"result":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"x"}}}]},{"id":"d","name":"rm","args":{},"result":[{"functionResponse":{"id":"d","name":"rm","response":{"error":"no"}}}]}]}`,
		`{"id":"5","type":"user","content":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"x"}}},{"functionResponse":{"id":"d","name":"rm","response":{"error":"no"}}}]}`,
		`{"id":"6","type":"gemini","content":[{"text":"b"},{"functionCall":{"id":"e","name":"ls","args":{}}}],"model":"m","toolCalls":[{"id":"e","name":"ls","args":{},"result":[{"functionResponse":{"id":"e","name":"ls","response":{"output":"y"}}},{"text":"more"}]}]}`,
		`{"id":"7","type":"gemini","content":"","model":"m","toolCalls":[{"id":"f","name":"ls","args":{},"result":null}]}`, `{"id":"8","type":"user","content":[{"functionResponse":{"id":"f","name":"ls","response":{"output":"z"}}}]}`,
		`{"id":"9","type":"user","content":[{"text":"stop"}]}`, `{"id":"10","type":"gemini","content":"end","model":"m"}`),
		"gemini-cli", "user:q\nassistant: m=save({})\ntool:ok @m\nassistant:a c=ls({}) d=rm({})\ntool:x @c\ntool:{\"error\":\"no\"} @d\nassistant:b e=ls({})\ntool:y @e\nuser:more\nassistant: f=ls({})\ntool:z @f\nuser:stop\nassistant:end",
		"0 1 2; 0 1 2 3 4 5; 0 1 2 3 4 5 6 7 8; ?", "context_lost system_not_recorded tools_not_recorded"},
	{"x.json", `{"system":[{"text":"s"},{"cachePoint":{"type":"default"}}],"inferenceConfig":{"temperature":0.5},"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}}]},"messages":[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"x"}}},{"text":"a"},{"toolUse":{"toolUseId":"c","name":"f","input":{"x":1}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"c","content":[{"json":{"r":1}},{"text":"ok"}],"status":"success"}}]},{"role":"assistant","content":[{"text":"b"}]}]}`,
		"bedrock-converse", "system:s\nuser:q\nassistant:a <hm> c=f({\"x\":1})\ntool:{\"r\":1}\nok @c\nassistant:b", "0 1; 0 1 2 3", ""},
	{"x.json", `[{"id":"1","role":"user","parts":[{"type":"text","text":"q"}]},{"id":"2","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"hm"},{"type":"tool-ls","toolCallId":"c","state":"output-available","input":{"p":1},"output":["x"]},{"type":"step-start"},{"type":"text","text":"done","state":"done"}]}]`,
		"vercel-ai", "user:q\nassistant: <hm> c=ls({\"p\":1})\ntool:[\"x\"] @c\nassistant:done", "0; 0 1 2", ""},
	{"x.jsonl", `{"system":"s","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"wait"},{"role":"user","content":[{"type":"text","text":"go"}]},{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool-call","toolCallId":"c","toolName":"f","input":{"x":1}}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f","output":{"type":"text","value":"r"}}]},{"role":"assistant","content":"b"}]}`,
		"vercel-ai", "system:s\nuser:q\nassistant:wait\nuser:go\nassistant:a c=f({\"x\":1})\ntool:r @c\nassistant:b", "0 1; 0 1 2 3; 0 1 2 3 4 5", ""},
	{"x.jsonl", `{"id":"20250101_1","working_dir":"/w","description":"d","message_count":3,"total_tokens":1}` + "\n" + `{"role":"user","created":1,"content":[{"type":"text","text":"q"}]}` + "\n" + `{"role":"assistant","created":2,"content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"a"},{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"shell","arguments":{"command":"ls"}}}}]}` + "\n" + `{"role":"user","created":3,"content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":[{"type":"text","text":"x","annotations":{"audience":["user"]}},{"type":"text","text":"y","annotations":{"audience":["assistant"]}}]}}]}` + "\n" + `{"role":"assistant","created":4,"content":[{"type":"text","text":"b"}]}`,
		"goose", "user:q\nassistant:a <hm> c=shell({\"command\":\"ls\"})\ntool:y @c\nassistant:b", "0; 0 1 2", "system_not_recorded tools_not_recorded"},
	{"x.json", `{"id":"e","working_dir":"/w","conversation":[{"id":"m","role":"user","created":1,"content":[{"type":"text","text":"q"}],"metadata":{"userVisible":true,"agentVisible":true}},{"role":"user","created":1,"content":[{"type":"text","text":"<turn-context>"}],"metadata":{"userVisible":false,"agentVisible":true,"turnContext":true}},{"role":"assistant","created":2,"content":[{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"f","arguments":{}}}}]},{"role":"user","created":3,"content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"r"}],"isError":false}}}]},{"role":"assistant","created":4,"content":[{"type":"text","text":"b"}]}]}`,
		"goose", "user:q\nuser:<turn-context>\nassistant: c=f({})\ntool:r @c\nassistant:b", "0 1; 0 1 2 3", "system_not_recorded tools_not_recorded"},
	// Since goose streams, a reply is several messages.
	{"x.json", `{"id":"e","working_dir":"/w","conversation":[{"role":"user","created":1,"content":[{"type":"text","text":"q"},{"type":"text","text":"w"}]},{"role":"user","created":1,"content":[{"type":"text","text":"<turn-context>"}],"metadata":{"userVisible":false,"agentVisible":true,"turnContext":true}},{"id":"c-1","role":"assistant","created":2,"content":[{"type":"text","text":"look"}]},{"id":"msg_1","role":"assistant","created":2,"content":[{"type":"thinking","thinking":"hm","signature":""}]},` +
		`{"id":"msg_2","role":"assistant","created":2,"content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"f","arguments":{}}}}]},{"id":"msg_3","role":"user","created":3,"content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"r"},{"type":"text","text":"s"}]}}}]},` +
		`{"id":"msg_4","role":"assistant","created":2,"content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"toolRequest","id":"d","toolCall":{"status":"success","value":{"name":"f","arguments":{}}}}]},{"id":"msg_5","role":"user","created":3,"content":[{"type":"toolResponse","id":"d","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"t"}]}}}]},` +
		`{"id":"c-2","role":"assistant","created":4,"content":[{"type":"text","text":"b"}]},{"role":"user","created":5,"content":[{"type":"text","text":"go"}]},{"id":"msg_6","role":"assistant","created":6,"content":[{"type":"toolRequest","id":"e","toolCall":{"status":"success","value":{"name":"f","arguments":{}}}}]},{"id":"msg_7","role":"user","created":6,"content":[{"type":"toolResponse","id":"e","toolResult":{"status":"success","value":{"content":[]}}}]},` +
		`{"id":"msg_8","role":"assistant","created":6,"content":[{"type":"toolRequest","id":"g","toolCall":{"status":"success","value":{"name":"f","arguments":{}}}}]}]}`,
		"goose", "user:q\nw\nuser:<turn-context>\nassistant:look <hm> c=f({}) d=f({})\ntool:r s @c\ntool:t @d\nassistant:b\nuser:go\nassistant: e=f({})\ntool: @e\nassistant: g=f({})", "0 1; 0 1 2 3 4; 0 1 2 3 4 5 6; ?", "context_lost incomplete incomplete system_not_recorded tools_not_recorded"},
	{"x.json", `{"info":{"id":"ses_1","title":"t"},"messages":[{"info":{"id":"msg_1","role":"user"},"parts":[{"type":"text","text":"q"},{"type":"text","text":"file x","synthetic":true},{"type":"file","mime":"text/plain","url":"file:///x"}]},{"info":{"id":"msg_2","role":"assistant"},"parts":[{"type":"step-start","snapshot":"h"},{"type":"reasoning","text":"hm"},{"type":"text","text":"a"},{"type":"tool","callID":"c","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":"o","title":"t","metadata":{}}},{"type":"step-finish","reason":"tool-calls","cost":0},{"type":"patch","hash":"h","files":[]},{"type":"step-start"},{"type":"text","text":"b"},{"type":"step-finish","reason":"stop"}]}]}`,
		"opencode", "user:qfile x\nassistant:a <hm> c=bash({\"command\":\"ls\"})\ntool:o @c\nassistant:b", "0; 0 1 2", "system_not_recorded tools_not_recorded"},
	{"task/api_conversation_history.json", `[{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"c","name":"f","input":{"x":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]},{"role":"assistant","content":"b"}]`,
		"cline", "user:q\nassistant:a c=f({\"x\":1})\ntool:r @c\nassistant:b", "0; 0 1 2", "system_not_recorded tools_not_recorded"},
	// Cline 3 stores the tags that it takes out, and values of results as they are.
	{"s.messages.json", `{
  "version": 1, "agent": "lead", "sessionId": "s1", "origin": {"source": "cli", "version": "3.0.65"},
  "messages": [
    {"id": "1", "role": "user", "content": [{"type": "text", "text": "<user_input mode=\"act\"> q </user_input>"}]},
    {"id": "2", "role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, {"type": "tool_use", "id": "c", "name": "read_files", "input": {"p": 1}}, {"type": "tool_use", "id": "d", "name": "f", "input": {}}], "modelInfo": {"id": "m"}},
    {"id": "3", "role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "name": "read_files", "content": "x \"y\"\n"}]},
    {"id": "4", "role": "user", "content": [{"type": "tool_result", "tool_use_id": "d", "name": "f", "content": "r", "is_error": true}]},
    {"id": "5", "role": "assistant", "content": [{"type": "text", "text": "b"}]},
    {"id": "6", "role": "user", "content": [{"type": "text", "text": "<mode_notice>n</mode_notice>\n<user_input mode=\"plan\">go</user_input>"}, {"type": "file", "path": "/f", "content": "z"}]},
    {"id": "7", "role": "assistant", "content": [{"type": "text", "text": "no"}], "metadata": {"displayOnly": true, "displayRole": "error"}},
    {"id": "8", "role": "assistant", "content": [{"type": "text", "text": "d"}]}
  ],
  "system_prompt": "sys"
}`, "cline", "system:sys\nuser:q\nassistant:a <hm> c=read_files({\"p\":1}) d=f({})\ntool:x \"y\"\n @c\ntool:r @d\nassistant:b\nuser:<mode_notice>n</mode_notice>\ngo<file_content path=\"/f\">\nz\n</file_content>\nassistant:d", "0 1; 0 1 2 3 4; 0 1 2 3 4 5 6", "tools_not_recorded"},
	{"x.json", `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"t","spanId":"1","name":"execute_tool f","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}}]},{"traceId":"t","spanId":"2","name":"chat m","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.request.temperature","value":{"doubleValue":0.5}},{"key":"gen_ai.system_instructions","value":{"stringValue":"[{\"type\":\"text\",\"content\":\"s\"}]"}},{"key":"gen_ai.input.messages","value":{"stringValue":"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"q\"}]},{\"role\":\"assistant\",\"parts\":[{\"type\":\"reasoning\",\"content\":\"hm\"},{\"type\":\"tool_call\",\"id\":\"c\",\"name\":\"f\",\"arguments\":{\"x\":1}}]},{\"role\":\"tool\",\"parts\":[{\"type\":\"tool_call_response\",\"id\":\"c\",\"response\":{\"r\":1}}]}]"}},{"key":"gen_ai.output.messages","value":{"stringValue":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"done\"}],\"finish_reason\":\"stop\"}]"}},{"key":"gen_ai.tool.definitions","value":{"stringValue":"[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{}}]"}}]}]}]}]}`,
		"otel-spans", "system:s\nuser:q\nassistant: <hm> c=f({\"x\":1})\ntool:{\"r\":1} @c\nassistant:done", "0 1 2 3", ""},
	{"x.jsonl", `{"name":"ChatCompletion","context":{"trace_id":"t","span_id":"3"},"attributes":{"openinference.span.kind":"LLM","llm.input_messages.0.message.role":"user","llm.input_messages.0.message.content":"q","llm.input_messages.1.message.role":"assistant","llm.input_messages.1.message.tool_calls.0.tool_call.id":"c","llm.input_messages.1.message.tool_calls.0.tool_call.function.name":"f","llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments":"{}","llm.input_messages.2.message.role":"tool","llm.input_messages.2.message.content":"r","llm.input_messages.2.message.tool_call_id":"c","llm.output_messages.0.message.role":"assistant","llm.output_messages.0.message.content":"a","llm.tools.0.tool.json_schema":"{\"type\":\"function\",\"function\":{\"name\":\"f\"}}","llm.invocation_parameters":"{\"temperature\":0.2}"}}`,
		"otel-spans", "user:q\nassistant: c=f({})\ntool:r @c\nassistant:a", "0 1 2", ""},
	{"x.jsonl", `{"id":"run1","run_type":"llm","name":"ChatOpenAI","inputs":{"messages":[[{"lc":1,"type":"constructor","id":["langchain","schema","messages","SystemMessage"],"kwargs":{"content":"s"}},{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":"q"}}]]},"outputs":{"generations":[[{"text":"a","message":{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{"content":"a","tool_calls":[{"name":"f","args":{},"id":"c"}]}}}]]},"extra":{"invocation_params":{"temperature":1,"tools":[{"type":"function","function":{"name":"f"}}]}}}`,
		"langsmith", "system:s\nuser:q\nassistant:a c=f({})", "0 1", ""},
	{"x.jsonl", `{"id":"run2","run_type":"llm","inputs":{"messages":[{"role":"user","content":"q"}],"model":"m"},"outputs":{"choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}}`,
		"langsmith", "user:q\nassistant:a", "0", ""},
	{"x.jsonl", `{"id":"obs","traceId":"t","type":"GENERATION","model":"m","modelParameters":{"temperature":0.1},"input":{"messages":[{"role":"system","content":"s"},{"role":"user","content":"q"}],"tools":[{"type":"function","function":{"name":"f"}}]},"output":{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}}`,
		"langfuse", "system:s\nuser:q\nassistant:a c=f({})", "0 1", ""},
	{"x.jsonl", `{"id":"mixed","traceId":"t","type":"GENERATION","input":[{"role":"user","content":"q"}],"output":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"}],"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}}`,
		"langfuse", "user:q\nassistant:a <hm> c=f({})", "0", ""},
	{"s.jsonl", lines(`{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}`,
		`{"type":"custom","customType":"model-snapshot","data":{},"id":"0","parentId":null,"timestamp":"t"}`,
		`{"type":"message","id":"1","parentId":"0","timestamp":"t","message":{"role":"user","content":[{"type":"text","text":"q"}],"timestamp":1}}`,
		`{"type":"message","id":"2","parentId":"1","timestamp":"t","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"fetch failed","provider":"p","timestamp":2}}`,
		`{"type":"message","id":"3","parentId":"2","timestamp":"t","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"},{"type":"toolCall","id":"c","name":"read","arguments":{"p":1},"partialJson":"x"}],"stopReason":"toolUse","provider":"p","timestamp":3}}`,
		`{"type":"message","id":"4","parentId":"3","timestamp":"t","message":{"role":"toolResult","toolCallId":"c","toolName":"read","content":[{"type":"text","text":"r"}],"isError":false,"timestamp":4}}`,
		`{"type":"message","id":"5","parentId":"4","timestamp":"t","message":{"role":"assistant","content":[{"type":"text","text":"b"}],"stopReason":"stop","provider":"p","timestamp":5}}`,
		`{"type":"message","id":"6","parentId":"1","timestamp":"t","message":{"role":"user","content":"other","timestamp":6}}`,
		`{"type":"message","id":"7","parentId":"6","timestamp":"t","message":{"role":"assistant","content":[{"type":"text","text":"d"}],"stopReason":"stop","provider":"p","timestamp":7}}`,
		`{"type":"compaction","id":"8","parentId":"7","timestamp":"t","summary":"s","firstKeptEntryId":"6","tokensBefore":1}`,
		`{"type":"message","id":"9","parentId":"8","timestamp":"t","message":{"role":"assistant","content":[{"type":"text","text":"e"}],"stopReason":"stop","provider":"p","timestamp":8}}`),
		"openclaw-session", "user:q\nassistant:a <hm> c=read({\"p\":1})\ntool:r @c\nassistant:b\nuser:other\nassistant:d\nassistant:e", "0; 0 1 2; 0 4; ?", "context_lost system_not_recorded tools_not_recorded"},
	{"s.jsonl", lines(`{"uuid":"1","parentUuid":null,"sessionId":"s","timestamp":"t","type":"system","subtype":"session_source","systemPayload":{"sourceType":"cli"},"cwd":"/w","version":"1"}`,
		`{"uuid":"2","parentUuid":"1","sessionId":"s","timestamp":"t","type":"user","cwd":"/w","version":"1","message":{"role":"user","parts":[{"text":"q"}]}}`,
		`{"uuid":"3","parentUuid":"2","sessionId":"s","timestamp":"t","type":"assistant","model":"m","message":{"role":"model","parts":[{"text":"hm","thought":true},{"text":"a"},{"functionCall":{"id":"c","name":"ls","args":{"p":"."}}},{"functionCall":{"id":"d","name":"ls","args":{}}}]}}`,
		`{"uuid":"4","parentUuid":"3","sessionId":"s","timestamp":"t","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"x"}}}]},"toolCallResult":{"status":"success"}}`,
		`{"uuid":"4b","parentUuid":"4","sessionId":"s","timestamp":"t","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"d","name":"ls","response":{"error":"no"}}}]},"toolCallResult":{"status":"error"}}`,
		`{"uuid":"5","parentUuid":"4b","sessionId":"s","timestamp":"t","type":"assistant","message":{"role":"model","parts":[{"text":"b"}]}}`,
		`{"uuid":"6","parentUuid":"5","sessionId":"s","timestamp":"t","type":"system","subtype":"chat_compression","systemPayload":{"info":{},"compressedHistory":[{"role":"user","parts":[{"text":"sum"}]},{"role":"model","parts":[{"text":"ok"}]}]}}`,
		`{"uuid":"7","parentUuid":"6","sessionId":"s","timestamp":"t","type":"user","message":{"role":"user","parts":[{"text":"go"}]}}`,
		`{"uuid":"8","parentUuid":"7","sessionId":"s","timestamp":"t","type":"assistant","message":{"role":"model","parts":[{"text":"e"}]}}`,
		`{"uuid":"9","parentUuid":"2","sessionId":"s","timestamp":"t","type":"assistant","message":{"role":"model","parts":[{"text":"f"}]}}`),
		"qwen-code", "user:q\nassistant:a <hm> c=ls({\"p\":\".\"}) d=ls({})\ntool:x @c\ntool:no @d\nassistant:b\nuser:sum\nassistant:ok\nuser:go\nassistant:e\nassistant:f", "0; 0 1 2 3; 5 6 7; 0", "startup_not_recorded system_not_recorded tools_not_recorded"},
	{"context.jsonl", lines(`{"role": "_system_prompt", "content": "sys"}`, `{"role": "_checkpoint", "id": 0}`, `{"role":"user","content":"q"}`, `{"role":"user","content":"<system-reminder>\nx\n</system-reminder>"}`, `{"role": "_usage", "token_count": 5}`,
		`{"role":"assistant","content":[{"type":"think","think":"hm","encrypted":null},{"type":"text","text":"a"}],"tool_calls":[{"type":"function","id":"c","function":{"name":"f","arguments":"{\"x\": 1}"}}]}`, `{"role": "_usage", "token_count": 9}`,
		`{"role":"tool","content":[{"type":"text","text":"<system>ok</system>"},{"type":"text","text":"r"}],"tool_call_id":"c"}`, `{"role":"assistant","content":"b"}`),
		"kimi-cli", "system:sys\nuser:q<system-reminder>\nx\n</system-reminder>\nassistant:a <hm> c=f({\"x\": 1})\ntool:<system>ok</system>r @c\nassistant:b", "0 1; 0 1 2 3", "tools_not_recorded"},
	{"context_2.jsonl", lines(`{"role": "_system_prompt", "content": "sys"}`, `{"role": "_checkpoint", "id": 0}`, `{"role":"user","content":[{"type":"text","text":"<system>Previous context has been compacted. Here is the compaction output:</system>"},{"type":"text","text":"sum"}]}`,
		`{"role":"assistant","content":"old"}`, `{"role": "_usage", "token_count": 5}`, `{"role":"user","content":"go"}`, `{"role":"assistant","content":"new"}`),
		"kimi-cli", "system:sys\nuser:<system>Previous context has been compacted. Here is the compaction output:</system>sum\nassistant:old\nuser:go\nassistant:new", "0 1 2 3", "tools_not_recorded"},
	{"events.jsonl", lines(`{"type":"session.start","data":{"sessionId":"s1","version":1,"producer":"copilot-agent"},"id":"1","timestamp":"t","parentId":null}`,
		`{"type":"system.message","data":{"role":"system","content":"sys"},"id":"2","timestamp":"t","parentId":"1"}`,
		`{"type":"user.message","data":{"content":"q","transformedContent":"<now>q","attachments":[]},"id":"3","timestamp":"t","parentId":"2"}`,
		`{"type":"assistant.turn_start","data":{"turnId":"0"},"id":"4","timestamp":"t","parentId":"3"}`,
		`{"type":"assistant.message","data":{"messageId":"m","content":"look","reasoningText":"hm","toolRequests":[{"toolCallId":"c","name":"bash","arguments":{"command":"ls"},"type":"function"}]},"id":"5","timestamp":"t","parentId":"4"}`,
		`{"type":"tool.execution_start","data":{"toolCallId":"c","toolName":"bash","arguments":{"command":"ls"}},"id":"6","timestamp":"t","parentId":"5"}`,
		`{"type":"tool.execution_complete","data":{"toolCallId":"c","success":true,"result":{"content":"x","detailedContent":"xx"}},"id":"7","timestamp":"t","parentId":"6"}`,
		`{"type":"assistant.message","data":{"messageId":"n","content":"done","toolRequests":[]},"id":"8","timestamp":"t","parentId":"7"}`,
		`{"type":"session.truncation","data":{"messagesRemovedDuringTruncation":3},"id":"9","timestamp":"t","parentId":"8"}`,
		`{"type":"user.message","data":{"content":"r","transformedContent":"r"},"id":"10","timestamp":"t","parentId":"9"}`,
		`{"type":"assistant.message","data":{"messageId":"o","content":"end","toolRequests":[]},"id":"11","timestamp":"t","parentId":"10"}`),
		"copilot-cli", "system:sys\nuser:<now>q\nassistant:look <hm> c=bash({\"command\":\"ls\"})\ntool:x @c\nassistant:done\nuser:r\nassistant:end", "0 1; 0 1 2 3; ?", "context_lost tools_not_recorded"},
	{"trajectory_1.json", `{"task":"t","provider":"anthropic","model":"m","max_steps":9,"llm_interactions":[{"input_messages":[{"role":"system","content":"s"},{"role":"user","content":"q"}],"response":{"content":"a","finish_reason":"tool_use","tool_calls":[{"call_id":"c","name":"bash","arguments":{"command":"ls"},"id":null}]},"tools_available":["bash"]},{"input_messages":[{"role":"user","content":null,"tool_result":{"call_id":"c","success":false,"result":"x","error":"bad","id":null}}],"response":{"content":"b","finish_reason":"end_turn","tool_calls":null},"tools_available":["bash"]}],"agent_steps":[],"success":true,"final_result":"b"}`,
		"trae-agent", "system:s\nuser:q\nassistant:a c=bash({\"command\":\"ls\"})\ntool:x\nTool call failed with error:\nbad @c\nassistant:b", "0 1; 0 1 2 3", "tools_not_recorded"},
	{"trajectory_2.json", `{"provider":"openai","llm_interactions":[{"input_messages":[{"role":"user","content":"q"}],"response":{"content":"","tool_calls":[{"call_id":"c","name":"bash","arguments":{}}]}},{"input_messages":[{"role":"user","content":null,"tool_result":{"call_id":"c","success":false,"result":"","error":"bad"}},{"role":"assistant","content":"so"}],"response":{"content":"b"}}],"agent_steps":[]}`,
		"trae-agent", "user:q\nassistant: c=bash({})\ntool:Error: bad @c\nassistant:so\nassistant:b", "0; 0 1 2 3", "tools_not_recorded"},
	{"trajectory_3.json", `{"provider":"anthropic","llm_interactions":[{"input_messages":[{"role":"user","content":"q"}],"response":{"content":"","tool_calls":[{"call_id":"c","name":"bash","arguments":{}}]}},{"input_messages":[{"role":"user","content":null,"tool_result":{"call_id":"c","success":false,"result":null,"error":null}}],"response":{"content":"b"}}],"agent_steps":[]}`,
		"trae-agent", "user:q\nassistant: c=bash({})\ntool:Tool execution failed without providing error details. @c\nassistant:b", "0; 0 1 2", "tools_not_recorded"},
	{"trajectories.jsonl", `{"prompt_index":3,"conversations":[{"from":"system","value":"You are a function calling AI model. You are provided with function signatures within <tools> </tools> XML tags. Here are the available tools:\n<tools>\n[{\"name\": \"run\", \"description\": \"d\", \"parameters\": {}, \"required\": null}]\n</tools>\nFor each call"},{"from":"human","value":"q"},{"from":"gpt","value":"<think>\nhm\n</think>\nlook\n<tool_call>\n{\"name\": \"run\", \"arguments\": {\"c\": \"1\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"run\", \"arguments\": {}}\n</tool_call>"},{"from":"tool","value":"<tool_response>\n{\"tool_call_id\": \"a\", \"name\": \"run\", \"content\": \"x\"}\n</tool_response>\n<tool_response>\n{\"tool_call_id\": \"b\", \"name\": \"run\", \"content\": {\"o\": 1}}\n</tool_response>"},{"from":"gpt","value":"<think>\n</think>\nb"},{"from":"human","value":"[CONTEXT COMPACTION — REFERENCE ONLY] sum"},{"from":"gpt","value":"<think>\n</think>\nc"}],"metadata":{},"completed":true,"partial":false,"api_calls":3}`,
		"hermes-agent", "user:q\nassistant:look <hm> a=run({\"c\": \"1\"}) b=run({})\ntool:x @a\ntool:{\"o\": 1} @b\nassistant:b\nuser:[CONTEXT COMPACTION — REFERENCE ONLY] sum\nassistant:c", "0; 0 1 2 3; ?", "context_lost system_not_recorded"},
	{"x.session.json", `{"id":"s","app_name":"a","user_id":"u","state":{},"events":[{"invocation_id":"i","author":"user","content":{"role":"user","parts":[{"text":"q"}]},"id":"1","timestamp":1.5},{"invocation_id":"i","author":"root","content":{"role":"model","parts":[{"text":"he"}]},"partial":true,"id":"2","timestamp":1.6},{"invocation_id":"i","author":"root","content":{"role":"model","parts":[{"function_call":{"id":"c","name":"f","args":{"x":1}}},{"function_call":{"id":"d","name":"g","args":{}}}]},"partial":false,"id":"3","timestamp":1.7},{"invocation_id":"i","author":"root","content":{"role":"user","parts":[{"function_response":{"id":"c","name":"f","response":{"result":2}}},{"function_response":{"id":"d","name":"g","response":{"output":"é","n":[1,2]}}}]},"id":"4","timestamp":1.8},{"invocation_id":"i","author":"root","content":{"role":"model","parts":[{"text":"done"}]},"id":"5","timestamp":1.9},{"invocation_id":"i","author":"helper","content":{"role":"model","parts":[{"text":"me too"}]},"id":"6","timestamp":2.1},{"invocation_id":"i","author":"root","content":{"role":"model","parts":[{"text":"end"}]},"id":"7","timestamp":2.2}],"last_update_time":2.2}`,
		"google-adk", "user:q\nassistant: c=f({\"x\":1}) d=g({})\ntool:{\"result\": 2} @c\ntool:{\"output\": \"é\", \"n\": [1, 2]} @d\nassistant:done\nassistant:me too\nassistant:end", "0; 0 1 2 3; ?", "context_lost system_not_recorded tools_not_recorded"},
	{"x.json", `[{"content":"s","type":"SystemMessage"},{"content":"q","source":"user","type":"UserMessage"},{"content":[{"id":"c","arguments":"{\"x\": 1}","name":"f"}],"thought":"hm","source":"a","type":"AssistantMessage"},{"content":[{"content":"r","name":"f","call_id":"c","is_error":false}],"type":"FunctionExecutionResultMessage"},{"content":"done","thought":null,"source":"a","type":"AssistantMessage"}]`,
		"autogen", "system:s\nuser:q\nassistant:hm c=f({\"x\": 1})\ntool:r @c\nassistant:done", "0 1; 0 1 2 3", "thought_beside_calls"},
	{"x.json", `{"type":"TeamState","version":"1.0.0","agent_states":{"boss":{"type":"RoundRobinManagerState","message_thread":[]},"a":{"type":"ChatAgentContainerState","agent_state":{"type":"AssistantAgentState","llm_context":{"messages":[{"content":"q","source":"user","type":"UserMessage"},{"content":"b","thought":null,"source":"a","type":"AssistantMessage"}]}}}}}`,
		"autogen", "user:q\nassistant:b", "0", "system_not_recorded tools_not_recorded"},
	{"x.json", `{"response":{"id":"resp_1","object":"response","status":"completed","instructions":"s","temperature":0.5,"tools":[{"type":"function","name":"f","parameters":{}}],"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}]},"input_items":{"object":"list","has_more":false,"data":[{"type":"function_call_output","call_id":"c","output":"r"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"message","role":"user","content":[{"type":"input_text","text":"q"}]}]}}`,
		"stored-response", "system:s\nuser:q\nassistant: c=f({})\ntool:r @c\nassistant:done <hm>", "0 1 2 3", ""},
	{"x.jsonl", `{"id":"resp_2","object":"response","status":"completed","instructions":"s","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}]}`,
		"stored-response", "system:s\nassistant:done", "?", "request_not_read"},
	{"x.json", `[{"role":"user","content":"q"},{"id":"rs","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"id":"fc_1","type":"function_call","call_id":"c","name":"f","arguments":"{}","status":"completed"},{"type":"function_call_output","call_id":"c","output":"r"},{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"done","annotations":[]}]},{"role":"user","content":"more"},{"id":"msg_2","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"end"}]}]`,
		"openai-agents", "user:q\nassistant: <hm> c=f({})\ntool:r @c\nassistant:done\nuser:more\nassistant:end", "0; 0 1 2; 0 1 2 3 4", "system_not_recorded tools_not_recorded"},
}

func TestFrameworks(t *testing.T) {
	for _, c := range frameworks {
		t.Run(c.format, func(t *testing.T) {
			r := one(t, c.name, c.text)
			require.Equal(t, c.format, r.Origin.Format, c.text)
			require.Equal(t, c.said, saidAll(r), c.text)
			require.Equal(t, c.contexts, contexts(r), c.text)
			require.Equal(t, c.codes, codes(r), c.text)
			require.NoError(t, r.Validate())
		})
	}
}

// Content that is not understood is refused by name; it is never read as an empty reply.
func TestFrameworksRefuse(t *testing.T) {
	for text, want := range map[string]string{
		`[{"kind":"request","parts":[{"part_kind":"user-prompt","content":["q",{"url":"x","kind":"image-url"}]}]}]`:                          `a part of kind "image-url" is not understood`,
		`[{"kind":"response","parts":[{"part_kind":"builtin-tool-call","tool_name":"web"}]}]`:                                                `a part of kind "builtin-tool-call" is not understood`,
		`{"sessionId":"s","projectHash":"h","messages":[{"id":"1","type":"info","content":[{"inlineData":{"mimeType":"audio/wav"}}]}]}`:      `a part of kind "inlineData" is not understood`,
		`{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png"}}]}]}`:                                                   `a part of kind "inlineData" is not understood`,
		`{"messages":[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[{"audio":{}}]}]}`:                              `a part of kind "audio" is not understood`,
		`[{"type":"ai","data":{"content":[{"type":"image_url"}]}}]`:                                                                          `a part of kind "image_url" is not understood`,
		`[{"id":"1","role":"assistant","parts":[{"type":"file","url":"x"}]}]`:                                                                `a part of kind "file" is not understood`,
		`{"spanId":"1","attributes":{"gen_ai.operation.name":"chat"}}`:                                                                       `does not hold its messages`,
		`{"spanId":"1","attributes":{"gen_ai.input.messages":[],"gen_ai.output.messages":[{"role":"assistant","parts":[{"type":"blob"}]}]}}`: `a part of kind "blob" is not understood`,
		`{"id":"1","traceId":"t","type":"GENERATION","input":[{"role":"user","content":"q"}],"output":null}`:                                 `expected`,
		`{"custom_id":"a","response":{"status_code":200,"body":{"id":"x"}}}`:                                                                 `none of chat completions`,
		`{"custom_id":"a","result":{"type":"expired"}}`:                                                                                      `request "a" has no reply: it was expired`,
		`{"custom_id":"a","result":{"type":"errored","error":{"type":"error","error":{"type":"overloaded_error","message":"busy"}}}}`:        `so there is no reply: busy`,
	} {
		_, _, err := read(t, "x.json", text, stop)
		require.ErrorContains(t, err, want, text)
	}
}

// What goose does to a session when it sends it, as the source of its formats has it.
func TestGooseSends(t *testing.T) {
	const noted, hi = `{"role":"user","created":1,"content":[{"type":"text","text":"n"}],"metadata":{"userVisible":false,"agentVisible":true,"turnContext":true}}`, `{"role":"user","created":1,"content":[{"type":"text","text":"q"}]}`
	reply := func(text, more string) string {
		return `{"role":"assistant","created":2,"content":[{"type":"text","text":"` + text + `"},{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"f","arguments":{}}}}]` + more + `}`
	}
	const end, result = `{"role":"assistant","created":4,"content":[{"type":"text","text":"b \n"}]}`, `{"role":"user","created":3,"content":[{"type":"text","text":"for you","annotations":{"audience":["user"]}},{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":{"content":[{"type":"text","text":""}]}}}],"metadata":{"userVisible":true,"agentVisible":true}}`
	for _, c := range []struct{ name, messages, said, contexts, codes string }{
		{"a space at an end, a result without text, a text for the user", lines(hi+",", noted+",", reply(`a\n\n`, "")+",", result+",", end), "user:q\nuser:n\nassistant:a c=f({})\ntool: (empty result) @c\nassistant:b \n", "0 1; 0 1 2 3", "incomplete "},
		{"a call without a result", lines(hi+",", noted+",", reply("a", "")+",", hi+",", end), "user:q\nuser:n\nassistant:a c=f({})\nuser:q\nassistant:b \n", "0 1; ?", "context_lost "},
		{"a version that stores no context", lines(hi+",", reply("a", "")), "user:q\nassistant:a c=f({})", "0", "notes_not_recorded "},
		{"a limit", lines(hi+",", noted+",", reply("a", `,"metadata":{"userVisible":true,"agentVisible":true,"outputTokenLimitReached":true}`)), "user:q\nuser:n\nassistant:a c=f({})", "0 1", ""},
	} {
		r := one(t, "goose.json", `{"id":"e","working_dir":"/w","conversation":[`+c.messages+`]}`)
		require.Equal(t, "goose", r.Origin.Format, c.name)
		require.Equal(t, c.said, saidAll(r), c.name)
		require.Equal(t, c.contexts, contexts(r), c.name)
		require.Equal(t, c.codes+"system_not_recorded tools_not_recorded", codes(r), c.name)
		require.Equal(t, c.name == "a limit", r.Turns[0].FinishReason == "length", c.name)
	}
}

// OpenClaw of 2026 marks its records: it sends users' texts with the time before them and
// what runs after them, which no session holds.
func TestOpenClawMarksWhatItSends(t *testing.T) {
	record := func(id, parent, message string) string {
		return `{"type":"message","id":"` + id + `","parentId":` + parent + `,"timestamp":"t","message":{` + message + `,"timestamp":1}}`
	}
	const said = `"role":"assistant","content":[{"type":"text","text":"a"}],"stopReason":"stop"`
	for mark, want := range map[string]string{"": "0", `,"__openclaw":{"senderIsOwner":true}`: "?"} {
		r := one(t, "s.jsonl", lines(`{"type":"session","version":4,"id":"s","timestamp":"t","cwd":"/w"}`, record("1", "null", `"role":"user","content":"q"`+mark), record("2", `"1"`, said+mark)))
		require.Equal(t, want, contexts(r))
	}
}

// Cline cuts what it sends, as its source has it: the middle of long texts of results, and
// from 64 KiB on what was read again. Where it wrote anything else the context is unknown.
func TestClineCuts(t *testing.T) {
	session := func(head string, messages ...string) string {
		return `{"version":1,"agent":"lead","sessionId":"s",` + head + `"messages":[` + strings.Join(messages, ",") + `]}`
	}
	user := func(text string) string { return `{"role":"user","content":[{"type":"text","text":"` + text + `"}]}` }
	result := func(content string) string {
		return `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","name":"read_files","content":` + content + `}]}`
	}
	const call, said, origin = `{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"read_files","input":{}}]}`, `{"role":"assistant","content":[{"type":"text","text":"b"}]}`, `"origin":{},`
	file := func(path string, n int) string {
		return result(`[{"query":"` + path + `","result":"` + strings.Repeat("x", n) + `","success":true}]`)
	}
	long := strings.Repeat("a", 4000) + strings.Repeat("😀", 30) + strings.Repeat("b", 4000)
	cut := strings.Repeat("a", 3985) + "%s[truncated 90 chars]...%s" + strings.Repeat("b", 3985)

	r := one(t, "s.messages.json", session(origin, user("q"), call, result(`"`+long+`"`), said))
	require.Equal(t, fmt.Sprintf(cut, "\n\n...", "\n\n"), r.Messages[2].Content)
	r = one(t, "s.messages.json", session(origin, user("q"), call, result("[ {\"query\" : \"/ü\",\n\"result\":\"x \\\"y\\\"\\n\"}, 1.50,null , {} , [ ]]"), said))
	require.Equal(t, `[{"query":"/ü","result":"x \"y\"\n"},1.50,null,{},[]]`, r.Messages[2].Content)
	r = one(t, "s.messages.json", session(origin, user("q"), call, result(`[{"query":"/a","result":"`+long+`","n":1}]`), said))
	require.Equal(t, `[{"query":"/a","result":"`+fmt.Sprintf(cut, `\n\n...`, `\n\n`)+`","n":1}]`, r.Messages[2].Content)
	r = one(t, "s.messages.json", session(origin, user("q"), call, result(`"x`+strings.Repeat("😀", 5000)+`"`), said))
	require.Equal(t, "x"+strings.Repeat("😀", 1991)+"\uFFFD\n\n...[truncated 2033 chars]...\n\n"+strings.Repeat("😀", 1992), r.Messages[2].Content)

	again := []string{user("q")}
	for range 9 {
		again = append(again, call, file("/a:1-EOF", 7900))
	}
	for _, c := range []struct{ name, text, contexts, codes string }{
		{"files read again, below the bound", session(origin, append(again[:17:17], said)...), "0; 0 1 2; 0 1 2 3 4; 0 1 2 3 4 5 6; 0 1 2 3 4 5 6 7 8; 0 1 2 3 4 5 6 7 8 9 10; 0 1 2 3 4 5 6 7 8 9 10 11 12; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", ""},
		{"files read again, above", session(origin, append(append(again, call, file("/a", 7900)), said)...), "0; 0 1 2; 0 1 2 3 4; 0 1 2 3 4 5 6; 0 1 2 3 4 5 6 7 8; 0 1 2 3 4 5 6 7 8 9 10; 0 1 2 3 4 5 6 7 8 9 10 11 12; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; ?", "context_lost"},
		{"an early version, read again", session("", user("q"), call, file("/a", 9), call, file("/a", 9), said), "0; 0 1 2; ?", "context_lost"},
		{"an early version, a long result", session("", user("q"), call, file("/a", 8000), said), "0; ?", "context_lost"},
		{"an image", session(origin, user("q"), call, result(`[{"query":"/p","result":["read",{"type":"image","data":"AA","mediaType":"image/png"}]}]`), said), "0; ?", "context_lost"},
		{"parts", session(origin, user("q"), call, result(`[{"type":"text","text":"r"}]`), said), "0; ?", "context_lost"},
		{"no result", session(origin, user("q"), call, user("r"), said), "0; ?", "context_lost"},
		{"an empty message", session(origin, user(" "), said), "?", "context_lost"},
		{"a long reply", session(origin, user("q"), strings.Replace(said, `"b"`, `"`+strings.Repeat("b", 12001)+`"`, 1), user("r"), said), "0; ?", "context_lost"},
		{"compacted where it is", session(origin, `{"role":"user","metadata":{"kind":"compaction_summary"},"content":[{"type":"text","text":"sum"}]}`, said), "?", "context_lost"},
		{"replaced arguments", session(origin, user("q"), strings.Replace(call, `{`, `{"metadata":{"invalidToolCalls":[{}]},`, 1)), "0", "incomplete"},
	} {
		r := one(t, "s.messages.json", c.text)
		require.Equal(t, "cline", r.Origin.Format, c.name)
		require.Equal(t, c.contexts, contexts(r), c.name)
		require.Equal(t, strings.TrimPrefix(c.codes+" system_not_recorded tools_not_recorded", " "), codes(r), c.name)
	}

	// The session is whole beside what a compaction left, which is no rollout.
	dir := t.TempDir()
	write(t, dir, "s/s.json", []byte(`{"session_id":"s"}`))
	write(t, dir, "s/s.messages.json", []byte(session(origin, user("q"), said)))
	write(t, dir, "s/s.compaction.json", []byte(`{"version":1,"source_message_count":2,"messages":[`+user("sum")+`,`+said+`]}`))
	for _, alone := range []bool{false, true} {
		reader, err := traj.Open([]string{dir}, traj.Options{Alone: alone})
		require.NoError(t, err)
		for r, err := range reader.All() {
			require.NoError(t, err)
			require.Equal(t, "user:q\nassistant:b", saidAll(r))
			require.Equal(t, "?", contexts(r))
		}
		require.Equal(t, 1, reader.Report().Rollouts)
		require.Zero(t, reader.Report().UnreadCount)
	}
}

// A message with a fault is left out of a session as a whole, whatever client wrote it.
func TestFaultsLeaveMessagesOut(t *testing.T) {
	for _, c := range []struct{ name, text, said string }{
		{"task/api_conversation_history.json", `[{"role":"user","content":"q"},{"role":"oracle","content":"psst"},{"role":"assistant","content":"a"}]`, "user:q\nassistant:a"},
		{"events.jsonl", lines(`{"type":"session.start","id":"1","timestamp":"t","data":{"sessionId":"s"}}`, `{"type":"system.message","id":"2","timestamp":"t","data":{"role":"system"}}`,
			`{"type":"user.message","id":"3","timestamp":"t","data":{"content":"q","transformedContent":"q"}}`, `{"type":"assistant.message","id":"4","timestamp":"t","data":{"content":7}}`, `{"type":"assistant.message","id":"5","timestamp":"t","data":{"content":"a"}}`), "user:q\nassistant:a"},
		{"x.json", `[{"type":"human","data":{"content":"q"}},{"type":"ai","data":{"content":[{"type":"text"}]}},{"type":"ai","data":{"content":[{"type":"text","text":"a"}]}}]`, "user:q\nassistant:a"},
		{"s.jsonl", lines(`{"type":"message","id":"1","parentId":null,"timestamp":"t","message":{"role":"user","content":"q","timestamp":1}}`,
			`{"type":"message","id":"2","parentId":"1","timestamp":"t","message":{"role":"assistant","content":[{"type":"text"}],"timestamp":2}}`,
			`{"type":"message","id":"3","parentId":"2","timestamp":"t","message":{"role":"assistant","content":[{"type":"text","text":"a"}],"timestamp":3}}`), "user:q\nassistant:a"},
		{"context.jsonl", lines(`{"role":"user","content":"q"}`, `{"role":"assistant","content":[{"type":"text"}]}`, `{"role":"assistant","content":"a"}`), "user:q\nassistant:a"},
	} {
		rollouts, report, err := read(t, c.name, c.text, traj.Options{})
		require.NoError(t, err, c.name)
		require.Len(t, rollouts, 1, c.name)
		require.Equal(t, c.said, saidAll(rollouts[0]), c.name)
		require.Equal(t, "?", contexts(rollouts[0]), c.name)
		require.NotZero(t, report.Skipped, c.name)
	}
}

// A message of an unknown speaker is left out as a whole.
func TestConverseOfAnUnknownSpeaker(t *testing.T) {
	rollouts, _, err := read(t, "x.json", `[{"role":"user","content":[{"text":"q"}]},{"role":"oracle","content":"psst"},{"role":"assistant","content":[{"text":"a"}]}]`, traj.Options{})
	require.NoError(t, err)
	require.Len(t, rollouts, 1)
	require.Equal(t, "user:q\nassistant:a", saidAll(rollouts[0]))
	require.Contains(t, codes(rollouts[0]), "context_lost")
}

// Copilot CLI writes the first prompt before the system prompt, results as calls end, and
// the events of sub-agents between those of the session.
func TestCopilotAgents(t *testing.T) {
	event := func(kind, more, data string) string {
		return `{"type":"` + kind + `","id":"i","timestamp":"t"` + more + `,"data":{` + data + `}}`
	}
	sub := `,"agentId":"sub"`
	got, _, err := read(t, "events.jsonl", lines(event("session.start", "", `"sessionId":"s"`),
		event("user.message", "", `"content":"q","transformedContent":"Q"`), event("system.message", "", `"role":"system","content":"sys"`),
		event("assistant.message", "", `"content":"","reasoningOpaque":"x","toolRequests":[{"toolCallId":"a","name":"f","arguments":{}},{"toolCallId":"b","name":"task","arguments":{}},{"toolCallId":"c","name":"f","arguments":{}}]`),
		event("tool.execution_complete", "", `"toolCallId":"c","result":{"content":"3"}`), event("tool.execution_complete", "", `"toolCallId":"a","result":{"content":"1"}`),
		event("subagent.started", `,"agentId":"idle"`, `"toolCallId":"b"`),
		event("user.message", sub, `"content":"do","transformedContent":"do"`), event("assistant.message", sub, `"content":"","toolRequests":[{"toolCallId":"d","name":"f","arguments":{}}]`),
		event("tool.execution_complete", sub, `"toolCallId":"d","success":false,"error":{"message":"no"}`), event("assistant.message", sub, `"content":"did"`),
		event("tool.execution_complete", sub, `"toolCallId":"b","result":{"content":"2"}`), event("assistant.message", "", `"content":"done"`),
		event("system.message", "", `"role":"system","content":"sys"`), event("user.message", "", `"content":"r","transformedContent":"r"`), event("assistant.message", "", `"content":"end"`),
		event("abort", "", `"reason":"user"`), event("user.message", "", `"content":"go","transformedContent":"go"`), event("assistant.message", "", `"content":"on"`)), stop)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, "system:sys\nuser:Q\nassistant: a=f({}) b=task({}) c=f({})\ntool:1 @a\ntool:2 @b\ntool:3 @c\nassistant:done\nuser:r\nassistant:end\nuser:go\nassistant:on", saidAll(got[0]))
	require.Equal(t, "0 1; 0 1 2 3 4 5; 0 1 2 3 4 5 6 7; ?", contexts(got[0]))
	require.Equal(t, "redacted_thinking context_lost tools_not_recorded", codes(got[0]))
	require.Equal(t, "s/sub", got[1].ID)
	require.Equal(t, "user:do\nassistant: d=f({})\ntool:no @d\nassistant:did", saidAll(got[1]))
	require.Equal(t, "context_lost system_not_recorded tools_not_recorded", codes(got[1]))
}

// The requests of a batch are read before their results, which come in any order.
func TestBatches(t *testing.T) {
	text := `{"custom_id":"q1","method":"POST","url":"/v1/chat/completions","body":{"model":"m","temperature":0.5,"messages":[{"role":"system","content":"s"},{"role":"user","content":"2+2"}],"tools":[{"type":"function","function":{"name":"f"}}]}}
{"custom_id":"q2","method":"POST","url":"/v1/responses","body":{"model":"m","input":"hi","instructions":"be brief"}}
{"requests":[{"custom_id":"q3","params":{"model":"c","system":"sys","messages":[{"role":"user","content":"u"}]}}]}
{"custom_id":"q3","result":{"type":"succeeded","message":{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"x"},{"type":"text","text":"A"}],"stop_reason":"end_turn"}}}
{"id":"batch_req_1","custom_id":"q2","response":{"status_code":200,"request_id":"r","body":{"id":"resp_1","object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hello"}]}]}},"error":null}
{"id":"batch_req_2","custom_id":"q1","response":{"status_code":200,"request_id":"r","body":{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"4"},"finish_reason":"stop"}]}},"error":null}
{"id":"batch_req_3","custom_id":"q9","response":{"status_code":200,"request_id":"r","body":{"id":"chatcmpl-2","choices":[{"index":0,"message":{"role":"assistant","content":"5"},"finish_reason":"stop"}]}},"error":null}
`
	got, _, err := read(t, "batch.jsonl", text, stop)
	require.NoError(t, err)
	var all []string
	for _, r := range got {
		require.Equal(t, "batch", r.Origin.Format)
		all = append(all, r.ID+" "+saidAll(r)+" | "+contexts(r))
	}
	require.Equal(t, []string{"q3 system:sys\nuser:u\nassistant:A <t> | 0 1", "q2 system:be brief\nuser:hi\nassistant:hello | 0 1", "q1 system:s\nuser:2+2\nassistant:4 | 0 1", "q9 assistant:5 | ?"}, all)
	require.Len(t, got[2].Tools, 1)
	require.Equal(t, float32(0.5), *got[2].Temperature)
	require.Equal(t, "request_not_read prompt_not_recorded", codes(got[3]))
}

// A prefix of a file is never read as the whole.
func TestFrameworksPrefixes(t *testing.T) {
	kit.OneGoroutine(t)
	for _, c := range frameworks {
		if strings.HasSuffix(c.name, ".jsonl") && strings.Contains(c.text, "\n") {
			continue // its prefixes are valid sessions
		}
		for n := 0; n < len(c.text); n += 11 {
			_, report, err := read(t, c.name, c.text[:n], traj.Options{})
			if err == nil && n > 0 && report.Skipped == 0 {
				t.Fatalf("%s: the first %d of %d bytes are read as whole", c.format, n, len(c.text))
			}
		}
	}
}

func TestPackedBatchesAreRefused(t *testing.T) {
	_, _, err := read(t, "step_1/rank_0.bin", "\x91\xdc\x00\x10", stop)
	require.ErrorContains(t, err, "packed micro-batches of prime-rl")
	require.ErrorContains(t, err, "token_exports")
}
