package pretok

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/tokenize/bpe/internal/norm"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/rx"
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// published are the split patterns with scanners, by model family.
var published = []publishedPattern{
	{"gpt2", false, []string{GPT2Pattern}},
	{"gpt2 in tiktoken", true, []string{gpt2Possessive}},
	{"cl100k in tiktoken", true, []string{`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`}},
	{"llama3, glm4", false, []string{wordsPattern(words{letters: uni.L, digits: 3})}},
	{"qwen2, qwen2.5, qwen3", false, []string{wordsPattern(words{letters: uni.L, digits: 1})}},
	{"qwen3.5", false, []string{wordsPattern(words{letters: uni.L | uni.M, digits: 1})}},
	{"all digits", false, []string{wordsPattern(words{letters: uni.L})}},
	{"o200k, gpt-oss", false, []string{casedPattern(cased{digits: 3, suffix: true, slash: true})}},
	{"tekken", false, []string{casedPattern(cased{digits: 1, slash: true})}},
	{"kimi", true, []string{casedPattern(cased{digits: 3, suffix: true, han: true})}},
	{"deepseek v3", false, []string{deepseekNumbers, deepseekKana, deepseekWords}},
}

type publishedPattern struct {
	family   string
	rust     bool // in the syntax of tiktoken
	patterns []string
}

func (p *publishedPattern) scanner(u *uni.Tables) Splitter {
	if p.rust {
		return KnownOfTiktoken(u, p.patterns[0])
	}
	return KnownSequence(u, p.patterns)
}

// parts are strings that patterns distinguish; random texts consist of them.
var parts = []string{
	" ", "  ", "\n", "\r", "\r\n", "\t", "\u00a0", "\u3000", "\u0085", "\v", "a", "Z", "the", "The", "iPhone", "HTTP", "\u01c5", "\u02b0", "\u00aa", "\u00df",
	"\u0301", "\u0488", "\u0903", "1", "42", "12345", "\u00b2", "\u0661", "\u2167", "'", "'s", "'S", "'\u017f", "'re", "'LL", "'d", "''", "'x", "!", "/", "//\n", "\u3002", "$", "+", "\u20ac",
	"\u4f60", "\u597d\u5417", "\u3007", "\u3005", "\u2e80", "\u3042", "\u30a2", "\u30fb", "\u309b", "\ud55c", "\U0001F468", "\u200d", "\uFE0F", "\u0000", "\u0007", "\uFFFD", "\U000E0001", "\u0378", "\U00020000", "\u9fa6", "_", "<|", "camelCaseWord", "abcdefgh", "abcdefghi", "ABCDEFGHij", "x'sy", "word'S ",
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(30) {
		if r.IntN(6) == 0 {
			b.WriteRune(rune(r.IntN(utf8.MaxRune)))
		} else {
			b.WriteString(parts[r.IntN(len(parts))])
		}
	}
	return b.String()
}

func pieces(s Splitter, text string) []string {
	var out []string
	for i := 0; i < len(text); {
		j := s.Next([]byte(text), i)
		out = append(out, text[i:j])
		i = j
	}
	return out
}

// byRegexp cuts text with the general matcher, as for an unknown pattern.
func byRegexp(t testing.TB, u *uni.Tables, patterns []*rx.Regexp, text string) []string {
	in := []norm.Text{{Buf: []byte(text)}}
	for _, re := range patterns {
		var out []norm.Text
		for i := range in {
			var err error
			out, err = Split(re, Isolated, false)(u, out, &in[i])
			require.NoError(t, err)
		}
		in = out
	}
	var out []string
	for _, x := range in {
		out = append(out, string(x.Buf))
	}
	return out
}

func compile(t testing.TB, u *uni.Tables, patterns []string, rust bool) (all []*rx.Regexp) {
	for _, p := range patterns {
		if rust { // its name in the engine of Hugging Face tokenizers
			p = strings.ReplaceAll(p, `\p{N}{1,3}+`, `(?>\p{N}{1,3})`)
		}
		re, err := rx.Compile(u, p)
		require.NoError(t, err)
		all = append(all, re)
	}
	return all
}

