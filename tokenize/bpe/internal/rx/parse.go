// Package rx matches the patterns of tokenizer files with regexp2, a backtracking engine. regexp2 has .NET's syntax
// and Go's Unicode tables, but Hugging Face tokenizers has Oniguruma's. So each pattern is parsed here and rewritten
// in the part of the syntax that has the same meaning in both:
//
//   - every class (\p{L}, \s, \w, [^…], &&, case variants) as ranges of code points
//     from the reference's tables, whose Unicode is newer than Go's
//   - ^ and $ at line ends, \b and \B, as look-around over those classes
//   - possessive repeats as atomic groups, groups without captures
//
// What cannot be rewritten is refused at load, since a pattern of almost the same meaning gives wrong ids silently:
// back-references, POSIX brackets, repeats of what can be empty, look-behind of varying width, letters with case
// variants outside ASCII, named and conditional groups, inline flags other than (?i).
package rx

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// part is a parsed part of a pattern in regexp2's syntax.
type part struct {
	text  string
	unit  bool // a repeat sign after it applies to all of it
	bare  bool // it has no width: an anchor or look-around
	empty bool // it may match nothing
	width int  // in characters, varies if not fixed
	// first and last are the lower-case letters that it begins and ends with under case folding, 0 for anything else.
	first, last rune
}

const varies = -1

type parser struct {
	u     *uni.Tables
	s     string
	at    int
	fold  bool
	depth int
	err   error
	size  int // total size of the output in bytes
}

const (
	maxDepth  = 50
	maxRepeat = 1000
	// maxPattern bounds the bytes of a pattern; published ones have up to 2 KiB.
	maxPattern = 16 << 10
	// maxSize bounds the size of a rewritten pattern: \p{L} alone takes 8 KiB.
	maxSize = 4 << 20
)

func (p *parser) fail(format string, args ...any) part {
	if p.err == nil {
		p.err = fmt.Errorf("at byte %d of the pattern: %s", p.at, fmt.Sprintf(format, args...))
	}
	p.at = len(p.s)
	return part{}
}

func (p *parser) more() bool            { return p.at < len(p.s) }
func (p *parser) looking(s string) bool { return strings.HasPrefix(p.s[p.at:], s) }

func (p *parser) accept(s string) bool {
	if p.looking(s) {
		p.at += len(s)
		return true
	}
	return false
}

func (p *parser) rune() rune {
	r, size := utf8.DecodeRuneInString(p.s[p.at:])
	p.at += size
	return r
}

func (p *parser) alternatives() part {
	if p.depth++; p.depth > maxDepth {
		return p.fail("groups nest deeper than %d", maxDepth)
	}
	defer func(fold bool) { p.fold = fold; p.depth-- }(p.fold)
	out := p.sequence()
	var more []string
	for p.accept("|") {
		next := p.sequence()
		more = append(more, "|", next.text)
		out.empty = out.empty || next.empty
		if out.width != next.width {
			out.width = varies
		}
		out.unit, out.bare, out.first, out.last = false, false, 0, 0
	}
	out.text += strings.Join(more, "")
	return out
}

func (p *parser) sequence() part {
	var out part
	var text strings.Builder
	n := 0
	out.empty = true
	for p.more() && !p.looking("|") && !p.looking(")") {
		next, ok := p.atom()
		if !ok {
			continue
		}
		next = p.quantifiers(next)
		if p.err != nil {
			return part{}
		}
		switch pair := string([]rune{out.last, next.first}); pair {
		case "ss", "st", "ff", "fi", "fl":
			return p.fail("case-insensitive %q also matches a ligature in the reference engine", pair)
		}
		text.WriteString(next.text)
		if n++; n == 1 {
			out = next
			continue
		}
		out.unit, out.bare, out.empty, out.last = false, false, out.empty && next.empty, next.last
		if out.width == varies || next.width == varies {
			out.width = varies
		} else {
			out.width += next.width
		}
	}
	out.text = text.String()
	return out
}

// grouped returns n as one unit.
func grouped(n part) part {
	if !n.unit {
		n.text, n.unit = "(?:"+n.text+")", true
	}
	return n
}

func (p *parser) quantifiers(n part) part {
	for p.more() {
		from := p.at
		lo, hi, interval := 0, -1, false
		switch p.s[p.at] {
		case '*':
			p.at++
		case '+':
			p.at++
			lo = 1
		case '?':
			p.at++
			hi = 1
		case '{':
			var ok bool
			if lo, hi, ok = p.interval(); !ok {
				return p.fail("a literal { or an unusual repeat count")
			}
			interval = true
		default:
			return n
		}
		if n.bare || n.text == "" {
			return p.fail("a repeat of something without width")
		}
		if n.empty {
			return p.fail("a repeat of something that can be empty")
		}
		sign := p.s[from:p.at]
		n = grouped(n)
		n.text, n.unit, n.empty = n.text+sign, false, lo == 0
		if lo != hi || n.width == varies {
			n.width = varies
		} else {
			n.width *= lo
		}
		switch {
		case p.looking("?"):
			if interval && lo == hi {
				return p.fail("{n}? is not a lazy repeat in the reference engine")
			}
			p.at++
			n.text += "?"
		case p.looking("+") && !interval: // {n,m}+ is a repeat of a repeat
			p.at++
			n.text, n.unit = "(?>"+n.text+")", true
		}
	}
	return n
}

