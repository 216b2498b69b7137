//go:build cgo

package hf_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize/bpe"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/hf"
)

// BenchmarkEngines measures this binding and the bpe engine with warm caches, on the same quarter megabyte of each
// text in the folder TURNPACK_CORPUS.
func BenchmarkEngines(b *testing.B) {
	dir := os.Getenv("TURNPACK_CORPUS")
	if dir == "" {
		b.Skip("SKIPPED: TURNPACK_CORPUS is not set: fill a folder with internal/oracle/bench_bpe.py")
	}
	def := definition(b, "qwen3")
	reference, err := hf.Load("qwen3", def)
	require.NoError(b, err)
	ours, err := bpe.Parse("qwen3", def)
	require.NoError(b, err)
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	require.NoError(b, err)
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(b, err)
		text := strings.ToValidUTF8(string(data[:min(len(data), 1<<18)]), "")
		for _, size := range []int{64, 1 << 10, 16 << 10, 1 << 20} {
			var parts []string
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				for n < len(rest) && !utf8.RuneStart(rest[n]) {
					n++
				}
				parts, rest = append(parts, rest[:n]), rest[n:]
			}
			for name, tok := range map[string]engine.Tokenizer{"hf": reference, "bpe": ours} {
				b.Run(fmt.Sprintf("%s/%d/%s", strings.TrimSuffix(filepath.Base(f), ".txt"), size, name), func(b *testing.B) {
					b.ReportAllocs()
					b.SetBytes(int64(len(text)))
					start := kit.CPUTime()
					for range b.N {
						var e engine.Encoding
						for _, p := range parts {
							e.Reset()
							require.NoError(b, tok.Encode(&e, p, engine.EncodeOptions{}))
						}
					}
					b.ReportMetric(float64(len(text))*float64(b.N)/(kit.CPUTime()-start).Seconds()/1e6, "MB/cpu-s")
				})
			}
		}
	}
}
