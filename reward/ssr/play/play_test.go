package play

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/agent"
	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/reward/ssr"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/local"
)

// onDisk opens a repository on disk with the given files.
func onDisk(t *testing.T, files patch.Tree) (*Repository, string) {
	for _, tool := range []string{"git", "bash", "tar"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not installed; install it to play on a repository", tool)
		}
	}
	root := t.TempDir()
	write(t, files, filepath.Join(root, "repo"))
	git(t, root, "init", "-q")
	git(t, root, "add", "-A")
	git(t, root, "commit", "-q", "-m", "original")
	driver, err := local.New(local.Options{Root: root})
	require.NoError(t, err)
	r, err := Open(t.Context(), Repository{Provider: sandbox.On(driver), Image: "repo", Files: files, Repeats: 1})
	require.NoError(t, err)
	return r, root
}

// write writes a tree to a folder.
func write(t *testing.T, tree patch.Tree, dir string) {
	for name, f := range tree {
		at := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		switch f.Mode {
		case "120000":
			require.NoError(t, os.Symlink(f.Content, at))
		case "100755":
			require.NoError(t, os.WriteFile(at, []byte(f.Content), 0o755))
		default:
			require.NoError(t, os.WriteFile(at, []byte(f.Content), 0o644))
		}
	}
}

func git(t *testing.T, root string, args ...string) {
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t"}, args...)...)
	cmd.Dir = filepath.Join(root, "repo")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
}

// listing is a script that prints modes, links and contents.
const listing = `find . -path ./.git -prune -o \( -type f -o -type l \) -print | LC_ALL=C sort | while IFS= read -r f; do
if [ -L "$f" ]; then echo "link $f $(readlink "$f")"; elif [ -x "$f" ]; then echo "exec $f $(tr '\n' ' ' < "$f")"; else echo "file $f $(tr '\n' ' ' < "$f")"; fi; done`

// TestStates: git makes the same states as ssr.Artifact.Tree in memory, including modes, links, names
// with special meaning to a shell, and files in place of folders.
func TestStates(t *testing.T) {
	original := patch.Tree{
		"a": {Content: "1\n2\n3\n"}, "b c*": {Content: "x\n", Mode: "100755"}, "dir/in": {Content: "in\n"},
		"link": {Content: "dir", Mode: "120000"}, "tests/one": {Content: "one\n"}, "tests/two": {Content: "two\n"}, ".gitignore": {Content: "made\n"},
	}
	r, root := onDisk(t, original)
	a := ssr.Artifact{
		TestScript: listing, TestParser: "#!/bin/sh\nexec cat\n", TestFiles: []string{"tests/one", "tests/two"},
		Bug: "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n" +
			"diff --git a/b c* b/b c*\nold mode 100755\nnew mode 100644\n" +
			"diff --git a/dir/in b/dir/in\ndeleted file mode 100644\n--- a/dir/in\n+++ /dev/null\n@@ -1 +0,0 @@\n-in\n" +
			"diff --git a/dir b/dir\nnew file mode 120000\n--- /dev/null\n+++ b/dir\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n",
		Weaken: "diff --git a/tests/one b/tests/one\n--- a/tests/one\n+++ b/tests/one\n@@ -1 +1 @@\n-one\n+weak\n",
	}
	second := a
	second.Attempts = []string{"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-two\n+2\n 3\ndiff --git a/tests/one b/tests/one\n--- a/tests/one\n+++ b/tests/one\n@@ -1 +1 @@\n-weak\n+mine\n"}
	for _, artifact := range []ssr.Artifact{a, second} {
		for _, state := range []ssr.State{{Kind: ssr.Original}, {Kind: ssr.Buggy}, {Kind: ssr.Weakened}, {Kind: ssr.Inverse, File: "dir/in"}, {Kind: ssr.Inverse, File: "b c*"}, {Kind: ssr.Repaired, Fix: "diff --git a/new b/new\nnew file mode 100755\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n"}} {
			if artifact.Order() == 2 && (state.Kind == ssr.Original || state.Kind == ssr.Inverse) {
				continue
			}
			tree, err := artifact.Tree(original, state)
			require.NoError(t, err)
			dir := filepath.Join(root, fmt.Sprint("want", artifact.Order(), state.Kind, len(state.File)))
			write(t, tree, dir)
			cmd := exec.Command("bash", "-c", listing)
			cmd.Dir = dir
			want, err := cmd.Output()
			require.NoError(t, err)
			got, err := r.newEnv(artifact).Run(t.Context(), state)
			require.NoError(t, err)
			require.Equal(t, string(want), got, "%s of order %d", state, artifact.Order())
		}
	}
	output, err := r.newEnv(a).Run(t.Context(), ssr.State{Kind: ssr.Repaired, Fix: "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-no\n+yes\n"})
	require.NoError(t, err)
	require.Empty(t, output, "a patch that does not apply passes no test")
	there, err := r.newEnv(a).HasFile(t.Context(), "tests/one")
	require.NoError(t, err)
	require.True(t, there)

	require.NoError(t, os.WriteFile(filepath.Join(root, "repo", "a"), []byte("changed"), 0o644))
	_, err = Open(t.Context(), *r)
	require.ErrorContains(t, err, "not committed")
}

