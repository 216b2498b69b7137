// Package rx is a backtracking matcher for the split patterns of tokenizer
// files. It knows the constructs that such patterns use, with the character
// classes of the reference, and refuses every other at compile time, because a
// pattern that means almost the same would give wrong ids in silence.
package rx

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// Flavor says whose syntax a pattern is written in.
type Flavor uint8

const (
	// Onig is the engine of Hugging Face tokenizers: ^ and $ match at line ends,
	// {n,m}+ repeats, \h is a hexadecimal digit.
	Onig Flavor = iota
	// Rust is the engine of tiktoken: ^ and $ match at the ends of the text,
	// {n,m}+ is possessive.
	Rust
)

type kind uint8

const (
	kEmpty     kind = iota
	kSet            // one character of set
	kCat            // subs in order
	kAlt            // first of subs that leads to a match
	kRepeat         // sub, min..max times (max -1: no bound)
	kAtomic         // sub without backtracking into it
	kLook           // look-around
	kBegin          // ^ of the text
	kEnd            // $ of the text
	kBeginLine      // ^ of a line
	kEndLine        // $ of a line
	kWordEdge       // \b, negated: \B
)

type node struct {
	kind     kind
	set      uni.Set
	letter   rune // the lower-case letter that set stands for under case folding, or 0
	subs     []*node
	min, max int
	lazy     bool
	negate   bool // look-around, word edge
	behind   bool // look-behind
}

type parser struct {
	u      *uni.Tables
	s      string
	at     int
	flavor Flavor
	fold   bool
	depth  int
	err    error
}

const (
	maxDepth  = 200
	maxRepeat = 1000
)

