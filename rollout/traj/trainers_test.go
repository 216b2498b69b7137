package traj_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
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

	// A trajectory has each call as it was made, with its ids.
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

	for want, line := range map[string]string{
		"the episode has no trace: boom": `{"id":"e","task":{},"traces":[],"errors":[{"type":"E","message":"boom"}]}`,
		"goes on from 5":                 `{"id":"e","task":{},"traces":[{"id":"t","task":{},"agent":{},"nodes":[{"parent":5,"message":{"role":"user","content":"q"}}]}]}`,
	} {
		_, _, err := read(t, "traces.jsonl", line, stop)
		require.ErrorContains(t, err, want)
	}
}
