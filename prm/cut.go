package prm

import (
	"fmt"
	"sort"
	"unicode/utf8"
)

// size measures text in the unit of a budget, code points where count is nil.
func size(text string, count func(string) int) int {
	if count == nil {
		return utf8.RuneCountInString(text)
	}
	return count(text)
}

// maxUnitBytes is how long one unit of a budget can be: a text with more bytes
// per unit of its limit is cut without being counted whole.
const maxUnitBytes = 256

// cut shortens text to at most limit units: its head and its tail, equally
// long, around a line that says how many characters are gone. The end is
// always kept; where not even the line fits, only the end is. A negative limit
// cuts nothing. count measures in the unit of the limit, nil in code points; it must
// not shrink when text is added at an end.
func cut(text string, limit int, count func(string) int) string {
	if limit < 0 || len(text) <= limit && count == nil {
		return text
	}
	n := utf8.RuneCountInString(text)
	if n <= limit && count == nil || len(text)/maxUnitBytes <= limit && size(text, count) <= limit {
		return text
	}
	keep := func(k int) string {
		return head(text, k-k/2) + fmt.Sprintf("\n[%d characters omitted]\n", n-k) + tail(text, k/2)
	}
	fits := func(s string) bool { return size(s, count) <= limit }
	most := n
	switch {
	case count == nil:
		most = min(n, limit)
	case limit < n/maxUnitBytes:
		most = (limit + 1) * maxUnitBytes
	}
	if k := largest(min(most, n-1), func(k int) bool { return fits(keep(k)) }); k > 0 {
		return keep(k)
	}
	return tail(text, max(0, largest(most, func(k int) bool { return fits(tail(text, k)) })))
}

// largest returns the largest k in [0, n] that is ok, or −1, for an ok that turns false once.
func largest(n int, ok func(int) bool) int {
	return sort.Search(n+1, func(k int) bool { return !ok(k) }) - 1
}

// head returns the first n code points of s.
func head(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// Limits of the swe-rl judge (OpenClaw-RL@0d034dd5e), in code points.
const (
	sweLog     = 2000 // each end of an output that its log keeps
	sweHistory = 1000
	sweCurrent = 4000
	sweIssue   = 8000
	sweSteps   = 8
)

// sweOutput shows an output as the swe-rl judge does: both ends of the log,
// then a second cut that keeps the head only.
func sweOutput(text string, limit int) string {
	if n := utf8.RuneCountInString(text); n > 2*sweLog {
		text = head(text, sweLog) + fmt.Sprintf("\n... (%d characters omitted) ...\n", n-2*sweLog) + tail(text, sweLog)
	}
	return headOnly(text, limit, fmt.Sprintf("\n... (truncated to %d chars)", limit))
}

func headOnly(text string, limit int, note string) string {
	if limit < 0 || utf8.RuneCountInString(text) <= limit {
		return text
	}
	return head(text, limit) + note
}
