package syntax

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tokensOf formats the tokens of a source as kind:text.
func tokensOf(t *testing.T, source string) string {
	t.Helper()
	tokens, err := lex(source)
	require.Nil(t, err, source)
	var out []string
	for _, k := range tokens[:len(tokens)-1] {
		switch k.kind {
		case tokData, tokString, tokName, tokInt, tokFloat:
			out = append(out, string(k.kind)+":"+k.text)
		default:
			out = append(out, string(k.kind))
		}
	}
	return strings.Join(out, " ")
}

func TestTokens(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"a { b }", "data:a { b }"},
		{"{{ a.b }}", "variable_begin name:a . name:b variable_end"},
		{"{{ a.0.1 }}", "variable_begin name:a . integer:0 . integer:1 variable_end"},
		{"{{ 1.5e3 + 0x1F }}", "variable_begin float:1.5e3 + integer:0x1F variable_end"},
		{"{{ 012 }}", "variable_begin integer:0 integer:12 variable_end"},
		{`{{ "a\"b" 'c\n' }}`, "variable_begin string:a\"b string:c\n variable_end"},
		{"{{ a//b**c~d }}", "variable_begin name:a // name:b ** name:c ~ name:d variable_end"},
		{"{{ {'}}': 1} }}", "variable_begin { string:}} : integer:1 } variable_end"},
		{"x {# {{ not }} #} y", "data:x  data: y"},
		{"{% raw %}{{ x }}{% endraw %}", "data:{{ x }}"},
		{"a\n  {% if x %}\nb", "data:a\n block_begin name:if name:x block_end data:b"},
		{"a  {%- if x -%}  b", "data:a block_begin name:if name:x block_end data:b"},
		{"a\n  {%+ if x +%}\nb", "data:a\n   block_begin name:if name:x block_end data:\nb"},
		{"{{ äö_1 }}", "variable_begin name:äö_1 variable_end"},
	} {
		require.Equal(t, c.want, tokensOf(t, c.source), c.source)
	}
}

func TestLexerFaults(t *testing.T) {
	for _, c := range []struct {
		source, says string
		pos          Pos
	}{
		{"ab {# c", "Missing end of comment tag", 3},
		{"{% raw %} x", "Missing end of raw directive", 0},
		{"{{ a ? }}", `unexpected char "?"`, 5},
		{"{{ (a] }}", "unexpected ']', expected ')'", 5},
		{"{{ a) }}", "unexpected ')'", 4},
		{`{{ "\x4" }}`, `truncated \x escape`, 3},
		{"{{ ½a }}", "Invalid character in identifier", 3},
	} {
		_, err := lex(c.source)
		require.NotNil(t, err, c.source)
		require.Equal(t, c.says, err.Msg, c.source)
		require.Equal(t, c.pos, err.Pos, c.source)
	}
}

func TestNormalize(t *testing.T) {
	require.Equal(t, "a\nb\nc\n", Normalize("a\r\nb\rc\n\n"))
	require.Equal(t, "a", Normalize("a\r\n"))
}
