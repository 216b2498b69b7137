package target_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/target"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/rollout"
)

// row returns one row with alternating untrained and trained runs.
func row(group, id string, index, sample int, runs ...int) rollout.Sample {
	adv := 0.5
	s := rollout.Sample{RolloutIndex: index, Reward: 1, OutcomeReward: 1, Advantage: &adv, Status: rollout.StatusCompleted, FinishReason: "stop", Temperature: 1}
	s.Identity = rollout.Identity{Group: group, Rollout: id, SampleIndex: sample, FirstStep: sample, LastStep: sample}
	for i, n := range runs {
		for range n {
			w := float32(i % 2)
			s.IDs = append(s.IDs, int32(10+len(s.IDs)))
			s.Weight = append(s.Weight, w)
			s.Logprob = append(s.Logprob, -0.5*w)
			s.Version = append(s.Version, int32(5*w)-1)
		}
	}
	return s
}

// group returns two rollouts; the second row of the first rollout trains nothing.
func group() []rollout.Sample {
	return []rollout.Sample{row("g", "g/1", 1, 0, 3, 2), row("g", "g/0", 0, 0, 3, 2, 4), row("g", "g/0", 0, 1, 5), row("g", "g/0", 0, 2, 3, 1, 2, 2)}
}

func TestOrdersTrimsAndNumbers(t *testing.T) {
	tg, err := target.New("slime", target.Options{})
	require.NoError(t, err)
	in := group()
	got, err := tg.Group(in)
	require.NoError(t, err)
	require.Equal(t, group(), in, "the input stays")
	var text []string
	for _, s := range got {
		text = append(text, fmt.Sprintf("%s len %d last %v sum %d", s.ID, s.Len(), s.IsLast, s.RolloutMaskSum))
	}
	require.Equal(t, []string{"g/0#0 len 5 last false sum 5", "g/0#1 len 8 last true sum 5", "g/1#0 len 5 last true sum 2"}, text)
	require.Equal(t, 1, tg.Dropped["row without a trained token"])
	var buf bytes.Buffer
	w, err := export.NewWriter(&buf, export.Options{})
	require.NoError(t, err)
	for _, s := range got {
		require.NoError(t, w.Write(s))
	}
	require.NoError(t, w.Close())
}

