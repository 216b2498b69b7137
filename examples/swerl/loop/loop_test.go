package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/reward/swebench"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/sandbox/local"
	"github.com/turnpack/turnpack/rollout/sandbox/swerl"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

const row = `{"text":"add subtracts","metadata":{"data_source":"swe-gym","instance":{"instance_id":"demo__calc-1","problem_statement":"add subtracts","image_name":"demo",` +
	`"log_parser":"parse_log_pytest","FAIL_TO_PASS":["tests.py::test_add"],"PASS_TO_PASS":["tests.py::test_neg"],"eval_script":"cd /testbed && if python3 -c 'import pytest' 2>/dev/null; then python3 -m pytest -rA -p no:cacheprovider tests.py; else python3 run_tests.py; fi"}}}` + "\n"

const modelFolder = "../../../tokenize/embedded"

// world is a pool with one node, an image with a repository, and a scripted policy.
type world struct {
	pool, api, data string

	mu       sync.Mutex
	openings int
	sent     map[string][]string // replies by plan
	asked    int
	fail     func(n int) bool // whether request n fails
}

// plans are the replies of the policy in each attempt.
var plans = [][]string{
	{"cat calc.py", "sed -i 's/a - b/a + b/' calc.py && python3 run_tests.py", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A && git diff --cached"},
	{"cat calc.py", "sed -i 's/a - b/a * b/' calc.py", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A && git diff --cached"},
	{"sed -i 's/a - b/a + b/' calc.py", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"},
	{"ls", "two\n```\n\n```bash\nblocks", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"},
}

func (w *world) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/models") {
		fmt.Fprint(out, `{"data":[{"id":"policy"}]}`)
		return
	}
	var q struct {
		Model    string
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.Model != "policy" {
		http.Error(out, "no", http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	if w.fail != nil && w.fail(w.asked) {
		http.Error(out, "broken", http.StatusInternalServerError)
		return
	}
	plan, step := -1, 0
	for _, m := range q.Messages {
		if m.Role == "assistant" {
			step++
			fmt.Sscanf(m.Content, "THOUGHT: plan %d", &plan)
		}
	}
	if plan < 0 {
		plan = w.openings % len(plans)
		w.openings++
	}
	text := fmt.Sprintf("THOUGHT: plan %d, step %d\n\n```bash\n%s\n```", plan, step, plans[plan][step])
	w.sent[fmt.Sprint(plan)] = append(w.sent[fmt.Sprint(plan)], text)
	json.NewEncoder(out).Encode(map[string]any{"id": fmt.Sprint("r", w.asked), "choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": text}}}})
}

func newWorld(t *testing.T) *world {
	t.Helper()
	for _, program := range []string{"git", "bash", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: the loop on a real repository needs %s on the PATH: install it to run this test", program)
		}
	}
	dir := t.TempDir()
	repo := filepath.Join(dir, "images", "demo")
	require.NoError(t, os.MkdirAll(repo, 0o755))
	for name, text := range map[string]string{
		"calc.py":  "def add(a, b):\n    return a - b\n\n\ndef neg(a):\n    return -a\n",
		"tests.py": "import calc\n\n\ndef test_add():\n    assert calc.add(2, 3) == 5\n\n\ndef test_neg():\n    assert calc.neg(2) == -2\n",
		"run_tests.py": "import calc\n\nok = True\nfor name, good in [('test_add', calc.add(2, 3) == 5), ('test_neg', calc.neg(2) == -2)]:\n" +
			"    print('PASSED' if good else 'FAILED', 'tests.py::' + name)\n    ok = ok and good\nraise SystemExit(0 if ok else 1)\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(repo, name), []byte(text), 0o644))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "begin"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = repo
		text, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", text)
	}
	driver, err := local.New(local.Options{Root: filepath.Join(dir, "images"), Env: map[string]string{"PYTHONDONTWRITEBYTECODE": "1"}})
	require.NoError(t, err)
	node, err := swerl.NewExecServer(t.Context(), swerl.ExecOptions{Driver: driver})
	require.NoError(t, err)
	nodeServer := httptest.NewServer(node)
	pool, err := swerl.NewPool(t.Context(), swerl.PoolOptions{Nodes: []string{nodeServer.URL}})
	require.NoError(t, err)
	poolServer := httptest.NewServer(pool)
	w := &world{sent: map[string][]string{}, data: filepath.Join(dir, "train.jsonl"), pool: poolServer.URL}
	api := httptest.NewServer(w)
	w.api = api.URL + "/v1"
	t.Cleanup(func() {
		poolServer.Close()
		nodeServer.Close()
		api.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, pool.Close(ctx))
		require.NoError(t, node.Close(ctx))
	})
	require.NoError(t, os.WriteFile(w.data, []byte(row), 0o644))
	return w
}

