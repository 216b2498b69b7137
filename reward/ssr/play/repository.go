package play

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/reward/ssr"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
)

// Repository is the repository of a self-play round.
type Repository struct {
	Name string // "" = the image
	// Provider creates sandboxes with the repository from Image. They need git, bash, tar and the
	// dependencies of the tests.
	Provider sandbox.Provider
	Image    string
	Dir      string // folder of the repository in a sandbox; "" = sandbox.DefaultDir
	// Files holds the repository at its commit.
	Files patch.Tree
	// TestTimeout bounds a run of the test script, including the time to make the state, and a run of
	// the parser; 0 = 90 seconds, as in the paper.
	TestTimeout time.Duration
	// Repeats is the number of runs of the original suite to find flaky tests; 0 = 3.
	Repeats int

	commit string
	suites *suites
}

// suites caches the results of test scripts on the original repository.
type suites struct {
	mu   sync.Mutex
	made map[string]*suite
}

type suite struct {
	once   sync.Once
	output string
	flaky  map[string]bool
	err    error
}

// Open returns r with defaults set, ready for Round. It checks that the image holds a git repository
// at a commit, without uncommitted changes.
func Open(ctx context.Context, r Repository) (*Repository, error) {
	if r.Provider == nil || r.Image == "" || len(r.Files) == 0 {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "a repository needs Provider, Image and Files")
	}
	if r.TestTimeout <= 0 {
		r.TestTimeout = 90 * time.Second
	}
	if r.Repeats <= 0 {
		r.Repeats = 3
	}
	r.Name = cmp.Or(r.Name, r.Image)
	r.Dir = cmp.Or(r.Dir, sandbox.DefaultDir)
	r.suites = &suites{made: map[string]*suite{}}
	box, err := r.box(ctx)
	if err != nil {
		return nil, err
	}
	defer closeSandbox(ctx, box)
	res, err := box.Exec(ctx, sandbox.Command{Dir: r.Dir, Text: "git rev-parse HEAD && git status --porcelain"})
	if err != nil {
		return nil, err
	}
	commit, changes, _ := strings.Cut(res.Stdout, "\n")
	switch {
	case res.ExitCode != 0:
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Image"}, "%s holds no git repository with a commit: %s", r.Image, strings.TrimSpace(res.Stderr))
	case changes != "":
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Image"}, "the repository has changes that are not committed: %.200s", changes).WithFix("commit them, or have git ignore them")
	}
	r.commit = commit
	return &r, nil
}

// Commit returns the id of the repository's commit.
func (r *Repository) Commit() string { return r.commit }

// flaky returns the tests found to be flaky so far, sorted.
func (r *Repository) flaky() []string {
	r.suites.mu.Lock()
	defer r.suites.mu.Unlock()
	all := map[string]bool{}
	for _, s := range r.suites.made {
		maps.Copy(all, s.flaky)
	}
	out := slices.AppendSeq([]string{}, maps.Keys(all)) // an empty list, not nil, if there is none
	slices.Sort(out)
	return out
}

func (r *Repository) box(ctx context.Context) (sandbox.Sandbox, error) {
	return r.Provider.Create(ctx, sandbox.Spec{Image: r.Image, Dir: r.Dir})
}

// closeSandbox closes a sandbox, even if ctx is done.
func closeSandbox(ctx context.Context, box sandbox.Sandbox) {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	_ = box.Close(end) // the provider removes sandboxes that fail to close
}

// newEnv returns the environment for the checks of a.
func (r *Repository) newEnv(a ssr.Artifact) ssr.Env { return env{r, a} }

type env struct {
	repo     *Repository
	artifact ssr.Artifact
}

// HasFile reports whether the repository holds the path.
func (e env) HasFile(_ context.Context, path string) (bool, error) {
	_, there := e.repo.Files[path]
	return there, nil
}

// Run runs the tests in a state. Its output leaves out flaky tests.
func (e env) Run(ctx context.Context, state ssr.State) (string, error) {
	s := e.suite(ctx)
	if s.err != nil || state.Kind == ssr.Original {
		return s.output, s.err
	}
	output, err := e.run(ctx, state)
	return without(output, s.flaky), err
}

