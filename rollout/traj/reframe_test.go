package traj_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
)

// kitFile is a dump of the kit: its text and its records.
type kitFile struct {
	name    string // without a compression extension
	text    string
	records []string
}

func (f kitFile) lined() bool { return strings.HasSuffix(f.name, ".jsonl") }

// reframed are other ways to write the records of a file; each occurs `times` times.
var reframed = []struct {
	reason string
	times  int
	write  func(t *testing.T, f kitFile) (name string, text []byte)
}{
	{"on one line each", 1, func(t *testing.T, f kitFile) (string, []byte) {
		return f.name, []byte(strings.Join(each(t, f, json.Compact), "\n"))
	}},
	{"over many lines", 1, func(t *testing.T, f kitFile) (string, []byte) {
		return f.name, []byte(strings.Join(each(t, f, indent), "\n") + "\n")
	}},
	{"carriage returns and a byte order mark", 1, func(_ *testing.T, f kitFile) (string, []byte) {
		return f.name, []byte("\xef\xbb\xbf" + strings.ReplaceAll(f.text, "\n", "\r\n"))
	}},
	{"under a name that says nothing", 1, func(_ *testing.T, f kitFile) (string, []byte) { return "dump", []byte(f.text) }},
	{"gzip", 1, func(_ *testing.T, f kitFile) (string, []byte) { return f.name + ".gz", gz([]byte(f.text)) }},
	{"zstd", 1, func(_ *testing.T, f kitFile) (string, []byte) { return f.name + ".zst", zst([]byte(f.text)) }},
	{"with a key that nobody knows", 1, func(t *testing.T, f kitFile) (string, []byte) {
		out := each(t, f, json.Compact)
		for i := range out {
			out[i] = strings.Replace(out[i], "{", `{"zz_unknown":null,`, 1)
		}
		return f.name, []byte(strings.Join(out, "\n"))
	}},
	{"one after the other", 2, func(t *testing.T, f kitFile) (string, []byte) {
		all := strings.Join(each(t, f, indent), "\n")
		return strings.TrimSuffix(f.name, "l"), []byte(all + "\n" + all)
	}},
	{"as one list", 1, func(t *testing.T, f kitFile) (string, []byte) {
		return strings.TrimSuffix(f.name, "l"), []byte("[" + strings.Join(each(t, f, indent), ",\n") + "]")
	}},
}

func indent(dst *bytes.Buffer, src []byte) error { return json.Indent(dst, src, "", "  ") }

// each rewrites every record with form.
func each(t *testing.T, f kitFile, form func(*bytes.Buffer, []byte) error) []string {
	var out []string
	for _, r := range f.records {
		var b bytes.Buffer
		require.NoError(t, form(&b, []byte(r)))
		out = append(out, b.String())
	}
	return out
}

// spaced compares JSON texts, ignoring white space.
func spaced(a, b string) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, []byte(a)) != nil || json.Compact(&y, []byte(b)) != nil {
		return a == b
	}
	return x.String() == y.String()
}

// sortKeys writes a record with the keys of its objects in order.
func sortKeys(dst *bytes.Buffer, src []byte) error {
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return err
	}
	b, err := json.Marshal(v)
	dst.Write(b)
	return err
}

// ordered compares JSON texts, ignoring white space and key order.
func ordered(a, b string) bool {
	var x, y bytes.Buffer
	if sortKeys(&x, []byte(a)) != nil || sortKeys(&y, []byte(b)) != nil {
		return a == b
	}
	return x.String() == y.String()
}

// sameRollout compares rollouts; equal compares their JSON texts.
func sameRollout(equal func(a, b string) bool) cmp.Options {
	return cmp.Options{
		cmpopts.EquateEmpty(),
		// Metadata omits long values, whose length includes white space.
		cmpopts.IgnoreFields(rollout.Rollout{}, "ID", "Group", "Index", "Origin", "Notes", "Metadata"),
		cmp.Comparer(func(a, b json.RawMessage) bool { return equal(string(a), string(b)) }),
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Arguments" }, cmp.Comparer(equal)),
	}
}

// TestKitReframed: how records are framed does not change what is read.
func TestKitReframed(t *testing.T) {
	kit.OneGoroutine(t)
	dir := kit.Dir(t, "data", "trajectories")
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	require.NoError(t, err)
	files := 0
	for _, p := range paths {
		info, err := os.Stat(p)
		require.NoError(t, err)
		if info.IsDir() || strings.HasSuffix(p, ".md") || strings.HasSuffix(p, ".eval") || info.Size() > 25_000 {
			continue
		}
		f := kitFile{name: strings.TrimSuffix(filepath.Base(p), ".gz"), text: plain(t, p)}
		if f.records = []string{f.text}; f.lined() {
			f.records = strings.Split(strings.TrimSpace(f.text), "\n")
		}
		want, _, err := read(t, f.name, f.text, stop)
		require.NoError(t, err)
		files++
		for _, c := range reframed {
			if strings.HasSuffix(p, "goal_events.jsonl") && c.times > 1 {
				continue // one conversation per file, so repeated events are still one conversation
			}
			name, text := c.write(t, f)
			got, _, err := read(t, name, string(text), stop)
			require.NoError(t, err, "%s: %s", p, c.reason)
			require.Len(t, got, c.times*len(want), "%s: %s", p, c.reason)
			for i, r := range got {
				if d := cmp.Diff(want[i%len(want)], r, sameRollout(spaced)); d != "" {
					t.Fatalf("%s: %s: %.1000s", p, c.reason, d)
				}
			}
		}
		got, _, err := read(t, f.name, strings.Join(each(t, f, sortKeys), "\n"), stop)
		require.NoError(t, err)
		if d := cmp.Diff(want, got, sameRollout(ordered)); d != "" {
			t.Fatalf("%s: keys in another order: %.1000s", p, d)
		}
	}
	require.Greater(t, files, 40)
}
