package traj_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// fixtures has one small record for each rule that the recorded files do not show.
var fixtures = []struct {
	reason string
	name   string
	text   string
	format string
	roles  string
	why    string // values of Sampled of the assistant messages
	check  func(t *testing.T, r *rollout.Rollout)
}{
	{"mini: early files have no format mark", "x.traj.json", `{"info":{"exit_status":"LimitsExceeded","submission":null,"model_stats":{"api_calls":4}},"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`,
		"mini-swe-agent", "user assistant", "sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, rollout.StatusTruncated, r.Status)
			require.Nil(t, r.Outcome.Submission)
			require.Equal(t, "calls_without_message", codes(r), "4 calls, 1 message")
		}},
	{"mini: an exit status without a meaning stays unknown", "x.json", `{"trajectory_format":"mini-swe-agent-1","info":{"exit_status":"MyEnding"},"messages":[]}`,
		"mini-swe-agent", "", "", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, rollout.StatusUnknown, r.Status)
			require.Equal(t, "MyEnding", r.ExitStatus)
		}},
	{"mini: engine tokens in the raw completion", "x.json", `{"trajectory_format":"mini-swe-agent-1","info":{},"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","extra":{"response":{"id":"r1","prompt_token_ids":[1,2],"choices":[{"finish_reason":"stop","token_ids":[3],"message":{"reasoning":"hm"},"logprobs":{"content":[{"token":"x","logprob":-0.5}]}}]}}}]}`,
		"mini-swe-agent", "user assistant", "sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, []rollout.Turn{{ID: "r1", Message: 1, Prompt: rollout.PromptIDs{Add: []int32{1, 2}}, Output: []int32{3}, Logprobs: []float32{-0.5}, FinishReason: "stop"}}, r.Turns)
			require.Equal(t, "hm", r.Messages[1].Reasoning)
		}},
	{"swe-agent: a query shows a shortened observation in place", "x.traj", `{"environment":"repo__x-1","info":{"exit_status":"submitted (exit_cost)"},"history":[{"role":"system","content":"s","agent":"main"},{"role":"user","content":"t","agent":"main"},{"role":"assistant","content":"a1","agent":"main"},{"role":"user","content":"long","agent":"main"},{"role":"assistant","content":"a2","agent":"main"}],` +
		`"trajectory":[{"response":"a1","query":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"t"}]}]},{"response":"a2","query":[{"role":"system","content":"s"},{"role":"user","content":"t"},{"role":"assistant","content":"a1"},{"role":"user","content":"Old environment output: (1 lines omitted)"}]}]}`,
		"swe-agent", "system user assistant user assistant", "sampled sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, rollout.Context{}, r.Turns[0].Context, "a list of one text is the text")
			parts := r.Turns[1].Context.Parts
			require.Len(t, parts, 2)
			require.Equal(t, rollout.ContextPart{From: 0, To: 3}, parts[0])
			require.Equal(t, [2]int{3, 4}, [2]int{parts[1].From, parts[1].To})
			require.Equal(t, "Old environment output: (1 lines omitted)", parts[1].Message.Content)
			require.Equal(t, rollout.StatusTruncated, r.Status)
			require.Equal(t, "repo__x-1", r.Group)
			require.NoError(t, r.Validate())
		}},
	{"swe-agent: a query without the first turns", "x.traj", `{"info":{},"history":[{"role":"system","content":"s"},{"role":"assistant","content":"a1"},{"role":"user","content":"o1"},{"role":"assistant","content":"a2"},{"role":"user","content":"o2"},{"role":"assistant","content":"a3"}],"trajectory":[{"response":"a3","query":[{"role":"system","content":"s"},{"role":"user","content":"2 messages omitted"},{"role":"assistant","content":"a2"},{"role":"user","content":"o2"}]}]}`,
		"swe-agent", "system assistant user assistant user assistant", "sampled sampled sampled", func(t *testing.T, r *rollout.Rollout) {
			parts := r.Turns[2].Context.Parts
			require.Len(t, parts, 3)
			require.Equal(t, rollout.ContextPart{From: 0, To: 1}, parts[0])
			require.Equal(t, "2 messages omitted", parts[1].Message.Content)
			require.Equal(t, rollout.ContextPart{From: 3, To: 5}, parts[2])
			require.NoError(t, r.Validate())
		}},
	{"swe-agent: demonstrations and other agents are not sampled", "x.traj", `{"info":{},"trajectory":[],"history":[{"role":"system","content":"s","agent":"primary"},{"role":"assistant","content":"d","agent":"primary","is_demo":true},{"role":"assistant","content":"b","agent":"helper"},{"role":"assistant","content":"a","agent":"primary"}]}`,
		"swe-agent", "system assistant assistant assistant", "demonstration other_agent sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, []rollout.ContextPart{{From: 0, To: 2}}, r.Turns[0].Context.Parts, "the main agent did not see the other's message")
		}},
	{"swe-agent: steps join by what was said, not by index", "x.traj", `{"info":{},"history":[{"role":"user","content":"q"},{"role":"assistant","content":"a2"}],"trajectory":[{"response":"a1","query":[{"role":"user","content":"other"}]},{"response":"a2","query":[{"role":"user","content":"seen"}]}]}`,
		"swe-agent", "user assistant", "sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, "seen", r.Turns[0].Context.Parts[0].Message.Content)
			require.Equal(t, "step_without_message", codes(r))
		}},
	{"openai: messages as a JSON string, legacy calls, refusals", "x.jsonl", `{"id":7,"messages":"[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":null,\"function_call\":{\"name\":\"f\",\"arguments\":\"{}\"}},{\"role\":\"function\",\"name\":\"f\",\"content\":\"r\"},{\"role\":\"assistant\",\"content\":null,\"refusal\":\"no\"}]","verified":false,"tools":"[{\"type\":\"function\"}]"}`,
		"openai-chat", "user assistant tool assistant", "sampled sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, "7", r.ID)
			require.Equal(t, "f", r.Messages[1].ToolCalls[0].Name)
			require.Equal(t, "refusal empty_reply", codes(r))
			require.False(t, *r.Outcome.Resolved)
			require.Len(t, r.Tools, 1)
		}},
	{"openclaw: an infrastructure failure is its own verdict", "traj.json", `{"trajectory_format":"slime-mini-swe-remote-1","messages":[],"step_debug":[],"info":{"instance_id":"i","exit_status":null,"error":"503","reward":-1.0,"group_index":0,"index":3}}`,
		"openclaw-rl", "", "", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, rollout.VerdictInfraError, r.Outcome.Verdict)
			require.Equal(t, "infra_error", r.Failure.Reason)
			require.Equal(t, "i__g0__i3", r.ID)
		}},
	{"nemo-gym: a turn ends where the kind falls back or a second item has tokens", "x.jsonl", `{"responses_create_params":{"input":"q","instructions":"be brief","temperature":0.5,"tools":[{"type":"function","name":"f","parameters":{"a":1.0},"strict":true}]},"reward":-2.5,"mask_sample":true,"error_kind":"timeout","_ng_task_index":3,"_ng_rollout_index":1,"agent_ref":{"name":"x"},"response":{"status":"incomplete","output":[{"type":"reasoning","summary":[{"text":"r"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"m"}],"prompt_token_ids":[1],"generation_token_ids":[2],"generation_log_probs":[-1]},{"type":"function_call","name":"f","arguments":"{}","call_id":"c"},{"type":"function_call","name":"f","arguments":"{}","call_id":"d","prompt_token_ids":[1,2,3],"generation_token_ids":[4],"generation_log_probs":[-1]},{"type":"function_call_output","call_id":"c","output":"o"},{"type":"message","role":"user","content":"go on"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}]}}`,
		"nemo-gym", "system user assistant assistant tool user assistant assistant", "sampled sampled sampled sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, "x/task-3", r.Group)
			require.Equal(t, 1, r.Index)
			require.Equal(t, `{"type":"function","function":{"name":"f","parameters":{"a":1.0},"strict":true}}`, string(r.Tools[0]))
			require.Equal(t, rollout.PromptIDs{Base: rollout.At(0), Keep: 2, Add: []int32{3}}, r.Turns[1].Prompt, "prompts are stored against earlier turns")
			require.Equal(t, rollout.StatusTruncated, r.Status)
			require.Equal(t, "masked_by_framework", r.Failure.Reason)
		}},
	{"nemo-gym: an output that repeats the input was seen once", "x.jsonl", `{"responses_create_params":{"input":[{"role":"system","content":"s"},{"role":"user","content":"q"}]},"reward":1,"response":{"output":[{"role":"system","content":"s"},{"role":"user","content":"q"},{"type":"custom_tool_call","call_id":"c","name":"patch","input":"*** Begin"},{"type":"custom_tool_call_output","call_id":"c","output":"ok"},{"role":"assistant","content":"a"}]}}`,
		"nemo-gym", "system user system user assistant tool assistant", "sampled sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, "prompt_repeated", codes(r))
			require.Equal(t, []rollout.ContextPart{{From: 2, To: 4}}, r.Turns[0].Context.Parts)
			require.Equal(t, []rollout.ContextPart{{From: 2, To: 6}}, r.Turns[1].Context.Parts)
			require.Equal(t, "*** Begin", r.Messages[4].ToolCalls[0].Arguments)
			require.NoError(t, r.Validate())
		}},
	{"nemo-gym: a record that begins with a reply lacks its prompt", "x.jsonl", `{"responses_create_params":{"input":[],"metadata":{"problem_statement":"p"}},"reward":1,"response":{"output":[{"role":"assistant","content":"a"},{"type":"function_call_output","call_id":"c","output":"o"},{"role":"assistant","content":"b"}]}}`,
		"nemo-gym", "assistant tool assistant", "sampled sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, "result_without_call prompt_not_recorded", codes(r))
			require.True(t, r.Turns[0].Context.Unknown && r.Turns[1].Context.Unknown)
		}},
	{"nemo-gym: a captured prompt needs no messages", "x.jsonl", `{"responses_create_params":{"input":[]},"reward":1,"response":{"output":[{"role":"assistant","content":"a","prompt_token_ids":[1],"generation_token_ids":[2],"generation_log_probs":[-1]}]}}`,
		"nemo-gym", "assistant", "sampled", func(t *testing.T, r *rollout.Rollout) {
			require.False(t, r.Turns[0].Context.Unknown)
		}},
	{"nemo-gym: present but empty tokens are absent", "x.jsonl", `{"responses_create_params":{"input":[{"role":"user","content":"q"},{"type":"message","role":"assistant","content":"given"}]},"response":{"output":[{"type":"message","role":"assistant","content":[],"prompt_token_ids":[],"generation_token_ids":[],"generation_log_probs":[]}]},"reward":1}`,
		"nemo-gym", "user assistant assistant", "prefilled sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Nil(t, r.Turns[0].Output)
			require.Equal(t, "empty_tokens", codes(r))
		}},
	{"atif: scripted and copied steps, parts, sub-agents", "x.json", `{"schema_version":"ATIF-v1.8","trajectory_id":"t","agent":{"name":"n","version":"1","extra":{"temperature":0.7}},"steps":[{"step_id":1,"source":"user","message":[{"type":"text","text":"q"},{"type":"image","source":{"path":"p.png"}}]},{"step_id":2,"source":"agent","message":"c","is_copied_context":true},{"step_id":3,"source":"agent","message":"s","llm_call_count":0},{"step_id":4,"source":"agent","message":"m","llm_call_count":2,"tool_calls":[{"tool_call_id":"c","function_name":"f","arguments":{"b":1.0,"a":2}}],"observation":{"results":[{"source_call_id":"c","content":null},{"content":[{"type":"text","text":"x"}]}]},"metrics":{"prompt_token_ids":[1],"completion_token_ids":[2],"logprobs":[-1]}}]}`,
		"atif", "user assistant assistant assistant tool tool", "copied_context scripted sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, `{"b":1.0,"a":2}`, r.Messages[3].ToolCalls[0].Arguments, "key order and literals")
			require.True(t, r.Messages[4].NoContent)
			require.Equal(t, "several_calls images", codes(r))
			require.NotEmpty(t, r.Turns[0].Incomplete, "several replies are not one")
			require.Equal(t, []int32{2}, r.Turns[0].Output)
		}},
	{"atif: after a summary the history is not what the model saw", "x.json", `{"schema_version":"ATIF-v1.5","session_id":"t","agent":{"name":"n"},"steps":[{"step_id":1,"source":"user","message":"q"},{"step_id":2,"source":"agent","message":"a"},{"step_id":3,"source":"system","message":"summarised","observation":{"results":[{"subagent_trajectory_ref":[{"session_id":"sub"}]}]}},{"step_id":4,"source":"agent","message":"b"}]}`,
		"atif", "user assistant system tool assistant", "sampled sampled", func(t *testing.T, r *rollout.Rollout) {
			require.False(t, r.Turns[0].Context.Unknown)
			require.True(t, r.Turns[1].Context.Unknown)
		}},
	{"openhands: one response over two actions is one turn", "x.json", `[{"id":0,"source":"user","action":"message","args":{"content":"q"}},{"id":1,"source":"agent","action":"run","tool_call_metadata":{"tool_call_id":"c1","model_response":{"id":"r","choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","content":"two","tool_calls":[{"id":"c1","function":{"name":"f","arguments":"{}"}},{"id":"c2","function":{"name":"f","arguments":"{}"}}]}}]}}},{"id":2,"source":"agent","action":"run","tool_call_metadata":{"tool_call_id":"c2","model_response":{"id":"r","choices":[{"message":{"role":"assistant","content":"two"}}]}}},{"id":3,"observation":"run","content":"o2","cause":2,"tool_call_metadata":{"tool_call_id":"c2"}},{"id":4,"source":"agent","action":"think","tool_call_metadata":{"tool_call_id":"c3","model_response":{"id":"s","choices":[{"message":{"role":"assistant","content":"x","tool_calls":[{"id":"c3","function":{"name":"g","arguments":"{}"}}]}}]}}},{"id":5,"source":"agent","action":"condensation"},{"id":6,"source":"agent","action":"finish","tool_call_metadata":{"model_response":{"id":"u","choices":[{"message":{"role":"assistant","content":"y"}}]}}}]`,
		"openhands-events", "user assistant tool assistant assistant", "sampled sampled sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Len(t, r.Messages[1].ToolCalls, 2)
			require.Equal(t, "c2", r.Messages[2].ToolCallID)
			require.Equal(t, "r", r.Turns[0].ID)
			require.False(t, r.Turns[1].Context.Unknown)
			require.True(t, r.Turns[2].Context.Unknown, "after a condensation")
			require.Equal(t, rollout.StatusCompleted, r.Status)
		}},
	{"openhands output: pairs of the older files", "output.jsonl", `{"instance_id":"i","instruction":"t","metadata":{},"metrics":{},"error":"AgentRuntimeError: boom","history":[[{"action":"message","source":"user","args":{"content":"q"}},{"observation":"null"}],[{"action":"run","args":{"command":"ls","thought":"look"}},{"observation":"run","content":"o"}]],"git_patch":""}`,
		"openhands-output", "user assistant user", "sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, "AgentRuntimeError", r.ExitStatus)
			require.Equal(t, "", *r.Outcome.Submission, "an empty patch is recorded")
			require.Nil(t, r.Outcome.Resolved)
			require.Equal(t, "look", r.Messages[1].Content)
		}},
	{"nemo-gym: an episode of several models, of which the assistant is the policy", "e.json", `{"reward":0.5,"mask_sample":true,"failure_kind":"judge_failed","episode_interaction_protocol":"p","_ng_task_id":{"taskset":"s","task_id":"i"},"_ng_task_index":4,"_ng_rollout_index":1,"_ng_environment_server":"env","invocations":[
 {"sequence":0,"role":"user","request":{"input":[{"role":"system","content":"play"}]},"response":{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"q"}]}]}},
 {"sequence":1,"role":"assistant","request":{"instructions":"s","input":[{"type":"message","role":"user","content":"q"}],"tools":[{"type":"function","name":"f","parameters":{}}],"temperature":0.5},"response":{"status":"completed","output":[{"type":"function_call","name":"f","arguments":"{}","call_id":"c"},{"type":"function_call_output","call_id":"c","output":"o"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}],"prompt_token_ids":[1,2],"generation_token_ids":[3],"generation_log_probs":[-0.5]}]}},
 {"sequence":2,"role":"judge","request":{"input":"x"},"response":{"output":[]}},
 {"sequence":3,"role":"assistant","request":{"instructions":"s","input":[{"type":"message","role":"user","content":"q"},{"type":"message","role":"assistant","content":"a"},{"type":"message","role":"user","content":"r"}]},"response":{"status":"incomplete","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}]}},
 {"sequence":4,"role":"assistant","request":{"input":"z"},"response":null}]}`,
		"nemo-gym", "system user assistant tool assistant user assistant", "sampled sampled sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, "env/task-4/rollout-1 i 1", fmt.Sprint(r.ID, " ", r.Instance, " ", r.Index))
			require.Equal(t, "q o a r b", strings.Join([]string{r.Messages[1].Content, r.Messages[3].Content, r.Messages[4].Content, r.Messages[5].Content, r.Messages[6].Content}, " "))
			require.Len(t, r.Tools, 1)
			require.Nil(t, r.Turns[1].Context.Parts)
			require.Equal(t, []rollout.ContextPart{{From: 0, To: 2}, {From: 4, To: 6}}, r.Turns[2].Context.Parts, "the call inside the reply before is not shown again")
			require.Equal(t, []rollout.TokenID{3}, r.Turns[1].Output)
			require.Equal(t, rollout.StatusTruncated, r.Status)
			require.Equal(t, "judge_failed", r.Failure.Detail)
			require.Equal(t, "no_output other_agents masked_by_framework sampling_differs", codes(r))
			require.NoError(t, r.Validate())
		}},
	{"openhands sdk: actions of one response, orphans, condensation", "e.jsonl", `{"id":"e1","source":"agent","kind":"SystemPromptEvent","system_prompt":{"type":"text","text":"s"},"tools":[{"type":"function"}]}
{"id":"e2","source":"user","kind":"MessageEvent","llm_message":{"role":"user","content":[{"type":"text","text":"q"}]}}
{"id":"e3","source":"agent","kind":"ActionEvent","thought":[{"type":"text","text":"t"}],"tool_name":"f","tool_call_id":"c1","tool_call":{"id":"c1","name":"f","arguments":"{}"},"llm_response_id":"r"}
{"id":"e4","source":"agent","kind":"ActionEvent","thought":[],"tool_name":"f","tool_call_id":"c2","tool_call":{"id":"c2","function":{"name":"g","arguments":"{}"}},"llm_response_id":"r"}
{"id":"e5","source":"environment","kind":"ObservationEvent","tool_call_id":"c9","observation":{"content":[{"type":"text","text":"o"}]}}
{"id":"e6","source":"agent","kind":"AgentErrorEvent","tool_call_id":"c1","error":"bad"}
{"id":"e7","source":"environment","kind":"Condensation"}
{"id":"e8","source":"agent","kind":"MessageEvent","llm_message":{"role":"assistant","content":[{"type":"text","text":"bye"}]}}`,
		"openhands-sdk-events", "system user assistant tool tool assistant", "sampled sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, "g", r.Messages[2].ToolCalls[1].Name)
			require.Equal(t, "context_lost result_without_call", codes(r))
			require.True(t, r.Turns[1].Context.Unknown)
		}},
	{"anthropic: results first, then what the user said", "x.json", `{"request":{"system":"s","messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"x"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1.50}}]},{"role":"user","content":[{"type":"text","text":"and"},{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"r"}],"is_error":true}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}]},"response":{"id":"m","role":"assistant","content":[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"ok"}],"stop_reason":"max_tokens"}}`,
		"anthropic-messages", "system assistant tool user assistant", "prefilled sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, `{"a":1.50}`, r.Messages[1].ToolCalls[0].Arguments)
			require.Equal(t, "h", r.Messages[1].Reasoning)
			require.Equal(t, rollout.StatusTruncated, r.Status)
			require.Equal(t, `{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}`, string(r.Tools[0]))
		}},
	{"inspect: attachments, scores, limits", "x.json", `{"version":2,"eval":{"run_id":"R","task":"T"},"samples":[{"id":"s","epoch":2,"input":"q","target":"x","messages":[{"role":"user","content":"attachment://abc","source":"input"},{"role":"assistant","content":"given","source":"input"},{"role":"assistant","content":[{"type":"reasoning","reasoning":"why"},{"type":"text","text":"a"}],"source":"generate","tool_calls":[{"id":"c","function":"f","arguments":{"x":1},"type":"function"}]}],"scores":{"m":{"value":"P"}},"limit":{"type":"token"},"attachments":{"abc":"long text"}}]}`,
		"inspect-ai", "user assistant assistant", "prefilled sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, "long text", r.Messages[0].Content)
			require.Equal(t, "a", r.Messages[2].Content)
			require.Equal(t, "why", r.Messages[2].Reasoning)
			require.Equal(t, 0.5, *r.Outcome.Reward)
			require.Equal(t, "T/sample-s", r.Group)
			require.Equal(t, 1, r.Index)
			require.Equal(t, rollout.StatusTruncated, r.Status)
		}},
	{"sharegpt: the published sets mark scripted replies", "x.jsonl", `{"id":"a","system":"be kind","conversations":[{"from":"human","value":"q","loss":null},{"from":"gpt","value":"Ok.","loss":false},{"from":"observation","value":"o"},{"from":"function_call","value":"{\"name\":\"f\",\"arguments\":{\"x\":1.0}}"}]}`,
		"sharegpt", "system user assistant tool assistant", "scripted sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, `{"x":1.0}`, r.Messages[4].ToolCalls[0].Arguments)
		}},
	{"adp: an agent's observation is not the policy's", "x.jsonl", `{"id":"a","content":[{"class_":"text_observation","content":"o","source":"agent"},{"class_":"api_action","function":"f","kwargs":{"z":1.0},"description":null},{"class_":"image_observation","content":"p.png","source":"environment"}],"details":{}}`,
		"adp", "assistant assistant tool", "other_agent sampled", func(t *testing.T, r *rollout.Rollout) {
			require.True(t, r.Messages[1].NoContent)
			require.Equal(t, `{"z":1.0}`, r.Messages[1].ToolCalls[0].Arguments)
			require.Equal(t, "images", codes(r))
		}},
	{"adp: schema 1.3 links calls and results and keeps reasoning apart", "x.jsonl", `{"schema_version":"1.3.2","id":"a","available_apis":["f"],"content":[{"class_":"text_observation","content":"q","source":"user"},{"class_":"code_action","tool_call_id":"c1","language":"bash","content":"ls","description":"look","reasoning_content":"hm","reward":0.5},{"class_":"text_observation","tool_call_id":"c1","content":"o","source":"environment"}],"details":{}}`,
		"adp", "user assistant tool", "sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, "c1", r.Messages[1].ToolCalls[0].ID)
			require.Equal(t, "c1", r.Messages[2].ToolCallID)
			require.Equal(t, "hm", r.Messages[1].Reasoning)
			require.Equal(t, "0.5", string(r.Messages[1].Extra["reward"]))
			require.NoError(t, r.Validate())
		}},
	{"adp: a trajectory without any item", "x.jsonl", `{"id":"a","content":[],"details":{}}`, "adp", "", "", nil},
	{"swe-agent: what the harness says at the end is not trained", "x.traj", `{"environment":"repo__x-1","info":{"exit_status":"submitted (exit_context)","submission":"d"},"history":[{"role":"user","content":"t","agent":"main"},{"role":"assistant","content":"Exit due to haste","agent":"main"},{"role":"user","content":"o","agent":"main"},{"role":"assistant","content":"Exit due to context window","thought":"Exit due to context window","action":"","agent":"main"},{"role":"user","content":"o","agent":"main"}],` +
		`"trajectory":[{"response":"Exit due to haste","query":[{"role":"user","content":"t"}]},{"response":"Exit due to context window","query":[{}]}]}`,
		"swe-agent", "user assistant user assistant user", "sampled sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Empty(t, r.Turns[0].Incomplete)
			require.NotEmpty(t, r.Turns[1].Incomplete)
			require.Equal(t, "incomplete", codes(r))
		}},
	{"nebius: what the harness says at the end is not trained", "x.jsonl", `{"instance_id":"i","target":false,"exit_status":"submitted (exit_cost)","generated_patch":"","trajectory":[{"role":"system","text":null,"system_prompt":"s","mask":false},{"role":"ai","text":"a","mask":true},{"role":"user","text":"o"},{"role":"ai","text":"Exit due to cost limit","mask":true}]}`,
		"swe-agent-nebius", "system assistant user assistant", "sampled sampled", func(t *testing.T, r *rollout.Rollout) {
			require.NotEmpty(t, r.Turns[1].Incomplete)
		}},
	{"nebius: a reply masked out is unknown, not trained in silence", "x.jsonl", `{"instance_id":"i","target":false,"exit_status":"submitted (exit_context)","generated_patch":"","trajectory":[{"role":"system","text":null,"system_prompt":"s","mask":false},{"role":"ai","text":"a","system_prompt":null,"mask":false},{"role":"ai","text":"b","system_prompt":null,"mask":true}]}`,
		"swe-agent-nebius", "system assistant assistant", "unknown sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, "s", r.Messages[0].Content)
			require.Equal(t, rollout.StatusTruncated, r.Status)
		}},
	{"tau-bench: task and trial are group and index", "x.json", `[{"task_id":4,"trial":2,"reward":1.0,"info":{},"traj":[{"role":"system","content":"s"},{"role":"assistant","content":null,"tool_calls":[]}]}]`,
		"tau-bench", "system assistant", "sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, "task-4", r.Group)
			require.Equal(t, 2, r.Index)
		}},
	{"completion log: only the response is sampled", "x.json", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"earlier"}],"kwargs":{"temperature":0},"response":{"id":"r","choices":[{"finish_reason":"length","message":{"role":"assistant","content":"now"}}]}}`,
		"llm-completion-log", "user assistant assistant", "prefilled sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, rollout.StatusTruncated, r.Status)
			require.Equal(t, float32(0), *r.Temperature)
		}},
	{"openai exchange with log probabilities but no ids", "x.json", `{"request":{"messages":[{"role":"user","content":"q"}]},"response":{"id":"r","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"a"},"logprobs":{"content":[{"token":"a","logprob":-1}]}}]}}`,
		"openai-wire", "user assistant", "sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Nil(t, r.Turns[0].Logprobs)
			require.Equal(t, "logprobs_without_ids", codes(r))
		}},
	{"native: the origin of the first import is kept", "x.jsonl", `{"turnpack_version":1,"id":"a","messages":[],"origin":{"file":"f.traj","format":"swe-agent"}}`,
		"swe-agent", "", "", nil},
	{"native without a version, known by its turns", "x.jsonl", `{"id":"a","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"turns":[{"message":1,"prompt_ids":[1],"output_ids":[2]}]}`,
		"native", "user assistant", "sampled", func(t *testing.T, r *rollout.Rollout) {
			require.Equal(t, []rollout.TokenID{2}, r.Turns[0].Output)
		}},
	{"native without messages", "x.jsonl", `{"id":"a","turns":[{"prompt_ids":[1],"output_ids":[2]}]}`, "native", "", "", nil},
}

