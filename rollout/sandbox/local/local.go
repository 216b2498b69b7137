package local

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/internal/process"
)

// Options configures New.
type Options struct {
	Root   string // folder of the images; each image is a folder below it
	Work   string // folder of the containers; Root/.containers if empty
	Limits sandbox.Limits
	// Env is added to the environment of commands, which otherwise has only PATH of this process.
	Env map[string]string
	// NoLogin runs commands in bash -c: no profile of this machine is read.
	NoLogin bool

	every time.Duration // interval between checks of memory and processes, for tests; 0 = the default of process.Run
}

// driver is a sandbox.Driver. New makes one.
type driver struct {
	options Options
	table   process.Table
	// commands numbers the commands, which identifies their processes.
	commands atomic.Int64
}

// New returns the driver for a folder of images.
func New(o Options) (sandbox.Driver, error) {
	if o.Root == "" {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Root"}, "it is empty").WithFix("name the folder of the images")
	}
	var err error
	if o.Limits, err = process.Limits(o.Limits); err != nil {
		return nil, err
	}
	if o.Root, err = filepath.Abs(o.Root); err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Root"}, "%w", err)
	}
	if o.Work == "" {
		o.Work = filepath.Join(o.Root, ".containers")
	}
	if o.Work, err = filepath.Abs(o.Work); err == nil {
		err = os.MkdirAll(o.Work, 0o755)
	}
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Work"}, "%w", err)
	}
	if !plain.MatchString(o.Work) {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Work"}, "%q has characters that mean something to a shell", o.Work).WithFix("choose another folder")
	}
	return &driver{options: o}, nil
}

// The files and folders of a container.
const (
	repoFolder = "testbed"
	homeFolder = "home"
	tempFolder = "tmp"
	infoFile   = "container.json"
	profile    = ".bash_profile"
)

func sandboxError(format string, args ...any) error {
	return rollout.Errorf(rollout.KindSandbox, rollout.Where{}, format, args...)
}

// Create copies the folder of the image.
func (d *driver) Create(ctx context.Context, name string, spec sandbox.Spec) (id string, err error) {
	image := filepath.Join(d.options.Root, filepath.FromSlash(spec.Image))
	if !filepath.IsLocal(filepath.FromSlash(spec.Image)) || !folder(image) {
		return "", sandboxError("there is no image %q below %s", spec.Image, d.options.Root)
	}
	dir := filepath.Join(d.options.Work, name)
	if !named.MatchString(name) {
		return "", sandboxError("%q is no name of a container", name)
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	for _, sub := range []string{repoFolder, homeFolder, tempFolder} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return "", sandboxError("%w", err)
		}
	}
	r, err := process.Run(ctx, process.Options{Args: []string{"cp", "-a", image + "/.", filepath.Join(dir, repoFolder)}, MaxOutput: 4096})
	if err == nil && r.ExitCode != 0 {
		err = sandboxError("the image %q could not be copied: %s", spec.Image, strings.TrimSpace(r.Stderr))
	}
	if err != nil {
		return "", err
	}
	// A login shell takes PATH from the machine's profile; this line restores ours.
	err = os.WriteFile(filepath.Join(dir, homeFolder, profile), []byte("export PATH=\"$SANDBOX_PATH\"\n"), 0o644)
	if err != nil {
		return "", sandboxError("%w", err)
	}
	info, err := json.Marshal(sandbox.Container{ID: name, Name: name, Spec: spec, Created: time.Now()})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, infoFile), info, 0o644)
	}
	if err != nil {
		return "", sandboxError("%w", err)
	}
	return name, nil
}

// plain matches a path that can replace /testbed in a command, quoted or not.
var plain = regexp.MustCompile(`^[\w./@+=:,-]+$`)

// named matches valid container names, which become folder names.
var named = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

func folder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// dir returns the folder of an existing container.
func (d *driver) dir(id string) (string, error) {
	dir := filepath.Join(d.options.Work, id)
	if !named.MatchString(id) || !folder(dir) {
		return "", sandboxError("there is no container %q", id)
	}
	return dir, nil
}

