package pickle

import (
	"bytes"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// Opcodes of several protocols, and malformed pickles.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       any
	}{
		{"negative long", "\x80\x02\x8a\x01\xff.", int64(-1)},
		{"an unsigned seed", "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.", new(big.Int).SetUint64(math.MaxUint64)},
		{"long of nine bytes below zero", "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xff.", new(big.Int).Lsh(big.NewInt(-1), 64)},
		{"zero long", "\x80\x02\x8a\x00.", int64(0)},
		{"tuple of three", "K\x01K\x02K\x03\x87.", []any{int64(1), int64(2), int64(3)}},
		{"marked tuple", "(K\x01K\x02t.", []any{int64(1), int64(2)}},
		{"protocol 4 text", "\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00\x8c\x02hi\x94.", "hi"},
		{"ordered dictionary", "ccollections\nOrderedDict\n)R(X\x01\x00\x00\x00aK\x01u.", map[any]any{"a": int64(1)}},
		{"class", "cposix\nsystem\nX\x02\x00\x00\x00ls\x85R.", Object{"posix.system"}},
		{"class named on the stack", "\x8c\x01m\x8c\x01C\x93.", Object{"m.C"}},
		{"append and set", "}X\x01\x00\x00\x00l]K\x05as.", map[any]any{"l": &[]any{int64(5)}}},
	} {
		got, err := Load([]byte(c.data))
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, got, c.name)
	}
	for _, bad := range []string{"", ".", "K", "e.", "(e.", "K\x01h\x05.", "K\x01K\x02s.", "\x8a\x0912345678", "\xfe", "}q\x00K\x01h\x00sN\x93."} {
		_, err := Load([]byte(bad))
		require.Error(t, err, "%q", bad)
	}
}

// A value of any size in the metadata of a sample costs neither the file nor its digits.
func TestLongAsJSON(t *testing.T) {
	v, err := Load([]byte("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00."))
	require.NoError(t, err)
	b, err := AppendJSON(nil, v, 100)
	require.NoError(t, err)
	require.Equal(t, "18446744073709551615", string(b))
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte("\x80\x02}(X\x01\x00\x00\x00a](K\x01eu."))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = Load(bytes.Clone(data)) })
}
