package ssr

import (
	"errors"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
)

// Sample is what the monitor measures of one text that the policy wrote.
type Sample struct {
	// Chars is the length in characters.
	Chars int
	// Repetition is the share of word n-grams that occurred before in the text,
	// 0 to 1, 0 for texts shorter than one n-gram.
	Repetition float64
	// NonText is the share of characters that no prose or code is made of:
	// control and private-use characters, unassigned ones, and replacement
	// characters left by broken encoding.
	NonText float64
	// Entropy is the Shannon entropy of the n-gram distribution in bits, divided
	// by its maximum for that many n-grams: 1 when all differ, 0 when all are
	// the same.
	Entropy float64
}

// Limits say when a window of rollouts looks unstable. The zero value takes the
// defaults below; a negative number switches a limit off.
type Limits struct {
	Window        int     // rollouts per window, 0 = 256
	NGram         int     // words per n-gram, 0 = 8
	MaxRepetition float64 // mean share, 0 = 0.5
	MaxNonText    float64 // mean share, 0 = 0.02
	MinEntropy    float64 // mean relative entropy, 0 = 0.6
	MaxGrowth     float64 // mean length against the first window, 0 = 4
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *float64
		value float64
	}{{&l.MaxRepetition, 0.5}, {&l.MaxNonText, 0.02}, {&l.MinEntropy, 0.6}, {&l.MaxGrowth, 4}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if l.Window == 0 {
		l.Window = 256
	}
	if l.NGram == 0 {
		l.NGram = 8
	}
	return l
}

func (l Limits) validate() error {
	var errs []error
	for _, n := range []struct {
		name  string
		value int
	}{{"Window", l.Window}, {"NGram", l.NGram}} {
		if n.value < 0 {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: n.name}, "expected a number that is not negative, found %d", n.value))
		}
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"MaxRepetition", l.MaxRepetition}, {"MaxNonText", l.MaxNonText}, {"MinEntropy", l.MinEntropy}, {"MaxGrowth", l.MaxGrowth}} {
		if math.IsNaN(f.value) {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: f.name}, "expected a number, found NaN"))
		}
	}
	return errors.Join(errs...)
}

// measure computes the sample of one text with n-grams of n words (0 = 8).
func measure(text string, n int) Sample {
	if n <= 0 {
		n = 8
	}
	s := Sample{Chars: utf8.RuneCountInString(text)}
	if s.Chars == 0 {
		return Sample{Entropy: 1}
	}
	odd := 0
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsGraphic(r) && !isLayout(r) {
			odd++
		}
	}
	s.NonText = float64(odd) / float64(s.Chars)

	words := strings.Fields(text)
	total := len(words) - n + 1
	if total < 1 {
		s.Entropy = 1
		return s
	}
	counts := make(map[string]int, total)
	for i := range total {
		counts[strings.Join(words[i:i+n], " ")]++
	}
	s.Repetition = float64(total-len(counts)) / float64(total)
	s.Entropy = relativeEntropy(counts, total)
	return s
}

// isLayout reports whether r is a control or format character that ordinary text
// uses: line ends, tabs, joiners, direction marks, the byte order mark.
func isLayout(r rune) bool {
	return r == '\n' || r == '\r' || r == '\t' || r == '\f' || r == 0x1b || unicode.Is(unicode.Cf, r)
}

// relativeEntropy sums in the order of counts' sizes, not of the map, so that it
// is the same on every run.
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

// Alarm names one limit that a window broke.
type Alarm struct {
	What  string  // repetition, non_text, entropy or length
	Value float64 // mean over the window
	Limit float64
}

// Health is the state of the latest complete or current window.
type Health struct {
	Rollouts int // in the window
	Mean     Sample
	// Growth is the mean length against the first window, 1 in it.
	Growth float64
	Alarms []Alarm
}

// Stable reports whether no limit is broken.
func (h Health) Stable() bool { return len(h.Alarms) == 0 }

// Monitor follows rollouts in the order in which they arrive, over a sliding
// window. It is not safe for concurrent use.
type Monitor struct {
	limits   Limits
	recent   []Sample
	next     int
	baseline float64 // mean length of the first window, 0 while it fills
}

// NewMonitor makes a monitor.
func NewMonitor(l Limits) (*Monitor, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	return &Monitor{limits: l.withDefaults()}, nil
}

// AddRollout measures the text that the policy sampled in r, reasoning included,
// and returns the health of the window that ends with it.
func (m *Monitor) AddRollout(r *rollout.Rollout) Health {
	if r == nil {
		return m.Health()
	}
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
	return m.Add(b.String())
}

// Add measures one text and returns the health of the window that ends with it.
func (m *Monitor) Add(text string) Health {
	if m.limits == (Limits{}) {
		m.limits = m.limits.withDefaults()
	}
	s := measure(text, m.limits.NGram)
	if len(m.recent) < m.limits.Window {
		m.recent = append(m.recent, s)
	} else {
		m.recent[m.next] = s
		m.next = (m.next + 1) % m.limits.Window
	}
	h := m.Health()
	if m.baseline == 0 && len(m.recent) == m.limits.Window {
		m.baseline = max(1, float64(h.Mean.Chars))
	}
	return h
}

// Health is the state of the window that ends with the latest text.
func (m *Monitor) Health() Health {
	h := Health{Rollouts: len(m.recent), Growth: 1}
	if len(m.recent) == 0 {
		return h
	}
	n := float64(len(m.recent))
	chars := 0.0
	for _, s := range m.recent {
		chars += float64(s.Chars) / n
		h.Mean.Repetition += s.Repetition / n
		h.Mean.NonText += s.NonText / n
		h.Mean.Entropy += s.Entropy / n
	}
	h.Mean.Chars = int(math.Round(chars))
	if m.baseline > 0 {
		h.Growth = chars / m.baseline
	}
	l := m.limits
	alarm := func(what string, value, limit float64, broken bool) {
		if broken && limit >= 0 {
			h.Alarms = append(h.Alarms, Alarm{what, value, limit})
		}
	}
	alarm("repetition", h.Mean.Repetition, l.MaxRepetition, h.Mean.Repetition > l.MaxRepetition)
	alarm("non_text", h.Mean.NonText, l.MaxNonText, h.Mean.NonText > l.MaxNonText)
	alarm("entropy", h.Mean.Entropy, l.MinEntropy, h.Mean.Entropy < l.MinEntropy)
	alarm("length", h.Growth, l.MaxGrowth, h.Growth > l.MaxGrowth)
	return h
}
