package serve

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// An answer that is kept again is as new as the last, and the number of answers stays bounded.
func TestAnswersAreBounded(t *testing.T) {
	q := &queue{past: map[string]pastAnswer{}}
	q.keepAnswer("a", pastAnswer{ending: "old"})
	for i := range maxAnswers - 2 {
		q.keepAnswer(fmt.Sprint(i), pastAnswer{})
	}
	q.keepAnswer("a", pastAnswer{ending: "new"})
	for i := range maxAnswers - 1 {
		q.keepAnswer(fmt.Sprint("later ", i), pastAnswer{})
		require.Equal(t, "new", q.past["a"].ending, "after %d answers", i+1)
	}
	require.Len(t, q.past, maxAnswers)
	q.keepAnswer("last", pastAnswer{})
	require.NotContains(t, q.past, "a")
	require.Len(t, q.past, maxAnswers)
	require.Len(t, q.order, maxAnswers)
}
