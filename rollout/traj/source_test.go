package traj_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

const chatLine = `{"id":%q,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":%q}]}`

func chat(id string) string { return fmt.Sprintf(chatLine, id, "answer of "+id) }

func write(t testing.TB, dir, name string, b []byte) string {
	t.Helper()
	p := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o700))
	require.NoError(t, os.WriteFile(p, b, 0o600))
	return p
}

func gz(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func zst(b []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	return w.EncodeAll(b, nil)
}

func zipped(t testing.TB, members ...string) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := 0; i < len(members); i += 2 {
		f, err := w.Create(members[i])
		require.NoError(t, err)
		_, err = f.Write([]byte(members[i+1]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func ids(t testing.TB, opt traj.Options, paths ...string) (string, *traj.Report, error) {
	t.Helper()
	r, err := traj.Open(paths, opt)
	require.NoError(t, err)
	var out []string
	for x, err := range r.All() {
		if err != nil {
			return strings.Join(out, " "), r.Report(), err
		}
		out = append(out, x.ID)
	}
	return strings.Join(out, " "), r.Report(), nil
}

func TestSources(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a/1.jsonl", []byte(chat("a")+"\n"+chat("b")))
	write(t, dir, "a/2.jsonl.gz", gz([]byte(chat("c"))))
	write(t, dir, "a/3.jsonl.zst", zst([]byte(chat("d"))))
	write(t, dir, "a/4.zip", zipped(t, "z.jsonl", chat("f"), "in/y.jsonl.gz", string(gz([]byte(chat("e")))), "readme.txt", "no"))
	write(t, dir, "a/.hidden/x.jsonl", []byte(chat("hidden")))
	write(t, dir, "a/notes.txt", []byte("no dump"))
	write(t, dir, "a/other.json", []byte(`{"meta":1}`))
	write(t, dir, "b/x.bin", gz([]byte("["+chat("g")+",\n"+chat("h")+"]")))
	for _, c := range []struct {
		reason string
		paths  []string
		stdin  string
		want   string
	}{
		{"a folder in lexical order, archives by member", []string{"a"}, "", "a b c d e f"},
		{"a named file of any name, told by content", []string{"b/x.bin"}, "", "g h"},
		{"a glob", []string{"a/*.jsonl*"}, "", "a b c d"},
		{"the order of the arguments", []string{"a/3.jsonl.zst", "a/1.jsonl"}, "", "d a b"},
		{"standard input", []string{"-"}, chat("s") + "\n" + chat("t"), "s t"},
		{"compressed standard input", []string{"-"}, string(zst([]byte(chat("s")))), "s"},
	} {
		var paths []string
		for _, p := range c.paths {
			if p != "-" {
				p = filepath.Join(dir, p)
			}
			paths = append(paths, p)
		}
		got, report, err := ids(t, traj.Options{OnError: rollout.OnErrorStop, Stdin: strings.NewReader(c.stdin)}, paths...)
		require.NoError(t, err, c.reason)
		require.Equal(t, c.want, got, c.reason)
		if c.paths[0] == "a" {
			var why []string
			for _, i := range report.Ignored {
				why = append(why, filepath.Base(i.Path)+": "+i.Why)
			}
			require.Equal(t, []string{".hidden: hidden", "4.zip!readme.txt: not a file name of a dump", "notes.txt: not a file name of a dump", `other.json: no known format: an object with keys "meta"`}, why, "nothing is passed over in silence")
		}
	}
}

func TestHostileInput(t *testing.T) {
	kit.OneGoroutine(t)
	dir := t.TempDir()
	big := []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat("a", 80<<20) + `"}]}`)
	bomb := gz(big)
	half := `{"messages":[{"role":"user","content":"` + strings.Repeat("a", 30<<20) + `"}]}`
	for _, c := range []struct {
		reason string
		name   string
		data   []byte
		kind   error
		says   string
	}{
		{"a decompression bomb", "b.jsonl.gz", bomb, rollout.KindLimit, "unfold into more than"},
		{"a zstd bomb", "b.jsonl.zst", zst(big), rollout.KindLimit, "unfold into more than"},
		{"a zip bomb", "b.zip", zipped(t, "x.jsonl", string(big)), rollout.KindLimit, "unfold into more than"},
		{"a bomb in parts", "b2.zip", zipped(t, "x.jsonl", half, "y.jsonl", half, "z.jsonl", half), rollout.KindLimit, "the members of an archive"},
		{"compressed twice", "c.jsonl.gz", gz(gz([]byte(chat("a")))), rollout.KindLimit, "compressed more than once"},
		{"an archive in an archive", "c.zip", zipped(t, "x.zip", string(zipped(t, "a.jsonl", chat("a")))), rollout.KindLimit, "archive inside"},
		{"a member that climbs out", "d.zip", zipped(t, "../../etc/x.jsonl", chat("a")), rollout.KindInput, "points outside"},
		{"a member with an absolute name", "e.zip", zipped(t, "/etc/x.jsonl", chat("a")), rollout.KindInput, "not a relative path"},
		{"a nesting bomb", "f.jsonl", []byte(`{"messages":` + strings.Repeat("[", 1<<20)), rollout.KindLimit, "nested deeper"},
		{"a nesting bomb in a list", "f.json", []byte(`[` + strings.Repeat("[", 1<<20)), rollout.KindLimit, "nested deeper"},
		{"a broken gzip stream", "g.jsonl.gz", gz([]byte(strings.Repeat(chat("a")+"\n", 99)))[:60], rollout.KindFormat, "gzip stream is broken"},
		{"a file cut in a list", "h.json", []byte("[" + chat("a") + ","), rollout.KindFormat, "cut off"},
		{"a file cut in an object", "i.json", []byte("{\n\"messages\": ["), rollout.KindFormat, "cut off"},
		{"text after the list", "j.json", []byte("[" + chat("a") + "] x"), rollout.KindFormat, "after the list"},
		{"a value that is too long", "k.jsonl", []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat("a", 2000) + `"}]}`), rollout.KindLimit, "longer than"},
		{"an unknown format", "l.json", []byte(`{"what":1}`), rollout.KindFormat, `no known format: an object with keys "what"`},
		{"an empty file", "m.json", nil, rollout.KindInput, "no rollout found"},
		{"a Parquet file", "o.parquet", []byte("PAR1\x15\x04\x15"), rollout.KindFormat, "the Parquet file cannot be read: a file of 7 bytes is too short"},
		{"a packed Arrow file", "p.arrow.gz", gz([]byte("ARROW1\x00\x00")), rollout.KindFormat, "found an Arrow file"},
		{"an xz file", "q.jsonl.xz", []byte("\xfd7zXZ\x00\x00\x04\n\n"), rollout.KindFormat, "decompress it"},
		{"a bzip2 file", "q.jsonl.bz2", []byte("BZh91AY&SY\n\n\n"), rollout.KindFormat, "decompress it"},
		{"text as PowerShell writes it", "q16.jsonl", []byte("\xff\xfe{\x00}\x00\n\x00"), rollout.KindFormat, "save it as UTF-8"},
		{"a tar archive", "q.tar.gz", gz(append(make([]byte, 257), "ustar\x00"...)), rollout.KindFormat, "unpack it"},
		{"an evaluation log in an archive", "r.zip", zipped(t, "a.eval", string(zipped(t, "header.json", "{}"))), rollout.KindInput, "cannot be read from a stream"},
		{"a packed evaluation log", "s.eval.gz", gz(zipped(t, "header.json", "{}")), rollout.KindInput, "cannot be read from a stream"},
		{"not JSON at all", "n.txt", []byte("hello"), rollout.KindFormat, "not JSON"},
	} {
		p := write(t, dir, c.name, c.data)
		opt := stop
		if c.name == "k.jsonl" {
			opt.Limits.ValueBytes = 1000
		}
		_, _, err := ids(t, opt, p)
		require.ErrorIs(t, err, c.kind, c.reason)
		require.ErrorContains(t, err, c.says, c.reason)
		require.ErrorContains(t, err, c.name, "%s: the file is named", c.reason)
	}
	_, _, err := ids(t, stop, filepath.Join(dir, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, _, err = ids(t, stop, filepath.Join(dir, "missing*"))
	require.ErrorContains(t, err, "no file matches")
	empty := t.TempDir()
	_, _, err = ids(t, stop, empty)
	require.ErrorContains(t, err, "no rollout found, files read: 0 (name dumps")
	if runtime.GOOS != "windows" {
		require.NoError(t, os.Symlink("/dev/zero", filepath.Join(empty, "zero.json")))
		_, report, err := ids(t, stop, empty)
		require.ErrorContains(t, err, "not a regular file", "a device is not read")
		require.Equal(t, 1, report.IgnoredCount)
	}
}

func TestBadRecordsAreSkippedAndListed(t *testing.T) {
	text := chat("a") + "\n<PLACEHOLDER ROW>\n" + chat("b") + "\n{\"messages\":[{\"role\":\"user\"\n{\"messages\":[{\"content\":1}]}\n" + chat("c")
	got, report, err := read(t, "x.jsonl", text, traj.Options{})
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, 3, report.Skipped)
	var lines []int
	for _, err := range report.Errors {
		e, ok := errors.AsType[*rollout.Error](err)
		require.True(t, ok)
		lines = append(lines, e.Where.Line)
	}
	require.Equal(t, []int{2, 4, 5}, lines)
	require.Equal(t, []int{1, 3, 6}, []int{got[0].Origin.Line, got[1].Origin.Line, got[2].Origin.Line})

	got, _, err = read(t, "x.jsonl", text, stop)
	require.Len(t, got, 1)
	require.ErrorContains(t, err, "x.jsonl:2")

	r, err := traj.NewReader(strings.NewReader(text), "x.jsonl", stop)
	require.NoError(t, err)
	n := 0
	for _, err := range r.All() {
		if n++; n == 1 {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "x.jsonl:2")
		}
	}
	require.Equal(t, 2, n, "a stopped stream stays stopped")

	got, report, err = read(t, "x.json", "[\n"+chat("a")+",\n{\"messages\":\"x\"},\n"+chat("b")+"]", traj.Options{})
	require.NoError(t, err)
	require.Len(t, got, 2, "elements of a list are records too")
	require.Equal(t, 1, report.Skipped)
}

// A truncated list is one failure, wherever it ends, and gives the complete records.
func TestACutListIsOneFailure(t *testing.T) {
	a, b := chat("a"), chat("b")
	text := "[" + a + ",\n" + b + ", " + chat("c") + "\n]"
	for n := 1; n < len(text); n++ {
		got, report, err := read(t, "x.json", text[:n], traj.Options{})
		require.NoError(t, err)
		want := 0
		for whole := strings.Index(text, a) + len(a); whole <= n && want < 3; whole += len(b) + 2 {
			want++
		}
		require.Len(t, got, want, text[:n])
		require.Equal(t, 1, report.Skipped, "%d bytes", n)
		require.Len(t, report.Errors, 1)
		require.ErrorContains(t, report.Errors[0], "cut off", text[:n])
	}
}

// A file in a folder is a dump once one of its values is a record; values before it count
// as unreadable records. A file without a record is ignored.
func TestStrangeLines(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.jsonl", []byte("{\"run\":1}\n[7]\n"+chat("a")+"\n{\"end\":1}\n"+chat("b")))
	write(t, dir, "b.jsonl", []byte("{\"run\":1}\n{\"run\":2}\n"))
	write(t, dir, "c.jsonl", []byte(strings.Repeat("{\"run\":1}\n", 2000)+chat("c")))
	got, report, err := ids(t, traj.Options{}, dir)
	require.NoError(t, err)
	require.Equal(t, "a b", got)
	require.Equal(t, 3, report.Skipped)
	for i, line := range []int{1, 2, 4} {
		require.ErrorContains(t, report.Errors[i], "a.jsonl:"+strconv.Itoa(line))
	}
	require.ErrorContains(t, report.Errors[0], "known are ")
	require.Equal(t, 2, report.IgnoredCount)
	require.Equal(t, `no known format: an object with keys "run"`, report.Ignored[0].Why)
	_, _, err = ids(t, stop, dir)
	require.ErrorContains(t, err, "a.jsonl:1")
}

func TestMixedFormatsInOneFile(t *testing.T) {
	got, report, err := read(t, "x.jsonl", chat("a")+"\n"+`{"id":"b","conversations":[{"from":"human","value":"q"}]}`+"\n"+chat("c"), stop)
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, map[string]int{"openai-chat": 2, "sharegpt": 1}, report.Formats)
}

