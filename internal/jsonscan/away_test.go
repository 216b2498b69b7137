package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// setAside removes the strings and lists of numbers of at least n bytes from src.
func setAside(t *testing.T, src []byte, n int) (text []byte, away []jsonscan.Away) {
	t.Helper()
	for i := 0; i < len(src); {
		if src[i] != '"' {
			text = append(text, src[i])
			i++
			if end, _ := jsonscan.NumbersEnd(src[i:]); text[len(text)-1] == '[' && end > n {
				away = append(away, jsonscan.Away{At: len(text) - 1, From: int64(i), Len: end - 1})
				text = append(text, ']')
				i += end
			}
			continue
		}
		a := jsonscan.Away{At: len(text), From: int64(i + 1)}
		rest := src[i+1:]
		for closed := false; !closed; { // parts that cut characters and escapes
			part := rest[a.Len:min(len(rest), a.Len+7+a.Len/2)]
			got, end, err := a.StringPart(part)
			require.NoError(t, err)
			require.True(t, got > 0 || end)
			closed = end
		}
		if i += a.Len + 2; a.Len < n {
			text = append(text, src[int(a.From)-1:i]...)
			continue
		}
		text = append(text, `""`...)
		away = append(away, a)
	}
	return text, away
}

func values(v jsonscan.Value) []jsonscan.Value {
	out := []jsonscan.Value{v}
	for _, x := range v.Items() {
		out = append(out, values(x)...)
	}
	for k, x := range v.Fields() {
		out = append(append(out, k), values(x)...)
	}
	return out
}

// Values parsed without their strings equal those parsed with them.
func TestStringsAway(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 400 {
		src, err := json.Marshal(map[string]any{"long": long(rng), "": random(rng, 4), "list": []any{"", long(rng), 1, "é"}, "ids": []int{rng.IntN(9), -1, 1 << 20}, "none": []int{}})
		require.NoError(t, err)
		if rng.IntN(2) == 0 {
			var b bytes.Buffer
			require.NoError(t, json.Indent(&b, src, "", " "))
			src = b.Bytes()
		}
		var whole, parted jsonscan.Doc
		want, err := whole.Parse(src, jsonscan.Options{})
		require.NoError(t, err)
		text, away := setAside(t, src, rng.IntN(20))
		got, err := parted.Parse(text, jsonscan.Options{Away: away, Store: bytes.NewReader(src)})
		require.NoError(t, err)
		require.Equal(t, tree(want), tree(got), "seed %d", seed)
		all := values(got)
		for i, w := range values(want) {
			g := all[i]
			require.Equal(t, string(w.Raw()), string(g.Raw()))
			require.Equal(t, string(w.Clone()), string(g.Clone()))
			require.Equal(t, len(w.Raw()), g.Size())
			require.Equal(t, w.LoneSurrogate(), g.LoneSurrogate())
			require.Equal(t, w.Word(), g.Word())
			require.Equal(t, w.Len(), g.Len())
			ids, _, ok := w.AppendInt32(nil)
			gotIDs, _, gotOK := g.AppendInt32(nil)
			require.Equal(t, ids, gotIDs)
			require.Equal(t, ok, gotOK)
			require.True(t, w.Kind() != jsonscan.String || g.Is(w.String()))
			require.False(t, g.Is(w.String()+"x"))
			s, _ := g.TextIn(string(text))
			require.Equal(t, w.String(), s)
		}
		require.NoError(t, parted.Err())
	}
}

// long returns a string longer than the part read at a time, full of escapes.
func long(rng *rand.Rand) string {
	if rng.IntN(8) > 0 {
		return "short"
	}
	return strings.Repeat(string(rune('a'+rng.IntN(26))), rng.IntN(20)) + strings.Repeat("\n\x01\"é😀<", 10_000)
}

func TestLoneSurrogateAway(t *testing.T) {
	for pad := range 14 { // the escape is around the end of a part
		src := []byte(`"\ud83d\ude00` + strings.Repeat("a", 64<<10-24+pad) + `\ud83d\ude00` + `\ud800"`)
		text, away := setAside(t, src, 1)
		var d jsonscan.Doc
		v, err := d.Parse(text, jsonscan.Options{Away: away, Store: bytes.NewReader(src)})
		require.NoError(t, err)
		require.True(t, v.LoneSurrogate())
		require.True(t, strings.HasSuffix(v.String(), "a😀\ufffd"))
	}
}

// A store that changed after the check gives an error or another text, never a panic.
func TestStoreThatChanged(t *testing.T) {
	src := []byte(`["` + strings.Repeat("a\\n", 50) + `","` + strings.Repeat("\\ud83d\\ude00", 20) + `",[1,2.5,3]]`)
	text, away := setAside(t, src, 1)
	for n := range src {
		for _, changed := range [][]byte{src[:n], append(bytes.Clone(src[:n]), bytes.Repeat([]byte{'\\'}, len(src)-n)...)} {
			var d jsonscan.Doc
			v, err := d.Parse(text, jsonscan.Options{Away: away, Store: bytes.NewReader(changed)})
			require.NoError(t, err)
			for _, x := range values(v) {
				x.Text()
				x.LoneSurrogate()
				x.Clone()
				x.AppendFloat32(nil)
			}
			require.True(t, len(changed) >= len(src)-2 || d.Err() != nil, "%d of %d bytes", len(changed), len(src))
		}
	}
}

func TestNumbersEnd(t *testing.T) {
	for _, c := range []struct {
		reason, text string
		end          int
		cut          bool
	}{
		{"numbers", "1, -2.5e3\n,4] x", 13, false},
		{"the end is missing", "1,2", 0, true},
		{"the end of a number is missing", "1,2e", 0, true},
		{"nothing yet", " ", 0, true},
		{"an empty list has no numbers", "]", 0, false},
		{"something else", `1,"a"]`, 0, false},
		{"no number", "1,2x]", 0, false},
	} {
		end, cut := jsonscan.NumbersEnd([]byte(c.text))
		require.Equal(t, c.end, end, c.reason)
		require.Equal(t, c.cut, cut, c.reason)
	}
}
