package tokenize_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/engine"
)

type seedMessage struct{ Role, Content string }

// seedCase is one line of the seed_parity kit.
type seedCase struct {
	ID       string
	Flavour  string
	Messages []seedMessage
	Steps    []struct {
		Index      int           `json:"step_index"`
		Context    []seedMessage `json:"context"`
		Text       string        `json:"assistant_text"`
		Tokens     []rollout.TokenID
		LossMask   []int `json:"loss_mask"`
		RespLength int   `json:"response_length"`
		Status     string
	}
}

func (c *seedCase) rollout() *rollout.Rollout {
	r := &rollout.Rollout{ID: c.ID}
	for _, m := range c.Messages {
		msg := rollout.Message{Role: rollout.Role(m.Role), Content: m.Content}
		if msg.Role == rollout.RoleAssistant {
			msg.Sampled = rollout.SampledByPolicy
			t := rollout.Turn{Message: len(r.Messages), Step: len(r.Turns)}
			if len(r.Turns) < len(c.Steps) {
				if shown := c.Steps[len(r.Turns)].Context; shown != nil {
					t.Context.Parts = []rollout.ContextPart{}
					for _, s := range shown {
						t.Context.Parts = append(t.Context.Parts, rollout.ContextPart{Message: &rollout.Message{Role: rollout.Role(s.Role), Content: s.Content}})
					}
				}
			}
			r.Turns = append(r.Turns, t)
		}
		r.Messages = append(r.Messages, msg)
	}
	return r
}

// By default each step trains exactly the reply and the stop token, after exactly the context the
// model saw: the rollout contract, also where the reference deviates from it.
func TestSeedParityDefaultIsTheContract(t *testing.T) {
	kit.OneGoroutine(t)
	m := qwen3(t)
	stop := m.Stops()[len(m.Stops())-1]
	notSpecial := func(a engine.AddedMatch) bool { return !a.Token.Special }
	cases := slices.Collect(kit.Lines[seedCase](t, kit.Dir(t, "conformance", "seed_parity", "seed_parity.jsonl.gz")))
	require.NotEmpty(t, cases)
	steps, differ := 0, 0
	for _, c := range cases {
		r := c.rollout()
		per := encode(t, m, tokenize.Options{Mode: tokenize.PerStep}, r)
		require.Len(t, per, len(c.Steps), c.ID)
		for i, s := range c.Steps {
			seq := &per[i]
			want := append(plainIDs(t, m, s.Text, notSpecial), stop)
			n := seq.Len() - len(want)
			require.Equal(t, want, seq.IDs[n:], "%s step %d trains the reply as sampled", c.ID, i)
			for k := range seq.IDs {
				require.Equal(t, k >= n, seq.Flags[k]&rollout.FlagSampled != 0, "%s step %d token %d", c.ID, i, k)
			}
			require.NotZero(t, seq.Flags[seq.Len()-1]&rollout.FlagStop)
			steps++
			if s.RespLength != len(want) {
				differ++
			}
		}
		merged := encode(t, m, tokenize.Options{}, r)
		trained := 0
		for i := range merged {
			for _, f := range merged[i].Flags {
				if f&rollout.FlagSampled != 0 {
					trained++
				}
			}
		}
		total := 0
		for i := range per {
			for _, f := range per[i].Flags {
				if f&rollout.FlagSampled != 0 {
					total++
				}
			}
		}
		require.Equal(t, total, trained, "%s: merged rows train each sampled token once", c.ID)
	}
	require.Equal(t, steps, differ, "the reference's response differs in every step")
	t.Logf("%d conversations, %d steps", len(cases), steps)
}