// TestFraming: how records are concatenated does not matter, whatever the name of the file.
func TestFraming(t *testing.T) {
	a, b := chat("a"), chat("b")
	pretty := func(s string) string { return strings.ReplaceAll(s, ",", ",\n  ") }
	message := `[{"role":"user","content":"q"},{"role":"assistant","content":"x"}]`
	for _, c := range []struct{ reason, text, want string }{
		{"JSONL", a + "\n" + b, "a b"},
		{"a byte order mark, carriage returns, empty lines", "\xef\xbb\xbf" + a + "\r\n\r\n \n" + b + "\r\n", "a b"},
		{"a list", "[" + a + "," + b + "]", "a b"},
		{"a list, pretty-printed", "[\n" + pretty(a) + ",\n" + pretty(b) + "\n]\n", "a b"},
		{"objects over many lines", "{\n" + pretty(a)[1:] + "\n{\n" + pretty(b)[1:], "a b"},
		{"objects without a break between them", a + b + a, "a b F#2"},
		{"a list on each line", "[" + a + "]\n[" + b + "]", "a b"},
		{"lists one after the other, over many lines", "[\n" + pretty(a) + "\n]\n[\n" + pretty(b) + "\n]", "a b"},
		{"lists of messages one after the other, over many lines", "[\n" + pretty(message)[1:] + "\n[\n" + pretty(message)[1:], "F#0 F#1"},
		{"a list and an object", "[\n" + a + "\n]\n{\n" + pretty(b)[1:], "a b"},
		{"lists in a list", "[[" + a + "],[" + b + "]]", "a b"},
		{"a table of records", `{"i":` + a + `,"j":` + b + `}`, "a b"},
		{"a table of message lists", `{"i-1":` + message + `,"j-2":` + message + `}`, "F#0 F#1"},
		{"a list of messages on each line", message + "\n" + message, "F#0 F#1"},
	} {
		for _, name := range []string{"x.json", "x.jsonl"} {
			got, _, err := read(t, name, c.text, stop)
			require.NoError(t, err, "%s as %s", c.reason, name)
			var ids []string
			for _, r := range got {
				ids = append(ids, r.ID)
			}
			require.Equal(t, strings.ReplaceAll(c.want, "F", name), strings.Join(ids, " "), "%s as %s", c.reason, name)
		}
	}
	long := `[{"role":"user","content":"` + strings.Repeat("q", 300<<10) + `"}]`
	got, _, err := read(t, "x.json", long+"\n"+long, stop)
	require.NoError(t, err)
	require.Len(t, got, 2, "lists on lines that are longer than what is looked at")
	got, _, err = read(t, "x.json", `{"i-1":`+message+`}`, stop)
	require.NoError(t, err)
	require.Equal(t, "i-1", got[0].Instance, "the key of a table names the instance")
	_, _, err = read(t, "x.json", `{"i":`+a+`,"config":{"x":1}}`, stop)
	require.ErrorContains(t, err, "no known format", "not every member is a record")
	_, report, err := read(t, "x.jsonl", a+` {"messages":[{]`+"\n"+b, traj.Options{})
	require.NoError(t, err)
	require.Equal(t, [2]int{2, 1}, [2]int{report.Rollouts, report.Skipped}, "what is whole on a broken line is read")
}

