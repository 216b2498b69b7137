package export_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// spec describes one rollout of a fixture by the trained runs of each row.
type spec struct {
	group, id string
	index     int
	status    rollout.Status
	reward    float64
	rows      [][]int // alternating lengths of untrained and trained runs, untrained first
}

// build returns finished rows with every column.
func build(t testing.TB, r *rand.Rand, sp spec) []rollout.Sample {
	t.Helper()
	var rows []rollout.Sample
	step := 0
	for _, runs := range sp.rows {
		var c rollout.Columns
		var weight, credit []float32
		first := step
		for i, n := range runs {
			trained := i%2 == 1
			for k := range n {
				c.IDs, c.Source = append(c.IDs, int32(r.IntN(150_000))), append(c.Source, int32(i))
				w, a, turn, version, flags := float32(0), float32(0), int32(-1), int32(-1), rollout.Flag(0)
				if trained {
					w, a, turn, version, flags = 1, float32(sp.reward)-0.5, int32(step), 7, rollout.FlagSampled
					if k == n-1 {
						flags |= rollout.FlagStop
					}
				}
				c.Turn, c.Flags, c.Version = append(c.Turn, turn), append(c.Flags, flags), append(c.Version, version)
				weight, credit = append(weight, w), append(credit, a)
			}
			for range n {
				lp := float32(0)
				if trained {
					lp = -r.Float32()
				}
				c.Logprob = append(c.Logprob, lp)
			}
			if trained {
				step++
			}
		}
		id := rollout.Identity{Rollout: sp.id, Group: sp.group, SampleIndex: len(rows), FirstTurn: first, LastTurn: step - 1,
			FirstStep: first, LastStep: step - 1, Tokenizer: "sha256:aa", Template: "sha256:bb"}
		seq, err := c.Sequence(id, 0)
		require.NoError(t, err)
		seq.Weight, seq.Credit = weight, credit
		adv, mean := sp.reward-0.5, 0.25
		s := rollout.Sample{Sequence: seq, RolloutIndex: sp.index, Reward: sp.reward, OutcomeReward: sp.reward, Advantage: &adv,
			Status: sp.status, FinishReason: "stop", Temperature: 0.7, Metadata: []byte(fmt.Sprintf(`{"row":%d}`, len(rows)))}
		if len(rows) == 0 {
			s.StepReward = &mean
		}
		rows = append(rows, s)
	}
	return rollout.FinishRows(rows)
}

// fixture returns groups like those that trainers were tested with: groups of different sizes,
// 1 to 5 rows per rollout, aborted and truncated rollouts, a group of one rollout, a group with
// equal rewards.
func fixture(t testing.TB, seed uint64, groups int) []rollout.Sample {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	var out []rollout.Sample
	for g := range groups {
		n := 1 + r.IntN(4)
		if g == 0 {
			n = 1
		}
		for i := range n {
			sp := spec{group: fmt.Sprintf("task-%03d", g), index: i, reward: float64(r.IntN(5)) / 4,
				status: []rollout.Status{rollout.StatusCompleted, rollout.StatusTruncated, rollout.StatusAborted}[r.IntN(3)]}
			if g == 1 {
				sp.reward = 1
			}
			sp.id = fmt.Sprintf("%s/r%d", sp.group, i)
			for range 1 + r.IntN(5) {
				runs := []int{1 + r.IntN(40)}
				for range 1 + r.IntN(3) {
					runs = append(runs, 1+r.IntN(12), 1+r.IntN(9))
				}
				sp.rows = append(sp.rows, runs)
			}
			out = append(out, build(t, r, sp)...)
		}
	}
	return out
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2)) }
