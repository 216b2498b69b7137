package spool

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// sampleRow returns a row with every column set or, if bare, without the optional ones.
func sampleRow(t *testing.T, id string, n int, bare bool) rollout.Sample {
	t.Helper()
	c := rollout.Columns{Turn: make([]int32, n)}
	for i := range n {
		c.IDs, c.Source, c.Flags = append(c.IDs, int32(i+7)), append(c.Source, int32(i)-1), append(c.Flags, rollout.FlagSampled)
		if !bare {
			c.Logprob, c.Version = append(c.Logprob, -float32(i)/3), append(c.Version, 3)
		}
	}
	seq, err := c.Sequence(rollout.Identity{Rollout: id, Group: "g", FirstTurn: 0, Fidelity: rollout.FidelityCaptured}, 0)
	require.NoError(t, err)
	s := rollout.Sample{ID: id + "#0", Sequence: seq, Status: rollout.StatusTruncated, Reward: 0.1, Metadata: []byte(`{"a":1}`)}
	if !bare {
		w := make([]float32, n)
		w[n-1] = 0.25
		w[0] = float32(math.Copysign(0, -1)) // must not be merged with the zeros after it
		s.Sequence, err = s.WithWeight(w)
		require.NoError(t, err)
		zero := 0.0
		s.Advantage = &zero // zero must stay distinct from nil
	}
	return s
}

func TestSpoolKeepsRowsAndOrder(t *testing.T) {
	for _, limit := range []int64{0, 1, 2000, 1 << 30} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			dir := t.TempDir()
			s := New(dir, limit)
			want := map[int][]rollout.Sample{}
			for k := range 12 {
				g := k % 3
				row := sampleRow(t, fmt.Sprintf("r%d", k), 5+k, k%2 == 0)
				want[g] = append(want[g], row)
				require.NoError(t, s.Add(g, Row{Sample: row}))
			}
			for g := range 3 {
				var got []rollout.Sample
				require.NoError(t, s.Each(g, func(r Row) error { got = append(got, r.Sample); return nil }))
				require.Equal(t, want[g], got)
				require.NoError(t, s.Each(g, func(Row) error { t.Error("a row came twice"); return nil }))
			}
			s.Close()
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// Groups are added and read in any order, and free space is reused.
func TestGroupsComeAndGo(t *testing.T) {
	s := New(t.TempDir(), 20000)
	defer s.Close()
	row := sampleRow(t, "r", 3, true)
	next, total := map[int]int{}, 0
	for k := range 2048 {
		g := k * k % 11
		row.ID = fmt.Sprint(g, "#", next[g])
		require.NoError(t, s.Add(g, Row{Sample: row}))
		next[g]++
		if total++; k%97 != 0 && total < 511 {
			continue
		}
		for g := range next {
			got := 0
			require.NoError(t, s.Each(g, func(r Row) error {
				require.Equal(t, fmt.Sprint(g, "#", got), r.ID)
				got++
				return nil
			}))
			require.Equal(t, next[g], got)
			delete(next, g)
			if total -= got; k%3 == 0 {
				break // leave the other groups waiting
			}
		}
	}
	require.Equal(t, total > 0, len(s.waiting) > 0)
	for g := range next {
		require.NoError(t, s.Each(g, func(Row) error { return nil }))
	}
	require.Zero(t, s.inFile)
	require.Empty(t, s.last)
}

func TestSpoolSaysWhereItFails(t *testing.T) {
	s := New("/nonexistent/folder", 0)
	err := s.Add(1, Row{Sample: sampleRow(t, "r", 3, true)})
	require.ErrorIs(t, err, rollout.KindInput)
}

func appendRow(dst []byte, row *Row) []byte {
	c := coder{b: dst}
	c.row(row)
	return c.b
}

func loadRow(b []byte) (Row, error) {
	c := coder{b: b, reads: true}
	return c.read()
}

func TestStoredRowIsReadBackOrRefused(t *testing.T) {
	row := sampleRow(t, "r", 9, false)
	row.Reward = math.Copysign(0, -1)
	whole := appendRow(nil, &Row{Sample: row})
	got, err := loadRow(whole)
	require.NoError(t, err)
	require.Equal(t, Row{Sample: row}, got)
	require.True(t, math.Signbit(float64(got.Weight[0])))
	require.True(t, math.Signbit(got.Reward))
	for n := range whole {
		_, err := loadRow(whole[:n])
		require.Error(t, err, "the first %d of %d bytes", n, len(whole))
	}
	_, err = loadRow(append(whole, 0))
	require.ErrorIs(t, err, errStored, "bytes are left over")
	for n := range whole { // damage at any byte must not cause a panic
		damaged := bytes.Clone(whole)
		damaged[n] ^= 0xff
		_, _ = loadRow(damaged)
	}
}

// fill sets every field except the columns to a distinct value.
func fill(v reflect.Value, next *int) {
	for i := range v.NumField() {
		*next++
		switch f := v.Field(i); f.Kind() {
		case reflect.Struct:
			fill(f, next)
		case reflect.String:
			f.SetString(fmt.Sprint("text ", *next))
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(*next) << 40)
		case reflect.Uint8:
			f.SetUint(uint64(*next))
		case reflect.Float32, reflect.Float64:
			f.SetFloat(float64(*next) / 8)
		case reflect.Pointer:
			x := float64(*next) / 8
			f.Set(reflect.ValueOf(&x))
		}
	}
}

func TestStoredRowHasEveryField(t *testing.T) {
	var row Row
	n := 0
	fill(reflect.ValueOf(&row.Sample).Elem(), &n)
	row.Metadata = []byte(`{"é": "漢字"}`)
	row.IDs, row.Flags, row.Source, row.Turn = []int32{-1}, []rollout.Flag{1}, []int32{-1}, []int32{0}
	got, err := loadRow(appendRow(nil, &row))
	require.NoError(t, err)
	require.Equal(t, row, got)
}

// With run-length encoding, the other columns take no more than the ids.
func TestStoredRowIsSmall(t *testing.T) {
	const n = 10_000
	row := sampleRow(t, "r", n, true)
	for i := range row.Source {
		row.Source[i] = int32(i / 500)
	}
	b := appendRow(nil, &Row{Sample: row})
	require.Less(t, len(b), 7*n+1000) // four of these bytes are log probabilities
}

func TestSpoolSaysThatItsFileIsGone(t *testing.T) {
	s := New(t.TempDir(), 0)
	require.NoError(t, s.Add(1, Row{Sample: sampleRow(t, "r", 300_000, true)}))
	require.NoError(t, s.file.Truncate(10))
	err := s.Each(1, func(Row) error { t.Error("a damaged row was given"); return nil })
	require.ErrorIs(t, err, rollout.KindInput)
	s.Close()
}
