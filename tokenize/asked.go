package tokenize

import (
	"context"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/completion"
	"github.com/turnpack/turnpack/tokenize/internal/render"
	"github.com/turnpack/turnpack/tokenize/internal/tokens"
)

// StopRewrites returns the token that the chat template shows in history in place of the stop token
// that the model samples, for lineage.Options.StopRewrites; nil if it shows the same. It renders a
// plain reply to find out.
func (m *Model) StopRewrites(ctx context.Context) (map[rollout.TokenID]rollout.TokenID, error) {
	reply := rollout.Message{Role: rollout.RoleAssistant, Content: "Reply."}
	rr := m.rule()
	x, err := rr.Probe(ctx, render.User("x"), reply, render.User("y"))
	if x == nil {
		return nil, err
	}
	after := func(messages int) (string, error) {
		text, err := x.Run(x.All.Prefix(messages), x.Index[:messages], false)
		if err != nil {
			return "", err
		}
		_, end, _ := text.Extent(1, render.PartContent, 0)
		if stop := rr.StopIn(text.Text[end:], &reply); stop != "" {
			return stop, nil
		}
		first, _ := completion.FirstOf(rr.SpecialTexts(), text.Text[end:])
		return first, nil
	}
	sampled, err := after(2)
	if err != nil {
		return nil, err
	}
	shown, err := after(3)
	if err != nil {
		return nil, err
	}
	if sampled == "" || shown == "" || shown == sampled {
		return nil, nil
	}
	ids := map[string]rollout.TokenID{}
	for _, a := range rr.Added {
		ids[a.Content] = a.ID
	}
	return map[rollout.TokenID]rollout.TokenID{ids[sampled]: ids[shown]}, nil
}

// GenerationPrompt returns the tokens with which the chat template opens an assistant turn, nil if
// the model has no template or the template writes none.
func (m *Model) GenerationPrompt(ctx context.Context) ([]rollout.TokenID, error) {
	x, err := m.rule().Probe(ctx, render.User("x"))
	if x == nil {
		return nil, err
	}
	bare, err := x.Run(x.All, x.Index, false)
	if err != nil {
		return nil, err
	}
	with, err := x.Run(x.All, x.Index, true)
	if err != nil {
		return nil, err
	}
	text, ok := strings.CutPrefix(with.Text, bare.Text)
	if !ok || text == "" {
		return nil, nil
	}
	added, err := tokens.NewAddedTokens(m.Tokenizer)
	if err != nil {
		return nil, err
	}
	var e engine.Encoding
	p := tokens.NewEncoder(m.Tokenizer, added, true)
	err = m.Tokenizer.Encode(&e, text, engine.EncodeOptions{After: p.PrecedingContext(&with, len(bare.Text))})
	return e.IDs, err
}
