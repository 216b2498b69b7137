package export_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
)

// Invalid arguments give an error, not a panic.
func TestNothingToWriteToOrToReadFromIsAnError(t *testing.T) {
	_, err := export.NewWriter(nil, export.Options{})
	require.ErrorIs(t, err, rollout.KindInput)
	_, err = export.NewReader(nil, 9)
	require.ErrorIs(t, err, rollout.KindInput)
	for _, size := range []int64{-8, 0, 1 << 60} {
		_, err = export.NewReader(bytes.NewReader([]byte("PAR1PAR1")), size)
		require.ErrorIs(t, err, rollout.KindFormat)
	}
	var out bytes.Buffer
	w, err := export.NewWriter(&out, export.Options{})
	require.NoError(t, err)
	row := rollout.Sample{Sequence: rollout.Sequence{Source: []int32{0}, Identity: rollout.Identity{Rollout: "r", Group: "g"}}}
	require.ErrorIs(t, w.WriteRuns(row, nil, nil, nil), rollout.KindInput, "a row without a run")
}
