package pack_test

import (
	"bufio"
	"compress/gzip"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export/internal/pack"
	"github.com/turnpack/turnpack/internal/kit"
)

func sizes(r *rand.Rand, n, most int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = 1 + r.IntN(most)
	}
	return out
}

// Every item is in exactly one bin, and no bin exceeds its capacity.
func TestInvariants(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		in := sizes(r, 1+r.IntN(300), 50)
		var all []int
		for _, bin := range pack.BestFit(in, 500) {
			size := 0
			for _, i := range bin.Items {
				size += in[i]
			}
			require.Equal(t, size, bin.Size)
			require.LessOrEqual(t, size, 500)
			all = append(all, bin.Items...)
		}
		slices.Sort(all)
		require.Len(t, all, len(in), "seed %d", seed)
		require.Len(t, slices.Compact(all), len(in), "seed %d", seed)
	}
}

// Best fit needs at most 11/9 of the bins that the sizes require, plus one.
func TestBestFitBound(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 4))
		in := sizes(r, 200, 100)
		bins := pack.BestFit(in, 100)
		sum, large := 0, 0
		for _, size := range in {
			sum += size
			if size > 50 {
				large++
			}
		}
		least := max((sum+99)/100, large)
		require.LessOrEqual(t, 9*len(bins), 11*least+9+9, "seed %d: %d bins, at least %d are needed", seed, len(bins), least)
	}
}

// lengths returns the lengths of the recorded dumps, at four bytes per token.
func lengths(t *testing.T, most int) (out []int) {
	root := kit.Dir(t, "data", "trajectories")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, ".jsonl") || d.Name() == "expected.jsonl" {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // only read
		var r io.Reader = f
		if strings.HasSuffix(path, ".gz") {
			if r, err = gzip.NewReader(f); err != nil {
				return err
			}
		}
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			if n := len(lines.Bytes()) / 4; n > 0 {
				out = append(out, min(n, most))
			}
		}
		return lines.Err()
	}))
	return out
}

// fill returns the used share of the bins' capacity, 0 without bins.
func fill(bins []pack.Bin, capacity int) float64 {
	used := 0
	for _, b := range bins {
		used += b.Size
	}
	if len(bins) == 0 {
		return 0
	}
	return float64(used) / float64(len(bins)*capacity)
}

// A batch of 2,000 rows drawn from the recorded lengths fills its bins well.
func TestFillOnRecordedLengths(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	for _, capacity := range []int{32 << 10, 64 << 10, 128 << 10} {
		recorded := lengths(t, 32<<10)
		var in []int
		for range 2000 {
			in = append(in, recorded[r.IntN(len(recorded))])
		}
		bins := pack.BestFit(in, capacity)
		t.Logf("%d recorded lengths, capacity %d: %d bins, fill %.4f", len(recorded), capacity, len(bins), fill(bins, capacity))
		require.GreaterOrEqual(t, fill(bins, capacity), 0.97)
	}
}

func TestBalance(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 5))
		bins := make([]pack.Bin, 1+r.IntN(100))
		for i := range bins {
			bins[i].Size = 1 + r.IntN(1000)
		}
		ranks := 1 + r.IntN(8)
		var all []int
		for _, of := range pack.Balance(bins, ranks) {
			all = append(all, of...)
			require.LessOrEqual(t, len(of), (len(bins)+ranks-1)/ranks)
		}
		slices.Sort(all)
		require.Len(t, slices.Compact(all), len(bins))
	}
}
