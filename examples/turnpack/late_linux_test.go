package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A rollout that is added while the model loads is in the batch, or the same run later says that
// the input has changed.
func TestInputThatGrows(t *testing.T) {
	model, in, out := modelDir(t, nil), goodDump(t), t.TempDir()
	tokenizer := filepath.Join(model, "tokenizer.json")
	text, err := os.ReadFile(tokenizer)
	require.NoError(t, err)
	require.NoError(t, os.Remove(tokenizer))
	require.NoError(t, syscall.Mkfifo(tokenizer, 0o600))
	go func() {
		w, err := os.OpenFile(tokenizer, os.O_WRONLY, 0) // opens when the model is being read
		if err != nil {
			return
		}
		time.Sleep(200 * time.Millisecond) // the input has been read by then, or the run reads what is added
		_ = os.WriteFile(filepath.Join(in, "more.jsonl"), []byte(chatLine("c", true)+"\n"), 0o644)
		_, _ = w.Write(text)
		_ = w.Close()
	}()
	code, stdout, stderr := call(t, "convert", "--model", model, "--in", in, "--out", out)
	require.Zero(t, code, stderr)
	first := stdout
	require.NoError(t, os.Remove(tokenizer))
	require.NoError(t, os.WriteFile(tokenizer, text, 0o600))
	code, stdout, stderr = call(t, "convert", "--model", model, "--in", in, "--out", out)
	if code == 0 {
		require.Contains(t, stdout, "is already complete: 3 rows", first)
	} else {
		require.Regexp(t, "held .* bytes in 1 files, now .* in 2", stderr)
	}
}
