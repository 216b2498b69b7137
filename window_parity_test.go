package turnpack_test

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// TestWindowParity plans the contexts of the seed_parity kit with the real tokenizer: each must
// equal the reference's, message by message.
func TestWindowParity(t *testing.T) {
	kit.OneGoroutine(t)
	model := qwen3(t)
	enc, err := tokenize.NewEncoder(model, tokenize.Options{Specials: "parity"})
	require.NoError(t, err)

	type message struct{ Role, Content string }
	type seedCase struct {
		ID     string
		Config struct {
			MaxInput  int     `json:"max_input_tokens"`
			HeadRatio float64 `json:"head_ratio"`
		}
		Messages []message
		Steps    []struct {
			Index   int `json:"step_index"`
			Context []message
		}
	}
	managed := 0
	for c := range kit.Lines[seedCase](t, kit.Dir(t, "conformance", "seed_parity", "seed_parity.jsonl.gz")) {
		r := &rollout.Rollout{ID: c.ID}
		for _, m := range c.Messages {
			r.Messages = append(r.Messages, rollout.Message{Role: rollout.Role(m.Role), Content: m.Content})
		}
		for _, s := range c.Steps {
			r.Turns = append(r.Turns, rollout.Turn{Message: 2 + 2*s.Index})
		}
		contexts, rep, err := ctxwindow.Plan(context.Background(), r, ctxwindow.SWERLPolicy{Budget: c.Config.MaxInput, Head: c.Config.HeadRatio}, enc.Counter(r))
		require.NoError(t, err, c.ID)
		for k, s := range c.Steps {
			if s.Context == nil {
				require.Nil(t, contexts[k].Parts, "%s step %d", c.ID, k)
				continue
			}
			managed++
			var got []message
			for _, p := range contexts[k].Parts {
				if p.Message != nil {
					got = append(got, message{string(p.Message.Role), p.Message.Content})
					continue
				}
				got = append(got, c.Messages[p.From:p.To]...)
			}
			require.Equal(t, s.Context, got, "%s step %d", c.ID, k)
		}
		require.LessOrEqual(t, rep.Windowed, len(c.Steps))
	}
	require.Equal(t, 63, managed)
}

// A template that requires alternating user and assistant messages rejects the contexts of
// SWERLPolicy and accepts those of every other policy, whose note is part of a user message.
func TestNoteUnderAlternatingRoles(t *testing.T) {
	kit.OneGoroutine(t)
	const alternating = `{% for m in messages %}{% set user = m.role == 'user' %}{% if user != (loop.index0 % 2 == 1) and loop.index0 > 0 %}{{ raise_exception('roles must alternate') }}{% endif %}` +
		`<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`
	files := kit.Qwen3(t)
	files["chat_template.jinja"] = &fstest.MapFile{Data: []byte(alternating)}
	model, err := tokenize.Load(".", tokenize.LoadOptions{FS: files})
	require.NoError(t, err)
	enc, err := tokenize.NewEncoder(model, tokenize.Options{Mode: tokenize.PerStep})
	require.NoError(t, err)
	r := trajectory(t, 20)
	const budget = 4000
	_, _, err = ctxwindow.Plan(t.Context(), r, ctxwindow.SWERL(budget), enc.Counter(r))
	require.ErrorIs(t, err, rollout.KindTemplate)
	summary := func(_ context.Context, omitted []rollout.Message) (rollout.Message, error) {
		return rollout.Message{Role: rollout.RoleUser, Content: fmt.Sprint("Done so far: ", len(omitted))}, nil
	}
	for _, policy := range []ctxwindow.Policy{ctxwindow.HeadTail{Budget: budget}, ctxwindow.Tail{Budget: budget}, ctxwindow.Refill{Budget: budget}, ctxwindow.Compaction{Budget: budget, Summarize: summary}} {
		contexts, rep, err := ctxwindow.Plan(t.Context(), r, policy, enc.Counter(r))
		require.NoError(t, err, "%T", policy)
		require.Positive(t, rep.Omitted)
		shown, err := ctxwindow.Apply(r, contexts)
		require.NoError(t, err)
		seqs, _, err := enc.Encode(t.Context(), shown)
		require.NoError(t, err)
		require.Len(t, seqs, 20)
		for k := range seqs {
			seq, trained := &seqs[k], 0
			for i, f := range seq.Flags {
				if f&rollout.FlagSampled != 0 {
					trained++
					require.Equal(t, int32(r.Turns[k].Message), seq.Source[i], "a note is nobody's reply")
				}
			}
			require.LessOrEqual(t, seq.Len()-trained, budget, "%T turn %d: budgets are exact", policy, k)
		}
	}
}
