package pack_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export/pack"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
)

func items(r *rand.Rand, n, most int) []pack.Item {
	out := make([]pack.Item, n)
	for i := range out {
		out[i] = pack.Item{Size: 1 + r.IntN(most), Rollout: fmt.Sprint(i / 3), Group: fmt.Sprint(i / 9)}
	}
	return out
}

// Every item is in one bin, no bin is over its capacity, and what is kept
// together is together.
func TestInvariants(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		in := items(r, 1+r.IntN(300), 50)
		for _, keep := range []pack.Keep{pack.KeepNone, pack.KeepRollouts, pack.KeepGroups} {
			o := pack.Options{Capacity: 500, Keep: keep}
			bins, err := pack.BestFit(in, o)
			require.NoError(t, err)
			home, all := make([]int, len(in)), []int(nil)
			for b, bin := range bins {
				size := 0
				for _, i := range bin.Items {
					size += in[i].Size
					home[i] = b
				}
				require.Equal(t, size, bin.Size)
				require.LessOrEqual(t, size, o.Capacity)
				all = append(all, bin.Items...)
			}
			slices.Sort(all)
			require.Len(t, all, len(in), "seed %d", seed)
			require.Len(t, slices.Compact(all), len(in), "seed %d", seed)
			for i := range in {
				if keep == pack.KeepRollouts {
					require.Equal(t, home[i/3*3], home[i])
				}
				if keep == pack.KeepGroups {
					require.Equal(t, home[i/9*9], home[i])
				}
			}
		}
	}
}

// Best fit never needs more than 11/9 of the bins that the sizes force, plus
// one.
func TestBestFitBound(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 4))
		in := items(r, 200, 100)
		bins, err := pack.BestFit(in, pack.Options{Capacity: 100})
		require.NoError(t, err)
		sum, large := 0, 0
		for _, it := range in {
			sum += it.Size
			if it.Size > 50 {
				large++
			}
		}
		least := max((sum+99)/100, large)
		require.LessOrEqual(t, 9*len(bins), 11*least+9+9, "seed %d: %d bins, at least %d are needed", seed, len(bins), least)
	}
}

// lengths are those of the recorded dumps, four bytes a token.
func lengths(t *testing.T, most int) (out []pack.Item) {
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
				out = append(out, pack.Item{Size: min(n, most), Rollout: fmt.Sprint(len(out))})
			}
		}
		return lines.Err()
	}))
	return out
}

// A batch of 2,000 rows drawn from the recorded lengths fills its bins.
func TestFillOnRecordedLengths(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	for _, capacity := range []int{32 << 10, 64 << 10, 128 << 10} {
		recorded := lengths(t, 32<<10)
		var in []pack.Item
		for range 2000 {
			in = append(in, recorded[r.IntN(len(recorded))])
		}
		bins, err := pack.BestFit(in, pack.Options{Capacity: capacity})
		require.NoError(t, err)
		t.Logf("%d recorded lengths, capacity %d: %d bins, fill %.4f", len(recorded), capacity, len(bins), pack.Fill(bins, capacity))
		require.GreaterOrEqual(t, pack.Fill(bins, capacity), 0.97)
	}
}

func TestBalance(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 5))
		costs := make([]int64, 1+r.IntN(100))
		for i := range costs {
			costs[i] = int64(1 + r.IntN(1000))
		}
		for _, equal := range []bool{false, true} {
			ranks := 1 + r.IntN(8)
			got, err := pack.Balance(costs, ranks, equal)
			require.NoError(t, err)
			var all []int
			var loads []int64
			for _, of := range got {
				all = append(all, of...)
				var sum int64
				for _, i := range of {
					sum += costs[i]
				}
				loads = append(loads, sum)
				if equal {
					require.LessOrEqual(t, len(of), (len(costs)+ranks-1)/ranks)
				}
			}
			slices.Sort(all)
			require.Len(t, slices.Compact(all), len(costs))
			if !equal {
				require.LessOrEqual(t, slices.Max(loads)-slices.Min(loads), slices.Max(costs), "seed %d", seed)
			}
		}
	}
}

func TestFaults(t *testing.T) {
	_, err := pack.BestFit([]pack.Item{{Size: 5, Rollout: "r"}}, pack.Options{Capacity: 4})
	require.ErrorIs(t, err, rollout.KindInput)
	require.ErrorContains(t, err, `"r"`)
	_, err = pack.BestFit([]pack.Item{{Size: 3, Group: "g"}, {Size: 3, Group: "g"}}, pack.Options{Capacity: 4, Keep: pack.KeepGroups})
	require.ErrorContains(t, err, "keep less together")
	_, err = pack.BestFit([]pack.Item{{}}, pack.Options{Capacity: 4})
	require.ErrorContains(t, err, "size 0")
	_, err = pack.BestFit(nil, pack.Options{})
	require.ErrorContains(t, err, "Capacity")
	_, err = pack.Balance(nil, 0, false)
	require.ErrorContains(t, err, "ranks")
}
