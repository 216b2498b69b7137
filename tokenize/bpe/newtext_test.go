package bpe_test

import (
	"fmt"
	"math/rand/v2"
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
	"github.com/turnpack/turnpack/tokenize/bpe"
	"github.com/turnpack/turnpack/tokenize/engine"
)

var textKinds = []string{"code", "logs", "prose", "cjk"}

// generated returns about size bytes of new text: words recur as in text of that kind (rank and frequency follow
// Zipf's law), lines do not.
func generated(kind string, size int) string {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, uint64(len(kind))))
	often := rand.NewZipf(r, 1.1, 20, 60_000)
	letters := "etaoinshrdlucmfwypvbgk"
	word := func() string { // the n-th word is always the same
		of := rand.New(rand.NewPCG(often.Uint64(), 1))
		w := make([]byte, 2+of.IntN(8))
		for i := range w {
			w[i] = letters[min(of.IntN(len(letters)), of.IntN(len(letters)))]
		}
		return string(w)
	}
	name := func() string {
		first := word()
		for range r.IntN(3) {
			w := word()
			first += strings.ToUpper(w[:1]) + w[1:]
		}
		return first
	}
	var b strings.Builder
	for b.Len() < size {
		switch kind {
		case "code":
			indent := strings.Repeat("\t", r.IntN(4))
			switch r.IntN(4) {
			case 0:
				fmt.Fprintf(&b, "%sif %s := %s.%s(%s, %d); %s != nil {\n", indent, name(), word(), name(), name(), r.IntN(1000), name())
			case 1:
				fmt.Fprintf(&b, "%s// %s %s %s %s.\n", indent, word(), word(), word(), word())
			case 2:
				fmt.Fprintf(&b, "%sreturn %s[%d:], fmt.Errorf(\"%s %s: %%w\", %s)\n", indent, name(), r.IntN(10), word(), word(), name())
			default:
				fmt.Fprintf(&b, "%s%s[\"%s\"] = append(%s, 0x%x)\n%s}\n", indent, name(), word(), name(), r.Uint32(), indent)
			}
		case "logs":
			fmt.Fprintf(&b, "2026-%02d-%02dT%02d:%02d:%02d.%06dZ %s [%s-%d] /%s/%s/%s.py:%d: %s %s id=%x took %dms\n", 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1e6),
				[]string{"INFO", "WARNING", "ERROR", "DEBUG"}[r.IntN(4)], word(), r.IntN(64), word(), word(), name(), r.IntN(2000), word(), word(), r.Uint64(), r.IntN(5000))
		case "prose":
			for range 6 + r.IntN(14) {
				b.WriteString(word())
				b.WriteString([]string{" ", " ", " ", " ", " ", ", ", "'s ", ". ", "\n"}[r.IntN(9)])
			}
			b.WriteString("\n\n")
		default:
			for range 3 + r.IntN(12) {
				if r.IntN(4) == 0 {
					b.WriteRune('ぁ' + rune(r.IntN(80)))
				}
				b.WriteRune('一' + rune(often.Uint64()*7919%20900))
			}
			b.WriteString([]string{"。", "，", "、", "\n", "（", "）", " "}[r.IntN(7)])
		}
	}
	return b.String()
}

// newText returns a text that a tokenizer has not encoded before: NAME.txt of the folder TURNPACK_CORPUS, which
// internal/oracle/bench_bpe.py fills, or a generated text.
func newText(b *testing.B, kind string) string {
	b.Helper()
	dir := os.Getenv("TURNPACK_CORPUS")
	if dir == "" {
		return generated(kind, 1<<20)
	}
	data, err := os.ReadFile(filepath.Join(dir, kind+".txt"))
	require.NoError(b, err)
	return string(data)
}

