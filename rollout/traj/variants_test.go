package traj_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// variants are one conversation in the forms that its framework, its SDK or its users
// write.
var variants = []struct{ shape, text, format, said string }{
	{"flat and bare", `{"messages":[{"type":"system","content":"s"},{"type":"human","content":"q"},{"type":"ai","content":"a","tool_calls":[{"name":"f","args":{},"id":"c"}]},{"type":"tool","content":"r","tool_call_id":"c"}]}`,
		"langchain", "system:s\nuser:q\nassistant:a c=f({})\ntool:r @c"},
	{"a state of LangGraph", `{"values":{"messages":[{"type":"human","content":"q","additional_kwargs":{}},{"type":"ai","content":"a","additional_kwargs":{"function_call":{"name":"f","arguments":"{}"}}}]},"next":[],"reward":1}`,
		"langchain", "user:q\nassistant:a =f({})"},
	{"a prompt of LangChain", `{"lc":1,"type":"constructor","id":["langchain","prompts","chat","ChatPromptValue"],"kwargs":{"messages":[{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":"q"}},` +
		`{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{"content":"a"}}]}}`, "langchain", "user:q\nassistant:a"},
	{"blocks of LangChain", `{"messages":[{"type":"human","content":"q"},{"type":"ai","content":[{"type":"reasoning","reasoning":"hm"},{"type":"text","text":"a"},{"type":"tool_call","name":"f","args":{"x":1},"id":"c"}]},{"type":"tool","content":"r","tool_call_id":"c"},` +
		`{"type":"ai","content":[{"type":"reasoning_content","reasoning_content":{"text":"so"}},"b",{"type":"function_call","name":"f","arguments":"{}","call_id":"d","id":"fc"}],"tool_calls":[{"name":"f","args":{},"id":"d"}]}]}`,
		"langchain", "user:q\nassistant:a <hm> c=f({\"x\":1})\ntool:r @c\nassistant:b <so> d=f({})"},
	{"contents in the words of Python", `{"model":"g","contents":[{"role":"user","parts":[{"text":"q","thought":null}]},{"role":"model","parts":[{"function_call":{"id":"c","name":"f","args":{"x":1}},"thought_signature":"z"}]},{"role":"user","parts":[{"function_response":{"id":"c","name":"f","response":{"result":"r"}}}]},{"role":"model","parts":[{"text":"a"}]}],` +
		`"config":{"system_instruction":"s","temperature":0.5,"tools":[{"google_search":null,"function_declarations":[{"name":"f","parameters_json_schema":{"type":"object"}}]}]}}`,
		"gemini-contents", "system:s\nuser:q\nassistant: c=f({\"x\":1})\ntool:{\"result\":\"r\"} @c\nassistant:a"},
	{"a call of Gemini", `{"request":{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"shot"}]},{"role":"user","parts":[{"text":"q2"}]}]},"response":{"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]},"finishReason":"STOP"}]}}`,
		"gemini-contents", "user:q\nassistant:shot\nuser:q2\nassistant:a"},
	{"a call of Converse", `{"modelId":"m","messages":[{"role":"user","content":[{"guardContent":{"text":{"text":"q"}}}]}],"output":{"message":{"role":"assistant","content":[{"citationsContent":{"content":[{"text":"a"}],"citations":[]}}]}},"stopReason":"end_turn"}`,
		"bedrock-converse", "user:q\nassistant:a"},
	{"the log of Bedrock", `{"schemaType":"ModelInvocationLog","operation":"Converse","input":{"inputBodyJson":{"system":[{"text":"s"}],"messages":[{"role":"user","content":[{"text":"q","image":null}]}]}},"output":{"outputBodyJson":{"output":{"message":{"role":"assistant","content":[{"text":"a"}]}}}}}`,
		"bedrock-converse", "system:s\nuser:q\nassistant:a"},
	{"two lists as JSON text", `{"prompt":"[{\"role\":\"user\",\"content\":\"q\"}]","completion":"[{\"role\":\"assistant\",\"content\":\"a\"}]"}`, "prompt-completion", "user:q\nassistant:a"},
	{"two texts that look so", `{"prompt":"[1]","completion":"{\"role\": 1}"}`, "prompt-completion", "user:[1]\nassistant:{\"role\": 1}"},
	{"reasoning of LiteLLM", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","provider_specific_fields":{"reasoning_content":"hm"}}]}`, "openai-chat", "user:q\nassistant:a <hm>"},
	{"tools of results of older verifiers", `{"example_id":1,"task":"t","prompt":[{"role":"user","content":"q"}],"completion":[{"role":"assistant","content":"a"}],"info":{"oai_tools":[{"type":"function","function":{"name":"f"}}]},"metrics":{}}`,
		"verifiers", "user:q\nassistant:a"},
	{"a chat of Copilot in VS Code", `{"requesterUsername":"u","responderUsername":"GitHub Copilot","initialLocation":"panel","requests":[{"requestId":"r","message":{"text":"q","parts":[]},"variableData":{"variables":[]},"response":[{"kind":"toolInvocationSerialized"},{"value":"done"}],` +
		`"result":{"metadata":{"renderedUserMessage":[{"type":1,"text":"<context>c</context>q"},{"type":3,"cacheType":"ephemeral"}],"toolCallRounds":[{"response":"look","toolInputRetry":0,"id":"1","thinking":{"id":"t","text":["h","m"]},"toolCalls":[{"name":"read_file","arguments":"{\"p\": 1}","id":"c"}]},` +
		`{"response":"done","toolInputRetry":0,"id":"2","toolCalls":[]}],"toolCallResults":{"c":{"$mid":20,"content":[{"$mid":21,"value":"text"}]}}}}},{"requestId":"s","message":"q2","isHidden":true,"response":[{"value":"x"}]},{"requestId":"t","message":{"text":"q3"},"response":[{"value":"b","supportThemeIcons":false}]}]}`,
		"copilot-chat", "user:<context>c</context>q\nassistant:look <hm> c=read_file({\"p\": 1})\ntool:text @c\nassistant:done\nuser:q3\nassistant:b"},
	{"a chat of VS Code as changes", `{"kind":0,"v":{"version":3,"creationDate":1,"sessionId":"s","requests":[]}}` + "\n" + `{"kind":2,"k":["requests"],"v":[{"requestId":"r","message":{"text":"q"},"response":[]}]}` + "\n" +
		`{"kind":2,"k":["requests",0,"response"],"v":[{"value":"wrong"},{"value":"gone"}]}` + "\n" + `{"kind":2,"k":["requests",0,"response"],"v":[{"value":"b"}],"i":0}` + "\n" + `{"kind":1,"k":["requests",0,"message","text"],"v":"q2"}` + "\n" + `{"kind":3,"k":["requests",0,"vote"]}`,
		"copilot-chat", "user:q2\nassistant:b"},
	{"the state of a run of the Agents SDK", `{"$schemaVersion":"1.10","current_turn":2,"original_input":"q","model_responses":[],"generated_items":[{"type":"reasoning_item","raw_item":{"type":"reasoning","id":"r","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},"agent":{"name":"A"}},` +
		`{"type":"tool_call_item","raw_item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},"agent":{"name":"A"}},{"type":"tool_call_output_item","raw_item":{"type":"function_call_output","call_id":"c","output":"r"},"agent":{"name":"A"},"output":"r"},` +
		`{"type":"message_output_item","raw_item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}]},"agent":{"name":"B"}}],"session_items":[]}`,
		"openai-agents", "user:q\nassistant: <hm> c=f({})\ntool:r @c\nassistant:a"},
	{"a span of the Agents SDK", `{"object":"trace.span","id":"s","trace_id":"t","parent_id":null,"span_data":{"type":"generation","model":"m","model_config":{"temperature":0.5},"input":[{"role":"system","content":"s"},{"role":"user","content":"q"}],"output":[{"role":"assistant","content":"a"}]}}`,
		"openai-agents", "system:s\nuser:q\nassistant:a"},
	{"a dump of verl before it wrote gts", `{"input":"q","output":"a","score":0.5,"step":1}`, "verl", "user:q\nassistant:a"},
	{"a sample of slime with tools", `{"tokens":[1,2,3],"response":"a","response_length":1,"prompt":[{"role":"user","content":"q"}],"reward":1,"status":"completed","metadata":{"tools":[{"name":"f"}]},"apply_chat_template_kwargs":{"enable_thinking":false}}`,
		"slime", "user:q\nassistant:a"},
	{"an input that is a conversation", `{"input":[{"role":"user","content":"q"}],"output":"a","system_prompt":"s","category":"math"}`, "alpaca", "system:s\nuser:q\nassistant:a"},
	{"thinking of Mistral", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"a"}]}]}`, "openai-chat", "user:q\nassistant:a <hm>"},
	{"a span of OpenLLMetry", `{"traceId":"t","spanId":"s","name":"openai.chat","attributes":{"gen_ai.request.temperature":0.5,"gen_ai.prompt.0.role":"system","gen_ai.prompt.0.content":"s","gen_ai.prompt.1.role":"user","gen_ai.prompt.1.content":"[{\"type\": \"text\", \"text\": \"q\"}]",` +
		`"gen_ai.prompt.2.role":"assistant","gen_ai.prompt.2.tool_calls.0.id":"c","gen_ai.prompt.2.tool_calls.0.name":"f","gen_ai.prompt.2.tool_calls.0.arguments":"{}","gen_ai.prompt.3.role":"tool","gen_ai.prompt.3.content":"r","gen_ai.prompt.3.tool_call_id":"c",` +
		`"gen_ai.completion.0.role":"assistant","gen_ai.completion.0.content":"a","gen_ai.completion.0.finish_reason":"stop","llm.request.functions.0.name":"f","llm.request.functions.0.description":"d","llm.request.functions.0.parameters":"{\"type\": \"object\"}"}}`,
		"otel-spans", "system:s\nuser:q\nassistant: c=f({})\ntool:r @c\nassistant:a"},
	{"an observation of Langfuse with a text", `{"id":"g","traceId":"t","type":"GENERATION","input":"q","output":"a"}`, "langfuse", "user:q\nassistant:a"},
	{"a run of LangSmith with the prompt beside", `{"id":"r","run_type":"llm","inputs":{"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"q"}]},"outputs":{"role":"assistant","content":"a"}}`, "langsmith", "system:s\nuser:q\nassistant:a"},
	{"a page of a list", `{"data":[{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}],"meta":{"page":1,"totalItems":1},"has_more":false}`, "openai-chat", "user:q\nassistant:a"},
	{"calls of speakers beside messages", `{"messages":[{"from":"human","value":"q"},{"from":"gpt","value":"a"},{"from":"function_call","value":"{\"name\":\"f\",\"arguments\":{}}"},{"from":"observation","value":"r"}]}`,
		"openai-chat", "user:q\nassistant:a =f({})\ntool:r"},
}

func TestVariants(t *testing.T) {
	for _, c := range variants {
		t.Run(c.shape, func(t *testing.T) {
			r := one(t, "x.jsonl", c.text)
			require.Equal(t, c.format, r.Origin.Format)
			require.Equal(t, c.said, saidAll(r))
			require.NoError(t, r.Validate())
		})
	}
	call := one(t, "x.jsonl", variants[5].text)
	require.Len(t, call.Turns, 1) // what the request repeats was not sampled in this call
	require.Equal(t, "stop", call.Turns[0].FinishReason)
	python := one(t, "x.jsonl", variants[4].text)
	require.Equal(t, float32(0.5), *python.Temperature)
	require.Len(t, python.Tools, 1)
	require.JSONEq(t, `{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}`, string(python.Tools[0]))
	for _, c := range variants {
		switch c.shape {
		case "a chat of Copilot in VS Code":
			r := one(t, "x.json", c.text)
			require.Equal(t, []bool{false, false, true}, []bool{r.Turns[0].Context.Unknown, r.Turns[1].Context.Unknown, r.Turns[2].Context.Unknown}, "what was asked last is not recorded as it was rendered")
		case "the state of a run of the Agents SDK":
			require.Len(t, one(t, "x.json", c.text).Turns, 1, "the second agent is another")
		case "a span of OpenLLMetry":
			r := one(t, "x.json", c.text)
			require.Equal(t, float32(0.5), *r.Temperature)
			require.Equal(t, "stop", r.Turns[0].FinishReason)
			require.JSONEq(t, `{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}`, string(r.Tools[0]))
		case "tools of results of older verifiers", "a sample of slime with tools":
			require.Len(t, one(t, "x.json", c.text).Tools, 1)
		}
	}
	require.Equal(t, 1.0, *one(t, "x.jsonl", variants[1].text).Outcome.Reward)
}

// Keys beside the messages are read, or kept, in every format that has them.
func TestBesideTheMessages(t *testing.T) {
	const q, a = `{"role":"user","content":"q"}`, `{"role":"assistant","content":"a"}`
	const beside = `"reward":0.5,"resolved":true,"instance_id":"i","chat_template_kwargs":{"x":1}`
	for format, text := range map[string]string{
		"openai-wire":        `{"request":{"messages":[` + q + `],"chat_template_kwargs":{"x":1}},"response":{"choices":[{"message":` + a + `}]},"session":"s",` + beside + `}`,
		"anthropic-messages": `{"request":{"messages":[` + q + `],"chat_template_kwargs":{"x":1}},"response":{"role":"assistant","content":[{"type":"text","text":"a"}]},` + beside + `}`,
		"sharegpt":           `{"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}],` + beside + `}`,
		"openai-chat":        `{"messages":[` + q + `,` + a + `],` + beside + `}`,
		"prompt-completion":  `{"prompt":[` + q + `],"completion":[` + a + `],` + beside + `}`,
		"alpaca":             `{"instruction":"q","output":"a",` + beside + `}`,
		"gemini-contents":    `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"a"}]}],` + beside + `}`,
		"bedrock-converse":   `{"messages":[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[{"text":"a"}]}],` + beside + `}`,
		"langchain":          `{"messages":[{"type":"human","content":"q"},{"type":"ai","content":"a"}],` + beside + `}`,
		"verifiers":          `{"example_id":1,"task":"t","info":{"instance_id":"i"},"prompt":[` + q + `],"completion":[` + a + `],"reward":0.5,"resolved":true,"sampling_args":{"extra_body":{"chat_template_kwargs":{"x":1}}}}`,
	} {
		r := one(t, "x.jsonl", text)
		require.Equal(t, format, r.Origin.Format)
		require.Equal(t, 0.5, *r.Outcome.Reward, format)
		require.True(t, *r.Outcome.Resolved, format)
		require.Equal(t, "1", string(r.TemplateKwargs["x"]), format)
		require.Equal(t, "i", r.Instance, format)
	}
}

// An item that is not understood makes later contexts unknown, and a reply that contains
// one is not text.
func TestItemsThatAreLeft(t *testing.T) {
	const a = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}`
	for text, code := range map[string]string{
		`{"request":{"input":[{"role":"user","content":"q"},{"type":"computer_call_output","output":{}}]},"response":{"output":[` + a + `]}}`: "item_unknown",
		`{"request":{"input":"q"},"response":{"output":[{"type":"novelty","x":1},` + a + `]}}`:                                                "not_text",
		`{"responses_create_params":{"input":"q"},"response":{"output":[{"type":"novelty_output","x":1},` + a + `]},"reward":1}`:              "item_unknown",
	} {
		r := one(t, "x.jsonl", text)
		require.Contains(t, codes(r), code, text)
		require.Equal(t, code == "item_unknown", r.Turns[0].Context.Unknown, text)
	}
}

// Content that is not understood is refused by its key.
func TestVariantsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"messages":[{"type":"human","content":"q"},{"type":"ai","content":[{"type":"server_tool_call","name":"f"}]}]}`:                                  "server_tool_call",
		`{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"executable_code":{"code":"1"}}]}]}`:                               "executable_code",
		`{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$"}]}}]}]}`: "partialArgs",
		`{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"a"}]}],"tools":[{"googleSearch":{}}]}`:                     "googleSearch",
		`{"contents":[{"role":"user","parts":[{"text":"q"}]}],"candidates":[{"finishReason":"SAFETY"}]}`:                                                  "the reply of the model",
		`{"object":"trace.span","id":"s","trace_id":"t","span_data":{"type":"response","response_id":"r"}}`:                                               "names it and does not hold it",
		`{"messages":[{"role":"user","content":"q"}],"choices":[{"message":{"role":"assistant","content":"a"}}]}`:                                         `the key "choices" beside them`,
		`{"kind":0,"v":{"requests":[]}}` + "\n" + `{"kind":1,"k":["requests",3,"message"],"v":"q"}`:                                                       "the session has no such place",
		`{"data":[{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}],"system_prompt":"s"}`:                                  "no known format",
		`{"kind":1,"k":["requests"],"v":[]}`: "a change before the session",
		"SQLite format 3\x00":                "opencode export ID",
		`{"messages":[{"role":"user","content":[{"video":{"format":"mp4"}}]},{"role":"assistant","content":[{"text":"a"}]}]}`:                                     "video",
		`{"messages":[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[{"text":"a","toolUse":{"name":"f","toolUseId":"c","input":{}}}]}]}`: "toolUse",
	} {
		_, _, err := read(t, "x.jsonl", text, traj.Options{OnError: stop.OnError})
		require.ErrorContains(t, err, want, text)
	}
}