func (w *world) rollout(t *testing.T, out string, more ...string) (string, error) {
	t.Helper()
	t.Setenv("SWE_SAVE_TRAJ_DIR", "")
	var said bytes.Buffer
	err := Rollout(t.Context(), append([]string{"--data", w.data, "--pool", w.pool, "--api-base", w.api, "--model", modelFolder, "--n", "4", "--max-concurrent", "1", "--out", out}, more...), &said)
	return said.String(), err
}

// Attempts at a real repository go from the data to rows. The tests run pytest, or a
// script with the same output if pytest is not installed.
func TestRollout(t *testing.T) {
	w := newWorld(t)
	out := filepath.Join(t.TempDir(), "out")
	said, err := w.rollout(t, out)
	require.NoError(t, err, said)
	require.Contains(t, said, "no_patch 1, resolved 2, unresolved 1")
	batch, _, err := export.ReadAll(filepath.Join(out, "batches", "data", "batch_000001.parquet"))
	require.NoError(t, err)

	model, err := embedded.Model()
	require.NoError(t, err)
	rows, info, err := export.ReadAll(filepath.Join(out, "rows.parquet"))
	require.NoError(t, err)
	require.Equal(t, "swe-rl@0d034dd", info.Metadata["recipe"])
	require.Equal(t, rows, batch, "the group has a batch")
	trained := map[string][]string{}
	sums := map[string]float64{}
	for _, row := range rows {
		var ids []rollout.TokenID
		for i, m := range row.Weight {
			if m != 0 {
				ids = append(ids, row.IDs[i])
			}
		}
		text, err := model.Tokenizer.Decode(ids)
		require.NoError(t, err)
		plan := fmt.Sprint(row.RolloutIndex)
		trained[plan] = append(trained[plan], strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "<|im_end|>"))
		require.NotNil(t, row.Advantage)
		sums["all"] += *row.Advantage
		if good := row.RolloutIndex%2 == 0; good {
			require.Positive(t, *row.Advantage)
			require.Equal(t, 1.0, row.Reward)
		} else {
			require.Negative(t, *row.Advantage)
			require.Equal(t, -1.0, row.Reward)
		}
	}
	require.Equal(t, w.sent, trained, "what is trained is what the policy said")

	// The folders have the format of swe-rl: the importer reads the same verdicts from
	// them.
	source, err := traj.Open([]string{filepath.Join(out, "runs")}, traj.Options{})
	require.NoError(t, err)
	verdicts := map[string]string{}
	for r, err := range source.All() {
		require.NoError(t, err)
		verdicts[r.ID] = r.Outcome.Verdict.String()
	}
	require.Equal(t, map[string]string{"demo__calc-1__g0__i0": "resolved", "demo__calc-1__g0__i1": "unresolved", "demo__calc-1__g0__i2": "resolved", "demo__calc-1__g0__i3": "no_patch"}, verdicts)

	// A second run does nothing.
	asked := w.asked
	said, err = w.rollout(t, out)
	require.NoError(t, err)
	require.Contains(t, said, "4 are there")
	require.Equal(t, asked, w.asked)
}

// An engine failure gives no negative reward, and the next run repeats only the failed
// attempts.
func TestRolloutGoesOn(t *testing.T) {
	kit.Long(t)
	w := newWorld(t)
	w.fail = func(n int) bool { return n > 3 }
	out := filepath.Join(t.TempDir(), "out")
	said, err := w.rollout(t, out)
	require.Contains(t, said, "infra_error 3, resolved 1", "%v", err)
	w.fail = nil
	w.openings = 1
	time.Sleep(1100 * time.Millisecond) // the engine's client skips a failed server for a second
	said, err = w.rollout(t, out)
	require.NoError(t, err, said)
	require.Contains(t, said, "1 are there")
	require.Contains(t, said, "no_patch 1, resolved 2, unresolved 1")
}

// A group gets its batch after its last attempt, while others run. A group with an
// infrastructure failure gets it after the next run has repeated that attempt.
func TestGroups(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, os.WriteFile(w.data, []byte(row+strings.Replace(row, "calc-1", "calc-2", 1)), 0o644))
	w.fail = func(n int) bool { return n > 8 }
	out := filepath.Join(t.TempDir(), "out")
	said, err := w.rollout(t, out, "--n", "2")
	require.NoError(t, err, said)
	first := strings.Index(said, "batch 1: group group-0")
	require.Positive(t, first, said)
	require.Less(t, first, strings.Index(said, "3/4"), said)
	require.NotContains(t, said, "batch 2")
	w.fail = nil
	w.openings = 3
	time.Sleep(1100 * time.Millisecond) // as in TestRolloutGoesOn
	said, err = w.rollout(t, out, "--n", "2")
	require.NoError(t, err, said)
	require.Contains(t, said, "batch 2: group group-1")
}

