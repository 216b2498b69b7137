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

// Options configures New.
type Options struct {
	Engine string // "docker" or "", "podman", "apptainer"; the program has the same name
	Limits sandbox.Limits
	// Args are additional arguments of the command that creates a container.
	Args []string
	// Root is the folder of apptainer's image files; an image that is not in it is pulled from a registry.
	Root string
}

// driver is a sandbox.Driver. New makes one.
type driver struct {
	options  Options
	patience time.Duration // limit of a call that only manages
	table    process.Table
	commands atomic.Int64 // identifies the processes of a command
}

// New returns the driver for an engine. It starts nothing.
func New(o Options) (sandbox.Driver, error) {
	o.Engine = cmp.Or(o.Engine, "docker")
	if !slices.Contains([]string{"docker", "podman", apptainer}, o.Engine) {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Engine"}, "expected docker, podman or apptainer, found %q", o.Engine)
	}
	var err error
	if o.Limits, err = process.Limits(o.Limits); err != nil {
		return nil, err
	}
	return &driver{options: o, patience: time.Minute}, nil
}

// label holds the Spec of a container as JSON.
const label = "turnpack.sandbox"

func sandboxError(format string, args ...any) error {
	return rollout.Errorf(rollout.KindSandbox, rollout.Where{}, format, args...)
}

// cli runs the engine's program until it ends or ctx ends, and kills it after timeout, 0 = never.
func (d *driver) cli(ctx context.Context, timeout time.Duration, args ...string) (sandbox.Result, error) {
	r, err := process.Run(ctx, process.Options{Args: append([]string{d.options.Engine}, args...), Timeout: timeout, MaxOutput: 16 << 20})
	switch {
	case err != nil:
	case r.End == sandbox.EndTimeout:
		err = sandboxError("%s %s: expected an end within %s, found none: see whether the engine answers", d.options.Engine, args[0], timeout)
	case r.ExitCode != 0:
		err = sandboxError("%s %s: %s", d.options.Engine, args[0], strings.TrimSpace(r.Stderr))
	}
	return r, err
}

// manage is cli for a call that neither pulls an image nor runs an agent's command: a program that hangs must
// not hang its caller.
func (d *driver) manage(ctx context.Context, args ...string) (sandbox.Result, error) {
	return d.cli(ctx, d.patience, args...)
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
			return "", sandboxError("%w", err)
		}
		args = append([]string{"run", "-d", "--name", name, "-w", spec.Dir, "--pids-limit", strconv.Itoa(d.options.Limits.Processes),
			"--memory", size(d.options.Limits.Memory), "--label", label + "=" + string(note)}, d.options.Args...)
		args = append(args, spec.Image, "sleep", "infinity")
	}
	r, err := d.cli(ctx, 0, args...)
	if err != nil {
		// A container that was begun under an unknown name must not remain.
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

// image returns the file of an image, or the address from which apptainer pulls it.
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

// killAll kills the processes of a command from inside its container, where its children may have left its
// process group. Their environment contains $1.
const killAll = `for i in 1 2 3 4 5; do n=0; for p in /proc/[0-9]*; do ` +
	`if grep -qs "SANDBOX_EXEC=$1" "$p/environ"; then kill -9 "${p#/proc/}" 2>/dev/null; n=1; fi; done; [ $n = 0 ] && exit 0; done`

// Exec runs a command in a container.
func (d *driver) Exec(ctx context.Context, id string, c sandbox.Command) (sandbox.Result, error) {
	if strings.HasPrefix(id, "-") {
		return sandbox.Result{}, sandboxError("there is no container %q", id)
	}
	c = c.With()
	mark := fmt.Sprintf("%d-%d", time.Now().UnixNano(), d.commands.Add(1))
	shell, stdin := process.Shell(c.Text, c.Stdin)
	o := process.Options{Stdin: stdin, Timeout: c.Timeout, MaxOutput: c.MaxOutput, Table: &d.table}
	names := slices.Sorted(maps.Keys(c.Env))
	if d.options.Engine == apptainer {
		// --env splits its value at commas; the program's environment does not.
		o.Env = append(os.Environ(), "APPTAINERENV_SANDBOX_EXEC="+mark)
		for _, name := range names {
			o.Env = append(o.Env, "APPTAINERENV_"+name+"="+c.Env[name])
		}
		o.Args = []string{d.options.Engine, "exec", "--cleanenv", "--pwd", c.Dir, "instance://" + id}
		o.Limits, o.Mark = d.options.Limits, "SANDBOX_EXEC="+mark
	} else {
		o.Args = []string{d.options.Engine, "exec", "-w", c.Dir}
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
		r.Peak = 0 // of docker exec, not of the command
	}
	if d.options.Engine != apptainer && (err != nil || r.End != sandbox.EndExited) {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if _, gone := d.manage(end, "exec", id, "sh", "-c", killAll, "sh", mark); gone != nil && err == nil {
			if running, _ := d.state(end, id); !running {
				return r, sandboxError("the container %s is lost: %w", id, gone)
			}
		}
	}
	if err != nil || r.End != sandbox.EndExited || r.ExitCode == 0 {
		return r, err
	}
	return d.judge(ctx, id, r)
}

// judge distinguishes a command that failed from a container that is gone: both are an exit status of the
// program.
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
		return r, sandboxError("the container %s is gone: %s", id, strings.TrimSpace(r.Stderr))
	}
	return r, nil
}

