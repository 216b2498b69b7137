package proxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy/internal/wire"
)

// tokenMark begins a token and distinguishes it from other keys.
const tokenMark = "tp-"

// Token returns the secret of a session: a client that uses it as its key (a bearer token, or x-api-key) needs
// no session path or header.
func (h *Handler) Token(session string) string {
	return tokenMark + base64.RawURLEncoding.EncodeToString([]byte(session)) + "." + base64.RawURLEncoding.EncodeToString(h.sign(session))
}

func (h *Handler) sign(session string) []byte {
	m := hmac.New(sha256.New, h.secret)
	m.Write([]byte(session))
	return m.Sum(nil)
}

// tokenSession returns the session of a token, "" if key is not a valid token.
func (h *Handler) tokenSession(key string) string {
	id, sum, ok := strings.Cut(strings.TrimPrefix(key, tokenMark), ".")
	if !ok || !strings.HasPrefix(key, tokenMark) {
		return ""
	}
	session, err := base64.RawURLEncoding.DecodeString(id)
	got, err2 := base64.RawURLEncoding.DecodeString(sum)
	if err != nil || err2 != nil || !hmac.Equal(got, h.sign(string(session))) {
		return ""
	}
	return string(session)
}

// splitPath returns the session in a request's path, "" for none, and the endpoint.
func splitPath(u *url.URL) (session, endpoint string, ok bool) {
	path := u.EscapedPath()
	if rest, under := strings.CutPrefix(path, "/rollouts/"); under {
		id, tail, _ := strings.Cut(rest, "/")
		var err error
		if session, err = url.PathUnescape(id); err != nil || session == "" {
			return "", "", false
		}
		path = "/" + tail
	}
	endpoint, ok = strings.CutPrefix(path, "/v1/")
	return session, strings.TrimSuffix(endpoint, "/"), ok
}

// maxID is the maximum length of a session id.
const maxID = 256