func TestRulesOfTheFormats(t *testing.T) {
	for _, c := range fixtures {
		t.Run(c.reason, func(t *testing.T) {
			r := one(t, c.name, c.text)
			require.Equal(t, c.format, r.Origin.Format)
			require.Equal(t, c.roles, roles(r))
			require.Equal(t, c.why, reasons(r))
			if c.check != nil {
				c.check(t, r)
			}
		})
	}
}

// TestFormatsAreDocumented: docs/formats.md has a row for each format.
func TestFormatsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/formats.md")
	require.NoError(t, err)
	for _, name := range traj.Formats() {
		require.Contains(t, string(doc), "\n| `"+name+"` | ")
	}
}

// TestEveryImporterIsInTheTable: an importer that table.go does not name reads nothing.
func TestEveryImporterIsInTheTable(t *testing.T) {
	table, err := os.ReadFile("table.go")
	require.NoError(t, err)
	files, err := filepath.Glob("internal/format/*/*.go")
	require.NoError(t, err)
	importer, found := regexp.MustCompile(`(?m)^func ([A-Z]\w*)\(\) format\.Importer`), 0
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range importer.FindAllSubmatch(text, -1) {
			found++
			require.Contains(t, string(table), "\t\t"+filepath.Base(filepath.Dir(path))+"."+string(m[1])+"(),")
		}
	}
	require.Equal(t, found, strings.Count(string(table), "(),\n"))
}

