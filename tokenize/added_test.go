package tokenize_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// Tokens that only the folder's configuration names get the ids that transformers 5.23.0 gives
// them: the vocabulary ends at 2025.
func TestTokensOfTheConfiguration(t *testing.T) {
	definition, err := os.ReadFile(filepath.Join(kit.Dir(t, "conformance", "tokenizers"), "tiny_bytelevel.tokenizer.json"))
	require.NoError(t, err)
	const strips = `{"added_tokens_decoder":{"2000":{"content":"<|im_end|>","lstrip":true,"rstrip":false,"normalized":false,"single_word":false,"special":true}}}`
	for _, c := range []struct {
		why, config, older, text string
		want                     []rollout.TokenID
	}{
		{"nothing but tokenizer.json", "", "", "<pad>", []rollout.TokenID{27, 79, 321, 29}},
		{"a token with a name", `{"pad_token":"<pad>"}`, "", "<pad>", []rollout.TokenID{2026}},
		{"its name without a text", `{"pad_token":null,"eos_token":"<|im_end|>"}`, "", "<pad>", []rollout.TokenID{27, 79, 321, 29}},
		{"a list", `{"additional_special_tokens":["<a>","<pad>"]}`, "", "<pad><a>", []rollout.TokenID{2027, 2026}},
		{"entries by number, before names", `{"pad_token":"<pad>","added_tokens_decoder":{"3000":{"content":"<b>"},"200":{"content":"<a>"}}}`, "", "<a><b><pad>", []rollout.TokenID{2026, 2027, 2028}},
		{"an older folder", `{}`, `{"<b>":2900,"<a>":2800}`, "<a><b>", []rollout.TokenID{2026, 2027}},
		{"a newer folder has its own entries", `{"added_tokens_decoder":{}}`, `{"<pad>":2900}`, "<pad>", []rollout.TokenID{27, 79, 321, 29}},
		{"another rule for a token", strips, "", "a <|im_end|>", []rollout.TokenID{64, 2002}},
	} {
		files := fstest.MapFS{"tokenizer.json": {Data: definition}}
		if c.config != "" {
			files["tokenizer_config.json"] = &fstest.MapFile{Data: []byte(c.config)}
		}
		if c.older != "" {
			files["added_tokens.json"] = &fstest.MapFile{Data: []byte(c.older)}
		}
		m, err := tokenize.Load(".", tokenize.LoadOptions{FS: files})
		require.NoError(t, err, c.why)
		var got engine.Encoding
		require.NoError(t, m.Tokenizer.Encode(&got, c.text, engine.EncodeOptions{}), c.why)
		require.Equal(t, c.want, got.IDs, c.why)
	}
	_, err = tokenize.Load(".", tokenize.LoadOptions{FS: fstest.MapFS{"tokenizer.json": {Data: definition}, "tokenizer_config.json": {Data: []byte(`{"added_tokens_decoder":[1]}`)}}})
	require.ErrorContains(t, err, "tokenizer_config.json, /added_tokens_decoder")
}

// Loading a model takes time linear in its added tokens: eight times as many may take at most
// twenty times as long; comparing all pairs would take 64 times.
func TestManyAddedTokensLoadInLinearTime(t *testing.T) {
	kit.OneGoroutine(t)
	took := func(n int) time.Duration {
		var d map[string]any
		require.NoError(t, json.Unmarshal(kit.Tokenizer(t, "tiny_bytelevel"), &d))
		added := d["added_tokens"].([]any)
		for i := range n {
			added = append(added, map[string]any{"content": fmt.Sprintf("<|audio_%d|>", i), "special": i%2 == 0, "normalized": i%3 == 0})
		}
		d["added_tokens"] = added
		definition, err := json.Marshal(d)
		require.NoError(t, err)
		config := `{"chat_template":"{% for m in messages %}{{m.role}}: {{m.content}}<|im_end|>\n{% endfor %}"}`
		files := fstest.MapFS{"tokenizer.json": {Data: definition}, "tokenizer_config.json": {Data: []byte(config)}}
		runtime.GC() // frees what was loaded before
		start := kit.CPUTime()
		m, err := tokenize.Load(".", tokenize.LoadOptions{FS: files})
		require.NoError(t, err)
		_, err = tokenize.NewEncoder(m, tokenize.Options{})
		require.NoError(t, err)
		return kit.CPUTime() - start
	}
	if kit.CPUTime() == 0 {
		t.Skip("SKIPPED: the system does not tell processor time")
	}
	// Alternately, and the minimum of each, since other load makes either slower.
	few, many := took(5000), took(40000)
	for range 9 {
		if many < 16*few {
			break
		}
		few, many = min(few, took(5000)), min(many, took(40000))
	}
	t.Logf("5,000 added tokens took %v, 40,000 took %v", few, many)
	require.Less(t, many, 20*few)
}
