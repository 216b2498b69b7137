package traj_test

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

const verifiersResult = `{"example_id":3,"task":"env","prompt":[{"role":"system","content":"s"},{"role":"user","content":"q"}],"completion":[{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":["{\"id\":\"c\",\"name\":\"f\",\"arguments\":\"{\\\"a\\\": 1}\"}"]},{"role":"tool","content":"o","tool_call_id":"c"},{"role":"assistant","content":"a"}],"answer":"x","info":{},"reward":0.5,"error":null,"is_completed":true,"is_truncated":true,"stop_condition":"max_turns_reached","metrics":{"m":1},"m":1,"tool_defs":[{"name":"f","description":"d","parameters":{"type":"object"}}],"timing":{}`

func TestVerifiersResults(t *testing.T) {
	r := one(t, "results.jsonl", verifiersResult+"}")
	require.NoError(t, r.Validate())
	require.Equal(t, "verifiers", r.Origin.Format)
	require.Equal(t, "system user assistant tool assistant", roles(r))
	require.Equal(t, "sampled sampled", reasons(r))
	require.Equal(t, `{"a": 1}`, r.Messages[2].ToolCalls[0].Arguments)
	require.Equal(t, "hm", r.Messages[2].Reasoning)
	require.Equal(t, `{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}`, string(r.Tools[0]))
	require.Equal(t, "env/example-3", r.Group)
	require.Equal(t, 0.5, *r.Outcome.Reward)
	require.Equal(t, rollout.StatusTruncated, r.Status)
	require.Equal(t, "length", r.Turns[1].FinishReason)

	// A trajectory has each call as it was sent, with its ids.
	call := func(prompt, reply, ids string) string {
		return `{"prompt":[{"role":"user","content":"q"}` + prompt + `],"completion":[{"role":"assistant","content":"` + reply + `"}],"response":{"id":"r` + reply + `"},"tokens":` + ids + `,"is_truncated":false}`
	}
	r = one(t, "results.jsonl", verifiersResult+`,"trajectory":[`+
		call("", "a", `{"prompt_ids":[1,2],"completion_ids":[3],"completion_logprobs":[-0.5]}`)+","+
		call(`,{"role":"user","content":"shorter"}`, "b", `{"prompt_ids":[1,9],"completion_ids":[4,5],"completion_logprobs":[-0.1,-0.2]}`)+`]}`)
	require.NoError(t, r.Validate())
	require.Equal(t, "user assistant user assistant", roles(r))
	require.Equal(t, "0; 0 2", contexts(r))
	require.Equal(t, []rollout.TokenID{4, 5}, r.Turns[1].Output)
	prompt, err := r.PromptTokens(nil, 1)
	require.NoError(t, err)
	require.Equal(t, []rollout.TokenID{1, 9}, prompt)

	// An error has no reward.
	r = one(t, "results.jsonl", `{"example_id":1,"prompt":"q","completion":null,"reward":0.0,"metrics":{},"error":{"error":"E","error_chain_repr":"E('x')","error_chain_str":"x"}}`)
	require.Equal(t, rollout.StatusFailed, r.Status)
	require.Nil(t, r.Outcome.Reward)
	require.Equal(t, "E('x')", r.Failure.Detail)
}

const verifiersTrace = `{"id":"e","env":{"id":"env"},"task":{"type":"T","data":{},"key":"k"},"group":{"id":"g"},"run":{"type":"train","id":"r","work":{"type":"train","step":4,"policy":{"start":7,"end":7}}},"ok":true,"traces":[
{"version":1,"id":"t","task":{"type":"T","data":{},"key":"k"},"agent":{"config":{"model":"m"},"name":"solver","trainable":true},"tools":[{"name":"f","description":"d","parameters":{}}],
"nodes":[{"message":{"role":"system","content":"s"},"token_ids":[1],"mask":[false]},
{"parent":0,"message":{"role":"user","content":"q"},"token_ids":[2,3],"mask":[false,false]},
{"parent":1,"sampled":true,"message":{"role":"assistant","content":"a","tool_calls":[{"id":"c","name":"f","arguments":"{}"}]},"token_ids":[9,4,5],"mask":[false,true,true],"logprobs":[-0.1,-0.2]},
{"parent":2,"message":{"role":"tool","tool_call_id":"c","content":"o"},"token_ids":[6],"mask":[false]},
{"parent":3,"sampled":true,"message":{"role":"assistant","content":"b"},"token_ids":[9,7],"mask":[false,true],"logprobs":[-0.3]},
{"parent":1,"message":{"role":"user","content":"compacted"},"token_ids":[8],"mask":[false]},
{"parent":5,"sampled":true,"message":{"role":"assistant","content":"c"},"token_ids":[9,7],"mask":[false,true],"logprobs":[-0.4]}],
"calls":[{"node":2,"finish_reason":"tool_calls","sampling":{"temperature":0.7}},{"node":6,"finish_reason":"length"}],
"rewards":{"x":{"score":0.5,"weight":2.0},"y":{"score":1.0,"weight":0.0},"z":null},"is_completed":true,"ok":true,"stop_condition":"done","errors":[]},
{"id":"j","task":{"type":"T","data":{},"key":"k"},"agent":{"config":{},"name":"judge","trainable":false},"nodes":[{"message":{"role":"user","content":"q"}},{"parent":0,"sampled":true,"message":{"role":"assistant","content":"fine"}}],"is_completed":true,"ok":true}]}`

