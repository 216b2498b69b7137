package prompt

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// seed is that of the hashes of conversations, which never leave the process.
var seed = maphash.MakeSeed()

// conversationHash returns the hash of a conversation continued with m. It selects the checkpoints
// to compare a reply with, so it leaves out what clients and recorders may omit (reasoning, ids).
func conversationHash(conversation uint64, m *rollout.Message) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	text := func(parts ...string) {
		for _, s := range parts {
			maphash.WriteComparable(&h, len(s))
			_, _ = h.WriteString(s)
		}
	}
	maphash.WriteComparable(&h, conversation)
	text(string(m.Role), m.Content)
	for _, c := range m.ToolCalls {
		text(c.Name, c.Arguments)
	}
	return h.Sum64()
}

// recognise fills p.Messages, with replies of the tree marked as sampled. It returns the checkpoint
// whose reply is the last assistant message, nil if none is known.
func (t *Tree) recognise(p *Prompt, messages []rollout.Message) (expected *node) {
	p.Messages = slices.Clone(messages)
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range p.Messages {
		m := &p.Messages[i]
		if m.Role == rollout.RoleAssistant {
			if expected = t.replier(p.conversation, m); expected != nil && expected.told != nil {
				m.Sampled = rollout.SampledByPolicy
				if t.w.opts.RestoreReasoning && m.Reasoning == "" {
					m.Reasoning = expected.told.Reasoning
				}
			}
		}
		p.conversation = conversationHash(p.conversation, &messages[i])
	}
	return expected
}

// replier returns the newest checkpoint after that conversation whose reply is m; if there is none,
// the newest one whose message is unknown.
func (t *Tree) replier(conversation uint64, m *rollout.Message) (may *node) {
	for _, n := range slices.Backward(t.conversations[conversation]) {
		if n.told != nil && answers(n.told, m) {
			return n
		}
		if n.told == nil && may == nil {
			may = n
		}
	}
	return may
}

// answers reports whether m is the reply told, as clients return it: apart from white space around
// the text, a missing reasoning and the spelling of arguments. The template's rendering then
// decides.
func answers(told, m *rollout.Message) bool {
	if strings.TrimSpace(told.Content) != strings.TrimSpace(m.Content) || len(told.ToolCalls) != len(m.ToolCalls) {
		return false
	}
	if m.Reasoning != "" && strings.TrimSpace(told.Reasoning) != strings.TrimSpace(m.Reasoning) {
		return false
	}
	for i := range m.ToolCalls {
		a, b := &told.ToolCalls[i], &m.ToolCalls[i]
		if a.Name != b.Name || a.Arguments != b.Arguments && !sameJSON(a.Arguments, b.Arguments) {
			return false
		}
	}
	return true
}

// sameJSON reports whether two texts are JSON of the same value, with numbers compared as spelled.
func sameJSON(a, b string) bool {
	x, errX := canonical(a)
	y, errY := canonical(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func canonical(text string) ([]byte, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// unknownReplyReason returns the reason for a last reply that belongs to no checkpoint.
func (t *Tree) unknownReplyReason(p *Prompt, messages []rollout.Message, last int) string {
	conversation := uint64(0)
	for i := range last {
		conversation = conversationHash(conversation, &messages[i])
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.conversations[conversation]) > 0 {
		return reasonReply
	}
	return reasonHistory
}

// divergenceReason returns the reason for which the text diverges from that of checkpoint n, whose
// reply the client returns as m.
func (c *continuation) divergenceReason(n *node, m *rollout.Message) string {
	var path []*node
	for x := n; x != nil; x = x.base {
		path = append(path, x)
	}
	at := 0 // length of the common text
	if c.beginsAsShown(n) {
		at, path = n.prompt+render.CommonText(n.text[n.prompt-n.start:], c.text.Text[n.shown:]), nil
	}
	for i, x := range slices.Backward(path) {
		text := x.text
		if i > 0 {
			text = text[:path[i-1].start-x.start]
		}
		same := render.CommonText(text, c.text.Text[at:])
		if at += same; same < len(text) {
			break
		}
	}
	own := int32(n.messages)
	written := slices.ContainsFunc(c.text.Fields[c.text.FieldAfter(min(at, n.prompt, n.shown)):], func(f render.Field) bool { return f.Message == own && f.Part == render.PartReasoning })
	thought := n.told != nil && n.told.Reasoning != ""
	switch {
	case thought && c.messages[own].Reasoning == "":
		return reasonReasoning
	case at < n.prompt, thought && !written:
		return reasonRewritten
	case at == n.end() && n.declared != "":
		return n.declared // the text before it is not as it was sampled
	case at == n.end():
		return reasonReply // the client continues the reply in its own words
	case at >= n.end()-len(c.w.stopOf(n).Content):
		return reasonStop
	}
	return reasonSpelling
}

// beginsAsShown reports whether the text begins with what the template showed of n's prompt.
func (c *continuation) beginsAsShown(n *node) bool {
	return n.shown <= len(c.text.Text) && maphash.String(seed, c.text.Text[:n.shown]) == n.shownSum
}

// whole reports whether the text has the complete reply of n, the last one among the messages,
// after what the template showed before it.
func (c *continuation) whole(n *node) bool {
	if n.told == nil || !c.beginsAsShown(n) {
		return false
	}
	var content, reasoning strings.Builder
	calls := false
	for _, f := range c.text.Fields[c.text.FieldAfter(n.shown):] {
		if f.Message != int32(n.messages) {
			continue
		}
		switch text := c.text.Text[f.Start:f.End]; f.Part {
		case render.PartContent:
			_, _ = content.WriteString(text)
		case render.PartReasoning:
			_, _ = reasoning.WriteString(text)
		case render.PartToolCall:
			calls = true
		}
	}
	same := func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }
	return same(content.String(), n.told.Content) && same(reasoning.String(), n.told.Reasoning) && calls == (len(n.told.ToolCalls) > 0)
}