// scripted returns an engine with the embedded model that follows the first plan.
func scripted(t *testing.T) *fakeengine.Server {
	t.Helper()
	model, err := embedded.Model()
	require.NoError(t, err)
	var script []fakeengine.Reply
	for _, command := range plans[0] {
		script = append(script, fakeengine.Reply{Content: "THOUGHT: go on\n\n```bash\n" + command + "\n```"})
	}
	return fakeengine.New(fakeengine.Options{Model: model, Name: "policy", Script: script})
}

// A run with exact prompts, steps judged while they run, and blocked commands that are
// answered with advice.
func TestExactJudgedBlocked(t *testing.T) {
	kit.Long(t)
	w := newWorld(t)
	engine := httptest.NewServer(scripted(t))
	defer engine.Close()
	w.api = engine.URL
	judge := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		var q struct{ N int }
		if json.NewDecoder(r.Body).Decode(&q) != nil {
			return
		}
		var choices []any
		for i := range max(1, q.N) {
			choices = append(choices, map[string]any{"index": i, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": `\boxed{1}`}})
		}
		json.NewEncoder(out).Encode(map[string]any{"id": "j", "choices": choices})
	}))
	defer judge.Close()
	list := filepath.Join(t.TempDir(), "block.json")
	require.NoError(t, os.WriteFile(list, []byte(`{"reading": ["^cat "]}`), 0o644))
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"--n", "2", "--exact", "--judge", judge.URL + "/v1", "--judge-model", "judge", "--judge-votes", "2", "--blocklist", list, "--recipe", "swe-rl-prm", "--served-model", "policy"}
	said, err := w.rollout(t, out, args...)
	require.NoError(t, err, said)
	require.Contains(t, said, "6 prompts: 100.0% go on from the ids that were sampled")
	files, err := filepath.Glob(filepath.Join(out, "rollouts", "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		r, err := jsonl.Parse(text, jsonl.Options{})
		require.NoError(t, err)
		require.Contains(t, r.Messages[3].Content, "The command was not run")
		require.Len(t, r.Turns, 3)
		require.Empty(t, r.Turns[2].Incomplete)
		require.NotEmpty(t, r.Turns[2].Logprobs)
		require.NotEmpty(t, r.Steps)
		require.Equal(t, 1.0, *r.Steps[0].Score)
		require.Equal(t, "skipped: submit step", r.Steps[2].Reason, "swe-rl does not judge the submission")
	}
	rows, _, err := export.ReadAll(filepath.Join(out, "rows.parquet"))
	require.NoError(t, err)
	require.NotEmpty(t, rows)
	_, err = w.rollout(t, out, append(args, "--blocklist", "none.json")...)
	require.NoError(t, err, "nothing is to be made, so nothing is read")
}

// An evaluation with exact prompts, as in training.
func TestEvalExact(t *testing.T) {
	kit.Long(t)
	w := newWorld(t)
	fake := scripted(t)
	paths := map[string]int{}
	engine := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		paths[r.URL.Path]++
		w.mu.Unlock()
		fake.ServeHTTP(out, r)
	}))
	defer engine.Close()
	var said bytes.Buffer
	args := []string{"--data", w.data, "--pool", w.pool, "--api-base", engine.URL, "--model", "policy", "--output-dir", t.TempDir(), "--attempts", "2", "--exact"}
	require.ErrorContains(t, Eval(t.Context(), args, &said), "--model-dir")
	require.NoError(t, Eval(t.Context(), append(args, "--model-dir", modelFolder), &said))
	require.Contains(t, said.String(), "6 prompts: 100.0% go on from the ids that were sampled")
	require.Contains(t, said.String(), "resolved 2 of 2 attempts")
	require.Equal(t, 6, paths["/v1/completions"], "%v", paths)
}

