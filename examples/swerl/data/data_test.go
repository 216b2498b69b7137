package data

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/reward/pivot"
)

func read(t *testing.T, parts ...string) string {
	b, err := os.ReadFile(filepath.Join(parts...))
	require.NoError(t, err)
	return string(b)
}

func write(t *testing.T, name, content string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

func do(t *testing.T, args ...string) (string, error) {
	var out bytes.Buffer
	err := Main(t.Context(), args, &out)
	return out.String(), err
}

const gym = `{"instance_id":"getmoto__moto-1","repo":"getmoto/moto","problem_statement":"<mend> it","n":1.50}`

func TestSWE(t *testing.T) {
	dir := t.TempDir()
	bench := `{"instance_id":"Django__django-2","problem_statement":"two","environment_setup_commit":"c","difficulty":"<15 min"}`
	named := `{"instance_id":"x__y-3","problem_statement":"three","image_name":"my/image:1"}`
	out, err := do(t, "swe", "--in", write(t, "rows.jsonl", gym+"\n\n"+bench+"\n"), "--in", write(t, "list.json", " \n["+named+"]"), "--out", dir)
	require.NoError(t, err)
	require.Contains(t, out, "3 tasks, 3 images, 1 of SWE-bench")
	require.Equal(t, `{"text":"<mend> it","metadata":{"instance":`+gym+`,"data_source":"SWE-Gym"}}
{"text":"two","metadata":{"instance":`+bench+`,"data_source":"SWE-bench_Verified"}}
{"text":"three","metadata":{"instance":`+named+`,"data_source":"SWE-Gym"}}
`, read(t, dir, "train.jsonl"))
	require.Equal(t, strings.Split(read(t, dir, "train.jsonl"), "\n")[1]+"\n", read(t, dir, "verified_eval.jsonl"))
	require.Equal(t, "getmoto__moto-1\nDjango__django-2\nx__y-3\n", read(t, dir, "instance_ids.txt"))
	require.Equal(t, "docker.io/xingyaoww/sweb.eval.x86_64.getmoto_s_moto-1:latest\ndocker.io/swebench/sweb.eval.x86_64.django_1776_django-2:latest\nmy/image:1\n", read(t, dir, "docker_images.txt"))

	// Output rows can be input, existing files are not overwritten, and the registry can
	// be set.
	again := t.TempDir()
	tasks := filepath.Join(dir, "train.jsonl")
	for _, c := range []struct {
		want string
		args []string
	}{{"", nil}, {"is there already", nil}, {"", []string{"--force", "--registry", "mirror:5000/swe/"}}} {
		_, err = do(t, append([]string{"swe", "--in", tasks, "--out", again}, c.args...)...)
		if c.want != "" {
			require.ErrorContains(t, err, c.want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, read(t, tasks), read(t, again, "train.jsonl"))
	}
	require.Contains(t, read(t, again, "docker_images.txt"), "mirror:5000/swe/sweb.eval.x86_64.getmoto_s_moto-1:latest\n")

	for text, want := range map[string]string{"{}": "names no instance", `{"instance_id":"a"}`: "has no text", "[1]": "row is an object", gym + gym: "there twice", "": "no row", "[" + gym: "cannot be read"} {
		_, err = do(t, "swe", "--in", write(t, "bad.jsonl", text), "--out", t.TempDir())
		require.ErrorContains(t, err, want, text)
	}
	_, err = do(t, "cake")
	require.Error(t, err)
}

func TestSWEParquet(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "instance_id", Type: arrow.BinaryTypes.String}, {Name: "problem_statement", Type: arrow.BinaryTypes.String}, {Name: "PASS_TO_PASS", Type: arrow.ListOf(arrow.BinaryTypes.String)}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i := range 3 {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("a__b-%d", i))
		b.Field(1).(*array.StringBuilder).Append("mend")
		l := b.Field(2).(*array.ListBuilder)
		l.Append(true)
		l.ValueBuilder().(*array.StringBuilder).Append("test_x")
	}
	path := filepath.Join(t.TempDir(), "train-00000.parquet")
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := pqarrow.NewFileWriter(schema, f, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(b.NewRecord()))
	require.NoError(t, w.Close())
	dir := t.TempDir()
	_, err = do(t, "swe", "--in", filepath.Dir(path), "--out", dir, "--data-source", "SumanthRH/SWE-bench_Verified", "--max-samples", "2")
	require.NoError(t, err)
	require.Equal(t, `{"text":"mend","metadata":{"instance":{"instance_id":"a__b-0","problem_statement":"mend","PASS_TO_PASS":["test_x"]},"data_source":"SumanthRH/SWE-bench_Verified"}}`, strings.SplitN(read(t, dir, "verified_eval.jsonl"), "\n", 2)[0])
	require.Contains(t, read(t, dir, "docker_images.txt"), "swebench/sweb.eval.x86_64.a_1776_b-1:latest")
	require.NotContains(t, read(t, dir, "docker_images.txt"), "b-2")
}

