package capture_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/capture"
)

func TestSpellings(t *testing.T) {
	ids := func(a ...rollout.TokenID) []rollout.TokenID { return a }
	lps := func(a ...float32) []float32 { return a }
	for _, c := range []struct {
		reason, raw string
		want        capture.Tokens
	}{
		{"nothing recorded", `{"choices":[{"message":{"content":"x"},"logprobs":null}]}`, capture.Tokens{}},
		{"vLLM chat with return_token_ids", `{"prompt_token_ids":[1,2],"choices":[{"finish_reason":"stop","token_ids":[3,4],"logprobs":{"content":[{"token":"a","logprob":-0.5},{"token":"b","logprob":-1}]}}]}`,
			capture.Tokens{Present: true, Prompt: ids(1, 2), Output: ids(3, 4), Logprobs: lps(-0.5, -1), FinishReason: "stop"}},
		{"vLLM completions keep the prompt in the choice", `{"choices":[{"prompt_token_ids":[1],"token_ids":[3]}]}`,
			capture.Tokens{Present: true, Prompt: ids(1), Output: ids(3)}},
		{"vLLM completions have log probabilities by name", `{"choices":[{"token_ids":[3,4],"logprobs":{"tokens":["a","b"],"token_logprobs":[-0.5,-1],"top_logprobs":null}}]}`,
			capture.Tokens{Present: true, Output: ids(3, 4), Logprobs: lps(-0.5, -1)}},
		{"completions with echo begin with the prompt", `{"choices":[{"token_ids":[4],"logprobs":{"tokens":["a","b"],"token_logprobs":[null,-1]}}]}`,
			capture.Tokens{Present: true, Output: ids(4)}},
		{"vLLM tokens spelled as ids", `{"choices":[{"logprobs":{"content":[{"token":"token_id:7","logprob":-0.25}]}}]}`,
			capture.Tokens{Present: true, Output: ids(7), Logprobs: lps(-0.25)}},
		{"OpenAI has log probabilities without ids", `{"choices":[{"logprobs":{"content":[{"token":"a","logprob":-0.25}]}}]}`,
			capture.Tokens{Present: true, Logprobs: lps(-0.25)}},
		{"SGLang", `{"text":"ab","output_ids":[3,4],"meta_info":{"finish_reason":{"type":"length"},"input_token_logprobs":[[null,1,null],[-2.5,2,null]],"output_token_logprobs":[[-0.5,3,"a"],[-1,4,"b"]]}}`,
			capture.Tokens{Present: true, Prompt: ids(1, 2), Output: ids(3, 4), Logprobs: lps(-0.5, -1), FinishReason: "length"}},
		{"SGLang's chat has log probabilities twice, ids once", `{"choices":[{"logprobs":{"content":[{"token":"a","logprob":-0.5}]},"meta_info":{"output_token_logprobs":[[-0.5,3,"a"]]}}]}`,
			capture.Tokens{Present: true, Output: ids(3), Logprobs: lps(-0.5)}},
		{"NeMo-Gym", `{"prompt_token_ids":[1],"generation_token_ids":[2,3],"generation_log_probs":[-1,-2]}`,
			capture.Tokens{Present: true, Prompt: ids(1), Output: ids(2, 3), Logprobs: lps(-1, -2)}},
		{"present but empty", `{"prompt_token_ids":[],"generation_token_ids":[],"generation_log_probs":[]}`, capture.Tokens{Present: true}},
		{"an instrumented vLLM, for each choice", `{"prompt_token_ids":[1],"response_token_ids":[[2,3],[4]]}`, capture.Tokens{Present: true, Prompt: ids(1), Output: ids(2, 3)}},
		{"an OpenHands token event", `{"kind":"TokenEvent","prompt_token_ids":[1],"response_token_ids":[2]}`, capture.Tokens{Present: true, Prompt: ids(1), Output: ids(2)}},
		{"ATIF metrics", `{"prompt_token_ids":[1],"completion_token_ids":[2],"logprobs":[-0.1]}`,
			capture.Tokens{Present: true, Prompt: ids(1), Output: ids(2), Logprobs: lps(-0.1)}},
		{"fields passed through by a proxy", `{"choices":[{"provider_specific_fields":{"token_ids":[9]}}]}`, capture.Tokens{Present: true, Output: ids(9)}},
		{"rounding above 0 is clamped and counted", `{"completion_token_ids":[2],"logprobs":[1e-6]}`, capture.Tokens{Present: true, Output: ids(2), Logprobs: lps(0), Clamped: 1}},
	} {
		got, err := capture.Decode([]byte(c.raw))
		require.NoError(t, err, c.reason)
		require.Equal(t, c.want, got, c.reason)
	}
}

func TestFaultsAreLocated(t *testing.T) {
	for _, c := range []struct{ reason, raw, field string }{
		{"columns of unequal length", `{"completion_token_ids":[1,2],"logprobs":[-1]}`, "logprobs"},
		{"an id that is no integer", `{"token_ids":[1.5]}`, "token_ids"},
		{"a negative id", `{"token_ids":[-1]}`, "token_ids"},
		{"an id beyond 32 bits", `{"token_ids":[4294967296]}`, "token_ids"},
		{"a null log probability", `{"completion_token_ids":[1],"logprobs":[null]}`, "logprobs"},
		{"one beyond 32 bits", `{"completion_token_ids":[1],"logprobs":[-1e39]}`, "logprobs"},
		{"minus infinity is not a usable one", `{"completion_token_ids":[1],"logprobs":[-Infinity]}`, "logprobs"},
		{"a positive one", `{"completion_token_ids":[1],"logprobs":[0.5]}`, "logprobs"},
		{"an entry that is no pair", `{"meta_info":{"output_token_logprobs":[[-1]]}}`, "output_token_logprobs"},
		{"ids that contradict each other", `{"output_ids":[1],"meta_info":{"output_token_logprobs":[[-1,2,null]]}}`, "output_token_logprobs"},
	} {
		_, err := capture.Decode([]byte(c.raw))
		require.ErrorIs(t, err, rollout.KindInput, c.reason)
		require.ErrorContains(t, err, c.field, c.reason)
	}
	_, err := capture.Decode([]byte(`{`))
	require.ErrorIs(t, err, rollout.KindFormat)
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"prompt_token_ids":[1],"choices":[{"token_ids":[2],"logprobs":{"content":[{"logprob":-1}]}}],"meta_info":{"output_token_logprobs":[[-1,2,""]]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := capture.Decode(raw)
		if err == nil && got.Output != nil && got.Logprobs != nil && len(got.Output) != len(got.Logprobs) {
			t.Fatal("accepted columns of unequal length")
		}
	})
}

func ExampleDecode() {
	t, err := capture.Decode([]byte(`{"prompt_token_ids":[1,2],"choices":[{"token_ids":[3,4],"finish_reason":"stop","logprobs":{"content":[{"logprob":-0.5},{"logprob":-1}]}}]}`))
	fmt.Println(t.Prompt, t.Output, t.Logprobs, t.FinishReason, err)
	// Output: [1 2] [3 4] [-0.5 -1] stop <nil>
}

func TestBadLogprobIsLocated(t *testing.T) {
	_, err := capture.Decode([]byte(`{"completion_token_ids":[1,2,3],"logprobs":[-1,-2,0.5]}`))
	require.ErrorContains(t, err, "log probability 0.5 at position 2 ")
}
