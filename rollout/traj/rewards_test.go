package traj_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

func TestRewards(t *testing.T) {
	dir := t.TempDir()
	load := func(name, text string) *traj.Rewards {
		x, err := traj.LoadRewards([]string{write(t, dir, name, []byte(text))})
		require.NoError(t, err, name)
		return x
	}
	row := func(id, instance string) string {
		return fmt.Sprintf(`{"id":%q,"instance_id":%q,"resolved":false,"messages":[{"role":"user","content":"q"}]}`, id, instance)
	}
	text := row("a", "i") + "\n" + row("b", "j")
	for _, c := range []struct {
		reason, name, rewards string
		a, b                  string // resolved and reward of the two rollouts
		unmatched             int
	}{
		{"JSONL by rollout id", "1.jsonl", `{"id":"a","reward":0.25}` + "\n" + `{"id":"zz","reward":1}`, "- 0.25", "false -", 1},
		{"JSONL by instance", "2.jsonl", `{"instance_id":"j","resolved":true}`, "false -", "true -", 0},
		{"CSV", "3.csv", "instance_id,reward,resolved,comment\ni,-1,FALSE,x\nj,1,true,\n", "false -1", "true 1", 0},
		{"a table whose only key is called id", "4.csv", "id,score\ni,3\n", "- 3", "false -", 0},
		{"a wrapped report", "5.json", `{"i":{"resolved":true,"patch_exists":true},"k":{"resolved":false,"patch_is_None":true,"patch_exists":false}}`, "true -", "false -", 1},
		{"a summary", "6.json", `{"resolved_ids":["i"],"unresolved_ids":["j"],"error_ids":["k"]}`, "true -", "false -", 1},
		{"a summary of SWE-smith", "6a.json", `{"resolved":1,"unresolved":1,"total":2,"ids_resolved":["i"],"ids_unresolved":["j"]}`, "true -", "false -", 0},
		{"a run of terminal-bench", "6c.json", `{"id":"r","results":[{"id":"u","trial_name":"i.1-of-1","task_id":"i","is_resolved":true,"failure_mode":"unset"},` +
			`{"id":"v","trial_name":"j.1-of-1","task_id":"j","is_resolved":null,"failure_mode":"test_timeout"}]}`, "true -", "false -", 0},
		{"a trial of terminal-bench", "6d.json", `{"id":"u","trial_name":"i.1-of-1","task_id":"i","is_resolved":true,"failure_mode":"unset"}`, "true -", "false -", 0},
		{"OpenHands' evaluation", "6e.jsonl", `{"instance_id":"i","test_result":{"git_patch":"p","report":{"resolved":true,"error_eval":false}},"metadata":{}}` + "\n" +
			`{"instance_id":"j","test_result":{"report":{"resolved":false,"error_eval":true}}}`, "true -", "- -", 0},
		{"a list under resolved", "6b.json", `{"no_generation":["j"],"no_logs":[],"resolved":["i"]}`, "true -", "false -", 0},
		{"a mark, semicolons, quotes and carriage returns", "7.csv", "\ufeffinstance_id;reward;comment\r\ni;0.5;\"a \"\"b\"\"; c\"\r\nj;1;\r\n", "- 0.5", "- 1", 0},
		{"tabs", "8.csv", "instance_id\treward\ni\t2\n", "- 2", "false -", 0},
		{"columns in any case, of several the first that counts", "9.csv", "Reward,id,Rollout_ID\n4,zz,a\n", "- 4", "false -", 0},
		{"numbers and truth values as text", "10.jsonl", `{"instance_id":"i","reward":"0.25","resolved":"True"}` + "\n" + `{"instance_id":"j","reward":"1e-1","resolved":0}`, "true 0.25", "false 0.1", 0},
		{"a reward that is null", "11.jsonl", `{"instance_id":"i","reward":null,"resolved":1.0}`, "true -", "false -", 0},
		{"a bare report named after the instance", "i.report.json", `{"resolved":true,"patch_exists":true}`, "true -", "false -", 0},
		{"a bare report in the folder of the instance", "j/report.json", `{"resolved":true,"tests_status":{}}`, "false -", "true -", 0},
	} {
		got, report, err := read(t, "x.jsonl", text, traj.Options{OnError: rollout.OnErrorStop, Rewards: []*traj.Rewards{load(c.name, c.rewards)}})
		require.NoError(t, err, c.reason)
		require.Equal(t, c.a, outcome(got[0]), c.reason)
		require.Equal(t, c.b, outcome(got[1]), c.reason)
		require.Equal(t, c.unmatched, report.UnmatchedCount, c.reason)
		require.Len(t, report.Unmatched, c.unmatched, c.reason)
	}
	x := load("v.jsonl", `{"instance_id":"i","verdict":"tests_timeout","reason":"600 s","resolved":false}`)
	got, _, err := read(t, "x.jsonl", text, traj.Options{OnError: rollout.OnErrorStop, Rewards: []*traj.Rewards{x}})
	require.NoError(t, err)
	require.Equal(t, rollout.VerdictTestsTimeout, got[0].Outcome.Verdict)
	require.Equal(t, "600 s", got[0].Outcome.Reason)

	two := row("a", "i") + "\n" + row("b", "i")
	_, _, err = read(t, "x.jsonl", two, traj.Options{OnError: rollout.OnErrorStop, Rewards: []*traj.Rewards{x}})
	require.ErrorContains(t, err, "was given to rollout \"a\" already", "one outcome is not two rollouts'")
	_, _, err = read(t, "x.jsonl", two, traj.Options{OnError: rollout.OnErrorStop, Rewards: []*traj.Rewards{load("w.jsonl", `{"instance_id":"i","resolved":true}`+"\n"+`{"instance_id":"i","resolved":false}`)}})
	require.ErrorContains(t, err, "several recorded outcomes")

	for reason, c := range map[string][2]string{
		"no key":                {"bad.jsonl", `{"reward":1}`},
		"not JSON":              {"bad2.jsonl", "{\"id\":\"a\",\"reward\":1}\nx"},
		"a repeated id":         {"bad3.jsonl", "{\"id\":\"a\",\"reward\":1}\n{\"id\":\"a\",\"reward\":0}"},
		"a bad number":          {"bad4.csv", "id,reward\na,much"},
		"columns without key":   {"bad5.csv", "x,reward\na,1"},
		"an unknown verdict":    {"bad6.jsonl", `{"id":"a","verdict":"fine"}`},
		"nothing in it":         {"bad7.jsonl", ""},
		"no outcome":            {"bad8.jsonl", `{"id":"a","rewrad":1}`},
		"a number that is none": {"bad9.jsonl", `{"id":"a","reward":NaN}`},
		"a truth that is none":  {"bad10.jsonl", `{"id":"a","resolved":"maybe"}`},
		"an object as reward":   {"bad11.jsonl", `{"id":"a","reward":{"value":1}}`},
	} {
		_, err := traj.LoadRewards([]string{write(t, dir, c[0], []byte(c[1]))})
		require.Error(t, err, reason)
		require.ErrorContains(t, err, c[0], reason)
		require.Regexp(t, `\(.*\)$|verdict|not JSON`, err.Error(), "%s: what to do is said", reason)
	}
}

