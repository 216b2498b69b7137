package atif

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// joinTrial adds the results in the folder of a trial to its trajectory. Continuations and
// sub-agents beside it share its reward but do not get it: it would count twice.
func joinTrial(in *format.File, r *rollout.Rollout) error {
	path := filepath.ToSlash(in.Path)
	if in.Settings.Alone || !strings.HasSuffix(path, "agent/trajectory.json") {
		return nil
	}
	result, err := in.NeighbourJSON(filepath.Join("..", "result.json"))
	if err != nil {
		return err
	}
	r.Instance = result.Get("task_name").String()
	if name := result.Get("trial_name").String(); name != "" {
		r.ID = name
	}
	from := "result.json"
	rewards := result.Path("verifier_result", "rewards")
	if rewards.IsNull() {
		from = "verifier/reward.json"
		if rewards, err = in.NeighbourJSON(filepath.Join("..", "verifier", "reward.json")); err != nil {
			return err
		}
	}
	r.Outcome.Reward = harborReward(rewards)
	if r.Outcome.Reward == nil {
		from = "verifier/reward.txt"
		text, err := in.Neighbour(filepath.Join("..", "verifier", "reward.txt"))
		if err != nil {
			return err
		}
		if f, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil && f-f == 0 {
			r.Outcome.Reward = &f
		}
	}
	if r.Outcome.Reward != nil {
		in.Note("joined", 0, "the reward comes from %s", from)
	}
	if rewards.Len() > 1 {
		format.Keep(&r.Metadata, "rewards", rewards)
	}
	exception(in, r, result.Get("exception_info"))
	return nil
}

// harborReward returns the reward of that name, or the only one.
func harborReward(v format.Value) *float64 {
	if f := format.Number(v.Get("reward")); f != nil || v.Len() != 1 {
		return f
	}
	for _, x := range v.Members() {
		return format.Number(x)
	}
	return format.Number(v)
}

// exception reads the exception that ended a trial. Harbor grades a trial even if the agent
// crashed: a positive reward counts, but a reward of 0 may be caused by the crash.
func exception(in *format.File, r *rollout.Rollout, v format.Value) {
	kind := v.Get("exception_type").String()
	if kind == "" {
		return
	}
	r.ExitStatus = kind
	switch {
	case kind == "AgentTimeoutError":
		r.Status = rollout.StatusTruncated
	case r.Outcome.Reward == nil || *r.Outcome.Reward <= 0:
		r.Status = rollout.StatusFailed
		r.Failure = &rollout.Failure{Reason: kind, Detail: v.Get("exception_message").String()}
	}
}
