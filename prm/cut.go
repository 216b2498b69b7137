package prm

import (
	"fmt"
	"sort"
	"unicode/utf8"
)

// size returns the size of text in the unit of a budget, in code points if count is nil.
func size(text string, count func(string) int) int {
	if count == nil {
		return utf8.RuneCountInString(text)
	}
	return count(text)
}

// maxUnitBytes is the assumed maximum length of one unit of a budget: a text with more bytes per unit
// of its limit is cut without counting all of it.
const maxUnitBytes = 256

// cut shortens text to at most limit units: its head and its tail, of equal length, around a line with
// the number of omitted characters. The end is always kept; if not even that line fits, only the end
// is kept. A negative limit cuts nothing. count returns the size of a text in the unit of the limit,
// nil for code points; it must not shrink when text is added at an end.
func cut(text string, limit int, count func(string) int) string {
	if limit < 0 || len(text)/maxUnitBytes <= limit && size(text, count) <= limit {
		return text
	}
	n := utf8.RuneCountInString(text)
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
	if k := largestTrue(min(most, n-1), func(k int) bool { return fits(keep(k)) }); k > 0 {
		return keep(k)
	}
	return tail(text, max(0, largestTrue(most, func(k int) bool { return fits(tail(text, k)) })))
}

// largestTrue returns the largest k in [0, n] for which ok is true, or −1. ok must be true up to some k
// and false after it.
func largestTrue(n int, ok func(int) bool) int {
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
	sweLog     = 2000 // length of each end of an output kept in its log
	sweHistory = 1000
	sweCurrent = 4000
	sweIssue   = 8000
	sweSteps   = 8
)

// sweOutput returns an output as the swe-rl judge shows it: both ends of the log, then cut again to
// its head.
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
