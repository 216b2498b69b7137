package value

import (
	"math/bits"
	"math/rand/v2"
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
