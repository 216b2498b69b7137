package tokenize

import (
	"context"

	"github.com/turnpack/turnpack/rollout"
)

// StopRewrites says which token the chat template shows in history in place of
// the stop token that the model samples, for lineage.Options.StopRewrites; nil
// where it shows the same. The template is asked with a plain reply.
func (m *Model) StopRewrites(ctx context.Context) (map[rollout.TokenID]rollout.TokenID, error) {
	reply := rollout.Message{Role: rollout.RoleAssistant, Content: "Reply."}
	x, err := m.probe(ctx, user("x"), reply, user("y"))
	if x == nil {
		return nil, err
	}
	behind := func(messages int) (string, error) {
		text, err := x.run(x.all.Prefix(messages), x.index[:messages], false)
		if err != nil {
			return "", err
		}
		_, end, _ := text.extent(1, partContent, 0)
		return m.reply.stopIn(text.text[end:], &reply), nil
	}
	sampled, err := behind(2)
	if err != nil {
		return nil, err
	}
	shown, err := behind(3)
	if err != nil {
		return nil, err
	}
	if sampled == "" || shown == "" || shown == sampled {
		return nil, nil
	}
	ids := map[string]rollout.TokenID{}
	for _, a := range m.reply.specials {
		ids[a.Content] = a.ID
	}
	return map[rollout.TokenID]rollout.TokenID{ids[sampled]: ids[shown]}, nil
}
