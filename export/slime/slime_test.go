package slime_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/slime"
	"github.com/turnpack/turnpack/rollout"
)

func fixture(n int) []rollout.Sample {
	var out []rollout.Sample
	for g := range n {
		for i := range 2 {
			var rows []rollout.Sample
			for k := range 1 + i {
				adv := float64(i) - 0.5
				s := rollout.Sample{RolloutIndex: i, Reward: float64(i), OutcomeReward: float64(i), Advantage: &adv, Status: rollout.StatusTruncated, Temperature: 1}
				s.Identity = rollout.Identity{Group: fmt.Sprintf("g%d", g), Rollout: fmt.Sprintf("g%d/%d", g, i), FirstStep: k, LastStep: k}
				for t := range 6 + g%5 {
					trained := t >= 3 && t != 4
					s.IDs = append(s.IDs, int32(t*70_000))
					s.Weight, s.Logprob = append(s.Weight, 0), append(s.Logprob, 0)
					if trained {
						s.Weight[t], s.Logprob[t] = 1, -0.25*float32(t)
					}
				}
				rows = append(rows, s)
			}
			out = append(out, rollout.FinishRows(rows)...)
		}
	}
	return out
}

func write(t testing.TB, rows []rollout.Sample, o slime.Options) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "0.pt")
	require.NoError(t, slime.Write(path, rows, o))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

func TestRoundTrip(t *testing.T) {
	rows := fixture(700) // 2,100 samples: several batches of the pickled list
	data := write(t, rows, slime.Options{Step: 7})
	require.Equal(t, data, write(t, rows, slime.Options{Step: 7}), "the bytes follow from the rows")
	step, got, err := slime.Read(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	require.Equal(t, 7, step)
	require.Len(t, got, len(rows))
	first := 0
	for i, s := range rows {
		if s.SampleIndex == 0 {
			first = i
		}
		n := s.Len() - s.PromptLen
		want := slime.Sample{GroupIndex: i / 3, Index: i, RolloutID: first, Tokens: s.IDs, ResponseLength: n, Reward: s.Reward, HasReward: true, Status: "truncated",
			Metadata: map[string]any{"advantage": *s.Advantage, "sample_id": s.ID, "group_id": s.Group}}
		for k := range n {
			want.LossMask = append(want.LossMask, int32(s.Weight[s.PromptLen+k]))
			want.Logprobs = append(want.Logprobs, float64(s.Logprob[s.PromptLen+k]))
		}
		require.Equal(t, want, got[i])
	}
}

// A refused file leaves nothing under its name, or the file that it was to replace unchanged.
func TestRefusesWhatTheSchemaRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.pt")
	rows := fixture(1)
	rows[1].SampleIndex, rows[1].ID = 1, ""
	require.ErrorIs(t, slime.Write(path, rows, slime.Options{}), rollout.KindInput)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Empty(t, left)

	require.NoError(t, slime.Write(path, rows[:1], slime.Options{}))
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	require.ErrorIs(t, slime.Write(path, rows[:1], slime.Options{}), export.ErrExists)
	require.ErrorIs(t, slime.Write(path, rows, slime.Options{Export: export.Options{Force: true}}), rollout.KindInput)
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, old, kept)
}

func TestPrefixesFail(t *testing.T) {
	data := write(t, fixture(2), slime.Options{})
	for n := range data {
		_, _, err := slime.Read(bytes.NewReader(data[:n]), int64(n))
		require.ErrorIs(t, err, rollout.KindFormat, "prefix of %d bytes", n)
	}
}

