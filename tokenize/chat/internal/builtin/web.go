package builtin

import (
	"html"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/turnpack/turnpack/internal/pytext"
	"github.com/turnpack/turnpack/tokenize/chat/internal/object"
	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

var (
	// In Python \w, \d and case-insensitive [a-z] match more than ASCII.
	urlPattern     = pattern(`(?i)^((https?://|www\.)(([\w%-]+\.)+)?([<a-z>]{2,63}|xn--[\w%]{2,59})|([\w%-]{2,63}\.)+(com|net|<i>nt|edu|gov|org|<i>nfo|m<i>l)|(https?://)((([\d]{1,3})(\.[\d]{1,3}){3})|(\[([\da-f]{0,4}:){2}([\da-f]{0,4}:?){1,6}\])))(?::[\d]{1,5})?(?:[/?#]\S*)?$`)
	mailPattern    = pattern(`^\S+@[\w][\w.-]*\.[\w]+$`)
	unicodeClasses = strings.NewReplacer(`\w`, `\p{L}\p{N}_`, `\d`, `\p{Nd}`, `<a-z>`, `a-z\x{130}\x{131}`, `<i>`, `[i\x{130}\x{131}]`)
)

// pattern compiles p on first use, since few templates make links.
func pattern(p string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(unicodeClasses.Replace(p)) })
}

func filterURLize(x *rt.Context, v value.Value, p rt.Params) value.Value {
	attrs, ok := linkAttrs(x, p[1], p[2], p[3])
	if !ok {
		return value.Stopped
	}
	var schemes []string
	if !value.IsNone(p[4]) {
		for _, it := range x.Elements(p[4]) {
			s := x.StrArg(it)
			if !schemePattern().MatchString(s.S) {
				return x.Failf(value.Other, "%s is not a valid URI scheme prefix.", value.ReprString(s))
			}
			schemes = append(schemes, s.S)
		}
	}
	// Patterns with many alternatives are tried at each word.
	if text := x.SoftStr(v); !x.Spend(1000 * len(text.S)) {
		return value.Stopped
	}
	escaped := py.Escape(x.SoftStr(v), x.Lim)
	t := &value.Text{Lim: x.Lim}
	for from := 0; from < len(escaped.S); {
		end := from + len(escaped.S[from:]) - len(strings.TrimLeftFunc(escaped.S[from:], pytext.IsSpace))
		t.Part(escaped, from, end)
		from = end
		if n := strings.IndexFunc(escaped.S[from:], pytext.IsSpace); n >= 0 {
			end = from + n
		} else {
			end = len(escaped.S)
		}
		before, after, linked := linkWord(x, escaped.S[from:end], p[0], schemes)
		t.Changed(before, escaped, from, end)
		if linked {
			t.Str(attrs)
			t.Changed(after, escaped, from, end)
		}
		from = end
	}
	out := t.Value()
	out.Markup = x.Escape
	return out
}

// linkAttrs returns the attributes of urlize's links.
func linkAttrs(x *rt.Context, nofollow, target, rel value.Value) (*value.Str, bool) {
	rels := []string{"noopener"}
	var from *value.Field
	if rel != nil && value.Truth(rel) {
		r, ok := rel.(*value.Str)
		if !ok {
			x.NoAttr(rel, "split")
			return nil, false
		}
		rels, from = append(rels, strings.FieldsFunc(r.S, pytext.IsSpace)...), r.Field()
	}
	if nofollow != nil && value.Truth(nofollow) {
		rels = append(rels, "nofollow")
	}
	slices.Sort(rels)
	parts := []*value.Str{value.Lit(` rel="`), value.Derived(html.EscapeString(strings.Join(slices.Compact(rels), " ")), from), value.Lit(`"`)}
	if target != nil && value.Truth(target) {
		parts = append(parts, value.Lit(` target="`), py.Escape(x.SoftStr(target), x.Lim), value.Lit(`"`))
	}
	return value.Concat(x.Lim, parts...), x.Err == nil
}

var schemePattern = pattern(`^[\w.+-]{2,}:/{0,2}$`)

// linkWord returns urlize's result for one word: all of it or, with attrs, the parts before and after the link's
// attributes.
func linkWord(x *rt.Context, word string, limit value.Value, schemes []string) (before, after string, attrs bool) {
	head, middle, tail := "", word, ""
	if !x.Spend(len(word) * len(word) / 8) { // brackets are moved one at a time
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
	case urlPattern().MatchString(middle):
		href := middle
		if !strings.HasPrefix(middle, "https://") && !strings.HasPrefix(middle, "http://") {
			href = "https://" + middle
		}
		return head + `<a href="` + href + `"`, `>` + linkText(x, middle, limit) + `</a>` + tail, true
	case strings.HasPrefix(middle, "mailto:") && mailPattern().MatchString(middle[7:]):
		middle = `<a href="` + middle + `">` + middle[7:] + `</a>`
	case strings.Contains(middle, "@") && !strings.HasPrefix(middle, "www.") && !strings.HasPrefix(middle, "@") &&
		!strings.Contains(middle, ":") && mailPattern().MatchString(middle):
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

// linkText returns the text of a link, cut at urlize's limit.
func linkText(x *rt.Context, url string, limit value.Value) string {
	if value.IsNone(limit) {
		return url
	}
	s := value.Lit(url)
	if !value.Compare(x.Lim, ">", value.NewInt(int64(s.RuneCount())), limit) {
		return url
	}
	cut, _ := object.Slice(x, s, [3]value.Value{1: limit}).(*value.Str)
	if cut == nil {
		return ""
	}
	return cut.S + "..."
}

func filterWordwrap(x *rt.Context, v value.Value, p rt.Params) value.Value {
	sep := value.Lit("\n")
	var ok bool
	if !value.IsNone(p[2]) {
		if sep, ok = p[2].(*value.Str); !ok {
			return x.NoAttr(p[2], "join")
		}
	}
	s, ok := v.(*value.Str)
	if !ok {
		return x.NoAttr(v, "splitlines")
	}
	if !x.Make(64*len(s.S)) || !x.Spend(64*len(s.S)) { // a piece for each word
		return value.Stopped
	}
	lines := py.Lines(s, x.Lim, false)
	width := int64(79)
	if len(lines) > 0 {
		width = x.Operand(p[0], width)
	}
	if width <= 0 {
		return x.Failf(value.Other, "invalid width %d (must be > 0)", width)
	}
	long := p.Flag(1, true)
	hyphens := p.Flag(3, true)
	var out []*value.Str
	for _, l := range lines {
		line := l.(*value.Str)
		var wrapped []*value.Str
		for _, r := range pytext.Wrap(line.S, int(min(width, 1<<30)), long, hyphens) {
			wrapped = append(wrapped, line.Slice(r[0], r[1]))
		}
		out = append(out, py.Join(x.Lim, sep, wrapped))
	}
	return py.Join(x.Lim, sep, out)
}