// TestSlowTests: a suite that exceeds its time limit gives a result, a missing sandbox gives an error.
func TestSlowTests(t *testing.T) {
	r, _ := onDisk(t, patch.Tree{"a": {Content: "1\n"}})
	r.TestTimeout = 3 * time.Second
	a := ssr.Artifact{TestScript: "echo begun; sleep 60", TestParser: "#!/bin/sh\nexec cat\n"}
	output, err := r.newEnv(a).Run(t.Context(), ssr.State{Kind: ssr.Original})
	require.NoError(t, err)
	require.Equal(t, "begun\n", output)
	r.Image = "gone"
	_, err = r.newEnv(ssr.Artifact{TestScript: "ls", TestParser: "#!/bin/sh\nexec cat\n"}).Run(t.Context(), ssr.State{Kind: ssr.Original})
	require.ErrorIs(t, err, rollout.KindSandbox)
}

type silent struct{}

func (silent) Reply(context.Context, agent.Request) (live.Reply, error) {
	return live.Reply{Message: &rollout.Message{}}, nil
}

func TestOptions(t *testing.T) {
	_, err := Round(t.Context(), nil, Options{Strategies: []Strategy{"magic"}, Attempts: -1})
	for _, want := range []string{"Options.Model", "magic", "Attempts", "min_passing_tests"} {
		require.ErrorContains(t, err, want)
	}
	n := 1
	o := Options{Agent: agent.Options{Model: silent{}}, Settings: ssr.Settings{MinPassingTests: &n, MinChangedFiles: &n, MinFailingTests: &n}}
	_, err = Round(t.Context(), nil, o)
	require.ErrorContains(t, err, "was not opened")
	_, err = Open(t.Context(), Repository{})
	require.ErrorIs(t, err, rollout.KindInput)
	for s := range strategyTexts {
		require.Contains(t, injectPrompt(s, "make test", o.Settings), strategyTexts[s])
	}
}

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bugs.jsonl")
	s, err := OpenStore(path)
	require.NoError(t, err)
	for _, b := range []Bug{{Fingerprint: "a", Order: 2}, {Fingerprint: "b", Order: 1, Solved: 1, Live: 4}, {Fingerprint: "c", Order: 1, Live: 2}, {Fingerprint: "b", Order: 1, Solved: 3, Live: 4}} {
		s.put(b)
	}
	require.NoError(t, s.Save(path))
	s, err = OpenStore(path)
	require.NoError(t, err)
	var order []string
	for _, b := range s.Bugs() {
		order = append(order, fmt.Sprint(b.Fingerprint, b.Difficulty()))
	}
	require.Equal(t, "c1 b0.5 a1", strings.Join(order, " "), "each once, by order, the hardest first")
	require.NoError(t, os.WriteFile(path, []byte("{\n"), 0o644))
	_, err = OpenStore(path)
	require.ErrorIs(t, err, rollout.KindFormat)
}
