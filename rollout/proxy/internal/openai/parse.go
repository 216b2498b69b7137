// Package openai implements OpenAI's chat completions API, and its completions API for prompts without roles.
package openai

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy/internal/wire"
)

// Dialect is one of the two APIs.
type Dialect string

// The APIs.
const (
	Chat        Dialect = "chat"
	Completions Dialect = "completions"
)

// Name returns the dialect's name in the record.
func (d Dialect) Name() string { return string(d) }

// Error returns the body of a refusal.
func (Dialect) Error(p *wire.Problem) []byte { return wire.OpenAI(p) }

// Parse parses a request.
func (d Dialect) Parse(body []byte) (*wire.Call, error) {
	var doc jsonscan.Doc
	v, err := wire.Object(&doc, body)
	if err != nil {
		return nil, err
	}
	c := &wire.Call{}
	c.Raw = body
	if c.N, err = wire.Choices(v); err != nil {
		return nil, err
	}
	if c.Stream, err = wire.Flag(v, "stream"); err != nil {
		return nil, err
	}
	c.KeepUsage, _ = v.Path("stream_options", "include_usage").Bool()
	c.KeepIDs, _ = v.Get("return_token_ids").Bool()
	if d == Chat {
		return c, chat(c, v)
	}
	return c, completions(c, v)
}

func chat(c *wire.Call, v jsonscan.Value) (err error) {
	if c.Messages, err = wire.Messages(v.Get("messages")); err != nil {
		return err
	}
	if c.Tools, err = wire.Tools(v.Get("tools")); err != nil {
		return err
	}
	if c.KeepLogprobs, err = wire.Flag(v, "logprobs"); err != nil {
		return err
	}
	if on, err := wire.Flag(v, "continue_final_message"); err != nil {
		return err
	} else if m := &c.Messages[len(c.Messages)-1]; on && (m.Role != rollout.RoleAssistant || len(m.ToolCalls) > 0) {
		return wire.Bad("continue_final_message needs text of the assistant as the last message")
	}
	c.Fields = wire.Fields(v, "messages", "tools", "n", "stream", "stream_options", "logprobs", "return_token_ids")
	return nil
}

func completions(c *wire.Call, v jsonscan.Value) (err error) {
	if c.Text, c.Prompt, err = prompt(v.Get("prompt")); err != nil {
		return err
	}
	if echo, _ := v.Get("echo").Bool(); echo {
		return wire.Bad("echo is not supported: prompt and reply are recorded apart")
	}
	if n, ok := v.Get("best_of").Int(); ok && n > 1 {
		return wire.Bad("best_of is not supported: ask for n replies")
	}
	if s := v.Get("suffix"); !s.IsNull() && !s.Is("") {
		return wire.Bad("suffix is not supported: what is sampled must go after the prompt")
	}
	c.KeepLogprobs = !v.Get("logprobs").IsNull()
	c.Fields = wire.Fields(v, "prompt", "n", "stream", "stream_options", "return_token_ids")
	return nil
}

// prompt reads one prompt: text or ids, alone or as the only element of a list.
func prompt(v jsonscan.Value) (string, []rollout.TokenID, error) {
	if s, ok := v.Text(); ok && s != "" {
		return s, nil, nil
	}
	if v.Kind() == jsonscan.Array && v.Len() > 0 {
		if ids, _, ok := v.AppendInt32(nil); ok {
			return "", ids, nil
		}
		if v.Len() == 1 {
			for _, x := range v.Items() {
				return prompt(x)
			}
		}
		return "", nil, wire.Bad("prompt has %d prompts: send a call for each", v.Len())
	}
	return "", nil, wire.Bad("prompt is %s, expected text or token ids", v.Word())
}

// Model returns the model with that id from a list of models, nil if there is none.
func Model(list []byte, id string) []byte {
	var d jsonscan.Doc
	v, err := d.Parse(list, jsonscan.Options{})
	if err != nil {
		return nil
	}
	for _, m := range v.Get("data").Items() {
		if m.Get("id").Is(id) {
			return m.Clone()
		}
	}
	return nil
}
