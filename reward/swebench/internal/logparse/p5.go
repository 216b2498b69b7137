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
	for rejoins := 0; ; rejoins++ {
		var again bool
		if log, again = dropBlocks(log, rejoins < maxRejoins); !again {
			return log
		}
	}
}

// dropBlocks is dropXML in one pass. With rejoin it stops, and again is true, where the text before
// and after a removed block forms a tag.
func dropBlocks(log string, rejoin bool) (_ string, again bool) {
	tags := findTags(log)
	closings := map[string][]int{}
	for i, t := range tags {
		if t.closing {
			closings[t.name] = append(closings[t.name], i)
		}
	}
	var done strings.Builder
	pos := 0
	for i := 0; i < len(tags); i++ {
		name, unclosed := tags[i].name, 1
		left := closings[name]
		for len(left) > 0 && left[0] < i {
			left = left[1:]
		}
		closings[name] = left
		if tags[i].closing || len(left) == 0 {
			continue
		}
		done.WriteString(log[pos:tags[i].start])
		for ; unclosed > 0 && len(left) > 0; left = left[1:] {
			for i++; i < left[0]; i++ {
				if tags[i].name == name {
					unclosed++
				}
			}
			unclosed--
		}
		pos = tags[i].end
		if unclosed > 0 {
			done.WriteString(strings.Repeat("<"+name+">", unclosed))
		} else if rejoin && formTag(done.String(), log[pos:]) {
			return done.String() + log[pos:], true
		}
	}
	return done.String() + log[pos:], false
}

// tag is <name> or </name>.
type tag struct {
	start, end int
	name       string
	closing    bool
}

func findTags(log string) (tags []tag) {
	for pos := 0; ; {
		i := strings.IndexByte(log[pos:], '<')
		if i < 0 {
			return tags
		}
		t := tag{start: pos + i}
		pos = t.start + 1
		body, closing := strings.CutPrefix(log[pos:], "/")
		after := strings.TrimLeftFunc(body, isWord)
		if t.name, t.closing = body[:len(body)-len(after)], closing; t.name != "" && strings.HasPrefix(after, ">") {
			t.end = len(log) - len(after) + 1
			tags = append(tags, t)
		}
	}
}

// formTag reports whether a tag begins at the end of before and ends at the beginning of after.
func formTag(before, after string) bool {
	rest := strings.TrimLeftFunc(after, isWord)
	if !strings.HasPrefix(rest, ">") { // looked at first: what is before may be long, and is before many blocks
		return false
	}
	head := strings.TrimRightFunc(before, isWord)
	named := len(head) < len(before) || len(rest) < len(after)
	return named && strings.HasSuffix(strings.TrimSuffix(head, "/"), "<")
}
