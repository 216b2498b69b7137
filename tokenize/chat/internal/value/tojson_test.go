package value

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// Escaping a text equals escaping its characters one by one, and reads back as the text.
func TestEscapingTextIsEscapingCharacters(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 0))
	const odd = "\"\\\n\r\t\b\f\x00\x1b\x1f\x7f"
	var out Text
	for range 2_000 {
		text := make([]byte, rng.IntN(1<<rng.IntN(13)))
		often := rng.IntN(3) // none, few, many
		for i := range text {
			text[i] = ' ' + byte(rng.IntN(95))
			if often > 0 && rng.IntN(40)/(1+20*often) == 0 {
				text[i] = odd[rng.IntN(len(odd))]
			}
		}
		whole, want := string(text), []byte(`"`)
		for left := whole; left != ""; {
			n, text := (&JSON{}).escape(left)
			want, left = append(want, text...), left[n:]
		}
		out.Reset()
		out.Byte('"')
		if out.escaped(Lit(whole)); !bytes.Equal(out.B, want) {
			t.Fatalf("seed %d: %q: got %q, want %q", seed, text, out.B, want)
		}
		var back string
		if err := json.Unmarshal(append(out.B, '"'), &back); err != nil || back != whole {
			t.Fatalf("seed %d: %q was read back as %q: %v", seed, text, back, err)
		}
	}
}
