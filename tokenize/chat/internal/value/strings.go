package value

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Strip removes characters of chars (white space when chars is nil) from the
// chosen ends.
func (s *Str) Strip(l *Limits, chars *Str, left, right bool) *Str {
	return s.Slice(s.stripped(l, chars, left, right))
}

// stripped is the range of bytes that Strip leaves.
func (s *Str) stripped(l *Limits, chars *Str, left, right bool) (i, j int) {
	drop := IsSpace
	if chars != nil {
		set := map[rune]bool{}
		for _, r := range chars.S {
			if !l.Make(3 * StepWork) {
				break
			}
			set[r] = true
		}
		drop = func(r rune) bool { return set[r] }
	}
	j = len(s.S)
	defer func() { l.Spend(8*(len(s.S)-(j-i)) + runSize*len(s.runs())) }()
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
	return i, j
}

// Trimmed appends a string without the white space at its ends.
func (t *Text) Trimmed(s *Str) {
	l := t.Lim
	if l == nil {
		l = &Limits{}
	}
	i, j := s.stripped(l, nil, true, true)
	t.Part(s, i, j)
}

// Split is str.split or, from the right, str.rsplit; sep is not empty. max < 0
// means no bound.
func (s *Str) Split(l *Limits, sep string, max int64, fromRight bool) (*List, *Fault) {
	var out []Value
	l.scan(len(s.S))
	n := strings.Count(s.S, sep)
	if n >= l.Items && (max < 0 || max >= int64(l.Items)) {
		return nil, limitError("list of %d items, more than %d", n+1, l.Items)
	}
	if max >= 0 {
		n = int(min(int64(n), max))
	}
	if !l.Make(strSize*(n+1) + runSize*len(s.runs())) {
		return nil, l.Over()
	}
	if fromRight {
		j := len(s.S)
		for max != 0 {
			i := strings.LastIndex(s.S[:j], sep)
			if i < 0 {
				break
			}
			out = append(out, s.Slice(i+len(sep), j))
			j = i
			max--
		}
		out = append(out, s.Slice(0, j))
		slices.Reverse(out)
		return &List{Items: out}, nil
	}
	i := 0
	for max != 0 {
		j := strings.Index(s.S[i:], sep)
		if j < 0 {
			break
		}
		out = append(out, s.Slice(i, i+j))
		i += j + len(sep)
		max--
	}
	return &List{Items: append(out, s.Slice(i, len(s.S)))}, nil
}

// strSize is about the memory of a string in a list, without its text.
const strSize = 64

// Fields is str.split (or rsplit) without a separator.
func (s *Str) Fields(l *Limits, max int64, fromRight bool) (*List, *Fault) {
	out := []Value{}
	l.Spend(4*len(s.S) + runSize*len(s.runs()))
	for from, to := 0, len(s.S); ; {
		rest := s.S[from:to]
		if fromRight {
			rest = strings.TrimRightFunc(rest, IsSpace)
			to = from + len(rest)
		} else {
			rest = strings.TrimLeftFunc(rest, IsSpace)
			from = to - len(rest)
		}
		if rest == "" {
			break
		}
		if len(out) >= l.Items {
			return nil, limitError("list of more than %d items", l.Items)
		}
		if !l.Make(strSize) {
			return nil, l.Over()
		}
		if max >= 0 && int64(len(out)) == max {
			out = append(out, s.Slice(from, to))
			break
		}
		if fromRight {
			i := strings.LastIndexFunc(rest, IsSpace)
			if i >= 0 {
				i += runeLen(rest[i:])
			} else {
				i = 0
			}
			out = append(out, s.Slice(from+i, to))
			to = from + i
			continue
		}
		i := strings.IndexFunc(rest, IsSpace)
		if i < 0 {
			i = len(rest)
		}
		out = append(out, s.Slice(from, from+i))
		from += i
	}
	if fromRight {
		slices.Reverse(out)
	}
	return &List{Items: out}, nil
}

