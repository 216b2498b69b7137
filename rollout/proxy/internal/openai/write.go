package openai

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/rollout/proxy/internal/sse"
	"github.com/turnpack/turnpack/rollout/proxy/internal/wire"
)

// Writer returns a writer for one reply.
func (d Dialect) Writer(c *wire.Call, m wire.Meta) wire.Writer {
	return &writer{call: c, meta: m, model: c.Model(), chat: d == Chat, started: make([]bool, max(1, c.N))}
}

type writer struct {
	call    *wire.Call
	meta    wire.Meta
	model   string
	chat    bool
	started []bool // choices whose role has been sent, in a chat
}

// Chunk writes the engine's own event if it is in the client's dialect, and an equivalent one otherwise.
func (w *writer) Chunk(dst []byte, c *engine.Chunk) []byte {
	if c.Raw != nil && !c.Whole {
		if len(c.Raw) > 0 {
			dst = sse.Append(dst, "", c.Raw)
		}
		return dst
	}
	w.model = cmp.Or(c.Model, w.model)
	for i := range c.Choices {
		k := &c.Choices[i]
		one := w.choice(k.Index, k.IDs, k.Logprobs, k.Finish)
		if one.Text = &k.Text; w.chat {
			one.Text, one.Delta = nil, w.delta(k)
		}
		dst = w.event(dst, w.reply("chat.completion.chunk", []choice{one}, c.Prompt))
	}
	if c.Usage != nil && w.call.KeepUsage {
		out := w.reply("chat.completion.chunk", []choice{}, nil)
		out.Usage = usageOf(c.Usage)
		dst = w.event(dst, out)
	}
	return dst
}

func (w *writer) event(dst []byte, r *reply) []byte { return sse.Append(dst, "", wire.JSON(r)) }

// End writes the last event.
func (w *writer) End(dst []byte) []byte { return sse.Append(dst, "", []byte("[DONE]")) }

// Fail writes the event for a failure within a stream.
func (w *writer) Fail(dst []byte, p *wire.Problem) []byte {
	return sse.Append(dst, "", wire.OpenAI(p))
}

// Ping writes a comment that keeps a waiting client connected.
func (w *writer) Ping(dst []byte) []byte { return append(dst, wire.Comment...) }

// Whole returns an unstreamed reply.
func (w *writer) Whole(chunks []*engine.Chunk) []byte {
	if len(chunks) == 1 && chunks[0].Raw != nil && chunks[0].Whole {
		return chunks[0].Raw
	}
	r := wire.Collect(chunks)
	w.model = cmp.Or(r.Model, w.model)
	var all []choice
	for i := range r.Choices {
		k := r.Choices[i]
		said := k.Message()
		one := w.choice(i, k.IDs, k.Logprobs, k.Finish)
		if one.Text = &said.Content; w.chat {
			one.Text, one.Message = nil, messageOf(said)
		}
		all = append(all, one)
	}
	out := w.reply("chat.completion", all, r.Prompt)
	out.Usage = usageOf(&r.Usage)
	return wire.JSON(out)
}

type reply struct {
	ID      string            `json:"id"`
	Object  string            `json:"object"`
	Created int64             `json:"created"`
	Model   string            `json:"model"`
	Choices []choice          `json:"choices"`
	Usage   *usage            `json:"usage,omitempty"`
	Prompt  []rollout.TokenID `json:"prompt_token_ids,omitempty"` // of chat completions
}

// reply returns a reply, with the prompt's ids if the client asked for them; completions repeat them in each
// choice.
func (w *writer) reply(object string, choices []choice, prompt []rollout.TokenID) *reply {
	id := "chatcmpl-"
	if !w.chat {
		id, object = "cmpl-", "text_completion"
	}
	out := &reply{ID: id + w.meta.ID, Object: object, Created: w.meta.Created.Unix(), Model: w.model, Choices: choices}
	switch {
	case !w.call.KeepIDs:
	case w.chat:
		out.Prompt = prompt
	default:
		for i := range choices {
			choices[i].Prompt = prompt
		}
	}
	return out
}

type choice struct {
	Index    int               `json:"index"`
	Text     *string           `json:"text,omitempty"` // of completions
	Delta    *delta            `json:"delta,omitempty"`
	Message  *message          `json:"message,omitempty"`
	Logprobs json.RawMessage   `json:"logprobs"`
	Finish   *string           `json:"finish_reason"`
	IDs      []rollout.TokenID `json:"token_ids,omitempty"`
	Prompt   []rollout.TokenID `json:"prompt_token_ids,omitempty"` // of completions
}

func (w *writer) choice(index int, ids []rollout.TokenID, logprobs []float32, finish string) choice {
	out := choice{Index: index, Logprobs: json.RawMessage("null")}
	if finish != "" {
		out.Finish = &finish
	}
	if w.call.KeepIDs {
		out.IDs = ids
	}
	if w.call.KeepLogprobs && len(ids) > 0 && len(ids) == len(logprobs) {
		out.Logprobs = w.logprobs(ids, logprobs)
	}
	return out
}

func (w *writer) logprobs(ids []rollout.TokenID, logprobs []float32) []byte {
	type token struct {
		Token   string   `json:"token"`
		Logprob float32  `json:"logprob"`
		Bytes   *int     `json:"bytes"`
		Top     []string `json:"top_logprobs"`
	}
	list, names := make([]token, len(ids)), make([]string, len(ids))
	for i, id := range ids {
		names[i] = "token_id:" + strconv.Itoa(int(id)) // its text is not known
		list[i] = token{Token: names[i], Logprob: logprobs[i], Top: []string{}}
	}
	if w.chat {
		return wire.JSON(map[string]any{"content": list})
	}
	return wire.JSON(map[string]any{"tokens": names, "token_logprobs": logprobs, "top_logprobs": nil, "text_offset": []int{}})
}

type delta struct {
	Role      string     `json:"role,omitempty"`
	Content   string     `json:"content,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []toolCall `json:"tool_calls,omitempty"`
}

func (w *writer) delta(k *engine.Choice) *delta {
	m := &delta{Content: k.Text, Reasoning: k.Reasoning}
	for _, x := range k.Calls {
		t := toolCall{Index: &x.Index, ID: x.ID, Function: function{x.Name, x.Arguments}}
		if x.ID != "" || x.Name != "" {
			t.Type = "function"
		}
		m.Calls = append(m.Calls, t)
	}
	if k.Index < len(w.started) && !w.started[k.Index] {
		w.started[k.Index] = true
		m.Role = "assistant"
	}
	return m
}

type message struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []toolCall `json:"tool_calls,omitempty"`
}

func messageOf(said *rollout.Message) *message {
	m := &message{Role: "assistant", Reasoning: said.Reasoning}
	if !said.NoContent {
		m.Content = &said.Content
	}
	for _, x := range said.ToolCalls {
		m.Calls = append(m.Calls, toolCall{ID: x.ID, Type: "function", Function: function{x.Name, x.Arguments}})
	}
	return m
}

type toolCall struct {
	Index    *int     `json:"index,omitempty"`
	ID       string   `json:"id,omitempty"`
	Type     string   `json:"type,omitempty"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func usageOf(u *engine.Usage) *usage {
	out := &usage{Prompt: u.Prompt, Completion: u.Completion, Total: u.Prompt + u.Completion}
	out.Details.Cached = u.Cached
	return out
}
