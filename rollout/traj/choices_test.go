package traj_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// choices is a call with three sampled replies, with ids as vLLM records them.
const choices = `{"request":{"messages":[{"role":"user","content":"q"}],"n":3,"temperature":1},"response":{"id":%q,"model":"m","prompt_token_ids":[1,2],"choices":[` +
	`{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"a"},"token_ids":[3,9],"logprobs":{"content":[{"token":"a","logprob":-1},{"token":".","logprob":-2}]}},` +
	`{"index":1,"finish_reason":"length","message":{"role":"assistant","content":"b b"},"token_ids":[4]},` +
	`{"index":2,"finish_reason":"stop","stop_reason":"END","message":{"role":"assistant","content":"c"},"token_ids":[5]}]}}`

// TestEachChoiceIsARollout: the replies to one prompt form a group, each with its own ids
// and finish reason.
func TestEachChoiceIsARollout(t *testing.T) {
	out, report, err := read(t, "x.jsonl", fmt.Sprintf(choices, "r")+"\n"+fmt.Sprintf(choices, "s"), stop)
	require.NoError(t, err)
	require.Equal(t, 6, report.Rollouts)
	for i, r := range out {
		require.NoError(t, r.Validate())
		id := []string{"r", "s"}[i/3]
		require.Equal(t, []string{id, id + "/1", id + "/2"}[i%3], r.ID)
		require.Equal(t, id, r.Group)
		require.Equal(t, i%3, r.Index)
		require.Equal(t, []string{"a", "b b", "c"}[i%3], r.Messages[1].Content)
		require.Equal(t, "user assistant", roles(r))
		require.Equal(t, []rollout.Status{rollout.StatusCompleted, rollout.StatusTruncated, rollout.StatusCompleted}[i%3], r.Status)
		turn := r.Turns[0]
		require.Equal(t, []rollout.TokenID{1, 2}, turn.Prompt.Add)
		require.Equal(t, [][]rollout.TokenID{{3, 9}, {4}, {5}}[i%3], turn.Output)
		require.Equal(t, [][]float32{{-1, -2}, nil, nil}[i%3], turn.Logprobs)
		require.Equal(t, []string{"", "", "END"}[i%3], turn.StopString)
	}
}

// TestChoicesWithoutAnID: they form a group, and a choice without a message does not
// prevent reading the others.
func TestChoicesWithoutAnID(t *testing.T) {
	const call = `{"messages":[{"role":"user","content":"q"}],"response":{"choices":[{"message":{"role":"assistant","content":"a"}},{"finish_reason":"abort"},{"message":{"role":"assistant","content":"b"}}],"response_token_ids":[[3],[4],[5]]}}`
	out, report, err := read(t, "x.jsonl", call, traj.Options{})
	require.NoError(t, err)
	require.Len(t, out, 2)
	require.Len(t, report.Errors, 1)
	require.ErrorContains(t, report.Errors[0], "choice 1 has no message")
	require.Equal(t, out[0].Group, out[1].Group)
	require.NotEqual(t, out[0].ID, out[1].ID)
	require.Equal(t, []rollout.TokenID{5}, out[1].Turns[0].Output)
}

// TestJoinedCallsTakeOneChoice: the outcome of a run does not apply to replies that the run
// did not continue from.
func TestJoinedCallsTakeOneChoice(t *testing.T) {
	out, _, err := read(t, "x.jsonl", fmt.Sprintf(choices, "r"), traj.Options{OnError: rollout.OnErrorStop, JoinCalls: true})
	require.NoError(t, err)
	require.Len(t, out, 1)
	require.Len(t, out[0].Turns, 1)
	require.Contains(t, codes(out[0]), "other_choices")
}
