package traj_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// traps lists the warnings in FORMAT.md of each kit folder, each with a record that shows
// it (a kit file and index, or a text) and the fact that must hold.
var traps = []struct {
	format, trap, from string
	holds              func(r *rollout.Rollout) bool
}{
	{"mini-swe-agent", "v0 is a bare list of messages", "v0-github_issue.traj.json#0", steps(10)},
	{"mini-swe-agent", "v0 may hold an empty user message", `[{"role":"user","content":""},{"role":"assistant","content":"a"}]`, func(r *rollout.Rollout) bool {
		return len(r.Messages) == 2 && !r.Messages[0].NoContent && r.Messages[0].Content == ""
	}},
	{"mini-swe-agent", "early 1.x has no trajectory_format", `{"info":{"mini_version":"1.0.0","exit_status":"Submitted"},"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`, steps(1)},
	{"mini-swe-agent", "v1 echoes the submission as the last user message", "v1-django__django-11163.traj.json.gz#0", func(r *rollout.Rollout) bool {
		return noted("submission_echo")(r) && r.Turns[len(r.Turns)-1].Message < len(r.Messages)-1
	}},
	{"mini-swe-agent", "v2 ends with a message of role exit that no template knows", "v2-generated-toolcall_submitted.traj.json#0", func(r *rollout.Rollout) bool {
		line, _, err := traj.AppendChat(nil, r)
		return err == nil && !strings.Contains(string(line), `"role":"exit"`) && r.Messages[len(r.Messages)-1].Role == rollout.RoleExit
	}},
	{"mini-swe-agent", "v2 content is null or a list", `{"trajectory_format":"mini-swe-agent-1.1","info":{},"messages":[{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"bash","arguments":"{}"}}]}]}`, func(r *rollout.Rollout) bool {
		return r.Messages[0].Content == "q" && r.Messages[1].NoContent
	}},
	{"mini-swe-agent", "v2 Responses messages have no role", "v2-generated-responses_api.traj.json#0", func(r *rollout.Rollout) bool {
		return roles(r) == "system user assistant tool assistant tool assistant exit" && steps(3)(r)
	}},
	{"mini-swe-agent", "reasoning stands in the raw completion only", "v1-django__django-11163.traj.json.gz#0", func(r *rollout.Rollout) bool { return reasoned(r) == 2 }},
	{"mini-swe-agent", "step_limit may be 0.0", `{"trajectory_format":"mini-swe-agent-1","info":{"config":{"agent":{"step_limit":0.0}}},"messages":[{"role":"assistant","content":"a"}]}`, steps(1)},
	{"mini-swe-agent", "a run of 292 messages, one of 868,167 characters", longRun(292, 868_167), func(r *rollout.Rollout) bool {
		return len(r.Messages) == 292 && len(r.Messages[291].Content) == 868_167
	}},
	{"mini-swe-agent", "api_calls may be larger than the steps", `{"info":{"exit_status":"Submitted","model_stats":{"api_calls":3}},"messages":[{"role":"assistant","content":"a"}]}`, noted("calls_without_message")},
	{"mini-swe-agent", "an empty submission is a submission", `{"info":{"exit_status":"Submitted","submission":"","model_stats":{}},"messages":[]}`, func(r *rollout.Rollout) bool { return r.Outcome.Submission != nil }},
	{"mini-swe-agent", "bash blocks in the text are no tool calls", "v2-generated-text_submitted.traj.json#0", func(r *rollout.Rollout) bool { return called(r) == 0 && steps(3)(r) }},

	{"openclaw-rl", "an infrastructure error has no messages, no exit status and an error", "eval-2/traj.json#0", func(r *rollout.Rollout) bool {
		return len(r.Messages) == 0 && r.Outcome.Verdict == rollout.VerdictInfraError
	}},
	{"openclaw-rl", "the reward 0 alone says nothing", "train-eval-failed/traj.json#0", func(r *rollout.Rollout) bool {
		return *r.Outcome.Reward == 0 && r.Outcome.Verdict == rollout.VerdictInfraError
	}},
	{"openclaw-rl", "max_steps is set although the call failed", "train-llm-failed/traj.json#0", func(r *rollout.Rollout) bool {
		return r.Status == rollout.StatusFailed && r.Failure.Reason == "llm_failed"
	}},
	{"openclaw-rl", "group_index is the group", "train-unresolved/traj.json#0", func(r *rollout.Rollout) bool { return r.Group == "group-3" }},
	{"openclaw-rl", "a patch that is absent is no empty patch", "eval-1/traj.json#0", func(r *rollout.Rollout) bool { return r.Outcome.Submission == nil }},
	{"openclaw-rl", "the cut that the model saw is not stored", "eval-0/traj.json#0", noted("context_not_stored")},
	{"openclaw-rl", "a reply without an action is a step", "eval-0/traj.json#0", steps(4)},

	{"swe-agent", "a demonstration is one user message", "gpt4_pydicom-1458_with_demo.traj#0", func(r *rollout.Rollout) bool {
		return string(r.Metadata["demo_messages"]) == "1" && strings.HasPrefix(roles(r), "system user user assistant") && steps(12)(r)
	}},
	{"swe-agent", "a demonstration may be marked by message_type", `{"history":[{"role":"assistant","content":"d","agent":"main","message_type":"demonstration"},{"role":"assistant","content":"a","agent":"main","message_type":"action"}]}`, reasonsAre("demonstration sampled")},
	{"swe-agent", "some files hold only the history", "function_calling_simple_history_only.traj#0", steps(5)},
	{"swe-agent", "content lists and plural tool_call_ids", "v1_claude_pydantic_8316.traj.gz#0", func(r *rollout.Rollout) bool {
		return r.Messages[3].ToolCallID == r.Messages[2].ToolCalls[0].ID && r.Messages[3].Content != ""
	}},
	{"swe-agent", "steps and history differ by one", "gpt4_testrepo_tools.traj#0", func(r *rollout.Rollout) bool {
		return string(r.Metadata["trajectory_len"]) == "5" && steps(4)(r) && noted("step_without_message")(r)
	}},
	{"swe-agent", "assistant content may be empty with the text in thought", `{"info":{},"trajectory":[],"history":[{"role":"assistant","content":"","thought":"I look","agent":"main"}]}`, func(r *rollout.Rollout) bool {
		return string(r.Messages[0].Extra["said_as_thought"]) == `"I look"` && noted("thought_beside_content")(r)
	}},
	{"swe-agent", "state is a JSON string or an object", "ctf_rev_rock.traj#0", steps(12)},
	{"swe-agent", "messages of a step hold the reply and its observation too", "fc_replace_from_source.traj#0", func(r *rollout.Rollout) bool {
		return contextsEnd(r) && steps(13)(r)
	}},
	{"swe-agent", "the exact context is the query of the step", `{"info":{},"history":[{"role":"user","content":"long","agent":"main"},{"role":"assistant","content":"a","agent":"main"}],"trajectory":[{"response":"a","query":[{"role":"user","content":"Old environment output: (9 lines omitted)"}]}]}`, func(r *rollout.Rollout) bool {
		return r.Turns[0].Context.Parts[0].Message.Content == "Old environment output: (9 lines omitted)"
	}},
	{"swe-agent", "files of several agents", `{"info":{},"trajectory":[],"history":[{"role":"assistant","content":"b","agent":"summarizer"},{"role":"assistant","content":"a","agent":"main"}]}`, reasonsAre("other_agent sampled")},
	{"swe-agent", "replay_config is a JSON string", `{"info":{},"trajectory":[],"history":[{"role":"assistant","content":"a","agent":"main"}],"replay_config":"{\"problem_statement\":{\"id\":\"p-1\"}}"}`, func(r *rollout.Rollout) bool { return r.Instance == "p-1" }},

	{"nemo-gym", "input is a string or items", `{"responses_create_params":{"input":"q"},"reward":1,"response":{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}}`, func(r *rollout.Rollout) bool { return roles(r) == "user assistant" }},
	{"nemo-gym", "token fields present and empty are absent", "anyswe_agent_hermes.jsonl.gz#0", func(r *rollout.Rollout) bool { return noted("empty_tokens")(r) && r.Turns[0].Output == nil }},
	{"nemo-gym", "filled token fields cover the whole turn", "competitive_coding_challenges.jsonl.gz#0", func(r *rollout.Rollout) bool {
		return len(r.Turns[0].Output) == 785 && len(r.Turns[0].Logprobs) == 785 && len(r.Turns[0].Prompt.Add) == 109
	}},
	{"nemo-gym", "assistant items of the input are no samples", "tau2.jsonl.gz#0", func(r *rollout.Rollout) bool {
		return strings.HasPrefix(reasons(r), "prefilled") && steps(2)(r)
	}},
	{"nemo-gym", "two turns without anything between them", "gdpval.jsonl.gz#0", steps(9)},
	{"nemo-gym", "user messages inside the output", "grl_sokoban.jsonl.gz#1", steps(20)},
	{"nemo-gym", "rewards are any number", "grl_sokoban.jsonl.gz#1", func(r *rollout.Rollout) bool { return *r.Outcome.Reward == -2.0000000000000004 }},
	{"nemo-gym", "encrypted reasoning has no text", `{"responses_create_params":{"input":"q"},"reward":0,"response":{"output":[{"type":"reasoning","summary":[],"encrypted_content":"gAAAA"}]}}`, func(r *rollout.Rollout) bool { return steps(1)(r) && reasoned(r) == 0 }},
	{"nemo-gym", "mask_sample drops the rollout", `{"responses_create_params":{"input":"q"},"reward":0,"mask_sample":true,"response":{"output":[]}}`, func(r *rollout.Rollout) bool { return r.Failure != nil }},
	{"nemo-gym", "failed runs have an empty output, usage may be null", `{"responses_create_params":{"input":"q"},"reward":0,"response":{"status":"failed","usage":null,"output":[]}}`, func(r *rollout.Rollout) bool { return r.Status == rollout.StatusFailed && steps(0)(r) }},
	{"nemo-gym", "a call without output ends a run", `{"responses_create_params":{"input":"q"},"reward":0,"response":{"output":[{"type":"function_call","name":"f","arguments":"{}","call_id":"c"}]}}`, func(r *rollout.Rollout) bool { return called(r) == 1 }},
	{"nemo-gym", "an output may be a list of lists, each the conversation so far", `{"responses_create_params":{"input":[]},"reward":1,"response":{"contains_transitions":true,"output":[[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"o"},{"role":"assistant","content":"b"}]]}}`, func(r *rollout.Rollout) bool {
		return roles(r) == "user assistant user assistant" && steps(2)(r)
	}},
	{"nemo-gym", "the patch is model_patch, also in metadata", `{"responses_create_params":{"input":"q"},"reward":0,"metadata":{"model_patch":"p"},"response":{"output":[]}}`, func(r *rollout.Rollout) bool { return *r.Outcome.Submission == "p" }},

	{"atif", "after a summary the prompt is not the earlier steps", "terminus2_summarization.json#0", func(r *rollout.Rollout) bool {
		return noted("context_reset")(r) && !r.Turns[0].Context.Unknown && r.Turns[len(r.Turns)-1].Context.Unknown
	}},
	{"atif", "copied context is not sampled", "terminus2_summarization.sub_summary.json#0", func(r *rollout.Rollout) bool { return strings.HasPrefix(reasons(r), "copied_context") && steps(1)(r) }},
	{"atif", "llm_call_count 0 is not from a model", `{"schema_version":"ATIF-v1.7","agent":{},"steps":[{"step_id":1,"source":"agent","message":"a","llm_call_count":0}]}`, reasonsAre("scripted")},
	{"atif", "a result without source_call_id, a null content", `{"schema_version":"ATIF-v1.5","agent":{},"steps":[{"step_id":1,"source":"agent","message":"a","observation":{"results":[{"content":null},{"content":"x"}]}}]}`, func(r *rollout.Rollout) bool {
		return roles(r) == "assistant tool tool" && r.Messages[1].NoContent
	}},
	{"atif", "messages may be parts", `{"schema_version":"ATIF-v1.8","agent":{},"steps":[{"step_id":1,"source":"user","message":[{"type":"text","text":"q"},{"type":"audio","source":{"path":"a.wav","media_type":"audio/wav"}}]}]}`, func(r *rollout.Rollout) bool { return r.Messages[0].Content == "q" && noted("not_text")(r) }},
	{"atif", "the system prompt is often missing", "terminus2_invalid_json.json#0", func(r *rollout.Rollout) bool { return r.Messages[0].Role == rollout.RoleUser }},
	{"atif", "token ids with their log probabilities", "terminus2_summarization.json#0", func(r *rollout.Rollout) bool {
		return len(r.Turns[0].Output) > 0 && len(r.Turns[0].Output) == len(r.Turns[0].Logprobs)
	}},
	{"atif", "there is no reward", "openhands_hello.json#0", func(r *rollout.Rollout) bool { return r.Outcome.Reward == nil }},

	{"openhands-output", "events are flat or pairs in older files", "resolver_output.jsonl.gz#0", steps(4)},
	{"openhands-output", "the exit status is the error before its colon", "multi_swe_bench_output.jsonl.gz#1", func(r *rollout.Rollout) bool {
		return r.ExitStatus == "RuntimeError" && r.Status == rollout.StatusTruncated
	}},
	{"openhands-output", "success of the resolver is an opinion", "resolver_output.jsonl.gz#0", noted("resolved_by_opinion")},
	{"openhands-output", "comment_success may be null", `{"instance_id":"i","instruction":"t","metadata":{},"history":[],"comment_success":null,"success":false}`, func(r *rollout.Rollout) bool { return !*r.Outcome.Resolved }},
	{"openhands-output", "the patch stands in test_result or above", `{"instance_id":"i","instruction":"t","metadata":{},"history":[],"test_result":{"git_patch":"p"},"git_patch":"other"}`, func(r *rollout.Rollout) bool { return *r.Outcome.Submission == "p" }},

	{"openhands-events", "the list begins with state events, ids have gaps", `[{"id":0,"source":"environment","observation":"agent_state_changed","content":""},{"id":4,"source":"user","action":"message","args":{"content":"q"}},{"id":9,"source":"agent","action":"finish","args":{"final_thought":"done"}}]`, func(r *rollout.Rollout) bool {
		return roles(r) == "user assistant" && r.Status == rollout.StatusCompleted
	}},
	{"openhands-events", "content comes from the response, not from message or args", "basic_gui_mode.json#0", func(r *rollout.Rollout) bool {
		return called(r) == 4 && !strings.HasPrefix(r.Messages[1].Content, "Running command")
	}},
	{"openhands-events", "actions without metadata are one turn each", "basic_interactions.json#0", steps(3)},
	{"openhands-events", "recall, change_agent_state and null are skipped", `[{"id":1,"action":"change_agent_state","args":{}},{"id":2,"source":"user","action":"recall","args":{}},{"id":3,"observation":"null","content":""},{"id":4,"source":"user","action":"message","args":{"content":"q"}}]`, func(r *rollout.Rollout) bool { return roles(r) == "user" }},
	{"openhands-events", "condensed history is not marked", "basic.json#0", noted("context_not_recorded")},

	{"openhands-sdk-events", "an observation whose action is missing", "goal_events.jsonl#0", noted("result_without_call")},
	{"openhands-sdk-events", "no system or user event, state updates between", "goal_events.jsonl#0", func(r *rollout.Rollout) bool {
		return roles(r) == "assistant tool tool assistant tool" && reasoned(r) == 2
	}},
	{"openhands-sdk-events", "reasoning of the Responses interface", `{"id":"1","source":"agent","kind":"ActionEvent","thought":[],"tool_name":"f","tool_call_id":"c","tool_call":{"id":"c","name":"f","arguments":"{}"},"llm_response_id":"r","responses_reasoning_item":{"id":"x","summary":["I look"],"encrypted_content":"g"}}`, func(r *rollout.Rollout) bool {
		return r.Messages[0].Reasoning == "I look"
	}},
	{"openhands-sdk-events", "a run may end with an error that no model saw", `{"id":"1","source":"user","kind":"MessageEvent","llm_message":{"role":"user","content":"q"}}` + "\n" + `{"id":"2","source":"environment","kind":"ConversationErrorEvent","code":"Boom","detail":"d"}`, func(r *rollout.Rollout) bool {
		return r.Status == rollout.StatusFailed && r.Failure.Reason == "Boom" && roles(r) == "user"
	}},

	{"llm-completion-log", "only the response is sampled", "fncall-6.json#0", func(r *rollout.Rollout) bool {
		return steps(1)(r) && strings.HasSuffix(reasons(r), "prefilled sampled")
	}},
	{"llm-completion-log", "tool calling emulated in text", "nonfncall-4.json#0", noted("emulated_tools")},
	{"llm-completion-log", "a run is the ordered set of files", "fncall-1.json#0", steps(1)},

	{"openai-wire", "content null or absent on calling turns, parallel calls", "tool_calls_2.json#0", func(r *rollout.Rollout) bool { return r.Messages[2].NoContent && len(r.Messages[2].ToolCalls) == 2 }},
	{"openai-wire", "the Responses API has input and output items", `{"request":{"model":"m","instructions":"s","input":[{"role":"user","content":"q"},{"role":"assistant","content":"b"}],"previous_response_id":null},"response":{"id":"r","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},{"type":"reasoning","summary":[]},{"type":"function_call","name":"f","arguments":"{}","call_id":"c"}]}}`, func(r *rollout.Rollout) bool {
		return roles(r) == "system user assistant assistant" && reasons(r) == "prefilled sampled" && called(r) == 1
	}},

	{"anthropic-messages", "system is a string or blocks", "cache_control.json#0", func(r *rollout.Rollout) bool {
		return r.Messages[0].Role == rollout.RoleSystem && r.Messages[0].Content != ""
	}},
	{"anthropic-messages", "k results become k tool messages, then what the user said", `{"request":{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"},{"type":"tool_result","tool_use_id":"2","content":[{"type":"text","text":"y"}]},{"type":"text","text":"z"}]}]},"response":{"role":"assistant","content":[{"type":"text","text":"a"}]}}`, func(r *rollout.Rollout) bool { return roles(r) == "tool tool user assistant" }},
	{"anthropic-messages", "a reply of calls may hold results of earlier ones", `{"request":{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}]},"response":{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"c","content":"o"},{"type":"tool_use","id":"d","name":"f","input":{}}]}}`, func(r *rollout.Rollout) bool {
		return roles(r) == "user assistant tool assistant" && reasons(r) == "prefilled sampled" && called(r) == 2 && r.Validate() == nil
	}},
	{"anthropic-messages", "input of a call is an object", "tools_parallel.json#0", func(r *rollout.Rollout) bool { return called(r) == 2 && !r.Messages[1].ToolCalls[0].ArgumentsText }},
	{"anthropic-messages", "thinking is reasoning", "thinking.json#0", func(r *rollout.Rollout) bool { return reasoned(r) == 1 }},
	{"anthropic-messages", "redacted thinking has no text", `{"request":{"messages":[]},"response":{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"}]}}`, noted("redacted_thinking")},
	{"anthropic-messages", "images are kept and are no text", "image_history.json#0", noted("images")},

	{"tau-bench", "the user is another model", "gpt-4o-airline.jsonl.gz#0", steps(15)},
	{"tau-bench", "content is null on calling turns", "gpt-4o-airline.jsonl.gz#9", func(r *rollout.Rollout) bool { return called(r) == 1 && strings.HasSuffix(roles(r), "assistant tool") }},
	{"tau-bench", "tools are not in the file", "gpt-4o-airline.jsonl.gz#0", noted("tools_not_recorded")},
	{"tau-bench", "there is no exit status", "gpt-4o-airline.jsonl.gz#0", func(r *rollout.Rollout) bool { return r.ExitStatus == "" && r.Status == rollout.StatusUnknown }},

	{"swe-agent-nebius", "the system text is in system_prompt and text is null", "nebius.jsonl.gz#0", func(r *rollout.Rollout) bool { return r.Messages[0].Content != "" }},
	{"swe-agent-nebius", "null keys may be left out", `{"target":true,"trajectory":[{"role":"system","system_prompt":"s","mask":false},{"role":"ai","text":"a","mask":true}]}`, steps(1)},
	{"swe-agent-nebius", "mask is true on the turns to train", `{"target":true,"trajectory":[{"role":"ai","text":"a","system_prompt":null,"mask":true},{"role":"ai","text":"b","system_prompt":null,"mask":false}]}`, reasonsAre("sampled unknown")},

	{"sharegpt", "an opening OK is scripted and not marked", "agenttuning_db.jsonl#0", noted("perhaps_scripted")},
	{"sharegpt", "an empty system message", "orca_agentinstruct.jsonl#0", func(r *rollout.Rollout) bool {
		return r.Messages[0].Role == rollout.RoleSystem && r.Messages[0].Content == ""
	}},
	{"sharegpt", "role names of all sets", `{"conversations":[{"from":"human","value":"q"},{"role":"model","content":"a"},{"from":"observation","value":"o"},{"from":"gpt","value":"b"},{"from":"function","value":"p"},{"from":"tool","value":"r"}]}`, func(r *rollout.Rollout) bool {
		return roles(r) == "user assistant tool assistant tool tool"
	}},
	{"sharegpt", "a reward where there is one", "eto.jsonl#0", func(r *rollout.Rollout) bool { return *r.Outcome.Reward == 1 }},

	{"adp", "observations of source agent are no samples", `{"id":"a","content":[{"class_":"text_observation","content":"o","source":"agent"},{"class_":"message_action","content":"a"}],"details":{}}`, reasonsAre("other_agent sampled")},
	{"adp", "parallel calls become consecutive actions", `{"id":"a","content":[{"class_":"api_action","function":"f","kwargs":{}},{"class_":"api_action","function":"g","kwargs":{}}],"details":{}}`, steps(2)},
	{"adp", "code is a call with its language as name", "agenttuning_os.jsonl.gz#0", func(r *rollout.Rollout) bool { return r.Messages[1].ToolCalls[0].Name == "bash" }},
	{"adp", "pages are html", "webarena_successful.jsonl.gz#0", func(r *rollout.Rollout) bool {
		return r.Messages[1].Role == rollout.RoleTool && r.Messages[1].Content != ""
	}},
	{"adp", "newer revisions store ATIF", `{"id":"a","schema_version":"ATIF-v1.6","session_id":"s","agent":{"name":"n"},"steps":[{"step_id":1,"source":"agent","message":"a"}]}`, func(r *rollout.Rollout) bool { return r.Origin.Format == "atif" }},

	{"inspect-ai", "long texts stand apart", `{"version":2,"status":"success","eval":{},"samples":[{"id":1,"epoch":1,"input":"q","target":"t","messages":[{"role":"assistant","content":"attachment://0123456789abcdef0123456789abcdef"}],"attachments":{"0123456789abcdef0123456789abcdef":"long"}}]}`, func(r *rollout.Rollout) bool { return r.Messages[0].Content == "long" }},
	{"inspect-ai", "scores may be objects or missing", `{"version":2,"status":"success","eval":{},"samples":[{"id":"s","epoch":1,"input":"q","target":"t","messages":[],"scores":{"m":{"value":{"a":1}}}}]}`, func(r *rollout.Rollout) bool { return r.Outcome.Reward == nil }},
	{"inspect-ai", "a sample of tool errors only", "tool_call_error.json#0", func(r *rollout.Rollout) bool { return steps(0)(r) && len(r.Messages) == 11 }},
	{"inspect-ai", "function is a string and arguments an object", "browser.json.gz#0", func(r *rollout.Rollout) bool { return called(r) == 4 && !r.Messages[1].ToolCalls[0].ArgumentsText }},
	{"inspect-ai", "base64 images", "images_attachments.json#0", noted("images")},
	{"inspect-ai", "epochs of a sample are a group", "streaming.eval#1", func(r *rollout.Rollout) bool { return strings.Contains(r.Group, "sample-") && *r.Outcome.Reward == 1 }},
	{"inspect-ai", "messages of source input are no samples", `{"version":2,"status":"success","eval":{},"samples":[{"id":"s","epoch":1,"input":"q","target":"t","messages":[{"role":"assistant","content":"a","source":"input"},{"role":"assistant","content":"b","source":"generate"},{"role":"assistant","content":"c"}]}]}`, reasonsAre("prefilled sampled sampled")},

	{"openai-chat", "every message carries all keys with nulls", `{"messages":[{"role":"assistant","content":null,"function_call":null,"name":null,"tool_call_id":null,"tool_calls":null}]}`, func(r *rollout.Rollout) bool { return r.Messages[0].NoContent && r.Messages[0].Extra == nil }},
	{"openai-chat", "legacy function_call and role function, two replies in a row", "toucan_function_call.jsonl#0", func(r *rollout.Rollout) bool {
		return roles(r) == "system user assistant assistant tool assistant" && called(r) == 1
	}},
	{"openai-chat", "a call ends the conversation", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}]}`, steps(1)},
	{"openai-chat", "calls as XML in the text are text", "swesmith_ft_xml.jsonl.gz#0", func(r *rollout.Rollout) bool { return called(r) == 0 && steps(37)(r) }},
	{"openai-chat", "messages may be a JSON string", `{"messages":"[{\"role\":\"assistant\",\"content\":\"a\"}]"}`, steps(1)},
	{"openai-chat", "the patch may be test_result.git_patch", `{"messages":[],"test_result":{"git_patch":"p"}}`, func(r *rollout.Rollout) bool { return *r.Outcome.Submission == "p" }},
	{"openai-chat", "the list may be called trajectory, the verdict 1", `{"trajectory_id":"t","instance_id":"i","trajectory":[{"role":"user","content":"q"},{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}],"resolved":1,"model_patch":"p","exit_status":"submit"}`, func(r *rollout.Rollout) bool {
		return r.ID == "t" && steps(1)(r) && *r.Outcome.Resolved && *r.Outcome.Submission == "p"
	}},
	{"openai-chat", "contents may be blocks of another interface", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"h"},{"type":"text","text":"a"},{"type":"tool_use","id":"c","name":"f","input":{"x":1.0}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"o"},{"type":"text","text":"go on"}]},{"role":"assistant","content":"b"}]}`, func(r *rollout.Rollout) bool {
		return roles(r) == "user assistant tool user assistant" && reasons(r) == "sampled sampled" && called(r) == 1 && reasoned(r) == 1 && r.Turns[1].Message == 4
	}},
	{"openai-chat", "a reply of calls may hold results of earlier ones", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"c","content":"o"},{"type":"thinking","thinking":"h"},{"type":"tool_use","id":"d","name":"f","input":{}}]}]}`, func(r *rollout.Rollout) bool {
		return roles(r) == "user assistant tool assistant" && called(r) == 2 && reasoned(r) == 1 && steps(2)(r) && r.Validate() == nil
	}},
	{"openai-chat", "a reply may hold thoughts and results alone", `{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"h"},{"type":"tool_result","tool_use_id":"c","content":"o"}]}]}`, func(r *rollout.Rollout) bool {
		return roles(r) == "tool assistant" && reasoned(r) == 1
	}},
	{"openai-chat", "thinking may stand in blocks beside the content", `{"messages":[{"role":"assistant","content":"a","thinking_blocks":[{"type":"thinking","thinking":"h","signature":"s"}]}]}`, func(r *rollout.Rollout) bool { return r.Messages[0].Reasoning == "h" }},
	{"openai-chat", "a text part may be called content", `{"messages":[{"role":"user","content":[{"type":"text","content":"q"}]}]}`, func(r *rollout.Rollout) bool { return r.Messages[0].Content == "q" }},
}

func steps(n int) func(*rollout.Rollout) bool {
	return func(r *rollout.Rollout) bool { return len(r.Turns) == n }
}

func noted(code string) func(*rollout.Rollout) bool {
	return func(r *rollout.Rollout) bool { return strings.Contains(" "+codes(r)+" ", " "+code+" ") }
}

func reasonsAre(want string) func(*rollout.Rollout) bool {
	return func(r *rollout.Rollout) bool { return reasons(r) == want }
}

func reasoned(r *rollout.Rollout) (n int) {
	for _, m := range r.Messages {
		if m.Reasoning != "" {
			n++
		}
	}
	return n
}

func called(r *rollout.Rollout) (n int) {
	for _, m := range r.Messages {
		n += len(m.ToolCalls)
	}
	return n
}

// contextsEnd reports whether every context ends before its own reply.
func contextsEnd(r *rollout.Rollout) bool {
	for _, t := range r.Turns {
		for _, p := range t.Context.Parts {
			if p.To > t.Message {
				return false
			}
		}
	}
	return true
}

func longRun(messages, characters int) string {
	one := `{"role":"user","content":"q"},`
	return `{"trajectory_format":"mini-swe-agent-1","info":{},"messages":[` + strings.Repeat(one, messages-1) +
		fmt.Sprintf(`{"role":"user","content":%q}]}`, strings.Repeat("a", characters))
}

func TestTraps(t *testing.T) {
	kit.OneGoroutine(t)
	dir := kit.Dir(t, "data", "trajectories")
	covered := map[string]bool{}
	for _, c := range traps {
		t.Run(c.format+"/"+c.trap, func(t *testing.T) {
			covered[c.format] = true
			if strings.HasPrefix(c.from, "{") || strings.HasPrefix(c.from, "[") {
				require.True(t, c.holds(one(t, "x.json", c.from)))
				return
			}
			name, at, _ := strings.Cut(c.from, "#")
			index, err := strconv.Atoi(at)
			require.NoError(t, err)
			require.True(t, c.holds(all(t, traj.Options{OnError: rollout.OnErrorStop, Alone: true}, filepath.Join(dir, c.format, name))[index]))
		})
	}
	folders, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range folders {
		require.True(t, !f.IsDir() || covered[f.Name()], "no trap of %s is tested", f.Name())
	}
}

// Template variables of a call are part of what the model saw.
func TestTemplateVariablesOfCalls(t *testing.T) {
	const ask, answer = `"messages":[{"role":"user","content":"q"}]`, `{"id":"x","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"a"}}]}`
	const off = `"chat_template_kwargs":{"enable_thinking":false}`
	want := map[string]json.RawMessage{"enable_thinking": json.RawMessage("false")}
	for reason, text := range map[string]string{
		"a request":                      `{"request":{` + ask + `,` + off + `},"response":` + answer + `}`,
		"a request's further body":       `{"request":{` + ask + `,"extra_body":{` + off + `}},"response":` + answer + `}`,
		"a completion log":               `{` + ask + `,"kwargs":{"extra_body":{` + off + `}},"response":` + answer + `}`,
		"a call of the Responses API":    `{"request":{"input":"q",` + off + `},"response":{"id":"x","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}}`,
		"a chat record":                  `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],` + off + `}`,
		"a chat record, spelled as text": `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"chat_template_kwargs":"{\"enable_thinking\":false}"}`,
		"a chat record's sampling":       `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"sampling_args":{"extra_body":{` + off + `}}}`,
		"mini-swe-agent":                 `{"trajectory_format":"mini-swe-agent-1","info":{"config":{"model":{"model_kwargs":{"extra_body":{` + off + `}}}}},"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`,
	} {
		got, _, err := read(t, "x.json", text, stop)
		require.NoError(t, err, reason)
		require.Len(t, got, 1, reason)
		require.Equal(t, want, got[0].TemplateKwargs, reason)
		require.NotContains(t, got[0].Metadata, "chat_template_kwargs", reason)
		for _, write := range []func([]byte, *rollout.Rollout) ([]byte, []rollout.Note, error){traj.AppendChat, traj.AppendATIF} {
			line, _, err := write(nil, got[0])
			require.NoError(t, err, reason)
			back, _, err := read(t, "x.jsonl", string(line), stop)
			require.NoError(t, err, reason)
			require.Equal(t, want, back[0].TemplateKwargs, reason)
		}
	}
	high := map[string]json.RawMessage{"reasoning_effort": json.RawMessage(`"high"`)}
	for reason, text := range map[string]string{
		"an effort":                          `{"request":{` + ask + `,"reasoning_effort":"high"},"response":` + answer + `}`,
		"one of the Responses API":           `{"request":{"input":"q","reasoning":{"effort":"high","summary":null}},"response":{"id":"x","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}}`,
		"the template's own variable counts": `{"request":{` + ask + `,"reasoning_effort":"low","chat_template_kwargs":{"reasoning_effort":"high"}},"response":` + answer + `}`,
	} {
		got, _, err := read(t, "x.json", text, stop)
		require.NoError(t, err, reason)
		require.Equal(t, high, got[0].TemplateKwargs, reason)
	}
	_, _, err := read(t, "x.json", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"chat_template_kwargs":[1]}`, stop)
	require.ErrorContains(t, err, "/chat_template_kwargs: found a list, expected an object")

	call := func(id, more string) *rollout.Rollout {
		got, _, err := read(t, "x.json", `{"request":{"messages":[{"role":"user","content":"q`+id+`"}]`+more+`},"response":`+strings.Replace(answer, `"x"`, `"`+id+`"`, 1)+`}`, stop)
		require.NoError(t, err)
		return got[0]
	}
	joined, err := traj.JoinRecorded([]*rollout.Rollout{call("1", ","+off), call("2", ","+off), call("3", "")})
	require.NoError(t, err)
	require.Equal(t, want, joined.TemplateKwargs)
	require.Equal(t, []bool{false, false, true}, []bool{joined.Turns[0].Context.Unknown, joined.Turns[1].Context.Unknown, joined.Turns[2].Context.Unknown})
	require.Equal(t, "template_kwargs_differ", codes(joined))
}

// Chat records have the temperature beside the messages or among the settings.
func TestTemperatureOfChatRecords(t *testing.T) {
	for text, want := range map[string]string{
		`,"temperature":0.5`: "0.5",
		`,"sampling_params":{"temperature":0.5,"top_p":1}`:        "0.5",
		`,"temperature":0.25,"sampling_args":{"temperature":0.5}`: "0.25",
		`,"temperature":-1`: "none",
		`,"temperature":null,"sampling_params":{"temperature":"hot"}`: "none",
		``: "none",
	} {
		got, _, err := read(t, "x.json", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]`+text+`}`, stop)
		require.NoError(t, err, text)
		have := "none"
		if v := got[0].Temperature; v != nil {
			have = fmt.Sprint(*v)
		}
		require.Equal(t, want, have, text)
	}
}

