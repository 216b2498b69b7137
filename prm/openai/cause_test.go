package openai_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/prm/journal"
	"github.com/turnpack/turnpack/prm/openai"
)

// The error of a vote that made no request states the failures of earlier calls.
func TestVoteWithoutATrySaysWhy(t *testing.T) {
	dead := newFake(t, nil)
	url := dead.url()
	dead.Close()
	sick := newFake(t, func(w http.ResponseWriter, _ *http.Request, _ seen) bool {
		status(w, 503, `{"message":"the model is loading"}`)
		return true
	})
	resting := newFake(t, func(w http.ResponseWriter, _ *http.Request, _ seen) bool {
		w.Header().Set("Retry-After", "3600")
		status(w, 429, `{"message":"quota used up"}`)
		return true
	})
	for _, row := range []struct {
		reason string
		urls   []string
		says   []string
	}{
		{"dead", []string{url}, []string{"refused", "out of service", url}},
		{"dead and sick", []string{url, sick.url()}, []string{"refused", "the model is loading", url, sick.url()}},
		{"resting", []string{resting.url()}, []string{"quota used up", "asks for a pause"}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			o := quick(row.urls...)
			o.Retries, o.Patience = -1, time.Second
			o.Ejects(1, time.Hour, time.Hour)
			c := client(t, o)
			for range row.urls { // each endpoint fails once and is ejected
				_, err := c.Judge(t.Context(), request(1))
				require.Error(t, err)
			}
			_, err := c.Judge(t.Context(), request(2))
			require.ErrorContains(t, err, "no endpoint became free")
			for _, text := range row.says {
				require.ErrorContains(t, err, text)
			}
		})
	}
}

// A failure caused by the end of the vote does not hide the earlier cause.
func TestPatienceKeepsTheCause(t *testing.T) {
	f := newFake(t, func(w http.ResponseWriter, r *http.Request, req seen) bool {
		if req.Number == 1 {
			status(w, 500, `{"message":"out of memory"}`)
		} else {
			<-r.Context().Done()
		}
		return true
	})
	o := quick(f.url())
	o.Patience = 2 * time.Second
	_, err := client(t, o).Judge(t.Context(), request(1))
	require.ErrorContains(t, err, "out of memory")
}

// The error names a pause requested by the server that exceeds the patience.
func TestPauseBeyondPatience(t *testing.T) {
	f := newFake(t, func(w http.ResponseWriter, _ *http.Request, _ seen) bool {
		w.Header().Set("Retry-After", "7200")
		status(w, 429, `{"message":"quota used up"}`)
		return true
	})
	o := quick(f.url())
	o.Patience = 20 * time.Minute
	_, err := client(t, o).Judge(t.Context(), request(1))
	for _, says := range []string{"at try 1", "quota used up", "wait 2h0m0s", "patience of 20m0s", "--patience"} {
		require.ErrorContains(t, err, says)
	}
}

// A key repeated by the server, in replies and in errors of every length, appears in no output: not in
// votes, the journal, errors or the hook.
func TestRepeatedKeyIsRedacted(t *testing.T) {
	const key = "sk-very-secret-0123456789"
	t.Setenv("TURNPACK_JUDGE_KEY", key+"\n")
	for _, code := range []int{200, 302, 400, 500} {
		for _, pad := range []int{0, 280, 290, 299} { // the quoted text ends within the key
			f := newFake(t, func(w http.ResponseWriter, r *http.Request, _ seen) bool {
				said := strings.Repeat("x", pad) + " you sent " + r.Header.Get("Authorization")
				if code == 200 {
					choices(w, 3, said+` \boxed{1}`)
					return true
				}
				w.Header().Set("Location", "https://elsewhere.example/?token="+key)
				b, _ := json.Marshal(map[string]any{"error": map[string]string{"message": said}})
				status(w, code, string(b))
				return true
			})
			path := filepath.Join(t.TempDir(), "votes")
			j, err := journal.Open(path)
			require.NoError(t, err)
			o := quick(f.url())
			h := &outcomes{}
			o.Hook, o.Retries = h, 1
			s, err := prm.NewScorer(client(t, o), prm.Options{Journal: j})
			require.NoError(t, err)
			steps, err := s.Score(t.Context(), jobRun(0))
			require.NoError(t, err)
			require.NoError(t, j.Close())
			out, err := json.Marshal(steps)
			require.NoError(t, err)
			kept, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, text := range append(h.texts, string(out), string(kept)) {
				require.NotContains(t, text, key[:12], "status %d, %d bytes before", code, pad)
			}
			if code == 200 {
				require.Contains(t, string(kept), "[key]")
				require.NotNil(t, steps[0].Score)
			}
		}
	}
}

