package literal

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
)

func Example() {
	schemas := NewSchemas([]rollout.Tool{rollout.Tool(`{"name": "sleep", "parameters": {"properties": {"seconds": {"type": "number"}}}}`)})

	fmt.Println(schemas.Of("sleep", "seconds").Value("2.5"))
	fmt.Println(schemas.Of("sleep", "why").Value("2.5"))
	// Output:
	// 2.5
	// "2.5"
}

// TestScan: the scan accepts what encoding/json does, and ends where the value does.
func TestScan(t *testing.T) {
	for _, s := range []string{
		`{}`, `[]`, `{"a":1}`, `{"a":[1,-2.5e3,true,false,null,"x\u00e9\n"],"b":{"c":{}}}`, `[[],[[]]]`, ` { "a" : 1 } `, `{"é":"\\"}`,
		`{`, `[1,]`, `{"a"}`, `{"a":}`, `{,}`, `{"a":1,}`, `[1 2]`, `{"a":01}`, `{"a":1.}`, `{"a":tru}`, `{"a":NaN}`, `{"a":"` + "\n" + `"}`, `{"a":"\x"}`, `{"a":"\u12g4"}`, `[}`, `{a:1}`, `{'a':1}`,
	} {
		var j Scan
		var n int
		var done bool
		kit.Within(t, 100*time.Millisecond+time.Duration(len(s))*time.Microsecond, 1<<20+100*uint64(len(s)), func() { n, done = j.Feed(s) })
		require.Equal(t, json.Valid([]byte(s)), done && strings.TrimSpace(s[n:]) == "", "%s: %d %v %s", s, n, done, j.Broken)
	}
	var j Scan
	_, done := j.Feed(strings.Repeat("[", maxDepth+1))
	require.False(t, done)
	require.NotEmpty(t, j.Broken)
}

func FuzzScan(f *testing.F) {
	f.Add(`{"a":[1,-2.5e3,true,null,"x\u00e9\n"],"b":{"c":{}}}`)
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > maxDepth || strings.TrimLeft(s, Space) == "" || strings.IndexByte(`{[`, strings.TrimLeft(s, Space)[0]) < 0 {
			return
		}
		var j Scan
		var n int
		var done bool
		kit.Within(t, 100*time.Millisecond+time.Duration(len(s))*time.Microsecond, 1<<20+100*uint64(len(s)), func() { n, done = j.Feed(s) })
		require.Equal(t, json.Valid([]byte(s)), done && strings.Trim(s[n:], Space) == "")
	})
}

// TestValues: the types of vLLM's coercion, in its order.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		schema, text, want string
	}{
		{`{"type":"string"}`, "1", `"1"`},
		{`{"type":"string"}`, "null", `"null"`},
		{`{}`, "1", `"1"`},
		{`{"type":"integer"}`, "42", `42`},
		{`{"type":"integer"}`, "+007", `7`},
		{`{"type":"integer"}`, "-0", `0`},
		{`{"type":"integer"}`, "123456789012345678901234567890", `123456789012345678901234567890`},
		{`{"type":"integer"}`, "x", `"x"`},
		{`{"type":"integer"}`, "4.5", `4.5`},
		{`{"type":"number"}`, "2.50", `2.50`},
		{`{"type":"number"}`, ".5", `0.5`},
		{`{"type":"number"}`, "inf", `"inf"`},
		{`{"type":"number"}`, "1e999", `"1e999"`},
		{`{"type":"boolean"}`, "True", `true`},
		{`{"type":"boolean"}`, "0", `false`},
		{`{"type":"boolean"}`, "yes", `"yes"`},
		{`{"type":"object"}`, `{"a": 1.0}`, `{"a": 1.0}`},
		{`{"type":"object"}`, `{'a': 1}`, `"{'a': 1}"`},
		{`{"type":"array"}`, "[1]\n", `[1]`},
		{`{"type":["integer","null"]}`, "null", `null`},
		{`{"anyOf":[{"type":"integer"},{"type":"string"}]}`, "5", `5`},
		{`{"anyOf":[{"type":"integer"},{"type":"string"}]}`, "5a", `"5a"`},
		{`{"enum":["a",1]}`, "1", `1`},
		{`{"type":"int"}`, "5", `5`},
		{`{"type":"string"}`, "a\"\\\n\x01é", `"a\"\\\n\u0001é"`},
	} {
		s := NewSchemas([]rollout.Tool{rollout.Tool(`{"type":"function","function":{"name":"f","parameters":{"properties":{"p":` + c.schema + `}}}}`)})
		require.Equal(t, c.want, s.Of("f", "p").Value(c.text), "%s %s", c.schema, c.text)
	}
}

func TestPython(t *testing.T) {
	for text, want := range map[string]string{
		`f()`:                                  `f{}`,
		`[f(a=1, b=-2.5), g.h(c='x')]`:         `f{"a": 1, "b": -2.5} g.h{"c": "x"}`,
		`f(a=[1, (2, 3)], b={'k': None,})`:     `f{"a": [1, [2, 3]], "b": {"k": null}}`,
		`f(a='it\'s', b="\x41\u00e9\q")`:       `f{"a": "it's", "b": "Aé\\q"}`,
		`f(a=True, b=false, c='x' "y", d=1_0)`: `f{"a": true, "b": false, "c": "xy", "d": 10}`,
	} {
		calls, bad := Python(text)
		require.Empty(t, bad, text)
		var got []string
		for _, c := range calls {
			require.True(t, json.Valid([]byte(c.Arguments)), c.Arguments)
			got = append(got, c.Name+c.Arguments)
		}
		require.Equal(t, want, strings.Join(got, " "))
	}
	for _, text := range []string{``, `f`, `f(1)`, `f(a=)`, `f(a=b)`, `f(a=1`, `f(a='x)`, `[f(), `, `f() g()`, `f(a=1, a=2)`, `f(a={1: 2})`, `f(a=1.2.3)`, `f(a="\x4")`} {
		_, bad := Python(text)
		require.NotEmpty(t, bad, text)
	}
}
