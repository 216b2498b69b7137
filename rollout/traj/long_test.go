package traj_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// TestKitWithStringsAside: a value whose strings are left in the file, as for long values,
// reads the same as in memory.
func TestKitWithStringsAside(t *testing.T) {
	kit.OneGoroutine(t)
	dir := kit.Dir(t, "data", "trajectories")
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	require.NoError(t, err)
	aside, tmp, spill := traj.WithHold(stop, 1), t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", spill)
	files := 0
	for _, p := range paths {
		info, err := os.Stat(p)
		require.NoError(t, err)
		if info.IsDir() || strings.HasSuffix(p, ".md") || info.Size() > 400_000 {
			continue
		}
		files++
		var want, got []*rollout.Rollout
		if strings.HasSuffix(p, ".eval") {
			want, got = all(t, stop, p), all(t, aside, p)
		} else {
			// Indented, so that each record is a value of several lines.
			f := kitFile{text: plain(t, p)}
			if f.records = []string{f.text}; strings.HasSuffix(strings.TrimSuffix(p, ".gz"), ".jsonl") {
				f.records = strings.Split(strings.TrimSpace(f.text), "\n")
			}
			text := strings.Join(each(t, f, indent), "\n")
			q := write(t, tmp, fmt.Sprintf("%d.json", files), []byte(text))
			want, got = all(t, stop, q), all(t, aside, q)
			packed := all(t, aside, write(t, tmp, fmt.Sprintf("%d.json.gz", files), gz([]byte(text))))
			sameContent(t, p+" in a stream", want, packed)
		}
		sameContent(t, p, want, got)
	}
	require.Greater(t, files, 40)
	left, err := os.ReadDir(spill)
	require.NoError(t, err)
	require.Empty(t, left, "temporary files are removed")
}

func sameContent(t *testing.T, name string, want, got []*rollout.Rollout) {
	t.Helper()
	require.Len(t, got, len(want), name)
	for i := range want {
		want, got := *want[i], *got[i]
		want.ID, want.Group, want.Index, want.Origin = "", "", 0, rollout.Origin{}
		got.ID, got.Group, got.Index, got.Origin = "", "", 0, rollout.Origin{}
		if d := differ(want, got); d != "" {
			t.Fatalf("%s: %.1000s", name, d)
		}
	}
}

// longChat is a record of n messages of 4 KB, written over many lines.
func longChat(n int) []byte {
	content, _ := json.Marshal(strings.Repeat("def f(x):\n\treturn \"é\"\n", 180))
	var b bytes.Buffer
	b.WriteString("{\"messages\":[\n")
	for i := range n {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `{"role":"%s","content":%s}`, []string{"user", "assistant"}[i%2], content)
	}
	b.WriteString("\n]}\n")
	return b.Bytes()
}

// TestLongRecordTakesItsContent: reading one record of 100 MB takes little more memory than
// its content, from a file and from a stream.
func TestLongRecordTakesItsContent(t *testing.T) {
	kit.OneGoroutine(t)
	path := write(t, t.TempDir(), "x.json", longChat(24_000))
	for _, stream := range []bool{false, true} {
		r, err := traj.Open([]string{path}, stop)
		require.NoError(t, err)
		if stream {
			f, err := os.Open(path)
			require.NoError(t, err)
			defer f.Close()
			r, err = traj.NewReader(struct{ io.Reader }{f}, "x.json", stop)
			require.NoError(t, err)
		}
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		x, err := first(t, r)
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		content := 0
		for i := range x.Messages {
			content += len(x.Messages[i].Content)
		}
		allocated := after.TotalAlloc - before.TotalAlloc
		t.Logf("stream %v: %d MB of content, %d MB allocated", stream, content>>20, allocated>>20)
		require.Less(t, float64(allocated), 1.2*float64(content)+96<<20)
	}
}

func TestFaultsOfLongRecords(t *testing.T) {
	kit.OneGoroutine(t)
	whole := string(longChat(40))
	at := strings.LastIndex(whole, "def f")
	aside := traj.WithHold(stop, 1)
	for _, c := range []struct {
		reason, text string
		limit        int
		kind         error
		says         string
	}{
		{"a control character in a string that is set aside", whole[:at] + "\x01" + whole[at+1:], 0, rollout.KindFormat, fmt.Sprintf("byte %d: not JSON: control byte 0x01", at)},
		{"invalid UTF-8 in one", whole[:at] + "\xff" + whole[at+1:], 0, rollout.KindFormat, "not valid UTF-8"},
		{"an escape that does not exist", whole[:at] + `\x` + whole[at+2:], 0, rollout.KindFormat, "unknown escape"},
		{"the end inside a string", whole[:at], 0, rollout.KindFormat, "cut off"},
		{"a fault behind strings that are set aside", strings.TrimSuffix(whole, "]}\n") + "?]}", 0, rollout.KindFormat, fmt.Sprintf("byte %d: not JSON", len(whole)-3)},
		{"longer than allowed", whole, 100_000, rollout.KindLimit, "raise Limits.ValueBytes"},
	} {
		opt := aside
		opt.Limits.ValueBytes = c.limit
		_, _, err := read(t, "x.json", c.text, opt)
		require.ErrorIs(t, err, c.kind, c.reason)
		require.ErrorContains(t, err, c.says, c.reason)
		require.ErrorContains(t, err, "x.json", c.reason)
	}
	for n := 3; n < len(whole)-2; n += 997 {
		_, _, err := read(t, "x.json", whole[:n], aside)
		require.Error(t, err, "the first %d bytes", n)
	}
}

// If a file changes between splitting and reading, that is an error: no rollout gets texts
// from another record.
func TestLongRecordOfAFileThatChanges(t *testing.T) {
	first := `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`
	path := write(t, t.TempDir(), "x.json", []byte("{\n"+first[1:]+"\n"+string(longChat(8))))
	r, err := traj.Open([]string{path}, traj.WithHold(stop, 1))
	require.NoError(t, err)
	n := 0
	for _, err = range r.All() {
		if n++; n == 1 { // the whole file is buffered by then
			require.NoError(t, err)
			require.NoError(t, os.Truncate(path, 1000))
		}
	}
	require.Equal(t, 2, n)
	require.ErrorIs(t, err, rollout.KindInput)
	require.ErrorContains(t, err, "cannot be read again")
	require.ErrorContains(t, err, path)
}

// FuzzAside: leaving strings in the file changes neither what is read from a stream nor
// whether it is refused.
func FuzzAside(f *testing.F) {
	for _, s := range fixtures {
		f.Add([]byte(s.text))
	}
	f.Add(longChat(2))
	f.Add([]byte(`[{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","token_ids":[` + strings.Repeat("1,\n", 200) + `2]}]}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		multiline := strings.Replace(string(text), "{", "{\n", 1) // so that the value is not one line
		for _, text := range []string{string(text), multiline} {
			want, _, wantErr := read(t, "x.json", text, stop)
			got, _, err := read(t, "x.json", text, traj.WithHold(stop, 1))
			require.Equal(t, wantErr == nil, err == nil, "%v, with strings aside %v", wantErr, err)
			sameContent(t, "x.json", want, got)
		}
	})
}