// For a store that is a database, the error or the list of unread files says what to do.
func TestStoresAreNamed(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "sessions.db", []byte("SQLite format 3\x00\x10\x00"))
	write(t, dir, "a.jsonl", []byte(`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`))
	r, err := traj.Open([]string{path}, stop)
	require.NoError(t, err)
	_, err = first(t, r)
	require.ErrorContains(t, err, "found a SQLite database")
	require.ErrorContains(t, err, "goose session export")
	r, err = traj.Open([]string{dir}, traj.Options{})
	require.NoError(t, err)
	for _, err := range r.All() {
		require.NoError(t, err)
	}
	require.Len(t, r.Report().Unread, 1)
	require.Contains(t, r.Report().Unread[0].Why, "the command that exports")
}

// TestErrorBesideAChat: a run that broke did not fail its task.
func TestErrorBesideAChat(t *testing.T) {
	for rest, want := range map[string]*rollout.Failure{
		`"reward":0,"error":"Connection reset"`:                             {Reason: "error", Detail: "Connection reset"},
		`"resolved":false,"error":{"type":"E","message":"too many"}`:        {Reason: "error", Detail: "too many"},
		`"reward":1,"error":"a test printed a warning"`:                     nil,
		`"resolved":true,"error":"x"`:                                       nil,
		`"reward":0,"error":null`:                                           nil,
		`"reward":0,"error":""`:                                             nil,
		`"reward":0,"error":{}`:                                             nil,
		`"reward":0,"error":"exit code 1","exit_status":"LimitsExceeded"`:   nil,
		`"reward":0,"error":false,"metadata":{"error":"of something else"}`: nil,
	} {
		r := one(t, "x.jsonl", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],`+rest+`}`)
		require.Equal(t, want, r.Failure, rest)
		require.Equal(t, want != nil, r.Status == rollout.StatusFailed, rest)
	}
}

// TestOutcomesUnderOtherNames: a value that may be an outcome is not dropped silently.
func TestOutcomesUnderOtherNames(t *testing.T) {
	for rest, want := range map[string]string{
		`"score":0.5`:                "outcome_unread",
		`"success":false`:            "outcome_unread",
		`"score":0.5,"reward":1`:     "",
		`"success":true,"score":"A"`: "outcome_unread",
		`"score":null,"id":"a"`:      "",
	} {
		r := one(t, "x.jsonl", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],`+rest+`}`)
		require.Equal(t, want, codes(r), rest)
	}
}
