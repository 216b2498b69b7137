package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy/internal/sse"
)

// Options configures a server. URL is required.
type Options struct {
	URL string // of the server, without /v1 and without credentials
	// Kind is the kind of server: "vllm", the default, "vllm-tokens" or "sglang". All take messages and ids:
	// vLLM by chat completions and completions, SGLang by chat completions and generate. vllm-tokens is a vLLM
	// whose /inference/v1/generate is used if ids suffice: tokens in, tokens out, without its detokenizer.
	Kind string
	// Key is sent as a bearer token, "" = none. No error and no record contains it.
	Key string
	// Model replaces the model name of the client's request, "" = keep it.
	Model string
	// Client sends the requests, nil = a client of the server's own with enough connections. Redirects are not
	// followed.
	Client *http.Client

	// MaxReply limits the bytes of an unstreamed reply, of an event of a stream, and of the text of a stream;
	// 0 = 64 MiB.
	MaxReply int
	// Silence is the maximum time before the first event of a stream and between events, 0 = 10 min, and six
	// times as long for an unstreamed reply. A longer silence is an error.
	Silence time.Duration
}

// validate reports all invalid fields at once, their names after the prefix in.
func (o Options) validate(in string) error {
	l := faults.List{Of: in}
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		l.Add("URL", "an http or https address of the engine is expected")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		l.Add("URL", "it has credentials, a query or a fragment (set Options.Key)")
	}
	faults.Word(&l, "Kind", o.Kind, kindVLLM, kindVLLMTokens, kindSGLang)
	l.Count("MaxReply", o.MaxReply)
	l.Count("Silence", int(o.Silence))
	return l.Err()
}

// server is one vLLM or SGLang server.
type server struct {
	opts Options
	base string
	http *http.Client

	mu     sync.Mutex
	status Status
	fails  int  // in a row
	whole  bool // replies of ids alone are requested unstreamed
}

// New checks the options and returns a server, without contacting it.
func New(o Options) (Engine, error) {
	s, err := newServer(o, "")
	if err != nil {
		return nil, err
	}
	return s, nil
}

func newServer(o Options, in string) (*server, error) {
	if err := o.validate(in); err != nil {
		return nil, err
	}
	o.Kind, o.MaxReply, o.Silence = cmp.Or(o.Kind, kindVLLM), cmp.Or(o.MaxReply, 64<<20), cmp.Or(o.Silence, 10*time.Minute)
	s := &server{opts: o, base: strings.TrimSuffix(strings.TrimRight(o.URL, "/"), "/v1")}
	client := http.Client{}
	if o.Client != nil {
		client = *o.Client
	} else {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.Proxy, t.MaxIdleConns, t.MaxIdleConnsPerHost, t.DisableCompression = nil, 0, 1024, true
		t.WriteBufferSize, t.ReadBufferSize = 32<<10, 32<<10
		client.Transport = t
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s.http = &client
	s.status = Status{Name: s.base, Kind: o.Kind, Streams: "unknown"}
	return s, nil
}

// Status returns the state of the server in one entry.
func (s *server) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []Status{s.status}
}

// Route returns the server's name.
func (s *server) Route(string) string { return s.base }

// Close closes idle connections.
func (s *server) Close() {
	if s.http != nil {
		s.http.CloseIdleConnections()
	}
}

// available reports whether the server may be called, that is, is not ejected.
func (s *server) available(now time.Time) (until time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status.Down, !now.Before(s.status.Down)
}

// countCall counts a call. A server that fails three times in a row is ejected for a second, then for twice as
// long each time, up to a minute.
func (s *server) countCall(err error) {
	var e *Error
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Running--
	s.status.Calls++
	if !errors.As(err, &e) {
		if err == nil {
			s.fails, s.status.Down = 0, time.Time{}
		}
		return
	}
	s.status.Failed++
	s.status.Why = e.Message
	if e.Status < 500 {
		return
	}
	if s.fails++; s.fails >= 3 {
		s.status.Down = time.Now().Add(min(time.Minute, time.Second<<min(s.fails-3, 10)))
	}
}

// Generate calls the server. See Engine.
func (s *server) Generate(ctx context.Context, r *Request, yield func(*Chunk) error) (err error) {
	s.mu.Lock()
	s.status.Running++
	s.mu.Unlock()
	defer func() { s.countCall(err) }()
	path, body, stream, err := s.body(r)
	if err == nil {
		err = s.generate(ctx, r, path, body, stream, yield)
	}
	if errors.Is(err, errWhole) { // a version that does not stream ids returns them all at once
		s.mu.Lock()
		s.whole = true
		s.mu.Unlock()
		return s.generate(ctx, r, path, s.tokensBody(r, false), false, yield)
	}
	return err
}

