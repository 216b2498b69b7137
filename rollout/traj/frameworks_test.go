package traj_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// saidAll writes messages as they are to be read: role, text, reasoning, calls and the call
// that a result answers.
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

// frameworks are conversations as their programs write them.
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
	{"x.jsonl", `{"id":"r1","reward":1,"messages":[{"parts":[{"content":["a","b"],"part_kind":"user-prompt"}],"instructions":"be brief","kind":"request"},{"parts":[{"content":"c","part_kind":"text"}],"kind":"response"}]}`,
		"pydantic-ai", "system:be brief\nuser:ab\nassistant:c", "0 1", ""},
	{"x.json", `[{"type":"system","data":{"content":"s","additional_kwargs":{},"type":"system"}},{"type":"human","data":{"content":"q","type":"human"}},{"type":"ai","data":{"content":"","tool_calls":[{"name":"f","args":{"a":1},"id":"c","type":"tool_call"}],"additional_kwargs":{"reasoning_content":"hm"},"response_metadata":{"finish_reason":"tool_calls"}}},{"type":"tool","data":{"content":"r","tool_call_id":"c","name":"f"}},{"type":"ai","data":{"content":[{"type":"text","text":"d"}]}}]`,
		"langchain", "system:s\nuser:q\nassistant: <hm> c=f({\"a\":1})\ntool:r @c\nassistant:d", "0 1; 0 1 2 3", ""},
	{"x.json", `{"messages":[{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":["q","!"],"type":"human"}},{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{"content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"a"},{"type":"tool_use","id":"c","name":"f","input":{}}],"tool_calls":[{"name":"f","args":{},"id":"c"}]}}]}`,
		"langchain", "user:q!\nassistant:a <t> c=f({})", "0", ""},
	{"x.json", `{"id":"g","systemInstruction":{"parts":[{"text":"s"}]},"tools":[{"functionDeclarations":[{"name":"f","description":"d","parameters":{"type":"OBJECT"}}]}],"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"why","thought":true},{"text":"a"},{"functionCall":{"name":"f","args":{"x":1}},"thoughtSignature":"z"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"o"}}}]},{"role":"model","parts":[{"text":"b"}]}]}`,
		"gemini-contents", "system:s\nuser:q\nassistant:a <why> =f({\"x\":1})\ntool:o\nassistant:b", "0 1; 0 1 2 3", "result_without_call"},
	{"x.json", `{"sessionId":"s1","projectHash":"h","startTime":"t","lastUpdated":"t","messages":[{"id":"1","timestamp":"t","type":"user","content":[{"text":"q"}]},{"id":"2","timestamp":"t","type":"info","content":"updated"},{"id":"3","timestamp":"t","type":"gemini","content":"look","thoughts":[{"subject":"s","description":"d"}],"toolCalls":[{"id":"c","name":"ls","args":{"p":"."},"result":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"a.go"}}}],"status":"success"}],"model":"m"},{"id":"4","timestamp":"t","type":"gemini","content":"done"}]}`,
		"gemini-cli", "user:q\nassistant:look c=ls({\"p\":\".\"})\ntool:a.go @c\nassistant:done", "0; 0 1 2", "redacted_thinking system_not_recorded tools_not_recorded"},
	{"x.jsonl", `{"sessionId":"s1","projectHash":"h","startTime":"t"}` + "\n" + `{"id":"1","timestamp":"t","type":"user","content":"q"}` + "\n" + `{"id":"2","timestamp":"t","type":"gemini","content":""}` + "\n" + `{"id":"2","timestamp":"t","type":"gemini","content":"a"}` + "\n" + `{"$set":{"summary":"x"}}` + "\n" + `{"id":"3","type":"user","content":"no"}` + "\n" + `{"$rewindTo":"3"}` + "\n" + `{"id":"4","type":"user","content":"go"}` + "\n" + `{"id":"5","type":"gemini","content":[{"text":"b"}]}`,
		"gemini-cli", "user:q\nassistant:a\nuser:go\nassistant:b", "0; 0 1 2", "rewound system_not_recorded tools_not_recorded"},
	{"x.json", `{"system":[{"text":"s"},{"cachePoint":{"type":"default"}}],"inferenceConfig":{"temperature":0.5},"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}}]},"messages":[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"x"}}},{"text":"a"},{"toolUse":{"toolUseId":"c","name":"f","input":{"x":1}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"c","content":[{"json":{"r":1}},{"text":"ok"}],"status":"success"}}]},{"role":"assistant","content":[{"text":"b"}]}]}`,
		"bedrock-converse", "system:s\nuser:q\nassistant:a <hm> c=f({\"x\":1})\ntool:{\"r\":1}\nok @c\nassistant:b", "0 1; 0 1 2 3", ""},
	{"x.json", `[{"id":"1","role":"user","parts":[{"type":"text","text":"q"}]},{"id":"2","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"hm"},{"type":"tool-ls","toolCallId":"c","state":"output-available","input":{"p":1},"output":["x"]},{"type":"step-start"},{"type":"text","text":"done","state":"done"}]}]`,
		"vercel-ai", "user:q\nassistant: <hm> c=ls({\"p\":1})\ntool:[\"x\"] @c\nassistant:done", "0; 0 1 2", ""},
	{"x.jsonl", `{"system":"s","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"wait"},{"role":"user","content":[{"type":"text","text":"go"}]},{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool-call","toolCallId":"c","toolName":"f","input":{"x":1}}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f","output":{"type":"text","value":"r"}}]},{"role":"assistant","content":"b"}]}`,
		"vercel-ai", "system:s\nuser:q\nassistant:wait\nuser:go\nassistant:a c=f({\"x\":1})\ntool:r @c\nassistant:b", "0 1; 0 1 2 3; 0 1 2 3 4 5", ""},
	{"x.jsonl", `{"id":"20250101_1","working_dir":"/w","description":"d","message_count":3,"total_tokens":1}` + "\n" + `{"role":"user","created":1,"content":[{"type":"text","text":"q"}]}` + "\n" + `{"role":"assistant","created":2,"content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"a"},{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"shell","arguments":{"command":"ls"}}}}]}` + "\n" + `{"role":"user","created":3,"content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":[{"type":"text","text":"x","annotations":{"audience":["user"]}},{"type":"text","text":"y","annotations":{"audience":["assistant"]}}]}}]}` + "\n" + `{"role":"assistant","created":4,"content":[{"type":"text","text":"b"}]}`,
		"goose", "user:q\nassistant:a <hm> c=shell({\"command\":\"ls\"})\ntool:y @c\nassistant:b", "0; 0 1 2", "system_not_recorded tools_not_recorded"},
	{"x.json", `{"id":"e","working_dir":"/w","conversation":[{"id":"m","role":"user","created":1,"content":[{"type":"text","text":"q"}],"metadata":{"userVisible":true,"agentVisible":true}},{"role":"assistant","created":2,"content":[{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"f","arguments":{}}}}]},{"role":"user","created":3,"content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"r"}],"isError":false}}}]},{"role":"assistant","created":4,"content":[{"type":"text","text":"b"}]}]}`,
		"goose", "user:q\nassistant: c=f({})\ntool:r @c\nassistant:b", "0; 0 1 2", "system_not_recorded tools_not_recorded"},
	{"x.json", `{"info":{"id":"ses_1","title":"t"},"messages":[{"info":{"id":"msg_1","role":"user"},"parts":[{"type":"text","text":"q"},{"type":"text","text":"file x","synthetic":true},{"type":"file","mime":"text/plain","url":"file:///x"}]},{"info":{"id":"msg_2","role":"assistant"},"parts":[{"type":"step-start","snapshot":"h"},{"type":"reasoning","text":"hm"},{"type":"text","text":"a"},{"type":"tool","callID":"c","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":"o","title":"t","metadata":{}}},{"type":"step-finish","reason":"tool-calls","cost":0},{"type":"patch","hash":"h","files":[]},{"type":"step-start"},{"type":"text","text":"b"},{"type":"step-finish","reason":"stop"}]}]}`,
		"opencode", "user:q\nfile x\nassistant:a <hm> c=bash({\"command\":\"ls\"})\ntool:o @c\nassistant:b", "0; 0 1 2", "system_not_recorded tools_not_recorded"},
	{"task/api_conversation_history.json", `[{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"c","name":"f","input":{"x":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]},{"role":"assistant","content":"b"}]`,
		"cline", "user:q\nassistant:a c=f({\"x\":1})\ntool:r @c\nassistant:b", "0; 0 1 2", "system_not_recorded tools_not_recorded"},
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

// What is not understood is refused by its name, and never an empty reply.
func TestFrameworksRefuse(t *testing.T) {
	for text, want := range map[string]string{
		`[{"kind":"request","parts":[{"part_kind":"user-prompt","content":["q",{"url":"x","kind":"image-url"}]}]}]`:                          `a part of kind "image-url" is not understood`,
		`[{"kind":"response","parts":[{"part_kind":"builtin-tool-call","tool_name":"web"}]}]`:                                                `a part of kind "builtin-tool-call" is not understood`,
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

// A beginning of a file is never the whole.
func TestFrameworksPrefixes(t *testing.T) {
	for _, c := range frameworks {
		if strings.HasSuffix(c.name, ".jsonl") && strings.Contains(c.text, "\n") {
			continue // a session that goes on
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