// TestLongFirstLine: an object whose first line exceeds the sampled beginning of the file
// is not taken for a line.
func TestLongFirstLine(t *testing.T) {
	kit.OneGoroutine(t)
	sample := `{"id":1,"epoch":%d,"input":"q","target":"t","messages":[{"role":"assistant","content":"` + strings.Repeat("a", 300<<10) + `"}]}`
	log := `{"version":2,"status":"success","eval":{"run_id":"r"},"samples":[` + fmt.Sprintf(sample, 1) + ",\n" + fmt.Sprintf(sample, 2) + `],"stats":{}}`
	got, _, err := read(t, "x.json", log, stop)
	require.NoError(t, err)
	require.Len(t, got, 2)
	long := strings.Replace(chat("a"), `"q"`, `"`+strings.Repeat("q", 17<<20)+`"`, 1)
	got, _, err = read(t, "x.json", long+"\n"+chat("b"), stop)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, "b", got[1].ID)
}

func TestGroups(t *testing.T) {
	row := func(id, instance, question, kind string) string {
		return fmt.Sprintf(`{"id":%q,"instance_id":%q,"kind":%q,"messages":[{"role":"user","content":%q},{"role":"assistant","content":%q}]}`, id, instance, kind, question, id)
	}
	text := row("a", "i", "q1", "k") + "\n" + row("b", "i", "q1", "l") + "\n" + row("c", "j", "q1", "k") + "\n" + row("d", "", "q2", "k")
	for _, c := range []struct{ by, groups, indices string }{
		{"", "i i j d", "0 1 0 0"},
		{"instance", "i i j d", "0 1 0 0"},
		{"none", "a b c d", "0 0 0 0"},
		{"file", "x.jsonl x.jsonl x.jsonl x.jsonl", "0 1 2 3"},
		{"metadata:kind", "k l k k", "0 0 1 2"},
	} {
		got, _, err := read(t, "x.jsonl", text, traj.Options{OnError: rollout.OnErrorStop, GroupBy: c.by})
		require.NoError(t, err)
		var groups, indices []string
		for _, r := range got {
			groups, indices = append(groups, r.Group), append(indices, fmt.Sprint(r.Index))
		}
		require.Equal(t, c.groups, strings.Join(groups, " "), c.by)
		require.Equal(t, c.indices, strings.Join(indices, " "), c.by)
	}
	got, _, err := read(t, "x.jsonl", text, traj.Options{OnError: rollout.OnErrorStop, GroupBy: "prompt"})
	require.NoError(t, err)
	require.Equal(t, got[0].Group, got[2].Group, "equal prompts")
	require.NotEqual(t, got[0].Group, got[3].Group)
	_, err = traj.Open([]string{"x"}, traj.Options{GroupBy: "metadata:"})
	require.ErrorContains(t, err, "expected instance, file, prompt, none or metadata:<key>")
	_, _, err = read(t, "x.jsonl", text, traj.Options{OnError: rollout.OnErrorStop, GroupBy: "metadata:no"})
	require.ErrorContains(t, err, "metadata.no")
}

