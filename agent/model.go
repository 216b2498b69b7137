package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/tokenize/exact"
)

// Engine is a Model backed by an inference engine: vLLM and SGLang return the sampled ids and log
// probabilities, other engines with OpenAI's API text alone.
type Engine struct {
	Engine engine.Engine
	Fields map[string]json.RawMessage // sent with each call: model, temperature, max_tokens …
	// Exact makes prompts of ids that contain earlier replies as they were sampled; nil = the engine renders
	// the messages.
	Exact *exact.Prompts
}

// Reply calls the engine, and reports sampled ids to the call as they arrive.
func (m Engine) Reply(ctx context.Context, r Request) (live.Reply, error) {
	if m.Engine == nil || r.Call == nil {
		return live.Reply{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Engine"}, "there is none, or no call: an Agent asks it")
	}
	out := live.Reply{Message: &rollout.Message{Role: rollout.RoleAssistant}}
	ask := &engine.Request{Session: r.Session, Messages: r.Messages, Tools: r.Tools, Fields: m.Fields}
	var parser proxy.Parser
	if m.Exact != nil {
		ids, err := m.Exact.Prompt(ctx, proxy.Prompt{Session: r.Record, Messages: r.Messages, Tools: r.Tools})
		if err == nil {
			parser, err = m.Exact.Parser(r.Tools, ids)
		}
		if err != nil {
			return out, err
		}
		out.Prompt = ids
		ask.Prompt, ask.Messages, ask.Tools, ask.Fields = ids, nil, nil, map[string]json.RawMessage{}
		maps.Copy(ask.Fields, m.Fields)
		for _, name := range []string{"skip_special_tokens", "spaces_between_special_tokens"} { // special tokens are parsed here
			ask.Fields[name] = json.RawMessage("false")
		}
	}
	err := m.Engine.Generate(ctx, ask, func(c *engine.Chunk) error {
		out.ID = cmp.Or(c.ID, out.ID)
		if c.Usage != nil {
			out.Usage = live.Usage{PromptTokens: c.Usage.Prompt, CompletionTokens: c.Usage.Completion}
		}
		err := r.Call.Prompt(c.Prompt)
		for i := range c.Choices {
			k := &c.Choices[i]
			if len(k.IDs) > 0 { // otherwise the engine returns text alone
				err = errors.Join(err, r.Call.Append(k.IDs, k.Logprobs, k.Version))
			}
			if parser != nil {
				appendDelta(out.Message, parser.Push(k.Text))
			} else {
				appendDelta(out.Message, *k)
			}
			out.FinishReason, out.StopString = cmp.Or(k.Finish, out.FinishReason), cmp.Or(k.Stop, out.StopString)
		}
		return err
	})
	if parser != nil {
		appendDelta(out.Message, parser.Close())
	}
	return out, err
}

// appendDelta appends the parts that arrived to a message.
func appendDelta(m *rollout.Message, c engine.Choice) {
	m.Content += c.Text
	m.Reasoning += c.Reasoning
	for _, d := range c.Calls {
		for len(m.ToolCalls) <= d.Index {
			m.ToolCalls = append(m.ToolCalls, rollout.ToolCall{ArgumentsText: true})
		}
		call := &m.ToolCalls[d.Index]
		call.ID, call.Name = cmp.Or(call.ID, d.ID), cmp.Or(call.Name, d.Name)
		call.Arguments += d.Arguments
	}
}

// forget releases what is held of an attempt for its next prompt.
func (m Engine) forget(ctx context.Context, s *live.Session) {
	if m.Exact == nil {
		return
	}
	if r, err := s.Rollout(); err == nil {
		_, _ = m.Exact.End(context.WithoutCancel(ctx), r) // an error loses only its counts
	}
}

// Abandon ends the open sessions of a killed process, whose attempts are repeated, and releases the ended ones,
// whose attempts are kept elsewhere.
func Abandon(ctx context.Context, r *live.Recorder) error {
	if r == nil {
		return nil
	}
	for s := range r.Sessions() {
		if !s.Ended() {
			if _, err := s.End(ctx, live.Ending{Status: rollout.StatusFailed, Failure: &rollout.Failure{Reason: "killed", Detail: "the process ended before the attempt"}}); err != nil {
				return err
			}
		}
		if err := r.Deliver(ctx, live.Batch{Key: s.ID(), Digest: s.ID(), Sessions: []string{s.ID()}}); err != nil {
			return err
		}
	}
	return nil
}
