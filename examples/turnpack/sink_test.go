package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/internal/anyrows"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize"
)

// Segments are padded with the tokenizer's eos_token, whatever other stop tokens there
// are: the trainer accepts no other id as padding.
func TestPacksArePaddedWithTheTokenizersEOS(t *testing.T) {
	kit.Long(t)
	dir := modelDir(t, func(dir string) {
		m, err := tokenize.Load(dir, tokenize.LoadOptions{})
		require.NoError(t, err)
		eos, ok := m.EOS()
		require.True(t, ok)
		ids, err := json.Marshal(map[string][]int32{"eos_token_id": {eos, eos - 1}})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "generation_config.json"), ids, 0o644))
	})
	m, err := tokenize.Load(dir, tokenize.LoadOptions{})
	require.NoError(t, err)
	require.Len(t, m.Stops(), 2)
	eos, _ := m.EOS()
	out := t.TempDir()
	code, _, stderr := call(t, "convert", "--model", dir, "--in", goodDump(t), "--out", out, "--target", "megatron", "--seq-len", "512", "--pad-multiple", "16", "--estimator", "none")
	require.Zero(t, code, stderr)
	r, err := anyrows.Open(filepath.Join(out, "train-00000.idx.parquet"))
	require.NoError(t, err)
	defer r.Close() //nolint:errcheck // read only
	pads := 0
	for {
		row, err := r.Read()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		last := len(row.IDs) - 1
		for last > 0 && row.Mask[last] == 0 {
			require.Equal(t, eos, row.IDs[last])
			last, pads = last-1, pads+1
		}
	}
	require.Positive(t, pads)
}

func TestPaddingNeedsAnEOS(t *testing.T) {
	dir := modelDir(t, func(dir string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), []byte("{}"), 0o644))
	})
	code, _, stderr := call(t, "convert", "--model", dir, "--in", goodDump(t), "--out", t.TempDir(), "--target", "megatron", "--seq-len", "512", "--pad-multiple", "16", "--estimator", "none")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "eos_token")
}

// --policy-version reaches the rows of every target that has the column.
func TestPolicyVersionOfRowsWithoutOne(t *testing.T) {
	kit.Long(t)
	for _, flags := range [][]string{{}, {"--weights", "sequence-mean"}, {"--weights", "rollout-mean"}, {"--target", "slime"}, {"--groups-per-step", "1"}} {
		out := t.TempDir()
		code, _, stderr := call(t, append([]string{"convert", "--model", modelDir(t, nil), "--in", goodDump(t), "--out", out, "--policy-version", "5"}, flags...)...)
		require.Zero(t, code, stderr)
		files, err := filepath.Glob(filepath.Join(out, "*.parquet"))
		require.NoError(t, err)
		steps, err := filepath.Glob(filepath.Join(out, shard.DataFolder, "*.parquet"))
		require.NoError(t, err)
		files = append(files, steps...)
		require.Len(t, files, 1)
		rows, _, err := export.ReadAll(files[0])
		require.NoError(t, err)
		for _, r := range rows {
			for i, w := range r.Weight {
				want := int32(-1)
				if w > 0 {
					want = 5
				}
				require.Equal(t, want, r.Version[i], flags)
			}
		}
	}
}

// A status set by --unknown-status acts like a recorded one: for masks, rewards and the
// trainer's format.
func TestUnknownStatusIsMappedLikeARecordedOne(t *testing.T) {
	kit.Long(t)
	in := driftingDump(t) // rollout b has two rows
	out := t.TempDir()
	code, stdout, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", in, "--out", out, "--target", "slime", "--unknown-status", "truncated")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "2 unknown", "the summary says what was recorded")
	rows, _, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
	require.NoError(t, err)
	var got []string
	for _, r := range rows {
		got = append(got, r.ID+" "+r.Status.String())
	}
	require.Equal(t, []string{"a#0 truncated", "b#0 completed", "b#1 truncated"}, got, "slime knows a cut rollout by its last row")

	for _, status := range []string{"aborted", "failed"} {
		code, _, stderr = call(t, "convert", "--model", modelDir(t, nil), "--in", in, "--out", t.TempDir(), "--unknown-status", status)
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "no reward to train on: 2 "+map[string]string{"aborted": "aborted", "failed": "infrastructure failure"}[status])
		require.Contains(t, stderr, "--estimator none")
	}
	scalar := dump(t, `{"conversations": [{"from": "gpt", "value": "a"}], "reward": 0.5}`)
	_, _, stderr = call(t, "convert", "--model", modelDir(t, nil), "--in", scalar, "--out", t.TempDir(), "--scale", "signed")
	require.Contains(t, stderr, "--scale auto")
	code, _, stderr = call(t, "convert", "--model", modelDir(t, nil), "--in", in, "--out", t.TempDir(), "--unknown-status", "aborted", "--estimator", "none")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "2 masked: aborted")
}

