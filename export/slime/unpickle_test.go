package slime

import (
	"archive/zip"
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Opcodes that Python's pickler writes and ours does not.
func TestUnpickleForms(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       any
	}{
		{"negative long", "\x80\x02\x8a\x01\xff.", int64(-1)},
		{"zero long", "\x80\x02\x8a\x00.", int64(0)},
		{"tuple of three", "K\x01K\x02K\x03\x87.", []any{int64(1), int64(2), int64(3)}},
		{"marked tuple", "(K\x01K\x02t.", []any{int64(1), int64(2)}},
		{"protocol 4 text", "\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00\x8c\x02hi\x94.", "hi"},
		{"ordered dictionary", "ccollections\nOrderedDict\n)R(X\x01\x00\x00\x00aK\x01u.", map[any]any{"a": int64(1)}},
		{"class", "cposix\nsystem\nX\x02\x00\x00\x00ls\x85R.", opaque{"posix.system"}},
		{"class named on the stack", "\x8c\x01m\x8c\x01C\x93.", opaque{"m.C"}},
		{"append and set", "}X\x01\x00\x00\x00l]K\x05as.", map[any]any{"l": &[]any{int64(5)}}},
	} {
		got, err := unpickle([]byte(c.data))
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, got, c.name)
	}
	for _, bad := range []string{"", ".", "K", "e.", "(e.", "K\x01h\x05.", "K\x01K\x02s.", "\x8a\x09123456789.", "\xfe", "}q\x00K\x01h\x00sN\x93."} {
		_, err := unpickle([]byte(bad))
		require.Error(t, err, "%q", bad)
	}
}

// Lists that samples share, pickles that unfold and names put together from long
// texts take no more than a file of their size can be meant to hold.
func TestPickleBombs(t *testing.T) {
	list := "X\x01\x00\x00\x00s](" + strings.Repeat("K\x01", 1<<16) + "eq\x00"
	sample := "}X\x06\x00\x00\x00tokensh\x00s"
	for want, pickle := range map[string]string{
		"longer than a pickle of": "}" + list + "s" + "X\x07\x00\x00\x00samples](" + strings.Repeat(sample, 1<<14) + "es.",
		"the pickle has":          strings.Repeat("N", 17<<20),
		"the name of a class":     "X\x00\x00\x10\x00" + strings.Repeat("x", 1<<20) + "q\x00" + strings.Repeat("h\x00h\x00\x930", 1<<16),
		"expected a list":         "}q\x00X\x07\x00\x00\x00samplesh\x00s.",
		"tokens[0] is a dict":     "}X\x07\x00\x00\x00samples]}q\x00X\x06\x00\x00\x00tokens]h\x00asas.",
	} {
		var buf bytes.Buffer
		z := zip.NewWriter(&buf)
		w, err := z.Create("archive/data.pkl")
		require.NoError(t, err)
		_, err = io.WriteString(w, pickle)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err = Read(bytes.NewReader(buf.Bytes()), int64(buf.Len()))
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, want)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<20), want)
	}
}

func FuzzUnpickle(f *testing.F) {
	f.Add([]byte("\x80\x02}(X\x01\x00\x00\x00a](K\x01eu."))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = unpickle(bytes.Clone(data)) })
}
