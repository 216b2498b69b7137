package lean_test

import (
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/lean"
	"github.com/turnpack/turnpack/rollout"
)

type Inner struct {
	Turns int
	By    map[rollout.Role]int
}

type outer struct {
	Inner
	More   Inner
	Status rollout.Status
	Names  []string
	Error  error
	Value  *float64
	Ok     bool
	Floats []float64
	Small  int8
	Votes  []rollout.StepScore
	Fault  *rollout.Error
}

var some = []outer{
	{},
	{Inner: Inner{Turns: -3}, More: Inner{By: map[rollout.Role]int{"a\"b": 1, "": 1 << 40}}, Small: -128},
	{More: Inner{Turns: math.MinInt64}, Status: rollout.StatusTruncated, Names: []string{"", "<&>\n"}, Value: new(float64), Ok: true,
		Floats: []float64{math.Inf(-1), -1.5e300, math.Copysign(0, -1)}, Small: 127},
	{Votes: []rollout.StepScore{{}, {Step: 1, Score: new(0.25), Votes: []rollout.Vote{{Text: "+"}, {Score: new(-1.0)}}}},
		Fault: &rollout.Error{Kind: rollout.KindDrift, Where: rollout.Where{File: "f", Turn: 7}, Msg: "m"}},
}

func TestRead(t *testing.T) {
	for _, one := range some {
		text, err := lean.Append([]byte("x"), &one)
		require.NoError(t, err)
		require.Equal(t, "x", string(text[:1]), "what was there stays")
		var got outer
		require.NoError(t, lean.Read(text[1:], &got))
		require.Equal(t, one, got)
		require.Error(t, lean.Read(append(text[1:], 0), new(outer)), "more than that")
	}
	for _, none := range []outer{{}, {Inner: Inner{}, Names: []string{}, Error: io.EOF}} {
		text, err := lean.Append(nil, none)
		require.NoError(t, err)
		require.Equal(t, []byte{0}, text)
	}
	_, err := lean.Append(nil, struct{ F func() }{func() {}})
	require.Error(t, err)
	require.Error(t, lean.Read([]byte{1, 1, 0}, &struct{ F func() }{}))
	require.Error(t, lean.Read([]byte{1, 2, 0}, &struct{ f int }{}))
}

// Damaged data is read or refused: it does not cause a panic or an allocation by sizes in the data.
func TestDamaged(t *testing.T) {
	for _, one := range some {
		text, err := lean.Append(nil, one)
		require.NoError(t, err)
		for n := range text {
			require.Error(t, lean.Read(text[:n], new(outer)), "the first %d bytes", n)
		}
		for i := range text {
			for bit := range 8 {
				damaged := append([]byte(nil), text...)
				damaged[i] ^= 1 << bit
				_ = lean.Read(damaged, new(outer))
			}
		}
	}
}
