package traj_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/traj"
)

// What the writer records for each way a run can end, and its value on the signed scale: 0
// if unknown.
func TestOpenClawOutcomes(t *testing.T) {
	const said = `[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]`
	for _, tc := range []struct {
		name, messages, info string
		verdict              rollout.Verdict
		status               rollout.Status
		failure, reason      string
		signed               float64
	}{
		{"resolved", said, `"exit_status":"submitted","error":null,"patch_source":"submission","reward":1,"eval_result":{"ok":true,"resolved":true,"returncode":0,"output":""}`, rollout.VerdictResolved, rollout.StatusCompleted, "", "resolved", 1},
		{"unresolved", said, `"exit_status":"max_steps","error":null,"patch_source":"git_diff_fallback","reward":0,"eval_result":{"ok":true,"resolved":false,"returncode":2,"output":"boom"}`, rollout.VerdictUnresolved, rollout.StatusTruncated, "", "unresolved", -1},
		{"apply", said, `"exit_status":"submitted","error":null,"patch_source":"submission","reward":0,"eval_result":{"ok":true,"resolved":false,"error":"git apply failed: error: corrupt patch at line 9"}`, rollout.VerdictApplyFailed, rollout.StatusCompleted, "", "git apply failed: error: corrupt patch at line 9", -1},
		{"no unified diff", said, `"exit_status":"submitted","error":null,"patch_source":"submission","reward":0,"eval_result":{"ok":true,"resolved":false,"error":"patch validation failed: expected unified git diff with diff --git headers"}`, rollout.VerdictApplyFailed, rollout.StatusCompleted, "", "patch validation failed: expected unified git diff with diff --git headers", -1},
		{"timeout", said, `"exit_status":"max_steps","error":null,"patch_source":"submission","reward":0,"eval_result":{"ok":true,"resolved":false,"error":"Evaluation timed out after 60s"}`, rollout.VerdictTestsTimeout, rollout.StatusTruncated, "", "Evaluation timed out after 60s", -1},
		{"no patch, submitted", said, `"exit_status":"submitted","error":null,"patch_source":null,"reward":0,"eval_result":null`, rollout.VerdictNoPatch, rollout.StatusCompleted, "", "the run made no patch", -1},
		{"evaluation lost", said, `"exit_status":"submitted","error":"SWE evaluate failed: {'ok': False}","patch_source":"submission","reward":0,"eval_result":null`, rollout.VerdictInfraError, rollout.StatusFailed, "evaluate_failed", "SWE evaluate failed: {'ok': False}", 0},
		{"evaluation lost by an exception without a text", said, `"exit_status":"submitted","error":"","patch_source":"submission","reward":0,"eval_result":null`, rollout.VerdictInfraError, rollout.StatusFailed, "infra_error", "infra_error", 0},
		{"an error that is no text", said, `"exit_status":"submitted","error":{"code":503},"patch_source":"submission","reward":0,"eval_result":null`, rollout.VerdictInfraError, rollout.StatusFailed, "infra_error", `{"code":503}`, 0},
		{"no container for the evaluation", said, `"exit_status":"submitted","error":"SWE allocate failed: {}","patch_source":"submission","reward":0,"eval_result":null`, rollout.VerdictInfraError, rollout.StatusFailed, "allocate_failed", "SWE allocate failed: {}", 0},
		{"call lost, and what there was is graded", said, `"exit_status":"max_steps","error":"LLM call failed at step 1: 503","patch_source":"git_diff_fallback","reward":0,"eval_result":{"ok":true,"resolved":false,"returncode":1,"output":""}`, rollout.VerdictInfraError, rollout.StatusFailed, "llm_failed", "LLM call failed at step 1: 503", 0},
		{"call lost, and what there was resolves", said, `"exit_status":"max_steps","error":"LLM call failed at step 1: 503","patch_source":"git_diff_fallback","reward":1,"eval_result":{"ok":true,"resolved":true,"returncode":0,"output":""}`, rollout.VerdictResolved, rollout.StatusFailed, "llm_failed", "LLM call failed at step 1: 503", 0},
		{"diff lost after a submission", said, `"exit_status":"submitted","error":"diff failed: ","patch_source":null,"reward":0,"eval_result":null`, rollout.VerdictInfraError, rollout.StatusFailed, "diff_failed", "diff failed: ", 0},
		{"heartbeat lost", `[]`, `"exit_status":null,"error":"SWE heartbeat failed: {}","patch_source":null,"reward":0,"eval_result":null`, rollout.VerdictInfraError, rollout.StatusFailed, "heartbeat_failed", "SWE heartbeat failed: {}", 0},
		{"no messages and no error", `[]`, `"exit_status":null,"error":null,"patch_source":null,"reward":0,"eval_result":null`, rollout.VerdictInfraError, rollout.StatusFailed, "no_messages", "the run has no messages and tells no error", 0},
		{"a patch and nothing of it", said, `"exit_status":"submitted","error":null,"patch_source":"submission","reward":0,"eval_result":null`, rollout.VerdictInfraError, rollout.StatusFailed, "not_evaluated", "there is a patch and no evaluation of it", 0},
		{"an evaluation that says nothing", said, `"exit_status":"submitted","error":null,"patch_source":"submission","reward":0,"eval_result":{"ok":false,"error":"node lost"}`, rollout.VerdictInfraError, rollout.StatusFailed, "evaluation_unreadable", "node lost", 0},
		{"the container was gone", said, `"exit_status":"submitted","error":null,"patch_source":"submission","reward":0,"eval_result":{"ok":true,"resolved":false,"error":"git apply failed: Error response from daemon: No such container: x"}`, rollout.VerdictInfraError, rollout.StatusCompleted, "", "git apply failed: Error response from daemon: No such container: x", 0},
		{"nothing is told", said, `"exit_status":"submitted","reward":0`, rollout.VerdictUnknown, rollout.StatusCompleted, "", "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := one(t, "traj.json", fmt.Sprintf(`{"trajectory_format":"slime-mini-swe-remote-1","messages":%s,"step_debug":[],"info":{"instance_id":"i",%s}}`, tc.messages, tc.info))
			require.NoError(t, r.Validate())
			require.Equal(t, tc.verdict, r.Outcome.Verdict)
			require.Equal(t, tc.status, r.Status)
			if tc.failure == "" {
				require.Nil(t, r.Failure)
			} else {
				require.Equal(t, tc.failure, r.Failure.Reason)
			}
			got := reward.Score(r, reward.OutcomePolicy{Outcome: "auto"})
			require.Equal(t, tc.signed, got.Total, got.Excluded)
			require.Equal(t, tc.signed == 0, got.Excluded != "")
			require.Equal(t, tc.reason, got.Reason)
		})
	}
}

