package play

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing/fstest"
	"time"

	"github.com/turnpack/turnpack/reward/pivot"
	"github.com/turnpack/turnpack/reward/ssr"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
)

// freshCommit replaces the history of a repository by one commit of what git tracks, and
// prints its name. The clock is not part of it: one state has one commit.
const freshCommit = `git ls-files -z > "$S/files"
rm -rf .git
git init -q
git --literal-pathspecs add -f --pathspec-from-file="$S/files" --pathspec-file-nul
GIT_AUTHOR_DATE=2000-01-01T00:00:00Z GIT_COMMITTER_DATE=2000-01-01T00:00:00Z git -c user.name=repository -c user.email=repository@localhost commit -q --no-verify -m "The repository"
git rev-parse HEAD
`

// submit is the command that ends a rollout.
const submit = "SUBMIT"

// maxShown bounds an observation, in characters; half is of either end.
const maxShown = 10_000

// agent is one rollout at work.
type agent struct {
	Options
	repo *Repository
	box  sandbox.Sandbox
	r    *rollout.Rollout
	// tokens that the policy wrote.
	tokens int
}

// begin starts a rollout in a fresh sandbox.
func (o Options) begin(ctx context.Context, repo *Repository, id string, meta map[string]any) (*agent, error) {
	box, err := repo.box(ctx)
	if err != nil {
		return nil, err
	}
	r := &rollout.Rollout{ID: id, Instance: repo.Name + "@" + repo.commit, Metadata: map[string]json.RawMessage{}}
	a := &agent{Options: o, repo: repo, box: box, r: r}
	for key, value := range meta {
		a.note(key, value)
	}
	a.note("prompt_version", PromptVersion)
	return a, nil
}

func (a *agent) note(key string, value any) {
	if text, err := json.Marshal(value); err == nil {
		a.r.Metadata[key] = text
	}
}

// talk has the policy work until it submits or its steps are used up. An error is one of
// the infrastructure, the policy's server included.
func (a *agent) talk(ctx context.Context, task string) error {
	a.r.Messages = []rollout.Message{{Role: rollout.RoleSystem, Content: systemPrompt}, {Role: rollout.RoleUser, Content: task}}
	a.r.Status = rollout.StatusTruncated
	for step := range a.Steps {
		reply, err := a.Policy(ctx, Ask{Rollout: a.r.ID, Step: step, Messages: a.r.Messages})
		if err != nil {
			return err
		}
		if reply.Tokens > 0 {
			a.tokens += reply.Tokens
		} else if a.Count != nil {
			a.tokens += a.Count(reply.Text)
		}
		a.r.Messages = append(a.r.Messages, rollout.Message{Role: rollout.RoleAssistant, Content: reply.Text, Sampled: rollout.SampledByPolicy})
		observation := formatError
		if calls, _, protocol := pivot.TextCalls(reply.Text); protocol == pivot.ProtocolFence && len(calls) == 1 {
			var call struct{ Command string }
			if err := json.Unmarshal([]byte(calls[0].Arguments), &call); err != nil {
				return err
			}
			if strings.TrimSpace(call.Command) == submit {
				a.r.Status, a.r.ExitStatus = rollout.StatusCompleted, "submitted"
				return nil
			}
			res, err := a.box.Exec(ctx, sandbox.Command{Dir: a.repo.Dir, Text: call.Command, Timeout: a.CommandTimeout})
			if err != nil {
				return err
			}
			observation = shown(res)
		}
		if left := a.Steps - step - 1; left > 0 {
			a.r.Messages = append(a.r.Messages, rollout.Message{Role: rollout.RoleUser, Content: fmt.Sprintf("%s\n\n%d steps are left.", observation, left)})
		}
	}
	a.r.ExitStatus = "step_limit"
	return nil
}

func shown(res sandbox.Result) string {
	out := []rune(res.Output())
	text := string(out)
	if len(out) > maxShown {
		text = fmt.Sprintf("%s\n[%d characters left out]\n%s", string(out[:maxShown/2]), len(out)-maxShown, string(out[len(out)-maxShown/2:]))
	}
	end := ""
	if res.End != sandbox.EndExited {
		end = fmt.Sprintf("\nended by: %s", res.End)
	}
	return fmt.Sprintf("exit status: %d%s\noutput:\n%s", res.ExitCode, end, text)
}

// lost marks a rollout that infrastructure ended.
func (a *agent) lost(err error) {
	a.r.Status, a.r.Failure = rollout.StatusFailed, &rollout.Failure{Reason: "infra_error", Detail: err.Error()}
}

// enter prepares the repository and returns what the last commands print.
func (a *agent) enter(ctx context.Context, artifact ssr.Artifact, state ssr.State, last string) (string, error) {
	res, err := (env{a.repo, artifact}).enter(ctx, a.box, state, "set -e\n"+last, 5*time.Minute)
	if err == nil && (res.ExitCode != 0 || res.End != sandbox.EndExited) {
		err = rollout.Errorf(rollout.KindSandbox, rollout.Where{}, "the repository could not be prepared (exit status %d %s): %.500s", res.ExitCode, res.End, res.Stderr)
	}
	return res.Stdout, err
}

// inject has an injector work and reads its artifact; nil is one that is not whole.
func (a *agent) inject(ctx context.Context, strategy Strategy, command string) (*ssr.Artifact, error) {
	prepare := "mkdir -p ~/artifact\n"
	if strategy != History {
		prepare += freshCommit
	}
	if _, err := a.enter(ctx, ssr.Artifact{}, ssr.State{Kind: ssr.Original}, prepare); err != nil {
		return nil, err
	}
	if err := a.talk(ctx, injectPrompt(strategy, command, a.Settings)); err != nil {
		return nil, err
	}
	files := fstest.MapFS{}
	word := nonce()
	text := "cd ~/artifact || exit\n"
	for _, name := range artifactFiles {
		text += fmt.Sprintf("if [ -f %s ]; then cat %s; echo %s %s; fi\n", name, name, word, name)
	}
	res, err := a.box.Exec(ctx, sandbox.Command{Dir: a.repo.Dir, Text: text, Timeout: time.Minute, MaxOutput: maxOutput})
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
		a.note("artifact_error", err.Error())
		return nil, nil
	}
	return &artifact, nil
}

// solve has a solver work on a bug and takes its patch.
func (a *agent) solve(ctx context.Context, bug ssr.Artifact) (string, error) {
	spec, err := bug.Spec()
	if err != nil {
		return "", err
	}
	commit, err := a.enter(ctx, bug, ssr.State{Kind: ssr.Weakened}, freshCommit)
	if err != nil {
		return "", err
	}
	if err := a.talk(ctx, solvePrompt(spec, bug.TestScript)); err != nil {
		return "", err
	}
	res, err := a.box.Exec(ctx, sandbox.Command{Dir: a.repo.Dir, Text: "git add -A && git diff --cached --binary " + strings.TrimSpace(commit), Timeout: time.Minute, MaxOutput: sandbox.MaxPatch})
	if err != nil {
		return "", err
	}
	if res.ExitCode != 0 || res.LeftOut > 0 || res.End != sandbox.EndExited {
		a.note("patch_error", shown(res))
		return "", nil // the repository is the policy's to break
	}
	a.r.Outcome.Submission = &res.Stdout
	return res.Stdout, nil
}
