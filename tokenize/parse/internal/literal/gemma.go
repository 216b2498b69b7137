package literal

import "strings"

// GemmaQuote is the mark before and after a text.
const GemmaQuote = `<|"|>`

// Gemma parses call:name{key:value}. bad says what is wrong, "" if nothing.
func Gemma(s string) (c Call, bad string) {
	g := &gemma{s: s}
	c.Name, c.Arguments = g.call()
	return c, g.err
}

type gemma struct {
	s   string
	err string
}

func (g *gemma) fail(why string) {
	if g.err == "" {
		g.err = why
		g.s = ""
	}
}

func (g *gemma) takes(mark string) bool {
	g.s = strings.TrimLeft(g.s, Space)
	rest, ok := strings.CutPrefix(g.s, mark)
	g.s = rest
	return ok
}

func (g *gemma) call() (name, arguments string) {
	if !g.takes("call:") {
		g.fail("it does not begin with call:")
	}
	name, rest, ok := strings.Cut(g.s, "{")
	if !ok {
		g.fail("it has no arguments")
		return "", ""
	}
	g.s = rest
	var b strings.Builder
	g.object(&b, 0)
	if strings.TrimLeft(g.s, Space) != "" {
		g.fail("text follows the arguments")
	}
	return strings.TrimSpace(name), b.String()
}

// sequence parses items up to the closing bracket, and writes them between the brackets around.
func (g *gemma) sequence(b *strings.Builder, around string, item func()) {
	b.WriteByte(around[0])
	for n := 0; g.err == "" && !g.takes(around[1:]); n++ {
		if n > 0 {
			if !g.takes(",") {
				g.fail("expected a comma")
				return
			}
			b.WriteString(", ")
		}
		item()
	}
	b.WriteByte(around[1])
}

func (g *gemma) object(b *strings.Builder, depth int) {
	g.sequence(b, "{}", func() {
		var key string
		if g.takes(GemmaQuote) {
			key = g.text()
			if !g.takes(":") {
				g.fail("a key has no value")
			}
		} else {
			before, rest, ok := strings.Cut(g.s, ":")
			if !ok {
				g.fail("a key has no value")
				return
			}
			key, g.s = strings.Trim(strings.TrimSpace(before), `"`), rest
		}
		b.WriteString(Quote(key) + ": ")
		g.value(b, depth)
	})
}

func (g *gemma) text() string {
	text, rest, ok := strings.Cut(g.s, GemmaQuote)
	if !ok {
		g.fail("a text has no end")
		return ""
	}
	g.s = rest
	return text
}

func (g *gemma) value(b *strings.Builder, depth int) {
	switch {
	case depth > maxDepth:
		g.fail("it is too deep")
	case g.takes(GemmaQuote):
		b.WriteString(Quote(g.text()))
	case g.takes("{"):
		g.object(b, depth+1)
	case g.takes("["):
		g.sequence(b, "[]", func() { g.value(b, depth+1) })
	default:
		i := strings.IndexAny(g.s, ",}]")
		if i < 0 {
			i = len(g.s)
		}
		text := strings.TrimRight(g.s[:i], Space)
		g.s = g.s[i:]
		b.WriteString((null | number | boolean | String).Value(gemmaLiteral(text)))
	}
}

// gemmaLiteral converts a value without quotes to JSON's words; 1 and 0 stay numbers.
func gemmaLiteral(s string) string {
	switch s {
	case "None", "none":
		return "null"
	case "True":
		return "true"
	case "False":
		return "false"
	}
	return s
}
