package chat

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// A rendering that a limit ends does not change the values that all templates share.
func TestAnEndedRunChangesNoOther(t *testing.T) {
	for _, source := range []string{
		"{% set s = ('é' * 1000)|safe %}{% for i in range(100000) %}{% set x = s.upper() %}{% endfor %}",
		"{% set s = ('<' * 1000)|safe %}{% for i in range(100000) %}{% set x = s.center(20000) %}{% endfor %}",
		"{% autoescape true %}{% set d = {'a': '<' * 10000} %}{% for i in range(100000) %}{% set x = d|xmlattr %}{% endfor %}{% endautoescape %}",
		"{% set s = ('a\nb' * 1000)|safe %}{% for i in range(100000) %}{% set x = s|indent(100) %}{% endfor %}",
		"{% set s = ('%s' * 1000)|safe %}{% set l = namespace(t=(1,) * 1000) %}{% for i in range(100000) %}{% set x = s % l.t %}{% endfor %}",
	} {
		hostile, err := Compile(source, Options{})
		require.NoError(t, err)
		after, err := Compile("{% set x = (missing|default) + '<' + ''.join([]) %}{{ x }}", Options{})
		require.NoError(t, err)
		for work := 1_000_000; work < 1_200_000; work += 1_001 {
			hostile.eval.Work = int64(work)
			_, err = hostile.RenderVars(t.Context(), Object(), Input{})
			require.Error(t, err, source)
		}
		require.ErrorIs(t, err, rollout.KindLimit, source)
		r, err := after.RenderVars(t.Context(), Object(), Input{})
		require.NoError(t, err)
		require.Equal(t, "<", r.Text, source)
	}
}
