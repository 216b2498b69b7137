package sandbox

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
)

// The defaults of zero fields, as in swe-rl.
const (
	DefaultDir             = "/testbed"
	DefaultTimeout         = 180 * time.Second
	DefaultEvaluateTimeout = time.Hour
	defaultMaxOutput       = 1 << 20
)

// Provider makes sandboxes: with a driver on this machine (On), or on servers elsewhere (package swerl). It is
// safe for concurrent use.
type Provider interface {
	// Create returns a fresh sandbox, or a KindSandbox error if none is available.
	Create(context.Context, Spec) (Sandbox, error)
}

// Spec describes a sandbox to create.
type Spec struct {
	Image string
	Dir   string // of the repository; DefaultDir if empty
	// Instance names the task in records, Lease and Pool the owner of the container: the container keeps them
	// as labels, from which a restarted pool finds its leases.
	Instance, Lease, Pool string
}

// Sandbox is one container in which an agent works. It is safe for concurrent use.
//
// An error means that the sandbox did not do what was requested: KindSandbox is infrastructure (a lost node, an
// expired lease), KindInput an invalid request. A failing command is never an error: see Result.End.
type Sandbox interface {
	// Container returns the container's ID and its other known properties.
	Container() Container
	Exec(context.Context, Command) (Result, error)
	// Diff returns the patch from the sandbox's initial state to the current one, including new files. It
	// returns a KindLimit error if the patch is larger than 64 MiB, and a KindInput error if git makes none.
	Diff(ctx context.Context, dir string) (string, error)
	// Evaluate resets the repository, applies a patch and runs a script.
	Evaluate(context.Context, Evaluation) (Verdict, error)
	// Close frees everything; a second call does nothing. After an error the container may still exist, and
	// Close can be called again.
	Close(context.Context) error
}

// Command is a text for bash -lc.
type Command struct {
	Text      string
	Dir       string            // DefaultDir if empty
	Timeout   time.Duration     // DefaultTimeout if 0
	Env       map[string]string // added to the container's environment
	MaxOutput int               // bytes kept of each stream, from its beginning and end; 1 MiB if 0
	// Stdin is the command's standard input. Drivers support it; servers of swe-rl do not.
	Stdin []byte
}

// With returns the command with defaults for its zero fields.
func (c Command) With() Command {
	c.Dir, c.Timeout, c.MaxOutput = cmp.Or(c.Dir, DefaultDir), cmp.Or(max(c.Timeout, 0), DefaultTimeout), cmp.Or(max(c.MaxOutput, 0), defaultMaxOutput)
	return c
}

// Validate returns an error if no shell could run the command.
func (c Command) Validate() error {
	for _, x := range [][2]string{{"command", c.Text}, {"cwd", c.Dir}} {
		if strings.IndexByte(x[1], 0) >= 0 {
			return rollout.Errorf(rollout.KindInput, rollout.Where{Field: x[0]}, "it holds a NUL byte")
		}
	}
	if strings.TrimSpace(c.Text) == "" {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "command"}, "it is empty")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.IndexByte(c.Env[name], 0) >= 0 {
			return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "env"}, "%q is no variable of an environment", name)
		}
	}
	return nil
}

// End says how a command ended. The zero value is EndExited.
type End string

// The ways in which a command ends.
const (
	EndExited  End = ""        // with Result.ExitCode
	EndTimeout End = "timeout" // it exceeded its time and all its processes were killed
	EndOOM     End = "oom"     // it exceeded the memory limit
	EndPids    End = "pids"    // it exceeded the limit on processes
)

// Result is the result of a command.
type Result struct {
	ExitCode int    // -1 after a timeout, 137 for EndOOM and EndPids
	Stdout   string // with a line about LeftOut if bytes are missing
	Stderr   string // empty from servers, which send both streams as one
	LeftOut  int64  // bytes that are in neither stream
	End      End
	Peak     int64 // maximum resident memory measured, in bytes; 0 = not measured
}

// Output returns what the agent sees: standard output, then standard error.
func (r Result) Output() string { return r.Stdout + r.Stderr }

// Evaluation is a patch and the script that evaluates it.
type Evaluation struct {
	Patch     string
	Script    string
	Dir       string        // DefaultDir if empty
	Timeout   time.Duration // of the script; DefaultEvaluateTimeout if 0
	MaxOutput int           // characters of Verdict.Output; EvaluateOutput if 0
}

// EvaluateOutput is how many characters of an evaluation's log the servers of swe-rl send. Grading by test
// lists (reward/swebench) needs more: set Evaluation.MaxOutput.
const EvaluateOutput = 2000

// Verdict is the result of an evaluation.
type Verdict struct {
	// Resolved says that the script exited with 0. If an instance names its tests, grade Output by them
	// instead.
	Resolved bool
	ExitCode int
	Output   string // the last characters of the script's output
	// Reason says why the script did not run to its end, "" if it did: the patch is invalid or does not apply,
	// or the time ran out.
	Reason string
	End    End
	Peak   int64
}

// tail returns the last n characters of s.
func tail(s string, n int) string {
	at := len(s)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return s[at:]
}
