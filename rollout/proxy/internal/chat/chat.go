// Package chat is OpenAI's chat completions.
package chat

import (
	"encoding/json"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/rollout/proxy/internal/sse"
	"github.com/turnpack/turnpack/rollout/proxy/internal/wire"
)

// Dialect is the API.
type Dialect struct{}

// Name is its name in the record.
func (Dialect) Name() string { return "chat" }

// Error is the body of a refusal.
func (Dialect) Error(p *wire.Problem) []byte { return wire.OpenAI(p) }

// Parse reads a request.
func (Dialect) Parse(body []byte) (*wire.Call, error) {
	var d jsonscan.Doc
	v, err := wire.Object(&d, body)
	if err != nil {
		return nil, err
	}
	c := &wire.Call{}
	c.Raw = body
	if c.Messages, err = wire.Messages(v.Get("messages")); err != nil {
		return nil, err
	}
	if c.Tools, err = wire.Tools(v.Get("tools")); err != nil {
		return nil, err
	}
	if c.N, err = wire.Choices(v); err != nil {
		return nil, err
	}
	if c.Stream, err = wire.Flag(v, "stream"); err != nil {
		return nil, err
	}
	if c.KeepLogprobs, err = wire.Flag(v, "logprobs"); err != nil {
		return nil, err
	}
	c.KeepUsage, _ = v.Path("stream_options", "include_usage").Bool()
	c.KeepIDs, _ = v.Get("return_token_ids").Bool()
	if on, err := wire.Flag(v, "continue_final_message"); err != nil {
		return nil, err
	} else if m := &c.Messages[len(c.Messages)-1]; on && (m.Role != rollout.RoleAssistant || len(m.ToolCalls) > 0) {
		return nil, wire.Bad("continue_final_message needs text of the assistant as the last message")
	}
	c.Fields = wire.Fields(v, "messages", "tools", "n", "stream", "stream_options", "logprobs", "return_token_ids")
	return c, nil
}

// Writer writes one reply.
func (Dialect) Writer(c *wire.Call, m wire.Meta) wire.Writer {
	return &writer{call: c, meta: m, started: make([]bool, max(1, c.N))}
}

type writer struct {
	call    *wire.Call
	meta    wire.Meta
	model   string
	started []bool
}

// Chunk writes the engine's own event where it has the dialect, else one made of it.
func (w *writer) Chunk(dst []byte, c *engine.Chunk) []byte {
	if c.Raw != nil && !c.Whole {
		if len(c.Raw) > 0 {
			dst = sse.Append(dst, "", c.Raw)
		}
		return dst
	}
	if c.Model != "" {
		w.model = c.Model
	}
	for i := range c.Choices {
		k := &c.Choices[i]
		m := delta{Content: k.Text, Reasoning: k.Reasoning}
		for _, x := range k.Calls {
			t := toolCall{Index: &x.Index, ID: x.ID}
			if x.ID != "" || x.Name != "" {
				t.Type = "function"
			}
			t.Function.Name, t.Function.Arguments = x.Name, x.Arguments
			m.Calls = append(m.Calls, t)
		}
		if k.Index < len(w.started) && !w.started[k.Index] {
			w.started[k.Index] = true
			m.Role = "assistant"
		}
		choice := w.choice(k.Index, k.IDs, k.Logprobs, k.Finish)
		choice.Delta = &m
		out := w.head("chat.completion.chunk")
		out.Choices = []choiceJSON{choice}
		if w.call.KeepIDs {
			out.Prompt = c.Prompt
		}
		dst = sse.Append(dst, "", wire.JSON(out))
	}
	if c.Usage != nil && w.call.KeepUsage {
		out := w.head("chat.completion.chunk")
		out.Choices, out.Usage = []choiceJSON{}, usage(c.Usage)
		dst = sse.Append(dst, "", wire.JSON(out))
	}
	return dst
}

