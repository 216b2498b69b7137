package bpe_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize/bpe"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// corpus returns named texts: the *.txt files of the folder TURNPACK_CORPUS (which internal/oracle/bench_bpe.py
// fills), or Go source of the toolchain.
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
	texts["code"] = goSource(b)
	return texts
}

// goSource returns the source of net/http in the toolchain: code of any length that every machine with Go has.
func goSource(t testing.TB) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), "src", "net", "http", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(data)
	}
	return code.String()
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

// benchName returns the name of the tokenizer to measure.
func benchName() string { return cmp.Or(os.Getenv("TURNPACK_TOKENIZER"), "qwen3") }

func benchTokenizer(b *testing.B) engine.Tokenizer { return load(b, benchName()) }

// partSizes are the lengths in bytes of the texts to measure.
var partSizes = []int{64, 1 << 10, 16 << 10, 1 << 20}

// BenchmarkEncode measures a warm cache: the texts have been encoded before.
func BenchmarkEncode(b *testing.B) {
	tok := benchTokenizer(b)
	for name, text := range corpus(b) {
		for _, size := range partSizes {
			parts := cut(text, size)
			for _, offsets := range []bool{false, true} {
				label := fmt.Sprintf("%s/%d/offsets=%v", name, size, offsets)
				b.Run(label, func(b *testing.B) {
					b.ReportAllocs()
					var e engine.Encoding
					opts := engine.EncodeOptions{Offsets: offsets}
					encodeAll(b, tok, &e, parts, opts)
					b.SetBytes(int64(len(text)))
					b.ResetTimer()
					start := kit.CPUTime()
					for range b.N {
						encodeAll(b, tok, &e, parts, opts)
					}
					// on a shared machine processor time is more reliable than elapsed time
					b.ReportMetric(float64(len(text))*float64(b.N)/(kit.CPUTime()-start).Seconds()/1e6, "MB/cpu-s")
				})
			}
		}
	}
}

func encodeAll(b *testing.B, tok engine.Tokenizer, e *engine.Encoding, parts []string, opts engine.EncodeOptions) {
	for _, p := range parts {
		e.Reset()
		if err := tok.Encode(e, p, opts); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParallel measures two workers that share a tokenizer, on texts encoded before.
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
							var e engine.Encoding
							for {
								i := int(next.Add(1)) - 1
								if i >= len(parts) {
									return
								}
								encodeAll(b, tok, &e, parts[i:i+1], engine.EncodeOptions{})
							}
						})
					}
					wg.Wait()
				}
			})
		}
	}
}

// megabyte returns a random text of about 1 MB in the characters of alphabet.
func megabyte(alphabet string) string {
	const size, seed = 1 << 20, 1
	r, letters := rand.New(rand.NewPCG(seed, 0)), []rune(alphabet)
	var b strings.Builder
	for b.Len() < size {
		b.WriteRune(letters[r.IntN(len(letters))])
	}
	return b.String()
}

// span returns the characters from a to b.
func span(a, b rune) string {
	var s []rune
	for ; a <= b; a++ {
		s = append(s, a)
	}
	return string(s)
}

// BenchmarkPathological measures 1 MB texts that are one piece, or nearly, or for which caches and shortcuts do not
// help: a single unit repeated, and random characters.
func BenchmarkPathological(b *testing.B) {
	tok := benchTokenizer(b)
	texts := map[string]string{}
	for name, unit := range map[string]string{
		"letter": "a", "alternating": "ab", "alternating_space": "a ", "spaces": " ", "newlines": "\n", "tabs_spaces": "\t ", "digits": "1234567890",
		"marks": "!?.-", "apostrophes": "'", "angles": "<|im_", "han": "漢字仮名", "emoji": "👩‍👩‍👧‍👦", "combining": "e\u0301\u0327", "nul": "\x00",
	} {
		texts[name] = strings.Repeat(unit, 1<<20/len(unit))
	}
	letters, han := span('a', 'z'), span('一', '龥')
	for name, alphabet := range map[string]string{
		"letters": letters, "digits": "0123456789", "base64": letters + strings.ToUpper(letters) + "0123456789+/", "spaces": " \t\n\r", "marks": span('!', '/'),
		"han": han, "cjk": han[:900] + span('ぁ', 'ヺ') + span('가', '힣')[:900] + letters, "hangul": span('가', '힣'), "emoji": span('😀', '🙏'), "accents": "aeiou" + span('\u0300', '\u036F'),
		"planes": span(' ', '\uD7FF') + span(0x10000, 0x3FFFF),
	} {
		texts["random_"+name] = megabyte(alphabet)
	}
	for name, text := range texts {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var e engine.Encoding
			start := kit.CPUTime()
			for range b.N {
				encodeAll(b, tok, &e, []string{text}, engine.EncodeOptions{})
			}
			b.ReportMetric(float64(len(text))*float64(b.N)/(kit.CPUTime()-start).Seconds()/1e6, "MB/cpu-s")
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, name := range []string{"qwen3", "gptoss"} {
		def := kit.Tokenizer(b, name)
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
