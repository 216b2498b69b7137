package primerl_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/primerl"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/rollout"
)

func rows(seed uint64, n int) []rollout.Sample {
	r := rand.New(rand.NewPCG(seed, 8))
	var out []rollout.Sample
	for g := range n {
		adv := r.Float64() - 0.5
		s := rollout.Sample{Advantage: &adv, Temperature: 0.5, Status: rollout.StatusCompleted}
		s.Identity = rollout.Identity{Group: fmt.Sprintf("g%d", g), Rollout: fmt.Sprintf("g%d/0", g)}
		for t := range 4 + r.IntN(60) {
			w := float32(0)
			if t > 1 && r.IntN(2) == 0 {
				w = 1
			}
			s.IDs, s.Weight = append(s.IDs, int32(2+r.IntN(99))), append(s.Weight, w)
			s.Logprob, s.Credit = append(s.Logprob, -w*r.Float32()), append(s.Credit, w*float32(adv))
		}
		s.Weight[s.Len()-1] = 1
		out = append(out, rollout.FinishRows([]rollout.Sample{s})...)
	}
	return out
}

func TestStep(t *testing.T) {
	for seed := range uint64(12) {
		in := rows(seed, 1+int(seed)*3)
		weighted := seed%2 == 1
		if weighted {
			for i := range in {
				w := append([]float32{}, in[i].Weight...)
				for t := range w {
					w[t] *= 0.25
				}
				in[i].Weight = w
			}
		}
		dir := t.TempDir()
		o := primerl.Options{SeqLen: 128, Ranks: 1 + int(seed%4), PadMultiple: []int{0, 8}[seed%2]}
		require.NoError(t, primerl.WriteStep(dir, 3, in, o))
		files, err := filepath.Glob(filepath.Join(dir, "rollouts", "step_3", "rank_*.bin"))
		require.NoError(t, err)
		require.Len(t, files, o.Ranks)
		var all []primerl.MicroBatch
		count := -1
		for _, path := range files {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			got, err := primerl.Read(bytes.NewReader(data))
			require.NoError(t, err)
			if count < 0 {
				count = len(got)
			}
			require.Len(t, got, count, "ranks have equal numbers of micro-batches")
			all = append(all, got...)
			for n := 0; n < len(data); n += 1 + n/64 {
				_, err := primerl.Read(bytes.NewReader(data[:n]))
				require.ErrorIs(t, err, rollout.KindFormat, "prefix of %d bytes", n)
			}
		}
		compare(t, in, all, &o, weighted)
		if bin := os.Getenv("TURNPACK_PYTHON"); bin != "" && seed < 4 {
			script := filepath.Join("..", "..", "internal", "oracle", "read_primerl.py")
			out, err := exec.Command(bin, append([]string{script}, files...)...).Output()
			require.NoError(t, err)
			var decoded [][][]json.RawMessage
			require.NoError(t, json.Unmarshal(out, &decoded))
			var ids []int32
			require.NoError(t, json.Unmarshal(decoded[0][0][0], &ids))
			require.Equal(t, all[0].InputIDs, ids)

			copied := filepath.Join(t.TempDir(), "copy")
			require.NoError(t, exec.Command(bin, script, "--copy", files[0], copied).Run())
			data, err := os.ReadFile(copied)
			require.NoError(t, err)
			got, err := primerl.Read(bytes.NewReader(data))
			require.NoError(t, err)
			require.Equal(t, all[:len(got)], got, "prime-rl's own files hold floats of 64 bits")
		}
	}
}

