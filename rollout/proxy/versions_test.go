package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout/live/gate"
	"github.com/turnpack/turnpack/rollout/proxy"
)

// TestVersions: the version of the weights is taken from the reply, else from its header, else from the gate.
func TestVersions(t *testing.T) {
	header := ""
	fake := fakeengine.New(fakeengine.Options{Script: []fakeengine.Reply{{Content: "ok"}}})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if header != "" {
			w.Header().Set("X-Weight-Version", header)
		}
		fake.ServeHTTP(w, r)
	}))
	defer upstream.Close()
	w := (&world{t: t}).on(upstream.URL, "vllm", func(o *proxy.Options) {
		o.Gate = &gate.Gate{}
		require.NoError(t, o.Gate.SetVersion(3))
	})
	for name, q := range requests {
		for _, stream := range []string{"", `,"stream":true`} {
			for i, c := range []struct {
				weight, header string
				want           int32
			}{{"5", "4", 5}, {"", "4", 4}, {"", "", 3}, {"step-7", "", 3}} {
				fake.SetWeight(c.weight)
				header = c.header
				id := name + stream[:min(1, len(stream))] + string(rune('a'+i))
				status, body := w.ask("/rollouts/"+id+q.path, q.body+stream+"}")
				require.Equal(t, 200, status, body)
				require.Equal(t, c.want, *w.rollout(id).Turns[0].Version, "%s %+v", id, c)
			}
		}
	}
}