// errWhole is the cause of a server's refusal to stream ids.
var errWhole = errors.New("it streams no ids")

// generate sends a request and yields the reply.
func (s *server) generate(ctx context.Context, r *Request, path string, body []byte, stream bool, yield func(*Chunk) error) (err error) {
	outer, quiet := ctx, s.opts.Silence
	if !stream { // nothing arrives until all ids are sampled
		quiet *= 6
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(quiet, func() { cancel(broken(nil, "it says nothing for %s", quiet)) })
	defer silence.Stop()
	defer func() {
		if silent, ok := errors.AsType[*Error](context.Cause(ctx)); ok && outer.Err() == nil && errors.Is(err, context.Canceled) {
			err = silent
		}
	}()
	res, err := s.send(ctx, http.MethodPost, path, body, stream)
	if refused, ok := errors.AsType[*Error](err); ok && path == tokensPath && stream && strings.Contains(strings.ToLower(refused.Message), "stream") {
		refused.Err = errWhole
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	d := decoders.Get().(*decoder)
	defer d.free()
	w := watch{header: parseVersion(res.Header.Get("X-Weight-Version")), finished: make([]bool, r.choices()), most: s.opts.MaxReply}
	take := func(data []byte) error {
		c, err := d.decode(path, data, r, stream)
		if err == nil {
			err = w.track(c)
		}
		if err != nil {
			return err
		}
		return yield(c)
	}
	if !stream {
		data, err := s.read(ctx, res.Body)
		if err == nil {
			err = take(data)
		}
		if err != nil {
			return err
		}
		return w.end()
	}
	if t := res.Header.Get("Content-Type"); !strings.HasPrefix(t, "text/event-stream") {
		return broken(nil, "a stream of events is expected, it answers %q", t)
	}
	events := sse.NewReader(res.Body, s.opts.MaxReply)
	defer events.Free()
	for {
		data, err := events.Next()
		silence.Reset(quiet)
		switch {
		case ctx.Err() != nil && err != nil:
			return ctx.Err()
		case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
			return broken(err, "its stream stops before the end of the reply")
		case err != nil:
			return broken(err, "its stream breaks: %v", err)
		case string(data) == "[DONE]":
			if err := w.end(); err != nil {
				return err
			}
			s.recordStreams(r, &w)
			drainStream(res.Body)
			return nil
		}
		if err := take(data); err != nil {
			return err
		}
	}
}

// send sends a request and returns the response if its status is 200.
func (s *server) send(ctx context.Context, method, path string, body []byte, stream bool) (*http.Response, error) {
	if s.http == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "engine"}, "is used as its zero value").WithFix("make it with New")
	}
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, broken(err, "no request can be made of the address %s", s.base)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if stream {
		req.Header.Set("Accept", "text/event-stream")
	}
	if s.opts.Key != "" {
		req.Header.Set("Authorization", "Bearer "+s.opts.Key)
	}
	res, err := s.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &Error{Status: http.StatusBadGateway, Type: "unreachable", Message: "it cannot be reached", Err: err}
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	out := &Error{Status: res.StatusCode, Message: fmt.Sprintf("it answers %d to %s", res.StatusCode, path)}
	var d jsonscan.Doc
	if v, err := d.Parse(text, jsonscan.Options{}); err == nil && v.Kind() == jsonscan.Object {
		e := v.Get("error")
		if e.Kind() != jsonscan.Object {
			e = v
		}
		out.Type, out.Message = refusal(0, e).Type, cmp.Or(e.Get("message").String(), e.Get("detail").String(), out.Message)
	}
	out.Message = clean(strings.ReplaceAll(out.Message, cmp.Or(s.opts.Key, "\x00"), "***"))
	switch c := res.StatusCode; {
	case c == http.StatusUnauthorized || c == http.StatusForbidden || c < 400:
		// The client cannot fix that.
		out.Status, out.Message = http.StatusBadGateway, fmt.Sprintf("it answers %d to the proxy's own request", c)
	case c == http.StatusNotFound && path != "/tokenize" && path != healthPath && out.Type == "":
		out.Status = http.StatusBadGateway
	}
	if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n >= 0 {
		out.RetryAfter = time.Duration(n) * time.Second
	}
	return nil, out
}