// TestScannersEqualRegexp: each scanner cuts as the general matcher does with the pattern.
func TestScannersEqualRegexp(t *testing.T) {
	u := uni.Load()
	for _, p := range published {
		t.Run(p.family, func(t *testing.T) {
			s := p.scanner(u)
			require.NotNil(t, s, "the pattern is recognised")
			all := compile(t, u, p.patterns, p.rust)
			r := rand.New(rand.NewPCG(1, 2))
			for range 3000 {
				text := randomText(r)
				require.Equal(t, byRegexp(t, u, all, text), pieces(s, text), "seed 1,2: %q", text)
			}
		})
	}
}

// TestEndsEqualNext: cutting by blocks gives the pieces of cutting one by one, for long, mostly ASCII texts and any
// size of the buffer.
func TestEndsEqualNext(t *testing.T) {
	u := uni.Load()
	var plain []string
	for _, p := range append([]string{"(", ")", "(x", " (", "\t(", " \n ", "\n\t\t", "\n\n", ");\n", "}\n", "\n/", "//", "'T", "'r", "'ve ", " '", "\t'm", "X", "aB", "don't", "0", "1234567"}, parts...) {
		if p[0] < utf8.RuneSelf {
			plain = append(plain, p)
		}
	}
	for _, p := range published {
		s := p.scanner(u)
		r := rand.New(rand.NewPCG(3, 4))
		for range 3000 {
			var text []byte
			few := 1 + r.IntN(len(plain))
			for range r.IntN(120) {
				if r.IntN(40) == 0 {
					text = append(text, parts[r.IntN(len(parts))]...)
				} else {
					text = append(text, plain[r.IntN(few)]...)
				}
			}
			r.Shuffle(len(plain), func(i, j int) { plain[i], plain[j] = plain[j], plain[i] })
			var got []string
			room := make([]int32, 0, 2+r.IntN(300))
			for i := 0; i < len(text); {
				ends := s.Ends(room, text, i)
				require.NotEmpty(t, ends)
				for _, end := range ends {
					got = append(got, string(text[i:end]))
					i = int(end)
				}
			}
			require.Equal(t, pieces(s, string(text)), got, "%s: %q", p.family, text)
		}
	}
}

// TestKnownPatternsLeaveNoGap: every behaviour that handles matches one by one gives the same pieces.
func TestKnownPatternsLeaveNoGap(t *testing.T) {
	u := uni.Load()
	for _, p := range published {
		if len(p.patterns) > 1 {
			continue
		}
		s, re := p.scanner(u), compile(t, u, p.patterns, p.rust)[0]
		r := rand.New(rand.NewPCG(7, 8))
		for range 300 {
			text := randomText(r)
			for _, split := range []struct {
				behavior Behavior
				invert   bool
			}{{Removed, true}, {MergedWithPrevious, false}, {MergedWithPrevious, true}, {MergedWithNext, false}, {MergedWithNext, true}} {
				parts, err := Split(re, split.behavior, split.invert)(u, nil, &norm.Text{Buf: []byte(text)})
				require.NoError(t, err)
				var got []string
				for _, x := range parts {
					got = append(got, string(x.Buf))
				}
				require.Equal(t, pieces(s, text), got, "%s, %d %v: %q", p.family, split.behavior, split.invert, text)
			}
		}
	}
}

