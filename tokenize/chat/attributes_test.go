package chat

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// An assignment to an attribute is refused before its value is made, a block behind its
// text, when it is assigned as an item.
func TestAttributesOfWhatIsNoNamespace(t *testing.T) {
	for source, want := range map[string]Class{
		"{% set x = 1 %}{% set x.y = 1 // 0 %}":                               OtherError,
		"{% set x = 1 %}{% set x.y %}a{% endset %}":                           TypeError,
		"{% set x.y | upper %}a{% endset %}":                                  TypeError,
		"{% set x = [] %}{% set x.y %}a{% endset %}":                          TypeError,
		"{% set x = 1 %}{% set x.y %}{{ raise_exception('no') }}{% endset %}": RaiseException,
	} {
		tmpl, err := Compile(source, Options{})
		require.NoError(t, err, source)
		c, err := NewConversation(List(), Null(), Null(), ConversationOptions{})
		require.NoError(t, err)
		_, err = tmpl.Render(t.Context(), c, Input{})
		failure, ok := errors.AsType[*Error](err)
		require.True(t, ok, source)
		require.Equal(t, want, failure.Class, source)
	}
}
