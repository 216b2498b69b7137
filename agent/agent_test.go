package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/reward/swebench"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize/embedded"
	"github.com/turnpack/turnpack/tokenize/exact"
)

const aPatch = "diff --git a/pager.py b/pager.py\nindex 1111111..2222222 100644\n--- a/pager.py\n+++ b/pager.py\n@@ -1 +1 @@\n-a\n+b\n"

// box is a sandbox with fixed answers by command.
type box struct {
	answers map[string]sandbox.Result
	fails   map[string]error
	diff    string
	verdict sandbox.Verdict
	slow    bool
	ran     []string
}

func (b *box) Container() sandbox.Container { return sandbox.Container{ID: "box"} }
func (b *box) Exec(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	b.ran = append(b.ran, c.Text)
	if b.slow {
		<-ctx.Done()
		return sandbox.Result{}, ctx.Err()
	}
	return b.answers[c.Text], b.fails[c.Text]
}
func (b *box) Diff(context.Context, string) (string, error) { return b.diff, b.fails["diff"] }
func (b *box) Evaluate(context.Context, sandbox.Evaluation) (sandbox.Verdict, error) {
	return b.verdict, b.fails["evaluate"]
}
func (b *box) Close(context.Context) error { return nil }

// script is a Model of fixed replies that records its requests.
type script struct {
	replies []rollout.Message
	sent    [][]rollout.Message
}

func (s *script) Reply(_ context.Context, r Request) (live.Reply, error) {
	s.sent = append(s.sent, append([]rollout.Message(nil), r.Messages...))
	if r.Step >= len(s.replies) {
		return live.Reply{}, errors.New("503 Service Unavailable")
	}
	m := s.replies[r.Step]
	return live.Reply{ID: "same", Message: &m, FinishReason: "stop"}, nil
}

func says(commands ...string) (out []rollout.Message) {
	for _, c := range commands {
		out = append(out, rollout.Message{Content: "THOUGHT: go on\n\n```bash\n" + c + "\n```"})
	}
	return out
}

const submit = "echo " + SubmitMark + " && git add -A && git diff --cached"

func attempt(t *testing.T, o Options, b *box) *Attempt {
	t.Helper()
	a, err := New(o)
	require.NoError(t, err)
	out, err := a.Run(t.Context(), Task{ID: "demo__pager-1__g3__i24", Group: "group-3", Instance: swebench.Instance{InstanceID: "demo__pager-1", ProblemStatement: "Fix the pager."}, Sandbox: b})
	require.NoError(t, err)
	return out
}

func TestTextLoop(t *testing.T) {
	b := &box{answers: map[string]sandbox.Result{
		"ls":   {Stdout: "pager.py\n", Stderr: "warned\n"},
		"big":  {ExitCode: 1, Stdout: strings.Repeat("é", 6000) + strings.Repeat("x", 6001)},
		submit: {Stdout: SubmitMark + "\n" + aPatch},
	}}
	m := &script{replies: append(append(says("ls"), rollout.Message{Content: "no command"}), says("big", submit)...)}
	m.replies[1].Content = "```bash\nls\n```\n```bash\npwd\n```"
	out := attempt(t, Options{Model: m, Config: Config{StepLimit: 5}}, b)
	r := out.Rollout
	require.Equal(t, []string{"ls", "big", submit}, b.ran)
	require.Equal(t, submitted, r.ExitStatus)
	require.Equal(t, rollout.StatusCompleted, r.Status)
	require.Equal(t, aPatch, *out.Patch)
	require.Equal(t, "submission", out.PatchSource)
	require.Equal(t, "<returncode>0</returncode>\n<output>\npager.py\nwarned\n</output>\nREMINDER: You have 4 turns left to arrive at the solution.", r.Messages[3].Content)
	require.Contains(t, r.Messages[5].Content, "exactly one bash block, and this one has 2")
	cut := r.Messages[7].Content
	require.Contains(t, cut, strings.Repeat("é", 5000)+"\n[2001 characters left out")
	require.Contains(t, cut, strings.Repeat("x", 5000)+"\n</output>")
	require.True(t, strings.HasSuffix(cut, "REMINDER: You have 2 turns left to arrive at the solution."))
	require.Contains(t, r.Messages[1].Content, "Fix the pager.")
	require.Len(t, r.Messages, 9)
	require.NoError(t, r.Validate())
	for i, turn := range r.Turns { // each turn's context is what was sent
		require.Equal(t, r.Messages[:turn.Message], m.sent[i])
	}
}

