package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

func gzipped(t *testing.T, text []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(text)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

func zstded(t *testing.T, text []byte) []byte {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
	require.NoError(t, err)
	return z.EncodeAll(text, nil)
}

func zipped(t *testing.T, text []byte) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	f, err := z.Create("a.jsonl")
	require.NoError(t, err)
	_, err = f.Write(text)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

func tarred(t *testing.T, text []byte) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "a.jsonl", Mode: 0o644, Size: int64(len(text)), Format: tar.FormatUSTAR}))
	_, err := w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// Records before the cut of a truncated stream are read, and the run reports that there
// was more. A corrupted stream gives no records.
func TestDamagedDumps(t *testing.T) {
	kit.Long(t)
	var lines []string
	for i := range 400 {
		// Random numbers keep the text from compressing into a single block.
		lines = append(lines, strings.Replace(chatLine(fmt.Sprint("r", i), i%2 == 0), `"content":"`, fmt.Sprintf(`"content":"%x `, i*i*7919*104729), 1)+"\n")
	}
	text := []byte(strings.Join(lines, ""))
	half := []byte(strings.Join(lines[:200], ""))
	other := []byte(strings.Join(lines[200:], ""))
	cut := func(b []byte) []byte { return b[:len(b)*3/4] }
	flip := func(b []byte, at int) []byte {
		c := slices.Clone(b)
		c[(at+len(c))%len(c)] ^= 1
		return c
	}
	garbage := bytes.Repeat([]byte("no frame of anything "), 10)
	const some, none = exitLeftOut, exitFailed // how many of the records are read
	for _, c := range []struct {
		name, file string
		bytes      []byte
		code       int
		says       string
	}{
		{"whole gzip", "a.jsonl.gz", gzipped(t, text), exitOK, ""},
		{"whole zstd", "a.jsonl.zst", zstded(t, text), exitOK, ""},
		{"whole zip", "a.zip", zipped(t, text), exitOK, ""},
		{"two members of gzip", "a.jsonl.gz", slices.Concat(gzipped(t, half), gzipped(t, other)), exitOK, ""},
		{"two frames of zstd", "a.jsonl.zst", slices.Concat(zstded(t, half), zstded(t, other)), exitOK, ""},

		{"gzip cut short", "a.jsonl.gz", cut(gzipped(t, text)), some, "ends"},
		{"gzip without its checksum", "a.jsonl.gz", gzipped(t, text)[:len(gzipped(t, text))-8], some, "ends"},
		{"gzip whose second member is cut short", "a.jsonl.gz", slices.Concat(gzipped(t, half), cut(gzipped(t, other))), some, "ends"},
		{"zstd whose second frame is cut short", "a.jsonl.zst", slices.Concat(zstded(t, half), cut(zstded(t, other))), some, "ends"},

		{"zip cut short", "a.zip", cut(zipped(t, text)), none, "a.zip"},
		{"gzip with another checksum", "a.jsonl.gz", flip(gzipped(t, text), -8), none, "nothing of it was read"},
		{"gzip with another length", "a.jsonl.gz", flip(gzipped(t, text), -1), none, "nothing of it was read"},
		{"gzip changed in the middle", "a.jsonl.gz", flip(gzipped(t, text), len(gzipped(t, text))/2), none, "nothing of it was read"},
		{"zstd with another checksum", "a.jsonl.zst", flip(zstded(t, text), -1), none, "nothing of it was read"},
		{"zstd changed in the middle", "a.jsonl.zst", flip(zstded(t, text), len(zstded(t, text))/2), none, "nothing of it was read"},
		{"zip changed in the middle", "a.zip", flip(zipped(t, text), len(zipped(t, text))/3), none, "nothing of it was read"},
		{"zip whose member ends in other bytes", "a.zip", flip(zipped(t, text), bytes.Index(zipped(t, text), []byte("PK\x07\x08"))-2), none, "nothing of it was read"},
		{"zip whose directory tells another size", "a.zip", flip(zipped(t, text), bytes.LastIndex(zipped(t, text), []byte("PK\x01\x02"))+27), none, "nothing of it was read"},
		{"gzip with garbage after it", "a.jsonl.gz", slices.Concat(gzipped(t, text), garbage), none, "nothing of it was read"},
		{"zstd with garbage after it", "a.jsonl.zst", slices.Concat(zstded(t, text), garbage), none, "nothing of it was read"},
		{"gzip whose second member is damaged", "a.jsonl.gz", slices.Concat(gzipped(t, half), flip(gzipped(t, other), -6)), none, "nothing of it was read"},
		{"zstd whose second frame is damaged", "a.jsonl.zst", slices.Concat(zstded(t, half), flip(zstded(t, other), -2)), none, "nothing of it was read"},
		{"gzip in gzip", "a.jsonl.gz", gzipped(t, gzipped(t, text)), none, "compressed more than once"},
		{"zip in gzip", "a.jsonl.gz", gzipped(t, zipped(t, text)), none, "a.jsonl.gz"},
		{"tar", "a.jsonl", tarred(t, text), none, "tar archive"},
		{"tar in gzip", "a.jsonl.gz", gzipped(t, tarred(t, text)), none, "tar archive"},
		{"head of gzip alone", "a.jsonl.gz", gzipped(t, text)[:10], none, "a.jsonl.gz"},
		{"gzip in name only", "a.jsonl.gz", []byte("\x1f\x8b not gzip at all, whatever its first bytes say"), none, "gzip"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, out := filepath.Join(t.TempDir(), c.file), filepath.Join(t.TempDir(), "batch")
			require.NoError(t, os.WriteFile(in, c.bytes, 0o644))
			convert := func(more ...string) (int, string, string) {
				return call(t, append([]string{"convert", "--model", modelDir(t, nil), "--in", in, "--out", out, "--force"}, more...)...)
			}
			code, stdout, stderr := convert()
			require.Equal(t, c.code, code, stdout+stderr)
			require.Contains(t, stdout+stderr, c.says)
			_, err := os.Stat(filepath.Join(out, "batch.parquet"))
			if c.code == none {
				require.ErrorIs(t, err, os.ErrNotExist)
				code, _, _ = convert("--on-error", "skip")
				require.Equal(t, exitFailed, code)
				return
			}
			require.NoError(t, err)
			if c.code == some {
				require.Regexp(t, `records left out +1 of \d+\n`, stdout)
				code, _, stderr := convert("--on-error", "skip")
				require.Equal(t, exitOK, code, stderr)
			}
		})
	}
}
