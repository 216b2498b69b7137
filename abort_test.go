package turnpack_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/rollout"
)

// draft is a sink whose Close publishes what it was given, unless it was aborted.
type draft struct {
	rows
	aborted   int
	failAbort error
	published int
}

func (d *draft) Abort() error {
	d.aborted++
	return d.failAbort
}

func (d *draft) Close() error {
	if d.aborted == 0 {
		d.published = len(d.got)
	}
	return nil
}

func TestFailedRunsPublishNothing(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for why, run := range map[string]func(*draft) error{
		"the sink is full": func(d *draft) error {
			d.fail = 5
			_, err := turnpack.Pipeline{Model: model(t)}.Run(t.Context(), batch(), d)
			return err
		},
		"cancelled": func(d *draft) error {
			_, err := turnpack.Pipeline{Model: model(t)}.Run(cancelled, batch(), d)
			return err
		},
		"wrong options": func(d *draft) error {
			_, err := turnpack.Pipeline{}.Run(t.Context(), batch(), d)
			return err
		},
		"a bad record": func(d *draft) error {
			_, err := turnpack.Pipeline{Model: model(t), OnError: rollout.OnErrorStop}.Run(t.Context(), append(batch(), &rollout.Rollout{}), d)
			return err
		},
	} {
		var d draft
		func() {
			defer d.Close()
			require.Error(t, run(&d), why)
		}()
		require.Equal(t, 1, d.aborted, why)
		require.Zero(t, d.published, why)
	}
	var d draft
	_, err := turnpack.Pipeline{Model: model(t)}.Run(t.Context(), batch(), &d)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.Zero(t, d.aborted)
	require.Equal(t, 12, d.published)
}

// An error of Abort is joined to that of the run.
func TestFailedAbort(t *testing.T) {
	d := draft{rows: rows{fail: 1}, failAbort: errors.New("cannot remove")}
	_, err := turnpack.Pipeline{Model: model(t)}.Run(t.Context(), batch(), &d)
	require.ErrorIs(t, err, errFull)
	require.ErrorIs(t, err, d.failAbort)
}

// A run in which every rollout fails to encode is an error; a run in which some do is not.
func TestRunsThatEncodeNothing(t *testing.T) {
	src := batch()
	broken := func(r *rollout.Rollout) {
		r.Turns = []rollout.Turn{{Message: 1, Output: []rollout.TokenID{1 << 30}}} // no such token
	}
	broken(src[0])
	report, err := turnpack.Pipeline{Model: model(t)}.Run(t.Context(), src, &rows{})
	require.NoError(t, err)
	require.Equal(t, 1, report.LeftOut)
	for _, r := range src {
		broken(r)
	}
	for _, counts := range []bool{false, true} {
		p := turnpack.Pipeline{Model: model(t)}
		if counts {
			p.Estimator = preset(t, "verl_grpo")
		}
		var d draft
		report, err = p.Run(t.Context(), src, &d)
		require.ErrorIs(t, err, rollout.KindInput)
		require.ErrorContains(t, err, "no rollout gave a row: 12 could not be encoded; the first: ")
		require.Equal(t, 1, d.aborted)
	}
	require.Positive(t, report.Read)
}

// stubborn is a source that ignores its context and counts what it gives.
type stubborn struct {
	turnpack.Slice
	given  *int
	before func(given int) // called before each rollout
}

func (s stubborn) Rollouts(context.Context) iter.Seq2[*rollout.Rollout, error] {
	return func(yield func(*rollout.Rollout, error) bool) {
		for _, r := range s.Slice {
			*s.given++
			if s.before(*s.given); !yield(r, nil) {
				return
			}
		}
	}
}

// A run that is cancelled in its second pass does not read the rest of its source.
func TestCancelledRunsReadNoFurther(t *testing.T) {
	var many turnpack.Slice
	for i := range 200 {
		many = append(many, attempt(fmt.Sprint(i), i%2, true))
	}
	ctx, cancel := context.WithCancel(t.Context())
	given, last := 0, len(many)+5
	src := stubborn{many, &given, func(given int) {
		if given == last {
			cancel()
		}
	}}
	_, err := turnpack.WithAgainLimit(turnpack.Pipeline{Model: model(t), Workers: 1}, -1).Run(ctx, src, &draft{})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, last, given)
}
