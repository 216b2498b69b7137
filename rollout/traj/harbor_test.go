package traj_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// TestHarborTrials: the reward is in the folder of the trial, since ATIF cannot hold it.
func TestHarborTrials(t *testing.T) {
	atif := []byte(`{"schema_version":"ATIF-v1.7","session_id":"s","agent":{"name":"n"},"steps":[{"step_id":1,"source":"user","message":"q"},{"step_id":2,"source":"agent","message":"a"}],"subagent_trajectories":[{"schema_version":"ATIF-v1.7","trajectory_id":"c","agent":{},"steps":[{"step_id":1,"source":"agent","message":"b"}]}]}`)
	dir := t.TempDir()
	for trial, files := range map[string][][2]string{
		"a": {{"result.json", `{"task_name":"task","trial_name":"task__1","verifier_result":{"rewards":{"reward":1}},"exception_info":null}`}},
		"b": {{"result.json", `{"task_name":"task","trial_name":"task__2","verifier_result":{"rewards":{"accuracy":0.5,"reward":0,"style":1}},"exception_info":{"exception_type":"AgentTimeoutError","exception_message":"900 s"}}`}},
		"c": {{"verifier/reward.txt", "0.25\n"}},
		"d": {{"verifier/reward.json", `{"score":2}`}, {"verifier/reward.txt", "7"}},
		"e": {{"result.json", `{"task_name":"task","trial_name":"task__5","exception_info":{"exception_type":"EnvironmentStartTimeoutError","exception_message":"gone"}}`}},
		"f": {{"result.json", `{"verifier_result":{"rewards":{"reward":0}},"exception_info":{"exception_type":"NonZeroAgentExitCodeError","exception_message":"1"}}`}},
		"g": {{"result.json", `{"verifier_result":{"rewards":{"reward":1}},"exception_info":{"exception_type":"NonZeroAgentExitCodeError","exception_message":"1"}}`}},
	} {
		write(t, dir, trial+"/agent/trajectory.json", atif)
		for _, f := range files {
			write(t, dir, trial+"/"+f[0], []byte(f[1]))
		}
	}
	write(t, dir, "a/agent/trajectory.summarization-1-summary.json", atif)
	got := map[string]*rollout.Rollout{}
	for _, r := range all(t, stop, dir) {
		if r.Metadata["parent_trajectory"] == nil {
			got[r.Origin.File[len(dir)+1:]] = r
		} else {
			require.Nil(t, r.Outcome.Reward, "a sub-agent is no trial")
		}
	}
	reward := func(trial string) float64 { return *got[trial+"/agent/trajectory.json"].Outcome.Reward }
	require.Equal(t, []float64{1, 0, 0.25, 2}, []float64{reward("a"), reward("b"), reward("c"), reward("d")})
	a, b, e := got["a/agent/trajectory.json"], got["b/agent/trajectory.json"], got["e/agent/trajectory.json"]
	require.Equal(t, []string{"task__1", "task", "task"}, []string{a.ID, a.Group, b.Group})
	require.Equal(t, rollout.StatusTruncated, b.Status)
	require.Contains(t, string(b.Metadata["rewards"]), "accuracy")
	require.Equal(t, rollout.StatusFailed, e.Status)
	require.Equal(t, "EnvironmentStartTimeoutError", e.Failure.Reason)
	crashed, solved := got["f/agent/trajectory.json"], got["g/agent/trajectory.json"]
	require.Equal(t, rollout.StatusFailed, crashed.Status, "that nothing was earned may be the crash's doing")
	require.Equal(t, rollout.StatusUnknown, solved.Status)
	require.Nil(t, got["a/agent/trajectory.summarization-1-summary.json"].Outcome.Reward)
	for _, r := range all(t, traj.Options{OnError: rollout.OnErrorStop, Alone: true}, dir) {
		require.Nil(t, r.Outcome.Reward)
	}
	write(t, dir, "c/result.json", []byte(`{"task_name":`))
	broken := all(t, stop, filepath.Join(dir, "c", "agent", "trajectory.json"))[0]
	require.Equal(t, "meta_unreadable joined", codes(broken))
}
