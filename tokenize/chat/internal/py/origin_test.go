package py

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/pytext"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
	"github.com/turnpack/turnpack/tokenize/internal/origin"
)

// runsOf formats the origin of a string: [field off:end] for unchanged bytes, {field off:end} for bytes that stand
// for others, and the template's bytes as they are.
func runsOf(s *value.Str) string {
	t := value.Text{}
	t.Str(s)
	var b strings.Builder
	at := 0
	for _, r := range t.Runs {
		b.WriteString(s.S[at:r.At])
		form := "[%s %d:%d]"
		if r.Changed || r.JSON {
			form = "{%s %d:%d}"
		}
		fmt.Fprintf(&b, form, r.F.Key, r.Off, r.End)
		at = int(r.At + r.N)
	}
	return b.String() + s.S[at:]
}

// Operations on strings keep the origin of each byte.
func TestOriginsAreKept(t *testing.T) {
	l := &value.Limits{Bytes: 1 << 20, Items: 1 << 10, Depth: 50}
	field := func(name string) *origin.Field {
		return origin.NewField(origin.Field{Key: name, Index: -1, Message: -1})
	}
	a := &value.Str{S: " hello World ", F: field("a")}
	b := &value.Str{S: "x&y", F: field("b")}
	ab := value.Concat(l, a, value.Lit("-"), b)
	two := int64(2)
	for _, c := range []struct {
		name string
		got  *value.Str
		want string
	}{
		{"concat", ab, "[a 0:13]-[b 0:3]"},
		{"slice within one", ab.Slice(1, 6), "[a 1:6]"},
		{"slice over both", ab.Slice(11, 16), "[a 11:13]-[b 0:2]"},
		{"strip", Strip(a, l, nil, true, true), "[a 1:12]"},
		{"characters", Substring(a, l, &two, nil, 1), "[a 2:13]"},
		{"upper", Upper(b, l), "{b 0:1}[b 1:2]{b 2:3}"},
		{"escape", Escape(b, l), "[b 0:1]{b 1:2}[b 2:3]"},
		{"replace by the template", Replace(b, l, value.Lit("&"), value.Lit(" and "), -1), "[b 0:1]{b 1:2}[b 2:3]"},
		{"replace by a field", Replace(a, l, value.Lit("World"), b, -1), "[a 0:7][b 0:3][a 12:13]"},
		{"join", Join(l, value.Lit(", "), []*value.Str{b, value.Lit("t"), b}), "[b 0:3], t, [b 0:3]"},
		{"pad", Pad(b, l, value.Lit("."), 1, 2), ".[b 0:3].."},
		{"percent", Percent(l, value.Lit("<%s|%5s>"), &value.List{Items: []value.Value{b, b}, Tuple: true}), "<[b 0:3]|  [b 0:3]>"},
		{"repr", Percent(l, value.Lit("%r"), &value.List{Items: []value.Value{b}, Tuple: true}), "'[b 0:3]'"},
	} {
		require.Equal(t, c.want, runsOf(c.got), c.name)
	}
	require.Nil(t, l.Err)
	var out value.Text
	value.NewJSON(nil).Write(&out, l, &value.Str{S: "a\"b", F: field("f")})
	require.Nil(t, l.Err)
	require.Equal(t, `"a\"b"`, string(out.B))
	require.Equal(t, `"{f 0:3}"`, runsOf(out.Value()))
}

func TestNumbersAsPythonWritesThem(t *testing.T) {
	for f, want := range map[float64]string{1: "1.0", 0.1: "0.1", 1e15: "1000000000000000.0", 1e16: "1e+16", 1e-4: "0.0001", 1e-5: "1e-05", 123456.789: "123456.789"} {
		require.Equal(t, want, pytext.Float(f))
	}
	for text, want := range map[string]string{" 42 ": "42", "-1_000": "-1000", "٣": "3", "12345678901234567890": "12345678901234567890"} {
		n, ok := ParseInt(text, 10)
		require.True(t, ok, text)
		require.Equal(t, want, n.String())
	}
	for _, text := range []string{"", "1__0", "_1", "1.0", "x", "--1"} {
		_, ok := ParseInt(text, 10)
		require.False(t, ok, text)
	}
}

func TestEqualityAndOrder(t *testing.T) {
	l := &value.Limits{Bytes: 1 << 20, Items: 1 << 10, Depth: 50}
	list := func(items ...value.Value) *value.List { return &value.List{Items: items} }
	eq := func(a, b value.Value) bool {
		r := value.Equal(l, a, b)
		require.Nil(t, l.Err)
		return r
	}
	require.True(t, eq(value.NewInt(1), &value.Float{V: 1}))
	require.True(t, eq(value.True, value.NewInt(1)))
	require.False(t, eq(value.NewInt(1), value.Lit("1")))
	require.False(t, eq(list(value.NewInt(1)), &value.List{Items: []value.Value{value.NewInt(1)}, Tuple: true}))
	require.True(t, eq(list(value.Lit("a"), list()), list(value.Lit("a"), list())))
	require.True(t, value.Compare(l, "<", list(value.NewInt(1), value.NewInt(2)), list(value.NewInt(1), value.NewInt(3))))
	require.Nil(t, l.Err)
	require.False(t, value.Compare(l, "<", value.NewInt(1), value.Lit("a")))
	require.Equal(t, "'<' not supported between instances of 'int' and 'str'", l.Err.Msg)
}

// Sorting is stable in both directions.
func TestSortIsStable(t *testing.T) {
	l := &value.Limits{Depth: 50}
	items, keys := []value.Value{value.Lit("a"), value.Lit("b"), value.Lit("c"), value.Lit("d")}, []value.Value{value.NewInt(2), value.NewInt(1), value.NewInt(2), value.NewInt(1)}
	for _, c := range []struct {
		reverse bool
		want    string
	}{{false, "bdac"}, {true, "acbd"}} {
		sorted := value.Sort(l, items, keys, c.reverse)
		require.Nil(t, l.Err)
		got := ""
		for _, v := range sorted {
			got += v.(*value.Str).S
		}
		require.Equal(t, c.want, got)
	}
}
