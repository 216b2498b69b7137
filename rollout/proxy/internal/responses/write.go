package responses

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/rollout/proxy/internal/sse"
	"github.com/turnpack/turnpack/rollout/proxy/internal/wire"
)

// Writer returns a writer for one reply.
func (Dialect) Writer(c *wire.Call, m wire.Meta) wire.Writer {
	own, _ := c.Own.(*echo)
	return &writer{own: own, meta: m, open: -1, calls: map[int]int{}}
}

type writer struct {
	own     *echo
	meta    wire.Meta
	seq     int
	started bool
	items   []*item
	open    int         // index of the open item, −1 = none
	calls   map[int]int // item index by call index
	finish  string
	usage   *engine.Usage
}

// item is an item of the output.
type item struct {
	kind string // reasoning, message, function_call, custom_tool_call
	id   string
	call string
	name string
	text []byte
}

func (w *writer) json(it *item, status string) map[string]any {
	out := map[string]any{"type": it.kind, "id": it.id, "status": status}
	text := string(it.text)
	switch it.kind {
	case "reasoning":
		delete(out, "status")
		out["summary"] = []any{}
		if text != "" {
			out["content"] = []any{map[string]any{"type": "reasoning_text", "text": text}}
		}
		if w.own.sealed && text != "" {
			out["encrypted_content"] = wire.Seal(it.text)
		}
	case "message":
		out["role"], out["content"] = "assistant", []any{}
		if status == "completed" {
			out["content"] = []any{textPart(text)}
		}
	case "function_call":
		out["call_id"], out["name"], out["arguments"] = it.call, it.name, text
	case "custom_tool_call":
		out["call_id"], out["name"], out["input"] = it.call, it.name, customInput(text)
	}
	if x, ok := w.own.spaces[it.name]; ok {
		out["namespace"], out["name"] = x[0], x[1]
	}
	return out
}

// customInput returns the text of a tool whose only argument is input.
func customInput(arguments string) string {
	var x struct{ Input *string }
	if json.Unmarshal([]byte(arguments), &x) == nil && x.Input != nil {
		return *x.Input
	}
	return arguments
}