// Engines that stopped at a stop string name it; a number is a stop token.
func TestStopStrings(t *testing.T) {
	const ask = `"messages":[{"role":"user","content":"q"}]`
	for told, want := range map[string]string{
		`,"stop_reason":"Observation:"`: "Observation:", `,"matched_stop":"</function"`: "</function",
		`,"provider_specific_fields":{"stop_reason":"x"}`: "x",
		`,"stop_reason":151645`:                           "", `,"matched_stop":151645`: "", `,"stop_reason":null`: "", ``: "",
		`,"stop_reason":"end_turn"`: "", `,"provider_specific_fields":{"stop_reason":"tool_use"}`: "", `,"stop_reason":"eos"`: "", `,"stop_reason":"stop","matched_stop":"</x>"`: "</x>",
	} {
		response := `{"id":"x","choices":[{"finish_reason":"stop"` + told + `,"message":{"role":"assistant","content":"a"}}]}`
		for reason, text := range map[string]string{
			"an exchange":      `{"request":{` + ask + `},"response":` + response + `}`,
			"a completion log": `{` + ask + `,"response":` + response + `}`,
			"mini-swe-agent":   `{"trajectory_format":"mini-swe-agent-1","info":{},"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","extra":{"response":` + response + `}}]}`,
			"OpenHands":        `[{"source":"user","action":"message","args":{"content":"q"}},{"source":"agent","action":"message","args":{"content":"a"},"tool_call_metadata":{"model_response":` + response + `}}]`,
		} {
			got, _, err := read(t, "x.json", text, stop)
			require.NoError(t, err, reason)
			require.Equal(t, want, got[0].Turns[0].StopString, "%s%s", reason, told)
		}
	}
	got, _, err := read(t, "x.json", `{"request":{`+ask+`},"response":{"id":"m","type":"message","role":"assistant","stop_reason":"stop_sequence","stop_sequence":"END","content":[{"type":"text","text":"a"}]}}`, stop)
	require.NoError(t, err)
	require.Equal(t, "END", got[0].Turns[0].StopString)
}

