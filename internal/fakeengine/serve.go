package fakeengine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
)

// Kinds of text in a reply.
const (
	mark = iota
	reasoning
	content
	arguments
)

// span is a part of the text of a reply, with its kind and call.
type span struct {
	from, to, kind int
	call           int
	name           string
}

// parse finds reasoning, content and tool calls in the text of a reply.
func parse(text string, tools bool) (spans []span, calls int) {
	at := 0
	until := func(s string) int {
		if i := strings.Index(text[at:], s); i >= 0 {
			return at + i
		}
		return len(text)
	}
	if strings.HasPrefix(text, "<think>") {
		at = min(len("<think>\n"), len(text))
		end := until("</think>")
		spans = append(spans, span{from: at, to: at + len(strings.TrimRight(text[at:end], "\n")), kind: reasoning})
		at = min(end+len("</think>"), len(text))
		at += len(text[at:]) - len(strings.TrimLeft(text[at:], "\n"))
	}
	for at < len(text) {
		end := len(text)
		if tools {
			end = until("<tool_call>")
		}
		if to := at + len(strings.TrimRight(text[at:end], "\n")); to > at && (end < len(text) || calls == 0) {
			if end == len(text) {
				to = end
			}
			spans = append(spans, span{from: at, to: to, kind: content})
		}
		if at = end; at == len(text) {
			break
		}
		at += len("<tool_call>")
		end = until("</tool_call>")
		var c struct {
			Name      string
			Arguments json.RawMessage
		}
		body := text[at:end]
		if json.Unmarshal([]byte(body), &c) == nil {
			from := at + strings.Index(body, string(c.Arguments))
			spans = append(spans, span{from: from, to: from + len(c.Arguments), kind: arguments, call: calls, name: c.Name})
			calls++
		}
		at = min(end+len("</tool_call>"), len(text))
	}
	return spans, calls
}

// object is a JSON object.
type object = map[string]any

