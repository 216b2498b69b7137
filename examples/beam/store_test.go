package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/ptest"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export/blobstore"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// bucket is an S3 server in this process; place is the URL of a folder of its bucket.
func bucket(t *testing.T) (place func(folder string) string) {
	t.Helper()
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("runs"))
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "key")
	return func(folder string) string {
		return "s3://runs/" + folder + "?region=here&use_path_style=true&endpoint=" + server.URL
	}
}

// upload stores the files of dir.
func upload(t *testing.T, place, dir string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		return put(t.Context(), place, filepath.ToSlash(name), file)
	}))
}

// journal is the folder of a live journal, of two groups of two, one of which still runs.
func journal(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	j, err := live.OpenJournal(dir, live.JournalOptions{})
	require.NoError(t, err)
	defer j.Close()
	recorder, err := live.New(live.Options{Journal: j})
	require.NoError(t, err)
	for i := range 4 {
		s, err := recorder.Begin(t.Context(), live.Start{ID: fmt.Sprintf("live-%d", i), Group: fmt.Sprintf("task-%d", i/2)})
		require.NoError(t, err)
		prompt := []rollout.TokenID{1, 2, 3}
		for range 2 {
			call, err := s.Begin(t.Context(), live.Request{Prompt: prompt, Dialect: "chat"})
			require.NoError(t, err)
			sampled := []rollout.TokenID{10, rollout.TokenID(11 + i), 12}
			require.NoError(t, call.Append(sampled, []float32{-0.5, -0.25, -0.125}, nil))
			require.NoError(t, call.End(t.Context(), live.Reply{FinishReason: "stop", Usage: live.Usage{PromptTokens: len(prompt), CompletionTokens: len(sampled)}}))
			prompt = append(append(prompt, sampled...), 20)
		}
		if i < 3 {
			reward := float64(i % 2)
			_, err = s.End(t.Context(), live.Ending{Outcome: rollout.Outcome{Reward: &reward}})
			require.NoError(t, err)
		}
	}
	return dir
}

// Dumps and live journals are read from an object store that speaks S3, and the set is
// written to it: the files that one machine writes, and no others.
func TestObjectStore(t *testing.T) {
	dumps, record := "../turnpack/demo/dumps", journal(t)
	place := bucket(t)
	upload(t, place("dumps"), dumps)
	upload(t, place("journal"), record)
	s := settings{In: []string{place("dumps"), place("journal")}, Model: model, Out: place("sets/1"), Groups: 2}
	require.NoError(t, vacant(t.Context(), s.Out, false))
	ptest.RunAndValidate(t, graph(s))
	want := onOneMachine(t, settings{In: []string{dumps, record}, Model: model, Groups: 2})

	got := t.TempDir()
	require.NoError(t, download(t.Context(), s.Out, got))
	same(t, want, got)
	require.NoError(t, shard.Verify(got))
	r, err := readReport(t.Context(), s.Out)
	require.NoError(t, err)
	require.Zero(t, r.LeftOut, r.Errors)
	m, err := shard.Read(got)
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(got, shard.DataFolder, "*"))
	require.NoError(t, err)
	require.Len(t, files, len(m.Shards))

	require.ErrorContains(t, vacant(t.Context(), s.Out, false), "-force")
	require.NoError(t, vacant(t.Context(), s.Out, true))
	_, err = shard.Read(got)
	require.NoError(t, err)
	b, prefix, err := openPlace(t.Context(), s.Out)
	require.NoError(t, err)
	defer b.Close()
	there, err := b.Exists(t.Context(), prefix+"/"+shard.ManifestName)
	require.NoError(t, err)
	require.False(t, there, "nobody takes a set that is being written for the old one")
	left, err := blobstore.First(t.Context(), b, prefix+"/"+shard.DataFolder)
	require.NoError(t, err)
	require.Empty(t, left, "a reader of the folder takes no shard of the old set for one of the new")
}

// A store that is not there, or a bucket that is not, is an error and not a set of nothing.
func TestNoStore(t *testing.T) {
	place := bucket(t)
	_, clean, err := fetch(context.Background(), []string{"s3://other/" + place("x")[len("s3://runs/"):]})
	clean()
	require.Error(t, err)
	_, clean, err = fetch(context.Background(), []string{"ftp://x/y"})
	clean()
	require.ErrorContains(t, err, "ftp")
}
