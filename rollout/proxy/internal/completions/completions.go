// Package completions is OpenAI's completions, of a prompt without roles.
package completions

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
func (Dialect) Name() string { return "completions" }

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
	if c.Text, c.Prompt, err = prompt(v.Get("prompt")); err != nil {
		return nil, err
	}
	if echo, _ := v.Get("echo").Bool(); echo {
		return nil, wire.Bad("echo is not supported: prompt and reply are recorded apart")
	}
	if n, ok := v.Get("best_of").Int(); ok && n > 1 {
		return nil, wire.Bad("best_of is not supported: ask for n replies")
	}
	if s := v.Get("suffix"); !s.IsNull() && !s.Is("") {
		return nil, wire.Bad("suffix is not supported: what is sampled must go after the prompt")
	}
	if c.N, err = wire.Choices(v); err != nil {
		return nil, err
	}
	if c.Stream, err = wire.Flag(v, "stream"); err != nil {
		return nil, err
	}
	c.KeepUsage, _ = v.Path("stream_options", "include_usage").Bool()
	c.KeepLogprobs = !v.Get("logprobs").IsNull()
	c.KeepIDs, _ = v.Get("return_token_ids").Bool()
	c.Fields = wire.Fields(v, "prompt", "n", "stream", "stream_options", "return_token_ids")
	return c, nil
}

// prompt reads one prompt: text or ids, alone or as the only one of a list.
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

// Writer writes one reply.
func (Dialect) Writer(c *wire.Call, m wire.Meta) wire.Writer { return &writer{call: c, meta: m} }

type writer struct {
	call  *wire.Call
	meta  wire.Meta
	model string
}

type reply struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"`
	Created int64           `json:"created"`
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *map[string]int `json:"usage,omitempty"`
}

type choice struct {
	Index    int               `json:"index"`
	Text     string            `json:"text"`
	Logprobs json.RawMessage   `json:"logprobs"`
	Finish   *string           `json:"finish_reason"`
	IDs      []rollout.TokenID `json:"token_ids,omitempty"`
	Prompt   []rollout.TokenID `json:"prompt_token_ids,omitempty"`
}

func (w *writer) head() *reply {
	return &reply{ID: "cmpl-" + w.meta.ID, Object: "text_completion", Created: w.meta.Created.Unix(), Model: w.model}
}

func (w *writer) choice(index int, text string, ids []rollout.TokenID, logprobs []float32, finish string) choice {
	out := choice{Index: index, Text: text, Logprobs: json.RawMessage("null")}
	if finish != "" {
		out.Finish = &finish
	}
	if w.call.KeepIDs {
		out.IDs = ids
	}
	if w.call.KeepLogprobs && len(ids) > 0 && len(ids) == len(logprobs) {
		tokens := make([]string, len(ids))
		for i, id := range ids {
			tokens[i] = wire.TokenName(id)
		}
		out.Logprobs = wire.JSON(map[string]any{"tokens": tokens, "token_logprobs": logprobs, "top_logprobs": nil, "text_offset": []int{}})
	}
	return out
}

func usage(u *engine.Usage) *map[string]int {
	return &map[string]int{"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion}
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
		k, out := &c.Choices[i], w.head()
		out.Choices = []choice{w.choice(k.Index, k.Text, k.IDs, k.Logprobs, k.Finish)}
		if w.call.KeepIDs {
			out.Choices[0].Prompt = c.Prompt
		}
		dst = sse.Append(dst, "", wire.JSON(out))
	}
	if c.Usage != nil && w.call.KeepUsage {
		out := w.head()
		out.Choices, out.Usage = []choice{}, usage(c.Usage)
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
	out := w.head()
	out.Usage = usage(&r.Usage)
	for i := range r.Choices {
		k := &r.Choices[i]
		c := w.choice(i, k.Message().Content, k.IDs, k.Logprobs, k.Finish)
		if w.call.KeepIDs {
			c.Prompt = r.Prompt
		}
		out.Choices = append(out.Choices, c)
	}
	return wire.JSON(out)
}