func (p *parser) fail(format string, args ...any) *node {
	if p.err == nil {
		p.err = fmt.Errorf("at byte %d of the pattern: %s", p.at, fmt.Sprintf(format, args...))
	}
	p.at = len(p.s)
	return &node{kind: kEmpty}
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

func (p *parser) alternatives() *node {
	if p.depth++; p.depth > maxDepth {
		return p.fail("groups nest deeper than %d", maxDepth)
	}
	defer func(fold bool) { p.fold = fold; p.depth-- }(p.fold)
	alts := []*node{p.sequence()}
	for p.accept("|") {
		alts = append(alts, p.sequence())
	}
	if len(alts) == 1 {
		return alts[0]
	}
	return &node{kind: kAlt, subs: alts}
}

func (p *parser) sequence() *node {
	cat := &node{kind: kCat}
	for p.more() && !p.looking("|") && !p.looking(")") {
		n := p.atom()
		if n == nil {
			continue
		}
		n = p.quantifiers(n)
		if n.kind == kCat {
			cat.subs = append(cat.subs, n.subs...)
		} else {
			cat.subs = append(cat.subs, n)
		}
	}
	for i := 1; i < len(cat.subs) && p.flavor == Onig; i++ {
		switch pair := string([]rune{cat.subs[i-1].letter, cat.subs[i].letter}); pair {
		case "ss", "st", "ff", "fi", "fl":
			return p.fail("case-insensitive %q also matches a ligature in the reference engine", pair)
		}
	}
	if len(cat.subs) == 1 {
		return cat.subs[0]
	}
	return cat
}

func (p *parser) quantifiers(n *node) *node {
	for p.more() {
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
		switch n.kind {
		case kEmpty, kLook, kBegin, kEnd, kBeginLine, kEndLine, kWordEdge:
			return p.fail("a repeat of something without width")
		}
		n = &node{kind: kRepeat, subs: []*node{n}, min: lo, max: hi, letter: n.letter}
		switch {
		case p.looking("?"):
			if interval && p.flavor == Onig && lo == hi {
				return p.fail("{n}? is not a lazy repeat in the reference engine")
			}
			p.at++
			n.lazy = true
		case p.looking("+") && !(interval && p.flavor == Onig):
			p.at++
			n = &node{kind: kAtomic, subs: []*node{n}, letter: n.letter}
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

// atom returns nil for a construct that only changes the parser's state.
func (p *parser) atom() *node {
	switch c := p.s[p.at]; c {
	case '(':
		p.at++
		return p.group()
	case '[':
		p.at++
		return p.bracket()
	case '.':
		p.at++
		return &node{kind: kSet, set: single('\n').Negate()}
	case '^':
		p.at++
		if p.flavor == Rust {
			return &node{kind: kBegin}
		}
		return &node{kind: kBeginLine}
	case '$':
		p.at++
		if p.flavor == Rust {
			return &node{kind: kEnd}
		}
		return &node{kind: kEndLine}
	case '*', '+', '?', '{':
		return p.fail("a repeat sign %q with nothing to repeat", c)
	case '\\':
		p.at++
		return p.escape()
	}
	return p.literal(p.rune())
}

// literal makes a node for one character, with its case variants where asked.
func (p *parser) literal(r rune) *node {
	n := &node{kind: kSet, set: single(r)}
	if p.fold {
		if r >= utf8.RuneSelf {
			return p.fail("a case-insensitive character outside ASCII")
		}
		n.set, n.letter = n.set.Fold(), unicode.ToLower(r)
	}
	return n
}

// bracket makes a node for a bracket expression after its [. Case variants are
// added before the expression is negated.
func (p *parser) bracket() *node {
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
	return &node{kind: kSet, set: set}
}

// cased is a set that holds every character outside ASCII with case variants.
func (p *parser) cased() uni.Set {
	sets := []uni.Set{single('\u0345')} // the one mark that is a form of a letter
	for _, name := range []string{"Lu", "Ll", "Lt", "Nl", "So"} {
		s, _ := p.u.Category(name)
		sets = append(sets, s)
	}
	return uni.Union(sets...).Intersect(uni.Set{{Lo: 0, Hi: unicode.MaxASCII}}.Negate())
}

func (p *parser) group() *node {
	n := &node{}
	switch {
	case p.accept("?:"):
	case p.accept("?="):
		n = &node{kind: kLook}
	case p.accept("?!"):
		n = &node{kind: kLook, negate: true}
	case p.accept("?<="):
		n = &node{kind: kLook, behind: true}
	case p.accept("?<!"):
		n = &node{kind: kLook, behind: true, negate: true}
	case p.accept("?>"):
		n = &node{kind: kAtomic}
	case p.accept("?i:"):
		defer func(fold bool) { p.fold = fold }(p.fold)
		p.fold = true
	case p.accept("?i)"):
		if p.depth > 1 || p.at != len("(?i)") {
			return p.fail("(?i) anywhere but at the start")
		}
		p.fold = true
		return nil
	case p.looking("?"):
		return p.fail("the group (%.4s is not known here", p.s[p.at:])
	}
	sub := p.alternatives()
	if !p.accept(")") {
		return p.fail("a group is not closed")
	}
	if n.kind == kEmpty {
		return sub
	}
	n.subs = []*node{sub}
	return n
}

func (p *parser) escape() *node {
	if !p.more() {
		return p.fail("a lone backslash at the end")
	}
	switch p.s[p.at] {
	case 'b', 'B':
		p.at++
		return &node{kind: kWordEdge, negate: p.s[p.at-1] == 'B'}
	case 'A':
		p.at++
		return &node{kind: kBegin}
	case 'z':
		p.at++
		return &node{kind: kEnd}
	}
	name := p.s[p.at]
	set := p.escapedSet(false)
	switch {
	case p.err != nil:
		return &node{kind: kEmpty}
	case strings.IndexByte("sSdDwWhHpP", name) < 0:
		return p.literal(set[0].Lo)
	case p.fold && p.flavor == Rust && (name == 'p' || name == 'P') && len(set.Intersect(p.cased())) > 0:
		return p.fail("a case-insensitive class with letters outside ASCII")
	}
	return &node{kind: kSet, set: set}
}
