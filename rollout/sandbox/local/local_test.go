//go:build linux

package local_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/local"
)

// repository makes a root with the image "demo": two files, and one that git ignores.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "demo")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for name, text := range map[string]string{"a.py": "x = 1\n", ".gitignore": "*.ign\n", "kept.ign": "of the image\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "one"}} {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	return root
}

func box(t *testing.T, o local.Options) sandbox.Sandbox {
	t.Helper()
	if o.Root == "" {
		o.Root = repository(t)
	}
	d, err := local.New(o)
	require.NoError(t, err)
	b, err := sandbox.On(d).Create(context.Background(), sandbox.Spec{Image: "demo"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(context.Background())) })
	return b
}

func run(t *testing.T, b sandbox.Sandbox, c sandbox.Command) sandbox.Result {
	t.Helper()
	r, err := b.Exec(context.Background(), c)
	require.NoError(t, err)
	return r
}

// alive counts the processes whose command line contains a text.
func alive(text string) (n int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		line, _ := os.ReadFile(f)
		if strings.Contains(string(line), text) {
			n++
		}
	}
	return n
}

func TestTimeoutKillsWhatIgnoresSignalsAndLeavesTheSession(t *testing.T) {
	b := box(t, local.Options{})
	// No other process sleeps for this number of seconds.
	long := strconv.Itoa(100000 + os.Getpid())
	text := "trap '' TERM INT HUP; (setsid sleep " + long + " >/dev/null 2>&1 &) ; setsid bash -c 'trap \"\" TERM; sleep " + long + "' & sleep " + long
	begin := time.Now()
	r := run(t, b, sandbox.Command{Text: text, Timeout: 300 * time.Millisecond})
	require.Equal(t, sandbox.EndTimeout, r.End)
	require.Equal(t, -1, r.ExitCode)
	require.Less(t, time.Since(begin), 20*time.Second)
	require.Eventually(t, func() bool { return alive(long) == 0 }, 20*time.Second, 10*time.Millisecond)
	require.Zero(t, run(t, b, sandbox.Command{Text: "true"}).ExitCode, "the sandbox goes on")
}

func TestContextKillsToo(t *testing.T) {
	b := box(t, local.Options{})
	long := strconv.Itoa(200000 + os.Getpid())
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := b.Exec(ctx, sandbox.Command{Text: "sleep " + long})
	require.ErrorIs(t, err, rollout.KindSandbox)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Eventually(t, func() bool { return alive(long) == 0 }, 20*time.Second, 10*time.Millisecond)
}

func TestCloseEndsServersLeftRunning(t *testing.T) {
	b := box(t, local.Options{})
	long := strconv.Itoa(300000 + os.Getpid())
	r := run(t, b, sandbox.Command{Text: "sleep " + long + " & echo started", Timeout: 5 * time.Second})
	require.Equal(t, "started\n", r.Stdout)
	require.Equal(t, 1, alive(long), "a server started by an agent stays between commands")
	require.NoError(t, b.Close(context.Background()))
	require.Zero(t, alive(long))
	_, err := b.Exec(context.Background(), sandbox.Command{Text: "true"})
	require.ErrorIs(t, err, rollout.KindSandbox)
}

func TestOutputIsBoundedWhileItStreams(t *testing.T) {
	b := box(t, local.Options{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := run(t, b, sandbox.Command{Text: "echo first; head -c 200000000 /dev/zero; echo last", MaxOutput: 10000})
	runtime.ReadMemStats(&after)
	require.EqualValues(t, 200000000+11-10000, r.LeftOut)
	require.True(t, strings.HasPrefix(r.Stdout, "first\n") && strings.HasSuffix(r.Stdout, "last\n"))
	require.Contains(t, r.Stdout, "[... 199990011 bytes left out ...]")
	require.Less(t, len(r.Stdout), 10100)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20))
}

