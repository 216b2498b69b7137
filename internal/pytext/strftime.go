// Package pytext implements Python's reprs, white space and text formats for plain Go values.
package pytext

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Strftime formats a time with the directives of glibc in the C locale, as Python's datetime does without a time
// zone: %, any of the flags - _ 0 ^ #, a width, E or O, and the letter. Text that is not a directive is unchanged.
func Strftime(t time.Time, format string) string {
	var b strings.Builder
	b.Grow(2 * len(format))
	for i := 0; i < len(format); {
		if format[i] != '%' {
			b.WriteByte(format[i])
			i++
			continue
		}
		d := directive{width: -1}
		n := d.parse(format[i:])
		text, ok := d.text(t)
		if !ok { // unchanged but for width and case, as in glibc
			text = format[i : i+n]
			if text = text[strings.LastIndexByte(text, '%'):]; d.upper {
				text = strings.ToUpper(text)
			}
			text = d.padded(text)
		}
		b.WriteString(text)
		i += n
	}
	return b.String()
}

// directive is one field of a time format.
type directive struct {
	pad            byte // '-', '_' or '0'; 0 for the default of the letter
	upper, another bool // another: the opposite of the letter's default case
	width          int  // −1 for none
	modifier       byte // 'E' or 'O', 0 for none
	letter         byte // 0 at the end of the format
}

// maxWidth is the maximum width of a field.
const maxWidth = 1 << 10

// parse parses the directive at the start of s and returns its length.
func (d *directive) parse(s string) int {
	i := 1
	for ; i < len(s) && strings.IndexByte("-_0^#", s[i]) >= 0; i++ {
		switch s[i] {
		case '^':
			d.upper = true
		case '#':
			d.another = true
		default:
			d.pad = s[i]
		}
	}
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		d.width = min(max(d.width, 0)*10+int(s[i]-'0'), maxWidth)
	}
	if i < len(s) && (s[i] == 'E' || s[i] == 'O') {
		d.modifier = s[i]
		i++
	}
	if i == len(s) {
		return i
	}
	d.letter = s[i]
	return i + 1
}

// refusedE and refusedO are the letters that cannot have the modifier.
const (
	refusedE = "aAbBdDeFgGhHIjklmMSUVwW"
	refusedO = "aAcDFxXY"
)

// clockNumbers are the numeric fields: their number of digits, and whether they are padded with blanks.
var clockNumbers = map[byte]struct {
	digits int
	blank  bool
	of     func(t time.Time) int
}{
	'Y': {4, false, time.Time.Year},
	'C': {2, false, func(t time.Time) int { return t.Year() / 100 }},
	'y': {2, false, func(t time.Time) int { return t.Year() % 100 }},
	'm': {2, false, func(t time.Time) int { return int(t.Month()) }},
	'd': {2, false, time.Time.Day},
	'e': {2, true, time.Time.Day},
	'H': {2, false, time.Time.Hour},
	'k': {2, true, time.Time.Hour},
	'I': {2, false, hour12},
	'l': {2, true, hour12},
	'M': {2, false, time.Time.Minute},
	'S': {2, false, time.Time.Second},
	'j': {3, false, time.Time.YearDay},
	'w': {1, false, func(t time.Time) int { return int(t.Weekday()) }},
	'u': {1, false, func(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }},
	'U': {2, false, func(t time.Time) int { return (t.YearDay() + 6 - int(t.Weekday())) / 7 }},
	'W': {2, false, func(t time.Time) int { return (t.YearDay() + 6 - (int(t.Weekday())+6)%7) / 7 }},
	'V': {2, false, func(t time.Time) int { _, week := t.ISOWeek(); return week }},
	'G': {4, false, isoYear},
	'g': {2, false, func(t time.Time) int { return isoYear(t) % 100 }},
	's': {1, false, func(t time.Time) int { return int(t.Unix()) }},
}

func hour12(t time.Time) int { return (t.Hour()+11)%12 + 1 }

func isoYear(t time.Time) int {
	year, _ := t.ISOWeek()
	return year
}

// clockTexts are the fields that are composed of others.
var clockTexts = map[byte]string{
	'D': "%m/%d/%y", 'x': "%m/%d/%y", 'T': "%H:%M:%S", 'X': "%H:%M:%S", 'R': "%H:%M", 'r': "%I:%M:%S %p", 'F': "%Y-%m-%d", 'c': "%a %b %e %H:%M:%S %Y",
}

// text returns the text of the directive, or false if the directive is written unchanged.
func (d *directive) text(t time.Time) (string, bool) {
	if d.modifier == 'E' && strings.IndexByte(refusedE, d.letter) >= 0 || d.modifier == 'O' && strings.IndexByte(refusedO, d.letter) >= 0 {
		return "", false
	}
	if n, ok := clockNumbers[d.letter]; ok {
		return d.number(n.of(t), n.digits, n.blank), true
	}
	text := ""
	switch d.letter {
	case 'f': // Python's own directive, only without flags and width
		if *d != (directive{width: -1, letter: 'f'}) {
			return "", false
		}
		text = fmt.Sprintf("%06d", t.Nanosecond()/1000)
	case 'B':
		text = t.Month().String()
	case 'b', 'h':
		text = t.Month().String()[:3]
	case 'A':
		text = t.Weekday().String()
	case 'a':
		text = t.Weekday().String()[:3]
	case 'p':
		text = t.Format("PM")
		if d.another {
			return d.padded(strings.ToLower(text)), true
		}
	case 'P':
		text = t.Format("pm")
		return d.padded(text), true
	case 'z': // nothing, without padding
		return "", true
	case 'Z':
	case 'n':
		text = "\n"
	case 't':
		text = "\t"
	case '%':
		text = "%"
	default:
		format, ok := clockTexts[d.letter]
		if !ok {
			return "", false
		}
		text = Strftime(t, format)
		if !d.upper {
			return d.padded(text), true
		}
	}
	if d.upper || d.another {
		text = strings.ToUpper(text)
	}
	return d.padded(text), true
}

func (d *directive) padded(text string) string {
	fill := " "
	if d.pad == '0' {
		fill = "0"
	}
	return strings.Repeat(fill, max(d.width-len(text), 0)) + text
}

func (d *directive) number(n, digits int, blank bool) string {
	text := strconv.Itoa(n)
	pad := d.pad
	if blank && pad == 0 {
		pad = '_'
	}
	missing := max(digits, d.width) - len(text)
	switch {
	case missing <= 0 || pad == '-':
		return d.padded(text)
	case pad == '_':
		return strings.Repeat(" ", missing) + text
	}
	return strings.Repeat("0", missing) + text
}
