package py

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/pytext"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// upperRune returns the full upper case of a character, which may be several characters.
func upperRune(r rune) string {
	if r < 0x80 {
		if r >= 'a' && r <= 'z' {
			return string(r - 32)
		}
		return string(r)
	}
	return cases.Upper(language.Und).String(string(r))
}

func titleRune(r rune) string {
	if r < 0x80 {
		return upperRune(r)
	}
	return cases.Title(language.Und, cases.NoLower).String(string(r))
}

func lowerRune(r rune) string {
	if r < 0x80 {
		if r >= 'A' && r <= 'Z' {
			return string(r + 32)
		}
		return string(r)
	}
	if r == 'İ' {
		return "i̇"
	}
	return string(unicode.ToLower(r))
}

// lowerAt is lowerRune for the character of s at byte at, with the rule for the final sigma.
func lowerAt(s string, at int, r rune) string {
	if r != 'Σ' {
		return lowerRune(r)
	}
	if cased(s[:at], true) && !cased(s[at+len("Σ"):], false) {
		return "ς"
	}
	return "σ"
}

// cased reports whether the nearest character that is not case-ignorable is cased.
func cased(s string, fromEnd bool) bool {
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		if fromEnd {
			r, n = utf8.DecodeLastRuneInString(s)
			s = s[:len(s)-n]
		} else {
			s = s[n:]
		}
		if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) || strings.ContainsRune("'.:^`’", r) {
			continue
		}
		return isCased(r)
	}
	return false
}

// Case is a property of more than letters: of ª and Ⅷ and ⓐ, too.
func isLower(r rune) bool { return unicode.IsLower(r) || unicode.Is(unicode.Other_Lowercase, r) }
func isUpper(r rune) bool { return unicode.IsUpper(r) || unicode.Is(unicode.Other_Uppercase, r) }
func isCased(r rune) bool { return isLower(r) || isUpper(r) || unicode.IsTitle(r) }

// Upper implements str.upper.
func Upper(s *value.Str, l *value.Limits) *value.Str {
	return Map(s, l, func(_ int, r rune) string { return upperRune(r) })
}

// Lower implements str.lower.
func Lower(s *value.Str, l *value.Limits) *value.Str {
	return Map(s, l, func(at int, r rune) string { return lowerAt(s.S, at, r) })
}

// Casefold implements str.casefold.
func Casefold(s *value.Str, l *value.Limits) *value.Str {
	fold := cases.Fold()
	return Map(s, l, func(_ int, r rune) string {
		switch {
		case r < 0x80:
			return lowerRune(r)
		case r >= 'Ꭰ' && r <= 'Ᏽ': // Cherokee folds to upper case, which package cases does for the small letters only
			return string(r)
		}
		return fold.String(string(r))
	})
}

// Capitalize implements str.capitalize.
func Capitalize(s *value.Str, l *value.Limits) *value.Str {
	return Map(s, l, func(at int, r rune) string {
		if at == 0 {
			return titleRune(r)
		}
		return lowerAt(s.S, at, r)
	})
}

// SwapCase implements str.swapcase.
func SwapCase(s *value.Str, l *value.Limits) *value.Str {
	return Map(s, l, func(at int, r rune) string {
		switch {
		case isUpper(r):
			return lowerAt(s.S, at, r)
		case isLower(r):
			return upperRune(r)
		}
		return string(r)
	})
}

// Title implements str.title: a letter starts a word after any uncased character.
func Title(s *value.Str, l *value.Limits) *value.Str {
	inWord := false
	return Map(s, l, func(at int, r rune) string {
		out := titleRune(r)
		if inWord {
			out = lowerAt(s.S, at, r)
		}
		inWord = isCased(r)
		return out
	})
}

// TitleWords implements the title filter. Unlike in Title, a word starts after one of - ( { [ < or white space.
func TitleWords(s *value.Str, l *value.Limits) *value.Str {
	breaks := func(r rune) bool { return strings.ContainsRune("-({[<", r) || pytext.IsSpace(r) }
	start := true
	word := 0 // byte at which the lower-cased rest of the word starts
	return Map(s, l, func(at int, r rune) string {
		if start || breaks(r) {
			start = breaks(r)
			word = at + len(string(r))
			return upperRune(r)
		}
		end := len(s.S)
		if r == 'Σ' { // its form depends on the rest of the word
			if !l.Spend(64 * min(end-at, 1<<20)) {
				return string(r)
			}
			if n := strings.IndexFunc(s.S[at:], breaks); n >= 0 {
				end = at + n
			}
		}
		return lowerAt(s.S[word:end], at-word, r)
	})
}

