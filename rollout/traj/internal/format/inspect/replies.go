package inspect

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// restore replaces a message that an agent changed by the reply in the model event: when it
// ends, the react agent removes its submit call, and the reasoning before it, from the
// messages.
func (x *sampleRun) restore(e format.Value) error {
	t, choice := x.turnOf(e)
	if t == nil || !choice.Path("message", "role").Is("assistant") {
		return nil
	}
	m, notes := &x.r.Messages[t.Message], len(x.in.Notes)
	v := x.refs.resolve(choice.Get("message"))
	said, err := readMessage(x.in, v, t.Message)
	if err != nil {
		return err
	}
	if said.Sampled != rollout.SampledByPolicy || said.Reasoning == m.Reasoning && format.RenderedDigest(&said) == format.RenderedDigest(m) {
		x.in.Notes = x.in.Notes[:notes]
		return nil
	}
	x.in.Note("reply_changed", rollout.At(t.Message), "the agent changed the reply after the call; what the call returned was taken")
	takeAnswer(&said, m, v.Get("content").Kind() == jsonscan.String)
	*m = said
	return nil
}

// takeAnswer removes the answer of the submit call from the end of a reply. The react agent
// appends the answer to the text when it removes the call; recorded message and event are
// one object then, so both texts end with it.
func takeAnswer(said, recorded *rollout.Message, text bool) {
	if said.Content != recorded.Content {
		return
	}
	for _, c := range said.ToolCalls {
		kept := func(o rollout.ToolCall) bool { return o.ID == c.ID && o.Name == c.Name }
		var arguments map[string]any
		if slices.ContainsFunc(recorded.ToolCalls, kept) || json.Unmarshal([]byte(c.Arguments), &arguments) != nil || len(arguments) != 1 {
			continue
		}
		for _, a := range arguments {
			answer, ok := a.(string)
			if rest, ends := strings.CutSuffix(said.Content, answer); ok && ends {
				if said.Content = rest; text {
					said.Content = strings.TrimSuffix(rest, "\n\n")
				}
				if n := len(said.Parts) - 1; n >= 0 && said.Parts[n].Text == answer {
					said.Parts = said.Parts[:n]
				}
				return
			}
		}
	}
}
