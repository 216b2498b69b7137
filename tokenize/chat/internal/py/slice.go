package py

import (
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Escape implements markupsafe.escape.
func Escape(s *value.Str, l *value.Limits) *value.Str {
	if s.Markup {
		return s
	}
	if !l.Spend(4 * len(s.S)) {
		return s
	}
	if !strings.ContainsAny(s.S, `&<>'"`) {
		return s.Safe()
	}
	t := &value.Text{Lim: l}
	t.Mapped(s, func(rest string) (int, string) {
		if r := entities[rest[0]]; r != "" {
			return 1, r
		}
		n := value.RuneLen(rest)
		return n, rest[:n]
	})
	return t.Own().Safe()
}

var entities = map[byte]string{'&': "&amp;", '<': "&lt;", '>': "&gt;", '\'': "&#39;", '"': "&#34;"}

// forward returns the byte offset n characters after byte i.
func forward(s string, i, n int) int {
	for ; n > 0 && i < len(s); n-- {
		i += value.RuneLen(s[i:])
	}
	return i
}

// backward returns the byte offset n characters before byte i and the number of missing characters.
func backward(s string, i, n int) (int, int) {
	for ; n > 0 && i > 0; n-- {
		if s[i-1] < utf8.RuneSelf {
			i--
			continue
		}
		_, w := utf8.DecodeLastRuneInString(s[:i])
		i -= w
	}
	return i, n
}

// Char returns the character with index n, which counts from the end if negative, or nil if there is none.
func Char(s *value.Str, l *value.Limits, n int64) *value.Str {
	if n >= int64(len(s.S)) || n < -int64(len(s.S)) {
		return nil
	}
	l.Spend(4 * int(max(n, -n)))
	i, missing := forward(s.S, 0, int(n)), 0
	if n < 0 {
		i, missing = backward(s.S, len(s.S), int(-n))
	}
	if missing > 0 || i >= len(s.S) {
		return nil
	}
	return s.Slice(i, forward(s.S, i, 1))
}

// bound returns the byte offset of slice bound n.
func bound(l *value.Limits, s string, n int64) int {
	l.Spend(4 * int(min(max(n, -n), int64(len(s)))))
	if n >= 0 {
		return forward(s, 0, int(min(n, int64(len(s)))))
	}
	i, _ := backward(s, len(s), int(min(-n, int64(len(s)))))
	return i
}

// Substring implements s[start:stop:step]; nil bounds are open, step is not 0.
func Substring(s *value.Str, l *value.Limits, start, stop *int64, step int64) *value.Str {
	if step == 1 {
		i, j := 0, len(s.S)
		if start != nil {
			i = bound(l, s.S, *start)
		}
		if stop != nil {
			j = bound(l, s.S, *stop)
		}
		return s.Slice(i, max(i, j))
	}
	if !l.Make(8 * len(s.S)) {
		return s
	}
	offs := make([]int, 0, len(s.S)+1)
	for i := 0; i < len(s.S); i += value.RuneLen(s.S[i:]) {
		offs = append(offs, i)
	}
	offs = append(offs, len(s.S))
	t := &value.Text{Lim: l}
	first, n := SliceIndices(len(offs)-1, start, stop, step)
	for k, i := 0, first; k < n; k, i = k+1, i+int(step) {
		t.Part(s, offs[i], offs[i+1])
	}
	return s.Like(t)
}

// SliceIndices returns the first index and the number of items of a Python slice of a sequence of length n.
func SliceIndices(n int, start, stop *int64, step int64) (first, count int) {
	a, b := SliceBounds(n, start, stop, step)
	if step > 0 {
		if a >= b {
			return 0, 0
		}
		return int(a), int((b-a-1)/step) + 1
	}
	if a <= b {
		return 0, 0
	}
	if step == -1<<63 {
		return int(a), 1
	}
	return int(a), int((a-b-1)/-step) + 1
}

// SliceBounds implements Python's slice.indices for a sequence of length n.
func SliceBounds(n int, start, stop *int64, step int64) (a, b int64) {
	clamp := func(p *int64, open, lo, hi int64) int64 {
		if p == nil {
			return open
		}
		v := *p
		if v < 0 {
			v += int64(n)
		}
		return min(max(v, lo), hi)
	}
	if step > 0 {
		return clamp(start, 0, 0, int64(n)), clamp(stop, int64(n), 0, int64(n))
	}
	return clamp(start, int64(n)-1, -1, int64(n)-1), clamp(stop, -1, -1, int64(n)-1)
}
