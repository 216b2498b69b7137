package container

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/internal/process"
)

const apptainer = "apptainer"

// Options choose an engine and bounds.
type Options struct {
	Engine  string // "docker" or "", "podman", "apptainer"
	Program string // its command, if it is not named as the engine is
	Limits  sandbox.Limits
	// Args are added to those with which a container is made.
	Args []string
	// Root is the folder of apptainer's image files; an image that is not there is pulled
	// from a registry.
	Root string
}

// driver is a sandbox.Driver. Make one with New.
type driver struct {
	options  Options
	table    process.Table
	commands atomic.Int64 // tells their processes apart
}

// New gives the driver of an engine. Nothing is started.
func New(o Options) (sandbox.Driver, error) {
	o.Engine = cmp.Or(o.Engine, "docker")
	if !slices.Contains([]string{"docker", "podman", apptainer}, o.Engine) {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Engine"}, "expected docker, podman or apptainer, found %q", o.Engine)
	}
	if o.Limits.Memory < 0 || o.Limits.Processes < 0 {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Limits"}, "a bound is negative, expected 0 for the default or more")
	}
	o.Program = cmp.Or(o.Program, o.Engine)
	o.Limits = o.Limits.With()
	return &driver{options: o}, nil
}

// label has the Spec of a container as JSON.
const label = "turnpack.sandbox"

func lost(format string, args ...any) error {
	return rollout.Errorf(rollout.KindSandbox, rollout.Where{}, format, args...)
}

// cli runs the engine's program for at most a minute beyond ctx's own bounds.
func (d *driver) cli(ctx context.Context, args ...string) (sandbox.Result, error) {
	r, err := process.Run(ctx, process.Options{Args: append([]string{d.options.Program}, args...), MaxOutput: 16 << 20})
	if err == nil && r.ExitCode != 0 {
		err = lost("%s %s: %s", d.options.Program, args[0], strings.TrimSpace(r.Stderr))
	}
	return r, err
}

// Create starts a container.
func (d *driver) Create(ctx context.Context, name string, spec sandbox.Spec) (string, error) {
	spec.Dir = cmp.Or(spec.Dir, sandbox.DefaultDir)
	if strings.HasPrefix(spec.Image, "-") {
		return "", rollout.Errorf(rollout.KindInput, rollout.Where{Field: "image"}, "%q is no image", spec.Image)
	}
	var args []string
	if d.options.Engine == apptainer {
		args = append([]string{"instance", "start", "--containall", "--writable-tmpfs"}, d.options.Args...)
		args = append(args, d.image(spec.Image), name)
	} else {
		note, err := json.Marshal(spec)
		if err != nil {
			return "", lost("%w", err)
		}
		args = append([]string{"run", "-d", "--name", name, "-w", spec.Dir, "--pids-limit", strconv.Itoa(d.options.Limits.Processes),
			"--memory", size(d.options.Limits.Memory), "--label", label + "=" + string(note)}, d.options.Args...)
		args = append(args, spec.Image, "sleep", "infinity")
	}
	r, err := d.cli(ctx, args...)
	if err != nil {
		// What was begun must not stay, under a name that nobody knows.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		return "", errors.Join(err, d.Destroy(end, name))
	}
	lines := strings.Fields(r.Stdout)
	if d.options.Engine == apptainer || len(lines) == 0 {
		return name, nil
	}
	return lines[len(lines)-1], nil // a pull prints lines before the id
}

func size(n int64) string {
	if n%(1<<30) == 0 {
		return strconv.FormatInt(n>>30, 10) + "g"
	}
	return strconv.FormatInt(n, 10) + "b"
}