func TestMemoryBeyondTheLimitIsOOM(t *testing.T) {
	b := box(t, local.Options{Limits: sandbox.Limits{Memory: 100 << 20}}.Every(20*time.Millisecond))
	r := run(t, b, sandbox.Command{Text: "tail /dev/zero", Timeout: 20 * time.Second}) // tail buffers what it reads
	require.Equal(t, sandbox.EndOOM, r.End)
	require.Equal(t, 137, r.ExitCode)
	require.Greater(t, r.Peak, int64(100<<20))
	r = run(t, b, sandbox.Command{Text: "head -c 1000 /dev/zero | tail -c 1; sleep 0.1"})
	require.Equal(t, sandbox.EndExited, r.End)
	require.Positive(t, r.Peak)
}

func TestTooManyProcesses(t *testing.T) {
	b := box(t, local.Options{Limits: sandbox.Limits{Processes: 20}}.Every(10*time.Millisecond))
	r := run(t, b, sandbox.Command{Text: "for i in $(seq 60); do setsid sleep 50 & done; wait", Timeout: 20 * time.Second})
	require.Equal(t, sandbox.EndPids, r.End)
	require.Equal(t, 137, r.ExitCode)
}

func TestEnvironment(t *testing.T) {
	t.Setenv("A_SECRET_OF_THE_SERVER", "key")
	b := box(t, local.Options{Env: map[string]string{"ALL": "1"}})
	r := run(t, b, sandbox.Command{Text: `echo "$A_SECRET_OF_THE_SERVER|$ALL|$ONE|$PWD|$(cat /testbed/a.py)"`, Env: map[string]string{"ONE": "/testbed/x"}, Dir: "/testbed"})
	require.Equal(t, "|1|/testbed/x|/testbed|x = 1\n", r.Stdout)
	r = run(t, b, sandbox.Command{Text: "pwd; echo /testbedding /testbed-x /testbed; echo /testbed >&2", Dir: "/testbed"})
	require.Equal(t, "/testbed\n/testbedding /testbed-x /testbed\n/testbed\n", r.Output())
	r = run(t, b, sandbox.Command{Text: "true", Dir: "/testbed/none"})
	require.Equal(t, 126, r.ExitCode)
	r = run(t, b, sandbox.Command{Text: "# " + strings.Repeat("long ", 100000) + "\necho $((6*7)); cat; exit 3"})
	require.Equal(t, sandbox.Result{ExitCode: 3, Stdout: "42\n", Peak: r.Peak}, r)
	for _, bad := range []sandbox.Command{{}, {Text: "a\x00b"}, {Text: "x", Env: map[string]string{"A=B": ""}}} {
		_, err := b.Exec(context.Background(), bad)
		require.ErrorIs(t, err, rollout.KindInput)
	}
}

func TestDiffHasWhatAnAgentCommitted(t *testing.T) {
	b := box(t, local.Options{})
	require.Zero(t, run(t, b, sandbox.Command{Text: "echo y = 2 >> a.py; git -c user.name=n -c user.email=e@x commit -qam two; echo new > b.py"}).ExitCode)
	patch, err := b.Diff(context.Background(), "")
	require.NoError(t, err)
	require.Contains(t, patch, "+y = 2")
	require.Contains(t, patch, "+++ b/b.py")
	_, err = b.Diff(context.Background(), "/tmp")
	require.ErrorIs(t, err, rollout.KindInput)
}

func TestBinaryFiles(t *testing.T) {
	b := box(t, local.Options{})
	require.Zero(t, run(t, b, sandbox.Command{Text: `printf 'a\0\377b' > data.bin`}).ExitCode)
	patch, err := b.Diff(context.Background(), "")
	require.NoError(t, err)
	require.Contains(t, patch, "GIT binary patch")
	v, err := b.Evaluate(context.Background(), sandbox.Evaluation{Patch: patch, Script: `printf 'a\0\377b' | cmp - data.bin`})
	require.NoError(t, err)
	require.True(t, v.Resolved, v)
}