// End is the last event.
func (w *writer) End(dst []byte) []byte { return sse.Append(dst, "", []byte("[DONE]")) }

// Fail tells of a failure within a stream.
func (w *writer) Fail(dst []byte, p *wire.Problem) []byte {
	return sse.Append(dst, "", wire.OpenAI(p))
}

// Ping keeps the client waiting.
func (w *writer) Ping(dst []byte) []byte { return append(dst, wire.Comment...) }

// Whole writes an unstreamed reply.
func (w *writer) Whole(chunks []*engine.Chunk) []byte {
	if len(chunks) == 1 && chunks[0].Raw != nil && chunks[0].Whole {
		return chunks[0].Raw
	}
	r := wire.Collect(chunks)
	w.model = r.Model
	out := w.head("chat.completion")
	out.Usage = usage(&r.Usage)
	if w.call.KeepIDs {
		out.Prompt = r.Prompt
	}
	for i := range r.Choices {
		k := &r.Choices[i]
		said := k.Message()
		m := message{Role: "assistant", Reasoning: said.Reasoning}
		if !said.NoContent {
			m.Content = &said.Content
		}
		for _, x := range said.ToolCalls {
			t := toolCall{ID: x.ID, Type: "function"}
			t.Function.Name, t.Function.Arguments = x.Name, x.Arguments
			m.Calls = append(m.Calls, t)
		}
		choice := w.choice(i, k.IDs, k.Logprobs, k.Finish)
		choice.Message = &m
		out.Choices = append(out.Choices, choice)
	}
	return wire.JSON(out)
}

type reply struct {
	ID      string            `json:"id"`
	Object  string            `json:"object"`
	Created int64             `json:"created"`
	Model   string            `json:"model"`
	Choices []choiceJSON      `json:"choices"`
	Usage   *usageJSON        `json:"usage,omitempty"`
	Prompt  []rollout.TokenID `json:"prompt_token_ids,omitempty"`
}

type choiceJSON struct {
	Index    int               `json:"index"`
	Delta    *delta            `json:"delta,omitempty"`
	Message  *message          `json:"message,omitempty"`
	Logprobs json.RawMessage   `json:"logprobs"`
	Finish   *string           `json:"finish_reason"`
	IDs      []rollout.TokenID `json:"token_ids,omitempty"`
}

type delta struct {
	Role      string     `json:"role,omitempty"`
	Content   string     `json:"content,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []toolCall `json:"tool_calls,omitempty"`
}

type message struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []toolCall `json:"tool_calls,omitempty"`
}

type toolCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type usageJSON struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func usage(u *engine.Usage) *usageJSON {
	out := &usageJSON{Prompt: u.Prompt, Completion: u.Completion, Total: u.Prompt + u.Completion}
	out.Details.Cached = u.Cached
	return out
}

func (w *writer) head(object string) *reply {
	return &reply{ID: "chatcmpl-" + w.meta.ID, Object: object, Created: w.meta.Created.Unix(), Model: w.model}
}

func (w *writer) choice(index int, ids []rollout.TokenID, logprobs []float32, finish string) choiceJSON {
	out := choiceJSON{Index: index, Logprobs: json.RawMessage("null")}
	if finish != "" {
		out.Finish = &finish
	}
	if w.call.KeepIDs {
		out.IDs = ids
	}
	if w.call.KeepLogprobs && len(ids) > 0 && len(ids) == len(logprobs) {
		type token struct {
			Token   string   `json:"token"`
			Logprob float32  `json:"logprob"`
			Bytes   *int     `json:"bytes"`
			Top     []string `json:"top_logprobs"`
		}
		var list []token
		for i, id := range ids {
			list = append(list, token{Token: wire.TokenName(id), Logprob: logprobs[i], Top: []string{}})
		}
		out.Logprobs = wire.JSON(map[string]any{"content": list})
	}
	return out
}

// Model is one model of a list of them, nil = it is not there.
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
