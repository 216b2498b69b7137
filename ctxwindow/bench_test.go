package ctxwindow

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// cached is a counter that knows the lengths of messages.
type cached struct{}

func (c cached) Count(ctx context.Context, ms []rollout.Message) (int, error) {
	n := 4
	for k := range ms {
		n += 4 + len(ms[k].Content)/4
	}
	return n, nil
}

func BenchmarkPlan(b *testing.B) {
	ctx := context.Background()
	for _, steps := range []int{20, 200, 1000} {
		rng := rand.New(rand.NewPCG(204, 1))
		r := agent(rng, steps, func(int) int { return 20 + rng.IntN(60) })
		turns := append([]rollout.Turn(nil), rollout.TurnsOf(r)...)
		r.Turns = turns
		const budget = 5000
		for _, p := range []Policy{HeadTail{Budget: budget}, Refill{Budget: budget}, SWERL(budget)} {
			b.Run(fmt.Sprintf("%T/steps=%d", p, steps), func(b *testing.B) {
				b.ReportAllocs()
				var rep Report
				for b.Loop() {
					var err error
					_, rep, err = Plan(ctx, r, p, cached{})
					require.NoError(b, err)
				}
				b.ReportMetric(float64(rep.Rows), "rows")
				b.ReportMetric(float64(rep.Calls)/float64(steps), "calls/step")
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(steps), "us/step")
			})
		}
	}
}