func TestVerifiersTraces(t *testing.T) {
	out, _, err := read(t, "traces.jsonl", strings.ReplaceAll(verifiersTrace, "\n", ""), stop)
	require.NoError(t, err)
	require.Len(t, out, 2)
	r := out[0]
	require.NoError(t, r.Validate())
	require.Equal(t, "g", r.Group)
	require.Equal(t, "t", r.ID)
	require.Equal(t, "0 1; 0 1 2 3; 0 1 5", contexts(r))
	for i, want := range [][]rollout.TokenID{{1, 2, 3, 9}, {1, 2, 3, 9, 4, 5, 6, 9}, {1, 2, 3, 8, 9}} {
		got, err := r.PromptTokens(nil, i)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Len(t, r.Turns[i].Logprobs, len(r.Turns[i].Output))
		require.EqualValues(t, 7, *r.Turns[i].Version)
	}
	require.Equal(t, []rollout.TokenID{4, 5}, r.Turns[0].Output)
	require.Equal(t, float32(0.7), *r.Turns[0].Sampling.Temperature)
	require.Equal(t, 1.0, *r.Outcome.Reward)
	require.Equal(t, rollout.StatusTruncated, r.Status)
	require.Equal(t, `{"type":"function","function":{"name":"f","description":"d","parameters":{}}}`, string(r.Tools[0]))
	require.Equal(t, "other_agent", reasons(out[1]))
	require.Empty(t, out[1].Turns)

	// Since 0.4 a path names the tools that it was rendered with; recorded ids hold them.
	r = one(t, "traces.jsonl", `{"id":"t","task":{},"agent":{},"tools":[{"name":"f"},{"name":"g"}],"nodes":[{"tools":[{"name":"f"},{"name":"g"}],"message":{"role":"user","content":"q"}},{"parent":0,"sampled":true,"message":{"role":"assistant","content":"a"}},`+
		`{"tools":[{"name":"g"}],"message":{"role":"user","content":"s"}},{"parent":2,"sampled":true,"message":{"role":"assistant","content":"b"}},{"tools":[{"name":"g"}],"message":{"role":"user","content":"u"},"token_ids":[1],"mask":[false]},{"parent":4,"sampled":true,"message":{"role":"assistant","content":"c"},"token_ids":[2],"mask":[true]}]}`)
	require.Equal(t, "0; ?; 4", contexts(r))
	require.Equal(t, "tools_differ", codes(r))

	for want, line := range map[string]string{
		"the episode has no trace: boom": `{"id":"e","task":{},"traces":[],"errors":[{"type":"E","message":"boom"}]}`,
		"goes on from 5":                 `{"id":"e","task":{},"traces":[{"id":"t","task":{},"agent":{},"nodes":[{"parent":5,"message":{"role":"user","content":"q"}}]}]}`,
	} {
		_, _, err := read(t, "traces.jsonl", line, stop)
		require.ErrorContains(t, err, want)
	}
}

// tokensOf returns the prompt ids and the sampled ids of each turn.
func tokensOf(t *testing.T, r *rollout.Rollout) (out [][2][]rollout.TokenID) {
	for i := range r.Turns {
		p, err := r.PromptTokens(nil, i)
		require.NoError(t, err)
		out = append(out, [2][]rollout.TokenID{p, r.Turns[i].Output})
	}
	return out
}

