package ctxwindow

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
)

type kitCase struct {
	ID, Counter string
	Budget      int
	HeadRatio   float64 `json:"head_ratio"`
	Messages    []rollout.Message
	Expected    struct {
		Total       int   `json:"total_tokens"`
		Fixed       int   `json:"fixed_tokens"`
		TurnLengths []int `json:"turn_lengths"`
		TurnCosts   []int `json:"turn_costs"`
		Kept        []int
		Unchanged   bool
		Omitted     *int `json:"omitted_turns"`
		After       int  `json:"tokens_after"`
	}
}

func kitCases(t testing.TB) []kitCase {
	t.Helper()
	return slices.Collect(kit.Lines[kitCase](t, kit.Dir(t, "conformance", "context_manager", "cases.jsonl")))
}

func (c kitCase) counter() Counter {
	if c.Counter == "ws" {
		return &words{}
	}
	return &chars{}
}

func TestKitReference(t *testing.T) {
	over, lost := 0, 0
	for _, c := range kitCases(t) {
		d, err := SWERLPolicy{Budget: c.Budget, Head: c.HeadRatio}.Decide(context.Background(), c.Messages, c.counter())
		require.NoError(t, err, c.ID)
		want := Decision{Total: c.Expected.Total, Fixed: c.Expected.Fixed, TurnLengths: c.Expected.TurnLengths, TurnCosts: c.Expected.TurnCosts,
			Kept: c.Expected.Kept, Unchanged: c.Expected.Unchanged, After: c.Expected.After}
		if c.Expected.Omitted != nil {
			want.Omitted = *c.Expected.Omitted
		}
		require.Equal(t, want, d, c.ID)
		if c.Expected.After > c.Budget && !c.Expected.Unchanged {
			over++
		}
		if !c.Expected.Unchanged && c.Expected.Kept[len(c.Expected.Kept)-1] == -1 {
			lost++
		}
	}
	require.Equal(t, [2]int{13, 36}, [2]int{over, lost}, "the reference's faults, as the kit counts them")
}

// TestKitSafePolicies runs every policy but the parity policy on the reference's histories: each
// keeps the latest turn within the budget, or reports that even empty messages exceed it.
func TestKitSafePolicies(t *testing.T) {
	for _, policy := range []func(budget int) Policy{
		func(b int) Policy { return HeadTail{Budget: b} },
		func(b int) Policy { return Tail{Budget: b} },
		func(b int) Policy { return Refill{Budget: b} },
		func(b int) Policy {
			return Compaction{Budget: b, Summarize: func(context.Context, []rollout.Message) (rollout.Message, error) {
				return rollout.Message{Role: rollout.RoleUser, Content: "so far all went well and nothing needs to be repeated"}, nil
			}}
		},
	} {
		tooSmall := 0
		for _, c := range kitCases(t) {
			counter := c.counter()
			f, err := Fit(context.Background(), c.Messages, policy(c.Budget), counter)
			if err != nil {
				require.ErrorIs(t, err, rollout.KindLimit, c.ID)
				require.Greater(t, bareCount(t, c, counter), c.Budget, c.ID)
				tooSmall++
				continue
			}
			n, err := counter.Count(context.Background(), f.Messages)
			require.NoError(t, err)
			require.LessOrEqual(t, n, c.Budget, c.ID)
			require.Equal(t, n, f.Tokens, c.ID)
			last, got := c.Messages[len(c.Messages)-1], f.Messages[len(f.Messages)-1]
			require.Equal(t, last.Role, got.Role, c.ID)
			if f.Shortened == 0 {
				require.Equal(t, last, got, c.ID)
			}
		}
		require.LessOrEqual(t, tooSmall, 2, name(policy(1)))
	}
}

// bareCount counts the first two messages and the latest turn without content.
func bareCount(t *testing.T, c kitCase, counter Counter) int {
	t.Helper()
	bare := []rollout.Message{{Role: c.Messages[0].Role}, {Role: c.Messages[1].Role}}
	from := len(c.Messages) - 1
	for from > 2 && c.Messages[from].Role != rollout.RoleAssistant {
		from--
	}
	for _, m := range c.Messages[from:] {
		bare = append(bare, rollout.Message{Role: m.Role})
	}
	n, err := counter.Count(context.Background(), bare)
	require.NoError(t, err)
	return n
}