// TestUnmatchedBothWays: rewards without a rollout and rollouts without a reward are
// listed, with a hint if they differ by a path or an extension.
func TestUnmatchedBothWays(t *testing.T) {
	text := chat("run_7/astropy-1.traj") + "\n" + chat("django-2")
	x, err := traj.LoadRewards([]string{write(t, t.TempDir(), "r.csv", []byte("id,reward\nastropy-1,1\ndjango-2,0\nzz,1\n"))})
	require.NoError(t, err)
	_, report, err := read(t, "x.jsonl", text, traj.Options{OnError: rollout.OnErrorStop, Rewards: []*traj.Rewards{x}})
	require.NoError(t, err)
	require.Equal(t, 1, report.Joined)
	require.Equal(t, []string{"run_7/astropy-1.traj"}, report.Unrewarded)
	require.Equal(t, 1, report.UnrewardedCount)
	require.Len(t, report.Unmatched, 2)
	require.Contains(t, report.Unmatched[0], `r.csv:2: astropy-1 (the rollout "run_7/astropy-1.traj" looks alike`)
	require.Contains(t, report.Unmatched[1], "r.csv:4: zz")
	x, err = traj.LoadRewards([]string{write(t, t.TempDir(), "i.csv", []byte("instance_id,reward\ndjango-2,0\n"))})
	require.NoError(t, err)
	_, report, err = read(t, "x.jsonl", text, traj.Options{OnError: rollout.OnErrorStop, Rewards: []*traj.Rewards{x}})
	require.NoError(t, err)
	require.Contains(t, report.Unmatched[0], "i.csv:2: django-2 (a rollout has this id, and none this instance")
	_, report, err = read(t, "x.jsonl", text, stop)
	require.NoError(t, err)
	require.Empty(t, report.Unrewarded, "nothing was to be joined")
}

