package eval

import (
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

func unescapeHTML(s string) string { return html.UnescapeString(s) }

var (
	// Python's \w, \d and [a-z] without case know more than ASCII.
	urlPattern     = regexp.MustCompile(unicodeClasses.Replace(`(?i)^((https?://|www\.)(([\w%-]+\.)+)?([<a-z>]{2,63}|xn--[\w%]{2,59})|([\w%-]{2,63}\.)+(com|net|<i>nt|edu|gov|org|<i>nfo|m<i>l)|(https?://)((([\d]{1,3})(\.[\d]{1,3}){3})|(\[([\da-f]{0,4}:){2}([\da-f]{0,4}:?){1,6}\])))(?::[\d]{1,5})?(?:[/?#]\S*)?$`))
	mailPattern    = regexp.MustCompile(unicodeClasses.Replace(`^\S+@[\w][\w.-]*\.[\w]+$`))
	unicodeClasses = strings.NewReplacer(`\w`, `\p{L}\p{N}_`, `\d`, `\p{Nd}`, `<a-z>`, `a-z\x{130}\x{131}`, `<i>`, `[i\x{130}\x{131}]`)
)

func filterURLize(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_urlize", 0, "trim_url_limit", "nofollow", "target", "rel", "extra_schemes")
	if !ok {
		return undefined
	}
	attrs, ok := x.linkAttrs(p[1], p[2], p[3])
	if !ok {
		return undefined
	}
	var schemes []string
	if !isNone(p[4]) {
		items, ok := elements(x, p[4])
		if !ok {
			return undefined
		}
		for _, it := range items {
			s, ok := x.strArg(it)
			if !ok {
				return undefined
			}
			if !schemePattern.MatchString(s.S) {
				return x.failf(value.Other, "%s is not a valid URI scheme prefix.", value.ReprString(s))
			}
			schemes = append(schemes, s.S)
		}
	}
	// Patterns of many alternatives are tried at each word.
	if text := x.softStr(v); !x.spend(1000 * len(text.S)) {
		return undefined
	}
	escaped := x.softStr(v).Escape(&x.lim.Limits)
	t := x.lim.NewText(escaped, attrs)
	for from := 0; from < len(escaped.S); {
		end := from + len(escaped.S[from:]) - len(strings.TrimLeftFunc(escaped.S[from:], value.IsSpace))
		t.Part(escaped, from, end)
		from = end
		if n := strings.IndexFunc(escaped.S[from:], value.IsSpace); n >= 0 {
			end = from + n
		} else {
			end = len(escaped.S)
		}
		before, after, linked := x.linkWord(escaped.S[from:end], p[0], schemes)
		t.Changed(before, escaped, from, end)
		if linked {
			t.Str(attrs)
			t.Changed(after, escaped, from, end)
		}
		from = end
	}
	out := t.Value()
	out.Markup = x.escape
	return out
}

// linkAttrs are the attributes of urlize's links.
func (x *exec) linkAttrs(nofollow, target, rel value.Value) (*value.Str, bool) {
	rels := []string{"noopener"}
	var from *value.Field
	if rel != nil && value.Truth(rel) {
		r, ok := rel.(*value.Str)
		if !ok {
			x.noAttr(rel, "split")
			return nil, false
		}
		rels, from = append(rels, strings.FieldsFunc(r.S, value.IsSpace)...), r.Field()
	}
	if nofollow != nil && value.Truth(nofollow) {
		rels = append(rels, "nofollow")
	}
	slices.Sort(rels)
	parts := []*value.Str{value.Lit(` rel="`), value.Derived(html.EscapeString(strings.Join(slices.Compact(rels), " ")), from), value.Lit(`"`)}
	if target != nil && value.Truth(target) {
		parts = append(parts, value.Lit(` target="`), x.softStr(target).Escape(&x.lim.Limits), value.Lit(`"`))
	}
	s, fault := value.Concat(&x.lim.Limits, parts...)
	x.fail(fault)
	return s, x.err == nil
}

var schemePattern = regexp.MustCompile(unicodeClasses.Replace(`^[\w.+-]{2,}:/{0,2}$`))

// linkWord is what urlize makes of one word: all of it, or, of a link with
// attributes, what stands before and after them.
func (x *exec) linkWord(word string, limit value.Value, schemes []string) (before, after string, attrs bool) {
	head, middle, tail := "", word, ""
	if !x.spend(len(word) * len(word) / 8) { // brackets are moved one by one
		return word, "", false
	}
	for again := true; again; {
		again = false
		for _, p := range []string{"(", "<", "&lt;"} {
			if strings.HasPrefix(middle, p) {
				head, middle, again = head+p, middle[len(p):], true
			}
		}
	}
	for again := true; again; {
		again = false
		for _, p := range []string{")", ">", ".", ",", "\n", "&gt;"} {
			if strings.HasSuffix(middle, p) {
				tail, middle, again = p+tail, middle[:len(middle)-len(p)], true
			}
		}
	}
	for _, pair := range [][2]string{{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}} {
		open := strings.Count(middle, pair[0])
		if open <= strings.Count(middle, pair[1]) {
			continue
		}
		for n := min(open, strings.Count(tail, pair[1])); n > 0; n-- {
			end := strings.Index(tail, pair[1]) + len(pair[1])
			middle, tail = middle+tail[:end], tail[end:]
		}
	}
	switch {
	case urlPattern.MatchString(middle):
		href := middle
		if !strings.HasPrefix(middle, "https://") && !strings.HasPrefix(middle, "http://") {
			href = "https://" + middle
		}
		return head + `<a href="` + href + `"`, `>` + x.shownURL(middle, limit) + `</a>` + tail, true
	case strings.HasPrefix(middle, "mailto:") && mailPattern.MatchString(middle[7:]):
		middle = `<a href="` + middle + `">` + middle[7:] + `</a>`
	case strings.Contains(middle, "@") && !strings.HasPrefix(middle, "www.") && !strings.HasPrefix(middle, "@") &&
		!strings.Contains(middle, ":") && mailPattern.MatchString(middle):
		middle = `<a href="mailto:` + middle + `">` + middle + `</a>`
	default:
		for _, s := range schemes {
			if middle != s && strings.HasPrefix(middle, s) {
				return head + `<a href="` + middle + `"`, `>` + middle + `</a>` + tail, true
			}
		}
	}
	return head + middle + tail, "", false
}

// shownURL is a link's text, cut at urlize's limit.
func (x *exec) shownURL(url string, limit value.Value) string {
	if isNone(limit) {
		return url
	}
	s := value.Lit(url)
	long, fault := value.Compare(&x.lim.Limits, ">", value.NewInt(int64(s.RuneCount())), limit)
	x.fail(fault)
	if !long {
		return url
	}
	cut, _ := x.slice(s, [3]value.Value{1: limit}).(*value.Str)
	if cut == nil {
		return ""
	}
	return cut.S + "..."
}

func filterWordwrap(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_wordwrap", 0, "width", "break_long_words", "wrapstring", "break_on_hyphens")
	if !ok {
		return undefined
	}
	sep := value.Lit("\n")
	if !isNone(p[2]) {
		if sep, ok = p[2].(*value.Str); !ok {
			return x.noAttr(p[2], "join")
		}
	}
	s, ok := v.(*value.Str)
	if !ok {
		return x.noAttr(v, "splitlines")
	}
	if !x.make(64*len(s.S)) || !x.spend(64*len(s.S)) { // a piece for each word
		return undefined
	}
	lines, fault := s.Lines(&x.lim.Limits, false)
	if fault != nil {
		return x.fail(fault)
	}
	width := int64(79)
	if p[0] != nil && len(lines) > 0 {
		if width, ok = x.operandArg(p[0]); !ok {
			return undefined
		}
	}
	if width <= 0 {
		return x.failf(value.Other, "invalid width %d (must be > 0)", width)
	}
	long := p[1] == nil || value.Truth(p[1])
	hyphens := p[3] == nil || value.Truth(p[3])
	var out []*value.Str
	for _, l := range lines {
		line := l.(*value.Str)
		var wrapped []*value.Str
		for _, r := range wrap(line.S, int(min(width, 1<<30)), long, hyphens) {
			wrapped = append(wrapped, line.Slice(r[0], r[1]))
		}
		joined, fault := value.Join(&x.lim.Limits, sep, wrapped)
		if fault != nil {
			return x.fail(fault)
		}
		out = append(out, joined)
	}
	return x.strFault(value.Join(&x.lim.Limits, sep, out))
}

// wrap is Python's textwrap.wrap without changes to white space: byte ranges of
// the lines.
func wrap(s string, width int, long, hyphens bool) [][2]int {
	type chunk struct {
		from, to, n int // n characters
		// The first character that is no white space, of any kind, and where the last
		// ends; words end at blanks of ASCII alone.
		first, last int
	}
	cut := func(from, to int) chunk {
		text := s[from:to]
		right := strings.TrimRightFunc(text, value.IsSpace)
		return chunk{from, to, utf8.RuneCountInString(text), from + len(right) - len(strings.TrimLeftFunc(right, value.IsSpace)), from + len(right)}
	}
	space := func(c chunk) bool { return c.from < c.to && (c.first >= c.to || c.last <= c.from) }
	var chunks []chunk
	add := func(from, to int) {
		if from < to {
			chunks = append(chunks, cut(from, to))
		}
	}
	isBlank := func(c byte) bool { return strings.IndexByte("\t\n\x0b\x0c\r ", c) >= 0 }
	for i := 0; i < len(s); {
		j := i
		blank := isBlank(s[i])
		for j < len(s) && isBlank(s[j]) == blank {
			j++
		}
		if blank || !hyphens {
			add(i, j)
		} else {
			for _, c := range hyphenParts(s[i:j]) {
				add(i+c[0], i+c[1])
			}
		}
		i = j
	}
	var out [][2]int
	for len(chunks) > 0 {
		if space(chunks[0]) && len(out) > 0 {
			chunks = chunks[1:]
		}
		n, k := 0, 0
		for k < len(chunks) && n+chunks[k].n <= width {
			n += chunks[k].n
			k++
		}
		line := append([]chunk(nil), chunks[:k]...)
		chunks = chunks[k:]
		if len(chunks) > 0 && chunks[0].n > width {
			room := width - n
			switch {
			case long: // without room an empty piece, which keeps the blank before it
				c := chunks[0]
				end := c.from
				for range room {
					_, size := utf8.DecodeRuneInString(s[end:])
					end += size
				}
				if hyphens {
					if h := strings.LastIndexByte(s[c.from:end], '-'); h > 0 && strings.Trim(s[c.from:c.from+h], "-") != "" {
						end = c.from + h + 1
					}
				}
				piece, rest := c, c // without looking at the whole rest again: it may be long
				piece.to, piece.n, rest.from = end, utf8.RuneCountInString(s[c.from:end]), end
				rest.n -= piece.n
				if rest.first < end && end < c.last {
					rest.first = c.last - len(strings.TrimLeftFunc(s[end:c.last], value.IsSpace))
				}
				line, chunks[0] = append(line, piece), rest
			case !long && len(line) == 0:
				line = append(line, chunks[0])
				chunks = chunks[1:]
			}
		}
		if len(line) > 0 && space(line[len(line)-1]) {
			line = line[:len(line)-1]
		}
		if len(line) > 0 {
			out = append(out, [2]int{line[0].from, line[len(line)-1].to})
		}
	}
	return out
}

// hyphenParts splits a word after hyphens between letters, and before and after
// em-dashes, as the regular expression of textwrap does: byte ranges.
func hyphenParts(w string) [][2]int {
	if !strings.Contains(w, "-") {
		return [][2]int{{0, len(w)}}
	}
	var text []rune
	var starts []int // of the characters; w need not be valid UTF-8
	for i, r := range w {
		text, starts = append(text, r), append(starts, i)
	}
	starts = append(starts, len(w))
	at := func(i int) rune {
		if i < 0 || i >= len(text) {
			return ' '
		}
		return text[i]
	}
	word := func(i int) bool { r := at(i); return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }
	letter := func(i int) bool { return word(i) && !unicode.IsDigit(at(i)) }
	joins := func(i int) bool { return word(i) || strings.ContainsRune("!\"'&.,?", at(i)) }
	// dash is the end of the em-dash at i, or i; only the first hyphen in a row begins one.
	dash := func(i int) int {
		if at(i) != '-' || !joins(i-1) {
			return i
		}
		end := i
		for at(end) == '-' {
			end++
		}
		if end-i < 2 || !word(end) {
			return i
		}
		return end
	}
	var out [][2]int
	from := 0
	part := func(to int) {
		out = append(out, [2]int{starts[from], starts[to]})
		from = to
	}
	for from < len(text) {
		if end := dash(from); end > from {
			part(end)
			continue
		}
		for i := from + 1; ; i++ {
			before := letter(i-1) && (letter(i-2) || at(i-2) == '-' && letter(i-3))
			behind := letter(i+1) && (letter(i+2) || at(i+2) == '-' && letter(i+3))
			if at(i) == '-' && before && behind {
				part(i + 1)
				break
			}
			if i == len(text) || dash(i) > i {
				part(i)
				break
			}
		}
	}
	return out
}
