package pq

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/pqread"
)

// Nested columns are read back as they were written, for every page size.
func TestTrees(t *testing.T) {
	word := func(name string, null bool) Node { return Node{Name: name, Kind: Text, Nullable: null} }
	tree := []Node{word("id", false), {Name: "turns", List: true, Members: []Node{word("role", false), word("text", true),
		{Name: "calls", List: true, Nullable: true, Members: []Node{word("name", false), {Name: "f", Members: []Node{word("arguments", true)}}}}}}}
	type function struct {
		Arguments string `json:"arguments"`
	}
	type call struct {
		Name     string   `json:"name"`
		Function function `json:"f"`
	}
	type turn struct {
		Role  string `json:"role"`
		Text  string `json:"text"`
		Calls []call `json:"calls,omitempty"`
	}
	type row struct {
		ID    string `json:"id"`
		Turns []turn `json:"turns"`
	}
	for _, page := range []int{1, 64, 1 << 20} {
		rng := rand.New(rand.NewPCG(7, uint64(page)))
		var file bytes.Buffer
		w, leaves, err := NewTreeWriter(&file, tree, 0)
		require.NoError(t, err)
		w.page = page
		require.Equal(t, "turns.list.element.calls.list.element.f.arguments", leaves[4].Name)
		var want []row
		for range 2 {
			v := make([]Values, len(leaves))
			put := func(leaf int, rep, def uint8, s string) {
				v[leaf].Rep, v[leaf].Def = append(v[leaf].Rep, rep), append(v[leaf].Def, def)
				if int(def) == leaves[leaf].Depth() {
					v[leaf].Texts = append(v[leaf].Texts, s)
				}
			}
			for n := range 40 {
				r := row{ID: fmt.Sprint(n), Turns: []turn{}}
				put(0, 0, 0, r.ID)
				turns := rng.IntN(4)
				if turns == 0 {
					for leaf := 1; leaf < 5; leaf++ {
						put(leaf, 0, 0, "")
					}
				}
				for k := range turns {
					x, rep := turn{Role: "r", Text: fmt.Sprint("t", rng.IntN(9))}, uint8(min(k, 1))
					put(1, rep, 1, x.Role)
					put(2, rep, 2, x.Text)
					for j := range rng.IntN(3) {
						if j > 0 {
							rep = 2
						}
						c := call{"n", function{fmt.Sprint(j)}}
						put(3, rep, 3, c.Name)
						put(4, rep, 4, c.Function.Arguments)
						x.Calls = append(x.Calls, c)
					}
					if x.Calls == nil {
						put(3, rep, 1, "")
						put(4, rep, 1, "")
					}
					r.Turns = append(r.Turns, x)
				}
				want = append(want, r)
			}
			require.NoError(t, w.WriteRowGroup(40, v))
		}
		require.NoError(t, w.Close(nil))
		f, err := pqread.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
		require.NoError(t, err)
		rows := pqread.NewRows(f, 1<<20)
		for _, r := range want {
			text, err := rows.Next()
			require.NoError(t, err)
			expected, err := json.Marshal(r)
			require.NoError(t, err)
			require.JSONEq(t, string(expected), string(text))
		}
		_, err = rows.Next()
		require.ErrorIs(t, err, io.EOF)
	}
}
