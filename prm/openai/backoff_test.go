package openai

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A queue that stays full causes many retries: the wait never overflows.
func TestTheWaitStaysWithinItsBounds(t *testing.T) {
	for _, least := range []time.Duration{1, time.Second, 20 * time.Second, 1 << 40} {
		c := &Client{o: Options{bounds: bounds{backoffMin: least, backoffMax: max(least, time.Minute)}}}
		for n := 1; n < 100; n++ {
			d := c.backoff(n)
			require.GreaterOrEqual(t, d, least/2, "retry %d from %s", n, least)
			require.LessOrEqual(t, d, c.o.backoffMax)
		}
	}
}