// TestRunsOfSeveralDomains: tau2-bench numbers tasks per domain, and a run in a file of its
// own does not name its domain.
func TestRunsOfSeveralDomains(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/simulations/1", "a/simulations/2", "b/simulations/3", "c/4", "c/5", "d/6"} {
		write(t, dir, name+".json", []byte(`{"id":"`+name+`","task_id":"0","trial":1,"termination_reason":"user_stop","messages":[{"role":"user","content":"q"}]}`))
	}
	for name, domain := range map[string]string{"a": "airline", "b": "retail"} {
		write(t, dir, name+"/results.json", []byte(`{"info":{"environment_info":{"domain_name":"`+domain+`"}},"tasks":[],"simulation_index":[]}`))
	}
	for alone, want := range map[bool]string{
		false: "airline/task-0 airline/task-0 retail/task-0 task-0 task-0 task-0@2",
		true:  "task-0 task-0 task-0@2 task-0@3 task-0@3 task-0@4",
	} {
		r, err := traj.Open([]string{dir}, traj.Options{Alone: alone})
		require.NoError(t, err)
		var got []string
		for x, err := range r.All() {
			require.NoError(t, err)
			got = append(got, x.Group)
			require.JSONEq(t, "1", string(x.Metadata["trial"]))
		}
		require.Equal(t, want, strings.Join(got, " "))
	}
}

