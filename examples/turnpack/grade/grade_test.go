package grade

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/reward/swebench"
)

const log = `>>>>> Applied Patch
>>>>> Start Test Output
PASSED tests/test_a.py::test_new
%s tests/test_a.py::test_old
>>>>> End Test Output
`

func run(t *testing.T, args ...string) (int, string, string) {
	var out, errOut bytes.Buffer
	code := cli.Main(&struct {
		Grade Cmd `cmd:""`
	}{}, &cli.Program{Ctx: t.Context(), Out: &out, Err: &errOut}, append([]string{"grade"}, args...))
	return code, out.String(), errOut.String()
}

func write(t *testing.T, dir, name, text string) string {
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestGrade(t *testing.T) {
	dir := t.TempDir()
	one := `"FAIL_TO_PASS": ["tests/test_a.py::test_new"], "PASS_TO_PASS": ["tests/test_a.py::test_old"], "log_parser": "parse_log_pytest"}` + "\n"
	instances := write(t, dir, "instances.jsonl", `{"instance_id": "a-1", `+one+`{"instance_id": "a-2", `+one+`{"instance_id": "a-3", `+one+`{"instance_id": "a-4", `+one)
	predictions := write(t, dir, "predictions.jsonl", `{"instance_id": "a-1", "model_patch": "diff"}
{"instance_id": "a-2", "model_patch": "diff"}
{"instance_id": "a-3", "model_patch": ""}
`)
	// A link leads to the logs; a blank patch is none; z-9 is of no instance.
	require.NoError(t, os.Symlink("logs", filepath.Join(dir, "latest")))
	odd := write(t, dir, "odd.jsonl", "\ufeff"+`{"instance_id": "a-1", "model_patch": "diff"}
{"instance_id": "a-3", "model_patch": "\n"}
{"instance_id": "z-9", "model_patch": "diff"}
`)
	passes := bytes.ReplaceAll([]byte(log), []byte("%s"), []byte("PASSED"))
	fails := bytes.ReplaceAll([]byte(log), []byte("%s"), []byte("FAILED"))
	write(t, dir, "logs/a-1.log", string(passes))
	write(t, dir, "logs/run/model/a-2/test_output.txt", string(fails))
	out := filepath.Join(dir, "out")
	args := []string{"--instances", instances, "--predictions", predictions, "--logs", filepath.Join(dir, "logs"), "--out", out}
	code, stdout, stderr := run(t, args...)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "1 of 4 instances resolved, 1 unresolved, 1 without a patch, 0 not graded, 1 without a prediction")
	got := slices.Collect(kit.Lines[result](t, filepath.Join(out, "results.jsonl")))
	require.Len(t, got, 3)
	require.Equal(t, []bool{true, false, false}, []bool{*got[0].Resolved, *got[1].Resolved, *got[2].Resolved})
	require.Equal(t, "no patch", got[2].Reason)
	text, err := os.ReadFile(filepath.Join(out, "report.json"))
	require.NoError(t, err)
	var reports map[string]swebench.Report
	require.NoError(t, json.Unmarshal(text, &reports))
	require.True(t, reports["a-1"].Resolved)
	require.False(t, reports["a-2"].Resolved)

	code, stdout, stderr = run(t, "--instances", instances, "--predictions", odd, "--logs", filepath.Join(dir, "latest"), "--out", filepath.Join(dir, "odd"))
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "1 of 4 instances resolved, 0 unresolved, 1 without a patch, 1 not graded, 2 without a prediction", stderr)

	for _, name := range []string{"report.json", "summary.json", "results.jsonl"} {
		require.NoError(t, os.RemoveAll(out))
		write(t, out, name, "mine")
		code, _, stderr = run(t, args...)
		require.Equal(t, 1, code, "files that exist stay")
		require.Contains(t, stderr, name+": the output exists")
		entries, err := os.ReadDir(out)
		require.NoError(t, err)
		require.Len(t, entries, 1, "no other file is written beside %s", name)
	}
	write(t, out, "summary.json", "mine")
	_, _, stderr = run(t, args...)
	require.Contains(t, stderr, "summary.json: the output exists", "all are named")
	require.Contains(t, stderr, "results.jsonl: the output exists")
	code, _, stderr = run(t, append(args, "--force")...)
	require.Zero(t, code, stderr)
	entries, err := os.ReadDir(out)
	require.NoError(t, err)
	require.Len(t, entries, 3)
}

