package openai

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// leastSecret is the least length of a key that is treated as a secret. For servers without keys a
// placeholder ("none", "EMPTY") is common, which is an ordinary word in replies.
const leastSecret = 6

// redact replaces keys that a server may repeat: unchanged; with characters escaped as in JSON, URLs
// or HTML, also repeatedly; and in base64 and hexadecimal digits, also after other text. Keys that are
// split or otherwise transformed are not recognised.
func (s *secret) redact(text string) string {
	if s == nil {
		return text
	}
	for _, form := range s.base64 {
		text = strings.ReplaceAll(text, form, "[key]")
	}
	var out strings.Builder
	from := 0
	for at := 0; ; {
		i := strings.IndexAny(text[at:], s.starts)
		if i < 0 {
			return out.String() + text[from:]
		}
		at += i
		if m := s.spelt.FindStringIndex(text[at:]); m != nil {
			out.WriteString(text[from:at] + "[key]")
			at += m[1]
			from = at
			continue
		}
		// A form that begins at a later one of several backslashes begins at the first of them too.
		at += max(1, len(text)-at-len(strings.TrimLeft(text[at:], `\`)))
	}
}

// secret recognises the readable forms of a key.
type secret struct {
	base64 []string       // the longest first
	spelt  *regexp.Regexp // other forms; anchored, since as a search it would read a megabyte a second
	starts string         // the characters that they begin with
}

// secretOf returns nil if the key is not a secret.
func secretOf(key string) *secret {
	if len(key) < leastSecret {
		return nil
	}
	digits := hex.EncodeToString([]byte(key))
	s := &secret{base64: base64Forms(key), starts: string([]rune(key)[0]) + `\&%` + digits[:1] + strings.ToUpper(digits[:1])}
	slices.SortFunc(s.base64, func(a, b string) int { return len(b) - len(a) })
	var spelt strings.Builder
	for _, r := range key {
		spelt.WriteString(anySpelling(r))
	}
	s.spelt = regexp.MustCompile(`\A(?:` + spelt.String() + "|(?i:" + digits + "))")
	return s
}

// base64Forms returns key in base64, for each of its possible alignments to groups of three bytes. Where
// the key does not begin or end a group, the character that it shares with neighbouring bytes is left
// out.
func base64Forms(key string) (all []string) {
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			s := e.EncodeToString([]byte(strings.Repeat("x", before) + key))
			from := (before*8 + 5) / 6
			to := (before + len(key)) * 8 / 6
			all = append(all, s[from:to])
		}
		all = append(all, e.EncodeToString([]byte(key))) // whole, with its last character
	}
	return all
}

// anySpelling returns a pattern for a character, unescaped or escaped any number of times.
func anySpelling(r rune) string {
	forms := []string{`\\*` + regexp.QuoteMeta(string(r)), fmt.Sprintf(`\\+(?i:u%04x|u\{0*%[1]x\})`, r), fmt.Sprintf(`&(?:amp;)*#(?:0*%d|[xX]0*(?i:%[1]x));`, r)}
	percent := ""
	for _, b := range []byte(string(r)) {
		percent += fmt.Sprintf(`%%(?:25)*(?i:%02x)`, b)
	}
	forms = append(forms, percent)
	if r < 0x100 {
		forms = append(forms, fmt.Sprintf(`\\+(?i:x%02x)`, r))
	}
	if name := map[rune]string{'"': "quot", '&': "amp", '\'': "apos", '<': "lt", '>': "gt", '/': "sol", '+': "plus", '=': "equals"}[r]; name != "" {
		forms = append(forms, `&(?:amp;)*`+name+`;`)
	}
	if r == ' ' {
		forms = append(forms, `\+`)
	}
	return "(?:" + strings.Join(forms, "|") + ")"
}
