package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// output runs convert on the sample dump and returns what it prints.
func output(t *testing.T) string {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	old := os.Stdout
	os.Stdout = w
	err = convert("../../tokenize/embedded", "../turnpack/demo/dumps", filepath.Join(t.TempDir(), "out.parquet"))
	os.Stdout = old
	require.NoError(t, w.Close())
	require.NoError(t, err)
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(b)
}

// README.md contains this program and its output.
func TestReadmeShowsThisProgram(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), output(t))
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	_, block, ok := strings.Cut(string(readme), "```go\n")
	require.True(t, ok)
	block, _, _ = strings.Cut(block, "```")
	for line := range strings.Lines(block) {
		require.Contains(t, string(source), strings.TrimSpace(line))
	}
}
