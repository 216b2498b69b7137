package bpe_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/bpe"
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

// TestHostileDefinitions: a few lines of tokenizer.json ask for gigabytes or for
// hours; each is a KindTokenizer error, at load or at the text that would take
// them, after less than 3 s and 256 MB.
func TestHostileDefinitions(t *testing.T) {
	literal := func(s string) map[string]any { return map[string]any{"String": s} }
	regex := func(s string) map[string]any { return map[string]any{"Regex": s} }
	sequence := func(key string, list []any) any { return map[string]any{"type": "Sequence", key: list} }
	normalizer := func(n any) func(d map[string]any) { return func(d map[string]any) { d["normalizer"] = n } }
	pre := func(n any) func(d map[string]any) { return func(d map[string]any) { d["pre_tokenizer"] = n } }
	letters := strings.Repeat("a", 1000)
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
		{"added tokens of many megabytes", "a", func(d map[string]any) {
			d["added_tokens"] = []any{map[string]any{"content": strings.Repeat("x", 8<<20)}}
		}},
	} {
		t.Run(c.attack, func(t *testing.T) {
			definition := small(c.change)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			tok, err := bpe.Parse("hostile", definition)
			if err == nil {
				_, err = tok.AppendIDs(nil, c.text)
			}
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, rollout.KindTokenizer)
			require.Less(t, len(err.Error()), 1000, "the message quotes no more than it needs")
			require.Less(t, took, 3*time.Second, "%v", err)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<20), "%v", err)
		})
	}
}

// TestHostileDecoders: the same for what tokens become.
func TestHostileDecoders(t *testing.T) {
	double := map[string]any{"type": "Replace", "pattern": map[string]any{"String": "a"}, "content": "aa"}
	for attack, decoder := range map[string]any{
		"each letter doubled forty times":   map[string]any{"type": "Sequence", "decoders": repeated(40, double)},
		"each letter by a megabyte":         map[string]any{"type": "Replace", "pattern": map[string]any{"String": "a"}, "content": strings.Repeat("b", 1<<20)},
		"a space after each letter":         map[string]any{"type": "Sequence", "decoders": repeated(40, map[string]any{"type": "BPEDecoder", "suffix": ""})},
		"decoders without end":              map[string]any{"type": "Sequence", "decoders": repeated(1000, double)},
		"backtracking in what a token says": map[string]any{"type": "Sequence", "decoders": []any{map[string]any{"type": "Fuse"}, map[string]any{"type": "Replace", "pattern": map[string]any{"Regex": "(a|aa)+b$"}, "content": ""}}},
	} {
		t.Run(attack, func(t *testing.T) {
			start := time.Now()
			tok, err := bpe.Parse("hostile", small(func(d map[string]any) { d["decoder"] = decoder }))
			if err == nil {
				_, err = tok.Decode(make([]rollout.TokenID, 1000))
			}
			require.ErrorIs(t, err, rollout.KindTokenizer)
			require.Less(t, time.Since(start), 3*time.Second)
		})
	}
}

// TestOrdinaryGrowth: what published components do is far within the bound.
func TestOrdinaryGrowth(t *testing.T) {
	tok, err := bpe.Parse("ordinary", small(func(d map[string]any) {
		d["normalizer"] = map[string]any{"type": "Sequence", "normalizers": []any{
			map[string]any{"type": "Prepend", "prepend": "\u2581"},
			replace(map[string]any{"String": " "}, "\u2581"), map[string]any{"type": "NFKD"}, map[string]any{"type": "ByteLevel"}}}
	}))
	require.NoError(t, err)
	for _, text := range []string{strings.Repeat(" ", 1<<16), strings.Repeat("\ud55c", 1<<16), fmt.Sprintf("%s<s>", strings.Repeat("\ufdfa", 1000))} {
		_, err := tok.AppendIDs(nil, text)
		require.NoError(t, err)
	}
}