func (s *server) read(ctx context.Context, r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(s.opts.MaxReply)+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, broken(err, "its reply stops before its end")
	case len(data) > s.opts.MaxReply:
		return nil, broken(nil, "its reply has over %d bytes", s.opts.MaxReply)
	}
	return data, nil
}

// askTime is the time limit of requests other than Generate.
const askTime = 10 * time.Second

func (s *server) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	res, err := s.send(ctx, method, path, body, false)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return s.read(ctx, res.Body)
}

// Models returns the server's answer to GET /v1/models.
func (s *server) Models(ctx context.Context) (json.RawMessage, error) {
	b, err := s.ask(ctx, http.MethodGet, "/v1/models", nil)
	if err == nil && !json.Valid(b) {
		return nil, broken(nil, "its list of models is no JSON")
	}
	return b, err
}

// Tokenize returns the ids of a prompt, from the server if necessary.
func (s *server) Tokenize(ctx context.Context, r *Request) ([]rollout.TokenID, error) {
	if r.Prompt != nil {
		return r.Prompt, nil
	}
	set := []member{{"prompt", quote(r.Text)}}
	if r.chat() {
		set = []member{{"messages", AppendMessages(nil, r.Messages)}, {"add_generation_prompt", []byte("true")}}
		if len(r.Tools) > 0 {
			set = append(set, member{"tools", list(r.Tools)})
		}
		for _, k := range []string{"chat_template", "chat_template_kwargs", "continue_final_message"} {
			set = append(set, member{k, r.Fields[k]})
		}
		if v := r.Fields["add_generation_prompt"]; v != nil {
			set[1].value = v
		}
	}
	if model := cmp.Or(s.opts.Model, jsonscan.Unquote(r.Fields["model"])); model != "" {
		set = append(set, member{"model", quote(model)})
	}
	b, err := s.ask(ctx, http.MethodPost, "/tokenize", object(set))
	if err != nil {
		return nil, err
	}
	var d jsonscan.Doc
	v, err := d.Parse(b, jsonscan.Options{})
	if err != nil || v.Get("tokens").Kind() != jsonscan.Array {
		return nil, broken(err, "its answer to /tokenize has no tokens")
	}
	return ids(v.Get("tokens"))
}

// probe is Probe for one server.
func (s *server) probe(ctx context.Context) error {
	paths := []string{"/version"}
	if s.opts.Kind == kindSGLang {
		paths = []string{"/server_info", "/get_server_info"}
	}
	for _, path := range paths {
		if b, err := s.ask(ctx, http.MethodGet, path, nil); err == nil {
			var d jsonscan.Doc
			if v, err := d.Parse(b, jsonscan.Options{NonFinite: true}); err == nil {
				s.mu.Lock()
				s.status.Version = v.Get("version").String()
				s.mu.Unlock()
				break
			}
		}
	}
	b, err := s.Models(ctx)
	if err != nil {
		return err
	}
	if s.opts.Kind == kindSGLang { // its chat is always unstreamed
		return nil
	}
	var models struct{ Data []struct{ ID string } }
	model := s.opts.Model
	if json.Unmarshal(b, &models) == nil && len(models.Data) > 0 && model == "" {
		model = models.Data[0].ID
	}
	ctx, cancel := context.WithTimeout(ctx, 6*askTime)
	defer cancel()
	return s.Generate(ctx, &Request{
		Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "Call the function note with the text: ready."}},
		Tools:    []rollout.Tool{json.RawMessage(`{"type":"function","function":{"name":"note","description":"Keeps a note.","parameters":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}}`)},
		Fields:   map[string]json.RawMessage{"model": quote(model), "temperature": []byte("0"), "max_tokens": []byte("256")},
		Stream:   true,
	}, func(*Chunk) error { return nil })
}

const healthPath = "/health"

// health checks whether the server is up. One that has no /health, as where a router answers, is known by its calls
// alone.
func (s *server) health(ctx context.Context) error {
	_, err := s.ask(ctx, http.MethodGet, healthPath, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.fails, s.status.Down = 0, time.Time{}
	} else if e, ok := errors.AsType[*Error](err); ctx.Err() == nil && !(ok && e.Status == http.StatusNotFound) {
		s.status.Down, s.status.Why = time.Now().Add(10*time.Second), "it does not answer /health"
	}
	return err
}