func (p *parser) interval() (lo, hi int, ok bool) {
	end := strings.IndexByte(p.s[p.at:], '}')
	if end < 0 {
		return 0, 0, false
	}
	from, to, ranged := strings.Cut(p.s[p.at+1:p.at+end], ",")
	lo, err := strconv.Atoi(from)
	if err != nil || lo < 0 || lo > maxRepeat {
		return 0, 0, false
	}
	hi = lo
	if ranged {
		hi = -1
		if to != "" {
			if hi, err = strconv.Atoi(to); err != nil || hi < lo || hi > maxRepeat {
				return 0, 0, false
			}
		}
	}
	p.at += end + 1
	return lo, hi, true
}

// atom parses an atom. It returns false for a construct that only changes the parser's state.
func (p *parser) atom() (part, bool) {
	switch c := p.s[p.at]; c {
	case '(':
		p.at++
		return p.group()
	case '[':
		p.at++
		return p.bracket(), true
	case '.':
		p.at++
		return p.set(single('\n').Negate()), true
	case '^':
		p.at++
		return anchor(`(?:\A|(?<=\n)(?!\z))`), true
	case '$':
		p.at++
		return anchor(`(?=\n|\z)`), true
	case '*', '+', '?', '{':
		return p.fail("a repeat sign %q with nothing to repeat", c), true
	case '\\':
		p.at++
		return p.escape(), true
	}
	return p.literal(p.rune()), true
}

func anchor(text string) part { return part{text: text, unit: true, bare: true, empty: true} }

// set returns the pattern for one character of s.
func (p *parser) set(s uni.Set) part {
	text := class(s)
	if p.size += len(text); p.size > maxSize {
		return p.fail("the pattern comes to more than %d bytes", maxSize)
	}
	return part{text: text, unit: true, width: 1}
}

func class(s uni.Set) string {
	if len(s) == 0 {
		return "(?!)"
	}
	b := []byte{'['}
	for _, r := range s {
		b = fmt.Appendf(b, `\x{%x}-\x{%x}`, r.Lo, r.Hi)
	}
	return string(append(b, ']'))
}

// literal returns the pattern for one character, with its case variants under case folding.
func (p *parser) literal(r rune) part {
	if !p.fold {
		return p.set(single(r))
	}
	if r >= utf8.RuneSelf {
		return p.fail("a case-insensitive character outside ASCII")
	}
	n := p.set(single(r).Fold())
	n.first, n.last = unicode.ToLower(r), unicode.ToLower(r)
	return n
}

// bracket returns the pattern for a bracket expression after its [. Case variants are added before the expression is
// negated.
func (p *parser) bracket() part {
	negate := p.accept("^")
	set := p.class()
	if p.fold {
		if len(set.Intersect(p.cased())) > 0 {
			return p.fail("a case-insensitive class with letters outside ASCII")
		}
		set = set.Fold()
	}
	if negate {
		set = set.Negate()
	}
	return p.set(set)
}

// cased returns a set that contains every character outside ASCII that has case variants.
func (p *parser) cased() uni.Set {
	sets := []uni.Set{single('\u0345')} // the only mark that is a form of a letter
	for _, name := range []string{"Lu", "Ll", "Lt", "Nl", "So"} {
		s, _ := p.u.Category(name)
		sets = append(sets, s)
	}
	return uni.Union(sets...).Intersect(uni.Set{{Lo: 0, Hi: unicode.MaxASCII}}.Negate())
}

func (p *parser) group() (part, bool) {
	open := ""
	behind := false
	switch {
	case p.accept("?:"):
	case p.accept("?="):
		open = "(?="
	case p.accept("?!"):
		open = "(?!"
	case p.accept("?<="):
		open, behind = "(?<=", true
	case p.accept("?<!"):
		open, behind = "(?<!", true
	case p.accept("?>"):
		open = "(?>"
	case p.accept("?i:"):
		defer func(fold bool) { p.fold = fold }(p.fold)
		p.fold = true
	case p.accept("?i)"):
		if p.depth > 1 || p.at != len("(?i)") {
			return p.fail("(?i) anywhere but at the start"), true
		}
		p.fold = true
		return part{}, false
	case p.looking("?"):
		return p.fail("the group (%.4s is not known here", p.s[p.at:]), true
	}
	sub := p.alternatives()
	switch {
	case !p.accept(")"):
		return p.fail("a group is not closed"), true
	case open == "":
		return grouped(sub), true
	case open == "(?>":
		return part{text: open + sub.text + ")", unit: true, empty: sub.empty, width: sub.width}, true
	case behind && sub.width == varies:
		return p.fail("a look-behind of varying width"), true
	}
	return anchor(open + sub.text + ")"), true
}

func (p *parser) escape() part {
	if !p.more() {
		return p.fail("a lone backslash at the end")
	}
	switch p.s[p.at] {
	case 'b', 'B':
		p.at++
		return p.wordEdge(p.s[p.at-1] == 'B')
	case 'A':
		p.at++
		return anchor(`\A`)
	case 'z':
		p.at++
		return anchor(`\z`)
	}
	name := p.s[p.at]
	set := p.escapedSet(false)
	switch {
	case p.err != nil:
		return part{}
	case strings.IndexByte("sSdDwWhHpP", name) < 0:
		return p.literal(set[0].Lo)
	}
	return p.set(set)
}

// wordEdge returns the pattern for \b, or \B if not is set, with the reference's word characters.
func (p *parser) wordEdge(not bool) part {
	word, _ := p.u.Set("word")
	w := class(word)
	if p.size += 4 * len(w); p.size > maxSize {
		return p.fail("the pattern comes to more than %d bytes", maxSize)
	}
	if not {
		return anchor("(?:(?<=" + w + ")(?=" + w + ")|(?<!" + w + ")(?!" + w + "))")
	}
	return anchor("(?:(?<=" + w + ")(?!" + w + ")|(?<!" + w + ")(?=" + w + "))")
}
