package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// tree converts v to what encoding/json returns with UseNumber.
func tree(v jsonscan.Value) any {
	switch v.Kind() {
	case jsonscan.Bool:
		b, _ := v.Bool()
		return b
	case jsonscan.Number:
		return json.Number(v.Raw())
	case jsonscan.String:
		return v.String()
	case jsonscan.Array:
		out := []any{}
		for i, m := range v.Items() {
			if i != len(out) {
				return "index out of step"
			}
			out = append(out, tree(m))
		}
		if v.Len() != len(out) {
			return "length differs"
		}
		if a, b, ok := v.Pair(); ok != (len(out) == 2 && v.Within() >= 2) || ok && !reflect.DeepEqual([]any{tree(a), tree(b)}, out) {
			return "pair differs"
		}
		return out
	case jsonscan.Object:
		out := map[string]any{}
		within := 0
		for k, m := range v.Members() {
			out[k] = tree(m)
			within += 2 + m.Within()
		}
		if v.Within() != within {
			return "count differs"
		}
		return out
	}
	return nil
}

func std(src []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if !json.Valid(src) {
		return nil, errors.New("text after the value")
	}
	return v, nil
}

var seeds = []string{
	`null`, `true`, `false`, `0`, `-1.5e+3`, `""`, `"a"`, `[]`, `{}`, `[1,2,3]`, `[1, 2 ,"x"]`, `[1,[2,3],{"a":[4]}]`,
	`{"a":{"b":[{"c":"\u00e9\ud83d\ude00\n"}]},"d":[]}`, ` [ 1 , 2 ] `, `"\ud800"`, `"\ud800\u0041"`, `"abcdefgh\"ijklmnop"`,
	`{"a":1,"a":2}`, "\"\x80\"", "\"caf\u00e9 caf\u00e9\"", `01`, `1.`, `1e`, `-`, `[1,]`, `{"a"}`, `{"a":}`, `"a`, `"\x"`, `tru`, `[1 2]`, `1 2`, "\"\t\"", `[-0,0.5,1E9]`,
}

func TestAgreesWithEncodingJSON(t *testing.T) {
	for _, s := range seeds {
		agree(t, []byte(s))
	}
}

func agree(t *testing.T, src []byte) {
	t.Helper()
	var d jsonscan.Doc
	v, err := d.Parse(src, jsonscan.Options{Depth: 9000})
	want, werr := std(src)
	if !utf8.Valid(src) {
		if err == nil {
			t.Fatalf("%q: invalid UTF-8 accepted", src)
		}
		return
	}
	if (err == nil) != (werr == nil) {
		t.Fatalf("%q: got error %v, encoding/json %v", src, err, werr)
	}
	if err == nil && !reflect.DeepEqual(tree(v), want) {
		t.Fatalf("%q: got %#v, want %#v", src, tree(v), want)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) { agree(t, src) })
}

func TestRandomDocuments(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 3000 {
		b, err := json.Marshal(random(rng, 4))
		require.NoError(t, err)
		agree(t, b)
		for _, n := range []int{1, len(b) / 2, len(b) - 1} {
			agree(t, b[:n])
		}
		if len(b) > 0 {
			b[rng.IntN(len(b))] = byte(rng.IntN(256))
			agree(t, b)
		}
	}
	t.Logf("seed %d", seed)
}

func random(rng *rand.Rand, depth int) any {
	switch n := rng.IntN(8); {
	case n == 0:
		return nil
	case n == 1:
		return rng.Float64() * 1e6
	case n == 2:
		return rng.IntN(2) == 0
	case n < 5 || depth == 0:
		var b strings.Builder
		for range rng.IntN(30) {
			b.WriteRune([]rune{'a', '"', '\\', '\n', 0x1f, 'é', '漢', '😀', ' ', 0x2028}[rng.IntN(10)])
		}
		return b.String()
	case n < 7:
		out := []any{}
		for range rng.IntN(5) {
			out = append(out, random(rng, depth-1))
		}
		return out
	}
	out := map[string]any{}
	for i := range rng.IntN(20) {
		out[fmt.Sprint(i)] = random(rng, depth-1)
	}
	return out
}

