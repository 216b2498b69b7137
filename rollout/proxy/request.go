package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy/internal/wire"
)

// resolve prepends the messages of the previous reply to those of the request.
func (j *job) resolve() error {
	c := j.call
	if c.Raw == nil {
		c.Messages = j.s.live.Recall(c.Messages)
	}
	if c.Previous == "" {
		return nil
	}
	info, sent, reply, err := j.s.live.Conversation(strings.TrimPrefix(c.Previous, "resp_"))
	if err != nil && !errors.Is(err, live.ErrUnknown) {
		return err
	}
	if reply == nil || info.Finish == "" {
		return &wire.Problem{Status: http.StatusBadRequest, Type: "previous_response_not_found", Message: "the session has no reply with the id of previous_response_id"}
	}
	if m, ok := readMark(info.Settings); ok && m.Instructions <= len(sent) {
		sent = sent[m.Instructions:]
	}
	own, n := c.Messages, c.Instructions
	c.Messages = slices.Concat(own[:n], sent, []rollout.Message{*reply}, own[n:])
	return nil
}

func kwargs(c *wire.Call) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	if raw := c.Fields["chat_template_kwargs"]; raw == nil || json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

// prompt makes the prompt's ids, if the proxy makes them.
func (j *job) prompt() error {
	o, c := &j.h.opts, j.call
	if o.Prompts == nil || len(c.Messages) == 0 || !plainText(c) {
		return nil
	}
	ids, err := o.Prompts.Prompt(j.ctx, Prompt{j.s.live, c.Messages, c.Tools, kwargs(c)})
	if err != nil || ids == nil {
		return err
	}
	tools := c.Tools
	if string(c.Fields["tool_choice"]) == `"none"` {
		tools = nil
	}
	for range max(1, c.N) {
		p, err := o.Prompts.Parser(tools, ids)
		if err != nil {
			return err
		}
		j.parsers = append(j.parsers, p)
	}
	// The engine's text is not passed on but parsed, so it must contain the special tokens.
	c.Prompt, c.Raw = ids, nil
	fields := maps.Clone(c.Fields)
	fields["skip_special_tokens"], fields["spaces_between_special_tokens"] = json.RawMessage("false"), json.RawMessage("false")
	if c.Settings == nil {
		c.Settings = c.Fields
	}
	c.Fields = fields
	c.IDsOnly = len(j.parsers) == 1 && !stateful(fields)
	return nil
}

// plainText reports whether a call asks only for a new message of text and optional tool calls.
func plainText(c *wire.Call) bool {
	if string(c.Fields["continue_final_message"]) == "true" || string(c.Fields["add_generation_prompt"]) == "false" {
		return false
	}
	if t := string(c.Fields["tool_choice"]); t != "" && t != "null" && t != `"auto"` && t != `"none"` {
		return false
	}
	for i := range c.Messages {
		for _, p := range c.Messages[i].Parts {
			if !p.IsText() {
				return false
			}
		}
	}
	return true
}

// begin records the intent of each choice.
func (j *job) begin() error {
	c := j.call
	n := max(1, c.N)
	settings := c.Settings
	if settings == nil {
		settings = c.Fields
	}
	m := mark{Key: j.key.text(), Instructions: c.Instructions}
	if j.asked.body != j.key {
		m.Body = j.asked.body.text()
	}
	if n > 1 {
		m.Choices = n
	}
	if j.parsers != nil {
		m.Path = "ids"
	}
	calls := make([]*live.Call, n)
	err := atOnce(n, func(i int) (err error) {
		own := m
		own.Choice = i
		all := maps.Clone(settings)
		delete(all, "chat_template_kwargs") // it is recorded separately
		all[markName] = wire.JSON(own)
		r := live.Request{Messages: c.Messages, Prompt: c.Prompt, Tools: c.Tools, TemplateKwargs: kwargs(c), Sampling: sampling(c.Fields), Dialect: j.d.Name(), Engine: j.h.opts.Engine.Route(c.Session), Settings: wire.JSON(all)}
		if i == 0 {
			r.Replaces = j.asked.old
		}
		calls[i], err = j.s.live.Begin(j.ctx, r)
		return err
	})
	if err != nil {
		for _, c := range calls {
			if c != nil {
				_ = c.Abort(context.Background(), "it was not sent") // the first error is returned
			}
		}
		return err
	}
	j.calls = calls
	return nil
}

// sampling reads the settings that shape sampling; invalid ones are left for the engine to refuse.
func sampling(f map[string]json.RawMessage) *rollout.Sampling {
	s := &rollout.Sampling{}
	number := func(name string, low, high float64) (float64, bool) {
		x, err := strconv.ParseFloat(string(f[name]), 64)
		return x, err == nil && x >= low && x <= high
	}
	if x, ok := number("temperature", 0, math.MaxFloat32); ok {
		s.Temperature = new(float32(x))
	}
	if x, ok := number("top_p", math.SmallestNonzeroFloat32, 1); ok {
		s.TopP = new(float32(x))
	}
	if x, ok := number("min_p", 0, 1); ok {
		s.MinP = new(float32(x))
	}
	if x, ok := number("top_k", -1, math.MaxInt32); ok && x == math.Trunc(x) {
		s.TopK = new(int32(x))
	}
	if x, err := strconv.ParseInt(string(f["seed"]), 10, 64); err == nil {
		s.Seed = &x
	}
	if *s == (rollout.Sampling{}) {
		return nil
	}
	return s
}