// A submission that lost bytes would not apply: the changes are taken from git.
func TestSubmissionThatIsNotUTF8(t *testing.T) {
	submit := "echo " + SubmitMark + " && git add -A && git diff --cached"
	b := &box{answers: map[string]sandbox.Result{submit: {Stdout: SubmitMark + "\n" + strings.Replace(aPatch, "+", "+\xe9", 1)}}, diff: aPatch}
	out := attempt(t, Options{Model: &script{replies: says(submit)}}, b)
	require.Equal(t, submitted, out.Rollout.ExitStatus)
	require.Equal(t, "git_diff_fallback", out.PatchSource)
	require.Equal(t, aPatch, *out.Patch)
}

func TestWindow(t *testing.T) {
	words := func(*rollout.Rollout) ctxwindow.Counter {
		return ctxwindow.CounterFunc(func(_ context.Context, ms []rollout.Message) (int, error) {
			n := 1
			for _, m := range ms {
				n += 1 + len(strings.Fields(m.Content))
			}
			return n, nil
		})
	}
	for _, policy := range []ctxwindow.Policy{ctxwindow.Refill{Budget: 420}, ctxwindow.SWERL(420)} {
		b := &box{answers: map[string]sandbox.Result{"ls": {Stdout: strings.Repeat("file ", 40)}}, diff: aPatch}
		m := &script{replies: says(strings.Split(strings.Repeat("ls,", 20)[:59], ",")...)}
		out := attempt(t, Options{Model: m, Window: policy, Counter: words}, b)
		r := out.Rollout
		require.Equal(t, maxSteps, r.ExitStatus)
		require.Equal(t, rollout.StatusTruncated, r.Status)
		require.Equal(t, "git_diff_fallback", out.PatchSource)
		require.Len(t, r.Turns, 20)
		bare := *r
		bare.Turns = nil
		contexts, report, err := ctxwindow.Plan(t.Context(), &bare, policy, words(r))
		require.NoError(t, err)
		require.Positive(t, report.Windowed)
		for i, turn := range r.Turns {
			require.Equal(t, contexts[i], turn.Context, "turn %d", i)
			var shown []rollout.Message
			for _, p := range turn.Context.Parts {
				if p.Message != nil {
					shown = append(shown, *p.Message)
				} else {
					shown = append(shown, r.Messages[p.From:p.To]...)
				}
			}
			if turn.Context.Parts == nil {
				shown = r.Messages[:turn.Message]
			}
			require.Equal(t, m.sent[i], shown, "turn %d", i)
		}
	}
}

// A repository that the commands of the policy broke gives no patch, which is no failure of the infrastructure.
func TestNoRepositoryIsNoPatch(t *testing.T) {
	broken := rollout.Errorf(rollout.KindInput, rollout.Where{}, "git gives no patch")
	b := box{fails: map[string]error{"diff": broken}}
	out := attempt(t, Options{Model: &script{replies: says(submit)}}, &b)
	require.NoError(t, out.Grade(t.Context(), &b, swebench.Instance{}, GradeOptions{}))
	require.Nil(t, out.Patch)
	require.Nil(t, out.Rollout.Failure)
	require.Equal(t, submitted, out.Rollout.ExitStatus)
}