// dump returns an OpenAI-style trajectory dump whose tool calls are in the text.
func dump(instance, patch string) string {
	message := func(role, content string) map[string]any { return map[string]any{"role": role, "content": content} }
	b, _ := json.Marshal(map[string]any{"instance_id": instance, "patch": patch, "messages": []any{
		message("system", "You are an agent."), message("user", "Mend "+instance),
		message("assistant", "Look.\n\n```bash\nls\n```"), message("user", "a.py"),
		message("assistant", "Edit.\n\n```bash\nsed -i s/1/2/ a.py\n```"), message("user", ""),
	}})
	return string(b) + "\n"
}

func diff(files, lines int) string {
	var b strings.Builder
	for f := range files {
		fmt.Fprintf(&b, "diff --git a/f%d.py b/f%d.py\n--- a/f%d.py\n+++ b/f%d.py\n@@ -0,0 +1,%d @@\n", f, f, f, f, lines)
		b.WriteString(strings.Repeat("+x\n", lines))
	}
	return b.String()
}

func TestPivot(t *testing.T) {
	var all strings.Builder
	for i := range 20 {
		all.WriteString(dump(fmt.Sprintf("a__b-%d", i), diff(2, 13)))
	}
	whole := strings.ReplaceAll(diff(2, 13), "--- a/f0.py", "new file mode 100644\n--- /dev/null")
	terminal := dump("terminal__t-1", strings.ReplaceAll(whole, "\n", "\r\n"))
	all.WriteString(dump("small__one-1", diff(1, 40)) + dump("small__two-1", diff(2, 12)) + dump("none__n-1", "") + terminal)
	in := write(t, "dumps.jsonl", all.String())
	dir := t.TempDir()
	out, err := do(t, "pivot", "--in", in, "--out", dir, "--validation", "0.3")
	require.NoError(t, err)
	var m manifest
	require.NoError(t, json.Unmarshal([]byte(read(t, dir, "manifest.json")), &m))
	require.Equal(t, map[string]int{"few_files": 1, "few_lines": 1, "no_patch": 1}, m.LeftOut, out)
	require.Equal(t, 42, m.Candidates, "two steps of each of 20 trajectories, and of one whose patch is from a terminal")
	require.Equal(t, map[string]int{"fence": 42}, m.Protocols)
	sides := map[string]string{}
	for _, f := range m.Files {
		lines := strings.Split(strings.TrimSpace(read(t, dir, f.Name)), "\n")
		require.Len(t, lines, f.Rows)
		require.Greater(t, f.Instances, 1)
		for _, line := range lines {
			var row pivot.DataRow
			require.NoError(t, json.Unmarshal([]byte(line), &row))
			if side, known := sides[row.Metadata.Instance]; known {
				require.Equal(t, side, f.Name, "an instance is on one side")
			}
			sides[row.Metadata.Instance] = f.Name
			require.Equal(t, pivot.SWEPivotAgent, row.AgentRef)
			require.NotEmpty(t, row.Patch)
		}
	}
	require.Len(t, sides, 21)

	// Steps whose sampled answers differ in reward are kept.
	var scored strings.Builder
	first := ""
	for _, line := range strings.Split(strings.TrimSpace(read(t, dir, "train.jsonl")), "\n") {
		var row pivot.DataRow
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		second := 1.0
		if first == "" {
			first, second = row.UUID, 0
		}
		fmt.Fprintf(&scored, "{\"uuid\":%q,\"reward\":1}\n{\"uuid\":%q,\"reward\":%v}\n", row.UUID, row.UUID, second)
	}
	dir = t.TempDir()
	_, err = do(t, "pivot", "--in", in, "--out", dir, "--rewards", write(t, "scored.jsonl", scored.String()), "--validation", "0")
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(read(t, dir, "train.jsonl"), "\n"))
	require.Contains(t, read(t, dir, "train.jsonl"), first)
}

func TestPivotJudge(t *testing.T) {
	judge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Messages []struct{ Content string } }
		if json.NewDecoder(r.Body).Decode(&asked) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		answer := "PIVOT: none"
		if _, step, _ := strings.Cut(asked.Messages[1].Content, "# The step in question"); strings.Contains(step, "sed -i") {
			answer = "It decides.\nPIVOT: P2, P4"
		}
		json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": answer}}}})
	}))
	defer judge.Close()
	dir := t.TempDir()
	_, err := do(t, "pivot", "--in", write(t, "dumps.jsonl", dump("a__b-1", diff(2, 13))), "--out", dir, "--judge", judge.URL+"/v1", "--judge-model", "j", "--validation", "0")
	require.NoError(t, err)
	var row pivot.DataRow
	require.NoError(t, json.Unmarshal([]byte(read(t, dir, "train.jsonl")), &row), "one row")
	require.Equal(t, []string{"P2", "P4"}, row.Tags)
	require.Equal(t, 1, row.Metadata.Turn)
	var m manifest
	require.NoError(t, json.Unmarshal([]byte(read(t, dir, "manifest.json")), &m))
	require.Equal(t, map[string]int{"no_pivot": 1}, m.Dropped)
	require.Equal(t, judgePrompt, m.JudgePrompt)

	judge.Config.Handler = http.NotFoundHandler()
	_, err = do(t, "pivot", "--in", write(t, "dumps.jsonl", dump("a__b-1", diff(2, 13))), "--out", t.TempDir(), "--judge", judge.URL+"/v1", "--judge-model", "j")
	require.ErrorContains(t, err, "gave no vote")
}
