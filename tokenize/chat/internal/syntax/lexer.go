// Package syntax parses the source of a chat template into a tree. The language is that of Jinja 3.1 with trim_blocks
// and lstrip_blocks on, the loop control tags and the generation tag.
package syntax

import (
	"fmt"
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/pytext"
)

// kind is a token type. The kind of an operator or delimiter is its text.
type kind string

const (
	tokData     kind = "data"
	tokVarBegin kind = "variable_begin"
	tokVarEnd   kind = "variable_end"
	tokBegin    kind = "block_begin"
	tokEnd      kind = "block_end"
	tokName     kind = "name"
	tokString   kind = "string"
	tokInt      kind = "integer"
	tokFloat    kind = "float"
	tokEOF      kind = "eof"
)

type token struct {
	kind  kind
	text  string // name, unescaped string, data, or the source of a number
	int   *big.Int
	float float64
	pos   Pos
}

// Error is a syntax error at a position of the source.
type Error struct {
	Pos Pos
	Msg string
	// Python is set if Jinja accepts the template but the Python compiler refuses the generated code (a stray break,
	// a repeated argument).
	Python bool
	// Limit is set if one of this package's limits was exceeded.
	Limit bool
}

func (e *Error) Error() string { return e.Msg }

func errorAt(pos Pos, format string, args ...any) *Error {
	return &Error{Pos: pos, Msg: fmt.Sprintf(format, args...)}
}

// Normalize converts all newlines to \n and drops one final newline, as Jinja does before it reads a template.
func Normalize(source string) string {
	if strings.IndexByte(source, '\r') >= 0 {
		source = strings.ReplaceAll(source, "\r\n", "\n")
		source = strings.ReplaceAll(source, "\r", "\n")
	}
	return strings.TrimSuffix(source, "\n")
}

// lexer splits a normalised source into tokens.
type lexer struct {
	src    string
	pos    int
	tokens []token
}

// lex returns the tokens up to the end of the source or to the first error, followed by an end token.
func lex(src string) ([]token, *Error) {
	l := &lexer{src: src}
	var err *Error
	for l.pos < len(src) && err == nil {
		err = l.root()
	}
	end := token{kind: tokEOF}
	if n := len(l.tokens); n > 0 { // as in Jinja, an error at the end is located after the last token
		end.pos = l.tokens[n-1].pos
	}
	l.emit(end)
	return l.tokens, err
}

func (l *lexer) emit(t token) { l.tokens = append(l.tokens, t) }

func (l *lexer) data(text string, pos int) {
	if text != "" {
		l.emit(token{kind: tokData, text: text, pos: Pos(pos)})
	}
}

// root reads text up to the next tag, then the tag.
func (l *lexer) root() *Error {
	start := l.pos
	i := start
	for {
		j := strings.IndexByte(l.src[i:], '{')
		if j < 0 || i+j+1 >= len(l.src) {
			l.data(l.src[start:], start)
			l.pos = len(l.src)
			return nil
		}
		i += j
		if c := l.src[i+1]; c == '%' || c == '{' || c == '#' {
			break
		}
		i++
	}
	tag := l.src[i+1]
	after := i + 2
	sign := l.sign(after)
	after += len(sign)
	rawEnd := -1
	if tag == '%' {
		rawEnd = l.rawBegin(after)
	}
	l.textBefore(i, sign, tag != '{')
	l.pos = after
	switch {
	case rawEnd >= 0:
		l.pos = rawEnd
		return l.raw(i)
	case tag == '#':
		return l.comment(i)
	case tag == '{':
		l.emit(token{kind: tokVarBegin, pos: Pos(i)})
		return l.inside(tokVarEnd, "}}")
	default:
		l.emit(token{kind: tokBegin, pos: Pos(i)})
		return l.inside(tokEnd, "%}")
	}
}

// sign returns the white space control character at i, "" if there is none.
func (l *lexer) sign(i int) string {
	if i < len(l.src) && (l.src[i] == '-' || l.src[i] == '+') {
		return l.src[i : i+1]
	}
	return ""
}

// textBefore emits the text up to a tag at i, without the white space that the tag's sign removes or, for a block
// without a sign, lstrip_blocks.
func (l *lexer) textBefore(i int, sign string, block bool) {
	text := l.src[l.pos:i]
	switch {
	case sign == "-":
		text = strings.TrimRightFunc(text, pytext.IsSpace)
	case sign == "" && block:
		text = lstripLine(text, l.pos == 0 || l.src[l.pos-1] == '\n')
	}
	l.data(text, l.pos)
}

// lstripLine removes the blanks between the last newline of text and the tag that follows, if the line has only
// blanks.
func lstripLine(text string, lineStart bool) string {
	nl := strings.LastIndexByte(text, '\n') + 1
	if nl == 0 && !lineStart {
		return text
	}
	if strings.TrimFunc(text[nl:], pytext.IsSpace) == "" {
		return text[:nl]
	}
	return text
}

