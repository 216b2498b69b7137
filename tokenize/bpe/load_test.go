package bpe_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/bpe"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// small returns a small definition after change has modified it.
func small(change func(d map[string]any)) []byte {
	var d map[string]any
	text := `{"version":"1.0","added_tokens":[{"id":4,"content":"<s>","special":true,"normalized":false}],
		"normalizer":null,"pre_tokenizer":null,"post_processor":null,"decoder":null,
		"model":{"type":"BPE","unk_token":null,"vocab":{"a":0,"b":1,"ab":2,"c":3},"merges":[["a","b"]]}}`
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		panic(err)
	}
	if change != nil {
		change(d)
	}
	out, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return out
}

func model(d map[string]any) map[string]any { return d["model"].(map[string]any) }

func TestRefusals(t *testing.T) {
	_, err := bpe.Parse("t.json", small(nil))
	require.NoError(t, err, "the unchanged definition loads")
	for _, c := range []struct {
		reason string
		names  string // what the message must name
		hf     bool   // the message points to the hf engine
		change func(d map[string]any)
	}{
		{"another model", "/model/type", true, func(d map[string]any) { model(d)["type"] = "WordPiece" }},
		{"random ids", "/model/dropout", true, func(d map[string]any) { model(d)["dropout"] = 0.1 }},
		{"an unknown normalizer", "Precompiled", true, func(d map[string]any) { d["normalizer"] = map[string]any{"type": "Precompiled"} }},
		{"one inside a sequence", "/normalizer/normalizers/0", true, func(d map[string]any) {
			d["normalizer"] = map[string]any{"type": "Sequence", "normalizers": []any{map[string]any{"type": "Nmt"}}}
		}},
		{"an unknown pre-tokenizer", "UnicodeScripts", true, func(d map[string]any) { d["pre_tokenizer"] = map[string]any{"type": "UnicodeScripts"} }},
		{"a pattern beyond the matcher", "back", true, func(d map[string]any) {
			d["pre_tokenizer"] = map[string]any{"type": "Split", "pattern": map[string]any{"Regex": `(back)\1`}, "behavior": "Isolated", "invert": false}
		}},
		{"bytes spelled after characters without an origin", "ByteLevel after a Replace", true, func(d map[string]any) {
			d["normalizer"] = map[string]any{"type": "Replace", "pattern": map[string]any{"Regex": "x*"}, "content": "a"}
			d["pre_tokenizer"] = map[string]any{"type": "ByteLevel"}
		}},
		{"an unknown decoder", "CTC", true, func(d map[string]any) { d["decoder"] = map[string]any{"type": "CTC"} }},
		{"an unknown post-processor", "Nope", true, func(d map[string]any) { d["post_processor"] = map[string]any{"type": "Nope"} }},
		{"tokens that the reference takes at random", "spells alike", true, func(d map[string]any) {
			d["normalizer"] = map[string]any{"type": "Lowercase"}
			d["added_tokens"] = []any{map[string]any{"content": "<S>", "normalized": true}, map[string]any{"content": "<s>", "normalized": true}}
		}},
		{"a length of nothing", "length", false, func(d map[string]any) {
			d["pre_tokenizer"] = map[string]any{"type": "FixedLength", "length": 0}
		}},
		{"a merge of unknown parts", "merge 0", false, func(d map[string]any) { model(d)["merges"] = []any{[]any{"a", "x"}} }},
		{"a merge into nothing", "merge 0", false, func(d map[string]any) { model(d)["merges"] = []any{[]any{"b", "a"}} }},
		{"a merge of one part", "merge 0", false, func(d map[string]any) { model(d)["merges"] = []any{"ab"} }},
		{"no vocabulary", "vocab", false, func(d map[string]any) { delete(model(d), "vocab") }},
		{"a huge id", "/model/vocab", false, func(d map[string]any) { model(d)["vocab"] = map[string]any{"a": 999999999} }},
		{"no model", "model", false, func(d map[string]any) { delete(d, "model") }},
	} {
		_, err := bpe.Parse("t.json", small(c.change))
		require.ErrorIs(t, err, rollout.KindTokenizer, c.reason)
		require.Contains(t, err.Error(), c.names, c.reason)
		require.Contains(t, err.Error(), "t.json", c.reason)
		require.Equal(t, c.hf, strings.Contains(err.Error(), "hf engine"), "%s: %v", c.reason, err)
	}
}

// TestDamagedText: different kinds of invalid JSON have different messages.
func TestDamagedText(t *testing.T) {
	for definition, names := range map[string]string{
		"{\"model\":\"\xff\"}": "not valid UTF-8",
		"{\"model\":\"\xc3\"}": "not valid UTF-8",
		"{\"model\":\"\u00e9":  "byte 12",
		"[]":                   "it is no object",
	} {
		_, err := bpe.Parse("t.json", []byte(definition))
		require.ErrorIs(t, err, rollout.KindTokenizer)
		require.ErrorContains(t, err, names)
	}
}

