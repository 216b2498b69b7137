package shard

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
)

// A repeated value gives the same checksum as if it were written out, for every length.
func TestRepeat(t *testing.T) {
	const lead = "what stands there, "
	for _, value := range []string{"a", "abcd"} {
		for _, n := range []int{0, 1, 2, 3, 1000, muchToSum/4 - 1, muchToSum / 4, muchToSum/4 + 1, muchToSum, 3*muchToSum + 7} {
			c := &current{crc: crc32.New(castagnoli), buf: []byte(lead + value)}
			c.repeat(len(value), n)
			require.LessOrEqual(t, len(c.buf), 2*muchToSum+len(lead))
			c.sumUp()
			want := append([]byte(lead), bytes.Repeat([]byte(value), n+1)...)
			require.Equal(t, crc32.Checksum(want, castagnoli), c.crc.Sum32(), fmt.Sprint(value, n))
		}
	}
}
