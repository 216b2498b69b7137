package agent

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// Engine is a Model that an inference engine answers: vLLM and SGLang with the ids and log
// probabilities that they sampled, others of OpenAI's shape with text alone.
type Engine struct {
	Engine engine.Engine
	Fields map[string]json.RawMessage // asked with each call: model, temperature, max_tokens …
}

// Reply asks the engine.
func (m Engine) Reply(ctx context.Context, r Request) (live.Reply, error) {
	if m.Engine == nil {
		return live.Reply{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Engine"}, "there is none")
	}
	out := live.Reply{Message: &rollout.Message{Role: rollout.RoleAssistant}}
	said, versions := out.Message, 0
	err := m.Engine.Generate(ctx, &engine.Request{Session: r.Session, Messages: r.Messages, Tools: r.Tools, Fields: m.Fields}, func(c *engine.Chunk) error {
		out.ID = cmp.Or(c.ID, out.ID)
		if c.Prompt != nil {
			out.Prompt = c.Prompt
		}
		if c.Usage != nil {
			out.Usage = live.Usage{PromptTokens: c.Usage.Prompt, CompletionTokens: c.Usage.Completion}
		}
		for i := range c.Choices {
			k := &c.Choices[i]
			out.Output, out.Logprobs = append(out.Output, k.IDs...), append(out.Logprobs, k.Logprobs...)
			if k.Version != nil && (out.Version == nil || *out.Version != *k.Version) {
				out.Version = k.Version
				if versions++; versions > 1 {
					out.Incomplete = "its weights changed while it was sampled"
				}
			}
			said.Content += k.Text
			said.Reasoning += k.Reasoning
			for _, d := range k.Calls {
				for len(said.ToolCalls) <= d.Index {
					said.ToolCalls = append(said.ToolCalls, rollout.ToolCall{ArgumentsText: true})
				}
				call := &said.ToolCalls[d.Index]
				call.ID, call.Name = cmp.Or(call.ID, d.ID), cmp.Or(call.Name, d.Name)
				call.Arguments += d.Arguments
			}
			out.FinishReason, out.StopString = cmp.Or(k.Finish, out.FinishReason), cmp.Or(k.Stop, out.StopString)
		}
		return nil
	})
	if len(out.Output) == 0 { // it tells text alone
		out.Logprobs, out.Prompt = nil, nil
	}
	return out, err
}