// trainerDumps are records of trainers' dumps that hold ids.
var trainerDumps = map[string]string{
	"atropos":  `{"tokens":[[1,2,3,4,5,6],[1,2,7]],"masks":[[-100,-100,3,-100,5,6],[-100,-100,7]],"scores":[1.0,-1.0],"advantages":null,"inference_logprobs":[[1.0,1.0,-0.1,1.0,-0.2,-0.3],[1.0,1.0,-0.4]],"messages":[[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"tool","content":"o"},{"role":"assistant","content":"b"}],[{"role":"user","content":"decoded"}]],"ref_logprobs":null}`,
	"nemo-rl":  `{"content":[["q","a"]],"rewards":[0.5],"input_lengths":[4],"token_ids":[[1,2,3,4,0,0]],"token_loss_mask":[[0,0,1,1,0,0]],"sample_loss_mask":[1.0],"advantages":[[0.0]],"generation_logprobs":[[0.0,0.0,-0.1,-0.2,0.0,0.0]],"prev_logprobs":[[0.0]],"idx":0}`,
	"prime-rl": `{"schema_version":1,"step":3,"rank":0,"micro_step":0,"env_name":"e","token_ids":[1,2,3],"position_ids":[0,1,2],"loss_mask":[false,true,true],"advantages":[0,1,1],"inference_logprobs":[0.0,-0.1,-0.2],"trainer_logprobs":[0.0,-0.1,-0.2]}`,
	"rllm":     `{"id":"task:2","task":{},"termination_reason":"env_done","is_correct":true,"trajectories":[{"uid":"u","name":"a","reward":1.0,"steps":[{"id":"s1","prompt_ids":[1,2],"response_ids":[3],"logprobs":[-0.5],"chat_completions":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"weight_version":4},{"id":"s2","prompt_ids":[1,2,3,4],"response_ids":[5],"logprobs":[],"chat_completions":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"r"},{"role":"assistant","content":"b"}]}]}]}`,
}

func TestTrainersDumps(t *testing.T) {
	read1 := func(name string) []*rollout.Rollout {
		out, _, err := read(t, "dump.jsonl", trainerDumps[name], stop)
		require.NoError(t, err, name)
		for _, r := range out {
			require.NoError(t, r.Validate(), name)
			require.Equal(t, name, r.Origin.Format)
		}
		return out
	}
	type pair = [2][]rollout.TokenID
	out := read1("atropos")
	require.Len(t, out, 2)
	require.Equal(t, []pair{{{1, 2}, {3}}, {{1, 2, 3, 4}, {5, 6}}}, tokensOf(t, out[0]))
	require.Equal(t, []float32{-0.2, -0.3}, out[0].Turns[1].Logprobs)
	require.Equal(t, "user assistant tool assistant", roles(out[0]))
	require.Equal(t, []int{1, 3}, []int{out[0].Turns[0].Message, out[0].Turns[1].Message})
	require.Equal(t, out[0].Group, out[1].Group)
	require.Equal(t, []int{0, 1}, []int{out[0].Index, out[1].Index})
	require.Equal(t, -1, out[1].Turns[0].Message)
	require.Equal(t, "messages_left_out", codes(out[1]))
	require.Equal(t, -1.0, *out[1].Outcome.Reward)

	r := read1("nemo-rl")[0]
	require.Equal(t, []pair{{{1, 2}, {3, 4}}}, tokensOf(t, r))
	require.Equal(t, 0.5, *r.Outcome.Reward)
	require.Equal(t, []float32{-0.1, -0.2}, r.Turns[0].Logprobs)

	r = read1("prime-rl")[0]
	require.Equal(t, []pair{{{1}, {2, 3}}}, tokensOf(t, r))
	require.Nil(t, r.Outcome.Reward)

	r = read1("rllm")[0]
	require.Equal(t, []pair{{{1, 2}, {3}}, {{1, 2, 3, 4}, {5}}}, tokensOf(t, r))
	require.Equal(t, "user assistant user assistant", roles(r))
	require.Equal(t, "task 2", r.Group+" "+string(rune('0'+r.Index)))
	require.True(t, *r.Outcome.Resolved)
	require.EqualValues(t, 4, *r.Turns[0].Version)

	for want, line := range map[string]string{
		"found 1 entries for 2 tokens":      `{"tokens":[[1,2]],"masks":[[1]],"scores":[0]}`,
		"no token of the sequence":          `{"tokens":[[1,2]],"masks":[[-100,-100]],"scores":[0]}`,
		"1 sequences have 2 masks":          `{"tokens":[[1,2]],"masks":[[1,2],[1,2]],"scores":[0]}`,
		"neither messages nor ids":          `{"id":"a:0","trajectories":[{"steps":[{"input":"q","output":"a"}]}]}`,
		"found 1 log probabilities for 2":   `{"token_ids":[[1,2]],"token_loss_mask":[[0,1]],"generation_logprobs":[[0.0]]}`,
		"expected ids of tokens":            `{"token_ids":[[1,"x"]],"token_loss_mask":[[0,1]],"generation_logprobs":[[0,0]]}`,
		"step 0 ends with a message of use": `{"id":"a:0","trajectories":[{"steps":[{"chat_completions":[{"role":"user","content":"q"}]}]}]}`,
	} {
		_, _, err := read(t, "dump.jsonl", line, stop)
		require.ErrorContains(t, err, want)
	}
	// A placeholder among the sampled log probabilities.
	r = one(t, "dump.jsonl", `{"tokens":[[1,2,3]],"masks":[[-100,2,3]],"scores":[0],"inference_logprobs":[[1.0,-0.1,1.0]]}`)
	require.NotEmpty(t, r.Turns[0].Incomplete)
}