// Instances that cannot be graded are listed and never count as unresolved.
func TestGradeListsWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	instances := write(t, dir, "i.jsonl", `{"instance_id": "a-1", "FAIL_TO_PASS": ["x"], "PASS_TO_PASS": [], "log_parser": "parse_log_pytest"}`+"\n")
	predictions := write(t, dir, "p.jsonl", `{"instance_id": "a-1", "model_patch": "diff"}`+"\n"+`{"instance_id": "b-9", "model_patch": "diff"}`+"\n")
	write(t, dir, "logs/run/m/a-1/run_instance.log", "Error response from daemon\n")
	code, stdout, stderr := run(t, "--instances", instances, "--predictions", predictions, "--logs", filepath.Join(dir, "logs"), "--out", filepath.Join(dir, "out"))
	require.Equal(t, 1, code)
	summary, err := os.ReadFile(filepath.Join(dir, "out", "summary.json"))
	require.NoError(t, err)
	require.Contains(t, string(summary), `"a-1": "container_unavailable"`)
	require.Contains(t, stderr, "a-1: ")
	require.Contains(t, stderr, "there is no test log")
	require.Contains(t, stderr, "the prediction is of no instance")
	require.Contains(t, stdout, "2 not graded")
	text, err := os.ReadFile(filepath.Join(dir, "out", "results.jsonl"))
	require.NoError(t, err)
	require.Contains(t, string(text), `"verdict":"infra_error"`)
	require.NotContains(t, string(text), "resolved")

	for _, image := range []string{"base", "env"} { // as SWE-bench's harness leaves them beside the runs
		write(t, dir, "logs/build_images/"+image+"/build_image.log", "")
	}
	code, stdout, stderr = run(t, "--instances", instances, "--predictions", predictions, "--logs", filepath.Join(dir, "logs"), "--out", filepath.Join(dir, "again"))
	require.Equal(t, 1, code, stderr)
	require.Contains(t, stdout, "2 not graded")

	write(t, dir, "logs/a-1.log", "")
	write(t, dir, "logs/x/a-1/test_output.txt", "")
	code, _, stderr = run(t, "--instances", instances, "--predictions", predictions, "--logs", filepath.Join(dir, "logs"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "another test log")
}

func TestGradeRefusesAFileWithoutInstances(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "logs"), 0o700))
	out := filepath.Join(dir, "out")
	code, _, stderr := run(t, "--instances", write(t, dir, "i.jsonl", ""), "--predictions", write(t, dir, "p.jsonl", ""), "--logs", filepath.Join(dir, "logs"), "--out", out)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "i.jsonl: holds no instance")
	require.NoDirExists(t, out)
}

// What is missing or cannot be made is named with what to do, and nothing is written.
func TestGradeRefusesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	instances := write(t, dir, "i.jsonl", `{"instance_id": "a-1", "FAIL_TO_PASS": ["x"], "PASS_TO_PASS": [], "log_parser": "parse_log_pytest"}`+"\n")
	predictions := write(t, dir, "p.jsonl", `{"instance_id": "a-1", "model_patch": "diff"}`+"\n")
	write(t, dir, "logs/a-1.log", "PASSED x\n")
	none, empty := filepath.Join(dir, "none"), write(t, dir, "empty.jsonl", "")
	for _, c := range []struct{ predictions, logs, out, want string }{
		{predictions, none, "out", "none: cannot be read: no such file or directory (check --logs, and the right to read it)"},
		{none, filepath.Join(dir, "logs"), "out", "none: cannot be read: no such file or directory (check the path, and the right to read it)"},
		{dir, filepath.Join(dir, "logs"), "out", "cannot be read: is a directory (name a file)"},
		{empty, filepath.Join(dir, "logs"), "out", "empty.jsonl: holds no prediction"},
		{predictions, filepath.Join(dir, "logs"), "empty.jsonl", "empty.jsonl: the output folder cannot be made: "},
	} {
		out := filepath.Join(dir, c.out)
		code, _, stderr := run(t, "--instances", instances, "--predictions", c.predictions, "--logs", c.logs, "--out", out)
		require.Equal(t, 1, code)
		require.Contains(t, stderr, c.want)
		require.NoDirExists(t, out)
	}
}

// All logs of an older harness would count as unresolved, which is reported.
func TestGradeTellsThatNoLogHasMarks(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "logs/a-1.log", "PASSED x\n")
	instances := write(t, dir, "i.jsonl", `{"instance_id": "a-1", "FAIL_TO_PASS": ["x"], "PASS_TO_PASS": [], "log_parser": "parse_log_pytest"}`+"\n")
	code, _, stderr := run(t, "--instances", instances, "--predictions", write(t, dir, "p.jsonl", `{"instance_id": "a-1", "model_patch": "diff"}`+"\n"), "--logs", filepath.Join(dir, "logs"), "--out", filepath.Join(dir, "out"))
	require.Zero(t, code)
	require.Contains(t, stderr, "none of 1 test logs has the marks")
}
