package record

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// What readHead reads is what json.Unmarshal reads, of every field and of heads that are
// none.
func TestReadHead(t *testing.T) {
	full := Entry{Kind: "k", Session: "s", Run: "r", Parent: "p", Agent: "ä\u2028<", Call: "c", Replaces: "x", Dialect: "d", Engine: "e", Settings: json.RawMessage(`{"a":[1,"b"]}`),
		State: "st", Why: "wh\"y", OtherTools: true, At: 1763880000123456789, First: 2, Took: 3, Base: 4, Keep: 5, Usage: &Usage{PromptTokens: 6, CompletionTokens: 7}, Group: "g", Digest: "di"}
	v := reflect.ValueOf(full)
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Tag.Get("json") != "-" && f.Name != "Sessions" {
			require.False(t, v.Field(i).IsZero(), f.Name)
		}
	}
	rare := full
	rare.Sessions = []string{"a", "b"}
	var heads [][]byte
	for _, e := range []Entry{full, rare, {}} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		require.NoError(t, enc.Encode(e))
		heads = append(heads, b.Bytes())
	}
	for _, s := range []string{`{"kind":1}`, `{"at":"x"}`, `{"usage":{"prompt_tokens":"1"}}`, `{"usage":null}`, `{"settings":null}`, `[]`, `null`, `{`, ``, `{"kind":"a","kind":"b"}`, `{"kind":"\ud800"}`, "{\"kind\":\"\xff\"}", `{"new":1}`} {
		heads = append(heads, []byte(s))
	}
	for _, head := range heads {
		var want, got Entry
		err := json.Unmarshal(head, &want)
		require.Equal(t, err == nil, got.readHead(head) == nil, "%s", head)
		if err == nil {
			require.Equal(t, want, got, "%s", head)
		}
	}
	require.True(t, new(Entry).memberOf(t, heads[0]), "the head of a call takes the short way")
}

func (e *Entry) memberOf(t *testing.T, head []byte) bool {
	t.Helper()
	r := rooms.Get().(*room)
	defer r.free()
	v, err := r.doc.Parse(head, jsonscan.Options{})
	require.NoError(t, err)
	for k, x := range v.Fields() {
		if !e.member(string(k.Key()), x) {
			return false
		}
	}
	return true
}