// Text decoded from ids is shown and never trained.
func TestDecodedDumps(t *testing.T) {
	for name, line := range map[string]string{
		"verl":  `{"input":"user\nq\nassistant\n","output":"a","gts":"x","score":1.0,"step":3,"acc":true}`,
		"skyrl": `{"input_prompt":"<|im_start|>user\nq","output_response":"a<|im_end|>","score":[0,1.0],"stop_reason":"stop","env_class":"e","env_extras":{},"data_source":"d"}`,
		"areal": `{"task_id":7,"sample_idx":0,"seqlen":9,"prompt_len":4,"head_version":2,"tail_version":2,"reward":1.0,"prompt":"<|im_start|>user\nq","completion":"a"}`,
		"trl":   `{"step":1,"prompt":"user\nq","completion":"a","accuracy_reward":1.0,"advantage":0.5}`,
	} {
		r := one(t, "dump.jsonl", line)
		require.NoError(t, r.Validate(), name)
		require.Equal(t, name, r.Origin.Format)
		require.Equal(t, "user assistant", roles(r))
		require.Equal(t, 1.0, *r.Outcome.Reward, name)
		require.NotEmpty(t, r.Turns[0].Incomplete)
		require.True(t, r.Turns[0].Context.Unknown)
		require.Contains(t, codes(r), "incomplete")
	}
	r := one(t, "dump.jsonl", `{"step":1,"prompt":"q","completion":"a","x":1.0,"y":2.0,"advantage":0.5}`)
	require.Nil(t, r.Outcome.Reward)
}

// internal/oracle/slime_fixture.py wrote the file.
func TestSlimeFiles(t *testing.T) {
	r, err := traj.Open([]string{"testdata/slime.pt"}, traj.Options{})
	require.NoError(t, err)
	var out []*rollout.Rollout
	for x, err := range r.All() {
		require.NoError(t, err)
		require.NoError(t, x.Validate())
		out = append(out, x)
	}
	require.Len(t, out, 2)
	require.Len(t, r.Report().Errors, 1)
	require.ErrorContains(t, r.Report().Errors[0], "testdata/slime.pt:3, /response_length: the response has 3 of 2 tokens")
	type pair = [2][]rollout.TokenID
	a, b := out[0], out[1]
	require.Equal(t, []pair{{{1, 2}, {3, 4, 5}}}, tokensOf(t, a))
	require.Equal(t, []float32{-0.1, -0.2, -0.3}, a.Turns[0].Logprobs)
	require.Equal(t, "user assistant", roles(a))
	require.EqualValues(t, 7, *a.Turns[0].Version)
	require.Equal(t, "false", string(a.TemplateKwargs["enable_thinking"]))
	require.Equal(t, "slime group-4 i", a.Origin.Format+" "+a.Group+" "+a.Instance)
	require.Equal(t, []pair{{{1, 2}, {3}}, {{1, 2, 3, 4}, {5}}}, tokensOf(t, b))
	require.Empty(t, b.Messages)
	require.Equal(t, -1.0, *b.Outcome.Reward)
	require.Equal(t, rollout.StatusTruncated, b.Status)
	require.Equal(t, "version_not_known", codes(b))

	// A checkpoint in a folder is ignored, and an error if it was named.
	dir := t.TempDir()
	other := write(t, dir, "model.pt", zipped(t, "m/data.pkl", "\x80\x02}."))
	write(t, dir, "a.jsonl", []byte(chat("a")+"\n"))
	require.Len(t, all(t, stop, dir), 1)
	_, err = traj.Open([]string{other}, stop)
	require.NoError(t, err)
	x, err := traj.Open([]string{other}, stop)
	require.NoError(t, err)
	_, err = first(t, x)
	require.ErrorContains(t, err, "holds no samples of rollouts")
}