func TestInfrastructure(t *testing.T) {
	lost := rollout.Errorf(rollout.KindSandbox, rollout.Where{}, "the node is gone")
	for name, c := range map[string]struct {
		box    box
		model  *script
		reason string
		exit   string
	}{
		"exec":     {box{fails: map[string]error{"ls": lost}}, &script{replies: says("ls")}, "infra_error", ""},
		"diff":     {box{fails: map[string]error{"diff": lost}}, &script{replies: says(submit)}, "diff_failed", ""},
		"llm":      {box{}, &script{replies: says("ls")}, "llm_failed", maxSteps},
		"evaluate": {box{fails: map[string]error{"evaluate": lost}, diff: aPatch}, &script{replies: says(submit)}, "evaluate_failed", submitted},
	} {
		t.Run(name, func(t *testing.T) {
			out := attempt(t, Options{Model: c.model}, &c.box)
			require.NoError(t, out.Grade(t.Context(), &c.box, swebench.Instance{}, GradeOptions{}))
			r := out.Rollout
			require.Equal(t, rollout.VerdictInfraError, r.Outcome.Verdict)
			require.Equal(t, rollout.StatusFailed, r.Status)
			require.Equal(t, c.reason, r.Failure.Reason)
			require.Equal(t, c.exit, r.ExitStatus)
			require.Nil(t, r.Outcome.Reward)
			again(t, out)
		})
	}
	t.Run("timeout", func(t *testing.T) {
		out := attempt(t, Options{Model: &script{replies: says("ls")}, Timeout: 20 * time.Millisecond}, &box{slow: true})
		require.Equal(t, rollout.VerdictAgentTimeout, out.Rollout.Outcome.Verdict)
		require.Equal(t, rollout.StatusAborted, out.Rollout.Status)
	})
	t.Run("end", func(t *testing.T) {
		a, err := New(Options{Model: &script{replies: says("ls")}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = a.Run(ctx, Task{Sandbox: &box{slow: true}})
		require.ErrorIs(t, err, context.Canceled)
	})
}

// again saves an attempt and reads it with the importer of swe-rl's folders.
func again(t *testing.T, out *Attempt) {
	t.Helper()
	dir := t.TempDir()
	path, err := out.Save(dir, Artifact{Group: 3, Index: 24, Time: time.Unix(1, 5), Native: dir, Meta: map[string]any{"sampling_params": map[string]any{"temperature": 1.0}}})
	require.NoError(t, err)
	require.Equal(t, "demo__pager-1__g3__i24__1000000005", filepath.Base(path))
	source, err := traj.Open([]string{filepath.Join(path, "traj.json")}, traj.Options{})
	require.NoError(t, err)
	read := &rollout.Rollout{}
	for read, err = range source.All() {
		require.NoError(t, err)
	}
	r := out.Rollout
	require.Equal(t, r.ID, read.ID)
	require.Equal(t, r.Group, read.Group)
	require.Equal(t, r.Instance, read.Instance)
	require.Equal(t, r.ExitStatus, read.ExitStatus)
	require.Equal(t, r.Status, read.Status)
	require.Equal(t, r.Failure, read.Failure)
	require.Equal(t, r.Outcome.Verdict, read.Outcome.Verdict)
	require.Equal(t, r.Outcome.Reason, read.Outcome.Reason)
	require.Equal(t, r.Outcome.Resolved, read.Outcome.Resolved)
	require.Equal(t, r.Outcome.Submission, read.Outcome.Submission)
	require.Len(t, read.Messages, len(r.Messages))
	for i := range r.Messages {
		require.Equal(t, r.Messages[i].Content, read.Messages[i].Content)
		require.Equal(t, r.Messages[i].Role, read.Messages[i].Role)
		require.Equal(t, r.Messages[i].Sampled, read.Messages[i].Sampled)
	}
	require.Len(t, read.Turns, len(r.Turns))
	for i := range r.Turns {
		if have := r.Turns[i].Extra["step_debug"]; have != nil {
			require.JSONEq(t, string(have), string(read.Turns[i].Extra["step_debug"]))
		}
	}
	text, err := os.ReadFile(path + ".jsonl")
	require.NoError(t, err)
	native, err := jsonl.Parse(text, jsonl.Options{})
	require.NoError(t, err)
	native.Origin = rollout.Origin{}
	a, err := jsonl.Append(nil, r)
	require.NoError(t, err)
	b, err := jsonl.Append(nil, native)
	require.NoError(t, err)
	require.Equal(t, string(a), string(b))
}

func TestGradeAndSave(t *testing.T) {
	in := swebench.Instance{InstanceID: "demo__pager-1", FailToPass: []string{"t.py::test_a"}, PassToPass: []string{"t.py::test_b"}, LogParser: "parse_log_pytest"}
	for name, c := range map[string]struct {
		in      swebench.Instance
		verdict sandbox.Verdict
		options GradeOptions
		want    rollout.Verdict
	}{
		"exit code":     {swebench.Instance{}, sandbox.Verdict{Resolved: true, Output: "2 passed"}, GradeOptions{}, rollout.VerdictResolved},
		"fails":         {swebench.Instance{}, sandbox.Verdict{ExitCode: 1}, GradeOptions{}, rollout.VerdictUnresolved},
		"apply":         {in, sandbox.Verdict{ExitCode: 1, Reason: "git apply failed: error: no"}, GradeOptions{}, rollout.VerdictApplyFailed},
		"time":          {in, sandbox.Verdict{ExitCode: -1, Reason: "Evaluation timed out after 3600s", End: sandbox.EndTimeout}, GradeOptions{}, rollout.VerdictTestsTimeout},
		"memory":        {in, sandbox.Verdict{ExitCode: 137, Reason: "Evaluation ended by oom", End: sandbox.EndOOM}, GradeOptions{}, rollout.VerdictOOM},
		"by tests":      {in, sandbox.Verdict{ExitCode: 1, Output: "PASSED t.py::test_a\nPASSED t.py::test_b\nFAILED t.py::test_c\n"}, GradeOptions{}, rollout.VerdictResolved},
		"not by tests":  {in, sandbox.Verdict{Resolved: true, Output: "FAILED t.py::test_a\nPASSED t.py::test_b\n"}, GradeOptions{}, rollout.VerdictUnresolved},
		"by code alone": {in, sandbox.Verdict{Resolved: true, Output: "FAILED t.py::test_a\n"}, GradeOptions{ExitCode: true}, rollout.VerdictResolved},
	} {
		t.Run(name, func(t *testing.T) {
			b := &box{diff: aPatch, verdict: c.verdict}
			out := attempt(t, Options{Model: &script{replies: says("ls", submit)}}, b)
			require.NoError(t, out.Grade(t.Context(), b, c.in, c.options))
			require.Equal(t, c.want, out.Rollout.Outcome.Verdict)
			if c.want == rollout.VerdictOOM || name == "not by tests" {
				return // swe-rl has no representation for these
			}
			again(t, out)
		})
	}
	out := attempt(t, Options{Model: &script{replies: says(submit)}}, &box{})
	require.Equal(t, rollout.VerdictNoPatch, out.Rollout.Outcome.Verdict)
	again(t, out)
}

func TestSession(t *testing.T) {
	rec, err := live.New(live.Options{})
	require.NoError(t, err)
	s, err := rec.Begin(t.Context(), live.Start{ID: "x"})
	require.NoError(t, err)
	m := &script{replies: says("ls", submit)}
	a, err := New(Options{Model: ids{m}})
	require.NoError(t, err)
	out, err := a.Run(t.Context(), Task{ID: "x", Sandbox: &box{}, Session: s})
	require.NoError(t, err)
	kept, err := s.Rollout()
	require.NoError(t, err)
	require.Equal(t, out.Rollout.Messages, kept.Messages)
	require.Len(t, kept.Turns, 2)
	for i := range kept.Turns {
		require.Empty(t, kept.Turns[i].Incomplete)
		require.Equal(t, kept.Turns[i].Output, out.Rollout.Turns[i].Output)
		a, err := kept.PromptTokens(nil, i)
		require.NoError(t, err)
		b, err := out.Rollout.PromptTokens(nil, i)
		require.NoError(t, err)
		require.Equal(t, a, b)
	}
}

// A reply without log probabilities is kept and not trained, whether the attempt is recorded elsewhere or not.
func TestUncounted(t *testing.T) {
	a, err := New(Options{Model: bare{ids{&script{replies: says("ls", submit)}}}})
	require.NoError(t, err)
	out, err := a.Run(t.Context(), Task{ID: "x", Sandbox: &box{}})
	require.NoError(t, err)
	require.Len(t, out.Rollout.Turns, 2)
	for _, turn := range out.Rollout.Turns {
		require.Equal(t, []rollout.TokenID{7, 8}, turn.Output)
		require.Equal(t, "0 log probabilities for 2 ids", turn.Incomplete)
	}
}

type bare struct{ Model }

func (m bare) Reply(ctx context.Context, r Request) (live.Reply, error) {
	out, err := m.Model.Reply(ctx, r)
	out.Logprobs = nil
	return out, err
}

// ids is a model that returns ids.
type ids struct{ Model }

func (m ids) Reply(ctx context.Context, r Request) (live.Reply, error) {
	out, err := m.Model.Reply(ctx, r)
	for i := range r.Messages {
		out.Prompt = append(out.Prompt, rollout.TokenID(i))
	}
	out.Output, out.Logprobs = []rollout.TokenID{7, 8}, []float32{-1, 1e-4}
	return out, err
}

// TestEngine: ids, log probabilities and prompts of an engine with vLLM's format.
func TestEngine(t *testing.T) {
	var replies []fakeengine.Reply
	for _, m := range says("vim a.py", submit) {
		replies = append(replies, fakeengine.Reply{Content: m.Content})
	}
	server := httptest.NewServer(fakeengine.New(fakeengine.Options{Script: replies, Weight: "3"}))
	defer server.Close()
	pool, err := engine.NewPool(engine.Options{URL: server.URL})
	require.NoError(t, err)
	b := &box{}
	out := attempt(t, Options{Model: Engine{Engine: pool}, Blocklist: sandbox.DefaultBlocklist()}, b)
	require.Equal(t, []string{submit}, b.ran)
	require.Contains(t, out.Rollout.Messages[3].Content, "The command was not run")
	require.Len(t, out.Rollout.Turns, 2)
	for i, turn := range out.Rollout.Turns {
		require.Empty(t, turn.Incomplete)
		require.Equal(t, int32(3), *turn.Version)
		require.NotEmpty(t, turn.Output)
		require.Len(t, turn.Logprobs, len(turn.Output))
		prompt, err := out.Rollout.PromptTokens(nil, i)
		require.NoError(t, err)
		require.NotEmpty(t, prompt)
	}
}

// Weights that change while a reply is sampled: each id has its version and is trained.
func TestVersions(t *testing.T) {
	out := attempt(t, Options{Model: Engine{Engine: changing{}}}, &box{})
	require.Len(t, out.Rollout.Turns, 2)
	for i, turn := range out.Rollout.Turns {
		require.Empty(t, turn.Incomplete)
		require.Equal(t, []rollout.TokenID{7, 8, 9}, turn.Output)
		require.Equal(t, []rollout.VersionRun{{From: 0, Version: 3}, {From: 2, Version: 4}}, turn.Versions)
		prompt, err := out.Rollout.PromptTokens(nil, i)
		require.NoError(t, err)
		require.Equal(t, []rollout.TokenID{1, 2}, prompt)
	}
}

// changing is an engine whose weights change in each reply, which submits the work in its second reply.
type changing struct{ engine.Engine }

func (changing) Generate(_ context.Context, r *engine.Request, yield func(*engine.Chunk) error) error {
	said := says("ls", submit)[(len(r.Messages)-2)/2].Content
	three, four := int32(3), int32(4)
	first := engine.Chunk{Prompt: []rollout.TokenID{1, 2}, Choices: []engine.Choice{{IDs: []rollout.TokenID{7, 8}, Logprobs: []float32{-1, -2}, Version: &three, Text: said}}}
	last := engine.Chunk{Choices: []engine.Choice{{IDs: []rollout.TokenID{9}, Logprobs: []float32{-3}, Version: &four, Finish: "stop"}}, Usage: &engine.Usage{Prompt: 2, Completion: 3}}
	return errors.Join(yield(&first), yield(&last))
}

func TestJudge(t *testing.T) {
	judge := prm.JudgeFunc(func(_ context.Context, r prm.Request) (prm.Reply, error) { return prm.Reply{Text: `\boxed{1}`}, nil })
	scorer, err := prm.NewScorer(judge, prm.Options{})
	require.NoError(t, err)
	out := attempt(t, Options{Model: &script{replies: says("ls", "pwd", submit)}, Judge: scorer}, &box{})
	scores, err := scorer.Score(t.Context(), out.Rollout)
	require.NoError(t, err)
	require.Equal(t, scores, out.Rollout.Steps)
	require.NotEmpty(t, scores)
	require.NotEmpty(t, out.Rollout.Metadata["problem_statement"], "the issue that the judge is shown")
}

// Codex patches change the lines that they name, not similar earlier ones.
func TestHunks(t *testing.T) {
	const before = "class A:\n    x = 1\n\nclass B:\n    x = 1 \nend\n"
	for patch, want := range map[string]string{
		"-    x = 1\n+    x = 2":                             "class A:\n    x = 2\n\nclass B:\n    x = 1 \nend\n",
		"@@ class B:\n-    x = 1\n+    x = 2":                "class A:\n    x = 1\n\nclass B:\n    x = 2\nend\n",
		"@@ class A:\n@@ class B:\n-x = 1\n+    y":           "class A:\n    x = 1\n\nclass B:\n    y\nend\n",
		"@@ -1,2 +1,2 @@\n class A:\n-    x = 1\n+    x = 2": "class A:\n    x = 2\n\nclass B:\n    x = 1 \nend\n",
		"+# new": before + "# new\n",
		"-    x = 1\n+y\n@@\n-end\n+END\n*** End of File":         "class A:\ny\n\nclass B:\n    x = 1 \nEND\n",
		"@@ class C:\n-    x = 1\n+    x = 2":                     "",
		"-    z = 1\n+    x = 2":                                  "",
		"-end\n+END\n@@\n-class A:\n+class C:":                    "",
		"@@\n-class A:\n-    x = 1\n-\n class B:\n-    x = 1\n+y": "class B:\ny\nend\n",
	} {
		after, write, _, err := hunks(strings.Split(patch, "\n"))("a.py", before)
		require.Equal(t, want == "", err != nil, "%s: %v", patch, err)
		require.Equal(t, want != "", write, patch)
		require.Equal(t, want, after, patch)
	}
}

func TestPatchesOfUnknownVerbsAreAnswered(t *testing.T) {
	for _, rest := range []string{"", "*** Delete File: b\n"} {
		out, err := (&run{}).applyPatch(t.Context(), "*** Begin Patch\n*** Rename File: a\n"+rest+"*** End Patch")
		require.NoError(t, err)
		require.Equal(t, actionResult{-1, `"*** Rename" is not known`}, out)
	}
}

func TestHarnesses(t *testing.T) {
	call := func(name, arguments string) rollout.Message {
		return rollout.Message{ToolCalls: []rollout.ToolCall{{ID: "c1", Name: name, Arguments: arguments, ArgumentsText: true}}}
	}
	for name, c := range map[string]struct {
		replies []rollout.Message
		want    []string // texts that the observations contain
	}{
		"openhands": {[]rollout.Message{call("execute_bash", `{"command":"ls"}`), call("str_replace_editor", `{"command":"str_replace","path":"/testbed/a.py","old_str":"a","new_str":"b"}`), call("str_replace_editor", `{"command":"insert","path":"/testbed/a.py","insert_line":1,"new_str":"c"}`), call("nothing", `{}`), {Content: "hm"}, call("finish", "")},
			[]string{"pager.py", "changed /testbed/a.py", "inserted into", "there is no tool", "call finish"}},
		"opencode": {[]rollout.Message{call("bash", `{"command":"ls","description":"look"}`), call("read", `{"filePath":"/testbed/a.py"}`), call("edit", `{"filePath":"/testbed/a.py","oldString":"a","newString":"b"}`), call("edit", `{"filePath":"x"}`), {Content: "done"}},
			[]string{"pager.py", "     1\ta", "changed /testbed/a.py", "needs the argument"}},
		"codex": {[]rollout.Message{call("shell", `{"command":["bash","-lc","ls"]}`), call("apply_patch", `{"input":"*** Begin Patch\n*** Update File: /testbed/a.py\n@@\n-a\n+b\n*** End Patch"}`), call("shell", `["ls"]`), {Content: "done"}},
			[]string{"pager.py", "Update /testbed/a.py", "no JSON object"}},
	} {
		t.Run(name, func(t *testing.T) {
			read := "if [ -d '/testbed/a.py' ]; then ls -a '/testbed/a.py' >&2; exit 3; fi; test -e '/testbed/a.py' || exit 4; base64 < '/testbed/a.py'"
			b := &box{answers: map[string]sandbox.Result{"ls": {Stdout: "pager.py\n"}, read: {Stdout: "YQo=\n"}}, diff: aPatch}
			out := attempt(t, Options{Model: &script{replies: c.replies}, Harness: name}, b)
			require.Empty(t, out.Error)
			require.Equal(t, submitted, out.Rollout.ExitStatus)
			require.Equal(t, "git_diff_fallback", out.PatchSource)
			require.NotEmpty(t, out.Rollout.Tools)
			var got []string
			for _, m := range out.Rollout.Messages[2:] {
				if m.Role != rollout.RoleAssistant {
					got = append(got, m.Content)
				}
			}
			require.Len(t, got, len(c.want))
			for i := range got {
				require.Contains(t, got[i], c.want[i])
			}
			require.Contains(t, strings.Join(b.ran, "\n"), "base64 -d > '/testbed/a.py' <<'TURNPACK'\nYgo=\n")
			for _, tool := range out.Rollout.Tools {
				require.True(t, json.Valid(tool))
			}
		})
	}
}

func TestReadConfig(t *testing.T) {
	c, err := ReadConfig(strings.NewReader("agent:\n  system_template: sys\n  instance_template: |\n    do {{task}}\n  action_observation_template: |\n    rc={{output.returncode}}\n    {% if output.output | length < 5 -%}\n    <o>\n    {{ output.output -}}\n    </o>\n    {%- endif -%}\n  step_limit: 3\nenvironment:\n  cwd: /repo\n  timeout: 7\nmodel:\n  model_name: ''\n"))
	require.NoError(t, err)
	b := &box{answers: map[string]sandbox.Result{"ls": {Stdout: "x\n"}}}
	out := attempt(t, Options{Model: &script{replies: append([]rollout.Message{{Content: "nothing"}}, says("ls", "ls")...)}, Config: c}, b)
	var got []string
	for _, m := range out.Rollout.Messages {
		if m.Role != rollout.RoleAssistant {
			got = append(got, m.Content)
		}
	}
	require.Equal(t, []string{"sys", "do Fix the pager.", "rc=-1\n", "rc=0\n<o>\nx\n</o>\nREMINDER: You only have 1 turn left. Please provide the final answer", "rc=0\n<o>\nx\n</o>"}, got)
	_, err = ReadConfig(strings.NewReader(": : :"))
	require.Error(t, err)
}

func TestOptions(t *testing.T) {
	_, err := New(Options{Window: ctxwindow.Refill{Budget: 1}, Harness: "none", Timeout: -1, Config: Config{StepLimit: -1, Timeout: -1}})
	for _, want := range []string{"Options.Model", "Options.Counter", "Options.Harness", "Options.Timeout", "Options.Config.StepLimit", "Options.Config.Timeout"} {
		require.ErrorContains(t, err, want)
	}
	_, err = New(Options{Model: &script{}, Config: Config{Instance: "{% if %}"}})
	require.Error(t, err)
	_, err = (&Agent{}).Run(t.Context(), Task{})
	require.Error(t, err)
	require.Equal(t, "[codex opencode openhands]", fmt.Sprint(Harnesses()))
}

// TestExact: prompts of ids continue the sampled ids, and calls are parsed from the text.
func TestExact(t *testing.T) {
	model, err := embedded.Model()
	require.NoError(t, err)
	var replies []fakeengine.Reply
	for _, m := range says("ls", submit) {
		replies = append(replies, fakeengine.Reply{Content: m.Content})
	}
	server := httptest.NewServer(fakeengine.New(fakeengine.Options{Model: model, Script: replies}))
	defer server.Close()
	e, err := engine.New(engine.Options{URL: server.URL})
	require.NoError(t, err)
	prompts, err := exact.New(model, exact.Options{})
	require.NoError(t, err)
	rec, err := live.New(live.Options{})
	require.NoError(t, err)
	s, err := rec.Begin(t.Context(), live.Start{ID: "x"})
	require.NoError(t, err)
	a, err := New(Options{Model: Engine{Engine: e, Exact: prompts}, NoPatch: true})
	require.NoError(t, err)
	b := &box{}
	out, err := a.Run(t.Context(), Task{ID: "x", Sandbox: b, Session: s, Instance: swebench.Instance{ProblemStatement: "p"}})
	require.NoError(t, err)
	require.Equal(t, []string{"ls", submit}, b.ran)
	require.Nil(t, out.Patch)
	require.Equal(t, rollout.Outcome{}, out.Rollout.Outcome, "the caller gives it")
	require.Len(t, out.Rollout.Turns, 2)
	first, err := out.Rollout.PromptTokens(nil, 0)
	require.NoError(t, err)
	second, err := out.Rollout.PromptTokens(nil, 1)
	require.NoError(t, err)
	require.Equal(t, append(first, out.Rollout.Turns[0].Output...), second[:len(first)+len(out.Rollout.Turns[0].Output)])
	for i, m := range says("ls", submit) {
		require.Equal(t, m.Content, out.Rollout.Messages[out.Rollout.Turns[i].Message].Content)
		require.Empty(t, out.Rollout.Turns[i].Incomplete)
	}
	report := prompts.Report()
	require.Positive(t, report.Turns)
	calls, err := s.Calls()
	require.NoError(t, err)
	require.Equal(t, live.StateOK, calls[1].State)
	require.EqualValues(t, "extends", calls[1].Join)
}
