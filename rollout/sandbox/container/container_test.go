//go:build unix

package container_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/container"
)

// standIn is a program that writes its arguments to a file, one call per line, and answers as docker and
// apptainer do. Its commands run on this machine.
const standIn = `#!/bin/sh
dir=$(dirname "$0")
for a in "$@"; do printf '<%s>' "$a" >> "$dir/calls"; done; echo >> "$dir/calls"
env | grep '^APPTAINERENV_' | grep -v SANDBOX | sort >> "$dir/env"
[ -e "$dir/broken" ] && { echo "Cannot connect to the daemon" >&2; exit 125; }
[ -e "$dir/hung" ] && sleep 30
case "$1 $2" in
"run "*) echo "Pulling from library"; echo 0123abc ;;
"inspect --format") case "$3" in
  *State*) [ -e "$dir/gone" ] && { echo "Error: No such object" >&2; exit 1; }; cat "$dir/state" ;;
  *) echo '0123abc /swe-1 {"Image":"i","Lease":"l"}' ;;
  esac ;;
"ps "*) echo 0123abc ;;
"images "*) printf 'i:1\ni:2\n' ;;
"rm "*) [ -e "$dir/gone" ] && { echo "Error: No such container: x" >&2; exit 1; }; exit 0 ;;
"instance list") echo '{"instances": [{"instance": "swe-1", "img": "i.sif"}, {"instance": "other", "img": "i.sif"}]}' ;;
"exec "*) [ -e "$dir/gone" ] && { echo "Error response from daemon: No such container: x" >&2; exit 1; }
  shift; mark=; while [ $# -gt 0 ]; do case "$1" in -w|--pwd) shift 2 ;; -e) export "$2"; shift 2 ;; -i|--cleanenv) shift ;; *) shift; break ;; esac; done
  exec "$@" ;;
esac
`

type program struct{ dir string }

func (p program) lines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, file))
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(p.dir, file)))
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func (p program) set(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, file), []byte(text), 0o644))
}

func driver(t *testing.T, o container.Options) (sandbox.Driver, program) {
	t.Helper()
	p := program{t.TempDir()}
	name := o.Engine
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, name), []byte(standIn), 0o755))
	t.Setenv("PATH", p.dir+":"+os.Getenv("PATH"))
	t.Setenv("HOME", p.dir) // commands run here in login shells, which must not read the user's profile
	p.set(t, "state", "true false\n")
	d, err := container.New(o)
	require.NoError(t, err)
	return d, p
}

func TestDocker(t *testing.T) {
	for _, engine := range []string{"docker", "podman"} {
		d, p := driver(t, container.Options{Engine: engine})
		ctx := context.Background()
		id, err := d.Create(ctx, "swe-1", sandbox.Spec{Image: "repo/i:latest", Lease: "l"})
		require.NoError(t, err)
		require.Equal(t, "0123abc", id)
		require.Equal(t, []string{`<run><-d><--name><swe-1><-w></testbed><--pids-limit><256><--memory><4g><--label><turnpack.sandbox={"Image":"repo/i:latest","Dir":"/testbed","Instance":"","Lease":"l","Pool":""}><repo/i:latest><sleep><infinity>`}, p.lines(t, "calls"))

		r, err := d.Exec(ctx, id, sandbox.Command{Text: "echo out $B; echo err >&2; cat; exit 3", Env: map[string]string{"B": "b,c d", "A": ""}, Stdin: []byte("in")})
		require.NoError(t, err)
		require.Equal(t, sandbox.Result{ExitCode: 3, Stdout: "out b,c d\nin", Stderr: "err\n"}, r)
		call := p.lines(t, "calls")
		require.Len(t, call, 1)
		require.Regexp(t, `^<exec><-w></testbed><-i><-e><A=><-e><B=b,c d><-e><SANDBOX_EXEC=[\d-]+><0123abc><bash><-lc><echo out \$B; echo err >&2; cat; exit 3>$`, call[0])

		list, err := d.Containers(ctx)
		require.NoError(t, err)
		require.Equal(t, []sandbox.Container{{ID: "0123abc", Name: "swe-1", Spec: sandbox.Spec{Image: "i", Lease: "l"}}}, list)
		images, err := d.Images(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"i:1", "i:2"}, images)
		p.lines(t, "calls")
		require.NoError(t, d.Destroy(ctx, id))
		require.Equal(t, []string{"<rm><-f><0123abc>"}, p.lines(t, "calls"))
	}
}

