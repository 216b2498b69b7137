package traj_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// shapes are chats and conversations in the forms that people use, with what is read of
// each, or part of the error that refuses it.
var shapes = []struct {
	shape, text string
	want        []string
	refused     string
	check       func(t *testing.T, out []*rollout.Rollout)
}{
	{"system beside the messages", `{"system":"s","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","weight":0},{"role":"assistant","content":"b"}]}`,
		[]string{"openai-chat  unknown: system=s user=q assistant=a assistant=b | unknown sampled | not_to_train"}, "", nil},
	{"system_prompt", `{"system_prompt":"s","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","prompt_token_ids":[1,2],"token_ids":[3]}]}`,
		[]string{"openai-chat  unknown: system=s user=q assistant=a | sampled |"}, "", func(t *testing.T, out []*rollout.Rollout) {
			require.Equal(t, 2, out[0].Turns[0].Message)
		}},
	{"instructions", `{"instructions":"s","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`,
		[]string{"openai-chat  unknown: system=s user=q assistant=a | sampled |"}, "", nil},
	{"instructions that the task repeats", `{"instructions":"sort it","messages":[{"role":"user","content":"Task: sort it"},{"role":"assistant","content":"a"}]}`,
		[]string{"openai-chat  unknown: user=Task: sort it assistant=a | sampled |"}, "", nil},
	{"system in blocks, as the Messages API has it", `{"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}},{"type":"text","text":"t"}],"messages":[{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"h"},{"type":"tool_use","id":"c","name":"f","input":{"x":1.0}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"o"}]},{"role":"assistant","content":"a"}]}`,
		[]string{"openai-chat  unknown: system=st user=q assistant= tool=o assistant=a | sampled sampled |"}, "", func(t *testing.T, out []*rollout.Rollout) {
			require.Equal(t, "h", out[0].Messages[2].Reasoning)
			require.Equal(t, []int{2, 4}, []int{out[0].Turns[0].Message, out[0].Turns[1].Message})
		}},
	{"an empty and a repeated system prompt", `{"system":"","system_prompt":"s","messages":[{"role":"system","content":"s"},{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`,
		[]string{"openai-chat  unknown: system=s user=q assistant=a | sampled |"}, "", nil},
	{"two system prompts", `{"system":"t","messages":[{"role":"system","content":"s"},{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`,
		[]string{"openai-chat  unknown: system=s user=q assistant=a | sampled | system_differs"}, "", nil},
	{"two system prompts beside the messages", `{"system":"s","system_prompt":"t","instructions":"s","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`,
		[]string{"openai-chat  unknown: system=s user=q assistant=a | sampled | system_differs"}, "", nil},
	{"a system prompt that is none", `{"system":{"a":1},"messages":[{"role":"user","content":"q"}]}`, nil, "/system: found an object, expected the text", nil},

	{"reasoning under each of its names", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","thinking":"h1"},{"role":"assistant","content":"b","reasoning_details":[{"type":"reasoning.text","text":"h2"},{"type":"reasoning.summary","summary":"h3"}]},{"role":"assistant","content":"c","reasoning":null,"reasoning_content":"h4"},{"role":"assistant","content":"d","reasoning":"h5","reasoning_details":[{"type":"reasoning.text","text":"h5"}]},{"role":"assistant","content":"e","reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]},{"role":"assistant","content":"f","thinking":[{"type":"thinking","thinking":"h6"}]}]}`,
		[]string{"openai-chat  unknown: user=q assistant=a assistant=b assistant=c assistant=d assistant=e assistant=f | sampled sampled sampled sampled sampled sampled | redacted_thinking"}, "", func(t *testing.T, out []*rollout.Rollout) {
			var got []string
			for _, m := range out[0].Messages[1:] {
				got = append(got, m.Reasoning)
			}
			require.Equal(t, []string{"h1", "h2h3", "h4", "h5", "", "h6"}, got)
		}},

	{"text under value and text", `{"messages":[{"role":"user","value":"q"},{"role":"assistant","text":"a"}]}`,
		[]string{"openai-chat  unknown: user=q assistant=a | sampled |"}, "", nil},
	{"from and value in messages", `{"messages":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}]}`,
		[]string{"openai-chat  unknown: user=q assistant=a | sampled |"}, "", nil},
	{"text in parts", `{"messages":[{"role":"user","content":"q"},{"role":"model","parts":[{"text":"a"}]}]}`, nil, `message 1, /parts: the message has no content, and the key "parts" is not understood`, nil},
	{"text beside a null content", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"output":"a"}]}`, nil, `/output: the message has no content`, nil},
	{"text beside an empty content", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"","response":{"text":"a"}}]}`, nil, `/response: the message has no content`, nil},
	{"a question under another key", `{"messages":[{"role":"user","utterance":"q"},{"role":"assistant","content":"a"}]}`, nil, `message 0, /utterance: `, nil},
	{"a question under a key that nobody knows", `{"messages":[{"role":"user","xyz":"q"},{"role":"assistant","content":"a"}]}`, nil, `the key "xyz" is not understood`, nil},
	{"nothing said", `{"messages":[{"role":"user","content":"q"},{"role":"assistant"}]}`, nil, "message 1, /content: the message has no content", nil},
	{"a spoken reply", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"audio":{"id":"x"}}]}`, nil, "/audio: ", nil},
	{"a null content with calls, an empty one with reasoning", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"c","content":""},{"role":"assistant","content":"","reasoning":"h"}]}`,
		[]string{"openai-chat  unknown: user=q assistant~ tool= assistant= | sampled sampled |"}, "", nil},
	{"replies recorded as empty", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null},{"role":"assistant","content":""},{"role":"assistant","content":"a"}]}`,
		[]string{"openai-chat  unknown: user=q assistant~ assistant= assistant=a | sampled sampled sampled | empty_reply"}, "", nil},
	{"a conversation without a text", `{"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":null}]}`,
		[]string{"sharegpt  unknown: user=q assistant~ | sampled | empty_reply"}, "", nil},
	{"reasoning that is no text", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","reasoning":{"tokens":7}},{"role":"assistant","content":"b","reasoning":{"content":"h"}}]}`,
		[]string{"openai-chat  unknown: user=q assistant=a assistant=b | sampled sampled | reasoning_unreadable"}, "", func(t *testing.T, out []*rollout.Rollout) {
			require.Equal(t, "h", out[0].Messages[2].Reasoning)
		}},
	{"a reply beside the messages", `{"messages":[{"role":"user","content":"q"}],"response":"a"}`, nil, `the key "response" beside them is not understood`, nil},
	{"a part without a kind is the text it holds", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"text":"a"}]}]}`,
		[]string{"openai-chat  unknown: user=q assistant=a | sampled |"}, "", nil},
	{"a part without a kind that holds more", `{"messages":[{"role":"user","content":[{"text":"q","picture":"x"}]},{"role":"assistant","content":"a"}]}`, nil, `has the key "picture" and no type`, nil},

	{"a call as a value", `{"conversations":[{"from":"human","value":"q"},{"from":"tool_call","value":{"name":"f","arguments":{}}}]}`,
		[]string{"sharegpt  unknown: user=q assistant~ | sampled |"}, "", nil},
	{"an empty list of calls", `{"messages":[{"role":"user","content":"q"},{"role":"tool_call","content":"[]"}]}`, nil, "its list of calls empty", nil},
	{"a call that is nothing", `{"messages":[{"role":"user","content":"q"},{"role":"tool_call","content":null}]}`, nil, "/tool_calls/0: found null", nil},
	{"roles of other systems", `{"messages":[{"role":"human","content":"q"},{"role":"ai","content":"a"},{"role":"tool_call","content":"{\"name\":\"f\",\"arguments\":{\"x\":1.0}}"},{"role":"tool_call","content":"{\"name\":\"g\",\"parameters\":{}}"},{"role":"tool_response","content":"o"},{"role":"assistant","content":"b"}]}`,
		[]string{"openai-chat  unknown: user=q assistant=a tool=o assistant=b | sampled sampled |"}, "", func(t *testing.T, out []*rollout.Rollout) {
			calls := out[0].Messages[1].ToolCalls
			require.Len(t, calls, 2)
			require.Equal(t, []string{"f", `{"x":1.0}`, "g", "{}"}, []string{calls[0].Name, calls[0].Arguments, calls[1].Name, calls[1].Arguments})
			require.Equal(t, []int{1, 3}, []int{out[0].Turns[0].Message, out[0].Turns[1].Message})
		}},
	{"a call that is no JSON", `{"messages":[{"role":"user","content":"q"},{"role":"tool_call","content":"f(x)"}]}`, nil, "the message is a call and its text no JSON", nil},
	{"a role that nobody knows", `{"messages":[{"role":"user","content":"q"},{"role":"critic","content":"a"}]}`, nil, `unknown speaker "critic"`, nil},
	{"a recorded call may have any role", `{"request":{"messages":[{"role":"latest_reminder","content":"q"}]},"response":{"choices":[{"message":{"role":"assistant","content":"a"}}]}}`,
		[]string{"openai-wire  unknown: latest_reminder=q assistant=a | sampled |"}, "", nil},
	{"conversations with calls in lists", `{"conversations":[{"from":"human","value":"q"},{"from":"function_call","value":"[{\"name\":\"f\",\"arguments\":{}},{\"name\":\"g\",\"arguments\":{}}]"},{"from":"observation","value":"o"},{"from":"gpt","value":"a"}],"system_prompt":"s"}`,
		[]string{"sharegpt  unknown: system=s user=q assistant~ tool=o assistant=a | sampled sampled |"}, "", nil},
	{"conversations as text", `{"conversations":"[{\"from\":\"human\",\"value\":\"q\"},{\"from\":\"gpt\",\"value\":\"a\"}]"}`,
		[]string{"sharegpt  unknown: user=q assistant=a | sampled |"}, "", nil},
	{"nebius with a speaker of another system", `{"trajectory":[{"role":"human","text":"q"},{"role":"ai","text":"a"}]}`,
		[]string{"swe-agent-nebius  unknown: user=q assistant=a | sampled |"}, "", nil},
	{"nebius with a speaker that nobody knows", `{"trajectory":[{"role":"critic","text":"q"},{"role":"ai","text":"a"}]}`, nil, `unknown speaker "critic"`, nil},
	{"nebius with a text under another key", `{"trajectory":[{"role":"user","text":"q"},{"role":"ai","message":"a"}]}`, nil, `the key "message" is not understood`, nil},

	{"a preference pair", `{"chosen":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"rejected":[{"role":"user","content":"q"},{"role":"assistant","content":"b"}]}`, nil, "preference pair (chosen, rejected)", nil},
	{"a preference pair beside a prompt", `{"messages":[{"role":"user","content":"q"}],"chosen":"a","rejected":"b"}`, nil, "preference pair", nil},
	{"a preference pair of the fine-tuning API", `{"input":{"messages":[{"role":"user","content":"q"}]},"preferred_output":[{"role":"assistant","content":"a"}],"non_preferred_output":[{"role":"assistant","content":"b"}]}`, nil, "preference pair", nil},
	{"two columns of messages", `{"question":[{"role":"user","content":"q"}],"reply":[{"role":"assistant","content":"a"}]}`, nil, "no known format", nil},
	{"one column of messages", `{"dialogue":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`, nil, "no known format", nil},

	{"prompt and completion as text", `{"prompt":"q","completion":"a","reward":0.5}`,
		[]string{"prompt-completion  unknown: user=q assistant=a | sampled |"}, "", func(t *testing.T, out []*rollout.Rollout) {
			require.Equal(t, 0.5, *out[0].Outcome.Reward)
		}},
	{"prompt and completion as messages", `{"example_id":7,"prompt":[{"role":"system","content":"s"},{"role":"user","content":"q"},{"role":"assistant","content":"shot"},{"role":"user","content":"q2"}],"completion":[{"role":"assistant","content":"a"},{"role":"tool","content":"o"},{"role":"assistant","content":"b"}]}`,
		[]string{"prompt-completion 7 unknown: system=s user=q assistant=shot user=q2 assistant=a tool=o assistant=b | prefilled sampled sampled |"}, "", nil},
	{"messages and a text", `{"prompt":[{"role":"user","content":"q"}],"completion":{"role":"assistant","content":"a"}}`,
		[]string{"prompt-completion  unknown: user=q assistant=a | sampled |"}, "", nil},
	{"a completion that goes on from the prompt", `{"prompt":[{"role":"user","content":"q"},{"role":"assistant","content":"Sure"}],"completion":", here"}`,
		[]string{"prompt-completion  unknown: user=q assistant=Sure assistant=, here | prefilled sampled | continues_prefill"}, "", func(t *testing.T, out []*rollout.Rollout) {
			require.True(t, out[0].Turns[0].Context.Unknown)
		}},
	{"a prompt that a template wrote", `{"prompt":"<|im_start|>user\nq<|im_end|>\n","completion":"a"}`, nil, "text that a chat template wrote", nil},
	{"a completion without a reply", `{"prompt":"q","completion":[{"role":"user","content":"a"}]}`, nil, "no reply of an assistant", nil},

	{"pictures beside their places", `{"messages":[{"role":"user","content":"<image> q"},{"role":"assistant","content":"a"}],"images":["x.png"]}`, nil, `the column "images" holds what <image> stands for`, nil},
	{"pictures beside the messages", `{"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}],"images":["x.png"]}`, nil, "that the model saw and that are no text", nil},
	{"places of pictures without any", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"images":[null,[]]}`,
		[]string{"openai-chat  unknown: user=q assistant=a | sampled |"}, "", nil},
	{"no pictures", `{"messages":[{"role":"user","content":"an <image> tag"},{"role":"assistant","content":"a"}],"images":[],"image":"docker.io/x"}`, nil, `the column "image"`, nil},
	{"the image of a container", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"images":null,"image":"docker.io/x"}`,
		[]string{"openai-chat  unknown: user=q assistant=a | sampled |"}, "", nil},

	{"tools of the OpenHands system action", `[{"id":0,"action":"system","source":"agent","args":{"content":"s","tools":[{"type":"function","function":{"name":"f","parameters":{}}}]}},{"id":1,"source":"user","action":"message","args":{"content":"q"}},{"id":2,"source":"agent","action":"message","args":{"content":"a"}}]`,
		[]string{"openhands-events  unknown: system=s user=q assistant=a | sampled | reply_not_recorded context_not_recorded"}, "", functionTool},
	{"tau2-bench with its policy", `{"info":{"agent_info":{"implementation":"llm_agent","llm_args":{"temperature":0.5}},"environment_info":{"domain_name":"retail","policy":"p"}},"simulations":[{"id":"u","task_id":"0","termination_reason":"user_stop","messages":[{"role":"assistant","content":"Hi"},{"role":"user","content":"q"},{"role":"assistant","content":"a","usage":{}}]}]}`,
		[]string{"tau-bench 0 completed: system=p assistant=Hi user=q assistant=a | scripted sampled | system_partial tools_not_recorded"}, "", func(t *testing.T, out []*rollout.Rollout) {
			require.False(t, out[0].Turns[0].Context.Unknown)
			require.Equal(t, float32(0.5), *out[0].Temperature)
		}},
	{"tau2-bench with an agent that is told more", `{"info":{"agent_info":{"implementation":"llm_agent_gt"},"environment_info":{"domain_name":"retail","policy":"p"}},"simulations":[{"id":"u","task_id":"0","termination_reason":"user_stop","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","usage":{}}]}]}`,
		[]string{"tau-bench 0 completed: user=q assistant=a | sampled | prompt_not_recorded tools_not_recorded"}, "", func(t *testing.T, out []*rollout.Rollout) {
			require.True(t, out[0].Turns[0].Context.Unknown)
		}},
}

