package chat

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A number that a template computes from recorded numbers keeps the field of the first; counts and other statements
// about the data are scaffold.
func TestComputedNumbersKeepTheirField(t *testing.T) {
	message := Object(Member{"role", String("tool")}, Member{"content", String("17 of <|40|>")},
		Member{"n", Int(41)}, Member{"f", Float(2.5)}, Member{"yes", Bool(true)}, Member{"list", List(Int(1), Int(2))})
	c, err := NewConversation(List(message), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	const n, f, content = "/messages/0/n", "/messages/0/f", "/messages/0/content"
	for _, row := range []struct{ source, text, path string }{
		{`m.n + 1`, "42", n}, {`1 + m.n`, "42", n}, {`m.n - 1`, "40", n}, {`m.n * 2`, "82", n}, {`m.n // 2`, "20", n}, {`m.n % 7`, "6", n}, {`m.n / 2`, "20.5", n},
		{`m.n ** 2`, "1681", n}, {`2 ** m.n`, "2199023255552", n}, {`m.n * 10 ** 30`, "41000000000000000000000000000000", n}, {`m.n ** -1`, "0.024390243902439025", n},
		{`k + 1`, "42", n}, {`1 + k`, "42", n}, {`k - 1`, "40", n}, {`ns.k - 1`, "40", n},
		{`-m.n`, "-41", n}, {`-m.f`, "-2.5", f}, {`+m.yes`, "1", "/messages/0/yes"}, {`m.yes + 1`, "2", "/messages/0/yes"}, {`m.f + 1`, "3.5", f}, {`m.f + m.n`, "43.5", f}, {`m.n + m.f`, "43.5", n},
		{`m.n|abs`, "41", n}, {`(-m.f)|abs`, "2.5", f}, {`m.f|round`, "2.0", f}, {`m.f|round|int`, "2", f}, {`m.f|round(0, "ceil")`, "3.0", f}, {`m.n|round(-1)`, "40", n},
		{`m.f|int`, "2", f}, {`m.n|float`, "41.0", n}, {`m.content[:2]|int`, "17", content}, {`m.content[:2]|int + 1`, "18", content}, {`m.content[:2]|float`, "17.0", content},
		{`[m.n, 1]|sum`, "42", n}, {`m.list|sum`, "3", "/messages/0/list/0"}, {`[m]|sum(attribute="n")`, "41", n}, {`[1, m.n]|max`, "41", n}, {`m.n|filesizeformat`, "41 Bytes", n},
		{`(m.n + 1)|string`, "42", n}, {`"%05d" % (m.n + 1)`, "00042", n}, {`"{:.1f}".format(m.f * 2)`, "5.0", f}, {`"%c" % (m.n + 19)`, "<", n}, {`(m.n + 1)|tojson`, "42", n},
		{`range(m.n, 99)|first`, "41", n}, {`range(m.n)[40:]|last`, "40", n}, {`range(m.n)`, "range(0, 41)", n}, {`range(m.n).stop + 1`, "42", n}, {`m.n.real`, "41", n}, {`m.f.as_integer_ratio()|first`, "5", f}, {`m.f.hex()`, "0x1.4000000000000p+1", f}, {`m.n.bit_length()`, "6", n},

		{`1 + 1`, "2", ""}, {`m.content|int(7)`, "7", ""}, {`"12"|int(7, 1)`, "12", ""}, {`m.content|length`, "12", ""}, {`m.content.find("of")`, "3", ""}, {`m.n == 41`, "True", ""}, {`m.n is odd`, "True", ""}, {`"ab" * (m.f|int)`, "abab", ""},
	} {
		tmpl, err := Compile(`{% set m = messages[0] %}{% set k = m.n %}{% set ns = namespace(k=k) %}{{ `+row.source+` }}`, Options{})
		require.NoError(t, err, row.source)
		r, err := tmpl.Render(t.Context(), c, Input{})
		require.NoError(t, err, row.source)
		require.Equal(t, row.text, r.Text, row.source)
		spans := slices.Collect(r.Spans())
		require.Len(t, spans, 1, row.source)
		require.Equal(t, row.path, spans[0].Field.Path(), row.source)
	}
}

// Numbers of ParseLiterals are written as spelled, and equal the numbers of ParseJSON.
func TestParseLiterals(t *testing.T) {
	v, err := ParseLiterals([]byte(`{"v": {"a": 1.50, "b": [1e3, -0.0, 12345678901234567890123, NaN], "z": 2, "a2": 1E-7}}`))
	require.NoError(t, err)
	tmpl, err := Compile(`{{ v | tojson }} {{ v.a }} {{ v.b }} {{ v.a + 1 }} {{ v.a == 1.5 }} {{ v.b[0] | int }} {{ v.a2 | string }}`, Options{})
	require.NoError(t, err)
	r, err := tmpl.RenderVars(t.Context(), v, Input{})
	require.NoError(t, err)
	require.Equal(t, `{"a": 1.50, "b": [1e3, -0.0, 12345678901234567890123, NaN], "z": 2, "a2": 1E-7} 1.50 [1e3, -0.0, 12345678901234567890123, nan] 2.5 True 1000 1E-7`, r.Text)
}
