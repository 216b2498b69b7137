package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/judge/fake"
)

// The output is the same on every machine, because the fake judge's answers depend only
// on prompt and seed. UPDATE_GOLDEN=1 rewrites the file.
func TestGolden(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), nil, &out))
	path := filepath.Join("testdata", "output.txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, out.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

// A server that gives one vote per request gets one request per vote.
func TestRealEndpointFlags(t *testing.T) {
	f := fake.New(fake.Options{NoBatches: true, FailEvery: 7})
	srv := httptest.NewServer(f)
	defer srv.Close()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"--judge", srv.URL + "/v1", "--model", "m", "--votes", "2"}, &out))
	require.Contains(t, out.String(), "reward")
	require.GreaterOrEqual(t, f.Requests(), f.Votes())
	require.Error(t, run(t.Context(), []string{"--judge", "nonsense"}, &out))
}