// Weights that are no mean over rollouts are refused however the target is made: the remedy must not be what is set.
func TestRemedyForWeights(t *testing.T) {
	tg, err := target.New("nemo-rl", target.Options{MeanOverRollouts: func(string) target.Totals { return target.Totals{Trained: 7, Rollouts: 2} }})
	require.NoError(t, err)
	rows := group()
	rows[0].Weight = []float32{0, 0, 0, .5, .5}
	_, err = tg.Group(rows)
	var e *rollout.Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Fix, "--importance-weights none")
	require.Contains(t, e.Fix, "prime-rl")
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		target string
		opts   target.Options
		change func(rows []rollout.Sample)
		column string // "" = accepted
	}{
		{"slime", target.Options{}, func(r []rollout.Sample) { r[0].Advantage = nil }, col.Advantage},
		{"slime", target.Options{}, func(r []rollout.Sample) { r[0].Weight = []float32{0, 0, 0, .5, .5} }, col.Weights},
		{"slime", target.Options{}, func(r []rollout.Sample) { r[0].Credit = []float32{0, 0, 0, .5, .25} }, col.Advantages},
		{"slime", target.Options{}, func(r []rollout.Sample) { r[0].Credit = []float32{0, 0, 0, .5, .5} }, ""},
		{"slime", target.Options{}, func(r []rollout.Sample) { r[0].Logprob = nil }, ""},
		{"verl", target.Options{}, func(r []rollout.Sample) { r[0].Logprob = nil }, ""},
		{"verl", target.Options{}, func(r []rollout.Sample) { r[3].Advantage = new(0.25) }, col.Advantage},
		{"slime", target.Options{}, func(r []rollout.Sample) { r[3].Advantage = new(0.25) }, ""},
		{"skyrl", target.Options{}, func(r []rollout.Sample) { r[0].Logprob = nil }, ""},
		{"skyrl", target.Options{}, func(r []rollout.Sample) { r[0].RolloutIndex = 0; r[0].SampleIndex = 9 }, col.RolloutIndex},
		{"skyrl", target.Options{}, func(r []rollout.Sample) { r[0].Advantage = nil }, col.Advantage},
		{"prime-rl", target.Options{}, func(r []rollout.Sample) { setTemperature(r, 0) }, col.Temperature},
		{"slime", target.Options{}, func(r []rollout.Sample) { setTemperature(r, 0) }, col.Temperature},
		{"nemo-rl", target.Options{}, func(r []rollout.Sample) { setTemperature(r, 0) }, col.Temperature},
		{"megatron", target.Options{}, func(r []rollout.Sample) { setTemperature(r, 0) }, ""},
		{"none", target.Options{}, func(r []rollout.Sample) { setTemperature(r, 0) }, ""},
		{"prime-rl", target.Options{MaxTokens: 4}, nil, col.InputIDs},
		{"prime-rl", target.Options{}, func(r []rollout.Sample) { r[0].Weight = []float32{0, 0, 0, .5, .5} }, ""},
		{"prime-rl", target.Options{}, func(r []rollout.Sample) { r[0].Temperature = 0.5 }, ""},
		{"megatron", target.Options{}, func(r []rollout.Sample) { r[0].Temperature = 0.5 }, ""},
		{"slime", target.Options{}, func(r []rollout.Sample) { r[0].Temperature = 0.5 }, col.Temperature},
		{"verl", target.Options{}, func(r []rollout.Sample) { r[0].Temperature = 0.5 }, col.Temperature},
		{"trl", target.Options{}, nil, col.SampleIndex},
		{"trl-async", target.Options{}, nil, ""},
		{"trl-async", target.Options{}, func(r []rollout.Sample) { r[0].Logprob = nil }, col.Logprobs},
		{"prime-rl", target.Options{}, func(r []rollout.Sample) { r[0].Logprob = nil }, col.Logprobs},
		{"trl-async", target.Options{RawLogprobs: true}, func(r []rollout.Sample) { setTemperature(r, 0.5) }, col.Logprobs},
		{"trl-async", target.Options{RawLogprobs: true}, func(r []rollout.Sample) { setTemperature(r, 1) }, ""},
		{"megatron", target.Options{RawLogprobs: true}, func(r []rollout.Sample) { setTemperature(r, 0.5) }, ""},
		{"areal", target.Options{}, func(r []rollout.Sample) { r[0].Version = nil }, col.Versions},
		{"areal", target.Options{}, nil, ""},
		{"nemo-rl", target.Options{}, func(r []rollout.Sample) { r[0].Logprob = nil }, ""},
		{"trl", target.Options{GroupSize: 2, LeaveIncomplete: true}, func(r []rollout.Sample) { r[0].Logprob = nil }, ""},
		{"areal", target.Options{}, func(r []rollout.Sample) { r[0].Logprob = nil }, ""},
		{"megatron", target.Options{}, func(r []rollout.Sample) { r[0].Logprob, r[0].Advantage = nil, nil }, ""},
		{"megatron", target.Options{}, func(r []rollout.Sample) { r[0].Weight = []float32{0, 0, 0, .5, .5} }, col.Weights},
		{"megatron", target.Options{PadMultiple: 4, EOS: 2}, func(r []rollout.Sample) { r[0].IDs = []int32{5, 6, 7, 2, 2} }, col.LossMask},
		{"megatron", target.Options{PadMultiple: 4, EOS: 2}, func(r []rollout.Sample) { r[0].IDs = []int32{5, 6, 7, 2, 9} }, col.LossMask},
		{"megatron", target.Options{PadMultiple: 4, EOS: 2}, func(r []rollout.Sample) { r[0].IDs = []int32{5, 6, 2, 7, 2} }, ""},
		{"megatron", target.Options{PadMultiple: 1, EOS: 2}, func(r []rollout.Sample) { r[0].IDs = []int32{5, 6, 7, 2, 2} }, ""},
		{"none", target.Options{}, func(r []rollout.Sample) { r[0].Logprob, r[0].Advantage = nil, nil }, ""},
		{"slime", target.Options{}, func(r []rollout.Sample) { r[0].Group = "h" }, col.GroupID},
	} {
		t.Run(c.target+"/"+c.column, func(t *testing.T) {
			tg, err := target.New(c.target, c.opts)
			require.NoError(t, err)
			in := group()
			if c.change != nil {
				c.change(in)
			}
			_, err = tg.Group(in)
			if c.column == "" {
				require.NoError(t, err)
				return
			}
			var refused *export.RefusedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, c.column, refused.Column, err.Error())
			require.ErrorContains(t, err, c.target)
			require.NotEmpty(t, refused.Sample)
			var located *rollout.Error
			require.ErrorAs(t, err, &located)
			require.NotEmpty(t, located.Fix)
		})
	}
}

func setTemperature(rows []rollout.Sample, t float32) {
	for i := range rows {
		rows[i].Temperature = t
	}
}

