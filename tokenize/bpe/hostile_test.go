package bpe_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/bpe"
	"github.com/turnpack/turnpack/tokenize/engine"
)

func replace(pattern map[string]any, content string) any {
	return map[string]any{"type": "Replace", "pattern": pattern, "content": content}
}

func repeated(n int, part any) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = part
	}
	return list
}

// TestHostileDefinitions: a few lines of tokenizer.json can ask for gigabytes or hours. Each is a KindTokenizer
// error, at load or when encoding, within 4 s of processor time and 256 MB. The longest cases run only with
// TURNPACK_LIMITS=full.
func TestHostileDefinitions(t *testing.T) {
	kit.OneGoroutine(t)
	literal := func(s string) map[string]any { return map[string]any{"String": s} }
	regex := func(s string) map[string]any { return map[string]any{"Regex": s} }
	sequence := func(key string, list []any) any { return map[string]any{"type": "Sequence", key: list} }
	normalizer := func(n any) func(d map[string]any) { return func(d map[string]any) { d["normalizer"] = n } }
	pre := func(n any) func(d map[string]any) { return func(d map[string]any) { d["pre_tokenizer"] = n } }
	added := func(n int, token func(i int) any) func(d map[string]any) {
		return func(d map[string]any) {
			list := make([]any, n)
			for i := range list {
				list[i] = token(i)
			}
			d["added_tokens"] = list
		}
	}
	letters := strings.Repeat("a", 1000)
	long := map[string]bool{"added tokens that each backtrack a little": true, "pieces that each backtrack a little": true, "some backtracking in each of many sections": true,
		"replaces in a row that each backtrack": true, "backtracking in a Replace": true}
	for _, c := range []struct {
		attack, text string
		change       func(d map[string]any)
	}{
		{"each letter doubled forty times", "a", normalizer(sequence("normalizers", repeated(40, replace(literal("a"), "aa"))))},
		{"each letter replaced by a megabyte", letters, normalizer(replace(literal("a"), strings.Repeat("b", 1<<20)))},
		{"the same by a pattern", letters, normalizer(replace(regex("a|c"), strings.Repeat("b", 1<<20)))},
		{"text put in at every place", letters, normalizer(sequence("normalizers", repeated(20, replace(regex("x*"), "yy"))))},
		{"something put before, over and over", "a", normalizer(sequence("normalizers", repeated(200, map[string]any{"type": "Prepend", "prepend": strings.Repeat("b", 1<<12)})))},
		{"bytes spelled as characters that are spelled again", "\u00e9", normalizer(sequence("normalizers", repeated(40, map[string]any{"type": "ByteLevel"})))},
		{"the same in a pre-tokenizer", "\u00e9", pre(sequence("pretokenizers", repeated(40, map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})))},
		{"compatibility forms of forms", strings.Repeat("\ufdfa", 1<<16), normalizer(sequence("normalizers", []any{replace(literal("\ufdfa"), "\ufdfa\ufdfa\ufdfa"), map[string]any{"type": "NFKD"}}))},
		{"a mark before each piece, over and over", letters, pre(sequence("pretokenizers", append([]any{map[string]any{"type": "FixedLength", "length": 1}},
			slices.Repeat([]any{map[string]any{"type": "Metaspace", "replacement": "b"}, map[string]any{"type": "Metaspace", "replacement": "c"}}, 50)...)))},
		{"an added token that grows", "a", func(d map[string]any) {
			normalizer(sequence("normalizers", repeated(40, replace(literal("b"), "bb"))))(d)
			d["added_tokens"] = []any{map[string]any{"content": "b", "normalized": true}}
		}},
		{"many sections that each grow by what one may", strings.Repeat("a<s>", 1<<14), normalizer(replace(literal("a"), strings.Repeat("b", 1<<12)))},
		{"components without end", "a", normalizer(sequence("normalizers", repeated(1000, map[string]any{"type": "Lowercase"})))},
		{"components inside each other", "a", func(d map[string]any) {
			var n any = map[string]any{"type": "Lowercase"}
			for range 400 {
				n = sequence("normalizers", []any{n})
			}
			d["normalizer"] = n
		}},
		{"backtracking in a Split", strings.Repeat("a", 40) + "!", pre(map[string]any{"type": "Split", "pattern": regex("(a+b?)+$"), "behavior": "Isolated"})},
		{"backtracking in a Replace", strings.Repeat("a", 40) + "!", normalizer(replace(regex("(a|aa)+$"), "b"))},
		{"backtracking from every place", strings.Repeat("a", 1<<20), pre(map[string]any{"type": "Split", "pattern": regex("a*b"), "behavior": "Isolated"})},
		{"some backtracking in each of many sections", strings.Repeat(strings.Repeat("a", 30)+"!<s>", 4096), pre(map[string]any{"type": "Split", "pattern": regex("(a|aa)+$"), "behavior": "Isolated"})},
		{"a pattern of many classes", "a", pre(map[string]any{"type": "Split", "pattern": regex(strings.Repeat(`\p{L}`, 1e5)), "behavior": "Isolated"})},
		{"pieces that each backtrack a little", strings.Repeat(strings.Repeat("a", 24)+"!", 1<<13), pre(sequence("pretokenizers", []any{
			map[string]any{"type": "FixedLength", "length": 25}, map[string]any{"type": "Split", "pattern": regex("(a|aa)+$"), "behavior": "Isolated"}}))},
		{"replaces in a row that each backtrack", strings.Repeat("a", 27) + "!", normalizer(sequence("normalizers", repeated(200, replace(regex("(a|aa)+b"), "b"))))},
		{"sequences around megabytes", "a", func(d map[string]any) {
			n := replace(literal("q"), strings.Repeat("b", 1<<21))
			for range 200 {
				n = sequence("normalizers", []any{n})
			}
			d["normalizer"] = n
		}},
		{"a component of many megabytes", "a", normalizer(replace(literal("q"), strings.Repeat("b", 5<<20)))},
		{"a pattern of many alternatives", letters, pre(map[string]any{"type": "Split", "pattern": regex(strings.Repeat("aaaaaaaab|", 1e5) + "x"), "behavior": "Isolated"})},
		{"a pattern of many signs", letters, pre(map[string]any{"type": "Split", "pattern": regex("a" + strings.Repeat("{1,2}", 1e5)), "behavior": "Isolated"})},
		{"groups in groups", "a", pre(map[string]any{"type": "Split", "pattern": regex(strings.Repeat("(?=", 1000) + "a" + strings.Repeat(")", 1000)), "behavior": "Isolated"})},
		{"added tokens that begin with each other", letters, added(2800, func(i int) any { return map[string]any{"content": strings.Repeat("a", i+2), "normalized": i%2 == 0} })},
		{"the same as they are normalized", letters, func(d map[string]any) {
			normalizer(replace(regex("b+"), ""))(d)
			added(600, func(i int) any {
				return map[string]any{"content": fmt.Sprintf("%sb", strings.Repeat("a", i+2)), "normalized": true}
			})(d)
		}},
		{"a long added token", letters, added(1, func(int) any { return map[string]any{"content": strings.Repeat("a", 1<<20) + "b"} })},
		{"added tokens that each backtrack a little", "a", func(d map[string]any) {
			normalizer(replace(regex("(a|aa)+b"), "b"))(d)
			added(1<<13, func(i int) any {
				return map[string]any{"content": fmt.Sprintf("%s%d", strings.Repeat("a", 22), i), "normalized": true}
			})(d)
		}},
		{"a suffix of a megabyte for each word", letters, func(d map[string]any) { model(d)["end_of_word_suffix"] = strings.Repeat(" ", 1<<20) }},
		{"an unknown token of a megabyte", letters, func(d map[string]any) {
			model(d)["vocab"].(map[string]any)[strings.Repeat(" ", 1<<20)] = 5
			model(d)["unk_token"] = strings.Repeat(" ", 1<<20)
		}},
		{"added tokens of many megabytes", "a", func(d map[string]any) {
			d["added_tokens"] = []any{map[string]any{"content": strings.Repeat("x", 8<<20)}}
		}},
	} {
		t.Run(c.attack, func(t *testing.T) {
			if long[c.attack] && os.Getenv("TURNPACK_LIMITS") != "full" {
				t.Skip("SKIPPED: takes seconds; set TURNPACK_LIMITS=full")
			}
			definition := small(c.change)
			var err error
			var before, after runtime.MemStats
			took := kit.LeastCPU(t, 4*time.Second, func() {
				runtime.ReadMemStats(&before)
				var tok engine.Tokenizer
				if tok, err = bpe.Parse("hostile", definition); err == nil {
					_, err = appendIDs(tok, nil, c.text)
				}
				runtime.ReadMemStats(&after)
			})
			require.ErrorIs(t, err, rollout.KindTokenizer)
			require.Less(t, len(err.Error()), 1000, "the message quotes no more than it needs")
			t.Logf("%6v %4d MB %s: %.90v", took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20, c.attack, err)
			require.Less(t, took, 4*time.Second, "%v", err)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<20), "%v", err)
		})
	}
}

