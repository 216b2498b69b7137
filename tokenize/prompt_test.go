package tokenize_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Prompt returns the prompts that Encode makes for the turns of a conversation, for every template,
// and the origin of each id.
func TestPromptIsThatOfTheTurn(t *testing.T) {
	kit.OneGoroutine(t)
	models := templateModels(t)
	checked := 0
	for _, name := range slices.Sorted(maps.Keys(models)) {
		enc, err := tokenize.NewEncoder(models[name], tokenize.Options{Mode: tokenize.PerStep})
		require.NoError(t, err)
		for _, c := range templateConversations() {
			if c.name == "edges" { // no token crosses the start of a sampled reply
				continue
			}
			r := &rollout.Rollout{ID: c.name, Messages: c.messages}
			if c.tools {
				r.Tools = bashTool
			}
			seqs, _, err := enc.Encode(t.Context(), r)
			if err != nil {
				continue // the template rejects it
			}
			for _, seq := range seqs {
				n := slices.IndexFunc(seq.Flags, func(f rollout.Flag) bool { return f&rollout.FlagSampled != 0 })
				turn := rollout.TurnsOf(r)[seq.LastTurn]
				p, err := enc.Prompt(t.Context(), r, r.Messages[:turn.Message])
				require.NoError(t, err)
				require.Equal(t, seq.IDs[:n], p.IDs, "%s %s", name, c.name)
				require.Equal(t, p.Text.Text, decode(t, models[name], p.IDs))
				for i := range p.IDs {
					start, end := int(p.Offsets[2*i]), int(p.Offsets[2*i+1])
					for _, o := range p.At(start, end) {
						if o.Message >= 0 && o.Field == "content" {
							require.Equal(t, int32(o.Message), seq.Source[i], "%s %s id %d %q", name, c.name, i, p.Text.Text[start:end])
							break
						}
					}
				}
				checked++
			}
		}
	}
	require.Greater(t, checked, 1500)
}