// What a run recorded about its commands belongs to the turn that wrote them, and is stored
// with it. A reply without a command has none.
func TestOpenClawSteps(t *testing.T) {
	step := func(i int, action string, code int) string {
		return fmt.Sprintf(`{"step_idx":%d,"action":%q,"returncode":%d,"output_len":2,"output_head":"ok","output_tail":"ok","start_ts":1.5,"end_ts":2.25,"ok":%t}`, i, action, code, code != -1)
	}
	r := one(t, "traj.json", `{"trajectory_format":"slime-mini-swe-remote-1","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"ls -l"},{"role":"user","content":"o"},{"role":"assistant","content":"no command"},{"role":"user","content":"o"},{"role":"assistant","content":"sleep 9"}],"info":{"instance_id":"i"},"step_debug":[`+
		step(0, "ls -l", 0)+","+step(2, "sleep 10", -1)+","+step(2, "again", 0)+","+step(7, "x", 0)+`]}`)
	require.Equal(t, step(0, "ls -l", 0), string(r.Turns[0].Extra["step_debug"]))
	require.Nil(t, r.Turns[1].Extra)
	require.Equal(t, step(2, "sleep 10", -1), string(r.Turns[2].Extra["step_debug"]))
	require.Contains(t, codes(r), "step_differs step_without_message step_without_message")
	line, err := jsonl.Append(nil, r)
	require.NoError(t, err)
	back, err := jsonl.Parse(line, jsonl.Options{})
	require.NoError(t, err)
	require.Equal(t, r.Turns, back.Turns)
}

// TestKitOpenClaw: the nine outcomes listed in FORMAT.md, by folder.
func TestKitOpenClaw(t *testing.T) {
	dir := filepath.Join(kit.Dir(t, "data", "trajectories"), "openclaw-rl")
	want := map[string]string{
		"train-resolved": "resolved +1", "train-unresolved": "unresolved -1", "train-apply-failed": "apply_failed -1", "train-eval-timeout": "tests_timeout -1", "train-no-patch": "no_patch -1",
		"train-eval-failed": "infra_error", "train-llm-failed": "infra_error", "train-diff-failed": "infra_error", "train-allocate-failed": "infra_error",
	}
	for name, outcome := range want {
		r := all(t, stop, filepath.Join(dir, name))[0]
		got := reward.Score(r, reward.OutcomePolicy{})
		shown := got.Verdict.String()
		if got.Excluded == "" {
			shown += fmt.Sprintf(" %+g", got.Total)
		}
		require.Equal(t, outcome, shown, name)
		require.Equal(t, got.Excluded != "", r.Status == rollout.StatusFailed, name)
		for i := range r.Turns {
			var step struct {
				Action  string
				StartTS float64 `json:"start_ts"`
			}
			require.NoError(t, json.Unmarshal(r.Turns[i].Extra["step_debug"], &step), name)
			require.NotEmpty(t, step.Action)
			require.NotZero(t, step.StartTS)
		}
	}
	require.Len(t, all(t, stop, dir), len(want)+3)
	require.Len(t, all(t, traj.Options{OnError: rollout.OnErrorStop, Alone: true}, dir), len(want)+3)
}