// TestHostileDecoders is TestHostileDefinitions for decoders.
func TestHostileDecoders(t *testing.T) {
	kit.OneGoroutine(t)
	double := map[string]any{"type": "Replace", "pattern": map[string]any{"String": "a"}, "content": "aa"}
	for attack, decoder := range map[string]any{
		"each letter doubled forty times":     map[string]any{"type": "Sequence", "decoders": repeated(40, double)},
		"each letter by a megabyte":           map[string]any{"type": "Replace", "pattern": map[string]any{"String": "a"}, "content": strings.Repeat("b", 1<<20)},
		"a space after each letter":           map[string]any{"type": "Sequence", "decoders": repeated(40, map[string]any{"type": "BPEDecoder", "suffix": ""})},
		"backtracking in each of many tokens": map[string]any{"type": "Replace", "pattern": map[string]any{"Regex": "(x|xx)+b$"}, "content": ""},
		"decoders without end":                map[string]any{"type": "Sequence", "decoders": repeated(1000, double)},
		"backtracking in what a token says":   map[string]any{"type": "Sequence", "decoders": []any{map[string]any{"type": "Fuse"}, map[string]any{"type": "Replace", "pattern": map[string]any{"Regex": "(a|aa)+b$"}, "content": ""}}},
	} {
		t.Run(attack, func(t *testing.T) {
			took := kit.LeastCPU(t, 4*time.Second, func() {
				tok, err := bpe.Parse("hostile", small(func(d map[string]any) {
					d["decoder"] = decoder
					model(d)["vocab"] = map[string]any{"a": 0, "b": 1, "ab": 2, "c": 3, strings.Repeat("x", 24): 4}
				}))
				if err == nil {
					ids := make([]rollout.TokenID, 1000)
					if strings.HasSuffix(attack, "of many tokens") {
						ids = slices.Repeat([]rollout.TokenID{4}, 1000)
					}
					_, err = tok.Decode(ids)
				}
				require.ErrorIs(t, err, rollout.KindTokenizer)
			})
			require.Less(t, took, 4*time.Second)
		})
	}
}

// TestOrdinaryGrowth: published components stay far within the bound.
func TestOrdinaryGrowth(t *testing.T) {
	kit.OneGoroutine(t)
	tok, err := bpe.Parse("ordinary", small(func(d map[string]any) {
		d["normalizer"] = map[string]any{"type": "Sequence", "normalizers": []any{
			map[string]any{"type": "Prepend", "prepend": "\u2581"},
			replace(map[string]any{"String": " "}, "\u2581"), map[string]any{"type": "NFKD"}, map[string]any{"type": "ByteLevel"}}}
	}))
	require.NoError(t, err)
	for _, text := range []string{strings.Repeat(" ", 1<<16), strings.Repeat("\ud55c", 1<<16), fmt.Sprintf("%s<s>", strings.Repeat("\ufdfa", 1000))} {
		_, err := appendIDs(tok, nil, text)
		require.NoError(t, err)
	}
}