// TestOtherEncodings: a patch of bytes that are no UTF-8 survives JSON, whatever the attributes of the repository.
func TestOtherEncodings(t *testing.T) {
	root := repository(t)
	git := func(args ...string) {
		out, err := exec.Command("git", append([]string{"-C", filepath.Join(root, "demo"), "-c", "user.name=n", "-c", "user.email=e@x"}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "demo", "latin.py"), []byte("# caf\xe9\nx = 1\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(root, "demo", ".gitattributes"), []byte("*.py diff\n"), 0o644))
	git("add", "-A")
	git("commit", "-qm", "two")
	b := box(t, local.Options{Root: root})
	require.Zero(t, run(t, b, sandbox.Command{Text: `git config core.quotepath false; sed -i s/1/2/ latin.py; echo y = 2 >> a.py; printf 'caf\351\n' > "$(printf 'n\377')"`}).ExitCode)
	for _, dir := range []string{"", "/testbed/."} {
		patch, err := b.Diff(context.Background(), dir)
		require.NoError(t, err)
		require.True(t, utf8.ValidString(patch), "%q", patch)
		fresh := box(t, local.Options{Root: root})
		v, err := fresh.Evaluate(context.Background(), sandbox.Evaluation{Patch: patch, Script: `printf '# caf\351\nx = 2\n' | cmp - latin.py && printf 'caf\351\n' | cmp - "$(printf 'n\377')" && grep 'y = 2' a.py`})
		require.NoError(t, err)
		require.True(t, v.Resolved, v)
	}
	require.Empty(t, run(t, b, sandbox.Command{Text: `ls -A "$TMPDIR"`}).Stdout, "nothing is left")
}

func TestNoLogin(t *testing.T) {
	for no, want := range map[bool]string{false: "login_shell    \ton\n", true: "login_shell    \toff\n"} {
		b := box(t, local.Options{NoLogin: no})
		require.Equal(t, want, run(t, b, sandbox.Command{Text: "shopt login_shell"}).Stdout)
		long := "shopt login_shell # " + strings.Repeat("x", 200000)
		require.Equal(t, want, run(t, b, sandbox.Command{Text: long}).Stdout)
	}
}

// TestDiskFull: a sandbox for which the disk has no space is an infrastructure error, and leaves nothing.
func TestDiskFull(t *testing.T) {
	root, bin := repository(t), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "cp"), []byte("#!/bin/sh\necho 'cp: error writing: No space left on device' >&2\nexit 1\n"), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	d, err := local.New(local.Options{Root: root})
	require.NoError(t, err)
	_, err = sandbox.On(d).Create(context.Background(), sandbox.Spec{Image: "demo"})
	require.ErrorIs(t, err, rollout.KindSandbox)
	require.ErrorContains(t, err, "No space left on device")
	list, err := d.Containers(context.Background())
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestEvaluate(t *testing.T) {
	b := box(t, local.Options{})
	ctx := context.Background()
	big := strings.Repeat("# a long line of a large file\n", 10000) // 300 kB exceeds the limit of a program argument
	require.Zero(t, run(t, b, sandbox.Command{Text: "cat >> a.py; echo new > b.py", Stdin: []byte(big)}).ExitCode)
	patch, err := b.Diff(ctx, "")
	require.NoError(t, err)
	// An agent's preparations to make tests pass must be gone when the tests run.
	run(t, b, sandbox.Command{Text: "git -c user.name=n -c user.email=e@x commit -qam cheat; echo x > conftest.ign; mkdir d; echo x > d/deep.ign; echo x > other.py; git rm -q --cached b.py"})
	v, err := b.Evaluate(ctx, sandbox.Evaluation{Patch: patch, Script: `ls -A | tr '\n' ' '
cat <<'EOF'
a line
EOF
git log --format=%s; wc -l < a.py`})
	require.NoError(t, err)
	require.Equal(t, sandbox.Verdict{Resolved: true, Output: ".git .gitignore a.py b.py kept.ign a line\none\n10001\n", Peak: v.Peak}, v)

	v, err = b.Evaluate(ctx, sandbox.Evaluation{Patch: patch, Script: "echo 0123456789; exit 4", MaxOutput: 3})
	require.NoError(t, err)
	require.Equal(t, sandbox.Verdict{ExitCode: 4, Output: "89\n", Peak: v.Peak}, v)
	v, err = b.Evaluate(ctx, sandbox.Evaluation{Patch: "no patch", Script: "true"})
	require.NoError(t, err)
	require.False(t, v.Resolved)
	require.Contains(t, v.Reason, "patch validation failed")
	v, err = b.Evaluate(ctx, sandbox.Evaluation{Patch: "diff --git a/q b/q\n--- a/q\n+++ b/q\n@@ -1 +1 @@\n-1\n+2\n", Script: "true"})
	require.NoError(t, err)
	require.Contains(t, v.Reason, "git apply failed: error: q: No such file")
	v, err = b.Evaluate(ctx, sandbox.Evaluation{Patch: patch, Script: "sleep 60", Timeout: 200 * time.Millisecond})
	require.NoError(t, err)
	require.Equal(t, sandbox.EndTimeout, v.End)
	require.Equal(t, "Evaluation timed out after 0.200s", v.Reason)
}

// Without a repository there is nothing to evaluate against, which is no fault of the patch.
func TestEvaluateWithoutRepository(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "demo"), 0o755))
	_, err := box(t, local.Options{Root: root}).Evaluate(t.Context(), sandbox.Evaluation{Patch: "diff --git a/q b/q\n", Script: "true"})
	require.ErrorIs(t, err, rollout.KindSandbox)
}