func TestTimeoutKillsInsideOfTheContainer(t *testing.T) {
	d, p := driver(t, container.Options{Engine: "docker"})
	file := filepath.Join(t.TempDir(), "beat")
	r, err := d.Exec(context.Background(), "c", sandbox.Command{Timeout: time.Second, Text: "trap '' TERM; (setsid sh -c 'while :; do echo x >> " + file + "; sleep 0.02; done' &); sleep 50"})
	require.NoError(t, err)
	require.Equal(t, sandbox.EndTimeout, r.End)
	calls := p.lines(t, "calls")
	require.Contains(t, calls[len(calls)-1], "<exec><c><sh><-c><for i in")
	size := func() int64 {
		info, err := os.Stat(file)
		require.NoError(t, err)
		return info.Size()
	}
	before := size()
	time.Sleep(150 * time.Millisecond)
	require.Equal(t, before, size(), "a child in a session of its own went on")
}

func TestFailuresHaveTheirOwner(t *testing.T) {
	d, p := driver(t, container.Options{Engine: "docker"})
	ctx := context.Background()
	exec := func(text string) (sandbox.Result, error) { return d.Exec(ctx, "c", sandbox.Command{Text: text}) }
	r, err := exec("echo 'Error response from daemon: No such container' >&2; exit 1")
	require.NoError(t, err, "an agent can print what it likes")
	require.Equal(t, 1, r.ExitCode)
	r, err = exec("kill -9 $$")
	require.NoError(t, err)
	require.Equal(t, sandbox.EndExited, r.End)
	p.set(t, "state", "true true\n")
	r, err = exec("exit 137")
	require.NoError(t, err)
	require.Equal(t, sandbox.EndOOM, r.End)
	p.set(t, "gone", "")
	_, err = exec("true")
	require.ErrorIs(t, err, rollout.KindSandbox)
	require.NoError(t, d.Destroy(ctx, "c"), "one that is not there is no error")
	require.NoError(t, os.Remove(filepath.Join(p.dir, "gone")))
	p.set(t, "broken", "")
	require.ErrorIs(t, d.Destroy(ctx, "c"), rollout.KindSandbox)
	p.lines(t, "calls")
	_, err = d.Create(ctx, "swe-2", sandbox.Spec{Image: "i"})
	require.ErrorIs(t, err, rollout.KindSandbox)
	require.Equal(t, "<rm><-f><swe-2>", p.lines(t, "calls")[1], "what was begun is removed")
	_, err = d.Create(ctx, "swe-3", sandbox.Spec{Image: "--privileged"})
	require.ErrorIs(t, err, rollout.KindInput)
}

// A program that hangs does not hang its caller, whose context has no deadline.
func TestHungProgram(t *testing.T) {
	for engine, remove := range map[string]string{"docker": "rm", "apptainer": "instance"} {
		d, p := driver(t, container.Options{Engine: engine})
		container.SetPatience(d, 50*time.Millisecond)
		p.set(t, "hung", "")
		began := time.Now()
		err := d.Destroy(context.Background(), "c")
		require.ErrorIs(t, err, rollout.KindSandbox)
		require.ErrorContains(t, err, engine+" "+remove+": expected an end within 50ms")
		_, err = d.Containers(context.Background())
		require.ErrorIs(t, err, rollout.KindSandbox)
		require.Less(t, time.Since(began), 10*time.Second)
	}
}