func TestEval(t *testing.T) {
	w := newWorld(t)
	out := filepath.Join(t.TempDir(), "out")
	run := func() string {
		var said bytes.Buffer
		require.NoError(t, Eval(t.Context(), []string{"--data", w.data, "--pool", w.pool, "--api-base", w.api, "--model", "openai/policy", "--output-dir", out, "--attempts", "4", "--max-concurrent", "1"}, &said))
		return said.String()
	}
	require.Contains(t, run(), "resolved 2 of 4 attempts; mean 0.5000")
	text, err := os.ReadFile(filepath.Join(out, "results.jsonl"))
	require.NoError(t, err)
	require.False(t, bytes.HasSuffix(text, []byte("\n")))
	lines := strings.Split(string(text), "\n")
	require.Len(t, lines, 4)
	var first map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &first))
	require.Equal(t, "submission", first["patch_source"])
	require.Equal(t, true, first["resolved"])
	require.Equal(t, 3.0, first["n_steps"])
	var summary struct {
		Total, Resolved, Errors int
		NoPatch                 int                `json:"no_patch"`
		Rate                    float64            `json:"resolve_rate"`
		Pass                    map[string]float64 `json:"pass_at_k"`
		Args                    map[string]any
	}
	text, err = os.ReadFile(filepath.Join(out, "summary.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &summary))
	require.Equal(t, []int{4, 2, 0, 1}, []int{summary.Total, summary.Resolved, summary.Errors, summary.NoPatch})
	require.Equal(t, 0.5, summary.Rate)
	require.Equal(t, map[string]float64{"1": 0.5, "2": 0.8333, "3": 1, "4": 1}, summary.Pass)
	require.NotContains(t, summary.Args, "api_key")
	text, err = os.ReadFile(filepath.Join(out, "report.json"))
	require.NoError(t, err)
	var reports map[string]swebench.Report
	require.NoError(t, json.Unmarshal(text, &reports))
	require.Equal(t, []string{"tests.py::test_add"}, reports["demo__calc-1"].Tests.FailToPass.Success)
	asked := w.asked
	require.Contains(t, run(), "4 are there")
	require.Equal(t, asked, w.asked)

	other := []string{"--data", w.data, "--pool", w.pool, "--api-base", w.api, "--model", "better", "--output-dir", out, "--attempts", "4"}
	require.ErrorContains(t, Eval(t.Context(), other, io.Discard), `it holds attempts of the model "openai/policy", not of "better"`)
	running, err := os.Open(filepath.Join(out, "progress.jsonl"))
	require.NoError(t, err)
	defer running.Close()
	require.True(t, atomic.Hold(running))
	require.ErrorContains(t, Eval(t.Context(), other, io.Discard), "another run writes it")
}

// Results with an error are repeated, the others stay.
func TestEvalGoesOn(t *testing.T) {
	kit.Long(t)
	w := newWorld(t)
	w.fail = func(n int) bool { return n > 3 }
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"--data", w.data, "--pool", w.pool, "--api-base", w.api, "--model", "policy", "--output-dir", out, "--attempts", "2", "--max-concurrent", "1"}
	var said bytes.Buffer
	require.NoError(t, Eval(t.Context(), args, &said))
	require.Contains(t, said.String(), "resolved 1 of 2 attempts")
	w.fail = nil
	w.openings = 1
	time.Sleep(1100 * time.Millisecond) // as in TestRolloutGoesOn
	said.Reset()
	require.NoError(t, Eval(t.Context(), args, &said))
	require.Contains(t, said.String(), "2 attempts at 1 tasks, 1 are there")
	var summary struct {
		Errors    int
		Intervals map[string][2]float64 `json:"pass_at_k_interval"`
	}
	text, err := os.ReadFile(filepath.Join(out, "summary.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &summary))
	require.Zero(t, summary.Errors)
	require.Len(t, summary.Intervals, 2)
	for _, name := range []string{"predictions.jsonl", "report.json", "report_summary.json"} {
		require.FileExists(t, filepath.Join(out, name))
	}
	lines, err := os.ReadFile(filepath.Join(out, "results.jsonl"))
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(lines, []byte("\n")), "two lines, without one at the end, as swe-rl writes them")
}

func TestStatistics(t *testing.T) {
	mean, low, high := interval(shares(map[string][2]int{"a": {1, 1}, "b": {1, 0}, "c": {1, 1}, "d": {1, 0}}))
	require.InDelta(t, 0.5, mean, 1e-9)
	require.InDelta(t, 0.1500, low, 1e-4) // Wilson, 2 of 4
	require.InDelta(t, 0.8500, high, 1e-4)
	values, intervals := passes(map[string][2]int{"a": {2, 1}, "b": {1, 0}}, 3)
	require.Equal(t, map[string]float64{"1": 0.25, "2": 1}, values)
	require.Equal(t, map[string][2]float64{"1": {0.0267, 0.8021}, "2": {0.2065, 1}}, intervals, "Wilson of 0.25 with 2 instances, of 1 with 1")
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{}, {"--data", "x", "--api-base", "http://x", "--model", "m", "--out", "o", "--max-context", "10", "--max-new-tokens", "10"}} {
		require.Error(t, Rollout(t.Context(), args, &bytes.Buffer{}))
	}
	require.Error(t, Eval(t.Context(), []string{"--attempts", "0"}, &bytes.Buffer{}))
}