func TestEmbeddedSubagentsAreRolloutsOfTheirOwn(t *testing.T) {
	out, _, err := read(t, "x.json", `{"schema_version":"ATIF-v1.7","trajectory_id":"p","agent":{"name":"n"},"steps":[{"step_id":1,"source":"agent","message":"a"}],"subagent_trajectories":[{"schema_version":"ATIF-v1.7","trajectory_id":"c","agent":{"name":"sub"},"steps":[{"step_id":1,"source":"agent","message":"b"}]}]}`, stop)
	require.NoError(t, err)
	require.Len(t, out, 2)
	require.Equal(t, "c", out[1].ID)
	require.Equal(t, `"p"`, string(out[1].Metadata["parent_trajectory"]))
	require.Equal(t, 1, out[1].Origin.Index)
}

func TestLogIsReadSampleBySample(t *testing.T) {
	sample := func(id, epoch string) string {
		return `{"id":"` + id + `","epoch":` + epoch + `,"input":"q","target":"x","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"score":{"value":"C"}}`
	}
	head := "{\n \"version\": 2, \"status\": \"success\",\n \"eval\": {\"run_id\": \"R\", \"task\": \"T\"},\n \"samples\": [\n"
	out, report, err := read(t, "x.json", head+sample("a", "1")+",\n{\"id\":\"bad\",\"epoch\":1,\"messages\":5},\n"+sample("a", "2")+"\n],\n\"reductions\": [1]\n}\n", traj.Options{})
	require.NoError(t, err)
	require.Len(t, out, 2)
	require.Equal(t, 1, report.Skipped)
	require.Equal(t, "R/a/2", out[1].ID)
	require.Equal(t, "T/sample-a", out[1].Group)
	require.Equal(t, 1.0, *out[0].Outcome.Reward)
	log := head + sample("a", "1") + "],\n\"stats\": {\"n\": [1, 2]}\n}\n"
	out, _, err = read(t, "x.json", log+strings.Replace(log, `"R"`, `"S"`, 1), stop)
	require.NoError(t, err)
	require.Len(t, out, 2, "logs one after the other")
	require.Equal(t, "S/a/1", out[1].ID)
	for reason, text := range map[string]string{
		"cut in the head":       head[:40],
		"cut in a sample":       head + sample("a", "1")[:30],
		"cut behind the sample": head + sample("a", "1"),
		"cut behind the list":   head + sample("a", "1") + "]",
	} {
		_, _, err := read(t, "x.json", text, stop)
		require.ErrorContains(t, err, "cut off", reason)
	}
	_, _, err = read(t, "x.json", "{\n \"version\": 1, \"status\": \"error\", \"eval\": {}, \"x\": NaN }", stop)
	require.ErrorContains(t, err, "no rollout found", "a log without samples is known and empty")
}