func textPart(text string) map[string]any {
	return map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

func (w *writer) event(dst []byte, name string, members map[string]any) []byte {
	members["type"], members["sequence_number"] = name, w.seq
	w.seq++
	return sse.Append(dst, name, wire.JSON(members))
}

func (w *writer) response(status string, p *wire.Problem) map[string]any {
	out := map[string]any{"id": "resp_" + w.meta.ID, "object": "response", "created_at": w.meta.Created.Unix(), "status": status,
		"background": false, "error": nil, "incomplete_details": nil, "usage": nil, "top_logprobs": 0}
	for k, v := range w.own.fields {
		out[k] = v
	}
	output := []any{}
	for _, it := range w.items {
		output = append(output, w.json(it, "completed"))
	}
	if out["output"] = output; status == "in_progress" {
		out["output"] = []any{}
	}
	if p != nil {
		out["error"] = map[string]any{"code": "server_error", "message": p.Message}
	}
	if status == "incomplete" {
		out["incomplete_details"] = map[string]any{"reason": "max_output_tokens"}
	}
	if u := w.usage; u != nil && status != "in_progress" {
		out["usage"] = map[string]any{"input_tokens": u.Prompt, "output_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
			"input_tokens_details": map[string]any{"cached_tokens": u.Cached}, "output_tokens_details": map[string]any{"reasoning_tokens": 0}}
	}
	return out
}

func (w *writer) start(dst []byte) []byte {
	if w.started {
		return dst
	}
	w.started = true
	dst = w.event(dst, "response.created", map[string]any{"response": w.response("in_progress", nil)})
	return w.event(dst, "response.in_progress", map[string]any{"response": w.response("in_progress", nil)})
}

// begin closes the open item and begins another.
func (w *writer) begin(dst []byte, it *item) []byte {
	dst = w.close(dst)
	prefix := map[string]string{"reasoning": "rs", "message": "msg", "function_call": "fc", "custom_tool_call": "ctc"}[it.kind]
	w.open = len(w.items)
	it.id = fmt.Sprintf("%s_%s_%d", prefix, w.meta.ID, w.open)
	w.items = append(w.items, it)
	dst = w.event(dst, "response.output_item.added", map[string]any{"output_index": w.open, "item": w.json(it, "in_progress")})
	switch it.kind {
	case "reasoning":
		dst = w.at(dst, "response.content_part.added", w.open, map[string]any{"content_index": 0, "part": map[string]any{"type": "reasoning_text", "text": ""}})
	case "message":
		dst = w.at(dst, "response.content_part.added", w.open, map[string]any{"content_index": 0, "part": textPart("")})
	}
	return dst
}

// at appends an event about an item.
func (w *writer) at(dst []byte, name string, index int, members map[string]any) []byte {
	more := map[string]any{"item_id": w.items[index].id, "output_index": index}
	maps.Copy(more, members)
	return w.event(dst, name, more)
}

func (w *writer) close(dst []byte) []byte {
	if w.open < 0 {
		return dst
	}
	i, it := w.open, w.items[w.open]
	w.open = -1
	text := string(it.text)
	switch it.kind {
	case "reasoning":
		dst = w.at(dst, "response.reasoning_text.done", i, map[string]any{"content_index": 0, "text": text})
		dst = w.at(dst, "response.content_part.done", i, map[string]any{"content_index": 0, "part": map[string]any{"type": "reasoning_text", "text": text}})
	case "message":
		dst = w.at(dst, "response.output_text.done", i, map[string]any{"content_index": 0, "text": text, "logprobs": []any{}})
		dst = w.at(dst, "response.content_part.done", i, map[string]any{"content_index": 0, "part": textPart(text)})
	case "function_call":
		dst = w.at(dst, "response.function_call_arguments.done", i, map[string]any{"name": it.name, "arguments": text})
	case "custom_tool_call":
		// The input is known only when its JSON is complete.
		dst = w.at(dst, "response.custom_tool_call_input.delta", i, map[string]any{"delta": customInput(text)})
		dst = w.at(dst, "response.custom_tool_call_input.done", i, map[string]any{"input": customInput(text)})
	}
	return w.event(dst, "response.output_item.done", map[string]any{"output_index": i, "item": w.json(it, "completed")})
}

// Chunk writes the events of a chunk.
func (w *writer) Chunk(dst []byte, c *engine.Chunk) []byte {
	if c.Usage != nil {
		w.usage = c.Usage
	}
	dst = w.start(dst)
	for i := range c.Choices {
		k := &c.Choices[i]
		if k.Reasoning != "" {
			dst = w.text(dst, "reasoning", "response.reasoning_text.delta", k.Reasoning, nil)
		}
		if k.Text != "" {
			dst = w.text(dst, "message", "response.output_text.delta", k.Text, map[string]any{"logprobs": []any{}})
		}
		for _, x := range k.Calls {
			at, there := w.calls[x.Index]
			if !there {
				kind := "function_call"
				if w.own.custom[x.Name] {
					kind = "custom_tool_call"
				}
				dst = w.begin(dst, &item{kind: kind, call: x.ID, name: x.Name})
				at = w.open
				w.calls[x.Index] = at
			}
			it := w.items[at]
			it.text = append(it.text, x.Arguments...)
			if x.Arguments != "" && it.kind == "function_call" {
				dst = w.at(dst, "response.function_call_arguments.delta", at, map[string]any{"delta": x.Arguments})
			}
		}
		if k.Finish != "" {
			w.finish = k.Finish
		}
	}
	return dst
}

func (w *writer) text(dst []byte, kind, name, text string, more map[string]any) []byte {
	if w.open < 0 || w.items[w.open].kind != kind {
		dst = w.begin(dst, &item{kind: kind})
	}
	it := w.items[w.open]
	it.text = append(it.text, text...)
	members := map[string]any{"content_index": 0, "delta": text}
	maps.Copy(members, more)
	return w.at(dst, name, w.open, members)
}

func (w *writer) status() string {
	if w.finish == "length" {
		return "incomplete"
	}
	return "completed"
}

// End writes the last events.
func (w *writer) End(dst []byte) []byte {
	dst = w.close(w.start(dst))
	status := w.status()
	return w.event(dst, "response."+status, map[string]any{"response": w.response(status, nil)})
}

// Fail writes the event for a failure within a stream.
func (w *writer) Fail(dst []byte, p *wire.Problem) []byte {
	dst = w.start(dst)
	return w.event(dst, "response.failed", map[string]any{"response": w.response("failed", p)})
}

// Ping writes a comment that keeps a waiting client connected.
func (w *writer) Ping(dst []byte) []byte { return append(dst, wire.Comment...) }

// Whole returns an unstreamed reply.
func (w *writer) Whole(chunks []*engine.Chunk) []byte {
	for _, c := range chunks {
		w.Chunk(nil, c)
	}
	return wire.JSON(w.response(w.status(), nil))
}
