package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Invalid requests of harnesses are refused with what was expected, and leave no trace.
func TestHostileEndings(t *testing.T) {
	s := start(t, t.TempDir(), Groups{Size: 2})
	defer s.close(t)
	s.play(t, "a", 1)
	h := s.handler()
	ask := func(path, body string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
	for body, why := range map[string]string{
		`{"group": "g", "reward": NaN}`:                              "leave the key out",
		`{"group": "g", "reward": "1"}`:                              "reward: found string, expected a number",
		`{"group": "g", "reward": true}`:                             "reward: found bool",
		`{"group": "g", "resolved": 1}`:                              "resolved: found number, expected true or false",
		`{"group": "g", "reward": 1e400}`:                            "1e400",
		`{"group": "g", "reward": 1e300}`:                            "finite",
		`{"group": "g", "reward": 1} {"group": "g", "reward": 0}`:    "something follows",
		`{"group": "g", "reward": 1, "reward": 0}`:                   "reward: stands there twice",
		`{"group": "g", "REWARD": 1}`:                                "expected failure, group, metadata, resolved, reward",
		`{"group": "g"}`:                                             "expected a group, and resolved, reward or failure",
		`{"reward": 1}`:                                              "expected a group, and resolved, reward or failure",
		`{"group": "` + strings.Repeat("g", 300) + `", "reward": 1}`: "has 300 bytes, at most 256",
	} {
		status, said := ask("/rollouts/a/end", body)
		require.Equal(t, http.StatusBadRequest, status, body)
		require.Contains(t, said, why, body)
	}
	for _, id := range []string{strings.Repeat("a", 300), "%00", "a%0Ab"} {
		status, said := ask("/rollouts/"+id+"/end", `{"group": "g", "failure": "lost"}`)
		require.Equal(t, http.StatusBadRequest, status, id)
		require.Contains(t, said, "256 bytes")
	}
	status, said := ask("/batches/ack", `{"seq": 1.5}`)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, said, "seq: found number 1.5, expected a whole number")
	require.Zero(t, s.Stats().Open)

	status, said = ask("/rollouts/a/end", `{"group": "g", "reward": 0.5}`)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, said, `"waiting":1`)
}

// Failures are free text of harnesses: the number of distinct reasons counted is limited.
func TestReasonsAreBounded(t *testing.T) {
	s := start(t, t.TempDir(), Groups{Size: 1})
	defer s.close(t)
	for i := range 200 {
		_, err := s.End(t.Context(), fmt.Sprint(i), endRequest{Group: fmt.Sprint(i), Failure: fmt.Sprintf("sandbox %d lost", i)})
		require.NoError(t, err)
	}
	left := s.Stats().LeftOut
	require.Len(t, left, 65)
	require.Equal(t, 1, left["sandbox 7 lost"])
	require.Equal(t, 200-64, left["other"])
}