// Data sets number their tasks from 0: files of one data set share groups, whatever their
// layout, and a task of another data set has its own group.
func TestGroupsHoldOneTask(t *testing.T) {
	const nemo = `{"responses_create_params":{"input":%q},"reward":1,"_ng_task_index":0,"_ng_rollout_index":%d,"agent_ref":{"name":"x"},"response":{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}}`
	tau := func(user string, trial int) string {
		return fmt.Sprintf(`{"task_id":0,"trial":%d,"reward":1.0,"info":{"task":{"user_id":%q,"actions":[]}},"traj":[{"role":"system","content":"s"},{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`, trial, user)
	}
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, []byte("["+tau("mia", 1)+"]"), "", "  "))
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.jsonl": tau("mia", 0), "b.jsonl": tau("yusuf", 0) + "\n" + tau("yusuf", 1), "c.json": indented.String(),
		"d.jsonl": fmt.Sprintf(nemo, "p", 0), "e.jsonl": fmt.Sprintf(nemo, "q", 0), "f.jsonl": fmt.Sprintf(nemo, "p", 1),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	groups := map[string][]string{}
	for _, r := range all(t, stop, dir) {
		groups[r.Group] = append(groups[r.Group], fmt.Sprint(r.Origin.File[len(dir)+1:], " ", r.Index))
		require.Equal(t, strings.Contains(r.Group, "@"), slices.ContainsFunc(r.Notes, func(n rollout.Note) bool { return n.Code == "other_task" }))
	}
	require.Equal(t, map[string][]string{
		"task-0": {"a.jsonl 0", "c.json 1"}, "task-0@2": {"b.jsonl 0", "b.jsonl 1"},
		"x/task-0": {"d.jsonl 0", "f.jsonl 1"}, "x/task-0@2": {"e.jsonl 0"},
	}, groups)
}

