package turnpack_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// captured records for each turn of a rollout the ids of an engine that renders with the same
// template.
func captured(t *testing.T, r *rollout.Rollout) *rollout.Rollout {
	t.Helper()
	enc, err := tokenize.NewEncoder(model(t), tokenize.Options{Mode: tokenize.PerStep})
	require.NoError(t, err)
	steps, _, err := enc.Encode(t.Context(), r)
	require.NoError(t, err)
	var prompts rollout.PromptIndex
	for i, turn := range rollout.TurnsOf(r) {
		s, n := &steps[i], 0
		for s.Flags[n]&rollout.FlagSampled == 0 {
			n++
		}
		turn.Output = s.IDs[n:]
		turn.Prompt = prompts.Add(s.IDs[:n], turn.Output)
		for range turn.Output {
			turn.Logprobs = append(turn.Logprobs, -0.5)
		}
		r.Turns = append(r.Turns, turn)
	}
	return r
}

// A turn whose record is not what was sampled is trained in no mode, whether its ids are recorded
// or not; its text stays context and the other turns are trained.
func TestIncompleteTurnsAreContext(t *testing.T) {
	kit.Long(t)
	for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep, tokenize.Whole} {
		for name, plant := range map[string]func(r *rollout.Rollout){
			"text only": func(r *rollout.Rollout) { r.Turns = []rollout.Turn{{Message: 1}, {Message: 3, Step: 1}} },
			"ids cut": func(r *rollout.Rollout) {
				captured(t, r)
				r.Turns[0].Output, r.Turns[0].Logprobs = r.Turns[0].Output[:1], r.Turns[0].Logprobs[:1]
				full := captured(t, attempt("a", 0, true))
				ids, err := full.PromptTokens(nil, 1)
				require.NoError(t, err)
				r.Turns[1].Prompt = rollout.PromptIDs{Add: ids}
			},
			"ids cut, the next prompt stored against them": func(r *rollout.Rollout) {
				captured(t, r)
				p := &r.Turns[1].Prompt
				full := captured(t, attempt("a", 0, true))
				ids, err := full.PromptTokens(nil, 1)
				require.NoError(t, err)
				own, err := r.PromptTokens(nil, 0)
				require.NoError(t, err)
				r.Turns[0].Output, r.Turns[0].Logprobs = r.Turns[0].Output[:1], r.Turns[0].Logprobs[:1]
				*p = rollout.PromptIDs{Base: rollout.At(0), Keep: len(own) + 1, Add: ids[len(own)+1:]}
			},
			"ids recorded without prompts": func(r *rollout.Rollout) {
				captured(t, r)
				r.Turns[0].Prompt, r.Turns[1].Prompt = rollout.PromptIDs{}, rollout.PromptIDs{}
				r.Turns[0].Output, r.Turns[0].Logprobs = r.Turns[0].Output[:1], nil
			},
		} {
			t.Run(fmt.Sprint(mode, " ", name), func(t *testing.T) {
				r := attempt("a", 0, true)
				plant(r)
				r.Turns[0].Incomplete = "usage counts 24 completion tokens, 1 id is recorded"
				whole := attempt("b", 0, false) // so that the columns exist
				var dst rows
				report, err := turnpack.Pipeline{Model: model(t), Encode: tokenize.Options{Mode: mode}}.Run(t.Context(), turnpack.Slice{r, whole}, &dst)
				require.NoError(t, err)
				require.Equal(t, 1, report.Encode.Incomplete)
				require.Zero(t, report.Encode.EmptyTurns)
				require.Len(t, report.Untrained, 1)
				require.ErrorContains(t, report.Untrained[0].Error, "usage counts 24 completion tokens, 1 id is recorded")
				row := dst.got[0]
				require.Equal(t, [2]int{1, 1}, [2]int{row.FirstTurn, row.LastTurn})
				shown := map[int32]bool{}
				for i, w := range row.Weight {
					require.False(t, w > 0 && row.Turn[i] != 1, "token %d of turn %d is trained", i, row.Turn[i])
					if row.Turn[i] != 1 {
						require.Zero(t, row.Flags[i]&(rollout.FlagSampled|rollout.FlagStop))
					}
					shown[row.Source[i]] = true
				}
				require.Positive(t, row.Trained())
				text, err := model(t).Tokenizer.Decode(row.IDs)
				require.NoError(t, err)
				require.Contains(t, text, "try 0", "the text is context")
			})
		}
	}
	r := attempt("a", 0, true)
	r.Turns = []rollout.Turn{{Message: 1, Incomplete: "x"}, {Message: 3, Incomplete: "y"}}
	var dst rows
	report, err := turnpack.Pipeline{Model: model(t)}.Run(t.Context(), turnpack.Slice{r, attempt("a", 1, false)}, &dst)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"the record of its turns is not what was sampled": 1}, report.WithoutRows)
}

