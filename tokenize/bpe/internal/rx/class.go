package rx

import (
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// latinFractions are ² ³ ¹ ¼ ½ ¾, which Oniguruma's \w matches outside of brackets but not inside.
var latinFractions = uni.Set{{Lo: 0xB2, Hi: 0xB3}, {Lo: 0xB9, Hi: 0xB9}, {Lo: 0xBC, Hi: 0xBE}}

func single(r rune) uni.Set { return uni.Set{{Lo: r, Hi: r}} }

// class parses a bracket expression after its [ and its optional ^.
func (p *parser) class() uni.Set {
	if p.depth++; p.depth > maxDepth {
		p.fail("classes nest deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	var parts []uni.Set // operands of &&
	var cur uni.Set
	first := true
	for {
		if !p.more() {
			p.fail("a character class is not closed")
			return nil
		}
		if p.looking("]") {
			if first {
				p.fail("] as the first character of a class")
				return nil
			}
			p.at++
			break
		}
		if p.accept("&&") {
			parts, cur = append(parts, cur), nil
			continue
		}
		first = false
		cur = uni.Union(cur, p.classItem())
	}
	for _, s := range parts {
		cur = cur.Intersect(s)
	}
	return cur
}

func (p *parser) classItem() uni.Set {
	if p.looking("[:") {
		p.fail("a POSIX bracket")
		return nil
	}
	if p.accept("[^") {
		return p.class().Negate()
	}
	if p.accept("[") {
		return p.class()
	}
	lo := p.classChar()
	if !p.looking("-") || strings.HasPrefix(p.s[p.at:], "-]") {
		return lo
	}
	if p.looking("-[") || p.looking("--") || len(lo) != 1 || lo[0].Lo != lo[0].Hi {
		p.fail("an ambiguous - in a class")
		return nil
	}
	p.at++
	hi := p.classChar()
	if len(hi) != 1 || hi[0].Lo != hi[0].Hi || hi[0].Lo < lo[0].Lo {
		p.fail("a range whose end is not a character at or after its start")
		return nil
	}
	return uni.Set{{Lo: lo[0].Lo, Hi: hi[0].Lo}}
}

func (p *parser) classChar() uni.Set {
	if !p.more() {
		p.fail("a character class is not closed")
		return nil
	}
	if p.accept(`\`) {
		if !p.more() {
			p.fail("a lone backslash at the end")
			return nil
		}
		return p.escapedSet(true)
	}
	if p.looking("~~") {
		p.fail("a class operator")
		return nil
	}
	return single(p.rune())
}

// escapedSet parses the text after a backslash, inside or outside of brackets.
func (p *parser) escapedSet(inside bool) uni.Set {
	named := func(name string, negate bool) uni.Set {
		s, ok := p.named(name)
		if !ok {
			p.fail("the class %q is not known here", name)
			return nil
		}
		if negate {
			return s.Negate()
		}
		return s
	}
	c := p.rune()
	switch c {
	case 'n':
		return single('\n')
	case 'r':
		return single('\r')
	case 't':
		return single('\t')
	case 'f':
		return single('\f')
	case 'v':
		return single('\v')
	case 's', 'S':
		return named("White_Space", c == 'S')
	case 'd', 'D':
		return named("Nd", c == 'D')
	case 'w', 'W':
		set := named("word", false)
		if inside {
			set = set.Intersect(latinFractions.Negate())
		}
		if c == 'W' {
			set = set.Negate()
		}
		return set
	case 'h', 'H':
		return named("hex", c == 'H')
	case 'p', 'P':
		if !p.accept("{") {
			break
		}
		end := strings.IndexByte(p.s[p.at:], '}')
		if end < 0 {
			break
		}
		name := p.s[p.at : p.at+end]
		p.at += end + 1
		inner := strings.TrimPrefix(name, "^")
		return named(inner, (c == 'P') != (inner != name))
	case 'x', 'u':
		return p.codePoint(c)
	default:
		if c < 0x80 && !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			return single(c)
		}
	}
	p.fail("the escape \\%c is not known here", c)
	return nil
}

func (p *parser) codePoint(c rune) uni.Set {
	hex := ""
	if p.accept("{") {
		end := strings.IndexByte(p.s[p.at:], '}')
		if end < 0 || c == 'u' {
			p.fail("an unknown form of \\%c", c)
			return nil
		}
		hex = p.s[p.at : p.at+end]
		p.at += end + 1
	} else {
		n := map[rune]int{'x': 2, 'u': 4}[c]
		if len(p.s)-p.at < n {
			p.fail("\\%c needs %d digits", c, n)
			return nil
		}
		hex = p.s[p.at : p.at+n]
		p.at += n
	}
	v, err := strconv.ParseUint(hex, 16, 32)
	if err != nil || v > 0x10FFFF || v >= 0xD800 && v < 0xE000 || c == 'x' && len(hex) == 2 && v >= 0x80 {
		p.fail("\\%c%s is not a character", c, hex)
		return nil
	}
	return single(rune(v))
}

func (p *parser) named(name string) (uni.Set, bool) {
	long := map[string]string{
		"Letter": "L", "Number": "N", "Mark": "M", "Punctuation": "P", "Symbol": "S", "Separator": "Z", "Other": "C",
		"Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt", "Modifier_Letter": "Lm", "Other_Letter": "Lo",
		"Decimal_Number": "Nd", "Letter_Number": "Nl", "Other_Number": "No",
	}
	if s, ok := long[name]; ok {
		name = s
	}
	if s, ok := p.u.Category(name); ok {
		return s, true
	}
	name = strings.TrimPrefix(strings.TrimPrefix(name, "Script="), "sc=")
	return p.u.Set(name)
}