// A joined outcome replaces the outcome of the dump completely where they differ.
func TestJoinedOutcomeReplacesTheRecorded(t *testing.T) {
	no, yes := `"resolved":false`, `"resolved":true`
	for _, c := range []struct {
		reason, dump, row, want string
		verdict                 rollout.Verdict
		replaced                bool
	}{
		{"a number in place of a verdict", no, `"reward":0.9`, "- 0.9", rollout.VerdictUnknown, true},
		{"a verdict in place of a number", `"reward":0`, yes, "true -", rollout.VerdictResolved, true},
		{"another verdict", no + `,"reward":0`, yes, "true -", rollout.VerdictResolved, true},
		{"another number", yes + `,"reward":1`, `"reward":0.5`, "- 0.5", rollout.VerdictUnknown, true},
		{"a failed grading", no + `,"reward":0`, `"verdict":"infra_error"`, "- -", rollout.VerdictInfraError, true},
		{"the same verdict and a number", no, no + `,"reward":0.9`, "false 0.9", rollout.VerdictUnresolved, false},
		{"the same verdict", no + `,"reward":0.2`, no, "false 0.2", rollout.VerdictUnresolved, false},
		{"the same verdict, and why", no, no + `,"verdict":"tests_error"`, "false -", rollout.VerdictTestsError, false},
		{"no result, but a reason", no, `"reason":"x"`, "false -", rollout.VerdictUnknown, false},
	} {
		rewards, err := traj.LoadRewards([]string{write(t, t.TempDir(), "r.jsonl", []byte(`{"id":"a",`+c.row+"}\n"))})
		require.NoError(t, err, c.reason)
		got, _, err := read(t, "x.jsonl", `{"id":"a",`+c.dump+`,"messages":[{"role":"user","content":"q"}]}`, traj.Options{OnError: rollout.OnErrorStop, Rewards: []*traj.Rewards{rewards}})
		require.NoError(t, err, c.reason)
		require.Equal(t, c.want, outcome(got[0]), c.reason)
		require.Equal(t, c.verdict, got[0].Outcome.Verdict, c.reason)
		require.Equal(t, c.replaced, strings.Contains(codes(got[0]), "outcome_replaced"), c.reason)
	}
}

func outcome(r *rollout.Rollout) string {
	s := "-"
	if r.Outcome.Reward != nil {
		s = fmt.Sprint(*r.Outcome.Reward)
	}
	if r.Outcome.Resolved == nil {
		return "- " + s
	}
	return fmt.Sprint(*r.Outcome.Resolved, " ", s)
}

func TestResultsOfAFolderOfRuns(t *testing.T) {
	dir := t.TempDir()
	run := `{"trajectory_format":"slime-mini-swe-remote-eval-1","step_debug":[],"messages":[{"role":"user","content":"q"}],"info":{"instance_id":"i","exit_status":"submitted","reward":0,"eval_result":null}}`
	write(t, dir, "i__1/traj.json", []byte(run))
	write(t, dir, "i__2/traj.json", []byte(run))
	write(t, dir, "results.jsonl", []byte(`{"instance_id":"i","resolved":true,"run_dir":"/runs/i__2"}`+"\n"+`{"instance_id":"i","resolved":false,"run_dir":"/runs/i__1"}`))
	got := all(t, stop, dir)
	require.Len(t, got, 2)
	require.False(t, *got[0].Outcome.Resolved)
	require.True(t, *got[1].Outcome.Resolved, "the row of the own folder counts")
}

// TestTrialsOfTerminalBench: an agent's logs are below the folder of its trial.
func TestTrialsOfTerminalBench(t *testing.T) {
	dir := t.TempDir()
	row := func(n string, resolved string) string {
		return `{"id":"u` + n + `","trial_name":"i.` + n + `-of-2","task_id":"i","is_resolved":` + resolved + `,"failure_mode":"agent_timeout"}`
	}
	text := []byte(`{"instance_id":"i","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`)
	write(t, dir, "run/i/i.1-of-2/agent-logs/chat.json", text)
	write(t, dir, "run/i/i.2-of-2/agent-logs/chat.json", text)
	rewards, err := traj.LoadRewards([]string{write(t, t.TempDir(), "results.json", []byte(`{"results":[`+row("1", "false")+`,`+row("2", "true")+`]}`))})
	require.NoError(t, err)
	got := all(t, traj.Options{OnError: rollout.OnErrorStop, Rewards: []*traj.Rewards{rewards}}, dir)
	require.Equal(t, "false - agent_timeout, true - agent_timeout", outcome(got[0])+" "+got[0].Outcome.Reason+", "+outcome(got[1])+" "+got[1].Outcome.Reason)
}

