package tokenize_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// Only another spelling of the same text is spliced.
func TestSpliceComparesWhatTokensSpell(t *testing.T) {
	m := qwen3(t)
	id := func(entries ...string) (ids []rollout.TokenID) {
		for _, e := range entries {
			x, ok := m.Tokenizer.Vocab().ID(e)
			require.True(t, ok, e)
			ids = append(ids, x)
		}
		return ids
	}
	ids := func(text string) []rollout.TokenID {
		return plainIDs(t, m, text, func(engine.AddedMatch) bool { return false })
	}
	stop := id("<|im_end|>")
	for _, tc := range []struct {
		sampled, shown []rollout.TokenID
		rows           int
		reason         string
	}{
		{ids("retrying now"), id("r", "e", "t", "r", "y", "i", "n", "g", "Ġnow"), 1, "letters of the same words"},
		{ids("🙂"), id("ð", "Ł", "Ļ", "Ĥ"), 1, "bytes of the same character"},
		{id("ð", "Ł", "Ļ", "Ĥ"), id("ð", "Ł", "Ļ", "ĥ"), 2, "another byte, which decodes to U+FFFD as the first does"},
		{id("<think>", "so"), append(ids("<think>"), id("so")...), 2, "a marker spelled out is not the marker"},
	} {
		r := &rollout.Rollout{ID: "r", Turns: []rollout.Turn{
			{Message: -1, Prompt: rollout.PromptIDs{Add: ids("go")}, Output: slices.Concat(tc.sampled, stop)},
			{Message: -1, Step: 1, Prompt: rollout.PromptIDs{Add: slices.Concat(ids("go"), tc.shown, stop, ids("on"))}, Output: slices.Concat(ids("yes"), stop)},
		}}
		seqs := encode(t, m, tokenize.Options{Drift: lineage.Options{Drift: "splice"}}, r)
		require.Len(t, seqs, tc.rows, tc.reason)
	}
}
