//go:build cgo

package hf_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/bpe"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/hf"
	"github.com/turnpack/turnpack/tokenize/internal/tokenizetest"
)

// definition returns the tokenizer.json of a kit, or of the module ("embedded").
func definition(t testing.TB, name string) []byte {
	t.Helper()
	if name == "embedded" {
		b, err := os.ReadFile("../embedded/tokenizer.json")
		require.NoError(t, err)
		return b
	}
	return kit.Tokenizer(t, name)
}

func load(t testing.TB, name string) engine.Tokenizer {
	t.Helper()
	tok, err := hf.Load(name, definition(t, name))
	require.NoError(t, err)
	return tok
}

func TestKit(t *testing.T) {
	names := "tiny_bytelevel tiny_spm qwen3"
	if os.Getenv("TURNPACK_CONFORMANCE") != "" {
		// The large vocabularies take a minute to load in all variants.
		names += " gptoss deepseek_v3 llama2 gemma3"
	}
	for _, name := range strings.Fields(names) {
		t.Run(name, func(t *testing.T) {
			tokenizetest.RunKit(t, load(t, name), kit.Dir(t, "conformance", "tokenizers", name+".jsonl.gz"))
		})
	}
}

// hostile are texts that the binding alone encodes wrongly, and similar ones.
var hostile = []string{
	"", "\x00", "a\x00b", "\x00\x00\x01\x01\x00", "\x01", "\x00\x01\x02\x03", "x\x00<|im_end|>\x00y",
	"\xff", "a\xf0\x9f\x98", "\xed\xa0\x80", "\xc3(", "ok \xe2\x82", "é\x00\xc3",
	"<|im_start|>user\nhi<|im_end|>", " a </s> b<s>c", "two words", "<think>x</think>", strings.Repeat(" ", 300), strings.Repeat("ab", 500),
}

// Both engines give the same results wherever both support the definition.
func TestEqualsBPE(t *testing.T) {
	definitions := map[string][]byte{}
	for _, name := range []string{"embedded", "tiny_bytelevel", "tiny_spm"} {
		definitions[name] = definition(t, name)
	}
	for _, scheme := range []string{"first", "always"} {
		definitions[scheme] = kit.WithMetaspace(t, definitions["tiny_spm"], scheme)
	}
	for name, data := range definitions {
		t.Run(name, func(t *testing.T) {
			reference, err := hf.Load(name, data)
			require.NoError(t, err)
			own, err := bpe.Parse(name, data)
			require.NoError(t, err)
			require.Equal(t, reference.Digest(), own.Digest())
			require.Equal(t, reference.Vocab().Added(), own.Vocab().Added())
			require.Equal(t, reference.Vocab().Size(), own.Vocab().Size())
			for _, text := range hostile {
				for _, opts := range []engine.EncodeOptions{{}, {Added: engine.NoAdded}, {Added: func(m engine.AddedMatch) bool { return !m.Token.Special }}} {
					for _, opts.After = range []engine.After{engine.AfterNothing, engine.AfterToken, engine.AfterText} {
						opts.Offsets = true
						sameEncoding(t, reference, own, text, opts)
					}
				}
			}
		})
	}
}

func sameEncoding(t *testing.T, reference, own engine.Tokenizer, text string, opts engine.EncodeOptions) {
	t.Helper()
	var a, b engine.Encoding
	require.NoError(t, reference.Encode(&a, text, opts))
	require.NoError(t, own.Encode(&b, text, opts))
	require.Equal(t, a, b, "text %q after %d", text, opts.After)
	x, err := reference.Decode(a.IDs)
	require.NoError(t, err)
	y, err := own.Decode(b.IDs)
	require.NoError(t, err)
	require.Equal(t, x, y, "text %q", text)
}

func TestErrors(t *testing.T) {
	for name, data := range map[string]string{
		"no JSON":          "{",
		"no vocabulary":    "{}",
		"refused by model": `{"model": {"type": "Nothing", "vocab": {"a": 0}}}`,
		"negative id":      `{"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}`,
	} {
		_, err := hf.Load(name, []byte(data))
		require.ErrorIs(t, err, rollout.KindTokenizer, name)
	}
	tok, err := hf.Load("embedded", definition(t, "embedded"))
	require.NoError(t, err)
	_, err = tok.Decode([]rollout.TokenID{1 << 20})
	require.ErrorIs(t, err, rollout.KindTokenizer)
}

func TestConcurrent(t *testing.T) {
	tok := load(t, "embedded")
	var want engine.Encoding
	require.NoError(t, tok.Encode(&want, "some text\x00", engine.EncodeOptions{}))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				var got engine.Encoding
				if err := tok.Encode(&got, "some text\x00", engine.EncodeOptions{}); err != nil || len(got.IDs) != len(want.IDs) {
					t.Errorf("got %v, %v", got.IDs, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
