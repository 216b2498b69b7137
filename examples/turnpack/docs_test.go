package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/judge/fake"
	"github.com/turnpack/turnpack/internal/kit"
)

var fence = regexp.MustCompile("(?s)```[a-z]*\n(.*?)```")

// The commands of a page run verbatim in a checkout and print what the page shows after
// them. A line "…" matches any lines.
func TestDocs(t *testing.T) {
	kit.Long(t)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	pages := []struct {
		file     string
		commands int // number of commands, so that no block is skipped
		there    map[string]string
	}{
		{"docs/tutorial.md", 5, nil},
		{"docs/view.md", 4, nil},
		{"docs/recipes.md", 11, nil},
		{"README.md", 4, map[string]string{"Qwen3-8B": "examples/tutorial/model", "dumps": "examples/tutorial/dumps"}},
	}
	tried := map[string]bool{}
	for _, page := range pages {
		tried[page.file] = true
	}
	others, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	for _, file := range others {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
			require.True(t, tried["docs/"+filepath.Base(file)] || len(commands(block[1])) == 0, "%s has commands that are not tried", file)
		}
	}
	for _, page := range pages {
		t.Run(page.file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page.file)))
			require.NoError(t, err)
			dir := t.TempDir()
			require.NoError(t, os.Symlink(filepath.Join(root, "examples"), filepath.Join(dir, "examples")))
			for name, at := range page.there {
				require.NoError(t, os.Symlink(filepath.Join(root, filepath.FromSlash(at)), filepath.Join(dir, name)))
			}
			t.Chdir(dir)
			if page.file == "docs/view.md" { // the page uses the batch of the tutorial
				code, _, stderr := call(t, "convert", "--model", "examples/tutorial/model", "--in", "examples/tutorial/dumps", "--out", "batch")
				require.Zero(t, code, stderr)
			}
			judge := httptest.NewServer(fake.New(fake.Options{}))
			defer judge.Close()
			if page.file == "docs/recipes.md" {
				recipeInputs(t)
			}
			ran, printed := 0, ""
			for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
				if lines := commands(block[1]); len(lines) > 0 {
					for _, line := range lines {
						line = strings.ReplaceAll(line, "http://judge:8000", judge.URL)
						code, stdout, stderr := call(t, strings.Fields(line)[1:]...)
						require.Zero(t, code, "%s\n%s", line, stderr)
						ran, printed = ran+1, stdout
					}
				} else if printed != "" {
					shows(t, block[1], printed)
					printed = ""
				}
			}
			require.Equal(t, page.commands, ran)
		})
	}
}

// recipeInputs writes the files that docs/recipes.md names to the current folder.
func recipeInputs(t *testing.T) {
	const tests = `"FAIL_TO_PASS": ["t.py::new"], "PASS_TO_PASS": [], "log_parser": "parse_log_pytest"`
	const step = `{"type": "function_call", "name": "view", "arguments": "{}"}`
	files := map[string]string{"steps.jsonl": `{"expected_action": ` + step + `, "response_output": [` + step + `]}` + "\n"}
	for i, result := range []string{"PASSED", "FAILED"} {
		id := fmt.Sprint("fix-", i)
		files["instances.jsonl"] += fmt.Sprintf("{\"instance_id\": %q, %s}\n", id, tests)
		files["predictions.jsonl"] += fmt.Sprintf("{\"instance_id\": %q, \"model_patch\": \"diff\"}\n", id)
		files["logs/"+id+".log"] = ">>>>> Applied Patch\n>>>>> Start Test Output\n" + result + " t.py::new\n>>>>> End Test Output\n"
		files["dumps/dump.jsonl"] += fmt.Sprintf(`{"turnpack_version": 1, "id": %q, "instance": %q, "group": "fix", "status": "completed", "messages": [{"role": "user", "content": "fix it"}, {"role": "assistant", "content": "done %d", "sampled": "sampled"}]}`+"\n", id, id, i)
	}
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
}

// commands returns the lines of a block that call turnpack.
func commands(block string) []string {
	var out []string
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(strings.TrimPrefix(line, "go run ./examples/"), "    #")
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "turnpack ") {
			out = append(out, line)
		}
	}
	return out
}

// shows fails the test if printed differs from block.
func shows(t *testing.T, block, printed string) {
	t.Helper()
	have := strings.Split(strings.TrimRight(printed, "\n"), "\n")
	gap := false
	for want := range strings.Lines(block) {
		want = strings.TrimRight(want, " \n")
		if gap = gap || strings.TrimSpace(want) == "…"; strings.TrimSpace(want) == "…" {
			continue
		}
		for gap && len(have) > 0 && clean(have[0]) != want {
			have = have[1:]
		}
		require.NotEmpty(t, have, "nothing prints %q in\n%s", want, printed)
		require.Equal(t, want, clean(have[0]))
		have, gap = have[1:], false
	}
	require.True(t, gap || len(have) == 0, "more is printed: %q", have)
}

// clean returns a printed line without the rule that fills it.
func clean(line string) string { return strings.TrimRight(line, "─ ") }