func TestEveryStrictPrefixIsTruncated(t *testing.T) {
	src := []byte(`{"a":[1,2.5e1,"x\u00e9\n é",true,null],"b":{"c":[[],{}]}}`)
	for n := range src {
		var d jsonscan.Doc
		_, err := d.Parse(src[:n], jsonscan.Options{})
		var e *jsonscan.SyntaxError
		require.ErrorAs(t, err, &e, "prefix %d", n)
		require.Equal(t, jsonscan.Truncated, e.Class, "prefix %d %q: %v", n, src[:n], e)
	}
}

func TestErrorsSayWhereAndWhat(t *testing.T) {
	for _, c := range []struct {
		src, reason string
		offset      int
		class       int
	}{
		{`{"a":1,}`, "a trailing comma leaves no key", 7, jsonscan.Malformed},
		{"\"ab\x01\"", "a raw control character", 3, jsonscan.Malformed},
		{"\"ab\xff\"", "a byte that is not UTF-8", 3, jsonscan.BadUTF8},
		{`[1,2`, "the end is missing", 4, jsonscan.Truncated},
		{strings.Repeat("[", 600), "a nesting bomb", 512, jsonscan.TooDeep},
		{`[NaN]`, "NaN is not JSON unless asked for", 1, jsonscan.Malformed},
	} {
		var d jsonscan.Doc
		_, err := d.Parse([]byte(c.src), jsonscan.Options{})
		var e *jsonscan.SyntaxError
		require.ErrorAs(t, err, &e, c.reason)
		require.Equal(t, c.offset, e.Offset, c.reason)
		require.Equal(t, c.class, e.Class, c.reason)
	}
}

func TestNonFiniteNumbers(t *testing.T) {
	var d jsonscan.Doc
	v, err := d.Parse([]byte(`{"a":[NaN,1],"b":-Infinity,"c":[1,2]}`), jsonscan.Options{NonFinite: true})
	require.NoError(t, err)
	require.True(t, d.NonFinite)
	require.Equal(t, `{"a":[null,1],"b":null,"c":[1,2]}`, string(v.Clone()))
	_, ok := v.Get("b").Float()
	require.False(t, ok, "an infinity is no finite number")
}

func TestCloneFitsOnALine(t *testing.T) {
	for _, c := range []struct{ reason, src, want string }{
		{"spaces alone are kept", `{ "b" : 1.0, "a": [1, 2] }`, `{ "b" : 1.0, "a": [1, 2] }`},
		{"a line break takes white space between tokens with it", "{\n \"b\" : 1.0,\r\n \"a\": [\n1, 2,\"x\\n y\"] }", `{"b":1.0,"a":[1,2,"x\n y"]}`},
	} {
		var d jsonscan.Doc
		v, err := d.Parse([]byte(c.src), jsonscan.Options{})
		require.NoError(t, err, c.reason)
		require.Equal(t, c.want, string(v.Clone()), c.reason)
	}
}

func TestAccessors(t *testing.T) {
	var d jsonscan.Doc
	v, err := d.Parse([]byte(`{"a":1,"a":2.0,"s":"x\u0079","l":"\ud800","f":"\ufffd","n":null}`), jsonscan.Options{})
	require.NoError(t, err)
	i, ok := v.Get("a").Int()
	require.True(t, ok)
	require.Equal(t, 2, i, "the last of two equal keys counts")
	k, dup := v.DuplicateKey()
	require.True(t, dup)
	require.Equal(t, 7, k.Offset())
	require.True(t, v.Get("s").Is("xy"))
	require.True(t, v.Get("l").LoneSurrogate())
	require.False(t, v.Get("f").LoneSurrogate(), "a written U+FFFD is not a lone surrogate")
	require.Equal(t, jsonscan.Absent, v.Get("zz").Kind())
	require.Nil(t, v.Get("zz").Get("y").Raw())
	require.True(t, v.Get("n").IsNull())
}

