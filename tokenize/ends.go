package tokenize

import (
	"context"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// learnEnds adds the tokens that the template ends replies with to what ends a reply,
// where the folder does not say it: generation_config.json lists what the engine stops
// at, and a folder without it names the tokenizer's eos_token alone, which need not
// stand after a call. A folder with that file keeps Stops as it lists them.
//
// The token is the control token that the message ends with when a conversation ends
// with it. One that also stands inside a reply (the end of each of two calls) ends none.
func (m *Model) learnEnds() {
	if m.Template == nil {
		return
	}
	found := map[string]rollout.TokenID{}
	var inside []string
	for _, last := range m.endProbes() {
		reply := m.lastReply(last)
		end, ok := m.reply.endOf(reply)
		if !ok {
			inside = append(inside, reply)
			continue
		}
		inside = append(inside, strings.TrimSuffix(reply, end.Content))
		if !m.listsStops || !m.reply.holdsStop(reply) {
			found[end.Content] = end.ID
		}
	}
	for text, id := range found {
		if slices.ContainsFunc(inside, func(reply string) bool { return strings.Contains(reply, text) }) {
			continue
		}
		m.reply.stops[text] = id
		if !m.listsStops && !m.IsStop(id) {
			m.Stops = append(slices.Clip(m.Stops), id)
		}
	}
	if !m.listsStops && len(found) == 0 {
		m.learnNextRoles()
	}
	slices.Sort(m.Stops[m.named:])
}

// learnNextRoles takes the markers that open the message after a reply as its end, where
// replies have no other: <|user|> and, after a call, <|observation|>.
func (m *Model) learnNextRoles() {
	call := calling("", "c00000001")
	for _, after := range [][]rollout.Message{{assistant("Reply."), user("More.")}, {call, answering("c00000001", "Result.")}} {
		marker := nextRole(&after[0])
		k := slices.IndexFunc(m.reply.specials, func(a AddedToken) bool { return a.Special && a.Content == marker })
		if k < 0 || len(after[0].ToolCalls) > 0 && m.toolUse != nil {
			continue
		}
		r := &rollout.Rollout{Messages: append([]rollout.Message{user("Question.")}, after...)}
		if len(after[0].ToolCalls) > 0 {
			r.Tools = probeTools
		}
		x, err := newRenderer(context.Background(), m, r, Options{})
		if err != nil {
			continue
		}
		doc, err := x.run(x.all, x.index, false)
		if err != nil {
			continue
		}
		_, last, ok := doc.extent(1, partScaffold, 0)
		id := m.reply.specials[k].ID
		if ok && strings.Contains(doc.text[last:doc.foreign(1, last)], marker) && !m.IsStop(id) {
			m.reply.stops[marker], m.Stops = id, append(slices.Clip(m.Stops), id)
		}
	}
}

// nextRole is the marker of the message after reply m in templates that mark roles so.
func nextRole(m *rollout.Message) string {
	if len(m.ToolCalls) > 0 {
		return "<|observation|>"
	}
	return "<|user|>"
}

// endProbes are replies of each kind.
func (m *Model) endProbes() []rollout.Message {
	const a, b = "c00000001", "c00000002"
	out := []rollout.Message{assistant("Reply."), thinking("Thought.", "Reply.")}
	if m.toolUse != nil {
		return out // rollouts with calls take the other template
	}
	for _, reasoning := range []string{"", "Thought."} {
		for _, ids := range [][]string{{a}, {a, b}} {
			reply := calling(reasoning, ids...)
			for k := range reply.ToolCalls {
				reply.ToolCalls[k].Arguments = `{"x": "Argument."}`
			}
			spoken := reply
			spoken.Content = "Reply."
			out = append(out, reply, spoken)
		}
	}
	return out
}

// lastReply is what the template writes for a reply that a conversation ends with, from
// the first byte of its text on; "" where it refuses or leaves it out.
func (m *Model) lastReply(last rollout.Message) string {
	r := &rollout.Rollout{Messages: []rollout.Message{user("Question."), last}}
	if len(last.ToolCalls) > 0 {
		r.Tools = probeTools
	}
	x, err := newRenderer(context.Background(), m, r, Options{})
	if err != nil {
		return ""
	}
	x.stops = nil
	doc, err := x.answered(&rollout.Turn{Message: 1}, nil)
	if err != nil || len(doc.turns) == 0 {
		return ""
	}
	first, data, ok := doc.extent(1, partScaffold, 0)
	end := doc.turns[0].End
	if !ok || end < data {
		return ""
	}
	return strings.Clone(doc.text[first:end])
}

// endOf is the control token that a reply ends with, white space aside.
func (rr *replyRule) endOf(reply string) (end AddedToken, ok bool) {
	for _, a := range rr.specials {
		if a.Special && len(a.Content) > len(end.Content) && strings.HasSuffix(reply, a.Content) {
			end, ok = a, true
		}
	}
	return end, ok
}

func (rr *replyRule) holdsStop(reply string) bool {
	for text := range rr.stops {
		if strings.Contains(reply, text) {
			return true
		}
	}
	return false
}