// suite returns the results of the original suite, run several times to find flaky tests. Artifacts
// with the same script and parser share the runs.
func (e env) suite(ctx context.Context) *suite {
	key := e.artifact.TestScript + "\x00" + e.artifact.TestParser
	e.repo.suites.mu.Lock()
	s := e.repo.suites.made[key]
	if s == nil {
		s = &suite{}
		e.repo.suites.made[key] = s
	}
	e.repo.suites.mu.Unlock()
	s.once.Do(func() {
		var first ssr.Results
		flaky := map[string]bool{}
		for i := range e.repo.Repeats {
			output, err := e.run(ctx, ssr.State{Kind: ssr.Original})
			if err != nil {
				s.err = err
				break
			}
			results, reason := ssr.ParseResults(output)
			if i == 0 {
				s.output, first = output, results
			}
			if first == nil {
				break // the suite never ran: check 2 reports why
			}
			if reason != "" {
				s.output = output // the suite does not always run, so it is not reliable
				break
			}
			for _, some := range []ssr.Results{first, results} {
				for test := range some {
					if first[test] != results[test] {
						flaky[test] = true
					}
				}
			}
		}
		s.output = without(s.output, flaky)
		e.repo.suites.mu.Lock()
		s.flaky = flaky
		e.repo.suites.mu.Unlock()
	})
	if s.err != nil {
		e.repo.suites.mu.Lock()
		if e.repo.suites.made[key] == s {
			delete(e.repo.suites.made, key) // a failure of the infrastructure: try again next time
		}
		e.repo.suites.mu.Unlock()
	}
	return s
}

// without returns the output of a parser without some tests.
func without(output string, tests map[string]bool) string {
	var results map[string]json.RawMessage
	if len(tests) == 0 || json.Unmarshal([]byte(output), &results) != nil {
		return output
	}
	for t := range tests {
		delete(results, t)
	}
	text, err := json.Marshal(results)
	if err != nil {
		return output
	}
	return string(text)
}

// randomWord returns a word that no script prints by accident.
func randomWord() string { return "turnpack" + rand.Text() }

// errPatchDoesNotApply means that a patch of the state does not apply.
var errPatchDoesNotApply = errors.New("a patch does not apply")

// runInState puts a sandbox into a state and then runs the commands then, within the given time. ended is
// the result of these commands, with only their output in Stdout.
func (e env) runInState(ctx context.Context, box sandbox.Sandbox, state ssr.State, then string, within time.Duration) (ended sandbox.Result, err error) {
	script, err := stateScript(e.repo.commit, e.artifact, state)
	if err != nil {
		return ended, errPatchDoesNotApply
	}
	// The script prints one word if a patch does not apply and another after the state is made; any
	// other output is a failure of the infrastructure.
	no, made := randomWord(), randomWord()
	text := "NO=" + no + "\n" + script + "echo " + made + "\nset +e\n" + then
	ended, err = box.Exec(ctx, sandbox.Command{Dir: e.repo.Dir, Text: text, Timeout: within, MaxOutput: maxOutput})
	if err != nil {
		return ended, err
	}
	if _, output, ok := strings.Cut(ended.Stdout, made+"\n"); ok {
		ended.Stdout = output
		return ended, nil
	}
	if strings.Contains(ended.Stdout, no) {
		return ended, errPatchDoesNotApply
	}
	return ended, rollout.Errorf(rollout.KindSandbox, rollout.Where{}, "the state %s could not be made (exit status %d %s): %.500s", state, ended.ExitCode, ended.End, ended.Stderr)
}

