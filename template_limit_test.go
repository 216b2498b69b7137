package turnpack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// A template that hits its limit ends the run with that error at once, not with one for each
// rollout after the same time.
func TestTemplateAtItsLimitEndsTheRun(t *testing.T) {
	m := *model(t)
	hostile := "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}"
	template, err := chat.Compile(hostile, chat.Options{Name: "hostile", Limits: chat.Limits{Work: 1_000_000}})
	require.NoError(t, err)
	m.Template = template
	var dst rows
	_, err = turnpack.Pipeline{Model: &m}.Run(t.Context(), batch(), &dst)
	require.ErrorIs(t, err, rollout.KindLimit)
	require.ErrorContains(t, err, "more than 1000000 units of work")
	require.Empty(t, dst.got)
}
