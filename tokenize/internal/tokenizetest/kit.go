// Package tokenizetest compares tokenizer engines with recorded results of the reference.
package tokenizetest

import (
	"fmt"
	"testing"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// kitCase is one line of the tokenizers kit.
type kitCase struct {
	ID      string            `json:"id"`
	Kind    string            `json:"kind"`
	Text    string            `json:"text"`
	IDs     []rollout.TokenID `json:"ids"`
	Literal []rollout.TokenID `json:"ids_literal"` // nil: as IDs
	Plain   []rollout.TokenID `json:"ids_plain"`   // nil: as IDs
	Offsets []int32           `json:"offsets"`
	Decoded *string           `json:"decoded"` // nil: as Text
}

// maxReports is how many differences of one kind are printed.
const maxReports = 5

// RunKit compares tok with every case of a kit file: ids with all added tokens,
// with those that are special refused, with none, byte offsets and decoded text.
func RunKit(t *testing.T, tok engine.Tokenizer, path string) {
	t.Helper()
	notSpecial := func(m engine.AddedMatch) bool { return !m.Token.Special }
	bad := map[string]int{}
	report := func(c kitCase, field, detail string) {
		if bad[field]++; bad[field] <= maxReports {
			t.Errorf("%s (%s) %s of %.200q: %s", c.ID, c.Kind, field, c.Text, detail)
		}
	}
	var e engine.Encoding
	cases := 0
	for c := range kit.Lines[kitCase](t, path) {
		cases++
		for _, v := range []struct {
			field string
			added func(engine.AddedMatch) bool
			want  []rollout.TokenID
		}{{"ids", nil, c.IDs}, {"ids_literal", notSpecial, c.Literal}, {"ids_plain", engine.NoAdded, c.Plain}} {
			want := v.want
			if want == nil {
				want = c.IDs
			}
			e.Reset()
			if err := tok.Encode(&e, c.Text, engine.EncodeOptions{Added: v.added, Offsets: v.added == nil}); err != nil {
				report(c, v.field, err.Error())
				continue
			}
			if d := diff(tok, e.IDs, want); d != "" {
				report(c, v.field, d)
			}
			if v.added == nil {
				if d := diffOffsets(e.Offsets, c.Offsets); d != "" {
					report(c, "offsets", d)
				}
			}
		}
		want := c.Text
		if c.Decoded != nil {
			want = *c.Decoded
		}
		got, err := tok.Decode(c.IDs)
		if err != nil {
			report(c, "decoded", err.Error())
		} else if got != want {
			report(c, "decoded", fmt.Sprintf("%.200q, want %.200q", got, want))
		}
	}
	for field, n := range bad {
		t.Errorf("%s: %d of %d cases differ", field, n, cases)
	}
}

// diff describes the first difference, with the tokens around it.
func diff(tok engine.Tokenizer, got, want []rollout.TokenID) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	if i == len(got) && i == len(want) {
		return ""
	}
	show := func(ids []rollout.TokenID) string {
		s := ""
		for k := max(0, i-1); k < min(len(ids), i+4); k++ {
			name, _ := tok.Vocab().Token(ids[k])
			s += fmt.Sprintf(" %d:%q", ids[k], name)
		}
		return s
	}
	return fmt.Sprintf("token %d (of %d, want %d): got%s, want%s", i, len(got), len(want), show(got), show(want))
}

func diffOffsets(got, want []int32) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("offset %d of token %d is %d, want %d", i%2, i/2, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d offsets, want %d", len(got), len(want))
	}
	return ""
}
