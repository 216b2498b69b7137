package pq

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/pqread"
)

var testColumns = []Column{
	{Name: "b", Kind: Bool, Stats: true},
	{Name: "n", Kind: Int32, Nullable: true, Stats: true},
	{Name: "l", Kind: Int64, Encoding: Dictionary, Stats: true},
	{Name: "t", Kind: Text, Nullable: true, Encoding: Dictionary, Stats: true},
	{Name: "ids", Kind: Int32, List: true},
	{Name: "mask", Kind: Int8, List: true, Encoding: Dictionary},
	{Name: "lp", Kind: Float32, List: true, Nullable: true, Encoding: Split},
	{Name: "adv", Kind: Float32, List: true, Nullable: true, Encoding: Dictionary},
}

// randomRows returns one random row group, to be written and read back.
func randomRows(r *rand.Rand, rows int) []Values {
	v := make([]Values, len(testColumns))
	for range rows {
		v[0].Ints = append(v[0].Ints, int32(1-r.IntN(2)))
		v[1].Nulls = append(v[1].Nulls, r.IntN(3) == 0)
		v[1].Ints = append(v[1].Ints, int32(r.IntN(100)-50))
		v[2].Longs = append(v[2].Longs, int64(r.IntN(3))<<40)
		v[3].Nulls = append(v[3].Nulls, r.IntN(2) == 0)
		v[3].Texts = append(v[3].Texts, []string{"", "a", "stop"}[r.IntN(3)])
		n := []int{0, 1, 2, 7, 8, 9, 300}[r.IntN(7)]
		for c := 4; c < 8; c++ {
			if c >= 6 && r.IntN(3) == 0 {
				v[c].Lens = append(v[c].Lens, -1)
				continue
			}
			v[c].Lens = append(v[c].Lens, int32(n))
			runs := int32(0)
			for i := range n {
				if r.IntN(5) == 0 {
					runs = int32(r.IntN(2))
				}
				switch c {
				case 4:
					v[c].Ints = append(v[c].Ints, int32(r.IntN(1<<17)))
				case 5:
					v[c].Ints = append(v[c].Ints, runs)
				case 6:
					v[c].Floats = append(v[c].Floats, -r.Float32())
				case 7:
					v[c].Floats = append(v[c].Floats, float32(runs*int32(i%2)))
				}
			}
		}
	}
	return v
}

func write(t testing.TB, groups [][]Values, rows []int, level, page int) []byte {
	var buf bytes.Buffer
	w, err := NewWriter(&buf, testColumns, level)
	require.NoError(t, err)
	w.page = page
	for i, g := range groups {
		require.NoError(t, w.WriteRowGroup(rows[i], g))
	}
	require.NoError(t, w.Close([]pqread.KV{{Key: "k", Value: "v"}, {Key: "a"}}))
	require.EqualValues(t, buf.Len(), w.Written())
	return buf.Bytes()
}

func requireChunk(t testing.TB, c Column, want *Values, got *pqread.Chunk) {
	dense := want
	if !c.List && c.Nullable {
		dense = want.dense()
	}
	if c.List {
		require.Equal(t, want.Lens, got.Lens, c.Name)
	} else if c.Nullable {
		require.Equal(t, want.Nulls, got.Nulls, c.Name)
	}
	switch c.Kind {
	case Bool, Int8, Int32:
		require.Equal(t, len(dense.Ints), len(got.Ints))
		require.True(t, len(dense.Ints) == 0 || equal(dense.Ints, got.Ints))
	case Int64:
		require.Equal(t, dense.Longs, got.Longs)
	case Float32:
		require.True(t, equal(dense.Floats, got.Floats), c.Name)
	case Text:
		require.True(t, equal(dense.Texts, got.Texts), c.Name)
	}
}

func equal[T comparable](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Many page sizes split levels, indices and values at every kind of border.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		level, page := []int{-1, 0, 9}[seed%3], []int{1, 64, 3000, 8 << 20}[seed%4]
		var groups [][]Values
		var rows []int
		for range r.IntN(4) {
			n := 1 + r.IntN(40)
			groups, rows = append(groups, randomRows(r, n)), append(rows, n)
		}
		data := write(t, groups, rows, level, page)
		f, err := pqread.Open(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err, "seed %d", seed)
		require.Len(t, f.Leaves, len(testColumns))
		require.Equal(t, len(groups), f.RowGroups())
		require.Equal(t, []pqread.KV{{Key: "k", Value: "v"}, {Key: "a"}}, f.Metadata())
		for g := range groups {
			require.Equal(t, rows[g], f.Rows(g))
			for i, c := range testColumns {
				got, err := f.Read(g, f.Leaves[i])
				require.NoError(t, err, "seed %d group %d column %s", seed, g, c.Name)
				requireChunk(t, c, &groups[g][i], got)
			}
		}
	}
}

func readAll(data []byte) error {
	f, err := pqread.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	for g := range f.RowGroups() {
		for _, l := range f.Leaves {
			if _, err := f.Read(g, l); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestStrictPrefixesFail(t *testing.T) {
	data := write(t, [][]Values{randomRows(rand.New(rand.NewPCG(1, 2)), 5)}, []int{5}, 0, 1<<20)
	require.NoError(t, readAll(data))
	for n := range data {
		require.Error(t, readAll(data[:n]), "prefix of %d of %d bytes", n, len(data))
	}
}

func FuzzOpen(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	f.Add(write(f, [][]Values{randomRows(r, 4), randomRows(r, 2)}, []int{4, 2}, -1, 1<<20))
	f.Add(write(f, nil, nil, 0, 1<<20))
	f.Add(oneChunk(f, Column{Name: "n", Kind: Int32, Nullable: true}, -1, 2, pageV2(10, 2)))
	f.Fuzz(func(_ *testing.T, data []byte) { _ = readAll(data) })
}
