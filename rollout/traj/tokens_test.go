package traj_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// Ids, log probabilities and usage are compared wherever they are recorded: a call where
// they disagree is kept and counted, and its turn is incomplete.
func TestIncompleteCalls(t *testing.T) {
	const prompt = `"prompt_token_ids":[1,2],`
	chat := func(ids, usage string) string {
		return `{"request":{"messages":[{"role":"user","content":"q"}]},"response":{"id":"r",` + prompt + `"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"a"},` + ids + `}]` + usage + `}}`
	}
	anthropic := func(usage string) string {
		return `{"request":{"messages":[{"role":"user","content":"q"}]},"response":{"role":"assistant","content":[{"type":"text","text":"a"}],` + prompt + `"token_ids":[3,4],"usage":{` + usage + `}}}`
	}
	sglang := func(usage string) string {
		return `{"request":{"messages":[{"role":"user","content":"q"}]},"response":{"choices":[{"message":{"role":"assistant","content":"a"},"meta_info":{` + usage + `,"input_token_logprobs":[[null,1,null],[-2.5,2,null]],"output_token_logprobs":[[-0.5,3,"a"],[-1,4,"b"]]}}]}}`
	}
	atif := func(metrics string) string {
		return `{"schema_version":"ATIF-v1.5","agent":{},"steps":[{"step_id":1,"source":"user","message":"q"},{"step_id":2,"source":"agent","message":"a","metrics":{` + metrics + `}}]}`
	}
	responses := func(usage string) string {
		return `{"request":{"input":"q"},"response":{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}],` + prompt + `"output_token_ids":[3,4],"usage":{` + usage + `}}}`
	}
	nemo := func(usage string) string {
		return `{"responses_create_params":{"input":"q"},"reward":1,"response":{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}],"prompt_token_ids":[1,2],"generation_token_ids":[3,4]}],"usage":{` + usage + `}}}`
	}
	const two = `"token_ids":[3,4]`
	for _, c := range []struct{ reason, text, why string }{
		{"no usage", chat(two, ``), ""},
		{"usage as recorded", chat(two, `,"usage":{"prompt_tokens":2,"completion_tokens":2}`), ""},
		{"usage of 0 is none", chat(two, `,"usage":{"prompt_tokens":0,"completion_tokens":0}`), ""},
		{"ids missing", chat(two, `,"usage":{"prompt_tokens":2,"completion_tokens":24}`), "usage counts 24 completion tokens, 2 ids are recorded"},
		{"too many ids", chat(two, `,"usage":{"prompt_tokens":2,"completion_tokens":1}`), "usage counts 1 completion tokens, 2 ids are recorded"},
		{"all ids missing", chat(`"token_ids":[]`, `,"usage":{"prompt_tokens":2,"completion_tokens":4}`), "usage counts 4 completion tokens, 0 ids are recorded"},
		{"none recorded at all", chat(`"token_ids":null`, `,"usage":{"prompt_tokens":2,"completion_tokens":4}`), "usage counts 4 completion tokens, 0 ids are recorded"},
		{"prompt ids missing", chat(two, `,"usage":{"prompt_tokens":9,"completion_tokens":2}`), "usage counts 9 prompt tokens, 2 ids are recorded"},
		{"a log probability missing", chat(two+`,"logprobs":{"content":[{"token":"a","logprob":-1}]}`, ``), "found 1 log probabilities for 2 sampled ids"},
		{"a log probability that is no number", chat(two+`,"logprobs":{"content":[{"token":"a","logprob":-1},{"token":"b","logprob":NaN}]}`, ``), "log probability NaN at position 1"},
		{"a positive log probability", chat(two+`,"logprobs":{"content":[{"token":"a","logprob":-1},{"token":"b","logprob":1}]}`, ``), "log probability 1 at position 1"},
		{"an id beyond any vocabulary", chat(`"token_ids":[3,4294967296]`, ``), "4294967296"},
		{"a negative id", chat(`"token_ids":[3,-4]`, ``), "-4"},
		{"Anthropic", anthropic(`"input_tokens":2,"output_tokens":2`), ""},
		{"Anthropic with a cache counted apart", anthropic(`"input_tokens":1,"cache_read_input_tokens":1,"output_tokens":2`), ""},
		{"Anthropic with a cache counted in", anthropic(`"input_tokens":2,"cache_read_input_tokens":1,"output_tokens":2`), ""},
		{"Anthropic, ids missing", anthropic(`"input_tokens":2,"output_tokens":7`), "usage counts 7"},
		{"SGLang", sglang(`"prompt_tokens":2,"completion_tokens":2`), ""},
		{"SGLang, ids missing", sglang(`"prompt_tokens":2,"completion_tokens":3`), "usage counts 3"},
		{"metrics", atif(`"prompt_tokens":2,"completion_tokens":1,"prompt_token_ids":[1,2],"completion_token_ids":[3]`), ""},
		{"metrics, ids missing", atif(`"prompt_tokens":2,"completion_tokens":5,"prompt_token_ids":[1,2],"completion_token_ids":[3]`), "usage counts 5"},
		{"metrics of unequal length", atif(`"completion_token_ids":[1,2],"logprobs":[-1]`), "found 1 log probabilities for 2"},
		{"metrics without ids", atif(`"prompt_tokens":2,"completion_tokens":5`), ""},
		{"Responses", responses(`"input_tokens":2,"output_tokens":2`), ""},
		{"Responses, ids missing", responses(`"input_tokens":2,"output_tokens":3`), "usage counts 3"},
		{"NeMo-Gym", nemo(`"input_tokens":2,"output_tokens":2`), ""},
		{"NeMo-Gym, ids missing", nemo(`"input_tokens":2,"output_tokens":3`), "usage counts 3"},
	} {
		out, report, err := read(t, "x.jsonl", c.text, stop)
		require.NoError(t, err, c.reason)
		require.Len(t, out, 1, c.reason)
		r := out[0]
		require.NoError(t, r.Validate(), c.reason)
		turn := r.Turns[len(r.Turns)-1]
		if c.why == "" {
			require.Empty(t, turn.Incomplete, c.reason)
			require.Zero(t, report.Incomplete, c.reason)
			continue
		}
		require.Contains(t, turn.Incomplete, c.why, c.reason)
		require.Equal(t, 1, report.Incomplete, c.reason)
		require.Contains(t, codes(r), "incomplete", c.reason)
		require.Equal(t, "a", r.Messages[turn.Message].Content, "%s: the text is kept", c.reason)
	}
}

