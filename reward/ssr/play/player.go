package play

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing/fstest"
	"time"

	"github.com/turnpack/turnpack/agent"
	"github.com/turnpack/turnpack/reward/ssr"
	"github.com/turnpack/turnpack/reward/swebench"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/sandbox"
)

// freshCommit is a script that replaces the history of a repository by one commit of the files that
// git tracks, and prints the commit's id. The dates are fixed, so that equal states have equal
// commits.
const freshCommit = `git ls-files -z > "$S/files"
rm -rf .git
git init -q --template=
git --literal-pathspecs add -f --pathspec-from-file="$S/files" --pathspec-file-nul
GIT_AUTHOR_DATE=2000-01-01T00:00:00Z GIT_COMMITTER_DATE=2000-01-01T00:00:00Z git -c user.name=repository -c user.email=repository@localhost commit -q --no-verify -m "The repository"
git rev-parse HEAD
`

// player is one running rollout.
type player struct {
	*round
	task agent.Task
	r    *rollout.Rollout
}

// begin starts a rollout and its recording in a fresh sandbox.
func (p *round) begin(ctx context.Context, id, group string, index int, meta map[string]any) (*player, error) {
	a := &player{round: p, task: agent.Task{ID: id, Group: group, Index: index, Metadata: map[string]json.RawMessage{},
		Instance: swebench.Instance{InstanceID: p.repo.Name + "@" + p.repo.commit}}}
	for key, value := range meta {
		a.addMetadata(key, value)
	}
	a.addMetadata("prompt_version", promptVersion)
	a.r = &rollout.Rollout{ID: id, Group: group, Index: index, Instance: a.task.Instance.InstanceID, Metadata: a.task.Metadata}
	var err error
	if a.task.Sandbox, err = p.repo.box(ctx); err != nil || p.Recorder == nil {
		return a, err
	}
	a.task.Session, err = p.Recorder.Begin(ctx, live.Start{ID: id + "#" + strconv.FormatInt(time.Now().UnixNano(), 10), Group: group, Index: index, Instance: a.r.Instance})
	return a, err
}

// addMetadata stores a value in the metadata of the rollout.
func (a *player) addMetadata(key string, value any) {
	if text, err := json.Marshal(value); err == nil {
		a.task.Metadata[key] = text
	}
}

// errReasonRecorded means that the rollout already records why it has no reward.
var errReasonRecorded = errors.New("the rollout was ended")

// runPolicy runs the policy until it submits or its steps are used up.
func (a *player) runPolicy(ctx context.Context, task string) error {
	a.task.Instance.ProblemStatement = task
	out, err := a.agent.Run(ctx, a.task)
	if err != nil {
		return err
	}
	a.r = out.Rollout
	if s := a.r.Status; s == rollout.StatusFailed || s == rollout.StatusAborted {
		return errReasonRecorded
	}
	return nil
}

// sampledTokens returns the number of tokens that the policy sampled.
func (a *player) sampledTokens() (n int) {
	for _, t := range a.r.Turns {
		if len(t.Output) > 0 || a.Count == nil {
			n += len(t.Output)
		} else {
			n += a.Count(a.r.Messages[t.Message].Content)
		}
	}
	return n
}

// markLost marks the rollout as ended by the infrastructure.
func (a *player) markLost(err error) {
	a.r.Status, a.r.Failure = rollout.StatusFailed, &rollout.Failure{Reason: "infra_error", Detail: strings.ToValidUTF8(err.Error(), "\uFFFD")}
}

// enter puts the repository into a state, runs the commands last and returns their output.
func (a *player) enter(ctx context.Context, artifact ssr.Artifact, state ssr.State, last string) (string, error) {
	res, err := (env{a.repo, artifact}).runInState(ctx, a.task.Sandbox, state, "set -e\n"+last+"rm -rf \"$S\" \"$TMPDIR/parts.tar\"\n", 5*time.Minute) // a solver must not find the bug's patch
	if err == nil && (res.ExitCode != 0 || res.End != sandbox.EndExited) {
		err = rollout.Errorf(rollout.KindSandbox, rollout.Where{}, "the repository could not be prepared (exit status %d %s): %.500s", res.ExitCode, res.End, res.Output())
	}
	return res.Stdout, err
}

// inject runs an injector and returns its artifact, nil if that is incomplete.
func (a *player) inject(ctx context.Context, strategy Strategy, command string) (*ssr.Artifact, error) {
	prepare := "mkdir -p ~/artifact\n"
	if strategy != history {
		prepare += freshCommit
	}
	if _, err := a.enter(ctx, ssr.Artifact{}, ssr.State{Kind: ssr.Original}, prepare); err != nil {
		return nil, err
	}
	if err := a.runPolicy(ctx, injectPrompt(strategy, command, a.Settings)); err != nil {
		return nil, err
	}
	files := fstest.MapFS{}
	word := randomWord()
	text := "cd ~/artifact || exit\n"
	for _, name := range artifactFiles {
		text += fmt.Sprintf("if [ -f %s ]; then cat %s; echo %s %s; fi\n", name, name, word, name)
	}
	res, err := a.task.Sandbox.Exec(ctx, sandbox.Command{Dir: a.repo.Dir, Text: text, Timeout: time.Minute, MaxOutput: maxOutput})
	if err != nil {
		return nil, err
	}
	for rest := res.Stdout; res.LeftOut == 0; {
		content, after, found := strings.Cut(rest, word+" ")
		name, after, _ := strings.Cut(after, "\n")
		if !found {
			break
		}
		files[name] = &fstest.MapFile{Data: []byte(content)}
		rest = after
	}
	artifact, err := ssr.Load(files)
	if err != nil {
		a.addMetadata("artifact_error", err.Error())
		return nil, nil
	}
	return &artifact, nil
}

// solve runs a solver on a bug and returns its patch.
func (a *player) solve(ctx context.Context, bug ssr.Artifact) (string, error) {
	spec, err := bug.Spec()
	if err != nil {
		return "", err
	}
	commit, err := a.enter(ctx, bug, ssr.State{Kind: ssr.Weakened}, freshCommit)
	if err != nil {
		return "", err
	}
	if err := a.runPolicy(ctx, solvePrompt(spec, bug.TestScript)); err != nil {
		return "", err
	}
	res, err := sandbox.GitDiff(ctx, a.task.Sandbox, a.repo.Dir, strings.TrimSpace(commit))
	if err != nil {
		return "", err
	}
	if res.ExitCode != 0 || res.LeftOut > 0 || res.End != sandbox.EndExited {
		a.addMetadata("patch_error", fmt.Sprintf("git diff: exit status %d %s: %.2000s", res.ExitCode, res.End, res.Output()))
		return "", nil // a repository broken by the policy is a failed attempt
	}
	a.r.Outcome.Submission = &res.Stdout
	return res.Stdout, nil
}