// rawBegin returns the offset after "raw %}" if it is at i, else -1.
func (l *lexer) rawBegin(i int) int {
	i = l.skipSpace(i)
	if !strings.HasPrefix(l.src[i:], "raw") {
		return -1
	}
	i = l.skipSpace(i + 3)
	if strings.HasPrefix(l.src[i:], "-%}") {
		return l.skipSpace(i + 3)
	}
	if strings.HasPrefix(l.src[i:], "%}") {
		return i + 2
	}
	return -1
}

func (l *lexer) skipSpace(i int) int {
	for i < len(l.src) {
		r, n := utf8.DecodeRuneInString(l.src[i:])
		if !pytext.IsSpace(r) {
			break
		}
		i += n
	}
	return i
}

func (l *lexer) raw(begin int) *Error {
	for i := l.pos; ; {
		j := strings.Index(l.src[i:], "{%")
		if j < 0 {
			return errorAt(Pos(begin), "Missing end of raw directive")
		}
		i += j
		sign := l.sign(i + 2)
		if k := l.skipSpace(i + 2 + len(sign)); strings.HasPrefix(l.src[k:], "endraw") {
			if end, ok := l.tagEnd(l.skipSpace(k+len("endraw")), "%}"); ok {
				l.textBefore(i, sign, true)
				l.pos = end
				return nil
			}
		}
		i += 2
	}
}

// tagEnd reads a closing tag with its white space control.
func (l *lexer) tagEnd(i int, closing string) (end int, ok bool) {
	if strings.HasPrefix(l.src[i:], "-"+closing) {
		return l.skipSpace(i + 1 + len(closing)), true
	}
	block := closing != "}}"
	if block && strings.HasPrefix(l.src[i:], "+"+closing) {
		return i + 1 + len(closing), true
	}
	if !strings.HasPrefix(l.src[i:], closing) {
		return 0, false
	}
	i += len(closing)
	if block && i < len(l.src) && l.src[i] == '\n' {
		i++
	}
	return i, true
}

func (l *lexer) comment(begin int) *Error {
	j := strings.Index(l.src[l.pos:], "#}")
	if j < 0 {
		return errorAt(Pos(begin), "Missing end of comment tag")
	}
	i := l.pos + j
	if i > l.pos && (l.src[i-1] == '-' || l.src[i-1] == '+') {
		i--
	}
	l.pos, _ = l.tagEnd(i, "#}")
	return nil
}

var operators = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

// inside reads the tokens of one tag.
func (l *lexer) inside(endKind kind, closing string) *Error {
	var open []byte
	for {
		if len(open) == 0 {
			if end, ok := l.tagEnd(l.pos, closing); ok {
				l.emit(token{kind: endKind, pos: Pos(l.pos)})
				l.pos = end
				return nil
			}
		}
		if l.pos >= len(l.src) {
			return nil // the parser reports the end of the template
		}
		if n := l.skipSpace(l.pos); n > l.pos {
			l.pos = n
			continue
		}
		c := l.src[l.pos]
		if c >= '0' && c <= '9' {
			if err := l.number(); err != nil {
				return err
			}
			continue
		}
		if c == '\'' || c == '"' {
			if ok, err := l.str(c); ok || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		if r, _ := utf8.DecodeRuneInString(l.src[l.pos:]); isWord(r) {
			if err := l.name(); err != nil {
				return err
			}
			continue
		}
		op := ""
		for _, o := range operators {
			if strings.HasPrefix(l.src[l.pos:], o) {
				op = o
				break
			}
		}
		if op == "" {
			r, _ := utf8.DecodeRuneInString(l.src[l.pos:])
			return errorAt(Pos(l.pos), "unexpected char %q", string(r))
		}
		switch op {
		case "{":
			open = append(open, '}')
		case "(":
			open = append(open, ')')
		case "[":
			open = append(open, ']')
		case "}", ")", "]":
			if len(open) == 0 {
				return errorAt(Pos(l.pos), "unexpected '%s'", op)
			}
			if want := open[len(open)-1]; want != op[0] {
				return errorAt(Pos(l.pos), "unexpected '%s', expected '%c'", op, want)
			}
			open = open[:len(open)-1]
		}
		l.emit(token{kind: kind(op), text: op, pos: Pos(l.pos)})
		l.pos += len(op)
	}
}

func (l *lexer) name() *Error {
	start := l.pos
	for l.pos < len(l.src) {
		r, n := utf8.DecodeRuneInString(l.src[l.pos:])
		if !isWord(r) {
			break
		}
		l.pos += n
	}
	text := l.src[start:l.pos]
	if r, _ := utf8.DecodeRuneInString(text); !(r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r)) {
		return errorAt(Pos(start), "Invalid character in identifier")
	}
	l.emit(token{kind: tokName, text: text, pos: Pos(start)})
	return nil
}

func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r)
}