// TestReportsAndTheirSummary: the report of an instance and the summary of its run are the
// outcome of one rollout; where they contradict each other, neither is taken.
func TestReportsAndTheirSummary(t *testing.T) {
	for summary, want := range map[string]string{
		`{"ids_resolved":["j"],"ids_unresolved":["i"]}`:  "false - no_patch",
		`{"resolved_ids":["j"],"empty_patch_ids":["i"]}`: "false - no_patch",
		`{"resolved_ids":["i"]}`:                         "",
	} {
		dir := t.TempDir()
		write(t, dir, "i/report.json", []byte(`{"resolved":false,"patch_is_None":true,"patch_exists":false}`))
		write(t, dir, "report.json", []byte(summary))
		rewards, err := traj.LoadRewards([]string{dir})
		require.NoError(t, err)
		out, _, err := read(t, "x.jsonl", `{"instance_id":"i","messages":[{"role":"user","content":"q"}]}`, traj.Options{OnError: rollout.OnErrorStop, Rewards: []*traj.Rewards{rewards}})
		if want == "" {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, outcome(out[0])+" "+out[0].Outcome.Verdict.String())
	}
}

// Each of several runs of an instance has its own report, beside the run.
func TestReportsInTheFoldersOfRunsAreTheirs(t *testing.T) {
	dir := t.TempDir()
	run := `[{"role":"system","content":"s"},{"role":"user","content":"q"},{"role":"assistant","content":"a"}]`
	for _, name := range []string{"one/i/i.traj.json", "two/i/i.traj.json", "three/i/i.traj.json", "four/i/i.traj.json"} {
		write(t, dir, name, []byte(`{"instance_id":"i","info":{"exit_status":"Submitted"},"trajectory_format":"mini-swe-agent-1","messages":`+run+`}`))
	}
	var files []string
	for name, text := range map[string]string{
		"one/i/report.json": `{"i":{"resolved":true,"patch_exists":true,"tests_status":{}}}`, "two/i/report.json": `{"i":{"resolved":true,"patch_exists":true,"tests_status":{}}}`, // two runs have the same report
		"three/i/report.json": `{"i":{"resolved":false,"patch_successfully_applied":false,"patch_exists":true}}`,
	} {
		write(t, dir, name, []byte(text))
		files = append(files, filepath.Join(dir, name))
	}
	slices.Sort(files)
	rewards, err := traj.LoadRewards(files)
	require.NoError(t, err)
	r, err := traj.Open([]string{dir}, traj.Options{Rewards: []*traj.Rewards{rewards}, OnError: rollout.OnErrorSkip})
	require.NoError(t, err)
	got := map[string]string{}
	for x, err := range r.All() {
		if err == nil {
			got[filepath.Base(filepath.Dir(filepath.Dir(x.Origin.File)))] = outcome(x)
		}
	}
	require.Equal(t, map[string]string{"one": "true -", "two": "true -", "three": "false -"}, got)
	require.Equal(t, 1, r.Report().Skipped, "nothing tells which is the fourth run's")
	require.Empty(t, r.Report().Unmatched)
}

// With results of several runs, a task that has results only in another run gets none.
func TestResultsOfAnotherRunAreNotTaken(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for _, name := range []string{"one", "two"} {
		for _, i := range []string{"i", "j"} {
			write(t, dir, name+"/trajs/"+i+".traj.json", []byte(`{"instance_id":"`+i+`","info":{"exit_status":"Submitted"},"trajectory_format":"mini-swe-agent-1","messages":[{"role":"system","content":"s"},{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`))
		}
	}
	write(t, dir, "one/results/results.json", []byte(`{"resolved_ids":["i"],"unresolved_ids":[]}`))
	write(t, dir, "two/results/results.json", []byte(`{"resolved_ids":["j"],"unresolved_ids":["i"]}`))
	for _, name := range []string{"one", "two"} {
		files = append(files, filepath.Join(dir, name, "results", "results.json"))
	}
	rewards, err := traj.LoadRewards(files)
	require.NoError(t, err)
	r, err := traj.Open([]string{dir}, traj.Options{Rewards: []*traj.Rewards{rewards}, OnError: rollout.OnErrorStop})
	require.NoError(t, err)
	var got []string
	for x, err := range r.All() {
		require.NoError(t, err)
		got = append(got, outcome(x))
	}
	require.Equal(t, []string{"true -", "- -", "false -", "true -"}, got)
	require.Len(t, r.Report().Unrewarded, 1)
}
