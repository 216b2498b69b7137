// Package fakeengine is an inference engine without a model: a server with the API of
// vLLM whose replies are scripted or generated from a seed, for tests, demonstrations and
// trying out a harness. It can simulate faults of real engines.
//
//	server := httptest.NewServer(fakeengine.New(fakeengine.Options{Script: []fakeengine.Reply{{Content: "Hello."}}}))
package fakeengine

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// Reply is one scripted reply.
type Reply struct {
	// Text is the sampled text including markers: <think>…</think>, then the content,
	// then calls as <tool_call>{"name": …, "arguments": {…}}</tool_call>. If it is "", it
	// is built from the other fields.
	Text      string `json:"text,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
	Content   string `json:"content,omitempty"`
	Calls     []Call `json:"tool_calls,omitempty"`
}

// Call is a tool call of a scripted reply.
type Call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// Faults are simulated faults; the zero value has none.
type Faults struct {
	Count     int           // added to the completion tokens of usage
	Fail      int           // this many requests at the start fail with Status
	Status    int           // 0 = 500
	Cut       int           // a reply breaks off after so many bytes, 0 = never
	Delay     time.Duration // before each event
	Duplicate bool          // the ids of one event are repeated
	Drop      bool          // streams with tools omit events without text, as some parsers do
	NaN       bool          // a log probability is NaN
	Beyond    bool          // an id is outside the vocabulary
	Garble    bool          // an event is invalid JSON
}

// Options configure a Server.
type Options struct {
	Model *tokenize.Model // nil = a token for each byte
	Name  string          // of the model, "" = fake
	// Script holds the replies of a conversation, indexed by its number of assistant
	// messages modulo the length. If it is empty, replies are generated from Seed and the
	// prompt.
	Script []Reply
	Seed   uint64
	Event  int    // tokens per stream event, 0 = 1
	Weight string // weight_version of replies, "" = none
	// Unstreamed refuses streaming of /inference/v1/generate, as its first versions do.
	Unstreamed bool
	Faults     Faults
}

// Server is the engine, an http.Handler.
type Server struct {
	opts     Options
	mux      *http.ServeMux
	requests atomic.Int64
	version  atomic.Pointer[string]
	begin    string // what the template writes before a reply
}

// New returns a server.
func New(o Options) *Server {
	o.Name = cmp.Or(o.Name, "fake")
	s := &Server{opts: o, mux: http.NewServeMux(), begin: "<assistant>"}
	s.version.Store(&o.Weight)
	if o.Model != nil && o.Model.Template != nil {
		with, err1 := s.render([]byte(`[{"role":"user","content":"x"}]`), nil, nil, true)
		without, err2 := s.render([]byte(`[{"role":"user","content":"x"}]`), nil, nil, false)
		if err1 == nil && err2 == nil {
			s.begin = strings.TrimPrefix(with, without)
		}
	}
	s.mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, true, false) })
	s.mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, false, false) })
	s.mux.HandleFunc("POST /inference/v1/generate", s.generate)
	s.mux.HandleFunc("POST /tokenize", s.tokenize)
	s.mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, object{"object": "list", "data": []any{object{"id": o.Name, "object": "model", "created": 1, "owned_by": "vllm", "max_model_len": 1 << 20}}})
	})
	s.mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	s.mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, object{"version": "fake"}) })
	return s
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Requests returns the number of requests for replies so far.
func (s *Server) Requests() int { return int(s.requests.Load()) }

// SetWeight sets the weight_version of later replies.
func (s *Server) SetWeight(v string) { s.version.Store(&v) }

// Script reads replies from JSON Lines.
func Script(r io.Reader) ([]Reply, error) {
	var out []Reply
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		var x Reply
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			return nil, fmt.Errorf("line %d of the script: %w", n, err)
		}
		out = append(out, x)
	}
	return out, lines.Err()
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(encodeJSON(v))
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, object{"error": object{"message": message, "type": http.StatusText(status), "code": status}})
}

// request holds the fields of a request that the server uses.
type request struct {
	Model    string          `json:"model"`
	Messages json.RawMessage `json:"messages"`
	Tools    json.RawMessage `json:"tools"`
	Kwargs   map[string]any  `json:"chat_template_kwargs"`
	Prompt   json.RawMessage `json:"prompt"`
	Stream   bool            `json:"stream"`
	Options  struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	N         int   `json:"n"`
	Max       *int  `json:"max_tokens"`
	MaxToo    *int  `json:"max_completion_tokens"`
	Stop      any   `json:"stop"`
	Logprobs  any   `json:"logprobs"`
	IDs       bool  `json:"return_token_ids"`
	Choice    any   `json:"tool_choice"`
	Generate  *bool `json:"add_generation_prompt"`
	Continue  bool  `json:"continue_final_message"`
	assistant int
	sampled   int // ids at the end of the prompt that begin the reply
}

// render renders a conversation as a prompt. Templates get the arguments of calls as
// objects, as with vLLM.
func (s *Server) render(messages, tools json.RawMessage, kwargs map[string]any, generate bool) (string, error) {
	var list []map[string]any
	if err := json.Unmarshal(messages, &list); err != nil {
		return "", fmt.Errorf("messages: %w", err)
	}
	if s.opts.Model == nil || s.opts.Model.Template == nil {
		var b strings.Builder
		if len(tools) > 0 && string(tools) != "null" {
			fmt.Fprintf(&b, "<tools>%s\n", tools)
		}
		for _, m := range list {
			text, _ := json.Marshal(m["content"]) // cannot fail: decoded from JSON
			fmt.Fprintf(&b, "<%v>", m["role"])
			if r, _ := m["reasoning"].(string); r != "" {
				b.WriteString("<think>" + r + "</think>")
			}
			if c, ok := m["content"].(string); ok {
				b.WriteString(c)
			} else if m["content"] != nil {
				b.Write(text)
			}
			for _, f := range functions(m) {
				fmt.Fprintf(&b, "<tool_call>{\"name\": %q, \"arguments\": %v}</tool_call>", f["name"], f["arguments"])
			}
			b.WriteByte('\n')
		}
		if generate {
			b.WriteString(s.begin)
		}
		return b.String(), nil
	}
	for _, m := range list {
		for _, f := range functions(m) {
			if text, ok := f["arguments"].(string); ok {
				f["arguments"] = json.RawMessage(text)
			}
		}
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	value := func(raw []byte) (chat.Value, error) {
		if len(raw) == 0 {
			return chat.Null(), nil
		}
		return chat.ParseJSON(raw)
	}
	v, err := value(raw)
	if err != nil {
		return "", err
	}
	t, err := value(tools)
	if err != nil {
		return "", err
	}
	c, err := chat.NewConversation(v, t, chat.Null(), chat.ConversationOptions{})
	if err != nil {
		return "", err
	}
	in := chat.Input{AddGenerationPrompt: generate, Kwargs: map[string]chat.Value{}}
	for k, v := range s.opts.Model.SpecialTokens {
		in.Kwargs[k] = chat.String(v)
	}
	for k, v := range kwargs {
		raw, err := json.Marshal(v)
		if err != nil {
			return "", err
		}
		if in.Kwargs[k], err = chat.ParseJSON(raw); err != nil {
			return "", err
		}
	}
	res, err := s.opts.Model.Template.Render(context.Background(), c, in)
	if err != nil {
		return "", err
	}
	return string(res.Text), nil
}

// functions returns the function object of each call in a message, nil for an invalid
// one.
func functions(message map[string]any) (out []map[string]any) {
	calls, _ := message["tool_calls"].([]any)
	for _, c := range calls {
		call, _ := c.(map[string]any)
		f, _ := call["function"].(map[string]any)
		out = append(out, f)
	}
	return out
}

// stopToken returns the stop token; without a model, the id after the 256 bytes.
func (s *Server) stopToken() rollout.TokenID {
	if m := s.opts.Model; m != nil && len(m.NamedStops) > 0 {
		return m.NamedStops[0]
	}
	return 256
}

func (s *Server) encode(text string) ([]rollout.TokenID, error) {
	if s.opts.Model != nil {
		var e engine.Encoding
		err := s.opts.Model.Tokenizer.Encode(&e, text, engine.EncodeOptions{})
		return e.IDs, err
	}
	out := make([]rollout.TokenID, len(text))
	for i := range len(text) {
		out[i] = rollout.TokenID(text[i])
	}
	return out, nil
}

func (s *Server) decode(ids []rollout.TokenID) (string, error) {
	if s.opts.Model != nil {
		return s.opts.Model.Tokenizer.Decode(ids)
	}
	out := make([]byte, 0, len(ids))
	for i, id := range ids {
		switch {
		case id >= 0 && id < 256:
			out = append(out, byte(id))
		case id != 256:
			return "", fmt.Errorf("token %d is id %d, which is none of the model's", i, id)
		}
	}
	return string(out), nil
}

// prompt returns the prompt ids of a request.
func (s *Server) prompt(q *request, chat bool) ([]rollout.TokenID, error) {
	if chat {
		generate := q.Generate == nil || *q.Generate
		text, err := s.render(q.Messages, q.Tools, q.Kwargs, generate)
		if err != nil {
			return nil, err
		}
		var list []struct {
			Role    string
			Content any
		}
		_ = json.Unmarshal(q.Messages, &list) // render has already decoded them
		if q.Continue {
			if generate || len(list) == 0 || list[len(list)-1].Role != "assistant" {
				return nil, fmt.Errorf("continue_final_message needs a last message of the assistant, and no generation prompt")
			}
			said, _ := list[len(list)-1].Content.(string)
			at := strings.LastIndex(text, said)
			if at < 0 {
				return nil, fmt.Errorf("continue_final_message: the template changes the last message")
			}
			text, q.assistant = text[:at+len(said)], -1
		}
		for _, m := range list {
			if m.Role == "assistant" {
				q.assistant++
			}
		}
		return s.encode(text)
	}
	var ids []rollout.TokenID
	var text string
	if json.Unmarshal(q.Prompt, &ids) != nil {
		if err := json.Unmarshal(q.Prompt, &text); err != nil {
			return nil, fmt.Errorf("prompt: one text or one list of ids is expected")
		}
		return s.encode(text)
	}
	text, err := s.decode(ids)
	q.assistant = max(0, strings.Count(text, s.begin)-1)
	for !strings.HasSuffix(text, s.begin) && strings.Contains(text, s.begin) && q.sampled < len(ids) && err == nil {
		q.sampled++
		text, err = s.decode(ids[:len(ids)-q.sampled])
	}
	return ids, err
}

func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	var q request
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	ids, err := s.prompt(&q, len(q.Messages) > 0)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	answer(w, http.StatusOK, object{"count": len(ids), "max_model_len": 1 << 20, "tokens": ids})
}
