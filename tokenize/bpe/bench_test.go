package bpe_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/bpe"
)

// corpus returns named texts: the *.txt files of the folder TURNPACK_CORPUS
// (which internal/oracle/bench_bpe.py fills), or Go source of the toolchain.
func corpus(b *testing.B) map[string]string {
	b.Helper()
	texts := map[string]string{}
	if dir := os.Getenv("TURNPACK_CORPUS"); dir != "" {
		files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
		require.NoError(b, err)
		for _, f := range files {
			data, err := os.ReadFile(f)
			require.NoError(b, err)
			texts[strings.TrimSuffix(filepath.Base(f), ".txt")] = string(data)
		}
		return texts
	}
	texts["code"] = kit.GoSource(b)
	return texts
}

// cut splits text into parts of about size bytes, at character boundaries.
func cut(text string, size int) []string {
	var parts []string
	for len(text) > 0 {
		n := min(size, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		parts = append(parts, text[:n])
		text = text[n:]
	}
	return parts
}

func benchTokenizer(b *testing.B) *bpe.Tokenizer {
	name := os.Getenv("TURNPACK_TOKENIZER")
	if name == "" {
		name = "qwen3"
	}
	return load(b, name)
}

// partSizes are the lengths of texts that are measured.
var partSizes = []int{64, 1 << 10, 16 << 10, 1 << 20}

// BenchmarkEncode measures a warm cache: the texts have been seen before.
func BenchmarkEncode(b *testing.B) {
	tok := benchTokenizer(b)
	for name, text := range corpus(b) {
		for _, size := range partSizes {
			parts := cut(text, size)
			for _, offsets := range []bool{false, true} {
				label := fmt.Sprintf("%s/%d/offsets=%v", name, size, offsets)
				b.Run(label, func(b *testing.B) {
					b.ReportAllocs()
					var e tokenize.Encoding
					opts := tokenize.EncodeOptions{Offsets: offsets}
					encodeAll(b, tok, &e, parts, opts)
					b.SetBytes(int64(len(text)))
					b.ResetTimer()
					start := kit.CPUTime()
					for range b.N {
						encodeAll(b, tok, &e, parts, opts)
					}
					// on a shared machine time on the processor tells more than time
					b.ReportMetric(float64(len(text))*float64(b.N)/(kit.CPUTime()-start).Seconds()/1e6, "MB/cpu-s")
				})
			}
		}
	}
}

func encodeAll(b *testing.B, tok *bpe.Tokenizer, e *tokenize.Encoding, parts []string, opts tokenize.EncodeOptions) {
	for _, p := range parts {
		e.Reset()
		if err := tok.Encode(e, p, opts); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncodeCold measures a cache that has seen nothing.
func BenchmarkEncodeCold(b *testing.B) {
	def := definition(b, "qwen3")
	for name, text := range corpus(b) {
		for _, size := range partSizes {
			parts := cut(text, size)
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				var e tokenize.Encoding
				var spent time.Duration
				for range b.N {
					b.StopTimer()
					tok, err := bpe.Parse("qwen3", def)
					require.NoError(b, err)
					runtime.GC() // of the definition's rubbish, else it is done below
					b.StartTimer()
					start := kit.CPUTime()
					encodeAll(b, tok, &e, parts, tokenize.EncodeOptions{})
					spent += kit.CPUTime() - start
				}
				b.ReportMetric(float64(len(text))*float64(b.N)/spent.Seconds()/1e6, "MB/cpu-s")
			})
		}
	}
}

// BenchmarkParallel measures two workers on one tokenizer.
func BenchmarkParallel(b *testing.B) {
	tok := benchTokenizer(b)
	for name, text := range corpus(b) {
		parts := cut(text, 16<<10)
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%d", name, workers), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for range b.N {
					var next atomic.Int64
					var wg sync.WaitGroup
					for range workers {
						wg.Go(func() {
							var e tokenize.Encoding
							for {
								i := int(next.Add(1)) - 1
								if i >= len(parts) {
									return
								}
								encodeAll(b, tok, &e, parts[i:i+1], tokenize.EncodeOptions{})
							}
						})
					}
					wg.Wait()
				}
			})
		}
	}
}

// BenchmarkPathological measures 1 MB texts that are one piece, or nearly.
func BenchmarkPathological(b *testing.B) {
	tok := benchTokenizer(b)
	const size = 1 << 20
	random := make([]byte, size)
	state := uint32(1)
	for i := range random {
		state = state*1664525 + 1013904223
		random[i] = 'a' + byte(state>>24)%26
	}
	for name, text := range map[string]string{
		"letter": strings.Repeat("a", size), "spaces": strings.Repeat(" ", size), "newlines": strings.Repeat("\n", size),
		"random_letters": string(random), "marks": strings.Repeat("!?.-", size/4), "han": strings.Repeat("漢字仮名", size/12),
		"combining": strings.Repeat("e\u0301\u0327", size/5), "digits": strings.Repeat("1234567890", size/10),
		"angles": strings.Repeat("<|im_", size/5), "apostrophes": strings.Repeat("'", size),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var e tokenize.Encoding
			start := kit.CPUTime()
			for range b.N {
				encodeAll(b, tok, &e, []string{text}, tokenize.EncodeOptions{})
			}
			b.ReportMetric(float64(len(text))*float64(b.N)/(kit.CPUTime()-start).Seconds()/1e6, "MB/cpu-s")
		})
	}
}

// BenchmarkLoadCompiled measures the compiled form in memory and in a file.
func BenchmarkLoadCompiled(b *testing.B) {
	data, err := load(b, "qwen3").AppendCompiled(nil)
	require.NoError(b, err)
	file := filepath.Join(b.TempDir(), "qwen3.tpk")
	require.NoError(b, os.WriteFile(file, data, 0o600))
	for name, open := range map[string]func() error{
		"memory": func() error { _, err := bpe.ParseCompiled("qwen3", data); return err },
		"file":   func() error { _, err := bpe.Open(file); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			start := kit.CPUTime()
			for range b.N {
				if err := open(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((kit.CPUTime()-start).Seconds()*1e3/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(len(data)), "file-bytes")
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, name := range []string{"qwen3", "gptoss"} {
		def := definition(b, name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := bpe.Parse(name, def); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
