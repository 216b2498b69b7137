package record

import (
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// plain returns what jsonl.Parse would read from the text that jsonl.Append wrote of r, without parsing. It
// returns nil for any r but the usual call: text messages and one turn.
func plain(r *rollout.Rollout) *rollout.Rollout {
	if len(r.Turns) != 1 || r.Tools != nil || r.TemplateKwargs != nil || r.Metadata != nil || r.Extra != nil || r.Notes != nil || r.Steps != nil ||
		r.Group != "" || r.Index != 0 || r.Instance != "" || r.Outcome != (rollout.Outcome{}) || r.Status != 0 || r.ExitStatus != "" || r.Failure != nil || r.Temperature != nil || r.Origin != (rollout.Origin{}) {
		return nil
	}
	t := r.Turns[0]
	if t.Extra != nil || t.Message != -1 || t.Context.Unknown || t.TrainLogprobs != nil || t.Version != nil && (*t.Version < 0 || t.Versions != nil) || t.Version == nil && t.Versions != nil {
		return nil
	}
	out := &rollout.Rollout{ID: r.ID, Turns: []rollout.Turn{t}, Origin: rollout.Origin{Format: "native"}}
	if len(r.Messages) > 0 {
		out.Messages = slices.Clone(r.Messages)
	}
	for i := range out.Messages {
		if !plainMessage(&out.Messages[i]) {
			return nil
		}
	}
	x := &out.Turns[0]
	if x.Context.Parts = slices.Clone(t.Context.Parts); slices.ContainsFunc(t.Context.Parts, func(p rollout.ContextPart) bool { return p.Message != nil }) {
		return nil
	}
	for _, ids := range []*[]rollout.TokenID{&x.Prompt.Add, &x.Output} {
		if slices.ContainsFunc(*ids, func(id rollout.TokenID) bool { return id < 0 }) {
			return nil
		}
		*ids = slices.Clone(*ids)
	}
	if t.Output != nil && len(t.Output) == 0 || t.Logprobs != nil && len(t.Logprobs) == 0 || t.Prompt.Base != 0 || t.Prompt.Keep != 0 {
		return nil
	}
	if len(t.Prompt.Add) == 0 {
		x.Prompt.Add = nil
	}
	x.Logprobs, x.Version = slices.Clone(t.Logprobs), copied(t.Version)
	if s := t.Sampling; s != nil {
		x.Sampling = &rollout.Sampling{Temperature: copied(s.Temperature), TopP: copied(s.TopP), MinP: copied(s.MinP), TopK: copied(s.TopK), Seed: copied(s.Seed)}
	}
	return out
}

// plainMessage reports whether a message is plain text, and copies its tool calls.
func plainMessage(m *rollout.Message) bool {
	if m.Extra != nil || m.Parts != nil || m.Role == "" || m.NoContent && m.Content != "" || m.Role != rollout.RoleAssistant && m.Sampled != rollout.SampledUnknown {
		return false
	}
	if len(m.ToolCalls) == 0 {
		m.ToolCalls = nil
		return true
	}
	m.ToolCalls = slices.Clone(m.ToolCalls)
	return !slices.ContainsFunc(m.ToolCalls, func(c rollout.ToolCall) bool { return !c.ArgumentsText || c.Flat || c.Extra != nil })
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	x := *p
	return &x
}