func TestFaultsAreLocated(t *testing.T) {
	for _, c := range []struct{ reason, name, text, where string }{
		{"a message without role", "x.jsonl", `{"messages":[{"role":"user","content":"q"},{"content":"x"}]}`, "x.jsonl:1, message 1, /role"},
		{"a tool call without name", "x.jsonl", `{"messages":[{"role":"assistant","content":"","tool_calls":[{"id":"c"}]}]}`, "x.jsonl:1, message 0, /tool_calls/0"},
		{"content of the wrong kind", "x.jsonl", `{"messages":[{"role":"user","content":{"a":1}}]}`, "x.jsonl:1, message 0, /content"},
		{"transitions that do not go on where the last one ended", "x.jsonl", `{"responses_create_params":{"input":[]},"response":{"output":[[{"role":"user","content":"q"}],[{"role":"user","content":"p"}]]},"reward":1}`, "x.jsonl:1, /response/output"},
		{"an item that is a list", "x.jsonl", `{"responses_create_params":{"input":[]},"response":{"output":[[],5]},"reward":1}`, "x.jsonl:1, message 0, /output"},
		{"calls that are no list", "x.json", `{"schema_version":"ATIF-v1.5","agent":{},"steps":[{"step_id":1,"source":"agent","message":"a","tool_calls":{"function_name":"f"}}]}`, "x.json:1, message 0, /tool_calls"},
		{"results that are no list", "x.json", `{"schema_version":"ATIF-v1.5","agent":{},"steps":[{"step_id":1,"source":"agent","message":"a","observation":{"results":"o"}}]}`, "x.json:1, message 0, /observation/results"},
		{"a history that is no list", "x.jsonl", `{"instance_id":"i","instruction":"t","metadata":{},"history":"gone"}`, "x.jsonl:1, /history"},
		{"a block that is none", "x.json", `{"request":{"messages":[{"role":"user","content":[null]}]},"response":{"role":"assistant","content":[]}}`, "x.json:1, message 0, /content"},
		{"a filtered reply", "x.json", `{"request":{"messages":[]},"response":{"choices":[{"finish_reason":"content_filter"}]}}`, "x.json:1, message 0, /response/choices"},
		{"a step from nowhere", "x.json", `{"schema_version":"ATIF-v1.5","agent":{},"steps":[{"step_id":1,"source":"robot","message":"a"}]}`, "x.json:1, message 0, /source"},
		{"a speaker without a role", "x.jsonl", `{"conversations":[{"from":"narrator","value":"x"}]}`, "x.jsonl:1, message 0, /from"},
		{"an unknown class", "x.jsonl", `{"id":"a","content":[{"class_":"dance"}]}`, "x.jsonl:1, message 0, /class_"},
		{"messages that are not the JSON they should be", "x.jsonl", `{"messages":"[{"}`, "x.jsonl:1, /messages"},
	} {
		_, _, err := read(t, c.name, c.text, stop)
		require.Error(t, err, c.reason)
		e, ok := err.(*rollout.Error)
		require.True(t, ok, c.reason)
		require.Equal(t, c.where, e.Where.String(), c.reason)
	}
}

