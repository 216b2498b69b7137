package tokenize

import (
	"context"
	"strings"

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
		if stop := m.reply.stopIn(text.text[end:], &reply); stop != "" {
			return stop, nil
		}
		return m.reply.firstSpecial(text.text[end:]), nil
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

// firstSpecial is the first control token in a text, "" for none.
func (rr *replyRule) firstSpecial(text string) string {
	first, at := "", len(text)
	for _, a := range rr.specials {
		if i := strings.Index(text, a.Content); a.Special && i >= 0 && (i < at || i == at && len(a.Content) > len(first)) {
			first, at = a.Content, i
		}
	}
	return first
}
