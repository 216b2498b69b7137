package step

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/export/target"
	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
)

// long returns a row of runs with all columns that a trainer may need, and two agent
// steps.
func long(group string, index int) spool.Row {
	r := spool.Row{Lens: []int32{1, 700, 200, 99}}
	for i := range int32(1000) {
		r.Tokens, r.Logprobs = append(r.Tokens, i*7%977), append(r.Logprobs, 0)
		if i > 700 {
			r.Logprobs[i] = -float32(i) / 1000
		}
	}
	advantage := 0.5
	r.Advantage, r.RolloutIndex, r.PromptLen, r.RolloutMaskSum, r.IsLast, r.Status, r.Temperature = &advantage, index, 701, 299, true, rollout.StatusCompleted, 1
	r.Rollout, r.Group = group+"/"+string(rune('0'+index)), group
	r.ID = rollout.SampleID(r.Rollout, 0)
	r.Sequence.IDs, r.Source, r.Turn = []int32{0, 7, 1, 2}, []int32{-1, 0, 1, 2}, []int32{-1, -1, 0, 1}
	r.Flags, r.Logprob = []rollout.Flag{0, rollout.FlagContent, rollout.FlagSampled, rollout.FlagSampled}, make([]float32, 4)
	r.Weight, r.Credit, r.Version = []float32{0, 0, 1, 1}, []float32{0, 0, 0.5, 0.5}, []int32{-1, -1, 3, 3}
	r.Metadata = []byte(`{"turnpack":{"steps":[{"step":0,"from":701,"to":901,"advantage":0.5},{"step":1,"from":901,"to":1000,"advantage":0.5}]}}`)
	r.FirstStep, r.LastStep = 0, 1
	return r
}

// kept collects rows.
type kept struct {
	rows []rollout.Sample
	runs int
}

func (k *kept) Row(r spool.Row) error {
	if r.Lens != nil {
		k.runs++
		r.Sample = r.Whole()
	}
	k.rows = append(k.rows, r.Sample)
	return nil
}

func (k *kept) Close() error { return nil }
func (k *kept) Abort() error { return nil }

// Rows given as runs reach every trainer like plain rows, also if they wait in a file.
// Shards of both let a run resume alike.
func TestRunsAreRows(t *testing.T) {
	for _, name := range target.Names() {
		for _, o := range []target.Options{{}, {GroupSize: 2, LeaveIncomplete: true}, {MeanOverRollouts: func(string) target.Totals { return target.Totals{Trained: 2000, Rollouts: 3} }}} {
			var made [2]kept
			sums := [2]string{}
			for i := range made {
				one, err := target.New(name, o)
				if err != nil {
					continue // it does not support the mean
				}
				dir := t.TempDir()
				set, err := shard.Create(dir, shard.Options{Source: "x", Export: export.Options{Trace: true}})
				require.NoError(t, err)
				for _, to := range []Sink{&made[i], Files{set}} {
					g := &Groups{Target: one, To: to, TempDir: dir, held: i} // 1: rows wait in a file
					for _, row := range []spool.Row{long("a", 0), long("a", 1), long("b", 0), long("b", 1), long("c", 0)} {
						if row.Group == "c" && one.Name() == "trl" && !o.LeaveIncomplete {
							continue // it needs groups of equal size
						}
						if i == 0 {
							require.NoError(t, Rows{g}.Write(row.Whole()), name)
						} else {
							require.NoError(t, Rows{g}.WriteRuns(row.Sample, row.Lens, row.Tokens, row.Logprobs), name)
						}
					}
					require.NoError(t, g.Close(), name)
				}
				sums[i] = set.Manifest().Shards[0].Input
			}
			require.Equal(t, made[0].rows, made[1].rows, name)
			require.Len(t, made[1].rows, made[1].runs)
			require.Equal(t, sums[0], sums[1], name)
		}
	}
}

// A format with one entry per token accepts short rows of runs and refuses very long ones
// before expanding them.
func TestWholeRefuses(t *testing.T) {
	var to kept
	row := long("a", 0)
	require.NoError(t, Rows{Whole{&to}}.WriteRuns(row.Sample, row.Lens, row.Tokens, row.Logprobs))
	require.Equal(t, row.Whole(), to.rows[0])
	row.Lens[1] += spool.MaxWhole
	row.Tokens = make([]rollout.TokenID, 1000+spool.MaxWhole)
	require.ErrorContains(t, Rows{Whole{&to}}.WriteRuns(row.Sample, row.Lens, row.Tokens, nil), "rows of more than 4194304")
}