// A file that torch wrote can be read here, and torch loads ours with weights_only.
func TestTorch(t *testing.T) {
	bin := os.Getenv("TURNPACK_PYTHON")
	if bin == "" {
		t.Skip("SKIPPED: set TURNPACK_PYTHON to a Python with torch to run this test")
	}
	if exec.Command(bin, "-c", "import torch").Run() != nil {
		t.Skip("SKIPPED: the Python named by TURNPACK_PYTHON has no torch: pip install torch there")
	}
	script := filepath.Join("..", "..", "internal", "oracle", "read_slime.py")
	path := filepath.Join(t.TempDir(), "torch.pt")
	out, err := exec.Command(bin, script, "--save", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	step, got, err := slime.Read(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	require.Equal(t, 7, step)
	require.Len(t, got, 1203)
	require.Equal(t, []int32{0, 1, 2, 3, 4}, got[1202].Tokens)
	require.Equal(t, []float64{-0.5, -1, 0}, got[1202].Logprobs)

	rows := fixture(700)
	ours := filepath.Join(t.TempDir(), "ours.pt")
	require.NoError(t, os.WriteFile(ours, write(t, rows, slime.Options{Step: 7}), 0o600))
	out, err = exec.Command(bin, script, ours).Output()
	require.NoError(t, err)
	var loaded struct {
		Step    int `json:"rollout_id"`
		Samples []struct {
			Tokens   []int32   `json:"tokens"`
			Mask     []int32   `json:"loss_mask"`
			Logprobs []float64 `json:"rollout_log_probs"`
			Response int       `json:"response_length"`
			Status   string    `json:"status"`
			Metadata struct {
				Advantage float64 `json:"advantage"`
			} `json:"metadata"`
		} `json:"samples"`
	}
	require.NoError(t, json.Unmarshal(out, &loaded))
	require.Len(t, loaded.Samples, len(rows))
	for i, s := range loaded.Samples {
		require.Equal(t, rows[i].IDs, s.Tokens)
		require.Len(t, s.Mask, s.Response)
		require.Len(t, s.Logprobs, s.Response)
		require.Equal(t, *rows[i].Advantage, s.Metadata.Advantage)
		require.Equal(t, "truncated", s.Status)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(write(f, fixture(1), slime.Options{}))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _, _ = slime.Read(bytes.NewReader(data), int64(len(data))) })
}

// slime fails on a step with fewer rollouts than its batch size and drops those beyond a
// multiple, so the file is filled with removed samples.
func TestFillsSteps(t *testing.T) {
	for groups, want := range map[int]int{1: 5, 2: 5, 3: 10, 1001: 2005} { // 2 rollouts per group
		in := fixture(groups)
		data := write(t, in, slime.Options{Rollouts: 5})
		_, got, err := slime.Read(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		rollouts := map[int]bool{}
		for i, s := range got {
			rollouts[s.RolloutID] = true
			require.Equal(t, i, s.Index)
			require.Equal(t, i >= len(in), s.RemoveSample)
			if s.RemoveSample {
				require.Equal(t, []int32{0}, s.LossMask)
				require.Equal(t, []float64{0}, s.Logprobs)
				require.Equal(t, map[string]any{"advantage": 0.0}, s.Metadata)
			}
		}
		require.Len(t, rollouts, want)
	}
	err := slime.Write(filepath.Join(t.TempDir(), "0.pt"), fixture(1), slime.Options{Rollouts: -1})
	require.ErrorContains(t, err, "slime.Options.Rollouts")
}

// The steps in a row's metadata are written to its sample, with spans relative to the response,
// as the slime of OpenClaw-RL reads them. With ByRollout, the samples of a rollout share an
// index.
func TestSteps(t *testing.T) {
	rows := fixture(1)
	rows[1].Metadata = json.RawMessage(`{"turnpack":{"steps":[{"step":4,"from":3,"to":4,"score":1,"value":2,"advantage":0.5},{"step":7,"from":5,"to":6,"score":-1,"value":0,"advantage":-1.5}]}}`)
	for _, by := range []bool{false, true} {
		data := write(t, rows, slime.Options{ByRollout: by})
		_, got, err := slime.Read(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		require.Len(t, got, 3)
		if by {
			require.Equal(t, []int{0, 1, 1}, []int{got[0].Index, got[1].Index, got[2].Index})
		} else {
			require.Equal(t, []int{0, 1, 2}, []int{got[0].Index, got[1].Index, got[2].Index})
		}
		require.NotContains(t, got[0].Metadata, "step_wise")
		steps, ok := got[1].Metadata["step_wise"].(map[any]any)
		require.True(t, ok)
		text := fmt.Sprint(list(steps["step_indices"]), list(steps["step_scores"]), list(steps["step_scores_with_outcome"]), list(steps["step_advantages"]), steps["outcome_reward"])
		require.Equal(t, "[4 7] [1 -1] [2 0] [0.5 -1.5] 1", text)
		spans := list(steps["step_token_spans"])
		require.Equal(t, 3, rows[1].PromptLen)
		require.Equal(t, "[0 1] [2 3]", fmt.Sprint(list(spans[0]), list(spans[1])))
	}
	rows[0].Metadata = json.RawMessage(`{"turnpack":{"steps":7}}`)
	require.ErrorContains(t, slime.Write(filepath.Join(t.TempDir(), "0.pt"), rows, slime.Options{}), "steps of row")
}

func list(v any) []any {
	l, _ := v.(*[]any)
	if l == nil {
		return nil
	}
	return *l
}
