package value

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The hint of Lookup does not change its result.
func TestLookupTellsKeysApart(t *testing.T) {
	keys := []string{""}
	for from := 0; len(keys[from]) < 5; from++ {
		for _, c := range "abc" {
			keys = append(keys, keys[from]+string(c))
		}
	}
	keys = append(keys, "12345678", "123456789", "12345678a", "1234567")
	for first := 0; first < len(keys); first += 6 {
		d := NewDict(6)
		last := min(first+6, len(keys))
		for i, key := range keys[first:last] {
			d.SetString(key, NewInt(int64(i)))
		}
		for i := range keys {
			for near := range uint8(7) {
				v := d.Lookup(keys[i], &near)
				if i < first || i >= last {
					require.Nil(t, v, keys[i])
				} else {
					require.Equal(t, NewInt(int64(i-first)), v, keys[i])
				}
			}
		}
	}
}