// Lines is str.splitlines.
func (s *Str) Lines(l *Limits, keep bool) ([]Value, *Fault) {
	out := []Value{}
	start := 0
	l.Spend(2*len(s.S) + runSize*len(s.runs()))
	for i, r := range s.S {
		switch r {
		case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		default:
			continue
		}
		if i < start { // the \n of a \r\n
			continue
		}
		end := i + runeLen(s.S[i:])
		if r == '\r' && strings.HasPrefix(s.S[end:], "\n") {
			end++
		}
		if len(out) >= l.Items {
			return nil, limitError("list of more than %d items", l.Items)
		}
		if !l.Make(strSize) {
			return nil, l.Over()
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
	return out, nil
}

// Replace is str.replace; n < 0 means all.
func (s *Str) Replace(l *Limits, old, new *Str, n int64) (*Str, *Fault) {
	var hits int64
	if old.S == "" {
		hits = int64(s.RuneCount()) + 1
	} else {
		hits = int64(strings.Count(s.S, old.S))
	}
	if n >= 0 {
		hits = min(hits, n)
	}
	l.scan(len(s.S))
	if hits == 0 {
		return s, nil
	}
	if grow := len(new.S) - len(old.S); grow > 0 && hits > int64(max(l.Bytes-len(s.S), 0)/grow) {
		return nil, limitError("replacement would make more than %d bytes", l.Bytes)
	}
	t := l.NewText(s, new)
	from := 0
	for ; hits > 0 && l.Spend(8); hits-- {
		var i int
		if old.S == "" {
			// Before the first character, then after each one.
			i = from
			t.Str(new)
			if i < len(s.S) {
				end := i + runeLen(s.S[i:])
				t.Part(s, i, end)
				from = end
			}
			continue
		}
		i = from + strings.Index(s.S[from:], old.S)
		t.Part(s, from, i)
		switch {
		case new.tracked():
			t.Str(new)
		default:
			// The template wrote the new text, but where it stands for text of
			// a field it speaks for that field.
			t.Changed(new.S, s, i, i+len(old.S))
		}
		from = i + len(old.S)
	}
	t.Part(s, from, len(s.S))
	return s.like(t), nil
}

// Join is sep.join(items).
func Join(l *Limits, sep *Str, items []*Str) (*Str, *Fault) {
	n := 0
	track := sep.tracked()
	for i, s := range items {
		n += len(s.S)
		if i > 0 {
			n += len(sep.S)
		}
		track = track || s.tracked()
		if n > l.Bytes {
			return nil, limitError("string of more than %d bytes", l.Bytes)
		}
	}
	if len(items) == 1 && !sep.Markup {
		return items[0], nil
	}
	if !l.Room() {
		return nil, l.Over()
	}
	t := Text{B: make([]byte, 0, n), Track: track, Lim: l}
	for i, s := range items {
		if i > 0 {
			t.Str(sep)
		}
		t.Str(s)
	}
	return sep.like(&t), nil
}

// Map changes each character by f, which gets the text from that character on
// and returns the replacement of its first character.
func (s *Str) Map(l *Limits, f func(rest string, r rune, first bool) string) *Str {
	if !l.Spend(24 * len(s.S)) {
		return s
	}
	t := l.NewText(s)
	from := 0
	for i := 0; i < len(s.S) && l.Room(); {
		r, n := utf8.DecodeRuneInString(s.S[i:])
		if n > 1 {
			l.Spend(300) // tables of Unicode
		}
		if out := f(s.S[i:], r, i == 0); out != s.S[i:i+n] {
			t.Part(s, from, i)
			t.Changed(out, s, i, i+n)
			from = i + n
		}
		i += n
	}
	if from == 0 {
		return s
	}
	t.Part(s, from, len(s.S))
	return s.like(t)
}

// Pad puts left and right copies of fill around s.
func (s *Str) Pad(l *Limits, fill *Str, left, right int64) (*Str, *Fault) {
	left, right = max(left, 0), max(right, 0)
	if left+right > int64(l.Bytes) || int64(len(fill.S))*(left+right) > int64(l.Bytes-min(len(s.S), l.Bytes)) {
		return nil, limitError("padding of %d characters makes more than %d bytes", left+right, l.Bytes)
	}
	if left+right == 0 {
		return s, nil
	}
	t := l.NewText(s, fill)
	for ; left > 0 && l.Room(); left-- {
		t.Str(fill)
	}
	t.Str(s)
	for ; right > 0 && l.Room(); right-- {
		t.Str(fill)
	}
	return s.like(t), nil
}

// ExpandTabs is str.expandtabs.
func (s *Str) ExpandTabs(l *Limits, size int64) (*Str, *Fault) {
	if size > 0 && int64(strings.Count(s.S, "\t")) > int64(l.Bytes)/size {
		return nil, limitError("expandtabs makes more than %d bytes", l.Bytes)
	}
	if !l.Spend(8 * len(s.S)) {
		return nil, l.Over()
	}
	t := l.NewText(s)
	col := int64(0)
	for i := 0; i < len(s.S) && l.Room(); {
		n := runeLen(s.S[i:])
		switch s.S[i] {
		case '\t':
			w := int64(0)
			if size > 0 {
				w = size - col%size
			}
			if !l.Make(int(w)) {
				return nil, l.Over()
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
	return s.like(t), nil
}

// Find returns the character index of sub between two character bounds, or -1.
func (s *Str) Find(l *Limits, sub string, start, stop *int64, last bool) int64 {
	i, j, ok := s.bounds(l, start, stop)
	if !ok {
		return -1
	}
	l.Spend(2 * (j - i))
	var k int
	if last {
		k = strings.LastIndex(s.S[i:j], sub)
	} else {
		k = strings.Index(s.S[i:j], sub)
	}
	if k < 0 {
		return -1
	}
	return int64(utf8.RuneCountInString(s.S[:i+k]))
}

// CountOf is str.count.
func (s *Str) CountOf(l *Limits, sub string, start, stop *int64) int64 {
	i, j, ok := s.bounds(l, start, stop)
	if !ok {
		return 0
	}
	l.Spend(2 * (j - i))
	return int64(strings.Count(s.S[i:j], sub))
}

// HasAffix is startswith or endswith between two character bounds.
func (s *Str) HasAffix(l *Limits, affix string, start, stop *int64, suffix bool) bool {
	i, j, ok := s.bounds(l, start, stop)
	if !ok {
		return false
	}
	l.scan(len(affix))
	if suffix {
		return strings.HasSuffix(s.S[i:j], affix)
	}
	return strings.HasPrefix(s.S[i:j], affix)
}

func (s *Str) bounds(l *Limits, start, stop *int64) (i, j int, ok bool) {
	j = len(s.S)
	if start != nil {
		l.scan(len(s.S))
		if *start > int64(s.RuneCount()) {
			return 0, 0, false
		}
		i = l.bound(s.S, *start)
	}
	if stop != nil {
		j = l.bound(s.S, *stop)
	}
	return i, j, i <= j
}
