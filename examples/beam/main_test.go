package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/ptest"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize"
)

func TestMain(m *testing.M) { ptest.Main(m) }

const model = "../../tokenize/embedded"

// The job on a runner with several workers makes the bytes of one run of the library,
// from a folder and from an object store.
func TestSameBytesAsOneMachine(t *testing.T) {
	dumps := "../turnpack/demo/dumps"
	abs, err := filepath.Abs(dumps)
	require.NoError(t, err)
	for _, groups := range []int{1, 2, 64} {
		want := onOneMachine(t, settings{In: []string{dumps}, Model: model, Groups: groups})
		for _, in := range []string{dumps, "file://" + abs} {
			s := settings{In: []string{in}, Model: model, Out: filepath.Join(t.TempDir(), "out"), Groups: groups}
			ptest.RunAndValidate(t, graph(s))
			same(t, want, s.Out)
			require.NoError(t, shard.Verify(s.Out))
		}
	}
}

// A dump of records some of which lack what a column holds, cannot be read or give no
// row is written as on one machine, and the report names what was left out.
func TestRecordsThatCannotBeUsed(t *testing.T) {
	in := t.TempDir()
	lines := []string{
		`{"turnpack_version":1,"id":"a","group":"g","status":"completed","outcome":{"verdict":"resolved"},"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"yes","sampled":"sampled"}]}`,
		`{"turnpack_version":1,"id":"b","group":"g","status":"completed","outcome":{"verdict":"unresolved"},"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"no","sampled":"sampled"}]}`,
		`{"turnpack_version":1,"id":"c","group":"h","status":"completed","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"no","sampled":"sampled"}]}`,
		`{"turnpack_version":1,"id":"d","group":`,
	}
	require.NoError(t, os.WriteFile(filepath.Join(in, "d.jsonl"), []byte(strings.Join(lines, "\n")+"\n"), 0o666))
	s := settings{In: []string{in}, Model: model, Out: filepath.Join(t.TempDir(), "out"), Groups: 1}
	want := onOneMachine(t, s)
	ptest.RunAndValidate(t, graph(s))
	same(t, want, s.Out)
	r, err := readReport(context.Background(), s.Out)
	require.NoError(t, err)
	require.Equal(t, 1, r.LeftOut)
	require.Len(t, r.Errors, 1)
	require.Equal(t, 2, r.Rows)
	require.Len(t, r.Without, 1, "the rollout without an outcome has no row")
}

func TestRefusals(t *testing.T) {
	err := (&settings{}).run(context.Background(), false)
	require.ErrorContains(t, err, "-in")
	require.ErrorContains(t, err, "-model")
	require.ErrorContains(t, err, "-out")
	require.ErrorContains(t, err, "-groups-per-step")
	out := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(out, "x"), nil, 0o666))
	require.ErrorContains(t, vacant(context.Background(), out, false), "-force")
	require.NoError(t, vacant(context.Background(), out, true))
}

// onOneMachine is the folder that one run of the library writes.
func onOneMachine(t *testing.T, s settings) string {
	t.Helper()
	dir := t.TempDir()
	m, err := tokenize.Load(s.Model, tokenize.LoadOptions{})
	require.NoError(t, err)
	src, err := traj.NewSource(s.In, traj.Options{})
	require.NoError(t, err)
	o := s.shards()
	o.Export.Tokenizer, o.Export.Template = m.Tokenizer.Digest(), m.TemplateDigest()
	set, err := shard.Create(dir, o)
	require.NoError(t, err)
	_, err = turnpack.Pipeline.Run(s.pipeline(m), t.Context(), src, set)
	require.NoError(t, err)
	require.NoError(t, set.Close())
	return dir
}

// same compares two sets, files and manifest.
func same(t *testing.T, want, got string) {
	t.Helper()
	m, err := shard.Read(want)
	require.NoError(t, err)
	n, err := shard.Read(got)
	require.NoError(t, err)
	a, err := json.MarshalIndent(m, "", " ")
	require.NoError(t, err)
	b, err := json.MarshalIndent(n, "", " ")
	require.NoError(t, err)
	require.Equal(t, string(a), string(b))
	for _, s := range m.Shards {
		a, err := os.ReadFile(filepath.Join(want, s.File))
		require.NoError(t, err)
		b, err := os.ReadFile(filepath.Join(got, s.File))
		require.NoError(t, err)
		require.Equal(t, a, b, s.File)
	}
}