// Usage counts the tokens of all choices together.
func TestUsageOfSeveralChoices(t *testing.T) {
	for usage, want := range map[int]int{4: 0, 5: 3} {
		_, report, err := read(t, "x.jsonl", fmt.Sprintf(choices[:len(choices)-2]+`,"usage":{"prompt_tokens":2,"completion_tokens":%d}}}`, "r", usage), stop)
		require.NoError(t, err)
		require.Equal(t, want, report.Incomplete)
	}
}

// Token data beside an Anthropic reply is read like that of other engines.
func TestAnthropicTokens(t *testing.T) {
	r := one(t, "x.json", `{"request":{"messages":[{"role":"user","content":"q"}],"temperature":0.5,"top_p":0.9,"top_k":20,"extra_body":{"min_p":0.1,"seed":7}},"response":{"id":"m","role":"assistant","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn",`+
		`"prompt_token_ids":[1,2],"token_ids":[3,4],"logprobs":[-1,-2],"weight_version":"12"}}`)
	turn := r.Turns[0]
	require.Equal(t, []rollout.TokenID{1, 2}, turn.Prompt.Add)
	require.Equal(t, []rollout.TokenID{3, 4}, turn.Output)
	require.Equal(t, []float32{-1, -2}, turn.Logprobs)
	require.Equal(t, int32(12), *turn.Version)
	require.Equal(t, "end_turn", turn.FinishReason)
	require.Equal(t, &rollout.Sampling{Temperature: new(float32(0.5)), TopP: new(float32(0.9)), TopK: new(int32(20)), MinP: new(float32(0.1)), Seed: new(int64(7))}, turn.Sampling)
}

func TestPolicyVersions(t *testing.T) {
	call := func(more string) string {
		return `{"request":{"messages":[{"role":"user","content":"q"}]},"response":{"prompt_token_ids":[1],"choices":[{"message":{"role":"assistant","content":"a"},"token_ids":[3,4,5]` + more + `}}`
	}
	for _, c := range []struct {
		more, note string
		version    *int32
		runs       []rollout.VersionRun
	}{
		{`}]`, "", nil, nil},
		{`,"meta_info":{"weight_version":"7"}}]`, "", new(int32(7)), nil},
		{`,"meta_info":{"weight_version":7}}]`, "", new(int32(7)), nil},
		{`}],"metadata":{"weight_version":"8"}`, "", new(int32(8)), nil},
		{`}],"metadata":{"weight_version":"default"}`, "", nil, nil},
		{`}],"metadata":{"weight_version":"step-8"}`, "version_not_numeric", nil, nil},
		{`,"output_versions":[7,7,8]}]`, "", new(int32(7)), []rollout.VersionRun{{From: 0, Version: 7}, {From: 2, Version: 8}}},
		{`,"output_versions":[7,7,7]}]`, "", new(int32(7)), nil},
		{`,"output_versions":[7,7]}]`, "incomplete", nil, nil},
	} {
		r := one(t, "x.jsonl", call(c.more))
		require.NoError(t, r.Validate(), c.more)
		require.Equal(t, c.note, codes(r), c.more)
		require.Equal(t, c.version, r.Turns[0].Version, c.more)
		require.Equal(t, c.runs, r.Turns[0].Versions, c.more)
	}
}

// Joined calls keep their sampling settings: the run has no temperature if they differ, and
// a note.
func TestJoinedCallsKeepTheirSettings(t *testing.T) {
	call := func(id, more string) string {
		return `{"request":{"messages":[{"role":"user","content":"q"}]` + more + `},"response":{"id":"` + id + `","choices":[{"message":{"role":"assistant","content":"a"}}]}}` + "\n"
	}
	join := func(text string) *rollout.Rollout {
		out, _, err := read(t, "x.jsonl", text, traj.Options{OnError: rollout.OnErrorStop, JoinCalls: true})
		require.NoError(t, err)
		require.Len(t, out, 1)
		return out[0]
	}
	r := join(call("1", `,"temperature":1,"seed":1`) + call("2", `,"temperature":1,"seed":2`))
	require.Equal(t, "calls_joined", codes(r))
	require.Equal(t, float32(1), *r.Temperature)
	r = join(call("1", `,"temperature":1`) + call("2", `,"temperature":0.5`) + call("3", ``))
	require.Equal(t, "sampling_differs calls_joined", codes(r))
	require.Nil(t, r.Temperature)
	require.Equal(t, float32(1), *r.TemperatureAt(0))
	require.Equal(t, float32(0.5), *r.TemperatureAt(1))
	require.Nil(t, r.TemperatureAt(2), "the call does not record it")
	r = join(call("1", `,"temperature":1`) + call("2", `,"temperature":1,"top_p":0.9`))
	require.Equal(t, "sampling_differs calls_joined", codes(r))
	require.Equal(t, float32(1), *r.Temperature)
}