// Layouts of fine-tuning sets: a text that the policy did not sample is never read as
// sampled.
func TestFineTuningLayouts(t *testing.T) {
	for reason, c := range map[string]struct{ line, format, roles, why string }{
		"alpaca":                {`{"instruction":"do","input":"this","output":"done","system":"s","history":[["q","a"]]}`, "alpaca", "system user assistant user assistant", "demonstration demonstration"},
		"ms-swift":              {`{"query":"q","response":"a","history":[]}`, "alpaca", "user assistant", "demonstration"},
		"ms-swift with loss":    {`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","loss":false},{"role":"user","content":"q"},{"role":"assistant","content":"b","loss":true}]}`, "openai-chat", "user assistant user assistant", "unknown sampled"},
		"axolotl, parts marked": {`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"ab","train_detail":[{"begin_offset":0,"end_offset":0,"train":false}]}]}`, "openai-chat", "user assistant", "unknown"},
		"axolotl, training":     {`{"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a","training":false}]}`, "sharegpt", "user assistant", "unknown"},
		"LLaMA-Factory, tools":  {`{"conversations":[{"from":"human","value":"q"},{"from":"function_call","value":"{\"name\":\"f\",\"arguments\":{}}"},{"from":"observation","value":"o"},{"from":"gpt","value":"a"}],"system":"s","tools":"[]"}`, "sharegpt", "system user assistant tool assistant", "sampled sampled"},
		"KTO":                   {`{"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}],"kto_tag":false}`, "sharegpt", "user assistant", "sampled"},
	} {
		r := one(t, "x.jsonl", c.line)
		require.NoError(t, r.Validate(), reason)
		require.Equal(t, c.format+" "+c.roles+" "+c.why, r.Origin.Format+" "+roles(r)+" "+reasons(r), reason)
	}
	require.Equal(t, "do\nthis", one(t, "x.jsonl", `{"instruction":"do","input":"this","output":"done"}`).Messages[0].Content)
	require.False(t, *one(t, "x.jsonl", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"kto_tag":false}`).Outcome.Resolved)
	for _, pair := range []string{
		`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"rejected_response":"b"}`,
		`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"rejected_messages":[]}`,
		`{"query":"q","response":"a","rejected_response":"b"}`,
		`{"conversations":[{"from":"human","value":"q"}],"chosen":{"from":"gpt","value":"a"},"rejected":{"from":"gpt","value":"b"}}`,
	} {
		_, _, err := read(t, "x.jsonl", pair, stop)
		require.ErrorContains(t, err, "preference pair")
	}
}

// internal/oracle/skyrl_fixture.py wrote the file.
func TestSkyRLBatches(t *testing.T) {
	out := all(t, stop, "testdata/skyrl.pkl")
	require.Len(t, out, 3)
	type pair = [2][]rollout.TokenID
	require.Equal(t, []pair{{{1, 2}, {3, 4, 5}}}, tokensOf(t, out[0]))
	require.Equal(t, []float32{-0.5, -1, -2}, out[0].Turns[0].Logprobs)
	require.Equal(t, []pair{{{1, 2}, {6}}, {{1, 2, 6, 7}, {8, 9}}}, tokensOf(t, out[1]))
	require.Equal(t, "masked_by_framework", out[2].Failure.Reason)
	require.NotEmpty(t, out[2].Turns[0].Incomplete)
	require.Equal(t, out[0].Group, out[1].Group, "one prompt")
	for _, r := range out {
		require.Equal(t, "skyrl", r.Origin.Format)
		require.NoError(t, r.Validate())
	}

	whole, err := os.ReadFile("testdata/skyrl.pkl")
	require.NoError(t, err)
	// Other pickles in a folder are ignored and listed.
	dir := t.TempDir()
	write(t, dir, "batch.pkl", whole)
	write(t, dir, "other.pkl", []byte("\x80\x02}."))
	x, err := traj.Open([]string{dir}, traj.Options{})
	require.NoError(t, err)
	n := 0
	for _, err := range x.All() {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 3, n)
	require.Zero(t, x.Report().Skipped)
	require.Len(t, x.Report().Unread, 1)
	require.Contains(t, x.Report().Unread[0].Path, "other.pkl")

	dir = t.TempDir()
	for n := 0; n < len(whole); n += 7 {
		x, err := traj.Open([]string{write(t, dir, "a.pkl", whole[:n])}, stop)
		require.NoError(t, err)
		_, err = first(t, x)
		require.Error(t, err, "the first %d of %d bytes", n, len(whole))
	}
}

// Results before September 2025 were numbered as if the rollouts of an example were
// adjacent, although each pass over the examples followed the previous one.
func TestRolloutsOfOlderVerifiersAreGroupedByTheirTask(t *testing.T) {
	row := func(id, q string) string {
		return `{"id":` + id + `,"prompt":[{"role":"user","content":"` + q + `"}],"completion":[{"role":"assistant","content":"a"}],"task":"default","generation_ms":1.5,"scoring_ms":0.1,"total_ms":1.6,"answer":"` + q + `","reward":1.0,"m":1.0}` + "\n"
	}
	out, _, err := read(t, "results.jsonl", row("0", "p")+row("0", "q")+row("1", "p")+row("1", "q"), stop)
	require.NoError(t, err)
	require.Len(t, out, 4)
	require.Equal(t, "verifiers", out[0].Origin.Format)
	require.Equal(t, out[0].Group, out[2].Group)
	require.Equal(t, out[1].Group, out[3].Group)
	require.NotEqual(t, out[0].Group, out[1].Group)
}

// The table that prime-rl sends to its platform holds lists as JSON text.
func TestSamplesOfPrimeRLsPlatformAreMessages(t *testing.T) {
	row := func(sample, rest string) string {
		return `{"run_id":"r","step":40,"tag":"","problem_id":3,"sample_id":` + sample + `,"env_name":"e","task":"default","answer":"x","metrics":"{\"m\": 1.0}","timing":"{}","reward":1.5,"advantage":0.5,"num_input_tokens":0,"num_output_tokens":0,` + rest + "}\n"
	}
	lists := `"info":"","prompt":"[{\"role\": \"user\", \"content\": \"q\"}]","completion":"[{\"role\": \"assistant\", \"content\": null, \"reasoning_content\": \"hm\"}]"`
	branches := `"info":"{}","prompt":"","completion":"[{\"role\": \"user\", \"content\": \"q\"}, {\"role\": \"assistant\", \"content\": \"b\"}]","trajectory":"[{\"messages\": []}, {\"messages\": []}]"`
	steps := `"info":"{}","prompt":"[]","completion":"[]","trajectory":"[{\"prompt\": [{\"role\": \"user\", \"content\": \"q\"}], \"completion\": [{\"role\": \"assistant\", \"content\": \"c\"}]}]"`
	for i, form := range []string{lists, branches, steps} {
		r := one(t, "samples.jsonl", row(strconv.Itoa(i), form))
		require.NoError(t, r.Validate())
		require.Equal(t, "verifiers", r.Origin.Format)
		require.Equal(t, "user assistant", roles(r))
		require.Equal(t, "sampled", reasons(r))
		require.Equal(t, "e/example-3/r/step-40", r.Group)
		require.Equal(t, 1.5, *r.Outcome.Reward)
		require.Len(t, r.Turns, 1)
		require.Empty(t, r.Turns[0].Incomplete)
		require.Equal(t, "r/step-40/"+strconv.Itoa(i), r.ID)
		require.Equal(t, i == 0, r.Messages[1].Reasoning == "hm")
		require.Equal(t, i == 1, len(r.Notes) == 1 && r.Notes[0].Code == "branches_left_out")
	}

	// If the whole episode is beside its summary, the episode is read.
	whole := strings.ReplaceAll(verifiersTrace, "\n", "")
	quoted, err := json.Marshal(`{"native_wrapper":` + whole + `}`)
	require.NoError(t, err)
	out, _, err := read(t, "samples.jsonl", row("3", `"prompt":"","completion":"[]","info":`+string(quoted)), stop)
	require.NoError(t, err)
	require.Len(t, out, 2)
	require.Equal(t, "t", out[0].ID)
}