func (e env) run(ctx context.Context, state ssr.State) (string, error) {
	box, err := e.repo.box(ctx)
	if err != nil {
		return "", err
	}
	defer closeSandbox(ctx, box)
	test, err := e.runInState(ctx, box, state, writeTextScript("test_script.sh", e.artifact.TestScript)+`exec bash "$TMPDIR/test_script.sh" < /dev/null`, e.repo.TestTimeout)
	if errors.Is(err, errPatchDoesNotApply) {
		return "", nil // empty output: no test passes
	}
	if err != nil {
		return "", err
	}
	interpreter := "python3 "
	if strings.HasPrefix(e.artifact.TestParser, "#!") {
		interpreter = "chmod +x \"$TMPDIR/test_parser\"; exec "
	}
	parsed, err := box.Exec(ctx, sandbox.Command{Dir: e.repo.Dir, Text: writeTextScript("test_parser", e.artifact.TestParser) + writeBytesScript("test_output", []byte(test.Output())) + interpreter + `"$TMPDIR/test_parser" < "$TMPDIR/test_output"`, Timeout: e.repo.TestTimeout, MaxOutput: maxOutput})
	return parsed.Stdout, err
}

// maxOutput bounds the output of tests and of parsers.
const maxOutput = 16 << 20

// writeTextScript returns a script that writes a text file to the folder for temporary files.
func writeTextScript(name, content string) string {
	word := randomWord()
	return `export TMPDIR="${TMPDIR:-/tmp}"; cat > "$TMPDIR/` + name + `" <<'` + word + "'\n" + strings.TrimSuffix(content, "\n") + "\n" + word + "\n"
}

// writeBytesScript returns a script that writes a file of arbitrary bytes to the folder for temporary files:
// sandboxes of a pool have no standard input.
func writeBytesScript(name string, content []byte) string {
	return `export TMPDIR="${TMPDIR:-/tmp}"; base64 -d > "$TMPDIR/` + name + "\" <<'END'\n" + base64.StdEncoding.EncodeToString(content) + "\nEND\n"
}

// stateScript returns a script that makes a state with git, as ssr.Artifact.Tree does in memory.
func stateScript(commit string, a ssr.Artifact, state ssr.State) (string, error) {
	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	var b strings.Builder
	n := 0
	file := func(content string) string {
		name := fmt.Sprintf("part%d", n)
		n++
		// Writing to a buffer does not fail.
		_ = archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))})
		_, _ = archive.Write([]byte(content))
		return name
	}
	apply := func(text string) {
		if strings.TrimSpace(text) != "" {
			fmt.Fprintf(&b, "git apply --cached --whitespace=nowarn \"$S/%s\" 2>/dev/null || { echo $NO; exit 0; }\n", file(text))
		}
	}
	restore := func(tree string, names []string) {
		if len(names) == 0 {
			return
		}
		list := file(strings.Join(names, "\x00") + "\x00")
		fmt.Fprintf(&b, `mapfile -d '' -t F < "$S/%s"
git --literal-pathspecs rm -rqf --cached --ignore-unmatch --pathspec-from-file="$S/%s" --pathspec-file-nul
git --literal-pathspecs ls-tree -r -z %s -- "${F[@]}" | git update-index --replace -z --index-info
`, list, list, tree)
	}
	if state.Kind != ssr.Original {
		fmt.Fprintf(&b, "export GIT_INDEX_FILE=\"$S/index\"\ngit read-tree %s\n", commit)
		apply(a.Bug)
		if state.Kind == ssr.Weakened || state.Kind == ssr.Repaired || len(a.Attempts) > 0 {
			apply(a.Weaken)
			b.WriteString("W=$(git write-tree)\n")
		}
		for _, attempt := range a.Attempts {
			apply(attempt)
		}
		weaken, err := patch.Parse(a.Weaken)
		if err != nil {
			return "", err
		}
		switch state.Kind {
		case ssr.Repaired:
			apply(state.Fix)
			restore(commit, a.TestFiles)
		case ssr.Weakened:
			restore("$W", a.TestFiles)
		default:
			restore(commit, a.TestFiles)
			restore(commit, weaken.Touched())
			if state.Kind == ssr.Inverse {
				restore(commit, []string{state.File})
			}
		}
		b.WriteString("T=$(git write-tree)\nunset GIT_INDEX_FILE\ngit read-tree -u --reset $T\n")
	}
	err := archive.Close()
	return "set -e\nS=$(mktemp -d)\n" + writeBytesScript("parts.tar", files.Bytes()) + "tar -x -C \"$S\" -f \"$TMPDIR/parts.tar\"\n" + b.String(), err
}
