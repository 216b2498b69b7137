package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// File names and rollout ids from a dump must not act on a terminal.
func TestErrorsAreInert(t *testing.T) {
	for in, want := range map[string]string{
		"plain é 名":      "plain é 名",
		"a\x1b[2Jb":      `a\x1b[2Jb`,
		"a\nb\tc":        `a\nb\tc`,
		"a\u009bm":       `a\u009bm`,
		"a\u202eb\u2066": `a\u202eb\u2066`,
		"a\u2028b\x7f":   `a\u2028b\x7f`,
		"a\xffb":         `a\xffb`,
		"a\uFFFDb":       `a\ufffdb`,
	} {
		require.Equal(t, want, rollout.Printable(in))
	}
	err := rollout.Errorf(rollout.KindInput, rollout.Where{File: "x\x1b[31m\nforged: ok", Rollout: "r\x1b]0;t\a", Field: "/\r"}, "found %s\nsecond", "\x1b[1m").WithFix("see %s", "\u202e")
	require.Equal(t, `x\x1b[31m\nforged: ok, rollout "r\x1b]0;t\a", /\r: found \x1b[1m`+"\nsecond (see "+`\u202e)`, err.Error())
}

// An error matches one kind, even if a cause deep in its chain has another; other causes
// are still found.
func TestAFailureHasOneKindAndKeepsItsCauses(t *testing.T) {
	inner := rollout.Errorf(rollout.KindLimit, rollout.Where{}, "the reading: %w", context.Canceled)
	for _, cause := range []error{inner, fmt.Errorf("deeper: %w", inner), errors.Join(inner, io.EOF), fmt.Errorf("%w: %w", rollout.KindLimit, context.Canceled)} {
		err := rollout.Errorf(rollout.KindInput, rollout.Where{}, "found %w", cause)
		require.ErrorIs(t, err, rollout.KindInput)
		require.NotErrorIs(t, err, rollout.KindLimit)
		require.ErrorIs(t, err, context.Canceled)
		e, ok := errors.AsType[*rollout.Error](errors.Unwrap(err))
		require.False(t, ok, "%v", e)
	}
	require.NotErrorIs(t, &rollout.Error{}, rollout.Kind(0), "the zero value is no kind")
}
