package traj_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// versions are records in producer versions that the kit lacks, each with its rollouts:
// format, instance, status, messages (~ marks those without content), values of Sampled and
// notes.
var versions = []struct {
	producer, text string
	want           []string
	check          func(t *testing.T, out []*rollout.Rollout)
}{
	{"OpenHands benchmarks on the agent SDK: kind-typed events under history", `{"instance_id":"i","attempt":1,"test_result":{"git_patch":"p"},"metadata":{"llm":{"model":"m","temperature":0.5}},"error":null,"history":[{"kind":"SystemPromptEvent","id":"e1","source":"agent","system_prompt":{"type":"text","text":"s"},"tools":[]},{"kind":"MessageEvent","id":"e2","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"q"}]}},{"kind":"ActionEvent","id":"e3","source":"agent","thought":[],"tool_name":"f","tool_call_id":"c1","tool_call":{"id":"c1","name":"f","arguments":"{}","origin":"completion"},"llm_response_id":"r"},{"kind":"ObservationEvent","id":"e4","source":"environment","tool_call_id":"c1","observation":{"kind":"X","content":[{"type":"text","text":"o"}]}}]}`,
		[]string{"openhands-output i unknown: system=s user=q assistant= tool=o | sampled |"}, func(t *testing.T, out []*rollout.Rollout) {
			require.Equal(t, "p", *out[0].Outcome.Submission)
			require.Equal(t, float32(0.5), *out[0].Temperature)
			require.Equal(t, `"m"`, string(out[0].Metadata["model"]))
		}},
	{"the agent SDK of October 2025: observations without content", `{"instance_id":"i","test_result":{},"history":[{"kind":"ActionEvent","id":"e3","source":"agent","thought":[],"tool_name":"f","tool_call_id":"c1","tool_call":{"id":"c1","name":"f","arguments":"{}"},"llm_response_id":"r"},{"kind":"ObservationEvent","id":"e4","source":"environment","tool_call_id":"c1","observation":{"kind":"ExecuteBashObservation","output":"o","error":false}},{"kind":"ActionEvent","id":"e5","source":"agent","thought":[],"tool_name":"f","tool_call_id":"c2","tool_call":{"id":"c2","name":"f","arguments":"{}"},"llm_response_id":"s"},{"kind":"ObservationEvent","id":"e6","source":"environment","tool_call_id":"c2","observation":{"kind":"FileEditorObservation","output":"","error":"no"}},{"kind":"ActionEvent","id":"e7","source":"agent","thought":[],"tool_name":"f","tool_call_id":"c3","tool_call":{"id":"c3","name":"f","arguments":"{}"},"llm_response_id":"t"},{"kind":"ObservationEvent","id":"e8","source":"environment","tool_call_id":"c3","observation":{"kind":"GlobObservation","files":["a"]}}]}`,
		[]string{"openhands-output i unknown: assistant= tool=o assistant= tool=no assistant= tool~ | sampled sampled sampled | result_not_recorded prompt_not_recorded"}, nil},
	{"OpenHands trajectory of the server: a list under its name", `{"trajectory":[{"id":0,"source":"user","message":"q","action":"message","args":{"content":"q"}},{"id":1,"source":"agent","message":"a","action":"message","args":{"content":"a"}}]}`,
		[]string{"openhands-events  unknown: user=q assistant=a | sampled | reply_not_recorded context_not_recorded"}, nil},
	{"the agent SDK's log of a call of the Responses API", `{"llm_path":"responses","instructions":"s","input":[{"role":"user","content":"q"}],"tools":[{"type":"function","name":"f","parameters":{}}],"kwargs":{"temperature":0.5},"context_window":1,"response":{"id":"r","status":"completed","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"h"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]},"cost":0,"timestamp":1.0}`,
		[]string{"llm-completion-log  completed: system=s user=q assistant=a | sampled |"}, func(t *testing.T, out []*rollout.Rollout) {
			require.Equal(t, "h", out[0].Messages[2].Reasoning)
			require.Equal(t, float32(0.5), *out[0].Temperature)
			require.Len(t, out[0].Tools, 1)
		}},
	{"OpenHands V0's completion log: tools among the arguments, the converted form beside the emulated one", `{"messages":[{"role":"user","content":"q"}],"response":{"id":"r","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"a"}}]},"args":[],"kwargs":{"temperature":0.5,"tools":[{"type":"function","function":{"name":"f"}}]},"timestamp":1.0,"cost":0,"fncall_messages":[],"fncall_response":{}}`,
		[]string{"llm-completion-log  completed: user=q assistant=a | sampled | emulated_tools"}, func(t *testing.T, out []*rollout.Rollout) {
			require.Len(t, out[0].Tools, 1)
		}},
	{"SWE-agent with retries: the chosen attempt, then the others", `{"attempts":[{"trajectory":[],"history":[{"role":"system","content":"s","agent":"main"},{"role":"assistant","content":"a","agent":"main"}],"info":{"exit_status":"submitted","submission":"p"},"environment":"e"},{"trajectory":[],"history":[{"role":"system","content":"s","agent":"main"},{"role":"assistant","content":"b","agent":"main"}],"info":{"exit_status":"exit_cost"},"environment":"e"}],"trajectory":[],"history":[{"role":"system","content":"s","agent":"main"},{"role":"assistant","content":"a","agent":"main"}],"info":{"exit_status":"submitted","submission":"p","best_attempt_idx":0},"environment":"e"}`,
		[]string{"swe-agent e completed: system=s assistant=a | sampled | message_without_step context_not_recorded", "swe-agent e truncated: system=s assistant=b | sampled | attempt_not_chosen message_without_step context_not_recorded"}, nil},
	{"SWE-agent with retries, cut off before it chose", `{"attempts":[{"trajectory":[],"history":[{"role":"system","content":"s","agent":"main"},{"role":"assistant","content":"a","agent":"main"}],"info":{"exit_status":"submitted"},"environment":"e"}]}`,
		[]string{"swe-agent e completed: system=s assistant=a | sampled | message_without_step context_not_recorded"}, nil},
	{"tau-bench: a run that could not be made has a reward of 0 and no messages", `[{"task_id":1,"reward":0.0,"info":{"error":"boom","traceback":"x"},"traj":[],"trial":0}]`,
		[]string{"tau-bench 1 failed: | | tools_not_recorded"}, func(t *testing.T, out []*rollout.Rollout) {
			require.Equal(t, &rollout.Failure{Reason: "run_error", Detail: "boom"}, out[0].Failure)
		}},
	{"tau2-bench: all runs in one file, a user with tools, a greeting", `{"timestamp":"t","info":{"num_trials":1,"environment_info":{"domain_name":"retail"}},"tasks":[{"id":"0"}],"simulations":[{"id":"u","task_id":"0","trial":2,"reward_info":{"reward":1.0},"termination_reason":"user_stop","messages":[{"role":"assistant","content":"Hi","tool_calls":null,"turn_idx":0,"cost":0.0,"usage":null,"raw_data":null},{"role":"user","content":"q","turn_idx":1},{"role":"assistant","content":null,"tool_calls":[{"id":"c","name":"f","arguments":{"a":1.50},"requestor":"assistant"}],"usage":{"n":1}},{"id":"c","role":"tool","content":"o","requestor":"assistant","error":false},{"role":"user","content":null,"tool_calls":[{"id":"d","name":"g","arguments":{},"requestor":"user"}]},{"id":"d","role":"tool","content":"p","requestor":"user","error":false},{"role":"assistant","content":"bye","usage":{"n":1}}]},{"id":"w","task_id":"0","trial":3,"reward_info":null,"termination_reason":"infrastructure_error","messages":[]}]}`,
		[]string{"tau-bench 0 completed: assistant=Hi user=q assistant~ tool=o assistant=bye | scripted sampled sampled | prompt_not_recorded tools_not_recorded user_tools", "tau-bench 0 failed: | | prompt_not_recorded tools_not_recorded"}, func(t *testing.T, out []*rollout.Rollout) {
			r := out[0]
			require.Equal(t, "retail/task-0 2 u", fmt.Sprint(r.Group, " ", r.Index, " ", r.ID))
			require.Equal(t, `{"a":1.50}`, r.Messages[2].ToolCalls[0].Arguments)
			require.Equal(t, 1.0, *r.Outcome.Reward)
			require.True(t, r.Turns[0].Context.Unknown)
			require.Equal(t, "infrastructure_error", out[1].Failure.Reason)
		}},
	{"tau2-bench: a run in a file of its own, a bad one beside it", `{"id":"u","task_id":"0","trial":0,"termination_reason":"max_steps","reward_info":{"reward":0.0},"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","raw_data":{"message":{"reasoning_content":"h"}}},{"role":"tool","tool_messages":[{"id":"x","role":"tool","content":"o","requestor":"user"}]}]}`,
		[]string{"tau-bench 0 truncated: user=q assistant=a | sampled | prompt_not_recorded tools_not_recorded user_tools"}, func(t *testing.T, out []*rollout.Rollout) {
			require.Equal(t, "h", out[0].Messages[1].Reasoning)
		}},
	{"ADP 1.2: observations of JSON", `{"id":"a","content":[{"class_":"json_observation","content":{"x":1.50,"y":[]},"source":"environment"},{"class_":"message_action","content":"a"}],"details":{}}`,
		[]string{`adp  unknown: tool={"x":1.50,"y":[]} assistant=a | sampled |`}, nil},
	{"ADP's ATIF: a result whose call is not in the transcript", `{"schema_version":"ATIF-v1.7","trajectory_id":"t","agent":{"name":"n"},"steps":[{"step_id":1,"source":"user","message":"q"},{"step_id":2,"source":"agent","message":"a","observation":{"results":[{"source_call_id":"gone","content":"o"}]}}]}`,
		[]string{"atif  unknown: user=q assistant=a tool=o | sampled | result_without_call"}, nil},
	{"OpenAI fine-tuning sets: weight 0", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","weight":0},{"role":"user","content":"r"},{"role":"assistant","content":"b","weight":1}]}`,
		[]string{"openai-chat  unknown: user=q assistant=a user=r assistant=b | unknown sampled | not_to_train"}, nil},
	{"ShareGPT sets for axolotl: train false", `{"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a","train":false},{"from":"human","value":"r"},{"from":"gpt","value":"b","train":true}]}`,
		[]string{"sharegpt  unknown: user=q assistant=a user=r assistant=b | unknown sampled | not_to_train"}, nil},
	{"Harbor's export of a run: a record for each call, the last after a summary", `[{"conversations":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"task":"t","episode":"episode-0","run_id":"r","trial_name":"n","result":null},{"conversations":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"o"},{"role":"assistant","content":"b"}],"task":"t","episode":"episode-1","run_id":"r"},{"conversations":[{"role":"user","content":"summary"},{"role":"assistant","content":"a"}],"task":"t","episode":"episode-2","run_id":"r"},{"conversations":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"o"},{"role":"assistant","content":"b"}],"task":"t","episode":"episode-1","run_id":"s"}]`,
		[]string{"sharegpt t unknown: user=q assistant=a | sampled |", "sharegpt t unknown: user=q assistant=a user=o assistant=b | copied_context sampled |", "sharegpt t unknown: user=summary assistant=a | sampled |", "sharegpt t unknown: user=q assistant=a user=o assistant=b | sampled sampled |"}, func(t *testing.T, out []*rollout.Rollout) {
			require.Equal(t, "r/episode-1", out[1].ID)
			require.Len(t, out[1].Turns, 1)
		}},
	{"the Messages API: a reply that goes on from a prefilled one", `{"request":{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"{"}]},"response":{"id":"r","role":"assistant","content":[{"type":"text","text":"}"}],"stop_reason":"end_turn"}}`,
		[]string{"anthropic-messages  completed: user=q assistant={ assistant=} | prefilled sampled | continues_prefill"}, func(t *testing.T, out []*rollout.Rollout) {
			require.True(t, out[0].Turns[0].Context.Unknown)
			joined, err := traj.JoinRecorded(out)
			require.NoError(t, err)
			require.Equal(t, rollout.Context{Unknown: true}, joined.Turns[0].Context)
		}},
	{"vLLM: continue_final_message", `{"request":{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"{"}],"continue_final_message":true,"add_generation_prompt":false},"response":{"id":"r","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"}"}}]}}`,
		[]string{"openai-wire  completed: user=q assistant={ assistant=} | prefilled sampled | continues_prefill"}, nil},
	{"the Responses API: calls that the server ran, a call that has an id only", `{"request":{"input":"q"},"response":{"id":"r","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},{"type":"web_search_call","id":"w","status":"completed"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]},{"type":"function_call","id":"c","name":"f","arguments":"{}"},{"type":"mcp_list_tools"}]}}`,
		[]string{"openai-wire  completed: user=q assistant=ab | sampled | item_unknown not_text"}, func(t *testing.T, out []*rollout.Rollout) {
			m := out[0].Messages[1]
			require.Equal(t, "web_search_call", m.Parts[1].Type)
			require.Equal(t, "c", m.ToolCalls[0].ID)
		}},
	{"LLaVA-Plus: thoughts and actions beside the value", `{"conversations":[{"from":"human","value":"q"},{"from":"gpt","thoughts":"h","actions":[{"API_name":"sam","API_params":{"b":1.50}}],"value":"a","x":null}]}`,
		[]string{"sharegpt  unknown: user=q assistant=a | sampled |"}, func(t *testing.T, out []*rollout.Rollout) {
			require.Equal(t, map[string]json.RawMessage{"thoughts": json.RawMessage(`"h"`), "actions": json.RawMessage(`[{"API_name":"sam","API_params":{"b":1.50}}]`)}, out[0].Messages[1].Extra)
		}},
	{"nebius SWE-rebench with OpenHands: messages under trajectory, resolved a number", `{"instance_id":"i","trajectory":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"o","tool_call_id":"c","name":"f"}],"model_patch":"p","exit_status":"submit","resolved":1,"tools":[]}`,
		[]string{"openai-chat i unknown: user=q assistant~ tool=o | sampled |"}, func(t *testing.T, out []*rollout.Rollout) { require.True(t, *out[0].Outcome.Resolved) }},
	{"conversations of chat messages: calls, ids and reasoning beside the content", `{"conversations":[{"role":"user","content":"q"},{"role":"assistant","content":null,"reasoning_content":"h","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","name":"f","content":"o"},{"from":"gpt","value":"a","refusal":null}]}`,
		[]string{"sharegpt  unknown: user=q assistant~ tool=o assistant=a | sampled sampled |"}, func(t *testing.T, out []*rollout.Rollout) {
			m := out[0].Messages
			require.Equal(t, "h c f {}", fmt.Sprint(m[1].Reasoning, " ", m[1].ToolCalls[0].ID, " ", m[1].ToolCalls[0].Name, " ", m[1].ToolCalls[0].Arguments))
			require.Equal(t, "c f", m[2].ToolCallID+" "+m[2].Name)
			require.Nil(t, m[3].Extra)
		}},
	{"chat messages with thinking blocks: calls, ids and marks beside them", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"h"},{"type":"text","text":"a"},{"type":"tool_use","id":"d","name":"g","input":{"b":2}}],"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"d","name":"g","args":{"b":2}}]},{"role":"tool","tool_call_id":"c","content":"o"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"d","content":"p"},{"type":"text","text":"r"}]},{"role":"assistant","content":"no","weight":0},{"role":"assistant","content":"b","token_ids":[7],"logprobs":[-1]}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`,
		[]string{"openai-chat  unknown: user=q assistant=a tool=o tool=p user=r assistant=no assistant=b | sampled unknown sampled | not_to_train"}, func(t *testing.T, out []*rollout.Rollout) {
			r := out[0]
			require.Equal(t, "h", r.Messages[1].Reasoning)
			require.Len(t, r.Messages[1].ToolCalls, 2)
			require.Equal(t, `c {} d {"b":2}`, fmt.Sprint(r.Messages[1].ToolCalls[0].ID, " ", r.Messages[1].ToolCalls[0].Arguments, " ", r.Messages[1].ToolCalls[1].ID, " ", r.Messages[1].ToolCalls[1].Arguments))
			require.Equal(t, "c", r.Messages[2].ToolCallID)
			require.Equal(t, []rollout.TokenID{7}, r.Turns[1].Output)
			require.JSONEq(t, `{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}`, string(r.Tools[0]))
		}},
	{"legacy functions are the tools", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}],"functions":[{"name":"f","parameters":{}}]}`,
		[]string{"openai-chat  unknown: user=q assistant~ | sampled |"}, functionTool},
	{"legacy functions of a call are the tools", `{"request":{"messages":[{"role":"user","content":"q"}],"functions":[{"name":"f","parameters":{}}]},"response":{"choices":[{"message":{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}}]}}`,
		[]string{"openai-wire  unknown: user=q assistant~ | sampled |"}, functionTool},
	{"OpenHands with an engine that gives an id twice", `[{"source":"user","action":"message","args":{"content":"q"}},{"source":"agent","action":"run","tool_call_metadata":{"tool_call_id":"c1","model_response":{"id":"7","choices":[{"message":{"role":"assistant","content":"a","tool_calls":[{"id":"c1","function":{"name":"f","arguments":"{}"}}]}}]}}},{"observation":"run","content":"o","tool_call_metadata":{"tool_call_id":"c1"}},{"source":"agent","action":"run","tool_call_metadata":{"tool_call_id":"c2","model_response":{"id":"8","choices":[{"message":{"role":"assistant","content":"b","tool_calls":[{"id":"c2","function":{"name":"f","arguments":"{}"}}]}}]}}},{"observation":"run","content":"p","tool_call_metadata":{"tool_call_id":"c2"}},{"source":"agent","action":"run","tool_call_metadata":{"tool_call_id":"c3","model_response":{"id":"7","choices":[{"message":{"role":"assistant","content":"c","tool_calls":[{"id":"c3","function":{"name":"f","arguments":"{}"}}]}}]}}},{"observation":"run","content":"r","tool_call_metadata":{"tool_call_id":"c3"}}]`,
		[]string{"openhands-events  unknown: user=q assistant=a tool=o assistant=b tool=p assistant=c tool=r | sampled sampled sampled | context_not_recorded response_id_repeated"}, nil},
	{"the agent SDK with an engine that gives an id twice", `{"kind":"MessageEvent","id":"m","source":"user","llm_message":{"role":"user","content":"q"}} {"kind":"ActionEvent","id":"a","source":"agent","thought":[{"type":"text","text":"a"}],"tool_name":"f","tool_call_id":"c1","tool_call":{"id":"c1","name":"f","arguments":"{}"},"llm_response_id":"7"} {"kind":"ActionEvent","id":"x","source":"agent","thought":[{"type":"text","text":"x"}],"tool_name":"f","tool_call_id":"c2","tool_call":{"id":"c2","name":"f","arguments":"{}"},"llm_response_id":"7"} {"kind":"ObservationEvent","id":"o","source":"environment","tool_call_id":"c1","observation":{"kind":"X","content":"o"}} {"kind":"ObservationEvent","id":"p","source":"environment","tool_call_id":"c2","observation":{"kind":"X","content":"p"}} {"kind":"ActionEvent","id":"b","source":"agent","thought":[{"type":"text","text":"b"}],"tool_name":"f","tool_call_id":"c3","tool_call":{"id":"c3","name":"f","arguments":"{}"},"llm_response_id":"8"} {"kind":"ObservationEvent","id":"r","source":"environment","tool_call_id":"c3","observation":{"kind":"X","content":"r"}} {"kind":"ActionEvent","id":"c","source":"agent","thought":[{"type":"text","text":"c"}],"tool_name":"f","tool_call_id":"c4","tool_call":{"id":"c4","name":"f","arguments":"{}"},"llm_response_id":"7"}`,
		[]string{"openhands-sdk-events  unknown: user=q assistant=a tool=o tool=p assistant=b tool=r assistant=c | sampled sampled sampled | response_id_repeated"}, nil},
	{"mini-swe-agent with an engine that gives an id twice", `{"trajectory_format":"mini-swe-agent-1","info":{},"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","extra":{"response":{"id":"7"}}},{"role":"user","content":"o"},{"role":"assistant","content":"b","extra":{"response":{"id":"7"}}}]}`,
		[]string{"mini-swe-agent  unknown: user=q assistant=a user=o assistant=b | sampled sampled | response_id_repeated"}, nil},
	{"OpenHands: what sub-agents do between the action that delegates and its observation", `[{"source":"user","action":"message","args":{"content":"q"}},{"source":"agent","action":"delegate","tool_call_metadata":{"tool_call_id":"c1","model_response":{"id":"r1","choices":[{"message":{"role":"assistant","content":"a","tool_calls":[{"id":"c1","function":{"name":"f","arguments":"{}"}}]}}]}}},{"source":"user","action":"message","args":{"content":"TASK: t"}},{"source":"agent","action":"delegate","tool_call_metadata":{"tool_call_id":"c2","model_response":{"id":"r2","choices":[{"message":{"role":"assistant","content":"sub","tool_calls":[{"id":"c2","function":{"name":"f","arguments":"{}"}}]}}]}}},{"source":"agent","action":"finish","tool_call_metadata":{"tool_call_id":"c3","model_response":{"id":"r3","choices":[{"message":{"role":"assistant","content":"subsub","tool_calls":[{"id":"c3","function":{"name":"f","arguments":"{}"}}]}}]}}},{"observation":"delegate","content":"s","tool_call_metadata":{"tool_call_id":"c2"}},{"source":"agent","action":"run","tool_call_metadata":{"tool_call_id":"c4","model_response":{"id":"r4","choices":[{"message":{"role":"assistant","content":"sub again","tool_calls":[{"id":"c4","function":{"name":"f","arguments":"{}"}}]}}]}}},{"observation":"run","content":"page","tool_call_metadata":{"tool_call_id":"c4"}},{"observation":"delegate","content":"o","tool_call_metadata":{"tool_call_id":"c1"}},{"source":"agent","action":"run","tool_call_metadata":{"tool_call_id":"c5","model_response":{"id":"r5","choices":[{"message":{"role":"assistant","content":"b","tool_calls":[{"id":"c5","function":{"name":"f","arguments":"{}"}}]}}]}}}]`,
		[]string{"openhands-events  unknown: user=q assistant=a tool=o assistant=b | sampled sampled | context_not_recorded other_agents"}, nil},
	{"OpenHands, cut off in a sub-agent that had finished", `[{"source":"user","action":"message","args":{"content":"q"}},{"source":"agent","action":"delegate","tool_call_metadata":{"tool_call_id":"c1","model_response":{"id":"r1","choices":[{"message":{"role":"assistant","content":"a","tool_calls":[{"id":"c1","function":{"name":"f","arguments":"{}"}}]}}]}}},{"source":"user","action":"message","args":{"content":"TASK: t"}},{"source":"agent","action":"finish","tool_call_metadata":{"tool_call_id":"c2","model_response":{"id":"r2","choices":[{"message":{"role":"assistant","content":"sub","tool_calls":[{"id":"c2","function":{"name":"f","arguments":"{}"}}]}}]}}}]`,
		[]string{"openhands-events  unknown: user=q assistant=a | sampled | context_not_recorded other_agents"}, nil},
	{"OpenHands runs that ended by an error", `{"instance_id":"i","instruction":"x","metadata":{},"error":"RuntimeError: Agent reached maximum iteration in headless mode","history":[{"source":"user","action":"message","args":{"content":"q"}},{"source":"agent","action":"finish","tool_call_metadata":{"tool_call_id":"c","model_response":{"id":"r","choices":[{"message":{"role":"assistant","content":"a","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}}}]} {"instance_id":"i","instruction":"x","metadata":{},"error":"LLMContextWindowExceedError: Conversation history longer than the context window","history":[{"source":"user","action":"message","args":{"content":"q"}},{"source":"agent","action":"finish","tool_call_metadata":{"tool_call_id":"c","model_response":{"id":"r","choices":[{"message":{"role":"assistant","content":"a","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}}}]} {"instance_id":"i","instruction":"x","metadata":{},"error":"AgentStuckInLoopError: Agent got stuck in a loop","history":[{"source":"user","action":"message","args":{"content":"q"}},{"source":"agent","action":"finish","tool_call_metadata":{"tool_call_id":"c","model_response":{"id":"r","choices":[{"message":{"role":"assistant","content":"a","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}}}]} {"instance_id":"i","instruction":"x","metadata":{},"error":"AgentRuntimeDisconnectedError: gone","history":[{"source":"user","action":"message","args":{"content":"q"}},{"source":"agent","action":"finish","tool_call_metadata":{"tool_call_id":"c","model_response":{"id":"r","choices":[{"message":{"role":"assistant","content":"a","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}}}]}`,
		[]string{"openhands-output i truncated: user=q assistant=a | sampled |", "openhands-output i truncated: user=q assistant=a | sampled |", "openhands-output i aborted: user=q assistant=a | sampled |", "openhands-output i failed: user=q assistant=a | sampled |"}, func(t *testing.T, out []*rollout.Rollout) {
			require.Equal(t, "AgentRuntimeDisconnectedError", out[3].Failure.Reason)
			require.Nil(t, out[2].Failure)
		}},
	{"SWE-agent runs that were submitted when they ended early", `{"history":[{"role":"assistant","content":"a","agent":"main"}],"trajectory":[],"info":{"exit_status":"submitted (exit_cost)"}} {"history":[{"role":"assistant","content":"a","agent":"main"}],"trajectory":[],"info":{"exit_status":"submitted (exit_environment_error)"}} {"history":[{"role":"assistant","content":"a","agent":"main"}],"trajectory":[],"info":{"exit_status":"submitted (exit_format)"}}`,
		[]string{"swe-agent  truncated: assistant=a | sampled | message_without_step context_not_recorded prompt_not_recorded", "swe-agent  failed: assistant=a | sampled | message_without_step context_not_recorded prompt_not_recorded", "swe-agent  truncated: assistant=a | sampled | message_without_step context_not_recorded prompt_not_recorded"}, nil},
	{"a reply of the Messages API that filled the context window", `{"request":{"messages":[{"role":"user","content":"q"}]},"response":{"role":"assistant","content":[{"type":"text","text":"a"}],"stop_reason":"model_context_window_exceeded"}}`,
		[]string{"anthropic-messages  truncated: user=q assistant=a | sampled |"}, nil},
	{"mini-swe-agent on the Responses API: why a reply ended", `{"trajectory_format":"mini-swe-agent-1.1","info":{},"messages":[{"role":"user","content":"q"},{"object":"response","id":"r","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}]}`,
		[]string{"mini-swe-agent  unknown: user=q assistant=a | sampled |"}, func(t *testing.T, out []*rollout.Rollout) {
			require.Equal(t, "max_output_tokens", out[0].Turns[0].FinishReason)
		}},
	{"NeMo-Gym: a result of an unknown kind ends a turn", `{"responses_create_params":{"input":"q"},"reward":"1","resolved":1,"response":{"output":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"shell_output","output":"x"},{"type":"function_call","call_id":"b","name":"f","arguments":"{}"}]}}`,
		[]string{"nemo-gym  unknown: user=q assistant= assistant= | sampled sampled | item_unknown outcome_unreadable"}, func(t *testing.T, out []*rollout.Rollout) {
			require.Nil(t, out[0].Outcome.Reward)
			require.True(t, *out[0].Outcome.Resolved)
		}},
	{"outcomes written as text are not taken", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"reward":"1.0","resolved":"True"}`,
		[]string{"openai-chat  unknown: user=q assistant=a | sampled | outcome_unreadable outcome_unreadable"}, nil},
	{"tool definitions as JSON text each", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"tools":["{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}"]}`,
		[]string{"openai-chat  unknown: user=q assistant=a | sampled |"}, functionTool},
	{"inspect-ai: an error of a tool beside an empty content", `{"version":2,"status":"success","eval":{"task":"t"},"samples":[{"id":1,"epoch":1,"input":"q","target":"x","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","tool_calls":[{"id":"c","function":"f","arguments":{}}]},{"role":"tool","content":"","tool_call_id":"c","error":{"type":"timeout","message":"m"}},{"role":"assistant","content":"b"}],"scores":{"s":{"value":{"a":1}}}}]}`,
		[]string{"inspect-ai 1 unknown: user=q assistant=a tool= assistant=b | sampled sampled | error_beside_content outcome_unreadable"}, func(t *testing.T, out []*rollout.Rollout) {
			require.False(t, out[0].Turns[0].Context.Unknown)
			require.True(t, out[0].Turns[1].Context.Unknown, "a provider chooses the words of an error")
		}},
	{"inspect-ai: an error of a tool beside what it printed", `{"version":2,"status":"success","eval":{"task":"t"},"samples":[{"id":1,"epoch":1,"input":"q","target":"x","messages":[{"id":"1","role":"user","content":"q"},{"id":"2","role":"assistant","content":"a","tool_calls":[{"id":"c","function":"f","arguments":{}}]},{"id":"3","role":"tool","content":"half","tool_call_id":"c","error":{"type":"timeout","message":"m"}},{"id":"4","role":"assistant","content":"b"},{"id":"5","role":"assistant","content":"c"}],"scores":{},` +
		`"events":[{"event":"model","input":[{"id":"1","role":"user","content":"q"}],"output":{"choices":[{"message":{"id":"5","role":"assistant","content":"c"}}]}}]}]}`,
		[]string{"inspect-ai 1 unknown: user=q assistant=a tool=half assistant=b assistant=c | sampled sampled sampled | error_beside_content"}, func(t *testing.T, out []*rollout.Rollout) {
			require.True(t, out[0].Turns[1].Context.Unknown)
			require.False(t, out[0].Turns[2].Context.Unknown, "its call was not shown the result")
		}},
	{"OpenHands: images of a message", `[{"source":"user","action":"message","args":{"content":"q","image_urls":["data:x"]}},{"source":"agent","action":"message","args":{"content":"a","image_urls":[]}}]`,
		[]string{"openhands-events  unknown: user=q assistant=a | sampled | images reply_not_recorded context_not_recorded"}, nil},
}

func functionTool(t *testing.T, out []*rollout.Rollout) {
	require.Len(t, out[0].Tools, 1)
	require.JSONEq(t, `{"type":"function","function":{"name":"f","parameters":{}}}`, string(out[0].Tools[0]))
}

func TestVersions(t *testing.T) {
	for _, c := range versions {
		t.Run(c.producer, func(t *testing.T) {
			out, _, err := read(t, "x.json", c.text, stop)
			require.NoError(t, err)
			var got []string
			for _, r := range out {
				got = append(got, told(r))
				require.NoError(t, r.Validate())
			}
			require.Equal(t, c.want, got)
			if c.check != nil {
				c.check(t, out)
			}
		})
	}
}

// A truncated record is never read as whole.
func TestVersionPrefixes(t *testing.T) {
	for _, c := range versions {
		for _, n := range []int{1, len(c.text) / 7, len(c.text) / 3, len(c.text) / 2, len(c.text) - 1} {
			_, report, err := read(t, "x.json", c.text[:n], traj.Options{})
			require.True(t, err != nil || report.Skipped > 0, "%s: %d of %d bytes", c.producer, n, len(c.text))
		}
	}
}

// told describes a rollout in one line.
func told(r *rollout.Rollout) string {
	var messages []string
	for _, m := range r.Messages {
		sign := "="
		if m.NoContent {
			sign = "~"
		}
		messages = append(messages, string(m.Role)+sign+m.Content)
	}
	s := fmt.Sprintf("%s %s %s: %s | %s | %s", r.Origin.Format, r.Instance, r.Status, strings.Join(messages, " "), reasons(r), codes(r))
	return strings.TrimSpace(strings.ReplaceAll(s, "  |", " |"))
}

// An exchange answered by an error holds no reply, and the error says so.
func TestErrorAnswers(t *testing.T) {
	for _, text := range []string{
		`{"request":{"messages":[{"role":"user","content":"q"}]},"response":{"error":{"message":"Overloaded","type":"x"}}}`,
		`{"request":{"messages":[{"role":"user","content":"q"}],"max_tokens":5},"response":{"type":"error","error":{"type":"Overloaded"}}}`,
	} {
		_, report, err := read(t, "x.json", text, traj.Options{})
		require.NoError(t, err)
		require.Equal(t, 1, report.Skipped)
		require.ErrorContains(t, report.Errors[0], "answered by an error, so there is no reply: Overloaded")
	}
}
