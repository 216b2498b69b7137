package logparse

import (
	"strings"
	"unicode/utf8"
)

// parseP5 reads mocha failures, "1) suite\n  test:", after dropping the JSON
// and XML printed by the tests between them.
func parseP5(log string, _ Context) (Statuses, error) {
	var m Statuses
	log = dropXML(dropJSON(stripANSI(log)))
	for pos := 0; pos < len(log); {
		body := trimLeft(log[pos:])
		at := len(log) - len(body)
		rest, ok := cutNumber(body)
		if ok {
			if title, ok := untilColon(rest); ok {
				if name, ok := indentedTitle(title); ok {
					m.Set(name, Failed)
				}
				at = len(log) - len(rest) + len(title) + 1
			}
		}
		// Every line start before at would lead to the same place.
		i := strings.IndexByte(log[at:], '\n')
		if i < 0 {
			break
		}
		pos = at + i + 1
	}
	return m, nil
}

// maxTitle is the maximum length of a title in characters, up to its colon.
const maxTitle = 1000

func untilColon(s string) (string, bool) {
	i := strings.IndexByte(s[:min(len(s), utf8.UTFMax*maxTitle+1)], ':')
	if i < 0 || utf8.RuneCountInString(s[:i]) > maxTitle {
		return "", false
	}
	return s[:i], true
}

// indentedTitle joins the lines of a title with colons. Each line must be indented more than the
// previous one, otherwise ok is false.
func indentedTitle(title string) (string, bool) {
	var parts []string
	last := 0
	for line := range strings.SplitSeq(title, "\n") {
		chars, _ := indent(line)
		if chars <= last {
			return "", false
		}
		last = chars
		parts = append(parts, trim(line))
	}
	return strings.Join(parts, ":"), true
}

// dropJSON removes printed objects and lists: those from a line that ends in { or [ to a line with
// only the closing bracket, and those on a single line.
func dropJSON(log string) string {
	var b strings.Builder
	b.Grow(len(log))
	object, list, first := false, false, true
	for line := range strings.SplitSeq(log, "\n") {
		body := trimRight(line)
		switch {
		case strings.HasSuffix(body, "{"):
			object = true
			continue
		case strings.HasSuffix(body, "["):
			list = true
			continue
		case body == "}" && object:
			object = false
			continue
		case body == "]" && list:
			list = false
			continue
		case object || list,
			strings.HasPrefix(body, "{") && strings.HasSuffix(body, "}"),
			strings.HasPrefix(body, "[") && strings.HasSuffix(body, "]"):
			continue
		}
		if !first {
			b.WriteByte('\n')
		}
		first = false
		b.WriteString(line)
	}
	return b.String()
}

// maxRejoins bounds the number of removals after which the search restarts.
const maxRejoins = 1000

// dropXML removes <tag>…</tag> blocks in order of their beginnings. For each further opening tag of
// the same name inside a block, an opening tag is kept in its place, to match a later closing tag.
func dropXML(log string) string {
	var done strings.Builder
	unclosed := map[string]bool{}
	for rejoins := 0; ; {
		start, end, name := firstBlock(log, unclosed)
		if end == 0 {
			done.WriteString(log)
			return done.String()
		}
		inner := strings.Count(log[start:end], "<"+name+">") - 1
		done.WriteString(log[:start])
		switch log = log[end:]; {
		case inner > 0:
			log = strings.Repeat("<"+name+">", inner) + log
		case endsInTag(done.String()) && rejoins < maxRejoins:
			// The text before and after the removed block may form a tag.
			rejoins++
			log = done.String() + log
			done.Reset()
			clear(unclosed)
		}
	}
}

// endsInTag reports whether s ends with the beginning of a tag.
func endsInTag(s string) bool {
	head := strings.TrimSuffix(strings.TrimRightFunc(s, isWord), "/")
	return strings.HasSuffix(head, "<")
}

// firstBlock returns the first block with an opening and a closing tag; end is 0 if there is none. It
// records names without a closing tag in unclosed, which stays valid since later text only gets
// shorter.
func firstBlock(log string, unclosed map[string]bool) (start, end int, name string) {
	for pos := 0; ; {
		i := strings.IndexByte(log[pos:], '<')
		if i < 0 {
			return 0, 0, ""
		}
		start = pos + i
		pos = start + 1
		n := len(log[pos:]) - len(strings.TrimLeftFunc(log[pos:], isWord))
		if n == 0 || pos+n >= len(log) || log[pos+n] != '>' {
			continue
		}
		name = log[pos : pos+n]
		if unclosed[name] {
			continue
		}
		closing := "</" + name + ">"
		body := pos + n + 1
		if j := strings.Index(log[body:], closing); j >= 0 {
			return start, body + j + len(closing), name
		}
		unclosed[name] = true
	}
}