// The rollouts of a file come once, however many names lead to it.
func TestFilesNamedTwice(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl")
	require.NoError(t, os.WriteFile(a, []byte(chat("a")), 0o600))
	require.NoError(t, os.WriteFile(b, []byte(chat("b")), 0o600))
	want := []string{a, b}
	if os.Symlink("a.jsonl", filepath.Join(dir, "latest.jsonl")) == nil {
		defer os.Remove(filepath.Join(dir, "latest.jsonl"))
	}
	for _, paths := range [][]string{{dir}, {dir, dir}, {dir, a}, {a, dir}, {filepath.Join(dir, "*.jsonl"), dir + "/../" + filepath.Base(dir)}} {
		r, err := traj.Open(paths, stop)
		require.NoError(t, err)
		var files []string
		for x, err := range r.All() {
			require.NoError(t, err)
			files = append(files, filepath.Base(x.Origin.File))
		}
		require.ElementsMatch(t, []string{filepath.Base(want[0]), filepath.Base(want[1])}, files, paths)
		for _, x := range r.Report().Ignored {
			require.Contains(t, x.Why, "read before")
		}
	}
}

// Native records need no index: their order gives it.
func TestNativeWithoutIndices(t *testing.T) {
	line := `{"turnpack_version":1,"id":"%d","group":"g","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"%d"}]%s}`
	got, _, err := read(t, "x.jsonl", fmt.Sprintf(strings.Repeat(line+"\n", 4), 0, 0, "", 1, 1, "", 2, 2, `,"index":2`, 3, 3, `,"index":2`), stop)
	require.NoError(t, err)
	var have []string
	for _, r := range got {
		have = append(have, fmt.Sprint(r.Index, strings.Contains(codes(r), "index_repeated")))
	}
	require.Equal(t, []string{"0 false", "1 false", "2 false", "3 true"}, have)
}

func TestRecordedIndices(t *testing.T) {
	row := func(trial int) string {
		return fmt.Sprintf(`{"task_id":1,"trial":%d,"reward":1,"traj":[{"role":"assistant","content":"%d"}]}`, trial, trial)
	}
	got, _, err := read(t, "x.jsonl", strings.Join([]string{row(2), row(0), row(0), row(2), row(3), row(1)}, "\n"), stop)
	require.NoError(t, err)
	var have []string
	for _, r := range got {
		have = append(have, fmt.Sprint(r.Index, strings.Contains(codes(r), "index_repeated")))
	}
	require.Equal(t, []string{"2 false", "0 false", "1 true", "3 true", "4 true", "5 true"}, have, "a place is the first one's; others get the next free and say so")
	seen := map[string]bool{}
	for _, r := range got {
		require.False(t, seen[r.ID])
		seen[r.ID] = true
	}
}

