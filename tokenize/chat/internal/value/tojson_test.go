package value

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestUnsafeBytesFindsTheFirst(t *testing.T) {
	const seed = 4
	rng := rand.New(rand.NewPCG(seed, 0))
	const near = "\"\\! #[]^\x00\x1f\x20\x7f\x80\xa2\xdc"
	for range 100_000 {
		var w uint64
		want := 8
		for k := range 8 {
			b := byte(rng.Uint32())
			if rng.IntN(3) > 0 {
				b = near[rng.IntN(len(near))]
			}
			w |= uint64(b) << (8 * k)
			if want == 8 && (b < ' ' || b == '"' || b == '\\') {
				want = k
			}
		}
		if got := bits.TrailingZeros64(unsafeBytes(w)) / 8; got != want {
			t.Fatalf("seed %d: %x: got %d, want %d", seed, w, got, want)
		}
	}
}

// Whole texts are escaped as their characters are, one by one.
func TestEscapingWordsIsEscapingCharacters(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 0))
	const odd = "\"\\\n\r\t\b\f\x00\x1b\x1f\x7fé"
	var out Text
	for range 20_000 {
		text := make([]byte, rng.IntN(1<<rng.IntN(13)))
		often := rng.IntN(3) // none, few, many
		for i := range text {
			text[i] = ' ' + byte(rng.IntN(95))
			if often > 0 && rng.IntN(40)/(1+20*often) == 0 {
				text[i] = odd[rng.IntN(len(odd))]
			}
		}
		whole, want := string(text), []byte("before")
		for left := whole; left != ""; {
			n := 0
			want, n = (&JSON{}).appendEscape(want, left)
			left = left[n:]
		}
		out.Reset()
		out.Lit("before")
		if out.escaped(whole); !bytes.Equal(out.B, want) {
			t.Fatalf("seed %d: %q: got %q, want %q", seed, text, out.B, want)
		}
	}
}

// Every byte at every place of a text of several blocks, before an escape that follows
// it at some distance; nothing is written behind the room for the escapes.
func TestEscapingBlocks(t *testing.T) {
	const size, room = 160, 6*160 + 8
	plain := strings.Repeat("0123456789abcdefghijklmnopqrstuv", 5)
	buf := bytes.Repeat([]byte{0xee}, room+256)
	for at := range size {
		for c := range 256 {
			text := []byte(plain)
			text[at] = byte(c)
			if next := at + 1 + (at*7+c)%70; next < size {
				text[next] = "\n\x1b"[c&1]
			}
			var want []byte
			for left := string(text); left != ""; {
				n := 0
				want, n = (&JSON{}).appendEscape(want, left)
				left = left[n:]
			}
			n := putEscaped(buf[:room], string(text))
			if !bytes.Equal(buf[:n], want) {
				t.Fatalf("%q: got %q, want %q", text, buf[:n], want)
			}
		}
	}
	if bytes.Count(buf[room:], []byte{0xee}) != 256 {
		t.Fatal("bytes behind the room were written")
	}
}
