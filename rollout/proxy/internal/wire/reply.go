package wire

import (
	"cmp"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// Reply is a whole reply, assembled from chunks.
type Reply struct {
	ID, Model string
	Choices   []*Choice
	Usage     engine.Usage
	Prompt    []rollout.TokenID
}

// Choice is one choice of a Reply.
type Choice struct {
	IDs      []rollout.TokenID
	Logprobs []float32
	Finish   string
	Stop     string

	text, reasoning strings.Builder
	calls           []*toolCall
}

type toolCall struct {
	id, name  string
	arguments strings.Builder
}

// Message returns the assistant's message. Calls without a name are omitted.
func (c *Choice) Message() *rollout.Message {
	m := &rollout.Message{Role: rollout.RoleAssistant, Content: c.text.String(), Reasoning: c.reasoning.String()}
	m.NoContent = m.Content == ""
	for _, x := range c.calls {
		if x.name == "" { // see Nameless
			continue
		}
		m.ToolCalls = append(m.ToolCalls, rollout.ToolCall{ID: x.id, Name: x.name, Arguments: x.arguments.String(), ArgumentsText: true})
	}
	return m
}

// Nameless reports whether a tool call has no name, so that Message omits it.
func (c *Choice) Nameless() bool {
	return slices.ContainsFunc(c.calls, func(x *toolCall) bool { return x.name == "" })
}

// Called reports whether the choice has a tool call.
func (c *Choice) Called() bool { return len(c.calls) > 0 }

// Add appends a chunk.
func (r *Reply) Add(c *engine.Chunk) {
	if r.ID == "" {
		r.ID = c.ID
	}
	r.Model = cmp.Or(r.Model, c.Model)
	if c.Prompt != nil {
		r.Prompt = c.Prompt
	}
	if c.Usage != nil {
		r.Usage = *c.Usage
	}
	for i := range c.Choices {
		d := &c.Choices[i]
		for len(r.Choices) <= d.Index { // the engine's reply was checked for the bound
			r.Choices = append(r.Choices, &Choice{})
		}
		k := r.Choices[d.Index]
		k.text.WriteString(d.Text)
		k.reasoning.WriteString(d.Reasoning)
		for _, x := range d.Calls {
			for len(k.calls) <= x.Index { // checked too
				k.calls = append(k.calls, &toolCall{})
			}
			t := k.calls[x.Index]
			if x.ID != "" {
				t.id = x.ID
			}
			if x.Name != "" {
				t.name = x.Name
			}
			t.arguments.WriteString(x.Arguments)
		}
		k.IDs, k.Logprobs = append(k.IDs, d.IDs...), append(k.Logprobs, d.Logprobs...)
		if d.Finish != "" {
			k.Finish, k.Stop = d.Finish, d.Stop
		}
	}
}

// Collect assembles chunks.
func Collect(chunks []*engine.Chunk) *Reply {
	var r Reply
	for _, c := range chunks {
		r.Add(c)
	}
	return &r
}
