package megatron_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/megatron"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/internal/pqread"
	"github.com/turnpack/turnpack/rollout"
)

func row(id string, ids []int32, mask ...float32) rollout.Sample {
	s := rollout.Sample{}
	s.Rollout, s.Group, s.IDs, s.Weight = id, "g", ids, mask
	return s
}

// The worked examples from the trainer's documentation: six tokens, of which 13 and the stop
// token 2 are trained.
func TestSegment(t *testing.T) {
	s := row("r", []int32{10, 11, 12, 13, 14, 2}, 0, 0, 0, 1, 0, 1)
	o := megatron.Options{PackSize: 16, EOS: 2}
	ids, mask, err := megatron.Segment(&o, &s)
	require.NoError(t, err)
	require.Equal(t, []int32{10, 11, 12, 13, 14, 2}, ids)
	require.Equal(t, []int32{0, 0, 1, 0, 1, 0}, mask)
	o.PadMultiple = 4
	ids, mask, err = megatron.Segment(&o, &s)
	require.NoError(t, err)
	require.Equal(t, []int32{10, 11, 12, 13, 14, 2, 2, 2, 2}, ids)
	require.Equal(t, []int32{0, 0, 1, 0, 1, 0, 0, 0, 0}, mask)
}

func TestSegmentRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		o      megatron.Options
		s      rollout.Sample
		column string
	}{
		{"one token", megatron.Options{}, row("r", []int32{1}, 0), col.InputIDs},
		{"first token trained", megatron.Options{}, row("r", []int32{1, 3}, 1, 1), col.LossMask},
		{"weight of one half", megatron.Options{}, row("r", []int32{1, 3}, 0, 0.5), col.Weights},
		{"too long", megatron.Options{}, row("r", make([]int32, 18), make([]float32, 18)...), col.InputIDs},
		{"too long once padded", megatron.Options{PadMultiple: 12}, row("r", make([]int32, 15), make([]float32, 15)...), col.InputIDs},
		{"ends eos eos, last trained", megatron.Options{PadMultiple: 2}, row("r", []int32{1, 3, 2, 2}, 0, 1, 1, 1), col.LossMask},
		{"ends eos x, x trained", megatron.Options{PadMultiple: 2}, row("r", []int32{1, 3, 2, 7}, 0, 1, 1, 1), col.LossMask},
		{"ends eos eos, without padding", megatron.Options{}, row("r", []int32{1, 3, 2, 2}, 0, 1, 1, 1), ""},
		{"eos inside the row", megatron.Options{PadMultiple: 2}, row("r", []int32{1, 2, 2, 7, 2}, 0, 1, 1, 1, 1), ""},
		{"exactly full", megatron.Options{}, row("r", make([]int32, 17), make([]float32, 17)...), ""},
	} {
		c.o.PackSize, c.o.EOS = 16, 2
		_, _, err := megatron.Segment(&c.o, &c.s)
		if c.column == "" {
			require.NoError(t, err, c.name)
			continue
		}
		var refused *export.RefusedError
		require.ErrorAs(t, err, &refused, c.name)
		require.Equal(t, c.column, refused.Column, c.name)
	}
}

// Every label of every pack is the following token, trained exactly where the export row trains
// it.
func TestPacks(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		var rows []rollout.Sample
		for i := range 1 + r.IntN(60) {
			n := 2 + r.IntN(90)
			s := row(fmt.Sprintf("r%d", i), nil)
			for t := range n {
				s.IDs = append(s.IDs, int32(3+r.IntN(1000)))
				w := float32(0)
				if t > 0 && (r.IntN(3) == 0 || t == n-1) {
					w = 1
				}
				s.Weight = append(s.Weight, w)
			}
			rows = append(rows, s)
		}
		o := megatron.Options{PackSize: 192, EOS: 2, PadMultiple: []int{0, 4, 24}[seed%3]}
		if o.PadMultiple == 24 {
			o.PackSize = 48 * 4
		}
		dir := t.TempDir()
		path, meta := filepath.Join(dir, "train.idx.parquet"), filepath.Join(dir, "meta.json")
		require.NoError(t, megatron.Write(path, meta, rows, o))
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		f, err := pqread.Open(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		byID := map[string]rollout.Sample{}
		for _, s := range rows {
			byID[s.Rollout+"#0"] = s
		}
		trained := 0
		most, least, longest := 0, o.PackSize, 0
		for g := range f.RowGroups() {
			read := func(i int) *pqread.Chunk {
				c, err := f.Read(g, f.Leaves[i])
				require.NoError(t, err)
				return c
			}
			ids, mask, starts, names := read(0), read(1), read(2), read(3)
			at, seg := 0, 0
			for p := range f.Rows(g) {
				n, k := int(ids.Lens[p]), int(starts.Lens[p])
				require.Equal(t, ids.Lens[p], mask.Lens[p])
				require.LessOrEqual(t, n-k, o.PackSize)
				most, least = max(most, k), min(least, n-k)
				for j := range k {
					from, to := int(starts.Ints[seg+j]), n
					if j+1 < k {
						to = int(starts.Ints[seg+j+1])
					}
					longest = max(longest, to-from-1)
					s := byID[names.Texts[seg+j]]
					delete(byID, names.Texts[seg+j])
					require.Zero(t, (to-from-1)%max(1, o.PadMultiple))
					for q := from; q < to; q++ {
						tok, m := ids.Ints[at+q], mask.Ints[at+q]
						own := q - from
						if own < s.Len() {
							require.Equal(t, s.IDs[own], tok)
						} else {
							require.Equal(t, int32(2), tok)
						}
						want := int32(0)
						if own+1 < s.Len() {
							want = int32(s.Weight[own+1])
						}
						require.Equal(t, want, m)
						trained += int(m)
					}
				}
				at, seg = at+n, seg+k
			}
		}
		require.Empty(t, byID, "every row is in one pack")
		want := 0
		for _, s := range rows {
			want += s.Trained()
		}
		require.Equal(t, want, trained)
		text, err := os.ReadFile(meta)
		require.NoError(t, err)
		require.JSONEq(t, fmt.Sprintf(`[{"max_samples_per_bin":%d,"dataset_max_seqlen":%d,"min_packed_seqlen":%d}]`, most, longest, least), string(text))
	}
}

func TestOptions(t *testing.T) {
	o := megatron.Options{PackSize: 40, PadMultiple: 24, EOS: -1}
	for _, want := range []string{"PackSize", "EOS"} {
		require.ErrorContains(t, o.Validate(), want)
	}
	o = megatron.Options{PackSize: 24, PadMultiple: 24}
	require.ErrorContains(t, o.Validate(), "lcm")
	err := megatron.Write("x.parquet", "", []rollout.Sample{row("r", []int32{1, 2}, 0, 1)}, megatron.Options{PackSize: 16})
	require.ErrorContains(t, err, ".idx.parquet")
	err = megatron.Write("x.idx.parquet", "", nil, megatron.Options{PackSize: 16})
	require.ErrorContains(t, err, "no rows")
}
