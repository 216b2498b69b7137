package prm

import (
	"regexp"
	"unicode/utf8"
)

var hintBlock = regexp.MustCompile(`(?s)\[HINT_START\](.*?)\[HINT_END\]`)

// Hint returns the last hint block of a judge's text without surrounding white space, "" if there is
// none (the hindsight judge of OpenClaw-RL@0d034dd5e).
func Hint(text string) string {
	all := hintBlock.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return ""
	}
	return strip(all[len(all)-1][1])
}

// minHint is the length in code points that a hint must exceed.
const minHint = 10

// BestHint returns the index of the vote whose hint is used: among the votes with score 1, the first
// of the longest hints of more than ten code points; −1 if there is none. texts and scores are
// aligned; a nil or missing score is not a vote.
func BestHint(texts []string, scores []*float64) int {
	best, length := -1, minHint
	for i, t := range texts {
		if i >= len(scores) || scores[i] == nil || *scores[i] != 1 {
			continue
		}
		if n := utf8.RuneCountInString(Hint(t)); n > length {
			best, length = i, n
		}
	}
	return best
}
