package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
)

// maxPatch is the maximum size of a patch, in bytes.
const maxPatch = 64 << 20

// On returns the provider of a driver: sandboxes on this machine. Create starts a container and records the
// state of its repository, if it has one.
func On(d Driver) Provider { return local{d} }

type local struct{ driver Driver }

func (p local) Create(ctx context.Context, spec Spec) (Sandbox, error) {
	if p.driver == nil {
		return nil, noDriver()
	}
	if spec.Image == "" {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "image"}, "it is empty")
	}
	if spec.Dir == "" {
		spec.Dir = DefaultDir
	}
	b := &box{driver: p.driver, at: Container{Name: "swe-" + random(6), Spec: spec, Created: time.Now()}}
	id, err := p.driver.Create(ctx, b.at.Name, spec)
	if err != nil {
		return nil, err
	}
	b.at.ID = id
	if err := b.recordState(ctx); err != nil {
		// The container must be removed even if ctx has ended.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return nil, errors.Join(err, b.Close(end))
	}
	return b, nil
}

// Adopt returns sandboxes for a driver's existing containers, for example those of a killed server. They run
// commands, but do not evaluate, since their initial state is unknown.
func Adopt(ctx context.Context, d Driver) ([]Sandbox, error) {
	if d == nil {
		return nil, noDriver()
	}
	list, err := d.Containers(ctx)
	var out []Sandbox
	for _, c := range list {
		out = append(out, &box{driver: d, at: c})
	}
	return out, err
}

func noDriver() error {
	return rollout.Errorf(rollout.KindInput, rollout.Where{}, "there is no driver").WithFix("make one with package local or container")
}

// box is a sandbox on a driver.
type box struct {
	at      Container
	driver  Driver
	commit  string          // initial commit of the repository, "" if there is none
	ignored map[string]bool // files that git ignores and the image contains; nil if unknown

	mu     sync.Mutex
	closed bool
}

func (b *box) Container() Container { return b.at }

func (b *box) Exec(ctx context.Context, c Command) (Result, error) {
	if err := c.Validate(); err != nil {
		return Result{}, err
	}
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	if closed {
		return Result{}, rollout.Errorf(rollout.KindSandbox, rollout.Where{}, "the sandbox %s is closed", b.at.ID)
	}
	return b.driver.Exec(ctx, b.at.ID, c.With())
}

func (b *box) Close(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	if err := b.driver.Destroy(ctx, b.at.ID); err != nil {
		return err
	}
	b.closed = true
	return nil
}

// gitTime is the time limit of commands that inspect or reset a repository.
const gitTime = time.Minute

func (b *box) git(ctx context.Context, dir, text string, stdin []byte) (Result, error) {
	return b.Exec(ctx, Command{Text: text, Dir: dir, Timeout: gitTime, MaxOutput: maxPatch, Stdin: stdin})
}

const listIgnored = "git ls-files -z --others --ignored --exclude-standard"

// recordState records the initial state of the repository, where an agent cannot change it.
func (b *box) recordState(ctx context.Context) error {
	r, err := b.git(ctx, b.at.Spec.Dir, "git rev-parse HEAD && "+listIgnored, nil)
	if err != nil || r.End != EndExited || r.ExitCode != 0 || r.LeftOut > 0 {
		return err // no repository with a commit: there is nothing to compare with
	}
	commit, files, _ := strings.Cut(r.Stdout, "\n")
	b.commit, b.ignored = commit, map[string]bool{}
	for _, f := range strings.Split(files, "\x00") {
		b.ignored[f] = true
	}
	return nil
}

// GitDiff runs git for the patch of everything that changed since a commit, HEAD if empty. Binary files are
// included in full, and so is every file where the text of a patch would not be UTF-8, which no JSON holds.
func GitDiff(ctx context.Context, s Sandbox, dir, commit string) (Result, error) {
	c := Command{Text: "git add -A && git diff --cached --binary " + commit, Dir: dir, Timeout: gitTime, MaxOutput: maxPatch}
	r, err := s.Exec(ctx, c)
	if err != nil || !strings.ContainsRune(r.Stdout, utf8.RuneError) { // of a server elsewhere, what became of other bytes
		return r, err
	}
	if commit == "" {
		commit = "$(git rev-parse HEAD)"
	}
	// The attributes of a repository of its own: those of the agent's may say that its files are text.
	c.Text = `C=` + commit + ` O=$(git rev-parse --git-path objects) I=$(git rev-parse --git-path index) G=$(mktemp -d)
git init -q --bare --template= "$G" && mkdir "$G/info" && echo "* -diff" > "$G/info/attributes" &&
	GIT_OBJECT_DIRECTORY=$O GIT_INDEX_FILE=$I git --git-dir="$G" -c core.quotepath=true diff --cached --binary "$C"
C=$?
rm -rf "$G"
exit $C`
	return s.Exec(ctx, c)
}