// A patch that only removes, renames or makes executable is applied as any other.
func TestPatchesWithoutNewLines(t *testing.T) {
	for _, change := range []string{"rm a.py", "git mv a.py c.py", "chmod +x a.py"} {
		b := box(t, local.Options{})
		require.Zero(t, run(t, b, sandbox.Command{Text: change}).ExitCode)
		patch, err := b.Diff(t.Context(), "")
		require.NoError(t, err)
		v, err := b.Evaluate(t.Context(), sandbox.Evaluation{Patch: patch, Script: "test ! -f a.py -o -x a.py"})
		require.NoError(t, err)
		require.True(t, v.Resolved, "%s: %s", change, v.Reason)
	}
}

func TestContainersOfADriverBefore(t *testing.T) {
	root := repository(t)
	d, err := local.New(local.Options{Root: root})
	require.NoError(t, err)
	ctx := context.Background()
	b, err := sandbox.On(d).Create(ctx, sandbox.Spec{Image: "demo", Lease: "l"})
	require.NoError(t, err)
	require.Zero(t, run(t, b, sandbox.Command{Text: "mkdir ro && touch ro/f && chmod 500 ro; echo hi > a.py"}).ExitCode)

	again, err := local.New(local.Options{Root: root})
	require.NoError(t, err)
	list, err := sandbox.Adopt(ctx, again)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "l", list[0].Container().Spec.Lease)
	require.Equal(t, "hi\n", run(t, list[0], sandbox.Command{Text: "cat a.py"}).Stdout)
	patch, err := list[0].Diff(ctx, "")
	require.NoError(t, err)
	_, err = list[0].Evaluate(ctx, sandbox.Evaluation{Patch: patch})
	require.ErrorIs(t, err, rollout.KindSandbox, "how it began is not known any more")
	// A kill while a container is created leaves half of its file.
	torn := filepath.Join(root, ".containers", list[0].Container().ID, "container.json")
	require.NoError(t, os.Truncate(torn, 9))
	half, err := sandbox.Adopt(ctx, again)
	require.NoError(t, err)
	require.Len(t, half, 1, "nobody else will remove it")
	require.NoError(t, half[0].Close(ctx))
	require.NoError(t, list[0].Close(ctx))
	require.NoError(t, list[0].Close(ctx))
	left, err := again.Containers(ctx)
	require.NoError(t, err)
	require.Empty(t, left)
	images, err := again.Images(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"demo"}, images)
	_, err = b.Exec(ctx, sandbox.Command{Text: "true"})
	require.ErrorIs(t, err, rollout.KindSandbox, "the container is gone")
	for _, image := range []string{"", "none", "../x", "/etc"} {
		_, err = sandbox.On(again).Create(ctx, sandbox.Spec{Image: image})
		require.Error(t, err, image)
	}
}
