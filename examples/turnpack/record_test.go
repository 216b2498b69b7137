package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/place"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/internal/kit"
)

// The same command run again does nothing; a different one reports what differs. Neither
// changes a byte.
func TestRunAgain(t *testing.T) {
	kit.Long(t)
	model, in := modelDir(t, nil), goodDump(t)
	for _, form := range []struct {
		reason string
		flags  []string
		file   string // a file of the batch
	}{
		{"one file", nil, "batch.parquet"},
		{"shards", []string{"--rows-per-shard", "1"}, "data/part-00000.parquet"},
		{"packs of a trainer", []string{"--target", "megatron", "--seq-len", "512", "--estimator", "none"}, "train-00000.metadata.json"},
		{"a trainer's steps", []string{"--target", "slime", "--pt"}, "0.pt"},
	} {
		t.Run(form.reason, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "a", "batch")
			convert := func(more ...string) (int, string, string) {
				return call(t, append(append([]string{"convert", "--model", model, "--in", in, "--out", out}, form.flags...), more...)...)
			}
			code, _, stderr := convert()
			require.Zero(t, code, stderr)
			before := tree(t, out)
			require.Contains(t, before, form.file)

			code, stdout, stderr := convert("--workers", "1", "--quiet")
			require.Zero(t, code, stderr)
			require.Contains(t, stdout, "already complete: 2 rows")
			code, stdout, _ = convert("--json")
			require.Zero(t, code)
			var s summary
			require.NoError(t, json.Unmarshal([]byte(stdout), &s))
			require.True(t, s.Complete)
			require.Equal(t, 2, s.Rows)

			code, _, stderr = convert("--mode", "perstep", "--no-reasoning")
			require.Equal(t, exitFailed, code)
			require.Contains(t, stderr, "--mode was merged, is perstep; --no-reasoning was unset, is true")
			code, _, stderr = call(t, append([]string{"convert", "--model", model, "--in", goodDump(t), in, "--out", out}, form.flags...)...)
			require.Equal(t, exitFailed, code)
			require.Contains(t, stderr, "--in and --rewards named 1 paths, now 2")
			require.Equal(t, before, tree(t, out))

			require.NoError(t, os.WriteFile(filepath.Join(out, form.file), []byte("other"), 0o644))
			code, _, stderr = convert()
			require.Equal(t, exitFailed, code)
			require.Contains(t, stderr, form.file+" is missing or was changed")
			code, _, stderr = convert("--force")
			require.Zero(t, code, stderr)
			require.Equal(t, before, tree(t, out))
		})
	}
	out := t.TempDir()
	code, _, stderr := call(t, "convert", "--model", model, "--in", in, "--out", out)
	require.Zero(t, code, stderr)
	require.NoError(t, os.WriteFile(filepath.Join(in, "more.jsonl"), []byte(chatLine("c", true)+"\n"), 0o644))
	code, _, stderr = call(t, "convert", "--model", model, "--in", in, "--out", out)
	require.Equal(t, exitFailed, code)
	require.Regexp(t, "held .* bytes in 1 files, now .* in 2", stderr)
}

// tree returns the contents of a folder by file name.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		out[strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(path, dir)), "/")] = string(b)
		return err
	}))
	return out
}

// A batch inside its own input folder is not read as input.
func TestOutputInsideInput(t *testing.T) {
	in := goodDump(t)
	for _, want := range []string{"2 in 1 groups", "already complete"} {
		code, stdout, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", in, "--out", filepath.Join(in, "batch"))
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, want)
	}
}

// A run that is refused, or that fails before it writes, leaves no folder.
func TestNoEmptyFolder(t *testing.T) {
	kit.Long(t)
	groups := dump(t, chatLine("a", true), strings.Replace(chatLine("b", true), "task", "task-2", 1))
	for flags, want := range map[string]int{
		"--target nobody": exitUsage, "--pt": exitUsage, "--target trl": exitFailed, "--in nowhere": exitFailed,
		"--min-fidelity 1 --rows-per-shard 1":                                   exitFailed,
		"--min-fidelity 1 --target slime --groups-per-step 1":                   exitFailed,
		"--min-fidelity 1 --target slime --groups-per-step 1 --pt":              exitFailed,
		"--min-fidelity 1 --target megatron --groups-per-step 1 --seq-len 1024": exitFailed,
	} {
		top := t.TempDir()
		code, _, _ := call(t, append([]string{"convert", "--model", modelDir(t, nil), "--out", filepath.Join(top, "a", "b"), groups}, strings.Fields(flags)...)...)
		require.Equal(t, want, code, flags)
		require.Empty(t, tree(t, top), flags)
		left, err := os.ReadDir(top)
		require.NoError(t, err)
		require.Empty(t, left, flags)
	}
}

func TestManifestNamesTrace(t *testing.T) {
	out := t.TempDir()
	code, _, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", goodDump(t), "--out", out, "--rows-per-shard", "1")
	require.Zero(t, code, stderr)
	m, err := shard.Read(out)
	require.NoError(t, err)
	require.Equal(t, "advantages,advantage,sources,flags", m.Columns)
}