// A record without the list that defines its format is refused, whether the format was
// named or is that of the previous record.
func TestRecordsWithoutTheirListAreRefused(t *testing.T) {
	for format, good := range map[string]string{
		"adp":              `{"id":"a","content":[{"class_":"message_action","content":"a"}],"details":{}}`,
		"atif":             `{"schema_version":"ATIF-v1.5","agent":{},"steps":[{"step_id":1,"source":"agent","message":"a"}]}`,
		"native":           `{"turnpack_version":1,"id":"a","messages":[{"role":"assistant","content":"a"}]}`,
		"nemo-gym":         `{"responses_create_params":{"input":[]},"response":{"output":[]},"reward":1}`,
		"openhands-output": `{"instance_id":"i","instruction":"t","metadata":{},"history":[]}`,
		"sharegpt":         `{"conversations":[{"from":"gpt","value":"a"}]}`,
		"swe-agent-nebius": `{"trajectory":[{"role":"ai","text":"a"}]}`,
	} {
		t.Run(format, func(t *testing.T) {
			_, _, err := read(t, "x.json", `{"id":"b","note":"n"}`, traj.Options{OnError: rollout.OnErrorStop, Format: format})
			require.ErrorContains(t, err, "found nothing, expected")
			got, report, err := read(t, "x.jsonl", good+"\n{\"id\":\"b\",\"note\":\"n\"}\n"+good+"\n", traj.Options{})
			require.NoError(t, err)
			require.Len(t, got, 2)
			require.Len(t, report.Errors, 1)
			require.ErrorContains(t, report.Errors[0], "x.jsonl:2")
		})
	}
}