func plausible(id string) bool {
	return len(id) <= maxID && utf8.ValidString(id) && strings.IndexFunc(id, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// identify returns the session and the parent that a request names. Every refusal is a 401.
func (h *Handler) identify(r *http.Request, path string) (id, parent string, p *wire.Problem) {
	refused := func(why string) (string, string, *wire.Problem) {
		return "", "", &wire.Problem{Status: http.StatusUnauthorized, Message: why}
	}
	token := ""
	for _, key := range []string{r.Header.Get("X-Api-Key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")} {
		if strings.HasPrefix(key, tokenMark) {
			if token = h.tokenSession(key); token == "" {
				return refused("the token of the session is not valid")
			}
		}
	}
	if len(r.Header.Values("X-Parent-Session-Id")) > 1 {
		return refused("X-Parent-Session-Id stands there more than once")
	}
	parent = r.Header.Get("X-Parent-Session-Id")
	for _, name := range append(r.Header.Values("X-Session-Id"), path, token) {
		switch {
		case name == "":
		case id == "":
			id = name
		case id != name:
			return refused("path, X-Session-Id and token name different sessions")
		}
	}
	switch {
	case id == "":
		return refused("no session is named: use the base URL /rollouts/ID/v1, the header X-Session-Id, or the session's token as the key")
	case h.opts.TokenOnly && token == "":
		return refused("the token of the session is needed as the key")
	case !plausible(id) || !plausible(parent):
		return refused("the name of the session is too long or not printable")
	}
	return id, parent, nil
}

// session holds what the proxy knows of a session besides its record: the requests that are answered or
// running.
type session struct {
	live  *live.Session
	users int // requests and jobs that use it, under Handler.mu

	mu    sync.Mutex
	asked map[key]*asked // nil = not loaded
}

// key identifies equal requests: by the idempotency key, or by dialect and body.
type key [16]byte

// asked is a request that was received.
type asked struct {
	body    key      // of the request
	job     *job     // while it is running
	calls   []string // the calls that answered it, one for each choice; nil = it failed
	old     string   // the latest failed call
	clients int      // that wait for the reply, or are being sent it
	seen    bool     // a client received all of it
}

// mark is what the proxy stores in the settings of a recorded call.
type mark struct {
	Key          string `json:"key"`
	Body         string `json:"body,omitempty"` // if Key is an idempotency key
	Choice       int    `json:"choice,omitempty"`
	Choices      int    `json:"choices,omitempty"`
	Instructions int    `json:"instructions,omitempty"`
	Path         string `json:"path,omitempty"` // ids = the proxy made the prompt
}

const markName = "turnpack"

func readMark(settings json.RawMessage) (m mark, ok bool) {
	var s struct {
		Mark *mark `json:"turnpack"`
	}
	if json.Unmarshal(settings, &s) != nil || s.Mark == nil {
		return m, false
	}
	return *s.Mark, true
}

func (k key) text() string { return hex.EncodeToString(k[:]) }

func keyOf(s string) (k key, ok bool) {
	b, err := hex.DecodeString(s)
	return key(append(b, make([]byte, len(k))...)[:len(k)]), err == nil && len(b) == len(k)
}

func digest(parts ...[]byte) key {
	m := sha256.New()
	for _, p := range parts {
		sum := sha256.Sum256(p)
		m.Write(sum[:])
	}
	return key(m.Sum(nil)[:16])
}

// load reads from the record which requests were answered before this process began.
func (s *session) load() error {
	if s.asked != nil {
		return nil
	}
	calls, err := s.live.Calls()
	if err != nil {
		return err
	}
	s.asked = map[key]*asked{}
	for _, c := range calls {
		if c.Session != s.live.ID() {
			continue
		}
		m, ok := readMark(c.Settings)
		k, fine := keyOf(m.Key)
		if !ok || !fine || m.Choice < 0 || m.Choice >= wire.MaxChoices {
			continue
		}
		a := s.asked[k]
		if a == nil {
			a = &asked{body: k}
			if b, ok := keyOf(m.Body); ok {
				a.body = b
			}
			s.asked[k] = a
		}
		if c.State == live.StateAborted || c.State == live.StateSuperseded || c.State == live.StateRunning || c.Finish == "" || m.Choices > wire.MaxChoices {
			a.old, a.calls = c.ID, nil // of several calls, the last decides what a retry gets
			continue
		}
		if n := max(1, m.Choices); len(a.calls) != n {
			a.calls = make([]string, n)
		}
		a.calls[min(m.Choice, len(a.calls)-1)] = c.ID
		a.seen = c.State != live.StateUnseen
	}
	for _, a := range s.asked {
		if slices.Contains(a.calls, "") { // a choice is missing
			a.calls = nil
		}
	}
	return nil
}

// mostIdle is the number of idle sessions that are kept; for other sessions load reads the answered requests
// from the record.
const mostIdle = 1024

// release releases a session that find returned.
func (h *Handler) release(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.users--
}

// sweep drops unused sessions that ended, and all unused ones if more than half of mostIdle are held. The
// caller holds the lock.
func (h *Handler) sweep() {
	if len(h.sessions) < h.sweepAt {
		return
	}
	for id, x := range h.sessions {
		if x.users == 0 && (len(h.sessions) > mostIdle/2 || x.live.Ended()) {
			delete(h.sessions, id)
		}
	}
	h.sweepAt = max(mostIdle, 2*len(h.sessions))
}

// find returns the session of a request; the caller must release it.
func (h *Handler) find(r *http.Request, id, parent string) (*session, error) {
	h.mu.Lock()
	s := h.sessions[id]
	if s != nil {
		s.users++
	}
	h.mu.Unlock()
	if s != nil {
		if !s.live.Ended() && (parent == "" || s.live.Parent() == parent) {
			return s, nil
		}
		h.release(s)
	}
	l, ok := h.opts.Recorder.Session(id)
	switch {
	case ok && parent != "" && l.Parent() != parent:
		return nil, &wire.Problem{Status: http.StatusConflict, Message: "the session has another parent"}
	case ok:
	case h.opts.Open == nil:
		return nil, &wire.Problem{Status: http.StatusUnauthorized, Message: "the session is not known"}
	default:
		var err error
		if l, err = h.opts.Open(r.Context(), live.Start{ID: id, Parent: parent, Agent: r.Header.Get("X-Agent-Name")}); errors.Is(err, live.ErrUnknown) {
			return nil, &wire.Problem{Status: http.StatusUnauthorized, Message: "the parent of the session is not known"}
		} else if err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sweep()
	if s = h.sessions[id]; s == nil || s.live != l {
		s = &session{live: l}
		h.sessions[id] = s
	}
	s.users++
	return s, nil
}
