package py

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/pytext"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Strip implements str.strip, lstrip and rstrip: it removes characters of chars (white space if nil) from the chosen
// ends.
func Strip(s *value.Str, l *value.Limits, chars *value.Str, left, right bool) *value.Str {
	drop := pytext.IsSpace
	if chars != nil {
		set := map[rune]bool{}
		for _, r := range chars.S {
			if !l.Make(3 * value.StepWork) {
				break
			}
			set[r] = true
		}
		drop = func(r rune) bool { return set[r] }
	}
	i, j := 0, len(s.S)
	for left && i < j {
		r, n := utf8.DecodeRuneInString(s.S[i:j])
		if !drop(r) {
			break
		}
		i += n
	}
	for right && j > i {
		r, n := utf8.DecodeLastRuneInString(s.S[i:j])
		if !drop(r) {
			break
		}
		j -= n
	}
	l.Spend(8*(len(s.S)-(j-i)) + value.RunSize*len(s.Runs()))
	return s.Slice(i, j)
}

// Split implements str.split or, with fromRight, str.rsplit. sep is not empty; max < 0 means no limit.
func Split(s *value.Str, l *value.Limits, sep string, max int64, fromRight bool) *value.List {
	var out []value.Value
	l.Scan(len(s.S))
	n := strings.Count(s.S, sep)
	if n >= l.Items && (max < 0 || max >= int64(l.Items)) {
		l.Failf(value.Limit, "list of %d items, more than %d", n+1, l.Items)
	}
	if max >= 0 {
		n = int(min(int64(n), max))
	}
	if !l.Make(value.StrSize*(n+1) + value.RunSize*len(s.Runs())) {
		return &value.List{}
	}
	from, to := 0, len(s.S)
	for ; n > 0; n-- {
		if fromRight {
			i := strings.LastIndex(s.S[:to], sep)
			out = append(out, s.Slice(i+len(sep), to))
			to = i
		} else {
			i := from + strings.Index(s.S[from:], sep)
			out = append(out, s.Slice(from, i))
			from = i + len(sep)
		}
	}
	out = append(out, s.Slice(from, to))
	if fromRight {
		slices.Reverse(out)
	}
	return &value.List{Items: out}
}

// Fields implements str.split (or rsplit) without a separator.
func Fields(s *value.Str, l *value.Limits, max int64, fromRight bool) *value.List {
	out := []value.Value{}
	l.Spend(4*len(s.S) + value.RunSize*len(s.Runs()))
	for from, to := 0, len(s.S); ; {
		rest := s.S[from:to]
		if fromRight {
			rest = strings.TrimRightFunc(rest, pytext.IsSpace)
			to = from + len(rest)
		} else {
			rest = strings.TrimLeftFunc(rest, pytext.IsSpace)
			from = to - len(rest)
		}
		if rest == "" || !l.Item(len(out)) {
			break
		}
		if max >= 0 && int64(len(out)) == max {
			out = append(out, s.Slice(from, to))
			break
		}
		if fromRight {
			i := strings.LastIndexFunc(rest, pytext.IsSpace)
			if i >= 0 {
				i += value.RuneLen(rest[i:])
			} else {
				i = 0
			}
			out = append(out, s.Slice(from+i, to))
			to = from + i
			continue
		}
		i := strings.IndexFunc(rest, pytext.IsSpace)
		if i < 0 {
			i = len(rest)
		}
		out = append(out, s.Slice(from, from+i))
		from += i
	}
	if fromRight {
		slices.Reverse(out)
	}
	return &value.List{Items: out}
}

// Lines implements str.splitlines.
func Lines(s *value.Str, l *value.Limits, keep bool) []value.Value {
	out := []value.Value{}
	start := 0
	l.Spend(2*len(s.S) + value.RunSize*len(s.Runs()))
	for i, r := range s.S {
		if i < start || !pytext.IsLineEnd(r) { // before start is the \n of a \r\n
			continue
		}
		end := i + value.RuneLen(s.S[i:])
		if r == '\r' && strings.HasPrefix(s.S[end:], "\n") {
			end++
		}
		if !l.Item(len(out)) {
			return nil
		}
		if keep {
			out = append(out, s.Slice(start, end))
		} else {
			out = append(out, s.Slice(start, i))
		}
		start = end
	}
	if start < len(s.S) {
		out = append(out, s.Slice(start, len(s.S)))
	}
	return out
}

// Replace implements str.replace; n < 0 means all.
func Replace(s *value.Str, l *value.Limits, old, new *value.Str, n int64) *value.Str {
	hits := int64(strings.Count(s.S, old.S))
	if n >= 0 {
		hits = min(hits, n)
	}
	l.Scan(len(s.S))
	if hits == 0 {
		return s
	}
	if grow := len(new.S) - len(old.S); grow > 0 && hits > int64(max(l.Bytes-len(s.S), 0)/grow) {
		l.Failf(value.Limit, "replacement would make more than %d bytes", l.Bytes)
	}
	t := &value.Text{Lim: l}
	from := 0
	for ; hits > 0 && l.Spend(8); hits-- {
		if old.S == "" { // before the first character, then after each character
			t.Str(new)
			end := forward(s.S, from, 1)
			t.Part(s, from, end)
			from = end
			continue
		}
		i := from + strings.Index(s.S[from:], old.S)
		t.Part(s, from, i)
		if new.Tracked() {
			t.Str(new)
		} else {
			// The template wrote the new text, but where it replaces text of a field it has the origin of that field.
			t.Changed(new.S, s, i, i+len(old.S))
		}
		from = i + len(old.S)
	}
	t.Part(s, from, len(s.S))
	return s.Like(t)
}

