package play

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
)

// gibberish reports whether the text that the policy sampled in r, including reasoning, looks broken:
// repeated words, or characters that do not occur in text.
func gibberish(r *rollout.Rollout) bool {
	var b strings.Builder
	for i := range r.Messages {
		msg := &r.Messages[i]
		if msg.Role != rollout.RoleAssistant || msg.Sampled != rollout.SampledByPolicy && msg.Sampled != rollout.SampledUnknown {
			continue
		}
		b.WriteString(msg.Reasoning)
		b.WriteByte('\n')
		b.WriteString(msg.Content)
		for _, c := range msg.ToolCalls {
			b.WriteByte('\n')
			b.WriteString(c.Arguments)
		}
		b.WriteByte('\n')
	}
	m := measure(b.String(), 8)
	return m.repetition > 0.5 || m.nonText > 0.02 || m.entropy < 0.6
}

type measures struct {
	// repetition is the share of word n-grams that occurred before in the text,
	// 0 to 1, 0 for texts shorter than one n-gram.
	repetition float64
	// nonText is the share of characters that do not occur in prose or code: control, private-use and
	// unassigned characters, and replacement characters left by broken encoding.
	nonText float64
	// entropy is the Shannon entropy of the n-gram distribution in bits, divided by its maximum for
	// that number of n-grams: 1 if all differ, 0 if all are the same.
	entropy float64
}

// measure returns the measures of a text, with n-grams of n words.
func measure(text string, n int) (s measures) {
	chars := utf8.RuneCountInString(text)
	if chars == 0 {
		return measures{entropy: 1}
	}
	odd := 0
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsGraphic(r) && !isLayout(r) {
			odd++
		}
	}
	s.nonText = float64(odd) / float64(chars)

	words := strings.Fields(text)
	total := len(words) - n + 1
	if total < 1 {
		s.entropy = 1
		return s
	}
	counts := make(map[string]int, total)
	for i := range total {
		counts[strings.Join(words[i:i+n], " ")]++
	}
	s.repetition = float64(total-len(counts)) / float64(total)
	s.entropy = relativeEntropy(counts, total)
	return s
}

// isLayout reports whether r is a control or format character of ordinary text: line ends, tabs,
// joiners, direction marks, the byte order mark.
func isLayout(r rune) bool {
	return r == '\n' || r == '\r' || r == '\t' || r == '\f' || r == 0x1b || unicode.Is(unicode.Cf, r)
}

// relativeEntropy returns measures.entropy. It sums in the order of the counts, not of the map, so
// that every run gives the same result.
func relativeEntropy(counts map[string]int, total int) float64 {
	if total == 1 {
		return 1
	}
	sizes := map[int]int{}
	largest := 0
	for _, c := range counts {
		sizes[c]++
		largest = max(largest, c)
	}
	bits := 0.0
	for c := 1; c <= largest; c++ {
		if sizes[c] > 0 {
			p := float64(c) / float64(total)
			bits -= float64(sizes[c]) * p * math.Log2(p)
		}
	}
	return min(1, max(0, bits/math.Log2(float64(total))))
}