// store starts a server that answers like an S3 object store. It returns the URL of a
// prefix, the stored objects, and how many of them it takes.
func store(t *testing.T) (out string, objects map[string]string, most *int) {
	t.Helper()
	objects, most = map[string]string{}, new(1000)
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		key := strings.TrimPrefix(r.URL.Path, "/bucket/")
		text, there := objects[key]
		switch {
		case r.Method == http.MethodPut && len(objects) == *most:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "<Error><Code>AccessDenied</Code></Error>")
		case r.Method == http.MethodPut:
			objects[key] = body(r)
		case r.Method == http.MethodDelete:
			delete(objects, key)
			w.WriteHeader(http.StatusNoContent)
		case r.URL.Query().Has("list-type"):
			for k := range objects {
				if strings.HasPrefix(k, r.URL.Query().Get("prefix")) {
					fmt.Fprintf(w, "<ListBucketResult><Contents><Key>%s</Key><Size>1</Size><ETag>e</ETag><LastModified>2026-01-01T00:00:00Z</LastModified></Contents></ListBucketResult>", k)
					return
				}
			}
			fmt.Fprint(w, "<ListBucketResult/>")
		case !there:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
		default:
			http.ServeContent(w, r, "", time.Unix(1, 0), strings.NewReader(text))
		}
	}))
	t.Cleanup(s.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "key")
	return "s3://bucket/run/1?region=here&use_path_style=true&endpoint=" + s.URL, objects, most
}

// A run that is cut off while it sends its files leaves what it sent: the same command goes on
// from there, and another one is refused.
func TestObjectStoreInterrupted(t *testing.T) {
	out, objects, most := store(t)
	in, args := goodDump(t), []string{"--model", modelDir(t, nil), "--rows-per-shard", "1", "--out", out}
	convert := func(more ...string) (int, string) {
		code, _, stderr := call(t, slices.Concat([]string{"convert", in}, args, more)...)
		return code, stderr
	}
	code, stderr := convert()
	require.Zero(t, code, stderr)
	want := maps.Clone(objects)
	for sent := range len(want) + 1 { // the name of the run, the files, the record
		clear(objects)
		*most = sent
		code, stderr = convert()
		require.Equal(t, exitFailed, code, stderr)
		require.Len(t, objects, sent)
		*most = 1000
		if sent > 0 {
			code, stderr = convert("--dedup")
			require.Equal(t, exitFailed, code, stderr)
			require.Contains(t, stderr, "is there and no complete run made it")
		}
		code, stderr = convert()
		require.Zero(t, code, stderr)
		require.Equal(t, want, objects)
	}
}

// removing tells what is removed from a place.
type removing struct {
	place.Place
	names []string
}

func (r *removing) Remove(name string) error {
	r.names = append(r.names, name)
	return r.Place.Remove(name)
}

// A batch that is replaced loses its record first: wherever that is cut off, no record names files
// that are gone.
func TestReplacedRecordGoesFirst(t *testing.T) {
	out := t.TempDir()
	code, _, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", goodDump(t), "--out", out, "--rows-per-shard", "1")
	require.Zero(t, code, stderr)
	dst, err := place.Open(t.Context(), out, io.Discard)
	require.NoError(t, err)
	watched := &removing{Place: dst}
	require.NoError(t, replace(watched, nil))
	require.Equal(t, []string{cli.RecordName, "data/part-00000.parquet", shard.ManifestName}, watched.names)
}

// body returns the body of r without the chunk framing of S3 clients: "SIZE;…\r\n", the
// bytes, "\r\n", up to a size of 0.
func body(r *http.Request) string {
	b, _ := io.ReadAll(r.Body)
	if r.Header.Get("X-Amz-Decoded-Content-Length") == "" {
		return string(b)
	}
	var out []byte
	for {
		head, rest, _ := bytes.Cut(b, []byte("\r\n"))
		size, _, _ := strings.Cut(string(head), ";")
		n, err := strconv.ParseInt(size, 16, 64)
		if err != nil || n == 0 {
			return string(out)
		}
		out, b = append(out, rest[:n]...), rest[n+2:]
	}
}

// A batch in an object store equals that in a folder, and is recognized as complete.
func TestObjectStore(t *testing.T) {
	out, objects, _ := store(t)
	model, in := modelDir(t, nil), goodDump(t)
	local := t.TempDir()
	convert := func(to string, more ...string) (int, string, string) {
		return call(t, append([]string{"convert", "--model", model, "--in", in, "--out", to, "--rows-per-shard", "1"}, more...)...)
	}
	code, _, stderr := convert(local)
	require.Zero(t, code, stderr)
	code, stdout, stderr := convert(out)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "output                 s3://bucket/run/1/data\n")
	want := map[string]string{}
	for name, text := range tree(t, local) {
		want["run/1/"+name] = text
	}
	require.Equal(t, want, objects)

	code, stdout, stderr = convert(out)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "s3://bucket/run/1 is already complete: 2 rows")
	code, _, stderr = convert(out, "--dedup")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "--dedup was unset, is true")

	delete(objects, "run/1/"+cli.RecordName) // files that nobody knows
	code, _, stderr = convert(out)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "is there and no complete run made it")
	code, _, stderr = convert(out, "--force")
	require.Zero(t, code, stderr)
	require.Equal(t, want, objects)

	code, _, stderr = convert("gs://bucket/x")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "s3://BUCKET/PREFIX?endpoint=HOST")
}
