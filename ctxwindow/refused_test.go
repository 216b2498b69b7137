package ctxwindow

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

type startsNothing struct{ None }

func (startsNothing) Start(*History) Strategy { return nil }

type breaks struct{ None }

func (breaks) Start(*History) Strategy {
	return strategy(func(context.Context, int) ([]unit, View, error) { return nil, View{}, errors.New("broken") })
}

// Invalid policies, counters and rollouts are rejected with an error.
func TestAWindowRefusesWhatNobodyCanShow(t *testing.T) {
	ctx := context.Background()
	r := agent(rand.New(rand.NewPCG(1, 2)), 20, func(int) int { return 9 })
	empty := func(int) rollout.Message { return rollout.Message{Content: "some turns are gone"} }
	for what, c := range map[string]struct {
		policy  Policy
		counter Counter
		says    string
	}{
		"a note without a role":    {HeadTail{Budget: 200, Note: empty}, &chars{}, "has no role"},
		"a summary without a role": {Compaction{Budget: 200, Summarize: func(context.Context, []rollout.Message) (rollout.Message, error) { return empty(1), nil }}, &chars{}, "has no role"},
		"a policy without a start": {startsNothing{}, &chars{}, "starts nothing"},
		"a policy that fails":      {breaks{}, &chars{}, "broken"},
		"a negative count":         {HeadTail{Budget: 200}, CounterFunc(func(context.Context, []rollout.Message) (int, error) { return -1, nil }), "gave -1 tokens"},
	} {
		_, _, err := Plan(ctx, r, c.policy, c.counter)
		require.ErrorContains(t, err, c.says, what)
		var e *rollout.Error
		require.ErrorAs(t, err, &e, what)
		require.Equal(t, r.ID, e.Where.Rollout, what)
		_, err = Fit(ctx, r.Messages, c.policy, c.counter)
		require.ErrorContains(t, err, c.says, what)
	}
	_, err := SWERL(100).Decide(ctx, r.Messages, nil)
	require.ErrorIs(t, err, rollout.KindInput)
	_, err = Parse("none:32768")
	require.ErrorIs(t, err, rollout.KindInput, "None has no budget")
}
