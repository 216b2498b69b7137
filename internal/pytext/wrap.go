package pytext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Wrap implements Python's textwrap.wrap without changes to white space. It returns the byte ranges of the lines.
func Wrap(s string, width int, long, hyphens bool) [][2]int {
	type chunk struct {
		from, to, n int // n is the number of characters
		// Offset of the first character that is not white space, and end of the last. White space is Unicode's here;
		// words are separated by ASCII blanks only.
		first, last int
	}
	cut := func(from, to int) chunk {
		text := s[from:to]
		right := strings.TrimRightFunc(text, IsSpace)
		return chunk{from, to, utf8.RuneCountInString(text), from + len(right) - len(strings.TrimLeftFunc(right, IsSpace)), from + len(right)}
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
			case long: // without room, an empty piece that keeps the blank before it
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
				piece, rest := c, c // the rest may be long and is not scanned again
				piece.to, piece.n, rest.from = end, utf8.RuneCountInString(s[c.from:end]), end
				rest.n -= piece.n
				if rest.first < end && end < c.last {
					rest.first = c.last - len(strings.TrimLeftFunc(s[end:c.last], IsSpace))
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

// hyphenParts splits a word after hyphens between letters, and before and after em-dashes, as the regular expression
// of textwrap does. It returns byte ranges.
func hyphenParts(w string) [][2]int {
	if !strings.Contains(w, "-") {
		return [][2]int{{0, len(w)}}
	}
	var text []rune
	var starts []int // byte offset of each character; w may be invalid UTF-8
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
	// dash returns the end of the em-dash at i, or i. An em-dash starts only at the first of several hyphens.
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
