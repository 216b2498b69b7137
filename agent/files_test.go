package agent

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/reward/swebench"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/local"
)

// TestHarnessesOnFiles: the tools of each harness change files as they say, or change nothing and say why.
func TestHarnessesOnFiles(t *testing.T) {
	type object = map[string]any
	edit := func(command, path string, more object) (string, object) {
		more["command"], more["path"] = command, "/testbed/"+path
		return "str_replace_editor", more
	}
	patch := func(text string) (string, object) {
		return "apply_patch", object{"input": "*** Begin Patch\n" + text + "*** End Patch"}
	}
	type step struct {
		tool string
		args object
		says string
	}
	var steps []step
	do := func(tool string, args object) func(string) {
		return func(says string) { steps = append(steps, step{tool, args, says}) }
	}
	for harness, c := range map[string]struct {
		play func()
		want map[string]string // the files at the end
	}{
		"openhands": {func() {
			do("execute_bash", object{"command": "mkdir 'new dir'; head -c 2000000 /dev/zero > \"new dir/ñ'.txt\""})("returncode>0<")
			do(edit("view", "new dir/ñ'.txt", object{}))("cannot be read")
			do(edit("create", "new dir/ñ'.txt", object{"file_text": "one\ntwo"}))("wrote /testbed/new dir/ñ'.txt")
			do(edit("insert", "new dir/ñ'.txt", object{"insert_line": 2, "new_str": "three"}))("inserted into")
			do(edit("insert", "new dir/ñ'.txt", object{"insert_line": 0, "new_str": "zero\n"}))("inserted into")
			do(edit("insert", "a", object{"insert_line": 9, "new_str": "x"}))("/testbed/a has no line 9")
			do(edit("view", "new dir/ñ'.txt", object{"view_range": []int{2, 3}}))("     2\tone\n     3\ttwo\n")
			do(edit("view", "new dir/ñ'.txt", object{"view_range": []int{4, -1}}))("     4\tthree\n")
			do(edit("view", "new dir", object{}))("ñ'.txt")
			do(edit("view", "none", object{}))("/testbed/none is not there")
			do(edit("str_replace", "a", object{"old_str": "x", "new_str": "y"}))("2 times")
			do(edit("str_replace", "a", object{"old_str": "z", "new_str": "y"}))("does not hold the text")
			do(edit("str_replace", "a", object{"old_str": "", "new_str": "y"}))("is empty")
			do(edit("str_replace", "a", object{"old_str": "x = 1", "new_str": "\ty"}))("changed /testbed/a")
			do(edit("undo", "a", object{}))(`there is no command "undo"`)
			do("execute_bash", object{"command": " "})("command is empty")
		}, map[string]string{"new dir/ñ'.txt": "zero\none\ntwo\nthree\n", "a": "\ty\r\nx = 2\n"}},
		"opencode": {func() {
			do("write", object{"filePath": "/testbed/b", "content": "TURNPACK\n$HOME `id`"})("wrote /testbed/b")
			do("edit", object{"filePath": "/testbed/a", "oldString": "x", "newString": "é", "replaceAll": true})("changed /testbed/a")
			do("read", object{"filePath": "/testbed/a", "offset": 1, "limit": 1})("     2\té = 2\n")
			do("read", object{"filePath": ""})("a path is needed")
		}, map[string]string{"b": "TURNPACK\n$HOME `id`", "a": "é = 1\r\né = 2\n"}},
		"codex": {func() {
			do("shell", object{"command": []string{"printf", "%s", "$x 'y'"}, "workdir": "/testbed"})("$x 'y'")
			do("shell", object{"command": []string{}})("command is no list of words")
			do(patch("*** Add File: sub/c\n+one\n+\n+two\n*** Update File: a\n*** Move to: moved/a\n@@\n x = 1\n-x = 2\n+x = 3\n"))("Add sub/c\nUpdate a to moved/a")
			do(patch("*** Delete File: gone\n"))("Delete gone")
			do(patch("*** Delete File: gone\n"))("No such file")
			do("apply_patch", object{"input": "x"})("stands between")
			do(patch("x\n"))("a file is expected")
		}, map[string]string{"sub/c": "one\n\ntwo\n", "moved/a": "x = 1\nx = 3\n"}},
	} {
		t.Run(harness, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range map[string]string{"a": "x = 1\r\nx = 2\n", "gone": ""} {
				require.NoError(t, os.MkdirAll(filepath.Join(root, "demo"), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(root, "demo", name), []byte(text), 0o644))
			}
			d, err := local.New(local.Options{Root: root, NoLogin: true})
			require.NoError(t, err)
			b, err := sandbox.On(d).Create(t.Context(), sandbox.Spec{Image: "demo"})
			require.NoError(t, err)
			steps = nil
			c.play()
			var replies []rollout.Message
			for _, s := range steps {
				args, err := json.Marshal(s.args)
				require.NoError(t, err)
				replies = append(replies, rollout.Message{ToolCalls: []rollout.ToolCall{{ID: "c", Name: s.tool, Arguments: string(args), ArgumentsText: true}}})
			}
			a, err := New(Options{Model: &script{replies: replies}, Harness: harness, NoPatch: true, Config: Config{StepLimit: len(steps)}})
			require.NoError(t, err)
			out, err := a.Run(t.Context(), Task{ID: "t", Instance: swebench.Instance{ProblemStatement: "x"}, Sandbox: b})
			require.NoError(t, err)
			for i, s := range steps {
				require.Contains(t, out.Rollout.Messages[3+2*i].Content, s.says, "%v", s.args)
			}
			got, at := map[string]string{}, filepath.Join(root, ".containers", b.Container().ID, "testbed")
			require.NoError(t, filepath.WalkDir(at, func(path string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				text, err := os.ReadFile(path)
				name, _ := filepath.Rel(at, path)
				got[name] = string(text)
				return err
			}))
			if harness != "codex" {
				c.want["gone"] = ""
			}
			require.Equal(t, c.want, got)
		})
	}
}