// image is the file of an image, or where apptainer pulls it from.
func (d *driver) image(name string) string {
	if d.options.Root != "" && filepath.IsLocal(filepath.FromSlash(name)) {
		for _, file := range []string{name, name + ".sif"} {
			path := filepath.Join(d.options.Root, filepath.FromSlash(file))
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
	}
	if strings.Contains(name, "://") || filepath.IsAbs(name) {
		return name
	}
	return "docker://" + name
}

// killAll ends the processes of a command from inside of its container, where its
// children may have left its group. $1 is in their environment.
const killAll = `for i in 1 2 3 4 5; do n=0; for p in /proc/[0-9]*; do ` +
	`if grep -qs "SANDBOX_EXEC=$1" "$p/environ"; then kill -9 "${p#/proc/}" 2>/dev/null; n=1; fi; done; [ $n = 0 ] && exit 0; done`

// Exec runs a command in a container.
func (d *driver) Exec(ctx context.Context, id string, c sandbox.Command) (sandbox.Result, error) {
	if strings.HasPrefix(id, "-") {
		return sandbox.Result{}, lost("there is no container %q", id)
	}
	c = c.With()
	mark := fmt.Sprintf("%d-%d", time.Now().UnixNano(), d.commands.Add(1))
	shell, stdin := sandbox.Shell(c.Text, c.Stdin)
	o := process.Options{Stdin: stdin, Timeout: c.Timeout, MaxOutput: c.MaxOutput, Table: &d.table}
	names := slices.Sorted(maps.Keys(c.Env))
	if d.options.Engine == apptainer {
		// --env splits its value at commas: the environment of the program does not.
		o.Env = append(os.Environ(), "APPTAINERENV_SANDBOX_EXEC="+mark)
		for _, name := range names {
			o.Env = append(o.Env, "APPTAINERENV_"+name+"="+c.Env[name])
		}
		o.Args = []string{d.options.Program, "exec", "--cleanenv", "--pwd", c.Dir, "instance://" + id}
		o.Limits, o.Mark = d.options.Limits, "SANDBOX_EXEC="+mark
	} else {
		o.Args = []string{d.options.Program, "exec", "-w", c.Dir}
		if stdin != nil {
			o.Args = append(o.Args, "-i")
		}
		for _, name := range names {
			o.Args = append(o.Args, "-e", name+"="+c.Env[name])
		}
		o.Args = append(o.Args, "-e", "SANDBOX_EXEC="+mark, id)
	}
	o.Args = append(o.Args, shell...)
	r, err := process.Run(ctx, o)
	if d.options.Engine != apptainer {
		r.Peak = 0 // that of docker exec, not of what it started
	}
	if d.options.Engine != apptainer && (err != nil || r.End != sandbox.EndExited) {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if _, gone := d.cli(end, "exec", id, "sh", "-c", killAll, "sh", mark); gone != nil && err == nil {
			if running, _ := d.state(end, id); !running {
				return r, lost("the container %s is lost: %w", id, gone)
			}
		}
	}
	if err != nil || r.End != sandbox.EndExited || r.ExitCode == 0 {
		return r, err
	}
	return d.judge(ctx, id, r)
}

// judge tells a command that failed from a container that is gone: both are an exit
// status of the program.
func (d *driver) judge(ctx context.Context, id string, r sandbox.Result) (sandbox.Result, error) {
	low := strings.ToLower(r.Stderr)
	suspect := slices.ContainsFunc([]string{"error response from daemon", "no such container", "not running", "no container with", "container state improper", "no instance found"},
		func(s string) bool { return strings.Contains(low, s) })
	if !suspect && !slices.Contains([]int{125, 137, 255}, r.ExitCode) {
		return r, nil
	}
	running, oom := d.state(ctx, id)
	switch {
	case oom && (r.ExitCode == 137 || !running):
		r.End, r.ExitCode = sandbox.EndOOM, 137
	case !running:
		return r, lost("the container %s is gone: %s", id, strings.TrimSpace(r.Stderr))
	}
	return r, nil
}

// state asks whether a container runs, and whether something in it ran out of memory.
func (d *driver) state(ctx context.Context, id string) (running, oom bool) {
	if d.options.Engine == apptainer {
		list, err := d.Containers(ctx)
		return err == nil && slices.ContainsFunc(list, func(c sandbox.Container) bool { return c.ID == id }), false
	}
	r, err := d.cli(ctx, "inspect", "--format", "{{.State.Running}} {{.State.OOMKilled}}", id)
	f := strings.Fields(r.Stdout)
	if err != nil || len(f) != 2 {
		return false, false
	}
	return f[0] == "true", f[1] == "true"
}

// Destroy removes a container and all that runs in it.
func (d *driver) Destroy(ctx context.Context, id string) error {
	if strings.HasPrefix(id, "-") || id == "" {
		return nil
	}
	args, gone := []string{"rm", "-f", id}, "no such container"
	if d.options.Engine == apptainer {
		args, gone = []string{"instance", "stop", id}, "no instance found"
	}
	r, err := d.cli(ctx, args...)
	low := strings.ToLower(r.Stderr)
	if err != nil && (strings.Contains(low, gone) || strings.Contains(low, "no container with")) {
		return nil
	}
	return err
}

// Containers lists those with our label, or for apptainer with our names.
func (d *driver) Containers(ctx context.Context) (out []sandbox.Container, err error) {
	if d.options.Engine == apptainer {
		r, err := d.cli(ctx, "instance", "list", "--json")
		var list struct {
			Instances []struct{ Instance, Img string }
		}
		if err == nil {
			err = json.Unmarshal([]byte(r.Stdout), &list)
		}
		if err != nil {
			return nil, lost("%w", err)
		}
		for _, i := range list.Instances {
			if strings.HasPrefix(i.Instance, "swe-") {
				out = append(out, sandbox.Container{ID: i.Instance, Name: i.Instance, Spec: sandbox.Spec{Image: i.Img}})
			}
		}
		return out, nil
	}
	r, err := d.cli(ctx, "ps", "-aq", "--no-trunc", "--filter", "label="+label)
	ids := strings.Fields(r.Stdout)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	r, err = d.cli(ctx, append([]string{"inspect", "--format", `{{.Id}} {{.Name}} {{index .Config.Labels "` + label + `"}}`}, ids...)...)
	for _, line := range strings.Split(r.Stdout, "\n") { // one that went away meanwhile is an error, and the others are there
		f := strings.SplitN(line, " ", 3)
		c := sandbox.Container{ID: f[0]}
		if len(f) < 3 || json.Unmarshal([]byte(f[2]), &c.Spec) != nil {
			continue
		}
		c.Name = strings.TrimPrefix(f[1], "/")
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, err
	}
	return out, nil
}

// Images lists those that need no pull.
func (d *driver) Images(ctx context.Context) ([]string, error) {
	if d.options.Engine == apptainer {
		if d.options.Root == "" {
			return nil, nil // all are pulled
		}
		files, _ := fs.Glob(os.DirFS(d.options.Root), "*.sif")
		return files, nil
	}
	r, err := d.cli(ctx, "images", "--format", "{{.Repository}}:{{.Tag}}")
	return strings.Fields(r.Stdout), err
}