func TestCallsOfAFolderJoin(t *testing.T) {
	dir := t.TempDir()
	call := func(messages, reply string) []byte {
		return []byte(`{"messages":[` + messages + `],"response":{"id":"` + reply + `","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"` + reply + `"}}]}}`)
	}
	user, a1, obs, summary := `{"role":"user","content":"task"}`, `{"role":"assistant","content":[{"type":"text","text":"a1"}]}`, `{"role":"user","content":"obs"}`, `{"role":"user","content":"summary"}`
	write(t, dir, "run/m-1.json", call(user, "a1"))
	write(t, dir, "run/m-2.json", call(user+","+a1+","+obs, "a2"))
	write(t, dir, "run/m-3.json", call(user+","+summary+","+obs, "a3"))
	write(t, dir, "other/m-1.json", call(user, "b1"))
	got := all(t, traj.Options{OnError: rollout.OnErrorStop, JoinCalls: true}, dir)
	require.Len(t, got, 2)
	r := got[1]
	require.NoError(t, r.Validate())
	require.Equal(t, "user assistant user assistant user assistant", roles(r))
	require.Equal(t, "sampled sampled sampled", reasons(r), "a repeated reply stays the sampled one")
	require.Equal(t, rollout.Context{}, r.Turns[0].Context)
	require.Equal(t, rollout.Context{}, r.Turns[1].Context, "the plain history")
	require.Equal(t, []rollout.ContextPart{{From: 0, To: 1}, {From: 4, To: 5}, {From: 2, To: 3}}, r.Turns[2].Context.Parts, "the condensed one")
	require.Equal(t, []int{1, 3, 5}, []int{r.Turns[0].Message, r.Turns[1].Message, r.Turns[2].Message})
	require.Len(t, all(t, stop, dir), 4)
	_, err := traj.JoinRecorded([]*rollout.Rollout{r})
	require.ErrorIs(t, err, rollout.KindInput)
}

