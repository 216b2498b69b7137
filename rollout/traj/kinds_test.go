package traj_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Kinds of records that clients and frameworks write rarely: what is read of each, what the
// model saw at each reply, and what is noted.
var kinds = []struct{ name, text, said, contexts, codes string }{
	{"pydantic.json", `[{"kind":"request","instructions":"i","parts":[{"part_kind":"user-prompt","content":["q",{"kind":"cache-point"},{"kind":"text-content","content":"r"}]}]},{"kind":"response","state":"suspended","parts":[{"part_kind":"text","content":"a"}]},` +
		`{"kind":"request","instructions":"j","parts":[{"part_kind":"tool-availability-delta"},{"part_kind":"user-prompt","content":"s"}]},{"kind":"response","parts":[{"part_kind":"text","content":"b"}]}]`,
		"system:i\nuser:qr\nassistant:a\nuser:s\nassistant:b", "0 1; ?", "context_lost incomplete"},
	{"langchain.json", `[{"type":"chat","data":{"type":"chat","role":"developer","content":"d","name":"n"}},{"type":"human","data":{"content":"q"}},{"type":"ai","data":{"content":"","example":true}},` +
		`{"type":"ai","data":{"content":"","additional_kwargs":{"reasoning":{"summary":[]},"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}}},{"type":"tool","data":{"content":"r","tool_call_id":"c"}},{"type":"ai","data":{"content":[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"a"}]}}]`,
		"developer:d\nuser:q\nassistant:\nassistant: c=f({})\ntool:r @c\nassistant:a", "0 1 2; 0 1 2 3 4", "redacted_thinking redacted_thinking"},
	{"adk.jsonl", lines(`{"author":"user","invocationId":"i","timestamp":1,"content":{"role":"user","parts":[{"text":"q"}]}}`, `{"author":"a","invocationId":"i","timestamp":2,"interrupted":true,"content":{"role":"model","parts":[{"text":"b"}]}}`,
		`{"author":"a","invocationId":"i","timestamp":3,"errorCode":"E","content":{"role":"model","parts":[{"text":"c"}]}}`, `{"author":"a","invocationId":"i","timestamp":4,"content":{"role":"model","parts":[{"text":"d"}]}}`),
		"user:q\nassistant:b\nassistant:c\nassistant:d", "0; ?; ?", "context_lost incomplete system_not_recorded tools_not_recorded"},
	{"rewound.jsonl", lines(`{"author":"user","invocationId":"i","timestamp":1,"content":{"role":"user","parts":[{"text":"q"}]}}`, `{"author":"user","invocationId":"j","timestamp":2,"actions":{"rewindBeforeInvocationId":"i"}}`, `{"author":"a","invocationId":"k","timestamp":3,"content":{"role":"model","parts":[{"text":"c"}]}}`),
		"user:q\nassistant:c", "?", "context_lost system_not_recorded tools_not_recorded"},
	{"otlp.json", `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"t","spanId":"1","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}}],"events":[{"name":"details","attributes":[{"key":"gen_ai.response.finish_reasons","value":{"arrayValue":{"values":[{"stringValue":"stop"},{}]}}},` +
		`{"key":"gen_ai.input.messages","value":{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"role","value":{"stringValue":"user"}},{"key":"parts","value":{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"type","value":{"stringValue":"text"}},{"key":"content","value":{"stringValue":"q"}},{"key":"n","value":{"intValue":"1"}},{"key":"k","value":{"intValue":2}}]}}]}}}]}}]}}},` +
		`{"key":"gen_ai.output.messages","value":{"stringValue":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"a\"}]}]"}}]}]}]}]}]}`,
		"user:q\nassistant:a", "0", ""},
	{"langfuse.jsonl", `{"id":"o","traceId":"t","type":"GENERATION","input":"[{\"role\":\"user\",\"content\":\"q\"}]","output":{"role":"assistant","content":"a"}}`, "user:q\nassistant:a", "0", ""},
	{"vercel.json", `[{"id":"1","role":"user","parts":[{"type":"text","text":"q"},{"type":"data-x","data":1}]},{"id":"2","role":"assistant","parts":[{"type":"source-url","url":"u"},{"type":"tool-invocation","toolInvocation":{"state":"result","toolCallId":"c","toolName":"f","args":{},"result":"r"}},{"type":"step-start"},{"type":"dynamic-tool","toolName":"g","toolCallId":"d","state":"output-error","rawInput":"x","errorText":"bad"},` +
		`{"type":"step-start"},{"type":"tool-h","toolCallId":"e","state":"output-denied","input":{},"approval":{"id":"p","approved":false}},{"type":"step-start"},{"type":"text","text":"cut","state":"streaming"}]}]`,
		"user:q\nassistant: c=f({})\ntool:r @c\nassistant: d=g(x)\ntool:bad @d\nassistant: e=h({})\nassistant:cut", "0; 0 1 2; 0 1 2 3 4; ?", "context_lost incomplete"},
	{"model.json", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"reasoning","text":"hm"},{"type":"redacted-reasoning","data":"x"},{"type":"tool-call","toolCallId":"c","toolName":"f","input":{}},{"type":"tool-approval-request","approvalId":"p","toolCallId":"c"}]},{"role":"tool","content":[{"type":"tool-approval-response","approvalId":"p","approved":true},{"type":"tool-result","toolCallId":"c","toolName":"f","output":{"type":"content","value":[{"type":"text","text":"r"},{"type":"text","text":"s"}]}}]},` +
		`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"d","toolName":"f","input":{}}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"d","toolName":"f","output":{"type":"execution-denied","reason":"no"}}]},{"role":"assistant","content":"a"}]}`,
		"user:q\nassistant: <hm> c=f({})\ntool:rs @c\nassistant: d=f({})\ntool:no @d\nassistant:a", "0; 0 1 2; ?", "redacted_thinking context_lost"},
	{"opencode.json", `{"info":{"id":"ses_1"},"messages":[{"info":{"role":"user"},"parts":[{"type":"text","text":"q"},{"type":"agent","name":"x"}]},{"info":{"role":"assistant"},"parts":[{"type":"step-start"},{"type":"tool","callID":"c","tool":"bash","state":{"status":"error","input":{},"error":"bad","metadata":{"interrupted":true}}},{"type":"step-finish","reason":"tool-calls"}]},` +
		`{"info":{"role":"assistant","error":{"name":"APIError"}},"parts":[{"type":"step-start"},{"type":"text","text":"par"}]},{"info":{"role":"assistant"},"parts":[{"type":"text","text":"b"}]}]}`,
		"user:q\nassistant: c=bash({})\ntool:bad @c\nassistant:par\nassistant:b", "0; ?; ?", "context_lost incomplete system_not_recorded tools_not_recorded"},
	{"pending.json", `{"info":{"id":"ses_2"},"messages":[{"info":{"role":"user"},"parts":[{"type":"compaction"},{"type":"text","text":"q"}]},{"info":{"role":"assistant","summary":true},"parts":[{"type":"tool","callID":"c","tool":"bash","state":{"status":"running","input":{},"time":{"compacted":1}}}]}]}`,
		"user:q\nassistant: c=bash({})", "?", "context_lost system_not_recorded tools_not_recorded"},
	{"openclaw.jsonl", lines(`{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/w"}`, `{"type":"message","id":"1","parentId":null,"timestamp":"t","message":{"role":"user","content":"q","timestamp":1}}`,
		`{"type":"message","id":"2","parentId":"1","timestamp":"t","message":{"role":"bashExecution","command":"ls","output":"x","excludeFromContext":true,"timestamp":2}}`, `{"type":"custom_message","customType":"c","content":"note","id":"3","parentId":"2","timestamp":"t"}`,
		`{"type":"message","id":"4","parentId":"3","timestamp":"t","message":{"role":"assistant","content":[{"type":"thinking","thinking":"","redacted":true},{"type":"text","text":"a"}],"stopReason":"stop","provider":"openclaw","timestamp":4}}`,
		`{"type":"message","id":"5","parentId":"4","timestamp":"t","message":{"role":"assistant","content":[{"type":"text","text":"par"}],"stopReason":"aborted","provider":"p","timestamp":5}}`, `{"type":"branch_summary","summary":"s","fromId":"1","id":"6","parentId":"3","timestamp":"t"}`,
		`{"type":"message","id":"7","parentId":"6","timestamp":"t","message":{"role":"assistant","content":[{"type":"text","text":"b"}],"stopReason":"stop","provider":"p","timestamp":7}}`),
		"user:q\nuser:note\nassistant:a\nassistant:par\nassistant:b", "0 1 2; ?", "redacted_thinking context_lost incomplete system_not_recorded tools_not_recorded"},
	{"goose.json", `{"id":"e","working_dir":"/w","conversation":[{"role":"user","created":1,"content":[{"type":"text","text":"q"}]},{"role":"assistant","created":2,"content":[{"type":"redactedThinking","data":"x"},{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"f","arguments":{}}}}]},{"role":"user","created":3,"content":[{"type":"toolResponse","id":"c","toolResult":{"status":"error","error":"bad"}}]},{"role":"assistant","created":4,"content":[{"type":"systemNotification","msg":"m"},{"type":"text","text":"a"}]}]}`,
		"user:q\nassistant: c=f({})\ntool:bad @c\nassistant:a", "0; ?", "notes_not_recorded redacted_thinking context_lost system_not_recorded tools_not_recorded"},
	{"hidden.json", `{"id":"e","working_dir":"/w","conversation":[{"role":"user","created":1,"content":[{"type":"text","text":"q"}],"metadata":{"userVisible":true,"agentVisible":false}},{"role":"user","created":1,"content":[{"type":"text","text":"sum"}]},{"role":"assistant","created":4,"content":[{"type":"text","text":"a"}]}]}`,
		"user:q\nuser:sum\nassistant:a", "?", "notes_not_recorded context_lost system_not_recorded tools_not_recorded"},
	{"task/api_conversation_history.json", `[{"role":"user","content":"q"},{"role":"assistant","content":"a","isSummary":true}]`, "user:q\nassistant:a", "?", "context_lost system_not_recorded tools_not_recorded"},
	{"copilot.jsonl", lines(`{"type":"user.message","id":"1","timestamp":"t","data":{"content":"q","transformedContent":"q"}}`, `{"type":"assistant.message","id":"2","timestamp":"t","data":{"content":"a"}}`, `{"type":"skill.invoked","id":"3","timestamp":"t","data":{}}`, `{"type":"assistant.message","id":"4","timestamp":"t","data":{"content":"b"}}`, `{"type":"result","timestamp":"t","sessionId":"s"}`),
		"user:q\nassistant:a\nassistant:b", "0; ?", "context_lost system_not_recorded tools_not_recorded"},
	{"notified.jsonl", lines(`{"type":"user.message","id":"1","timestamp":"t","data":{"content":"q","transformedContent":"q"}}`, `{"type":"system.notification","id":"3","timestamp":"t","data":{}}`, `{"type":"tool.execution_complete","id":"3","timestamp":"t","data":{"toolCallId":"u","isUserRequested":true,"result":{"content":"x"}}}`, `{"type":"assistant.message","id":"4","timestamp":"t","data":{"content":"b"}}`),
		"user:q\nassistant:b", "?", "context_lost system_not_recorded tools_not_recorded"},
	{"chat.json", `{"requesterUsername":"u","requests":[{"message":{"text":"q"},"result":{"metadata":{"renderedUserMessage":[{"type":1,"text":"Q"}],"summaries":[1],"toolCallRounds":[{"response":"a","hookContext":"h","toolCalls":[]}]},"errorDetails":{"message":"x"}}},{"message":{"text":"r"},"result":{"metadata":{"renderedUserMessage":[{"type":1,"text":"R"}],"toolCallRounds":[{"response":"b","toolCalls":[]}]}}}]}`,
		"user:Q\nassistant:a\nuser:R\nassistant:b", "0; ?", "context_lost incomplete system_not_recorded tools_not_recorded"},
	{"qwen.jsonl", lines(`{"uuid":"1","sessionId":"s","type":"system","subtype":"agent_bootstrap","systemPayload":{"systemInstruction":"sys","history":[{"role":"user","parts":[{"text":"h"}]}]}}`, `{"uuid":"2","parentUuid":"1","sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"q"}]}}`, `{"uuid":"3","parentUuid":"2","sessionId":"s","type":"system","subtype":"new_kind","systemPayload":{}}`, `{"uuid":"4","parentUuid":"3","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"text":"a"}]}}`),
		"system:sys\nuser:h\nuser:q\nassistant:a", "?", "event_unknown context_lost startup_not_recorded tools_not_recorded"},
	{"context.jsonl", lines(`{"role":"_system_prompt","content":"sys"}`, `{"role":"user","content":"q"}`, `{"role":"assistant","content":"a","partial":true}`), "system:sys\nuser:q\nassistant:a", "0 1", "incomplete tools_not_recorded"},
}

func TestRareKinds(t *testing.T) {
	for _, c := range kinds {
		t.Run(c.name, func(t *testing.T) {
			r := one(t, c.name, c.text)
			require.Equal(t, c.said, saidAll(r))
			require.Equal(t, c.contexts, contexts(r))
			require.Equal(t, c.codes, codes(r))
			require.NoError(t, r.Validate())
		})
	}
}
