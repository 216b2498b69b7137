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

// MayBeEmpty reports whether a match may be empty.
func (re *Regexp) MayBeEmpty() bool { return re.empty }

// ErrTooComplex is the error for matching that exceeded its time.
var ErrTooComplex = errors.New("the pattern needs more backtracking on this text than is allowed")

const (
	// matchTime is the time for one match, and for all matches in a text in addition to TimePerByte. The engine's
	// clock ticks every 100 ms.
	matchTime = time.Second
	// TimePerByte is ten times what the engine needs for ordinary patterns and text.
	TimePerByte = 4 * time.Microsecond
)

// Compile compiles pattern. Its error names the construct that is not supported.
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

// All returns the successive matches in s, which is valid UTF-8, as byte ranges. An empty match right after another
// match does not count. It fails with ErrTooComplex after 1 s for one match, after 1 s plus 4 µs per byte for all, or
// if a match ends after until, unless that is nil.
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
	index, at := 0, 0 // index of a character of s and its byte offset
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