// With LeaveIncomplete, incomplete groups and rollouts with too many rows are left out and
// counted.
func TestLeaveIncomplete(t *testing.T) {
	batch := func(g string, rollouts, rowsOfLast int) []rollout.Sample {
		var out []rollout.Sample
		for i := range rollouts {
			n := 1
			if i == rollouts-1 {
				n = rowsOfLast
			}
			for k := range n {
				out = append(out, row(g, fmt.Sprint(g, "/", i), i, k, 3, 2))
			}
		}
		return out
	}
	for name, want := range map[string][]int{"trl": {2, 0, 0, 0}, "trl-async": {2, 0, 0, 3}, "none": {2, 0, 0, 3}} {
		tg, err := target.New(name, target.Options{GroupSize: 2, LeaveIncomplete: true})
		require.NoError(t, err)
		for i, g := range [][]rollout.Sample{batch("a", 2, 1), batch("b", 1, 1), batch("c", 3, 1), batch("d", 2, 2)} {
			got, err := tg.Group(g)
			require.NoError(t, err)
			require.Len(t, got, want[i], "%s %d", name, i)
		}
		wantDropped := map[string]int{"rollout of an incomplete group": 4}
		if name == "trl" {
			wantDropped = map[string]int{"rollout of an incomplete group": 5, "rollout of several rows": 1}
		}
		require.Equal(t, wantDropped, tg.Dropped, name)
	}
	tg, err := target.New("trl", target.Options{})
	require.NoError(t, err)
	for _, c := range []struct {
		rows []rollout.Sample
		says string
	}{{batch("a", 2, 2), "this one has 2"}, {batch("b", 1, 1), "one rollout to train"}, {batch("c", 3, 1), ""}, {batch("d", 2, 1), "the others 3"}} {
		if _, err = tg.Group(c.rows); c.says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.says)
		require.ErrorContains(t, err, "--group-size N")
	}
	_, err = target.New("trl", target.Options{LeaveIncomplete: true})
	require.ErrorContains(t, err, "GroupSize")
}

// If the temperature of a row was assumed, the refusal of another row says how to set it.
func TestAssumedTemperature(t *testing.T) {
	for _, said := range []string{"assumed", "given"} {
		tg, err := target.New("verl", target.Options{})
		require.NoError(t, err)
		rows := group()
		rows[0].Temperature, rows[0].Metadata = 0.5, []byte(`{"turnpack":{"temperature":"`+said+`"}}`)
		_, err = tg.Group(rows)
		require.ErrorContains(t, err, "trains at one temperature")
		require.Equal(t, said == "assumed", strings.Contains(err.Error(), "--temperature"), err)
	}
}

// The rows of an earlier run decide the temperature and group size of later rows.
func TestGoOn(t *testing.T) {
	tg, err := target.New("trl", target.Options{})
	require.NoError(t, err)
	tg.GoOn(0.5, 3)
	rows := []rollout.Sample{row("a", "a/0", 0, 0, 3, 2), row("a", "a/1", 1, 0, 3, 2)}
	_, err = tg.Group(rows)
	require.ErrorContains(t, err, "row of an earlier run at 0.5")
	for i := range rows {
		rows[i].Temperature = 0.5
	}
	_, err = tg.Group(rows)
	require.ErrorContains(t, err, "the others 3")
}

func TestStatusesAndReasons(t *testing.T) {
	cut := group()
	for i := range cut {
		cut[i].Status, cut[i].FinishReason = rollout.StatusTruncated, ""
	}
	tg, err := target.New("slime", target.Options{})
	require.NoError(t, err)
	got, err := tg.Group(cut)
	require.NoError(t, err)
	require.Equal(t, rollout.StatusCompleted, got[0].Status, "only the last row of a cut rollout is truncated")
	require.Equal(t, rollout.StatusTruncated, got[1].Status)
	tg, err = target.New("skyrl", target.Options{})
	require.NoError(t, err)
	got, err = tg.Group(cut)
	require.NoError(t, err)
	require.Equal(t, []string{"stop", "length", "length"}, []string{got[0].FinishReason, got[1].FinishReason, got[2].FinishReason})

	aborted := group()
	aborted[0].Status = rollout.StatusAborted
	for name, want := range map[string]int{"verl": 2, "areal": 2, "slime": 3} {
		tg, err = target.New(name, target.Options{})
		require.NoError(t, err)
		got, err = tg.Group(aborted)
		require.NoError(t, err)
		require.Len(t, got, want, name)
	}
}

func TestEqualGroups(t *testing.T) {
	one := func(g string, n int) (rows []rollout.Sample) {
		for i := range n {
			rows = append(rows, row(g, fmt.Sprintf("%s/%d", g, i), i, 0, 2, 2))
		}
		return rows
	}
	tg, err := target.New("trl", target.Options{})
	require.NoError(t, err)
	got, err := tg.Group(one("a", 3))
	require.NoError(t, err)
	require.Equal(t, []float32{0, 0, .5, .5}, got[0].Credit, "advantages are made from the scalar")
	_, err = tg.Group(one("b", 2))
	require.ErrorContains(t, err, "2 rollouts to train, the others 3")
	_, err = tg.Group(one("c", 1))
	require.ErrorContains(t, err, "takes groups of 2 or more")
}