// Join implements sep.join(items).
func Join(l *value.Limits, sep *value.Str, items []*value.Str) *value.Str {
	n := 0
	for i, s := range items {
		n += len(s.S)
		if i > 0 {
			n += len(sep.S)
		}
	}
	if len(items) == 1 && !sep.Markup {
		return items[0]
	}
	if !l.Text(n) {
		return value.Empty
	}
	t := value.Text{B: make([]byte, 0, n), Lim: l}
	for i, s := range items {
		if i > 0 {
			t.Str(sep)
		}
		t.Str(s)
	}
	return sep.Like(&t)
}

// Map replaces each character by the result of f, which gets the character and its byte offset.
func Map(s *value.Str, l *value.Limits, f func(at int, r rune) string) *value.Str {
	if !l.Spend(24 * len(s.S)) {
		return s
	}
	t := &value.Text{Lim: l}
	changed := t.Mapped(s, func(rest string) (int, string) {
		r, n := utf8.DecodeRuneInString(rest)
		if n > 1 {
			l.Spend(300) // Unicode table lookups
		}
		return n, f(len(s.S)-len(rest), r)
	})
	if !changed {
		return s
	}
	return s.Like(t)
}

// Pad puts left and right copies of fill around s.
func Pad(s *value.Str, l *value.Limits, fill *value.Str, left, right int64) *value.Str {
	left, right = max(left, 0), max(right, 0)
	if left+right > int64(l.Bytes) || int64(len(fill.S))*(left+right) > int64(l.Bytes-min(len(s.S), l.Bytes)) {
		l.Failf(value.Limit, "padding of %d characters makes more than %d bytes", left+right, l.Bytes)
	}
	if left+right == 0 {
		return s
	}
	t := &value.Text{Lim: l}
	for ; left > 0 && l.Err == nil; left-- {
		t.Str(fill)
	}
	t.Str(s)
	for ; right > 0 && l.Err == nil; right-- {
		t.Str(fill)
	}
	return s.Like(t)
}

// ExpandTabs implements str.expandtabs.
func ExpandTabs(s *value.Str, l *value.Limits, size int64) *value.Str {
	if size > 0 && int64(strings.Count(s.S, "\t")) > int64(l.Bytes)/size {
		l.Failf(value.Limit, "expandtabs makes more than %d bytes", l.Bytes)
	}
	l.Spend(8 * len(s.S))
	t := &value.Text{Lim: l}
	col := int64(0)
	for i := 0; i < len(s.S) && l.Err == nil; {
		n := value.RuneLen(s.S[i:])
		switch s.S[i] {
		case '\t':
			w := int64(0)
			if size > 0 {
				w = size - col%size
			}
			if !l.Make(int(w)) {
				return s
			}
			t.Changed(strings.Repeat(" ", int(w)), s, i, i+1)
			col += w
		case '\n', '\r':
			t.Part(s, i, i+1)
			col = 0
		default:
			t.Part(s, i, i+n)
			col++
		}
		i += n
	}
	return s.Like(t)
}

// Find returns the character index of sub between two character bounds, or -1.
func Find(s *value.Str, l *value.Limits, sub string, start, stop *int64, last bool) int64 {
	i, j, ok := bounds(s, l, start, stop)
	if !ok {
		return -1
	}
	l.Spend(2 * (j - i))
	k := strings.Index(s.S[i:j], sub)
	if last {
		k = strings.LastIndex(s.S[i:j], sub)
	}
	if k < 0 {
		return -1
	}
	return int64(utf8.RuneCountInString(s.S[:i+k]))
}

// CountOf implements str.count.
func CountOf(s *value.Str, l *value.Limits, sub string, start, stop *int64) int64 {
	i, j, ok := bounds(s, l, start, stop)
	if !ok {
		return 0
	}
	l.Spend(2 * (j - i))
	return int64(strings.Count(s.S[i:j], sub))
}

// HasAffix is startswith or endswith between two character bounds.
func HasAffix(s *value.Str, l *value.Limits, affix string, start, stop *int64, suffix bool) bool {
	i, j, ok := bounds(s, l, start, stop)
	if !ok {
		return false
	}
	l.Scan(len(affix))
	if suffix {
		return strings.HasSuffix(s.S[i:j], affix)
	}
	return strings.HasPrefix(s.S[i:j], affix)
}

func bounds(s *value.Str, l *value.Limits, start, stop *int64) (i, j int, ok bool) {
	j = len(s.S)
	if start != nil {
		l.Scan(len(s.S))
		if *start > int64(s.RuneCount()) {
			return 0, 0, false
		}
		i = bound(l, s.S, *start)
	}
	if stop != nil {
		j = bound(l, s.S, *stop)
	}
	return i, j, i <= j
}
