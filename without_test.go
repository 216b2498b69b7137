package turnpack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// Rollouts whose every turn has the engine's ids need no model: the trained tokens are the same as
// with one. Other rollouts are errors.
func TestCapturedRolloutsNeedNoModel(t *testing.T) {
	captured := func(i int) *rollout.Rollout {
		r := attempt("a", i, i == 0)
		r.Turns = rollout.TurnsOf(r)
		r.Turns[0].Prompt.Add, r.Turns[0].Output, r.Turns[0].Logprobs = []rollout.TokenID{5, 6}, []rollout.TokenID{70, 80, 90}, []float32{-1, -2, -3}
		for k := 1; k < len(r.Turns); k++ {
			r.Turns[k].Prompt = rollout.PromptIDs{Base: rollout.At(k - 1), Keep: 5 + 4*(k-1), Add: []rollout.TokenID{9, 10}}
			r.Turns[k].Output, r.Turns[k].Logprobs = []rollout.TokenID{100, 2}, []float32{-4, -5}
		}
		return r
	}
	src := turnpack.Slice{captured(0), captured(1)}
	for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep} {
		o := tokenize.Options{Mode: mode}
		var with, without rows
		_, err := turnpack.Pipeline{Model: model(t), Encode: o}.Run(t.Context(), src, &with)
		require.NoError(t, err)
		_, err = turnpack.Pipeline{Encode: o}.Run(t.Context(), src, &without)
		require.NoError(t, err)
		require.Len(t, without.got, len(with.got))
		for i, s := range without.got {
			require.Equal(t, with.got[i].IDs, s.IDs)
			require.Equal(t, with.got[i].Weight, s.Weight)
			require.Equal(t, with.got[i].Logprob, s.Logprob)
			require.Equal(t, with.got[i].Turn, s.Turn)
			require.Equal(t, with.got[i].Fidelity, s.Fidelity)
			require.Equal(t, *with.got[i].Advantage, *s.Advantage)
			require.Empty(t, s.Tokenizer+s.Template)
			require.NoError(t, s.Check())
		}
	}

	var dst rows
	report, err := turnpack.Pipeline{}.Run(t.Context(), turnpack.Slice{captured(0), attempt("b", 0, true)}, &dst)
	require.NoError(t, err)
	require.Len(t, report.Skips, 1)
	require.ErrorContains(t, report.Skips[0].Error, attempt("b", 0, true).ID)
	require.ErrorContains(t, report.Skips[0].Error, "no model is given")
	require.NotEmpty(t, dst.got)
	_, err = turnpack.Pipeline{OnError: rollout.OnErrorStop}.Run(t.Context(), turnpack.Slice{attempt("b", 0, true)}, &rows{})
	require.ErrorContains(t, err, "convert --model")

	for note, p := range map[string]turnpack.Pipeline{
		"whole": {Encode: tokenize.Options{Mode: tokenize.Whole}}, "realign": {Encode: tokenize.Options{Drift: lineage.Options{Drift: "realign"}}},
		"splice":    {Encode: tokenize.Options{Drift: lineage.Options{Drift: "splice"}}},
		"reasoning": {Mask: lossmask.Policy{NoReasoning: true}}, "separator": {Mask: lossmask.Policy{TrainSeparator: true}}, "window": {Window: ctxwindow.HeadTail{Budget: 100}},
	} {
		_, err := p.Run(t.Context(), src, &rows{})
		require.ErrorIs(t, err, rollout.KindInput, note)
		require.ErrorContains(t, err, "no model is given", note)
	}
}