// Keys are redacted in the forms of JSON, URLs and base64 too.
func TestKeyInOtherFormsIsRedacted(t *testing.T) {
	const key = `sk-very/secret+"0123456789`
	t.Setenv("TURNPACK_JUDGE_KEY", key)
	quoted, err := json.Marshal(key)
	require.NoError(t, err)
	for _, said := range []string{
		strings.Trim(string(quoted), `"`), strings.ReplaceAll(strings.Trim(string(quoted), `"`), "/", `\/`), url.QueryEscape(key), url.PathEscape(key),
		base64.StdEncoding.EncodeToString([]byte(key)), base64.RawURLEncoding.EncodeToString([]byte(key)),
		base64.StdEncoding.EncodeToString([]byte("Bearer " + key)), base64.URLEncoding.EncodeToString([]byte("user:" + key + "\n")), base64.StdEncoding.EncodeToString([]byte("{" + key + "}")),
		hex.EncodeToString([]byte(key)), fmt.Sprintf("%X", key), strings.ToLower(url.QueryEscape(key)), url.QueryEscape(url.QueryEscape(key)),
		strconv.Quote(strconv.Quote(key)), html.EscapeString(key), html.EscapeString(html.EscapeString(key)), each(key, `\u%04X`), each(key, `\\x%02x`), each(key, "%%%02x"), each(key, "&#%d;"), each(key, "&#x%02X;"),
		`sk-\u0076ery\/secret%2B&quot;0123456789`,
	} {
		f := newFake(t, func(w http.ResponseWriter, _ *http.Request, _ seen) bool {
			status(w, 400, "<p>you sent "+said+" here")
			return true
		})
		s, err := prm.NewScorer(client(t, quick(f.url())), prm.Options{})
		require.NoError(t, err)
		steps, err := s.Score(t.Context(), jobRun(0))
		text, _ := json.Marshal(steps)
		told := fmt.Sprint(err, string(text))
		require.Contains(t, told, "[key]", said)
		require.NotContains(t, told, strings.TrimRight(said, "=")[8:], said)
	}
}

// each returns text with the format applied to every character.
func each(text, format string) string {
	var b strings.Builder
	for _, r := range text {
		fmt.Fprintf(&b, format, r)
	}
	return b.String()
}

type outcomes struct {
	mu    sync.Mutex
	texts []string
}

func (o *outcomes) Start(ctx context.Context, _ openai.Attempt) (context.Context, func(openai.Outcome)) {
	return ctx, func(end openai.Outcome) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if end.Err != nil {
			o.texts = append(o.texts, end.Err.Error())
		}
	}
}

// A placeholder key is an ordinary word and is not redacted.
func TestPlaceholderKeyStaysInReplies(t *testing.T) {
	t.Setenv("TURNPACK_JUDGE_KEY", "1")
	f := newFake(t, func(w http.ResponseWriter, _ *http.Request, _ seen) bool { choices(w, 1, `\boxed{1}`); return true })
	r, err := client(t, quick(f.url())).Judge(t.Context(), request(1))
	require.NoError(t, err)
	require.Equal(t, `\boxed{1}`, r.Text)
}

// A redirect is a failed try: the vote is retried at the configured endpoints.
func TestRedirectIsAFailedTry(t *testing.T) {
	t.Setenv("TURNPACK_JUDGE_KEY", "sk-secret")
	for _, code := range []int{301, 302, 303, 307, 308} {
		other := newFake(t, nil)
		moved := func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.url()+"/chat/completions", code)
		}
		once := newFake(t, func(w http.ResponseWriter, r *http.Request, req seen) bool {
			if req.Number == 1 {
				moved(w, r)
			}
			return req.Number == 1
		})
		_, err := client(t, quick(once.url())).Judge(t.Context(), request(1))
		require.NoError(t, err, "status %d", code)
		require.Equal(t, int64(2), once.requests.Load())

		always := newFake(t, func(w http.ResponseWriter, r *http.Request, _ seen) bool { moved(w, r); return true })
		healthy := newFake(t, nil)
		c := client(t, quick(always.url(), healthy.url()))
		for i := range 5 {
			_, err := c.Judge(t.Context(), request(int64(i)))
			require.NoError(t, err, "status %d", code)
		}
		require.Zero(t, other.requests.Load(), "nobody named this server")
	}
}

// A reply of exactly the size limit is accepted.
func TestReplyOfTheLimit(t *testing.T) {
	const body = `{"choices":[{"message":{"content":"\\boxed{1}"}}]}`
	f := newFake(t, func(w http.ResponseWriter, _ *http.Request, _ seen) bool { io.WriteString(w, body); return true })
	o := quick(f.url())
	o.ReplyBytes(int64(len(body)))
	_, err := client(t, o).Judge(t.Context(), request(1))
	require.NoError(t, err)
	o.ReplyBytes(int64(len(body)) - 1)
	_, err = client(t, o).Judge(t.Context(), request(1))
	require.ErrorContains(t, err, "larger than the limit")
}

// Extra must not contain fields that the client sets itself.
func TestOwnFieldsAreRefused(t *testing.T) {
	o := quick("http://h/v1")
	o.Extra = map[string]any{"n": 4, "stream": true}
	_, err := openai.New(o)
	require.ErrorContains(t, err, `"n"`)
	require.ErrorContains(t, err, `"stream"`)
}