// runeTests are the is… methods of str that test each character; empty is the result for an empty string.
var runeTests = map[string]struct {
	each  func(r rune) bool
	empty bool
}{
	"isalpha":     {unicode.IsLetter, false},
	"isdecimal":   {unicode.IsDigit, false},
	"isdigit":     {func(r rune) bool { return unicode.IsDigit(r) || strings.ContainsRune(digits, r) }, false},
	"isnumeric":   {func(r rune) bool { return unicode.IsNumber(r) || strings.ContainsRune(numerals, r) }, false},
	"isalnum":     {func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }, false},
	"isspace":     {pytext.IsSpace, false},
	"isascii":     {func(r rune) bool { return r < utf8.RuneSelf }, true},
	"isprintable": {unicode.IsPrint, true},
}

// Is implements the is… methods of str.
func Is(s *value.Str, l *value.Limits, method string) bool {
	l.Spend(16 * len(s.S))
	test, ok := runeTests[method]
	if s.S == "" {
		return test.empty
	}
	if ok {
		return strings.IndexFunc(s.S, func(r rune) bool { return !test.each(r) }) < 0
	}
	switch method {
	case "isidentifier":
		for i, r := range s.S {
			start := (r == '_' || unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start)) && !strings.ContainsRune(notStart, r)
			if !start && (i == 0 || !unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue) && !strings.ContainsRune(onlyContinue, r)) {
				return false
			}
		}
		return true
	case "istitle":
		return titled(s.S)
	}
	upper := method == "isupper"
	seen := false
	for _, r := range s.S {
		if unicode.IsTitle(r) || upper && isLower(r) || !upper && isUpper(r) {
			return false
		}
		seen = seen || isCased(r)
	}
	return seen
}

// titled implements str.istitle.
func titled(s string) bool {
	seen, inWord := false, false
	for _, r := range s {
		capital := isUpper(r) || unicode.IsTitle(r)
		cased := capital || isLower(r)
		if cased && capital == inWord {
			return false
		}
		seen, inWord = seen || cased, cased
	}
	return seen
}

const (
	// digits are Python's digits that are not decimal, numerals its numeric letters.
	digits   = "²³¹፩፪፫፬፭፮፯፰፱᧚⁰⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉①②③④⑤⑥⑦⑧⑨⑴⑵⑶⑷⑸⑹⑺⑻⑼⒈⒉⒊⒋⒌⒍⒎⒏⒐⓪⓵⓶⓷⓸⓹⓺⓻⓼⓽⓿❶❷❸❹❺❻❼❽❾➀➁➂➃➄➅➆➇➈➊➋➌➍➎➏➐➑➒𐩀𐩁𐩂𐩃𐹠𐹡𐹢𐹣𐹤𐹥𐹦𐹧𐹨𑁒𑁓𑁔𑁕𑁖𑁗𑁘𑁙𑁚🄀🄁🄂🄃🄄🄅🄆🄇🄈🄉🄊"
	numerals = "㐅㒃㠪㭍一七万三九二五亖亿什仟仨伍佰億兆兩八六十千卄卅卌叁参參叄四壱壹幺廾廿弌弍弎弐拾捌柒漆玖百肆萬貮貳贰阡陆陌陸零\uf96b\uf973\uf978\uf9b2\uf9d1\uf9d3\uf9fd𠀁𠁤𠃢𠄡𠤪𠦃𠦌𠦜𠫪𠫽𠬙𢎐𢦘𣬛𦉭\U0002f890"
	// notStart are letters that no identifier begins with; onlyContinue of them may follow.
	notStart     = onlyContinue + "\u037a\u2e2f\ufc5e\ufc5f\ufc60\ufc61\ufc62\ufc63\ufdfa\ufdfb\ufe70\ufe72\ufe74\ufe76\ufe78\ufe7a\ufe7c\ufe7e\u309b\u309c"
	onlyContinue = "\u0e33\u0eb3\uff9e\uff9f"
)