func TestOptionsReportAllFaults(t *testing.T) {
	_, err := traj.Open(nil, stop)
	require.ErrorContains(t, err, "no files")
	_, err = traj.Open([]string{"x"}, traj.Options{Format: "nope", GroupBy: "moon", OnError: 9, Limits: traj.Limits{Depth: -1}})
	for _, s := range []string{"Options.Format", "Options.GroupBy", "Options.OnError", "Limits.Depth"} {
		require.ErrorContains(t, err, s)
	}
}

// TestBigListIsStreamed: memory does not grow with the number of elements.
func TestBigListIsStreamed(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: reads 200 MB")
	}
	text := strings.Repeat("lorem ipsum\\n", 4000)
	row := fmt.Sprintf(`{"task_id":1,"trial":0,"reward":1,"traj":[{"role":"user","content":"%s"}]}`, text)
	const rows = 4000
	in, w := io.Pipe()
	go func() {
		io.WriteString(w, "[")
		for i := range rows {
			if i > 0 {
				io.WriteString(w, ",")
			}
			io.WriteString(w, row)
		}
		io.WriteString(w, "]")
		w.Close()
	}()
	r, err := traj.NewReader(in, "x.json", stop)
	require.NoError(t, err)
	n, top := 0, uint64(0)
	for _, err := range r.All() {
		require.NoError(t, err)
		if n++; n%500 == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			top = max(top, m.HeapAlloc)
		}
	}
	require.Equal(t, rows, n)
	require.Less(t, top, uint64(64<<20), "%d MB were read", rows*len(row)>>20)
}

// A file with a wrong checksum gives no record at all: its text is not what was written.
func TestDamagedStreamsGiveNothing(t *testing.T) {
	text := strings.Repeat(`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"aaaaaaaaaaaaaaaaaaaaaaaaa"}]}`+"\n", 2000)
	pack := map[string]func() []byte{
		"x.jsonl.gz": func() []byte {
			var b bytes.Buffer
			z, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
			require.NoError(t, err)
			_, err = z.Write([]byte(text))
			require.NoError(t, err)
			require.NoError(t, z.Close())
			return b.Bytes()
		},
		"x.jsonl.zst": func() []byte {
			z, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
			require.NoError(t, err)
			raw := z.EncodeAll([]byte(text), nil)
			return raw
		},
		"x.zip": func() []byte {
			var b bytes.Buffer
			z := zip.NewWriter(&b)
			f, err := z.CreateHeader(&zip.FileHeader{Name: "a.jsonl", Method: zip.Store})
			require.NoError(t, err)
			_, err = f.Write([]byte(text))
			require.NoError(t, err)
			require.NoError(t, z.Close())
			return b.Bytes()
		},
	}
	for name, raw := range pack {
		whole := raw()
		file := filepath.Join(t.TempDir(), name)
		read := func(b []byte) ([]*rollout.Rollout, *traj.Report) {
			require.NoError(t, os.WriteFile(file, b, 0o644))
			r, err := traj.Open([]string{file}, traj.Options{})
			require.NoError(t, err)
			var out []*rollout.Rollout
			for x, err := range r.All() {
				if err == nil {
					out = append(out, x)
				}
			}
			return out, r.Report()
		}
		out, report := read(whole)
		require.Len(t, out, 2000, name)
		require.Zero(t, report.Skipped, name)
		bad := slices.Clone(whole)
		switch name {
		case "x.jsonl.zst":
			bad[len(bad)-1] ^= 1 // of the checksum
		case "x.jsonl.gz":
			bad[len(bad)-8] ^= 1
		default:
			at := bytes.Index(bad, []byte("aaaa"))
			bad[at] = 'b' // another text
		}
		out, report = read(bad)
		require.Empty(t, out, name)
		require.Equal(t, 1, report.Skipped, name)
		require.ErrorContains(t, report.Errors[0], "nothing of it was read", name)
	}
}
