package bpe_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/bpe"
)

func BenchmarkNewText(b *testing.B) {
	for _, name := range []string{"qwen3", "gptoss", "llama3"} {
		def := kit.Tokenizer(b, name)
		for _, kind := range []string{"code", "prose", "logs", "cjk"} {
			data, err := os.ReadFile(filepath.Join(os.Getenv("TURNPACK_CORPUS"), kind+".txt"))
			if err != nil {
				b.Skip(err)
			}
			for _, size := range []int{1 << 10, 16 << 10} {
				parts := cut(string(data), size)
				for _, offsets := range []bool{false, true} {
					b.Run(fmt.Sprintf("%s/%s/%d/offsets=%v", name, kind, size, offsets), func(b *testing.B) {
						b.SetBytes(int64(len(data)))
						for range b.N {
							b.StopTimer()
							tok, err := bpe.Parse(name, def)
							if err != nil {
								b.Fatal(err)
							}
							b.StartTimer()
							start := kit.CPUTime()
							var e tokenize.Encoding
							for _, p := range parts {
								e.Reset()
								if err := tok.Encode(&e, p, tokenize.EncodeOptions{Offsets: offsets}); err != nil {
									b.Fatal(err)
								}
							}
							b.ReportMetric(float64(len(data))/(kit.CPUTime()-start).Seconds()/1e6, "MB/cpu-s")
						}
					})
				}
			}
		}
	}
}