// TestOddTables: duplicate entries in a vocabulary, and merges that follow neither its order nor each other.
func TestOddTables(t *testing.T) {
	for _, c := range []struct {
		reason, vocab, merges string
		text                  string
		ids                   []rollout.TokenID
	}{
		{"a spelling moves to its last id", `{"a":0,"b":1,"ab":2,"ab":3,"abb":4}`, `["a b","ab b"]`, "ababb", []rollout.TokenID{3, 4}},
		{"and back", `{"a":0,"b":1,"ab":2,"ab":3,"ab":2,"aba":3}`, `["a b","ab a"]`, "abab", []rollout.TokenID{2, 2}},
		{"products in any order", `{"a":0,"b":1,"abab":2,"ab":3,"ba":4}`, `["a b","b a","ab ab"]`, "ababa", []rollout.TokenID{2, 0}},
		{"a prefix within words", `{"a":0,"##b":1,"ab":2,"##a":3,"aba":4}`, `["a ##b","ab ##a"]`, "abab", []rollout.TokenID{4, 1}},
	} {
		definition := `{"model":{"type":"BPE","continuing_subword_prefix":` + map[bool]string{true: `"##"`, false: `null`}[strings.Contains(c.vocab, "#")] +
			`,"vocab":` + c.vocab + `,"merges":` + c.merges + `}}`
		tok, err := bpe.Parse("t.json", []byte(definition))
		require.NoError(t, err, c.reason)
		ids, err := appendIDs(tok, nil, c.text)
		require.NoError(t, err)
		require.Equal(t, c.ids, ids, c.reason)
	}
}

// TestRules compares ids and offsets with PyPI tokenizers 0.23.3 for rules that no published definition uses.
func TestRules(t *testing.T) {
	token := func(content string, special, rstrip bool) any {
		return map[string]any{"content": content, "special": special, "rstrip": rstrip, "normalized": false}
	}
	for _, c := range []struct {
		reason  string
		text    string
		ids     []rollout.TokenID
		offsets []int32
		change  func(d map[string]any)
	}{
		{"new tokens are numbered from the count of entries, not from the largest id", "<y>c<x>ab", []rollout.TokenID{5, 7, 4, 2}, []int32{0, 3, 3, 4, 4, 7, 7, 9}, func(d map[string]any) {
			model(d)["vocab"] = map[string]any{"a": 0, "b": 1, "ab": 2, "c": 7}
			d["added_tokens"] = []any{token("c", true, false), token("<x>", true, false), token("<y>", true, false)}
		}},
		{"of two tokens with one id the last counts", "<x>c", []rollout.TokenID{4}, []int32{3, 4}, func(d map[string]any) {
			model(d)["vocab"] = map[string]any{"a": 0, "b": 1, "ab": 2, "c": 4}
			d["added_tokens"] = []any{token("<x>", true, false), token("c", true, false)}
		}},
		{"of two tokens with one content the last counts", "<x> <y>", []rollout.TokenID{4, 5}, []int32{0, 3, 4, 7}, func(d map[string]any) {
			d["added_tokens"] = []any{token("<x>", true, true), token("<y>", true, false), token("<x>", false, false)}
		}},
		{"an empty match begins where its section does, and none follows a match", "<s>acb", []rollout.TokenID{4, 1, 2, 1, 1}, []int32{0, 3, 3, 3, 3, 5, 5, 6, 5, 6}, func(d map[string]any) {
			d["normalizer"] = map[string]any{"type": "Replace", "pattern": map[string]any{"Regex": "c*"}, "content": "b"}
		}},
		{"pieces of three characters", "aababb", []rollout.TokenID{0, 2, 2, 1}, []int32{0, 1, 1, 3, 3, 5, 5, 6}, func(d map[string]any) {
			d["pre_tokenizer"] = map[string]any{"type": "FixedLength", "length": 3}
		}},
		{"words and punctuation", "a ba,b", []rollout.TokenID{0, 1, 0, 1}, []int32{0, 1, 2, 3, 3, 4, 5, 6}, func(d map[string]any) {
			d["pre_tokenizer"] = map[string]any{"type": "BertPreTokenizer"}
		}},
	} {
		tok, err := bpe.Parse("t.json", small(c.change))
		require.NoError(t, err, c.reason)
		var e engine.Encoding
		require.NoError(t, tok.Encode(&e, c.text, engine.EncodeOptions{Offsets: true}))
		require.Equal(t, c.ids, e.IDs, c.reason)
		require.Equal(t, c.offsets, e.Offsets, c.reason)
	}
	tok, err := bpe.Parse("t.json", small(func(d map[string]any) {
		d["added_tokens"] = []any{token("<x>", true, false), token("<x>", false, false)}
	}))
	require.NoError(t, err)
	require.True(t, tok.Vocab().Added()[0].Special, "what was special once stays so")
}