// BenchmarkNewText measures text on first contact: a newly loaded tokenizer encodes it once, part by part, including
// warm-up.
func BenchmarkNewText(b *testing.B) {
	for _, name := range []string{"qwen3", "gptoss", "llama3"} {
		def := kit.Tokenizer(b, name)
		for _, kind := range textKinds {
			for _, size := range []int{1 << 10, 16 << 10} {
				for _, offsets := range []bool{false, true} {
					b.Run(fmt.Sprintf("%s/%s/%d/offsets=%v", name, kind, size, offsets), func(b *testing.B) {
						text := newText(b, kind)
						parts := cut(text, size)
						b.SetBytes(int64(len(text)))
						var e engine.Encoding
						var spent time.Duration
						for range b.N {
							b.StopTimer()
							tok, err := bpe.Parse(name, def)
							require.NoError(b, err)
							runtime.GC() // collect the garbage of loading before the measurement
							b.StartTimer()
							start := kit.CPUTime()
							encodeAll(b, tok, &e, parts, engine.EncodeOptions{Offsets: offsets})
							spent += kit.CPUTime() - start
						}
						b.ReportMetric(float64(len(text))*float64(b.N)/spent.Seconds()/1e6, "MB/cpu-s")
					})
				}
			}
		}
	}
}

// BenchmarkNewTextWorkers is BenchmarkNewText in parts of 16 KB with one worker and with two that share a tokenizer;
// MB/s is per elapsed time. A worker takes one part at a time, or eight consecutive ones, as a pipeline hands out a
// rollout with its turns.
func BenchmarkNewTextWorkers(b *testing.B) {
	def := kit.Tokenizer(b, "qwen3")
	for _, kind := range textKinds {
		for _, c := range []struct{ workers, parts int }{{1, 1}, {2, 1}, {2, 8}} {
			b.Run(fmt.Sprintf("%s/%d/parts=%d", kind, c.workers, c.parts), func(b *testing.B) {
				text := newText(b, kind)
				parts := cut(text, 16<<10)
				b.SetBytes(int64(len(text)))
				for range b.N {
					b.StopTimer()
					tok, err := bpe.Parse("qwen3", def)
					require.NoError(b, err)
					runtime.GC() // as above
					b.StartTimer()
					var next atomic.Int64
					var wg sync.WaitGroup
					for range c.workers {
						wg.Go(func() {
							var e engine.Encoding
							for to := int(next.Add(int64(c.parts))); to-c.parts < len(parts); to = int(next.Add(int64(c.parts))) {
								encodeAll(b, tok, &e, parts[to-c.parts:min(to, len(parts))], engine.EncodeOptions{})
							}
						})
					}
					wg.Wait()
				}
			})
		}
	}
}

// TestGeneratedTextIsNew: hardly any line of the benchmark's text repeats.
func TestGeneratedTextIsNew(t *testing.T) {
	for _, kind := range textKinds {
		text := generated(kind, 1<<18)
		require.True(t, utf8.ValidString(text))
		seen, again, all := map[string]bool{}, 0, 0
		for line := range strings.Lines(text) {
			if len(line) < 20 {
				continue
			}
			if all++; seen[line] {
				again++
			}
			seen[line] = true
		}
		require.Greater(t, all, 500, kind)
		require.Less(t, again, all/50, kind)
	}
}

// TestWorkersEqualFreshOnes: a worker whose tables have been filled, overwritten and emptied gives the ids and
// offsets of a new worker.
func TestWorkersEqualFreshOnes(t *testing.T) {
	kit.OneGoroutine(t)
	for _, name := range []string{"qwen3", "gptoss"} {
		def := kit.Tokenizer(t, name)
		used, err := bpe.Parse(name, def)
		require.NoError(t, err)
		for _, kind := range textKinds {
			text := generated(kind, 1<<20)
			got := engine.Encoding{}
			parts := cut(text, 64<<10)
			for i, p := range parts {
				got.Reset()
				require.NoError(t, used.Encode(&got, p, engine.EncodeOptions{Offsets: i%2 == 0}))
				if i < len(parts)-1 {
					continue
				}
				fresh, err := bpe.Parse(name, def)
				require.NoError(t, err)
				want := engine.Encoding{Offsets: []int32{}}
				require.NoError(t, fresh.Encode(&want, p, engine.EncodeOptions{Offsets: i%2 == 0}))
				require.Equal(t, want.IDs, got.IDs, "%s, %s, part %d", name, kind, i)
				require.Equal(t, want.Offsets, got.Offsets, "%s, %s, part %d", name, kind, i)
			}
		}
	}
}
