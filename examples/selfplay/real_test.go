package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/reward/ssr"
)

// TestRealRepository: a repository on disk, whose suite is an executable and whose
// library is found over a link, is read, broken, judged and repaired with the patches
// that git makes of it.
func TestRealRepository(t *testing.T) {
	for _, tool := range []string{"git", "sh", "grep", "awk"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not installed; install it to play on a repository of git's own", tool)
		}
	}
	dir := t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.Output()
		require.NoError(t, err, "git %v", args)
		return string(out)
	}
	write := func(name, content string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), mode))
		require.NoError(t, os.Chmod(path, mode))
	}
	commit := func(message string) string {
		git("add", "-A")
		git("commit", "-q", "-m", message)
		return git("rev-parse", "HEAD")[:40]
	}
	git("init", "-q")
	write("lib/v1/add.sh", "echo $(($1 + $2))\n", 0o755)
	write("lib/v1/mul.sh", "echo $(($1 * $2))\n", 0o755)
	require.NoError(t, os.Symlink("v1", filepath.Join(dir, "lib/current")))
	write("run", "#!/bin/sh\nfor t in tests/*; do if \"$t\" >/dev/null 2>&1; then echo \"$t ok\"; else echo \"$t not ok\"; fi; done\n", 0o755)
	write("tests/add", "#!/bin/sh\n[ \"$(lib/current/add.sh 2 3)\" = 5 ]\n", 0o755)
	write("tests/mul", "#!/bin/sh\n[ \"$(lib/current/mul.sh 2 3)\" = 6 ]\n", 0o755)
	write("tests/link", "#!/bin/sh\n[ -L lib/current ] && [ -d lib/current/. ]\n", 0o755)
	original := commit("original")
	files, err := patch.ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, patch.File{Content: "v1", Mode: patch.Link}, files["lib/current"])
	require.Equal(t, patch.Executable, files["run"].Mode)

	// The bug: one file loses its mode, another its content, the link its aim.
	require.NoError(t, os.Chmod(filepath.Join(dir, "lib/v1/mul.sh"), 0o644))
	require.NoError(t, os.Remove(filepath.Join(dir, "lib/current")))
	require.NoError(t, os.Symlink("v2", filepath.Join(dir, "lib/current")))
	broken := commit("bug")
	write("tests/link", "#!/bin/sh\n[ -L lib/current ]\n", 0o755)
	weak := commit("weak")

	a := ssr.Artifact{
		TestScript: "./run\n", TestParser: testParser, TestFiles: []string{"tests/add", "tests/link", "tests/mul"},
		Bug: git("diff", original, broken), Weaken: git("diff", broken, weak),
	}
	two, one := 2, 1
	verdict, err := ssr.Judge(t.Context(), newLocalEnv(files, a), a, files, ssr.Settings{MinPassingTests: &two, MinChangedFiles: &one, MinFailingTests: &two})
	require.NoError(t, err)
	require.Empty(t, verdict.Malformed)
	// Taking the mode back alone repairs nothing while the link leads nowhere.
	require.Equal(t, 7, verdict.FirstFailing, "%+v", verdict)
	require.Equal(t, []string{"tests/add", "tests/link", "tests/mul"}, verdict.Broken)

	// Without the mode's part the bug is valid, and git's own reverse repairs it.
	a.Bug = git("diff", original, broken, "--", "lib/current")
	env := newLocalEnv(files, a)
	verdict, err = ssr.Judge(t.Context(), env, a, files, ssr.Settings{MinPassingTests: &two, MinChangedFiles: &one, MinFailingTests: &two})
	require.NoError(t, err)
	require.True(t, verdict.Valid(), "%+v", verdict)
	before, err := originalResults(t.Context(), env)
	require.NoError(t, err)
	end, _, err := ssr.Grade(t.Context(), env, git("diff", broken, original, "--", "lib/current"), before)
	require.NoError(t, err)
	require.Equal(t, ssr.Solved, end)

	// A mode alone is a bug as well.
	a.Bug = git("diff", original, broken, "--", "lib/v1")
	a.Weaken = "diff --git a/tests/mul b/tests/mul\n--- a/tests/mul\n+++ b/tests/mul\n@@ -1,2 +1,2 @@\n #!/bin/sh\n-[ \"$(lib/current/mul.sh 2 3)\" = 6 ]\n+true\n"
	verdict, err = ssr.Judge(t.Context(), newLocalEnv(files, a), a, files, ssr.Settings{MinPassingTests: &two, MinChangedFiles: &one, MinFailingTests: &one})
	require.NoError(t, err)
	require.True(t, verdict.Valid(), "%+v", verdict)
}
