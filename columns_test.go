package turnpack_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/rollout"
)

// call is what an engine was given and sampled at a turn.
type call struct{ prompt, output []rollout.TokenID }

// random is a rollout whose calls continue, branch, drift or start anew. The first id of each
// output is unique, so that the output is found in any row.
func random(rng *rand.Rand, id string) (*rollout.Rollout, []call) {
	words := func(n int) []rollout.TokenID {
		out := make([]rollout.TokenID, n)
		for i := range out {
			out[i] = rollout.TokenID(rng.IntN(50))
		}
		return out
	}
	resolved := rng.IntN(2) == 0
	r := &rollout.Rollout{ID: id, Group: "g", Status: rollout.StatusCompleted, Outcome: rollout.Outcome{Resolved: &resolved},
		Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "task"}}}
	var calls []call
	for turn := range 1 + rng.IntN(6) {
		c := call{prompt: words(1 + rng.IntN(4)), output: words(1 + rng.IntN(5))}
		c.output[0] = rollout.TokenID(100 + turn)
		if len(calls) > 0 && rng.IntN(8) > 0 {
			from := calls[max(0, len(calls)-1-rng.IntN(3))]
			seen := slices.Concat(from.prompt, from.output)
			if rng.IntN(3) == 0 {
				seen = seen[:1+rng.IntN(len(seen))]
			}
			c.prompt = append(seen, c.prompt...)
		}
		calls = append(calls, c)
		version := int32(turn % 3)
		t := rollout.Turn{Message: -1, Step: turn / 2, Output: c.output, Version: &version}
		t.Prompt.Add = c.prompt
		for range c.output {
			t.Logprobs = append(t.Logprobs, -rng.Float32())
		}
		r.Turns = append(r.Turns, t)
	}
	return r, calls
}

// For any sequence of calls, each sampled token is trained once, in the context that its call saw,
// with its own log probability, version and turn, and nothing else is trained.
func TestEveryCallIsTrainedOnceInItsContext(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 1))
	var src turnpack.Slice
	made := map[string][]call{}
	for i := range 200 {
		r, calls := random(rng, fmt.Sprint(i))
		src, made[r.ID] = append(src, r), calls
	}
	var dst rows
	report, err := turnpack.Pipeline{Model: model(t)}.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	seen := map[string]int{}
	for _, s := range dst.got {
		trained := 0
		for turn, c := range made[s.Rollout] {
			at := len(c.prompt)
			if s.Len() < at+len(c.output) || s.Weight[at] == 0 || !slices.Equal(s.IDs[:at+len(c.output)], slices.Concat(c.prompt, c.output)) {
				continue
			}
			seen[s.Rollout+"/"+fmt.Sprint(turn)]++
			recorded := src[slices.IndexFunc(src, func(r *rollout.Rollout) bool { return r.ID == s.Rollout })].Turns[turn]
			for i := range c.output {
				require.Equal(t, float32(1), s.Weight[at+i], "row %s, seed %d", s.ID, seed)
				require.Equal(t, recorded.Logprobs[i], s.Logprob[at+i], "row %s, seed %d", s.ID, seed)
				require.Equal(t, *recorded.Version, s.Version[at+i], "row %s, seed %d", s.ID, seed)
				require.EqualValues(t, turn, s.Turn[at+i], "row %s, seed %d", s.ID, seed)
				trained++
			}
			require.True(t, s.FirstStep <= recorded.Step && recorded.Step <= s.LastStep, "row %s, seed %d", s.ID, seed)
		}
		require.Equal(t, trained, s.Trained(), "row %s trains what no call sampled there, seed %d", s.ID, seed)
	}
	total := 0
	for id, calls := range made {
		for turn, c := range calls {
			require.Equal(t, 1, seen[id+"/"+fmt.Sprint(turn)], "turn %d of rollout %s, seed %d", turn, id, seed)
			total += len(c.output)
		}
	}
	require.EqualValues(t, total, report.Trained)
	require.Equal(t, total, report.Encode.Exact)
}
