package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/pickle"
)

// slimeSample has the fields of a slime sample that the tests check.
type slimeSample struct {
	Tokens         []int32        `json:"tokens"`
	ResponseLength int            `json:"response_length"`
	LossMask       []int32        `json:"loss_mask"`
	RolloutID      int            `json:"rollout_id"`
	RemoveSample   bool           `json:"remove_sample"`
	Metadata       map[string]any `json:"metadata"`
}

func slimeSamples(t *testing.T, path string) (samples []slimeSample) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	require.NoError(t, err)
	v, _, err := pickle.Torch(f, info.Size())
	require.NoError(t, err)
	top, ok := v.(map[any]any)
	require.True(t, ok)
	text, err := pickle.AppendJSON(nil, top["samples"], 1<<26)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &samples))
	return samples
}