// Exec runs a command in the container's folder. In the directory, the text and the environment /testbed is
// replaced by the repository's path on this machine, and in the output the path by /testbed.
func (d *driver) Exec(ctx context.Context, id string, c sandbox.Command) (sandbox.Result, error) {
	dir, err := d.dir(id)
	if err != nil {
		return sandbox.Result{}, err
	}
	c = c.With()
	repo := filepath.Join(dir, repoFolder)
	inside := func(s string) string {
		for range 2 { // a match includes the character before and after it
			s = testbed.ReplaceAllString(s, "${1}"+repo+"${2}")
		}
		return s
	}
	work := inside(c.Dir)
	if !filepath.IsAbs(work) {
		work = filepath.Join(repo, work)
	}
	env := map[string]string{"PATH": os.Getenv("PATH"), "HOME": filepath.Join(dir, homeFolder), "TMPDIR": filepath.Join(dir, tempFolder), "LANG": "C.UTF-8", "TERM": "dumb",
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
	for _, more := range []map[string]string{d.options.Env, c.Env} {
		for name, value := range more {
			env[name] = inside(value)
		}
	}
	env["SANDBOX_PATH"] = env["PATH"] // for the profile that Create writes
	// These identify processes that left their parents.
	env["SANDBOX_ID"], env["SANDBOX_EXEC"] = id, fmt.Sprintf("%s-%d-%d", id, time.Now().UnixNano(), d.commands.Add(1))
	var list []string
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	if !folder(work) {
		// As docker does: the command fails, the sandbox is intact.
		return sandbox.Result{ExitCode: 126, Stderr: fmt.Sprintf("chdir to cwd (%q) failed: no such directory\n", c.Dir)}, nil
	}
	args, stdin := process.Shell(inside(c.Text), c.Stdin)
	if d.options.NoLogin {
		args[1] = "-c"
	}
	r, err := process.Run(ctx, process.Options{Args: args, Dir: work, Env: list, Stdin: stdin, Timeout: c.Timeout, MaxOutput: c.MaxOutput,
		Limits: d.options.Limits, Mark: "SANDBOX_EXEC=" + env["SANDBOX_EXEC"], Every: d.options.every, Table: &d.table})
	if repo != sandbox.DefaultDir {
		r.Stdout = strings.ReplaceAll(r.Stdout, repo, sandbox.DefaultDir)
		r.Stderr = strings.ReplaceAll(r.Stderr, repo, sandbox.DefaultDir)
	}
	return r, err
}

// testbed matches /testbed as a whole path or path prefix.
var testbed = regexp.MustCompile(`(^|[^\w./-])/testbed(/|[^\w./-]|$)`)

// Destroy kills the processes of the container and removes its folder.
func (d *driver) Destroy(ctx context.Context, id string) error {
	dir, err := d.dir(id)
	if err != nil {
		return nil
	}
	process.KillMarked("SANDBOX_ID=" + id)
	if err = os.RemoveAll(dir); err != nil && ctx.Err() == nil {
		// Folders that a command made read-only can be emptied after a chmod.
		filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if e != nil && e.IsDir() {
				os.Chmod(path, 0o700)
			}
			return nil
		})
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return sandboxError("%s was not removed: %w", id, err)
	}
	return nil
}

// Containers lists the containers that Create recorded.
func (d *driver) Containers(context.Context) ([]sandbox.Container, error) {
	list, err := os.ReadDir(d.options.Work)
	if err != nil {
		return nil, sandboxError("%w", err)
	}
	var out []sandbox.Container
	for _, e := range list {
		c := sandbox.Container{ID: e.Name(), Name: e.Name()}
		if text, err := os.ReadFile(filepath.Join(d.options.Work, e.Name(), infoFile)); err == nil {
			_ = json.Unmarshal(text, &c) // a kill while the container was created leaves no file, or a part
		}
		if e.IsDir() {
			out = append(out, c)
		}
	}
	return out, nil
}

// Images lists the folders below the root that contain files.
func (d *driver) Images(context.Context) ([]string, error) {
	var out []string
	err := filepath.WalkDir(d.options.Root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || path == d.options.Root {
			return err
		}
		rel, _ := filepath.Rel(d.options.Root, path)
		if strings.HasPrefix(e.Name(), ".") || path == d.options.Work || strings.Count(rel, string(filepath.Separator)) > 4 {
			return fs.SkipDir
		}
		list, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(list, func(e fs.DirEntry) bool { return !e.IsDir() || e.Name() == ".git" }) {
			out = append(out, filepath.ToSlash(rel))
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, sandboxError("%w", err)
	}
	return out, nil
}
