package pretok

import (
	"fmt"
	"strings"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

const (
	folded     = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	upperClass = `\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}`
	lowerClass = `\p{Ll}\p{Lm}\p{Lo}\p{M}`
	tail       = `|\s*[\r\n]+|\s+(?!\S)|\s+`

	// GPT2Pattern is the split pattern of GPT-2, which ByteLevel applies itself.
	GPT2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

	// gpt2Possessive is tiktoken's spelling of GPT2Pattern.
	gpt2Possessive = `'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`

	deepseekNumbers = `\p{N}{1,3}`
	deepseekKana    = `[一-龥぀-ゟ゠-ヿ]+`
	deepseekWords   = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)

func wordsPattern(w words) string {
	letters, plus := `\p{L}`, `\p{L}+`
	if w.letters&uni.M != 0 {
		letters, plus = `\p{L}\p{M}`, `[\p{L}\p{M}]+`
	}
	tail := tail
	if w.final {
		tail = `|\s++$|\s*[\r\n]|\s+(?!\S)|\s`
	}
	return folded + `|[^\r\n\p{L}\p{N}]?` + plus + `|` + digitsPattern(w.digits) + `| ?[^\s` + letters + `\p{N}]+[\r\n]*` + tail
}

func digitsPattern(n int) string {
	switch n {
	case 0:
		return `\p{N}+`
	case 1:
		return `\p{N}`
	}
	return fmt.Sprintf(`\p{N}{1,%d}`, n)
}

func casedPattern(c cased) string {
	upper, lower, head, suffix, slash := "["+upperClass+"]", "["+lowerClass+"]", "", "", ""
	if c.han {
		upper, lower = "["+upperClass+`&&[^\p{Han}]]`, "["+lowerClass+`&&[^\p{Han}]]`
		head = `[\p{Han}]+|`
	}
	if c.suffix {
		suffix = folded + "?"
	}
	if c.slash {
		slash = "/"
	}
	front := `[^\r\n\p{L}\p{N}]?`
	return head + front + upper + "*" + lower + "+" + suffix + "|" + front + upper + "+" + lower + "*" + suffix +
		"|" + digitsPattern(c.digits) + `| ?[^\s\p{L}\p{N}]+[\r\n` + slash + `]*` + tail
}

// KnownOfTiktoken is Known for a pattern in Rust's syntax, in which {1,3}+ is a possessive repeat, not a repeated
// one.
func KnownOfTiktoken(u *uni.Tables, pattern string) Splitter {
	return Known(u, strings.ReplaceAll(pattern, `{1,3}+|`, `{1,3}|`))
}

// Known returns the scanner for a published pattern, recognised by its exact text, or nil.
func Known(u *uni.Tables, pattern string) Splitter {
	b := newBase(u)
	// Equivalent spellings.
	same := []string{`'(?i:[sdmt]|ll|ve|re)|`, folded + "|", `?+\p{L}++|`, `?\p{L}+|`, `]++[\r\n]*+|`, `]+[\r\n]*|`}
	pattern = strings.NewReplacer(same...).Replace(pattern)
	if pattern == GPT2Pattern || pattern == gpt2Possessive {
		return pieceScanner{&gpt2{b}}
	}
	for _, letters := range []uint16{uni.L, uni.L | uni.M} {
		for _, digits := range []int{0, 1, 2, 3} {
			for _, final := range []bool{false, true} {
				if w := (words{base: b, letters: letters, digits: digits, final: final}); wordsPattern(w) == pattern {
					return &scanner{pattern: &w, rules: rules{digits: digits, contraction: true}, lanes: newLanes(&b)}
				}
			}
		}
	}
	for mask := range 8 {
		for _, digits := range []int{0, 1, 2, 3} {
			c := cased{base: b, digits: digits, suffix: mask&1 != 0, slash: mask&2 != 0, han: mask&4 != 0}
			if casedPattern(c) == pattern {
				return &scanner{pattern: &c, rules: rules{digits: digits, cased: true, suffix: c.suffix, slash: c.slash}, lanes: newLanes(&b)}
			}
		}
	}
	return nil
}

// KnownSequence returns the scanner for several splits applied in turn, or nil.
func KnownSequence(u *uni.Tables, patterns []string) Splitter {
	if len(patterns) == 1 {
		return Known(u, patterns[0])
	}
	if len(patterns) == 3 && patterns[0] == deepseekNumbers && patterns[1] == deepseekKana && patterns[2] == deepseekWords {
		return pieceScanner{&deepseek{newBase(u)}}
	}
	return nil
}
