package bpe_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize/bpe"
	"github.com/turnpack/turnpack/tokenize/tokenizetest"
)

// definition returns a tokenizer.json of the tokenizers kit, or of the folder
// that internal/oracle/tokenizers.sh fills.
func definition(t testing.TB, name string) []byte {
	t.Helper()
	dir := kit.Dir(t, "conformance", "tokenizers")
	if data, err := os.ReadFile(filepath.Join(dir, name+".tokenizer.json")); err == nil {
		return data
	}
	if f, err := os.Open(filepath.Join(dir, name+".tokenizer.json.zst")); err == nil {
		defer f.Close()
		z, err := zstd.NewReader(f)
		require.NoError(t, err)
		defer z.Close()
		var b bytes.Buffer
		_, err = io.Copy(&b, z)
		require.NoError(t, err)
		return b.Bytes()
	}
	data, err := os.ReadFile(filepath.Join(fetched(t), name, "tokenizer.json"))
	if err != nil {
		t.Skipf("SKIPPED FOR LACK OF A TOKENIZER: %s is not there; run internal/oracle/tokenizers.sh to fetch it", name)
	}
	return data
}

func fetched(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	return filepath.Join(cache, "turnpack", "tokenizers-kit")
}

func load(t testing.TB, name string) *bpe.Tokenizer {
	t.Helper()
	tok, err := bpe.Parse(name, definition(t, name))
	require.NoError(t, err)
	return tok
}

func TestKit(t *testing.T) {
	kit.OneGoroutine(t)
	for _, name := range strings.Fields("tiny_bytelevel tiny_spm qwen3 llama3 gptoss deepseek_v3 llama2 gemma3") {
		t.Run(name, func(t *testing.T) {
			tokenizetest.RunKit(t, load(t, name), kit.Dir(t, "conformance", "tokenizers", name+".jsonl.gz"))
		})
	}
}

func TestKitKimi(t *testing.T) {
	tok, err := bpe.LoadTiktokenFS(os.DirFS(fetched(t)), "kimi_k2")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("SKIPPED FOR LACK OF A TOKENIZER: kimi_k2 is not there; run internal/oracle/tokenizers.sh to fetch it")
	}
	require.NoError(t, err)
	tokenizetest.RunKit(t, tok, kit.Dir(t, "conformance", "tokenizers", "kimi_k2.jsonl.gz"))
}