// TestMatcherEqualsRegexp2 compares the matcher with an independent engine, for the part of Unicode on which their
// tables agree.
func TestMatcherEqualsRegexp2(t *testing.T) {
	u := uni.Load()
	patterns := []string{
		wordsPattern(words{letters: uni.L, digits: 3}), casedPattern(cased{digits: 1}), GPT2Pattern, `\s+`, `(a|b|[cd])+e`, `(?<=\s)\S+`, `x*`,
		`(?:ab){2,3}`, `(?>ab|a)c`, `[a-f]+?\d`, `\bthe\b`, `a{2}|b{0,2}c`, `(?=[A-Z]).`, `[^\S\n]+`,
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, p := range patterns {
		ours, err := rx.Compile(u, p)
		require.NoError(t, err)
		theirs := regexp2.MustCompile(p, regexp2.None)
		for range 400 {
			var b strings.Builder
			for range r.IntN(30) {
				b.WriteString([]string{"a", "b", "ab", "c", "d", "e", "the", " ", "\n", "X", "1", "23", "'s", "!", "x", "\u00e9", "\u4f60"}[r.IntN(17)])
			}
			text := b.String()
			got, err := ours.All([]byte(text), nil)
			require.NoError(t, err)
			var want [][2]int
			at := func(runes int) int { return len(string([]rune(text)[:runes])) }
			last := -1
			for m, err := theirs.FindStringMatch(text); m != nil; m, err = theirs.FindNextMatch(m) {
				require.NoError(t, err)
				x := [2]int{at(m.Index), at(m.Index + m.Length)}
				if x[0] != x[1] || x[0] != last { // an empty match after a match does not count
					want = append(want, x)
				}
				last = x[1]
			}
			require.Equal(t, want, got, "%s on %q", p, text)
		}
	}
}

// TestFractionsInBrackets: in Oniguruma, "¹" matches both \w and [^\w].
func TestFractionsInBrackets(t *testing.T) {
	re, err := rx.Compile(uni.Load(), `\w+|[^\w\s]+`)
	require.NoError(t, err)
	matches, err := re.All([]byte("¢¹V ¹V"), nil)
	require.NoError(t, err)
	require.Equal(t, [][2]int{{0, 4}, {4, 5}, {6, 9}}, matches)
}

// TestCaseInsensitive checks the matches of the reference (Oniguruma in tokenizers 0.23.3): a property alone ignores
// case folding, in brackets its case variants count.
func TestCaseInsensitive(t *testing.T) {
	for _, c := range []struct{ pattern, text, want string }{
		{`(?i:\p{Lu})`, "aAb", "A"},
		{`(?i:\P{Lu})`, "aA1", "a1"},
		{`(?i:[^a])`, "aAbB", "bB"},
		{`(?i:[s])`, "sSſk", "sSſ"},
		{`(?i:[^s])`, "sSſk", "k"},
		{`(?i:\x6B)`, "kK\u212a", "kK\u212a"},
		{`(?i:[a-f&&[^c]])`, "aAcCfF", "aAfF"},
		{`(?i:[^\s\d]|\.)`, "a. 1", "a."},
		{`(?i:\w.)`, "aß!", "aß"},
	} {
		re, err := rx.Compile(uni.Load(), c.pattern)
		require.NoError(t, err, c.pattern)
		matches, err := re.All([]byte(c.text), nil)
		require.NoError(t, err)
		got := ""
		for _, m := range matches {
			got += c.text[m[0]:m[1]]
		}
		require.Equal(t, c.want, got, "%s on %q", c.pattern, c.text)
	}
}

func TestRefusedPatterns(t *testing.T) {
	for pattern, reason := range map[string]string{
		`(?i)straSS`: "ss folds to a single letter", `(?i:\u00e9)`: "case outside ASCII",
		`(?i)s(?:s)`: "neighbours join across a group", `(?i:[^\p{Lu}])`: "case outside ASCII, in a class", `(?i:[ß])`: "also matches ss", `(a)\1`: "a back reference", `[[:alpha:]]`: "a POSIX class",
		`(a*)*`: "a loop that can be empty", `a{2,1}`: "a count", `(?<n>a)`: "a named group", `(`: "not closed", `[a`: "not closed", `\p{Nope}`: "no such class",
		`(?<=a+)b`: "look-behind of varying width", `*a`: "nothing to repeat", `\Q`: "an unknown escape", strings.Repeat("(", 300): "too deep",
		strings.Repeat(`\pL`, 2000): "a letter that is no class in Oniguruma", strings.Repeat(`\p{L}`, 2000): "too big",
	} {
		_, err := rx.Compile(uni.Load(), pattern)
		require.Error(t, err, reason)
	}
}

func FuzzScanners(f *testing.F) {
	u := uni.Load()
	for _, p := range parts {
		f.Add(uint8(len(p)), "The quick "+p+" fox's\n\n"+p)
	}
	var all [][]*rx.Regexp
	var scanners []Splitter
	for _, p := range published {
		all = append(all, compile(f, u, p.patterns, p.rust))
		scanners = append(scanners, p.scanner(u))
	}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		text = strings.ToValidUTF8(text, "\uFFFD")
		k := int(which) % len(published)
		want := byRegexp(t, u, all[k], text)
		if got := pieces(scanners[k], text); !slices.Equal(got, want) {
			t.Fatalf("%s: %q, want %q", published[k].family, got, want)
		}
	})
}