// Under the trainer's mean over tokens, the weights give every rollout the same share: factor
// times trained tokens of the rollout is N / rollouts.
func TestMeanOverRollouts(t *testing.T) {
	opts := target.Options{MeanOverRollouts: func(string) target.Totals { return target.Totals{Trained: 7, Rollouts: 2} }}
	for _, name := range target.Names() {
		tg, err := target.New(name, opts)
		if name == "megatron" || name == "openclaw" {
			require.ErrorContains(t, err, "whole numbers")
			continue
		}
		require.NoError(t, err)
		in := group()
		if name == "trl" {
			in = in[:2]
		}
		got, err := tg.Group(in)
		require.NoError(t, err)
		share := map[string]float64{}
		for _, s := range got {
			for _, w := range s.Weight {
				if w > 0 {
					share[s.Rollout] += *s.Advantage / 0.5 * float64(w)
				}
			}
		}
		for id, sum := range share {
			if name == "slime" || name == "trl" {
				continue // native; the fixture has other totals
			}
			require.InDelta(t, 3.5, sum, 1e-5, "%s %s", name, id)
		}
	}
}

// Counts that hold nothing would make every weight a NaN or infinite.
func TestMeanOverNothing(t *testing.T) {
	for _, totals := range []target.Totals{{}, {Trained: 7}, {Rollouts: 2}} {
		tg, err := target.New("verl", target.Options{MeanOverRollouts: func(string) target.Totals { return totals }})
		require.NoError(t, err)
		_, err = tg.Group(group())
		require.ErrorContains(t, err, "no mean over rollouts", "%+v", totals)
	}
}

func TestUnknownTargetAndOptions(t *testing.T) {
	_, err := target.New("nope", target.Options{})
	require.ErrorContains(t, err, "slime")
	_, err = target.New("slime", target.Options{MaxTokens: -1, GroupSize: -1, PadMultiple: -1})
	for _, want := range []string{"MaxTokens", "GroupSize", "PadMultiple"} {
		require.ErrorContains(t, err, want)
	}
}

// The target openclaw accepts rows of several steps only if their metadata has the steps'
// advantages.
func TestSteps(t *testing.T) {
	const steps = `{"turnpack":{"steps":[{"step":0,"from":3,"to":5,"advantage":1},{"step":1,"from":9,"to":11,"advantage":-2}]}}`
	made := func(metadata string, credit ...float32) []rollout.Sample {
		s := row("g", "g/0", 0, 0, 3, 2, 4, 2)
		s.Credit = append([]float32{0, 0, 0}, credit...)
		s.Metadata = []byte(metadata)
		return []rollout.Sample{s}
	}
	for _, c := range []struct {
		says     string
		metadata string
		credit   []float32
	}{
		{"", steps, []float32{1, 1, 0, 0, 0, 0, -2, -2}},
		{"", `{}`, []float32{0.5, 0.5, 0, 0, 0, 0, 0.5, 0.5}},
		{"one advantage per row", `{}`, []float32{1, 1, 0, 0, 0, 0, -2, -2}},
		{"has the advantage 1 and its step -2", steps, []float32{1, 1, 0, 0, 0, 0, -2, 1}},
		{"is trained and in no step", `{"turnpack":{"steps":[{"step":0,"from":3,"to":5,"advantage":1}]}}`, []float32{1, 1, 0, 0, 0, 0, -2, -2}},
		{"spans of two steps", `{"turnpack":{"steps":[{"step":0,"from":3,"to":5,"advantage":1},{"step":1,"from":4,"to":11,"advantage":1}]}}`, []float32{1, 1, 0, 0, 0, 0, 1, 1}},
		{"cannot be read", `{"turnpack":{"steps":1}}`, []float32{1, 1, 0, 0, 0, 0, 1, 1}},
	} {
		tg, err := target.New("openclaw", target.Options{})
		require.NoError(t, err)
		_, err = tg.Group(made(c.metadata, c.credit...))
		if c.says == "" {
			require.NoError(t, err, c.metadata)
			continue
		}
		require.ErrorContains(t, err, c.says)
	}
	tg, err := target.New("slime", target.Options{})
	require.NoError(t, err)
	_, err = tg.Group(made(steps, 1, 1, 0, 0, 0, 0, -2, -2))
	require.ErrorContains(t, err, "one advantage per row")
}

func TestATargetIsMadeWithNewAndLeavesItsInputAlone(t *testing.T) {
	var zero target.Target
	_, err := zero.Group(group())
	require.ErrorContains(t, err, "target.Target")
	for _, name := range target.Names() {
		tg, err := target.New(name, target.Options{EOS: 2})
		require.NoError(t, err)
		in, want := group(), group()
		_, _ = tg.Group(in)
		require.Equal(t, want, in, name)
	}
}