func TestShapes(t *testing.T) {
	for _, c := range shapes {
		t.Run(c.shape, func(t *testing.T) {
			out, report, err := read(t, "x.jsonl", c.text, traj.Options{})
			require.NoError(t, err)
			if c.refused != "" {
				require.Empty(t, out)
				require.Len(t, report.Errors, 1)
				require.ErrorContains(t, report.Errors[0], c.refused)
				return
			}
			require.Empty(t, report.Errors)
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

// Lines with a single column are rollouts of their own, not one group.
func TestConversationLines(t *testing.T) {
	line := `{"conversation":[{"role":"user","content":"q"},{"role":"assistant","content":"%"}]}`
	out, _, err := read(t, "x.jsonl", strings.ReplaceAll(line, "%", "a")+"\n"+strings.ReplaceAll(line, "%", "b"), stop)
	require.NoError(t, err)
	require.Len(t, out, 2)
	require.NotEqual(t, out[0].Group, out[1].Group)
	require.Empty(t, out[0].Instance)
}

// Empty arguments count as no arguments, in every written form.
func TestEmptyArguments(t *testing.T) {
	for _, arguments := range []string{`,"arguments":""`, `,"arguments":null`, ``, `,"arguments":{}`} {
		r := one(t, "x.jsonl", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f"`+arguments+`}}]}]}`)
		require.NoError(t, r.Validate())
		line, notes, err := traj.AppendATIF(nil, r)
		require.NoError(t, err)
		require.Empty(t, notes, arguments)
		require.Contains(t, string(line), `"arguments":{}`)
	}
}

// A system prompt that the files lack can be given: it goes to rollouts without one, with
// the policy of a tau2-bench file inserted, and never to recorded calls.
func TestSystemGiven(t *testing.T) {
	given := func(text, record string) (*rollout.Rollout, error) {
		out, report, err := read(t, "x.jsonl", record, traj.Options{System: text})
		require.NoError(t, err)
		if len(report.Errors) > 0 {
			return nil, report.Errors[0]
		}
		return out[0], out[0].Validate()
	}
	const chat, call = `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`, `{"messages":[{"role":"user","content":"q"}],"response":{"choices":[{"message":{"role":"assistant","content":"a"}}]}}`
	r, err := given("s", chat)
	require.NoError(t, err)
	require.Equal(t, "openai-chat  unknown: system=s user=q assistant=a | sampled | system_given", told(r))
	require.Equal(t, 2, r.Turns[0].Message)
	r, err = given("s", `{"info":{},"history":[{"role":"user","content":"long","agent":"main"},{"role":"assistant","content":"a","agent":"main"}],"trajectory":[{"response":"a","query":[{"role":"user","content":"short"}]}]}`)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, []int{r.Turns[0].Context.Parts[0].From, r.Turns[0].Context.Parts[0].To})
	require.Equal(t, "short", r.Turns[0].Context.Parts[1].Message.Content)
	r, err = given("s", strings.Replace(chat, "[{", `[{"role":"system","content":"t"},{`, 1))
	require.NoError(t, err)
	require.Equal(t, "t", r.Messages[0].Content)
	r, err = given("s", call)
	require.NoError(t, err)
	require.Len(t, r.Messages, 2)
	_, err = given("a {policy}", chat)
	require.ErrorContains(t, err, "the record holds no policy")
	r, err = given("<{policy}>", shapes[len(shapes)-1].text)
	require.NoError(t, err)
	require.Equal(t, "<p>", r.Messages[0].Content)
	require.False(t, r.Turns[0].Context.Unknown)
	codex := lines(codexLine(0, "session_meta", `"id":"c"`), codexSaid(1, "developer", "d"), codexSaid(1, "user", "q"), codexSaid(2, "assistant", "a"))
	r, err = given("", codex)
	require.NoError(t, err)
	require.Contains(t, told(r), "system_not_recorded")
	r, err = given("s", codex)
	require.NoError(t, err)
	require.Equal(t, "codex  unknown: system=s developer=d user=q assistant=a | sampled | tools_not_recorded system_given", told(r))
}

// Files in a folder from which nothing was read are listed; files read beside a dump are
// not.
func TestUnreadFiles(t *testing.T) {
	dir := t.TempDir()
	run := `{"trajectory_format":"slime-mini-swe-remote-1","step_debug":[],"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"info":{"instance_id":"i","patch_source":null,"error":null,"eval_result":null,"exit_status":"submitted"}}`
	for name, text := range map[string]string{
		"run/traj.json": run, "run/meta.json": "{}", "run/patch.diff": " ", "results.jsonl": `{"instance_id":"i","resolved":false}`,
		"summary.json": `{"n":1}`, "notes.md": "x", "README": "x", ".DS_Store": "x", "rewards.csv": "id,reward\nz,1\n", "deep/er/x.log": "x", "deep/y.log": "y",
		"killed.traj": "",
	} {
		write(t, dir, name, []byte(text))
	}
	rewards, err := traj.LoadRewards([]string{filepath.Join(dir, "rewards.csv")})
	require.NoError(t, err)
	require.NoError(t, os.Symlink(filepath.Join(dir, "run"), filepath.Join(dir, "zlink")))
	r, err := traj.Open([]string{dir}, traj.Options{Rewards: []*traj.Rewards{rewards}})
	require.NoError(t, err)
	for _, err := range r.All() {
		require.NoError(t, err)
	}
	var names []string
	for _, x := range r.Report().Unread {
		rel, err := filepath.Rel(dir, x.Path)
		require.NoError(t, err)
		names = append(names, filepath.ToSlash(rel))
	}
	require.Equal(t, []string{"README", "deep/er/x.log", "deep/y.log", "killed.traj", "notes.md", "summary.json", "zlink"}, names)
	require.Equal(t, 7, r.Report().UnreadCount)
	require.Equal(t, map[string]int{".log": 2, ".traj that hold nothing": 1, ".md": 1, ".json of no known format": 1, "without extension": 2}, r.Report().UnreadKinds)
}

// The messages of a SWE-agent 1.0 step are those after the step; its model saw the messages
// after the previous step. Here a processor keeps only the last observation.
func TestStepsRecordedAfterwards(t *testing.T) {
	m := func(role, text string) string {
		return `{"role":"` + role + `","content":"` + text + `","agent":"main"}`
	}
	list := func(of ...string) string { return "[" + strings.Join(of, ",") + "]" }
	const gone = "Old environment output: (1 lines omitted)"
	user, a1, o1, a2, o2, a3, o3 := m("user", "task"), m("assistant", "a1"), m("user", "o1"), m("assistant", "a2"), m("user", "o2"), m("assistant", "a3"), m("user", "o3")
	history := list(user, a1, o1, a2, o2, a3, o3)
	step := func(reply, messages string) string {
		return `{"response":"` + reply + `","messages":` + messages + `}`
	}
	after := []string{list(user, a1, o1), list(user, a1, m("user", gone), a2, o2), list(user, a1, m("user", gone), a2, m("user", gone), a3, o3)}
	r := one(t, "x.traj", `{"info":{},"history":`+history+`,"trajectory":`+list(step("a1", after[0]), step("a2", after[1]), step("a3", after[2]))+`}`)
	require.NoError(t, r.Validate())
	require.Equal(t, rollout.Context{}, r.Turns[0].Context)
	require.Equal(t, rollout.Context{}, r.Turns[1].Context, "the first observation was whole when the second call was made")
	parts := r.Turns[2].Context.Parts
	require.Len(t, parts, 3)
	require.Equal(t, []rollout.ContextPart{{From: 0, To: 2}, {From: 3, To: 5}}, []rollout.ContextPart{parts[0], parts[2]})
	require.Equal(t, gone, parts[1].Message.Content)

	r = one(t, "x.traj", `{"info":{},"history":`+history+`,"trajectory":`+list(step("a1", after[0]), step("a2", "null"), step("a3", after[2]))+`}`)
	require.True(t, r.Turns[2].Context.Unknown, "the messages after the step before are not recorded, and something was shortened")
	require.Contains(t, codes(r), "context_lost")
	whole := list(user, a1, o1, a2, o2, a3, o3)
	r = one(t, "x.traj", `{"info":{},"history":`+history+`,"trajectory":`+list(step("a1", after[0]), step("a2", "null"), step("a3", whole))+`}`)
	require.Equal(t, rollout.Context{}, r.Turns[2].Context, "nothing was shortened after it, so nothing before")
}