func TestApptainer(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a[b]c") // a name, not a pattern
	require.NoError(t, os.Mkdir(root, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "i.sif"), nil, 0o644))
	d, p := driver(t, container.Options{Engine: "apptainer", Root: root, Args: []string{"--nv"}})
	ctx := context.Background()
	for image, want := range map[string]string{"i": filepath.Join(root, "i.sif"), "docker.io/x/y:1": "docker://docker.io/x/y:1", "oras://x": "oras://x"} {
		id, err := d.Create(ctx, "swe-1", sandbox.Spec{Image: image})
		require.NoError(t, err)
		require.Equal(t, "swe-1", id)
		require.Equal(t, []string{"<instance><start><--containall><--writable-tmpfs><--nv><" + want + "><swe-1>"}, p.lines(t, "calls"))
	}
	r, err := d.Exec(ctx, "swe-1", sandbox.Command{Text: "echo hi; exit 2", Dir: "/x", Env: map[string]string{"A": "b,c"}})
	require.NoError(t, err)
	require.Equal(t, 2, r.ExitCode)
	require.Equal(t, []string{"<exec><--cleanenv><--pwd></x><instance://swe-1><bash><-lc><echo hi; exit 2>"}, p.lines(t, "calls"))
	require.Contains(t, p.lines(t, "env"), "APPTAINERENV_A=b,c")
	list, err := d.Containers(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	p.lines(t, "calls")
	require.NoError(t, d.Destroy(ctx, "swe-1"))
	require.Equal(t, []string{"<instance><stop><swe-1>"}, p.lines(t, "calls"))
	images, err := d.Images(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"i.sif"}, images)
}

// TestRealEngine runs the driver on an engine of this machine. TURNPACK_CONTAINER_IMAGE names an image with
// bash, git and a repository with a commit in /testbed; TURNPACK_CONTAINER_ENGINE is docker, podman or
// apptainer.
func TestRealEngine(t *testing.T) {
	engine, image := os.Getenv("TURNPACK_CONTAINER_ENGINE"), os.Getenv("TURNPACK_CONTAINER_IMAGE")
	if engine == "" || image == "" {
		t.Skip("SKIPPED: set TURNPACK_CONTAINER_ENGINE and TURNPACK_CONTAINER_IMAGE to run the driver on an engine")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	d, err := container.New(container.Options{Engine: engine, Limits: sandbox.Limits{Memory: 256 << 20}})
	require.NoError(t, err)
	b, err := sandbox.On(d).Create(ctx, sandbox.Spec{Image: image, Instance: "i", Lease: "l", Pool: "p"})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, b.Close(ctx))
		require.NoError(t, b.Close(ctx))
		list, err := d.Containers(ctx)
		require.NoError(t, err)
		for _, c := range list {
			require.NotEqual(t, b.Container().ID, c.ID)
		}
	}()
	exec := func(c sandbox.Command) sandbox.Result {
		r, err := b.Exec(ctx, c)
		require.NoError(t, err)
		return r
	}
	r := exec(sandbox.Command{Text: "echo $ONE; echo no >&2; cat; exit 3", Env: map[string]string{"ONE": "1 2"}, Stdin: []byte("in")})
	require.Equal(t, sandbox.Result{ExitCode: 3, Stdout: "1 2\nin", Stderr: "no\n", Peak: r.Peak}, r)
	begin := time.Now()
	r = exec(sandbox.Command{Text: "trap '' TERM; setsid sleep 4321 & sleep 4321", Timeout: 2 * time.Second})
	require.Equal(t, sandbox.EndTimeout, r.End)
	require.Less(t, time.Since(begin), 30*time.Second)
	require.Equal(t, "none\n", exec(sandbox.Command{Text: "grep -l 4321 /proc/[0-9]*/cmdline 2>/dev/null | grep -v self | grep -v $$ | wc -l | sed 's/^0$/none/'"}).Stdout)
	require.Equal(t, sandbox.EndOOM, exec(sandbox.Command{Text: "tail /dev/zero", Timeout: time.Minute}).End)
	require.Zero(t, exec(sandbox.Command{Text: "echo new > turnpack.txt"}).ExitCode)
	patch, err := b.Diff(ctx, "")
	require.NoError(t, err)
	require.Contains(t, patch, "+++ b/turnpack.txt")
	v, err := b.Evaluate(ctx, sandbox.Evaluation{Patch: patch, Script: "cat turnpack.txt"})
	require.NoError(t, err)
	require.Equal(t, "new\n", v.Output)
	require.True(t, v.Resolved)
}

// TestImagesAreThoseThatCreateTakesAtOnce: without a folder of images each image is pulled, whatever the
// working folder contains.
func TestImagesAreThoseThatCreateTakesAtOnce(t *testing.T) {
	d, _ := driver(t, container.Options{Engine: "apptainer"})
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("here.sif", nil, 0o644))
	images, err := d.Images(t.Context())
	require.NoError(t, err)
	require.Empty(t, images)
}