// TestDecodersOfNothing compares with PyPI tokenizers 0.23.3: a sequence of no decoders leaves the tokens as they are,
// and only their absence joins them with spaces.
func TestDecodersOfNothing(t *testing.T) {
	sequence := func(of ...any) any { return map[string]any{"type": "Sequence", "decoders": of} }
	strip := map[string]any{"type": "Strip", "content": "c", "start": 1, "stop": 0}
	for want, decoder := range map[string]any{"c a c ab": nil, "cacab": sequence(sequence()), "aab": sequence(sequence(), strip)} {
		tok, err := bpe.Parse("t.json", small(func(d map[string]any) { d["decoder"] = decoder }))
		require.NoError(t, err)
		text, err := tok.Decode([]rollout.TokenID{3, 0, 3, 2})
		require.NoError(t, err)
		require.Equal(t, want, text)
	}
}

func TestMergeForms(t *testing.T) {
	pairs, err := bpe.Parse("pairs", small(nil))
	require.NoError(t, err)
	lines, err := bpe.Parse("lines", small(func(d map[string]any) { model(d)["merges"] = []any{"#version: 0.2", "a b"} }))
	require.NoError(t, err)
	for _, tok := range []engine.Tokenizer{pairs, lines} {
		ids, err := appendIDs(tok, nil, "abcab<s>")
		require.NoError(t, err)
		require.Equal(t, []rollout.TokenID{2, 3, 2, 4}, ids)
	}
	require.NotEqual(t, pairs.Digest(), lines.Digest(), "the digest is the file's")
}

func TestEveryPrefixFails(t *testing.T) {
	def := small(nil)
	for n := range def {
		_, err := bpe.Parse("cut", def[:n])
		require.ErrorIs(t, err, rollout.KindTokenizer, "%d bytes of %d", n, len(def))
	}
}

func TestTiktoken(t *testing.T) {
	kit.OneGoroutine(t)
	tok, err := bpe.LoadTiktokenFS(os.DirFS(kit.Fetched(t)), "llama3_tiktoken")
	if err != nil {
		t.Skip("SKIPPED FOR LACK OF A TOKENIZER: run internal/oracle/tokenizers.sh to fetch llama3_tiktoken")
	}
	json := load(t, "llama3")
	for c := range kit.Lines[struct{ Text string }](t, kit.Dir(t, "conformance", "tokenizers", "llama3.jsonl.gz")) {
		want, err := appendIDs(json, nil, c.Text)
		require.NoError(t, err)
		got, err := appendIDs(tok, nil, c.Text)
		require.NoError(t, err)
		require.Equal(t, want, got, "ranks and tokenizer.json of one model: %q", c.Text)
	}
}

func TestTiktokenRanksAreChecked(t *testing.T) {
	const kimi = `{"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer"]}}`
	for _, c := range []struct{ ranks, config, want string }{
		{"YQ== 0\n", kimi, "single byte"},
		{"YQ== 0\n", "{}", "pattern of these ranks is not known"},
		{"YQ== 0\nnonsense\n", kimi, "x/tiktoken.model:2"},
	} {
		_, err := bpe.LoadTiktokenFS(fstest.MapFS{"x/tiktoken.model": {Data: []byte(c.ranks)}, "x/tokenizer_config.json": {Data: []byte(c.config)}}, "x")
		require.ErrorContains(t, err, c.want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(small(nil), "abc <s>")
	f.Add(small(func(d map[string]any) {
		d["pre_tokenizer"] = map[string]any{"type": "Metaspace", "replacement": "c"}
		model(d)["byte_fallback"] = true
	}), "a b")
	f.Add(small(func(d map[string]any) {
		d["pre_tokenizer"] = map[string]any{"type": "Split", "pattern": map[string]any{"Regex": `a*?b|\s+(?!\S)`}, "behavior": "MergedWithNext"}
		d["normalizer"] = map[string]any{"type": "Sequence", "normalizers": []any{map[string]any{"type": "NFKD"}, map[string]any{"type": "StripAccents"}}}
		d["decoder"] = map[string]any{"type": "Strip", "content": "a", "start": 1, "stop": 1}
	}), "e\u0301 ab")
	f.Fuzz(func(t *testing.T, def []byte, text string) {
		var tok engine.Tokenizer
		var e engine.Encoding
		var err error
		kit.Within(t, 7*time.Second, 256<<20, func() { // patterns may take 3 s to load and 3 s to match
			if tok, err = bpe.Parse("fuzz", def); err == nil {
				err = tok.Encode(&e, text, engine.EncodeOptions{Offsets: true})
			}
		})
		if err != nil {
			return
		}
		if len(e.Offsets) != 2*len(e.IDs) {
			t.Fatalf("%d offsets for %d ids", len(e.Offsets), len(e.IDs))
		}
		if _, err := tok.Decode(e.IDs); err != nil {
			t.Fatalf("the ids of %q do not decode: %v", text, err)
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	kit.OneGoroutine(f)
	tok := load(f, "gptoss")
	f.Add("hello\x00 \u00e9e\u0301\n")
	f.Fuzz(func(t *testing.T, text string) {
		ids, err := appendIDs(tok, nil, text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tok.Decode(ids)
		if want := strings.ToValidUTF8(text, "\uFFFD"); err != nil || strings.ToValidUTF8(text, "") == text && got != want {
			t.Fatalf("%q comes back as %q, %v", text, got, err)
		}
	})
}
