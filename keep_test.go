package turnpack

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/internal/lean"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

// cutting is a sink that fails after a number of rows.
type cutting struct {
	*shard.Set
	left int
}

func (c *cutting) Write(s rollout.Sample) error {
	if c.left--; c.left < 0 {
		return fmt.Errorf("cut")
	}
	return c.Set.Write(s)
}

// counting is a sink that counts rows.
type counting struct {
	*shard.Set
	rows int
}

func (c *counting) Write(s rollout.Sample) error { c.rows++; return c.Set.Write(s) }

// A run resumed at any row gives the same bytes and report as an uninterrupted one, and makes only
// the rows outside finished shards.
func TestRunGoesOn(t *testing.T) {
	model, err := embedded.Model()
	require.NoError(t, err)
	var src Slice
	for g := range 9 {
		for i := range 3 {
			resolved := i != 1
			r := &rollout.Rollout{ID: fmt.Sprint("r", g, "-", i), Group: fmt.Sprint("g", g), Status: rollout.StatusCompleted, Outcome: rollout.Outcome{Resolved: &resolved},
				Messages: []rollout.Message{{Role: rollout.RoleUser, Content: fmt.Sprint("question ", g)},
					{Role: rollout.RoleAssistant, Content: fmt.Sprint("answer ", i), Sampled: rollout.SampledByPolicy}}}
			if g == 4 { // masked
				r.Messages[0].Content = fmt.Sprint(make([]int, 200))
			}
			if i == 2 && g%3 == 0 {
				r.Status = rollout.StatusAborted
			}
			src = append(src, r)
		}
	}
	for i := range 8 { // interleaved groups
		src[i*3], src[i*3+2] = src[i*3+2], src[i*3]
	}
	src[1], src[9] = src[9], src[1]
	p := Pipeline{Model: model, Mask: lossmask.Policy{MaxTokens: 150}}
	options := shard.Options{GroupsPerShard: 2, Source: "this"}
	dir := t.TempDir()
	set, err := shard.Create(dir, options)
	require.NoError(t, err)
	want, err := p.Run(context.Background(), src, set)
	require.NoError(t, err)
	require.NoError(t, set.Close())
	require.NotEmpty(t, want.MaskedRows)
	require.Greater(t, len(want.WithoutRows), 1)
	for cut := range want.Rows {
		again := t.TempDir()
		set, err := shard.Create(again, options)
		require.NoError(t, err)
		_, err = p.Run(context.Background(), src, &cutting{set, cut})
		require.Error(t, err)
		require.ErrorIs(t, set.Close(), export.ErrAborted)
		require.ErrorIs(t, shard.Unfinished(filepath.Join(again, "data", "part-00000.parquet")), export.ErrUnfinished)

		set, err = shard.Create(again, options)
		require.NoError(t, err)
		earlier := set.Shards()
		sink := &counting{Set: set}
		got, err := p.Run(context.Background(), src, sink)
		require.NoError(t, err)
		require.NoError(t, set.Close())
		require.Equal(t, want, got, "cut after %d rows", cut)
		done := 0
		for _, s := range earlier {
			done += s.Rows
		}
		require.Equal(t, want.Rows-done, sink.rows)
		for _, name := range []string{"manifest.json", "data/part-00000.parquet", "data/part-00003.parquet"} {
			require.Equal(t, file(t, dir, name), file(t, again, name))
		}
	}
	other := options
	other.Source = "that"
	again := t.TempDir()
	set, err = shard.Create(again, options)
	require.NoError(t, err)
	require.NoError(t, set.Abort())
	_, err = shard.Create(again, other)
	require.ErrorIs(t, err, export.ErrOtherRun)

	set, err = shard.Create(dir, options)
	require.NoError(t, err, "the same job finds its work done")
	got, err := p.Run(context.Background(), src, set)
	require.NoError(t, err)
	require.NoError(t, set.Close())
	require.Equal(t, want, got)
	_, err = shard.Create(dir, other)
	require.ErrorIs(t, err, export.ErrComplete)
}

func file(t *testing.T, dir, name string) string {
	t.Helper()
	sum := ""
	m, err := shard.Read(dir)
	require.NoError(t, err)
	if name == shard.ManifestName {
		b, err := json.Marshal(m)
		require.NoError(t, err)
		return string(b)
	}
	for _, s := range m.Shards {
		if s.File == name {
			sum = s.SHA256
		}
	}
	require.NotEmpty(t, sum)
	require.NoError(t, shard.Verify(dir))
	return sum
}

// Every field of result that is reported must be in made: another field would be lost when a run is
// resumed.
func TestMadeHoldsTheResult(t *testing.T) {
	var fields []string
	for f := range reflect.TypeFor[result]().Fields() {
		fields = append(fields, f.Name)
	}
	require.Equal(t, []string{"made", "group", "rows", "err", "r", "earlier"}, fields,
		"anything new belongs into made")
	require.Equal(t, []string{"FirstUnknown", "FirstIncomplete", "FirstUnmarked"}, errorsIn(reflect.TypeFor[made]()), "made has them without their causes")
	var full, back made
	fill(reflect.ValueOf(&full).Elem())
	value, err := lean.Append(nil, &full)
	require.NoError(t, err)
	require.NoError(t, lean.Read(value, &back))
	require.Equal(t, full, back)
}

// errorsIn returns the names of error fields, which are not stored.
func errorsIn(t reflect.Type) (out []string) {
	for f := range t.Fields() {
		switch f.Type.Kind() {
		case reflect.Struct:
			out = append(out, errorsIn(f.Type)...)
		case reflect.Interface:
			out = append(out, f.Name)
		}
	}
	return out
}

// fill sets every field except those that made does not store.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Uint8:
		if v.CanInt() {
			v.SetInt(1)
		} else {
			v.SetUint(1)
		}
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.String:
		v.SetString("s")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(k)
		fill(e)
		v.SetMapIndex(k, e)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	}
}
