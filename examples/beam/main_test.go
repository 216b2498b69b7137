package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/ptest"

	"github.com/turnpack/turnpack/export"
)

func TestMain(m *testing.M) { ptest.Main(m) }

// Two runs write the same files; no group is split over two of them.
func TestJob(t *testing.T) {
	first, second := runJob(t), runJob(t)
	groups, rows := map[string]string{}, 0
	for name, path := range first {
		got, _, err := export.ReadAll(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got {
			if in, ok := groups[r.Group]; ok && in != name {
				t.Errorf("group %s is in %s and %s", r.Group, in, name)
			}
			groups[r.Group] = name
		}
		rows += len(got)
		a, errA := os.ReadFile(path)
		b, errB := os.ReadFile(second[name])
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("%s differs between two runs (%v, %v)", name, errA, errB)
		}
	}
	// As many as the quickstart makes of the same dumps in one file.
	if rows != 23 {
		t.Errorf("found %d rows, expected 23", rows)
	}
}

func runJob(t *testing.T) map[string]string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "new")
	p, err := job("../turnpack/demo/dumps/*", "../../tokenize/embedded", out, 3)
	if err != nil {
		t.Fatal(err)
	}
	ptest.RunAndValidate(t, p)
	paths, err := filepath.Glob(filepath.Join(out, "*.parquet"))
	if err != nil || len(paths) < 2 {
		t.Fatalf("found %d files (%v), expected two or three", len(paths), err)
	}
	files := map[string]string{}
	for _, path := range paths {
		files[filepath.Base(path)] = path
	}
	return files
}

func TestJobRefusesNothingToDo(t *testing.T) {
	if _, err := job(filepath.Join(t.TempDir(), "*"), "model", "out", 1); err == nil {
		t.Error("expected an error for a glob without files")
	}
}
