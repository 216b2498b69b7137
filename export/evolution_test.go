package export

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export/internal/pq"
	"github.com/turnpack/turnpack/internal/pqread"
	"github.com/turnpack/turnpack/rollout"
)

// A file of an older minor version, which lacks every nullable column and has an unknown one,
// is read with nulls. A file of another schema version is refused.
func TestOlderFilesRead(t *testing.T) {
	s := rollout.Sample{Status: rollout.StatusCompleted, PromptLen: 1, IsLast: true, RolloutMaskSum: 1}
	s.Group, s.Rollout, s.IDs, s.Weight = "g", "r", []int32{4, 5}, []float32{0, 1}
	s.ID = rollout.SampleID("r", 0)
	write := func(version string) []byte {
		var b buffer
		b.add(&s, tokensOf(&s), Columns{}, s.Status)
		var cols []pq.Column
		var values []pq.Values
		for i, c := range columns() {
			if !c.Nullable {
				cols, values = append(cols, c.Column), append(values, b.cols[i])
			}
		}
		cols = append(cols, pq.Column{Name: "later", Kind: pq.Int32})
		values = append(values, pq.Values{Ints: []int32{1}})
		var out bytes.Buffer
		w, err := pq.NewWriter(&out, cols, 0)
		require.NoError(t, err)
		require.NoError(t, w.WriteRowGroup(1, values))
		require.NoError(t, w.Close([]pqread.KV{{Key: metaSchemaVersion, Value: version}}))
		return out.Bytes()
	}
	data := write("1")
	r, err := NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	got, err := r.Read()
	require.NoError(t, err)
	require.Equal(t, s.IDs, got.IDs)
	require.Equal(t, s.Weight, got.Weight)
	require.Nil(t, got.Logprob)
	require.Nil(t, got.Advantage)
	require.Nil(t, got.Metadata)

	data = write("2")
	_, err = NewReader(bytes.NewReader(data), int64(len(data)))
	require.ErrorIs(t, err, rollout.KindFormat)
	require.ErrorContains(t, err, `"2"`)
}
