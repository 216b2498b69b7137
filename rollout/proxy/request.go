package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"sync"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy/internal/wire"
)

// resolve puts the messages of the reply that the request goes on from before its own.
func (j *job) resolve() error {
	c := j.call
	if c.Raw == nil {
		c.Messages = j.s.live.Recall(c.Messages)
	}
	if c.Previous == "" {
		return nil
	}
	const prefix = "resp_"
	id := c.Previous
	if len(id) > len(prefix) && id[:len(prefix)] == prefix {
		id = id[len(prefix):]
	}
	info, sent, reply, err := j.s.live.Conversation(id)
	if err != nil || reply == nil || info.Finish == "" {
		return &wire.Problem{Status: http.StatusBadRequest, Type: "previous_response_not_found", Message: "the session has no reply with the id of previous_response_id"}
	}
	if m, ok := readMark(info.Settings); ok && m.Instructions <= len(sent) {
		sent = sent[m.Instructions:]
	}
	own := c.Messages
	c.Messages = make([]rollout.Message, 0, len(own)+len(sent)+1)
	c.Messages = append(append(c.Messages, own[:c.Instructions]...), sent...)
	c.Messages = append(append(c.Messages, *reply), own[c.Instructions:]...)
	return nil
}

func kwargs(c *wire.Call) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	if raw := c.Fields["chat_template_kwargs"]; raw == nil || json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

// prompt makes the ids, where they are made here.
func (j *job) prompt() error {
	o, c := &j.h.opts, j.call
	if o.Prompter == nil || len(c.Messages) == 0 || !plainText(c) {
		return nil
	}
	ids, err := o.Prompter.Prompt(j.ctx, Prompt{j.s.live, c.Messages, c.Tools, kwargs(c)})
	if err != nil || ids == nil {
		return err
	}
	tools := c.Tools
	if string(c.Fields["tool_choice"]) == `"none"` {
		tools = nil
	}
	for range max(1, c.N) {
		p, err := o.Parser(tools, ids)
		if err != nil {
			return err
		}
		j.parsers = append(j.parsers, p)
	}
	// Of the engine's words nothing is passed on; it tells the marks that are parsed.
	c.Prompt, c.Raw = ids, nil
	fields := make(map[string]json.RawMessage, len(c.Fields)+2)
	for k, v := range c.Fields {
		fields[k] = v
	}
	fields["skip_special_tokens"], fields["spaces_between_special_tokens"] = json.RawMessage("false"), json.RawMessage("false")
	if c.Settings == nil {
		c.Settings = c.Fields
	}
	c.Fields = fields
	c.IDsOnly = o.Decode != nil && len(j.parsers) == 1 && !stateful(fields)
	return nil
}

// plainText reports whether a call asks for nothing but a new message of text and free tool
// calls.
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
	errs := make([]error, n)
	one := func(i int) {
		own := m
		own.Choice = i
		all := make(map[string]json.RawMessage, len(settings)+1)
		for k, v := range settings {
			if k != "chat_template_kwargs" {
				all[k] = v
			}
		}
		all[markName] = wire.JSON(own)
		r := live.Request{Messages: c.Messages, Prompt: c.Prompt, Tools: c.Tools, TemplateKwargs: kwargs(c), Sampling: sampling(c.Fields), Dialect: j.d.Name(), Engine: j.h.opts.Engine.Route(c.Session), Settings: wire.Members(all)}
		if i == 0 {
			r.Replaces = j.asked.old
		}
		calls[i], errs[i] = j.s.live.Begin(j.ctx, r)
	}
	if n == 1 {
		one(0)
	} else {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { one(i) })
		}
		wg.Wait()
	}
	if err := errors.Join(errs...); err != nil {
		for _, c := range calls {
			if c != nil {
				_ = c.Abort(context.Background(), "it was not sent") // the first error is told
			}
		}
		return err
	}
	j.calls = calls
	return nil
}

// sampling reads the settings that shape what is sampled; one that is none is left to the
// engine to refuse.
func sampling(f map[string]json.RawMessage) *rollout.Sampling {
	s := &rollout.Sampling{}
	number := func(name string, low, high float64) (float64, bool) {
		text := f[name]
		if text == nil {
			return 0, false
		}
		x, err := strconv.ParseFloat(string(text), 64)
		return x, err == nil && x >= low && x <= high
	}
	if x, ok := number("temperature", 0, math.MaxFloat32); ok {
		t := float32(x)
		s.Temperature = &t
	}
	if x, ok := number("top_p", math.SmallestNonzeroFloat32, 1); ok {
		t := float32(x)
		s.TopP = &t
	}
	if x, ok := number("min_p", 0, 1); ok {
		t := float32(x)
		s.MinP = &t
	}
	if x, ok := number("top_k", -1, math.MaxInt32); ok && x == math.Trunc(x) {
		t := int32(x)
		s.TopK = &t
	}
	if text := f["seed"]; text != nil {
		if x, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			s.Seed = &x
		}
	}
	if *s == (rollout.Sampling{}) {
		return nil
	}
	return s
}
