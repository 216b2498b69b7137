package anthropic

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/rollout/proxy/internal/sse"
	"github.com/turnpack/turnpack/rollout/proxy/internal/wire"
)

// Writer returns a writer for one reply.
func (Dialect) Writer(c *wire.Call, m wire.Meta) wire.Writer {
	return &writer{id: "msg_" + m.ID, model: c.Fields["model"], open: -1, calls: map[int]int{}, usage: usage{Input: len(m.Prompt)}}
}

type writer struct {
	id       string
	model    json.RawMessage
	started  bool
	next     int    // index of the next block
	open     int    // index of the open block, −1 = none
	kind     string // of the open block
	thinking []byte
	calls    map[int]int // block index by call index
	finish   string
	stop     string
	usage    usage
}

type usage struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
	Cached int `json:"cache_read_input_tokens"`
	New    int `json:"cache_creation_input_tokens"`
}

type block struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

type reply struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Model   json.RawMessage `json:"model"`
	Content []block         `json:"content"`
	Reason  *string         `json:"stop_reason"`
	Stop    *string         `json:"stop_sequence"`
	Usage   usage           `json:"usage"`
}

func (w *writer) reply() *reply {
	model := w.model
	if model == nil {
		model = json.RawMessage(`""`)
	}
	return &reply{ID: w.id, Type: "message", Role: "assistant", Model: model, Content: []block{}, Usage: w.usage}
}

func event(dst []byte, name string, members map[string]any) []byte {
	members["type"] = name
	return sse.Append(dst, name, wire.JSON(members))
}

func (w *writer) start(dst []byte) []byte {
	if w.started {
		return dst
	}
	w.started = true
	return event(dst, "message_start", map[string]any{"message": w.reply()})
}

// begin closes the open block and begins another.
func (w *writer) begin(dst []byte, b block) []byte {
	dst = w.close(dst)
	w.open, w.kind = w.next, b.Type
	w.next++
	return event(dst, "content_block_start", map[string]any{"index": w.open, "content_block": b})
}

func (w *writer) close(dst []byte) []byte {
	if w.open < 0 {
		return dst
	}
	if w.kind == "thinking" {
		dst = w.delta(dst, w.open, map[string]any{"type": "signature_delta", "signature": signature(w.thinking)})
	}
	dst = event(dst, "content_block_stop", map[string]any{"index": w.open})
	w.open = -1
	return dst
}

func (w *writer) delta(dst []byte, index int, delta map[string]any) []byte {
	return event(dst, "content_block_delta", map[string]any{"index": index, "delta": delta})
}

// signature returns the signature of a thinking block. Clients also send the text back, so the signature only
// needs to identify it.
func signature(thinking []byte) string {
	sum := sha256.Sum256(thinking)
	return wire.Seal(sum[:])
}

// Chunk writes the events of a chunk.
func (w *writer) Chunk(dst []byte, c *engine.Chunk) []byte {
	if c.Prompt != nil {
		w.usage.Input = len(c.Prompt)
	}
	if u := c.Usage; u != nil {
		w.usage = usage{Input: u.Prompt - u.Cached, Output: u.Completion, Cached: u.Cached}
	}
	dst = w.start(dst)
	empty := ""
	for i := range c.Choices {
		k := &c.Choices[i]
		if k.Reasoning != "" {
			if w.open < 0 || w.kind != "thinking" {
				w.thinking = w.thinking[:0]
				dst = w.begin(dst, block{Type: "thinking", Thinking: &empty, Signature: &empty})
			}
			w.thinking = append(w.thinking, k.Reasoning...)
			dst = w.delta(dst, w.open, map[string]any{"type": "thinking_delta", "thinking": k.Reasoning})
		}
		if k.Text != "" {
			if w.open < 0 || w.kind != "text" {
				dst = w.begin(dst, block{Type: "text", Text: &empty})
			}
			dst = w.delta(dst, w.open, map[string]any{"type": "text_delta", "text": k.Text})
		}
		for _, x := range k.Calls {
			at, there := w.calls[x.Index]
			if !there {
				dst = w.begin(dst, block{Type: "tool_use", ID: x.ID, Name: x.Name, Input: json.RawMessage("{}")})
				at = w.open
				w.calls[x.Index] = at
			}
			if x.Arguments != "" {
				dst = w.delta(dst, at, map[string]any{"type": "input_json_delta", "partial_json": x.Arguments})
			}
		}
		if k.Finish != "" {
			w.finish, w.stop = k.Finish, k.Stop
		}
	}
	return dst
}

// reason returns the stop_reason and the stop sequence, nil for none.
func (w *writer) reason() (string, *string) {
	switch {
	case w.finish == "length":
		return "max_tokens", nil
	case len(w.calls) > 0 || w.finish == "tool_calls":
		return "tool_use", nil
	case w.stop != "":
		return "stop_sequence", &w.stop
	case w.finish == "content_filter":
		return "refusal", nil
	}
	return "end_turn", nil
}

// End writes the last events.
func (w *writer) End(dst []byte) []byte {
	dst = w.close(w.start(dst))
	reason, stop := w.reason()
	dst = event(dst, "message_delta", map[string]any{"delta": map[string]any{"stop_reason": reason, "stop_sequence": stop}, "usage": w.usage})
	return event(dst, "message_stop", map[string]any{})
}

// Fail writes the event for a failure within a stream.
func (w *writer) Fail(dst []byte, p *wire.Problem) []byte {
	return sse.Append(dst, "error", problem(p))
}

// Ping writes an event that keeps a waiting client connected.
func (w *writer) Ping(dst []byte) []byte { return event(dst, "ping", map[string]any{}) }

// Whole returns an unstreamed reply.
func (w *writer) Whole(chunks []*engine.Chunk) []byte {
	for _, c := range chunks {
		w.Chunk(nil, c)
	}
	out := w.reply()
	r := wire.Collect(chunks)
	for i := range r.Choices {
		m := r.Choices[i].Message()
		if m.Reasoning != "" {
			s := signature([]byte(m.Reasoning))
			out.Content = append(out.Content, block{Type: "thinking", Thinking: &m.Reasoning, Signature: &s})
		}
		if m.Content != "" {
			out.Content = append(out.Content, block{Type: "text", Text: &m.Content})
		}
		for _, x := range m.ToolCalls {
			input := json.RawMessage(x.Arguments)
			if len(input) == 0 {
				input = json.RawMessage("{}")
			} else if !json.Valid(input) {
				// Wrap the invalid text in an object; a stream would pass it on unchanged.
				input = wire.JSON(map[string]string{"arguments": x.Arguments})
			}
			out.Content = append(out.Content, block{Type: "tool_use", ID: x.ID, Name: x.Name, Input: input})
		}
	}
	reason, stop := w.reason()
	out.Reason, out.Stop = &reason, stop
	return wire.JSON(out)
}