// Steps never exceed --rollouts-per-step, are filled up in .pt files, and the summary
// reports their sizes.
func TestRolloutsPerStep(t *testing.T) {
	kit.Long(t)
	model, in := modelDir(t, nil), filepath.Join("demo", "dumps")
	convert := func(flags ...string) (out, stdout, stderr string) {
		out = t.TempDir()
		_, stdout, stderr = call(t, append([]string{"convert", "--model", model, "--in", in, "--out", out, "--target", "slime"}, flags...)...)
		return out, stdout, stderr
	}
	out, stdout, stderr := convert("--rollouts-per-step", "5", "--json")
	require.Empty(t, stderr)
	var told struct {
		Per struct{ Steps, Min, Max int } `json:"rollouts_per_step"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &told))
	m, err := shard.Read(out)
	require.NoError(t, err)
	require.Len(t, m.Shards, told.Per.Steps)
	least, most, all := m.Shards[0].Rollouts, 0, 0
	for _, sh := range m.Shards {
		least, most, all = min(least, sh.Rollouts), max(most, sh.Rollouts), all+sh.Rollouts
	}
	require.Equal(t, []int{least, most}, []int{told.Per.Min, told.Per.Max})
	require.LessOrEqual(t, most, 5)
	require.Equal(t, m.Rollouts, all)
	_, stdout, _ = convert("--rollouts-per-step", "5")
	require.Contains(t, stdout, fmt.Sprintf("min %d, max %d over %d steps", least, most, len(m.Shards)))

	pt, _, stderr := convert("--rollouts-per-step", "5", "--pt")
	require.Empty(t, stderr)
	for i, sh := range m.Shards {
		ids, filled := map[int]bool{}, 0
		for _, s := range slimeSamples(t, filepath.Join(pt, fmt.Sprintf("%d.pt", i))) {
			ids[s.RolloutID] = true
			if s.RemoveSample {
				filled++
			}
		}
		require.Len(t, ids, 5)
		require.Equal(t, 5-sh.Rollouts, filled)
	}
	_, stdout, _ = convert("--rollouts-per-step", "5", "--pt")
	require.NotContains(t, stdout, "beyond a multiple")
	_, stdout, _ = convert("--pt")
	require.Contains(t, stdout, "drops those beyond a multiple: --rollouts-per-step N")
	_, _, stderr = convert("--rollouts-per-step", "1")
	require.Contains(t, stderr, "raise it, and the trainer's batch size")
	_, _, stderr = convert("--rollouts-per-step", "4", "--groups-per-step", "1")
	require.Contains(t, stderr, "choose one of them")
}

// --temperature applies to rows whose dump records none; a negative value is refused.
func TestTemperatureOfRowsWithoutOne(t *testing.T) {
	for given, want := range map[string]float32{"0.7": 0.7, "0": 1} {
		out := t.TempDir()
		code, _, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", goodDump(t), "--out", out, "--temperature", given)
		require.Zero(t, code, stderr)
		rows, _, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
		require.NoError(t, err)
		for _, r := range rows {
			require.Equal(t, want, r.Temperature)
		}
	}
	code, _, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", goodDump(t), "--out", t.TempDir(), "--temperature=-1")
	require.NotZero(t, code)
	require.Contains(t, stderr, "emperature")
}