// compare checks that every row is in one micro-batch, and that padding and fillers are
// untrained.
func compare(t *testing.T, in []rollout.Sample, all []primerl.MicroBatch, o *primerl.Options, weighted bool) {
	t.Helper()
	left := map[string]rollout.Sample{}
	for _, s := range in {
		left[fmt.Sprint(s.IDs)] = s
	}
	empty := 0
	for _, b := range all {
		n := len(b.InputIDs)
		require.LessOrEqual(t, n, o.SeqLen)
		for _, l := range []int{len(b.LossMask), len(b.Advantages), len(b.InferenceLogprobs), len(b.PositionIDs), len(b.Temperatures), len(b.EnvNames)} {
			require.Equal(t, n, l)
		}
		require.Zero(t, n%max(1, o.PadMultiple))
		require.Equal(t, b.SequenceLengths, b.SeqLens)
		trained := false
		for _, m := range b.LossMask {
			trained = trained || m
		}
		if !trained {
			empty++
			require.Nil(t, b.RLWeights)
			continue
		}
		at := 0
		for k, l := range b.SequenceLengths {
			size := int(l)
			if k == len(b.SequenceLengths)-1 { // the last length includes the padding
				for size > 1 && b.EnvNames[at+size-1] == "" {
					size--
					require.Equal(t, int32(1), b.InputIDs[at+size])
					require.False(t, b.LossMask[at+size])
					require.Equal(t, float32(1), b.Temperatures[at+size])
				}
			}
			s, ok := left[fmt.Sprint(b.InputIDs[at:at+size])]
			require.True(t, ok)
			delete(left, fmt.Sprint(s.IDs))
			require.False(t, b.LossMask[at])
			for p := range size {
				require.Equal(t, int32(p), b.PositionIDs[at+p])
				require.Equal(t, s.Weight[p] > 0, b.LossMask[at+p])
				require.Equal(t, s.Credit[p], b.Advantages[at+p])
				require.Equal(t, s.Logprob[p], b.InferenceLogprobs[at+p])
				require.Equal(t, s.Temperature, b.Temperatures[at+p])
				if weighted {
					require.Equal(t, s.Weight[p], b.RLWeights[at+p])
				}
			}
			at += int(l)
		}
		require.Equal(t, n, at)
		require.Equal(t, weighted, b.RLWeights != nil)
	}
	require.Empty(t, left)
	batches := len(all) - empty
	require.Equal(t, (batches+o.Ranks-1)/o.Ranks*o.Ranks, len(all), "fillers bring all ranks to the number of the fullest")
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		column string
		change func(*rollout.Sample)
	}{
		{col.Logprobs, func(s *rollout.Sample) { s.Logprob = nil }},
		{col.Advantages, func(s *rollout.Sample) { s.Credit = nil }},
		{col.Temperature, func(s *rollout.Sample) { s.Temperature = 0 }},
		{col.InputIDs, func(s *rollout.Sample) {
			s.IDs, s.Weight = append(make([]int32, 200), s.IDs...), append(make([]float32, 200), s.Weight...)
			s.Logprob, s.Credit = append(make([]float32, 200), s.Logprob...), append(make([]float32, 200), s.Credit...)
		}},
	} {
		in := rows(1, 2)
		c.change(&in[1])
		dir := t.TempDir()
		err := primerl.WriteStep(dir, 1, in, primerl.Options{SeqLen: 128})
		var refused *export.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, c.column, refused.Column)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
	o := primerl.Options{SeqLen: 0, Ranks: -1, PadMultiple: -1}
	for _, want := range []string{"SeqLen", "Ranks", "PadMultiple"} {
		require.ErrorContains(t, o.Validate(), want)
	}
	err := primerl.WriteStep(t.TempDir(), 0, rows(1, 1), primerl.Options{SeqLen: 128})
	require.ErrorContains(t, err, "from 1")
}

// Lengths in a file allocate no memory before the data is there, and nesting uses no stack.
func TestReadBombs(t *testing.T) {
	empty := strings.Repeat("\x90", 9) + "\xc0"
	for want, data := range map[string]string{
		"micro-batch 0: field 0":    "\x91\xdc\x00\x10\xdd\xff\xff\xff\xff\x01",
		"micro-batch 0: field 7":    "\x91\xdc\x00\x10" + strings.Repeat("\x90", 7) + "\x91\xdb\xff\xff\xff\xff",
		"micro-batch 0: field 10":   "\x91\xdc\x00\x10" + empty + strings.Repeat("\x91", 8<<20),
		"micro-batch 0: field 11":   "\x91\xdc\x00\x10" + empty + "\xc0\xdf\xff\xff\xff\xff",
		"field 0: 4294967296 is no": "\x91\xdc\x00\x10\x91\xcf\x00\x00\x00\x01\x00\x00\x00\x00",
		"15 fields, expected 16":    "\x91\x9f",
		"micro-batch 1: 0 fields":   "\x92\xdc\x00\x10" + empty + "\x82\xa1a\x91\xc0\xa1b\xc4\x02xx\xc0\xc0\xc0\xc0\xc0\x90",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := primerl.Read(strings.NewReader(data))
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, want)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), want)
	}
}

func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	require.NoError(f, primerl.WriteStep(dir, 1, rows(1, 2), primerl.Options{SeqLen: 128}))
	data, err := os.ReadFile(filepath.Join(dir, "rollouts", "step_1", "rank_0.bin"))
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = primerl.Read(bytes.NewReader(data)) })
}