// state reports whether a container is running, and whether a process in it ran out of memory.
func (d *driver) state(ctx context.Context, id string) (running, oom bool) {
	if d.options.Engine == apptainer {
		list, err := d.Containers(ctx)
		return err == nil && slices.ContainsFunc(list, func(c sandbox.Container) bool { return c.ID == id }), false
	}
	r, err := d.manage(ctx, "inspect", "--format", "{{.State.Running}} {{.State.OOMKilled}}", id)
	f := strings.Fields(r.Stdout)
	if err != nil || len(f) != 2 {
		return false, false
	}
	return f[0] == "true", f[1] == "true"
}

// Destroy removes a container and all its processes.
func (d *driver) Destroy(ctx context.Context, id string) error {
	if strings.HasPrefix(id, "-") || id == "" {
		return nil
	}
	args, gone := []string{"rm", "-f", id}, "no such container"
	if d.options.Engine == apptainer {
		args, gone = []string{"instance", "stop", id}, "no instance found"
	}
	r, err := d.manage(ctx, args...)
	low := strings.ToLower(r.Stderr)
	if err != nil && (strings.Contains(low, gone) || strings.Contains(low, "no container with")) {
		return nil
	}
	return err
}

// Containers lists the containers with our label, or with our names for apptainer.
func (d *driver) Containers(ctx context.Context) (out []sandbox.Container, err error) {
	if d.options.Engine == apptainer {
		r, err := d.manage(ctx, "instance", "list", "--json")
		var list struct {
			Instances []struct{ Instance, Img string }
		}
		if err == nil {
			err = json.Unmarshal([]byte(r.Stdout), &list)
		}
		if err != nil {
			return nil, sandboxError("%w", err)
		}
		for _, i := range list.Instances {
			if strings.HasPrefix(i.Instance, "swe-") {
				out = append(out, sandbox.Container{ID: i.Instance, Name: i.Instance, Spec: sandbox.Spec{Image: i.Img}})
			}
		}
		return out, nil
	}
	r, err := d.manage(ctx, "ps", "-aq", "--no-trunc", "--filter", "label="+label)
	ids := strings.Fields(r.Stdout)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	r, err = d.manage(ctx, append([]string{"inspect", "--format", `{{.Id}} {{.Name}} {{index .Config.Labels "` + label + `"}}`}, ids...)...)
	for _, line := range strings.Split(r.Stdout, "\n") { // a container removed meanwhile is an error, but the others are listed
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

// Images lists the images that need no pull.
func (d *driver) Images(ctx context.Context) ([]string, error) {
	if d.options.Engine == apptainer {
		if d.options.Root == "" {
			return nil, nil // all are pulled
		}
		files, _ := fs.Glob(os.DirFS(d.options.Root), "*.sif")
		return files, nil
	}
	r, err := d.manage(ctx, "images", "--format", "{{.Repository}}:{{.Tag}}")
	return strings.Fields(r.Stdout), err
}
