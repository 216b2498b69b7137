package faults_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
)

func TestList(t *testing.T) {
	f := faults.List{Of: "Options."}
	f.Join(nil, nil)
	f.Count("N", 0)
	f.Amount("X", 0)
	faults.Word(&f, "Mode", "", "fast")
	faults.Word(&f, "Mode", "fast", "fast")
	require.NoError(t, f.Err())
	f.Count("N", -1)
	f.Amount("X", math.Inf(1))
	f.Amount("Y", math.NaN())
	faults.Word(&f, "Mode", "odd", "fast", "slow")
	f.Add("Z", "found %d", 3)
	f.Join(errors.New("inside"))
	err := f.Err()
	require.ErrorIs(t, err, rollout.KindInput)
	for _, part := range []string{"Options.N", "found -1", "Options.X", "Options.Y", `found "odd", expected one of fast, slow`, "found 3", "inside"} {
		require.ErrorContains(t, err, part)
	}
}
