package rx

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// Regexp is a compiled pattern, safe for concurrent use.
type Regexp struct {
	re    *regexp2.Regexp
	empty bool
}

// MayBeEmpty reports whether a match may have no character.
func (re *Regexp) MayBeEmpty() bool { return re.empty }

// ErrTooComplex says that matching was given up after its time.
var ErrTooComplex = errors.New("the pattern needs more backtracking on this text than is allowed")

const (
	// matchTime is what one match may take, and what all matches in a text may take
	// beyond TimePerByte. The engine's clock ticks every 100 ms.
	matchTime = time.Second
	// TimePerByte is ten times what the engine needs for ordinary patterns and text.
	TimePerByte = 4 * time.Microsecond
)

// Compile compiles pattern or says which construct it refuses.
func Compile(u *uni.Tables, pattern string) (*Regexp, error) {
	if !utf8.ValidString(pattern) {
		return nil, errors.New("the pattern is not valid UTF-8")
	}
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("the pattern has %d bytes, more than %d", len(pattern), maxPattern)
	}
	p := &parser{u: u, s: pattern}
	tree := p.alternatives()
	if p.err == nil && p.more() {
		p.fail("an unmatched )")
	}
	if p.err != nil {
		return nil, p.err
	}
	re, err := regexp2.Compile(tree.text, regexp2.None)
	if err != nil {
		return nil, errors.New("the matcher cannot compile it")
	}
	re.MatchTimeout = matchTime
	return &Regexp{re: re, empty: tree.empty}, nil
}

// All returns the successive matches in s, which is valid UTF-8, as byte ranges.
// An empty match right after another match does not count. ErrTooComplex after
// 1 s for one match, 1 s and 4 µs a byte for all, or with a match that ends past
// until, where that is not nil.
func (re *Regexp) All(s []byte, until *time.Time) (all [][2]int, err error) {
	start := time.Now()
	most := start.Add(matchTime + time.Duration(len(s))*TimePerByte)
	if until != nil && until.Before(most) {
		most = *until
	}
	if most.Before(start) {
		return nil, ErrTooComplex
	}
	runes := []rune(string(s))
	index, at := 0, 0 // a character of s and where it begins
	offset := func(to int) int {
		for ; index < to; index++ {
			at += utf8.RuneLen(runes[index])
		}
		return at
	}
	last := -1
	m, err := re.re.FindRunesMatch(runes)
	for ; m != nil; m, err = re.re.FindNextMatch(m) {
		if time.Now().After(most) {
			return nil, ErrTooComplex
		}
		a := offset(m.Index)
		b := offset(m.Index + m.Length)
		if a < b || a != last {
			all = append(all, [2]int{a, b})
		}
		last = b
	}
	if err != nil {
		return nil, ErrTooComplex
	}
	return all, nil
}