// encodeJSON encodes a value; NaN is written as Python does.
func encodeJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"error":{"message":"the fake engine cannot write its reply"}}`)
	}
	return bytes.ReplaceAll(b, []byte(`"\u0000NaN"`), []byte("NaN"))
}

// number is a log probability, of which JSON has no NaN.
func number(x float64) any {
	if math.IsNaN(x) {
		return "\x00NaN"
	}
	return x
}

// pause waits for d. If the client disconnects, it aborts the reply, as an engine does.
func (w *writer) pause(d time.Duration) {
	if d == 0 {
		return
	}
	select {
	case <-w.r.Context().Done():
		panic(http.ErrAbortHandler)
	case <-time.After(d):
	}
}

// writer aborts a reply after left bytes.
type writer struct {
	w    http.ResponseWriter
	r    *http.Request
	left int // −1 = no limit
}

func (w *writer) write(b []byte) {
	if w.left < 0 {
		w.w.Write(b)
		return
	}
	n := min(len(b), w.left)
	w.w.Write(b[:n])
	if w.left -= n; w.left == 0 {
		_ = http.NewResponseController(w.w).Flush() // a writer that is not a connection needs none
		panic(http.ErrAbortHandler)                 // closes the connection
	}
}

// answer serves completions: of chats, of prompts, or of tokens without text.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, chat, tokens bool) {
	n := s.requests.Add(1)
	f := &s.opts.Faults
	if int(n) <= f.Fail {
		refuse(w, cmp.Or(f.Status, http.StatusInternalServerError), "the fake engine was told to fail")
		return
	}
	var q request
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	prompt, err := s.prompt(&q, chat)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	choices := make([]*sampled, max(1, q.N))
	usage := object{"prompt_tokens": len(prompt)}
	total := f.Count
	for i := range choices {
		if choices[i], err = s.sample(&q, prompt, i); err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		total += len(choices[i].ids)
	}
	usage["completion_tokens"], usage["total_tokens"] = total, total+len(prompt)
	left := -1
	if f.Cut > 0 {
		left = f.Cut
	}
	out := &reply{s: s, q: &q, chat: chat, w: &writer{w, r, left}, tokens: tokens, prompt: prompt, choices: choices, usage: usage,
		id: fmt.Sprintf("%s-%016x", map[bool]string{true: "chatcmpl", false: "cmpl"}[chat], hash(uint64(n), prompt))}
	if q.Stream {
		out.stream()
	} else {
		out.w.pause(f.Delay)
		out.writeWhole()
	}
}

// generate serves /inference/v1/generate: tokens in, tokens out, no text.
func (s *Server) generate(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Tokens   []rollout.TokenID          `json:"token_ids"`
		Sampling map[string]json.RawMessage `json:"sampling_params"`
		Stream   bool                       `json:"stream"`
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || len(q.Tokens) == 0 {
		refuse(w, http.StatusBadRequest, "token_ids are expected")
		return
	}
	if q.Stream && s.opts.Unstreamed {
		refuse(w, http.StatusBadRequest, "Streaming is not yet supported for this endpoint")
		return
	}
	if q.Sampling["stop"] != nil || q.Sampling["logprobs"] == nil {
		refuse(w, http.StatusBadRequest, "the fake engine has no text to look for stop strings, and wants logprobs")
		return
	}
	delete(q.Sampling, "logprobs")
	q.Sampling["prompt"], q.Sampling["stream"] = encodeJSON(q.Tokens), encodeJSON(q.Stream)
	q.Sampling["logprobs"], q.Sampling["return_token_ids"] = json.RawMessage("1"), json.RawMessage("true")
	q.Sampling["stream_options"] = json.RawMessage(`{"include_usage":true}`)
	body := bytes.NewReader(encodeJSON(q.Sampling))
	inner, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "/v1/completions", body)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	s.answer(w, inner, false, true)
}

// reply is a reply being written.
type reply struct {
	s       *Server
	q       *request
	chat    bool
	tokens  bool // ids only
	w       *writer
	id      string
	prompt  []rollout.TokenID
	choices []*sampled
	usage   object
}

func (r *reply) head(kind string, choices []any) object {
	if r.tokens {
		return object{"request_id": r.id, "choices": choices}
	}
	name := map[bool]string{true: "chat." + kind, false: "text_completion"}[r.chat]
	o := object{"id": r.id, "object": name, "created": 1, "model": r.s.opts.Name, "choices": choices}
	if v := *r.s.version.Load(); v != "" {
		o["weight_version"] = v
	}
	return o
}

// logprobs returns the log probabilities of tokens [a, b) of a choice, or nil if not
// requested.
func (r *reply) logprobs(x *sampled, a, b int) any {
	if r.q.Logprobs == nil || r.q.Logprobs == false {
		return nil
	}
	if !r.chat && !r.tokens {
		tokens, values := []string{}, []any{}
		for i := a; i < b; i++ {
			tokens = append(tokens, "token_id:"+strconv.Itoa(int(x.ids[i])))
			values = append(values, number(x.logprobs[i]))
		}
		return object{"text_offset": []int{}, "token_logprobs": values, "tokens": tokens, "top_logprobs": []any{}}
	}
	list := []any{}
	for i := a; i < b; i++ {
		list = append(list, object{"token": "token_id:" + strconv.Itoa(int(x.ids[i])), "logprob": number(x.logprobs[i]), "bytes": nil, "top_logprobs": []any{}})
	}
	return object{"content": list}
}

func (r *reply) tools() bool {
	return len(r.q.Tools) > 0 && string(r.q.Tools) != "null" && string(r.q.Tools) != "[]" && r.q.Choice != "none"
}

func (r *reply) finish(x *sampled, calls int) (string, any) {
	finish := x.finish
	if calls > 0 && finish == "stop" && r.chat {
		finish = "tool_calls"
	}
	if x.stop != "" {
		return finish, x.stop
	}
	return finish, nil
}

func (r *reply) callID(choice, call int) string {
	return fmt.Sprintf("chatcmpl-tool-%016x", hash(7, r.prompt, choice, call))
}

func (r *reply) writeWhole() {
	var list []any
	for i, x := range r.choices {
		spans, calls := parse(x.text, r.tools())
		o := object{"index": i}
		if r.chat {
			m := map[int]string{}
			toolCalls := []any{}
			for _, p := range spans {
				t := x.text[p.from:p.to]
				if m[p.kind] += t; p.kind == arguments {
					toolCalls = append(toolCalls, object{"id": r.callID(i, p.call), "type": "function", "function": object{"name": p.name, "arguments": t}})
				}
			}
			message := object{"role": "assistant", "content": nil, "tool_calls": toolCalls}
			if m[content] != "" {
				message["content"] = m[content]
			}
			if m[reasoning] != "" {
				message["reasoning"] = m[reasoning]
			}
			o["message"] = message
		} else if !r.tokens {
			o["text"] = x.text
		}
		finish, stop := r.finish(x, calls)
		o["logprobs"], o["finish_reason"], o["stop_reason"] = r.logprobs(x, 0, len(x.ids)), finish, stop
		if r.q.IDs {
			o["token_ids"] = r.ids(x, 0, len(x.ids))
			if !r.chat && !r.tokens {
				o["prompt_token_ids"] = r.prompt
			}
		}
		list = append(list, o)
	}
	o := r.head("completion", list)
	if !r.tokens {
		o["usage"] = r.usage
	}
	if r.chat && r.q.IDs {
		o["prompt_token_ids"] = r.prompt
	}
	r.w.w.Header().Set("Content-Type", "application/json")
	r.w.write(encodeJSON(o))
}

// ids returns the ids of tokens [a, b) of a choice, with the faults of the server.
func (r *reply) ids(x *sampled, a, b int) []rollout.TokenID {
	out := append([]rollout.TokenID(nil), x.ids[a:b]...)
	if r.s.opts.Faults.Duplicate && a == 0 {
		out = append(out, out...)
	}
	return out
}

func (r *reply) event(v any) {
	r.w.pause(r.s.opts.Faults.Delay)
	b := encodeJSON(v)
	r.w.write(append(append([]byte("data: "), b...), "\n\n"...))
	_ = http.NewResponseController(r.w.w).Flush() // as in write
}

func (r *reply) stream() {
	r.w.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	f := &r.s.opts.Faults
	for i := range r.choices {
		if r.chat {
			o := r.head("completion.chunk", []any{object{"index": i, "delta": object{"role": "assistant", "content": ""}, "logprobs": nil, "finish_reason": nil}})
			if r.q.IDs {
				o["prompt_token_ids"] = r.prompt
			}
			r.event(o)
		}
	}
	step := max(1, r.s.opts.Event)
	for i, x := range r.choices {
		spans, calls := parse(x.text, r.tools())
		told, begun := 0, 0 // bytes of text and calls already sent
		for a := 0; a < len(x.ids); a += step {
			b := min(a+step, len(x.ids))
			to := min(x.ends[b-1], len(x.text))
			for b < len(x.ids) && to < len(x.text) && !utf8.RuneStart(x.text[to]) {
				to-- // the rest of a character comes with its last token
			}
			to = max(to, told)
			var finish, stop any
			last := b == len(x.ids)
			if last {
				to = len(x.text)
				finish, stop = r.finish(x, calls)
			}
			var delta object
			if r.chat {
				if delta, begun = r.delta(x, i, spans, told, to, begun); len(delta) == 0 && f.Drop && !last && r.tools() {
					told = to
					continue
				}
			}
			o := object{"index": i, "logprobs": r.logprobs(x, a, b), "finish_reason": finish, "stop_reason": stop}
			if r.chat {
				o["delta"] = delta
			} else if !r.tokens {
				o["text"] = x.text[told:to]
			}
			if r.q.IDs {
				o["token_ids"] = r.ids(x, a, b)
				if !r.chat && !r.tokens && a == 0 {
					o["prompt_token_ids"] = r.prompt
				}
			}
			told = to
			if f.Garble && a > 0 {
				r.w.write([]byte("data: {\"choices\": [{]\n\n"))
			}
			r.event(r.head("completion.chunk", []any{o}))
		}
	}
	if r.q.Options.Usage {
		o := r.head("completion.chunk", []any{})
		o["usage"] = r.usage
		r.event(o)
	}
	r.w.write([]byte("data: [DONE]\n\n"))
}

// delta returns what the text from a to b adds to a message.
func (r *reply) delta(x *sampled, choice int, spans []span, a, b, begun int) (object, int) {
	text := map[int]string{}
	calls := []any{}
	for _, p := range spans {
		from, to := max(a, p.from), min(b, p.to)
		if from >= to {
			continue
		}
		t := x.text[from:to]
		if p.kind != arguments {
			text[p.kind] += t
			continue
		}
		if begun <= p.call {
			begun = p.call + 1
			calls = append(calls, object{"index": p.call, "id": r.callID(choice, p.call), "type": "function", "function": object{"name": p.name, "arguments": t}})
		} else {
			calls = append(calls, object{"index": p.call, "function": object{"arguments": t}})
		}
	}
	d := object{}
	if t := text[reasoning]; t != "" {
		d["reasoning"] = t
	}
	if t := text[content]; t != "" {
		d["content"] = t
	}
	if len(calls) > 0 {
		d["tool_calls"] = calls
	}
	return d, begun
}