// If the weights change within a turn, each token has its own version, in every mode that keeps the
// recorded ids.
func TestVersionRunsReachTheRows(t *testing.T) {
	for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep} {
		r := captured(t, attempt("a", 0, true))
		r.Turns[0].Version, r.Turns[0].Versions = new(int32(7)), []rollout.VersionRun{{From: 0, Version: 7}, {From: 2, Version: 8}}
		r.Turns[1].Version = new(int32(9))
		var dst rows
		_, err := turnpack.Pipeline{Model: model(t), NoAdvantages: true, Encode: tokenize.Options{Mode: mode}}.Run(t.Context(), turnpack.Slice{r}, &dst)
		require.NoError(t, err)
		got := map[int32][]int32{}
		for _, row := range dst.got {
			for i, turn := range row.Turn {
				if turn >= 0 {
					got[turn] = append(got[turn], row.Version[i])
				} else {
					require.Equal(t, int32(-1), row.Version[i])
				}
			}
		}
		want := []int32{7, 7}
		for range len(r.Turns[0].Output) - 2 {
			want = append(want, 8)
		}
		require.Equal(t, want, got[0])
		require.Subset(t, []int32{9}, got[1])
	}
}

// Single calls with ids outside the vocabulary are left out, with the turns whose prompts repeat
// them; if all calls have such ids, the tokenizer is a different one and the rollout is an error.
func TestIDsOutsideTheVocabulary(t *testing.T) {
	size := int32(model(t).Tokenizer.Vocab().Size())
	for name, c := range map[string]struct {
		plant      func(r *rollout.Rollout)
		incomplete int
		trained    []int32
	}{
		"of the last output":       {func(r *rollout.Rollout) { r.Turns[1].Output[0] = size }, 1, []int32{0}},
		"of an output shown again": {func(r *rollout.Rollout) { r.Turns[0].Output[0] = size }, -1, nil},
		"of an output not shown again": {func(r *rollout.Rollout) {
			ids, err := r.PromptTokens(nil, 1)
			require.NoError(t, err)
			r.Turns[1].Prompt = rollout.PromptIDs{Add: ids}
			r.Turns[0].Output[0] = size
		}, 1, []int32{1}},
	} {
		r := captured(t, attempt("a", 0, true))
		for i := range r.Turns {
			r.Turns[i].Output = append([]int32(nil), r.Turns[i].Output...)
		}
		c.plant(r)
		var dst rows
		report, err := turnpack.Pipeline{Model: model(t), NoAdvantages: true}.Run(t.Context(), turnpack.Slice{r, attempt("b", 0, true)}, &dst)
		require.NoError(t, err, name)
		if c.incomplete < 0 {
			require.Equal(t, 1, report.LeftOut, name)
			require.ErrorContains(t, report.Skips[0].Error, "use the tokenizer the engine served", name)
			continue
		}
		require.Equal(t, c.incomplete, report.Encode.Incomplete, name)
		require.ErrorContains(t, report.Untrained[0].Error, "outside the vocabulary", name)
		var trained []int32
		for i, w := range dst.got[0].Weight {
			if w > 0 && (len(trained) == 0 || trained[len(trained)-1] != dst.got[0].Turn[i]) {
				trained = append(trained, dst.got[0].Turn[i])
			}
			require.Less(t, dst.got[0].IDs[i], size, name)
		}
		require.Equal(t, c.trained, trained, name)
	}
}

// A reply whose author is unknown is not trained, and is reported.
func TestUnmarkedRepliesAreTold(t *testing.T) {
	none, half := attempt("a", 0, true), attempt("a", 1, false)
	none.Messages[1].Sampled, none.Messages[3].Sampled, half.Messages[1].Sampled = 0, 0, 0
	var dst rows
	report, err := turnpack.Pipeline{Model: model(t)}.Run(t.Context(), turnpack.Slice{none, half}, &dst)
	require.NoError(t, err)
	require.Equal(t, 3, report.Encode.Unmarked)
	require.Equal(t, map[string]int{"no reply is marked as sampled": 1}, report.WithoutRows)
	require.Len(t, report.Untrained, 2)
	require.ErrorContains(t, report.Untrained[0].Error, "message 1: the assistant's message is not marked as sampled")
	require.ErrorContains(t, report.Untrained[0].Error, "set Message.Sampled")
	require.Len(t, dst.got, 1)
}

// A run that can train nothing is an error, whatever the reason.
func TestNothingToTrainIsAnError(t *testing.T) {
	unmarked := attempt("a", 0, true)
	unmarked.Messages[1].Sampled, unmarked.Messages[3].Sampled = 0, 0
	var dst rows
	report, err := turnpack.Pipeline{Model: model(t)}.Run(t.Context(), turnpack.Slice{unmarked}, &dst)
	require.ErrorContains(t, err, "no rollout gave a row: 1 no reply is marked as sampled")
	require.ErrorIs(t, err, rollout.KindInput)
	require.Len(t, report.Untrained, 1)
	require.Empty(t, dst.got)
}