// Diff returns the patch from the sandbox's initial commit, so it includes what an agent committed.
func (b *box) Diff(ctx context.Context, dir string) (string, error) {
	commit := b.commit
	if dir != "" && dir != b.at.Spec.Dir {
		commit = ""
	}
	r, err := GitDiff(ctx, b, dir, commit)
	switch {
	case err != nil:
	case r.LeftOut > 0:
		err = rollout.Errorf(rollout.KindLimit, rollout.Where{}, "the patch of %s is larger than %d bytes", b.at.ID, maxPatch).
			WithFix("have git ignore what the agent's commands make")
	case r.End != EndExited:
		err = rollout.Errorf(rollout.KindSandbox, rollout.Where{}, "git diff in %s was ended: %s", dir, r.End)
	case r.ExitCode != 0:
		err = rollout.Errorf(rollout.KindInput, rollout.Where{}, "git gives no patch of %s: %w", dir, noPatch(r))
	}
	return r.Stdout, err
}

// noPatch is git's result in place of a patch, complete, for servers that pass it on.
type noPatch Result

func (n noPatch) Error() string { return tail(n.Stderr, 500) }

func (n noPatch) Result() Result { return Result(n) }

// Evaluate resets the repository to its initial commit, removes every file that the image did not contain, even
// ignored ones, applies the patch and runs the script. It does not restore ignored files of the image that an
// agent changed, nor anything outside the repository: for a reliable verdict evaluate in a sandbox that no
// agent used.
func (b *box) Evaluate(ctx context.Context, e Evaluation) (Verdict, error) {
	if !strings.Contains(e.Patch, "diff --git ") {
		return Verdict{Reason: "patch validation failed: expected unified git diff with diff --git headers"}, nil
	}
	if b.ignored == nil && b.commit == "" {
		return Verdict{}, rollout.Errorf(rollout.KindSandbox, rollout.Where{}, "how %s began is not known: it has no repository, or an earlier server made it", b.at.ID).
			WithFix("evaluate in a fresh sandbox")
	}
	if e.Timeout <= 0 {
		e.Timeout = DefaultEvaluateTimeout
	}
	if e.MaxOutput <= 0 {
		e.MaxOutput = EvaluateOutput
	}
	r, err := b.reset(ctx, e)
	if err != nil {
		return Verdict{}, err
	}
	if r.End != EndExited || r.ExitCode != 0 {
		reason := r.Stderr
		if r.End != EndExited {
			reason += "ended by " + string(r.End)
		}
		return Verdict{Reason: "git apply failed: " + tail(reason, EvaluateOutput), ExitCode: r.ExitCode, End: r.End}, nil
	}
	script := e.Script
	if strings.TrimSpace(script) == "" {
		script = ":" // an empty script succeeds
	}
	r, err = b.Exec(ctx, Command{Text: script, Dir: e.Dir, Timeout: e.Timeout, MaxOutput: 8 * max(e.MaxOutput, defaultMaxOutput)})
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Resolved: r.End == EndExited && r.ExitCode == 0, ExitCode: r.ExitCode, Output: tail(r.Output(), e.MaxOutput), End: r.End, Peak: r.Peak}
	switch r.End {
	case EndTimeout:
		v.Reason = TimedOut("Evaluation", e.Timeout)
	case EndOOM, EndPids:
		v.Reason = "Evaluation ended by " + string(r.End)
	}
	return v, nil
}

// TimedOut returns the message for a time-out of swe-rl's servers.
func TimedOut(what string, after time.Duration) string {
	return fmt.Sprintf("%s timed out after %ss", what, strings.TrimSuffix(fmt.Sprintf("%.3f", after.Seconds()), ".000"))
}

// reset restores the repository and applies the patch.
func (b *box) reset(ctx context.Context, e Evaluation) (Result, error) {
	r, err := b.git(ctx, e.Dir, "git reset -q --hard "+b.commit+" && git clean -qffd && "+listIgnored, nil)
	if err != nil || r.End != EndExited || r.ExitCode != 0 {
		return r, err
	}
	var added []string
	for _, f := range strings.Split(r.Stdout, "\x00") {
		if !b.ignored[f] {
			added = append(added, f)
		}
	}
	if len(added) > 0 {
		slices.Sort(added)
		if r, err = b.git(ctx, e.Dir, "xargs -0 rm -rf -- && git clean -qffd", []byte(strings.Join(added, "\x00"))); err != nil || r.End != EndExited || r.ExitCode != 0 {
			return r, err
		}
	}
	return b.git(ctx, e.Dir, "git apply -", []byte(strings.TrimSuffix(e.Patch, "\n")+"\n"))
}

// random returns n random bytes in hexadecimal.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