// If a request repeats a reply without its reasoning, as most clients do, then that is what
// the model saw.
func TestJoinedRequestsKeepTheirReasoning(t *testing.T) {
	dir := t.TempDir()
	call := func(messages, reply string) []byte {
		return []byte(`{"messages":[{"role":"user","content":"q"}` + messages + `],"response":{"choices":[{"message":` + reply + `}]}}`)
	}
	const bare, thought, obs = `,{"role":"assistant","content":"a"}`, `{"role":"assistant","content":"a","reasoning_content":"h"}`, `,{"role":"user","content":"o"}`
	write(t, dir, "m-1.json", call("", thought))
	write(t, dir, "m-2.json", call(bare+obs, `{"role":"assistant","content":"b"}`))
	write(t, dir, "m-3.json", call(","+thought+obs, `{"role":"assistant","content":"c"}`))
	write(t, dir, "m-4.json", call(bare+obs, `{"role":"assistant","content":"d"}`))
	r := all(t, traj.Options{OnError: rollout.OnErrorStop, JoinCalls: true}, dir)[0]
	require.NoError(t, r.Validate())
	require.Equal(t, "user assistant user assistant assistant assistant", roles(r))
	require.Equal(t, "h", r.Messages[1].Reasoning)
	parts := r.Turns[1].Context.Parts
	require.Len(t, parts, 3)
	require.Equal(t, "a", parts[1].Message.Content)
	require.Empty(t, parts[1].Message.Reasoning)
	require.Equal(t, []rollout.ContextPart{{From: 0, To: 3}}, r.Turns[2].Context.Parts)
	require.Same(t, parts[1].Message, r.Turns[3].Context.Parts[1].Message, "it is kept once")
}

// Tools of a call that differ from the run's are part of what the model saw.
func TestJoinedCallsWithOtherTools(t *testing.T) {
	dir := t.TempDir()
	call := func(messages, tools, id string) []byte {
		return []byte(`{"messages":[{"role":"user","content":"q"}` + messages + `],"tools":[` + tools + `],"response":{"id":"` + id + `","choices":[{"message":{"role":"assistant","content":"` + id + `"}}]}}`)
	}
	const f, more = `{"type":"function","function":{"name":"f"}}`, `,{"role":"assistant","content":"r1"},{"role":"user","content":"o"}`
	write(t, dir, "m-1.json", call("", f, "r1"))
	write(t, dir, "m-2.json", call(more, "", "r2"))
	write(t, dir, "m-3.json", call(more, f, "r3"))
	r := all(t, traj.Options{OnError: rollout.OnErrorStop, JoinCalls: true}, dir)[0]
	require.Equal(t, []bool{false, true, false}, []bool{r.Turns[0].Context.Unknown, r.Turns[1].Context.Unknown, r.Turns[2].Context.Unknown})
	require.Equal(t, "tools_differ calls_joined", codes(r))
	require.Contains(t, r.Notes[0].Text, `call "r2" was given 0 tools`)
}
