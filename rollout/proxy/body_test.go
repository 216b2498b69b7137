package proxy_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout/proxy"
)

// encoders are the encodings of bodies that clients use.
var encoders = map[string]func(io.Writer) (io.WriteCloser, error){
	"gzip":    func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	"GZIP":    func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	"zstd":    func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
	"deflate": func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil },
	" deflate": func(w io.Writer) (io.WriteCloser, error) { // without the zlib header
		return flate.NewWriter(w, flate.DefaultCompression)
	},
	"identity": func(w io.Writer) (io.WriteCloser, error) { return nopCloser{w}, nil },
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func encoded(t *testing.T, coding, text string) string {
	t.Helper()
	var b bytes.Buffer
	w, err := encoders[coding](&b)
	require.NoError(t, err)
	_, err = io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

// TestEncodedBodies: clients that compress bodies are served like others, in each dialect; the limit applies to
// the decompressed text, and truncated or unknown encodings are refused in the dialect's format.
func TestEncodedBodies(t *testing.T) {
	const most = 64 << 10
	bombs := map[string]string{} // a few kB
	for coding := range encoders {
		bombs[coding] = encoded(t, coding, strings.Repeat("\n", 4<<20))
	}
	for name, q := range requests {
		w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}}, func(o *proxy.Options) { o.MaxBody = most })
		ask := func(want int, coding, body string) string {
			t.Helper()
			status, answer := w.ask("/rollouts/r"+q.path, body, "Content-Encoding", coding)
			require.Equal(t, want, status, "%s %q: %s", name, coding, answer)
			if want != 200 {
				requireError(t, name, answer)
			}
			return answer
		}
		for coding := range encoders {
			text, _, _ := told(t, name, false, ask(200, coding, encoded(t, coding, q.body+"}")))
			require.Equal(t, "Reading é.", text)
			ask(413, coding, encoded(t, coding, q.body+strings.Repeat(" ", most)+"}"))
			ask(413, coding, bombs[coding])
			if coding != "identity" {
				whole := encoded(t, coding, q.body+"}")
				for _, cut := range []int{1, len(whole) / 2, len(whole) - 1} {
					ask(400, coding, whole[:cut])
				}
				ask(400, coding, "\xff\xff"+whole)
			}
		}
		require.Equal(t, 1, w.fake.Requests(), "the body is the text, however it comes")
		for _, coding := range []string{"br", "gzip, gzip", "gzip,zstd", "compress", "x"} {
			ask(415, coding, q.body+"}")
		}
		ask(400, "zstd", "\x28\xb5\x2f\xfd\x00\xff\x01\x00\x00") // a window of gigabytes
		res := w.send(t.Context(), "/rollouts/r"+q.path, q.body+"}", "Content-Encoding", "br")
		require.NoError(t, res.Body.Close())
		require.Equal(t, "zstd, gzip, deflate", res.Header.Get("Accept-Encoding"))
	}
}

// TestSlowBody: a client that stalls within its body gets an error, and its place becomes free.
func TestSlowBody(t *testing.T) {
	w := newWorld(t, fakeengine.Options{}, func(o *proxy.Options) { o.MaxCalls = 1 })
	w.handler.WaitForBodies(100 * time.Millisecond)
	for name, q := range requests {
		r, unsent := io.Pipe()
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, w.url+"/rollouts/r"+q.path, r)
		require.NoError(t, err)
		go func() { _, _ = io.WriteString(unsent, `{"model":"m",`) }()
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.NoError(t, unsent.Close())
		require.Equal(t, 408, res.StatusCode, "%s", text)
		requireError(t, name, string(text))
	}
	require.Eventually(t, func() bool { return w.handler.Stats().Running == 0 }, waitLong, waitShort)
	w.handler.WaitForBodies(time.Minute)
	status, body := w.ask("/rollouts/r"+requests["chat"].path, requests["chat"].body+"}")
	require.Equal(t, 200, status, body)
}
