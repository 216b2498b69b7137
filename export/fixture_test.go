package export_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// spec describes one rollout of a fixture: the trained runs of each row.
type spec struct {
	group, id string
	index     int
	status    rollout.Status
	reward    float64
	rows      [][]int // alternating context and trained run lengths, context first
}

// build makes settled rows with every column.
func build(t testing.TB, r *rand.Rand, sp spec) []rollout.Sample {
	t.Helper()
	var rows []rollout.Sample
	step := 0
	for _, runs := range sp.rows {
		var b rollout.SequenceBuilder
		var weight, credit []float32
		first := step
		for i, n := range runs {
			trained := i%2 == 1
			at := b.Len()
			for k := range n {
				tok := rollout.Token{ID: int32(r.IntN(150_000)), Source: int32(i), Turn: -1}
				if trained {
					tok.Turn, tok.Flags = int32(step), rollout.FlagSampled
					if k == n-1 {
						tok.Flags |= rollout.FlagStop
					}
				}
				b.Add(tok)
				w, a := float32(0), float32(0)
				if trained {
					w, a = 1, float32(sp.reward)-0.5
				}
				weight, credit = append(weight, w), append(credit, a)
			}
			if trained {
				lp := make([]float32, n)
				for k := range lp {
					lp[k] = -r.Float32()
				}
				b.SetLogprobs(at, lp)
				b.SetVersion(at, n, 7)
				step++
			}
		}
		id := rollout.Identity{Rollout: sp.id, Group: sp.group, SampleIndex: len(rows), FirstTurn: first, LastTurn: step - 1,
			FirstStep: first, LastStep: step - 1, Tokenizer: "sha256:aa", Template: "sha256:bb"}
		seq, err := b.Build(id)
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

// fixture is a set of groups like those trainers were tried on: ragged groups,
// fan-out 1 to 5, aborted and truncated rollouts, a singleton group, a group
// without spread.
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