// A NeMo-Gym run whose response is incomplete ends with a truncated reply; items after the
// reply were not part of the call.
func TestCutRunsOfNeMoGym(t *testing.T) {
	const reply, result = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}`, `{"type":"message","role":"user","content":"next"}`
	for _, c := range []struct{ output, details, want string }{
		{reply + "," + result + "," + reply, `{"reason":"max_output_tokens"}`, " max_output_tokens"},
		{reply + "," + result, `{"reason":"max_output_tokens"}`, ""},
		{reply, `null`, ""},
	} {
		text := `{"responses_create_params":{"input":[{"role":"user","content":"q"}]},"reward":1,"response":{"id":"x","status":"incomplete","incomplete_details":` + c.details + `,"output":[` + c.output + `]}}`
		got, _, err := read(t, "x.json", text, stop)
		require.NoError(t, err)
		var reasons []string
		for _, turn := range got[0].Turns {
			reasons = append(reasons, turn.FinishReason)
		}
		require.Equal(t, c.want, strings.Join(reasons, " "), c.output)
	}
}

// Chat records, and samples without events, give the finish reason of the last reply.
func TestEndOfTheLastReply(t *testing.T) {
	const reply = `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}`
	for text, want := range map[string]string{
		reply + `],"finish_reason":"length"}`:                                                          "length truncated",
		reply + `],"stop_reason":"max_tokens"}`:                                                        "max_tokens truncated",
		reply + `],"finish_reason":"stop","exit_status":"exit_cost"}`:                                  "stop truncated",
		reply + `,{"role":"user","content":"more"}],"finish_reason":"length"}`:                         " truncated",
		strings.Replace(reply, `"a"`, `"a","finish_reason":"stop"`, 1) + `],"finish_reason":"length"}`: "stop truncated",
		reply + `]}`:                       " unknown",
		reply + `],"stop_reason":"limit"}`: " unknown",
	} {
		got, _, err := read(t, "x.json", text, stop)
		require.NoError(t, err, text)
		require.Equal(t, want, got[0].Turns[0].FinishReason+" "+got[0].Status.String(), text)
	}
	sample := `{"eval":{"eval_id":"e"},"samples":[{"id":1,"epoch":1,"input":"q","target":"","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"output":{"choices":[{"stop_reason":"max_tokens","message":{"role":"assistant","content":"a"}}]},"scores":{}}]}`
	got, _, err := read(t, "x.json", sample, traj.Options{OnError: rollout.OnErrorStop, Format: "inspect-ai"})
	require.NoError(t, err)
	require.Equal(t, "max_tokens", got[0].Turns[0].FinishReason)
}