func BenchmarkParse(b *testing.B) {
	text := strings.Repeat("def f(x):\n    return \"x\" + x\n", 60)
	var msgs []map[string]string
	for range 40 {
		msgs = append(msgs, map[string]string{"role": "user", "content": text})
	}
	src, _ := json.Marshal(map[string]any{"messages": msgs})
	b.Run("scan+decode", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		var d jsonscan.Doc
		for range b.N {
			v, err := d.Parse(src, jsonscan.Options{})
			if err != nil {
				b.Fatal(err)
			}
			for _, m := range v.Get("messages").Items() {
				if m.Get("content").String() == "" {
					b.Fatal()
				}
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for range b.N {
			var v struct {
				Messages []struct{ Role, Content string }
			}
			if err := json.Unmarshal(src, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Words stay valid after their text, and equal words share memory.
func TestWord(t *testing.T) {
	var d jsonscan.Doc
	long := strings.Repeat("x", 100)
	text := []byte(`["role","r\u006fle","` + long + `",1]`)
	v, err := d.Parse(text, jsonscan.Options{})
	require.NoError(t, err)
	var words []string
	for _, x := range v.Items() {
		words = append(words, x.Word())
	}
	clear(text)
	require.Equal(t, []string{"role", "role", long, ""}, words)
	v, err = d.Parse([]byte(`"role"`), jsonscan.Options{})
	require.NoError(t, err)
	require.Same(t, unsafe.StringData(words[0]), unsafe.StringData(v.Word()))
	require.Zero(t, testing.AllocsPerRun(10, func() { v.Word() }))
}

func TestAppendInt32(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int32
		bad  string
	}{
		{`[1,2,3]`, []int32{1, 2, 3}, ""},
		{"[ -7 ,\t0,\n123456789 ]", []int32{-7, 0, 123456789}, ""},
		{`[2147483647,-2147483648]`, []int32{2147483647, -2147483648}, ""},
		{`[1,2147483648]`, []int32{1}, "2147483648"},
		{`[1,2.0,3e1]`, []int32{1, 2, 30}, ""},
		{`[1,2.5]`, []int32{1}, "2.5"},
		{`[1,"2"]`, []int32{1}, `"2"`},
		{`[]`, nil, ""},
	} {
		var d jsonscan.Doc
		v, err := d.Parse([]byte(c.text), jsonscan.Options{})
		require.NoError(t, err)
		got, bad, ok := v.AppendInt32([]int32{9})
		require.Equal(t, append([]int32{9}, c.want...), got, c.text)
		require.Equal(t, c.bad, string(bad.Raw()), c.text)
		require.Equal(t, c.bad == "", ok, c.text)
	}
}

func TestUnquote(t *testing.T) {
	for text, want := range map[string]string{`"a b"`: "a b", `"a\"bé"`: `a"bé`, ` "x" `: "x", `""`: "", `"`: "", ``: "", `null`: "", `7`: "", `["a"]`: ""} {
		require.Equal(t, want, jsonscan.Unquote([]byte(text)), text)
	}
}

func TestPlainStopsAtTheFirstByteToEscape(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	bytesOf := []byte{0, 1, 0x1f, ' ', '!', '"', '#', '[', '\\', ']', 'a', 0x7f, 0x80, 0x9f, 0xa2, 0xdc, 0xff}
	for range 20_000 {
		s := make([]byte, r.IntN(40))
		for i := range s {
			if s[i] = 'x'; r.IntN(8) == 0 {
				s[i] = bytesOf[r.IntN(len(bytesOf))]
			}
		}
		want := slices.IndexFunc(s, func(c byte) bool { return c < 0x20 || c == '"' || c == '\\' })
		if want < 0 {
			want = len(s)
		}
		require.Equal(t, want, jsonscan.Plain(string(s)), "%q", s)
		var back string
		require.NoError(t, json.Unmarshal(append(jsonscan.AppendEscaped([]byte{'"'}, strings.ToValidUTF8(string(s), "x")), '"'), &back))
		require.Equal(t, strings.ToValidUTF8(string(s), "x"), back)
	}
}
