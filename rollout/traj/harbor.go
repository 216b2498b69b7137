package traj

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// Harbor keeps a trial as a folder: agent/trajectory.json, what the verifier
// gave in verifier/reward.txt or reward.json, and both again in result.json.

// harborTrial joins what the folder of a trial tells about its trajectory.
// Continuations and sub-agents lie beside it and share its reward, so they get
// none: it would count twice.
func (j *fileReader) harborTrial(r *rollout.Rollout) error {
	path := filepath.ToSlash(j.file.Path)
	if j.r.opt.Alone || !strings.HasSuffix(path, "agent/trajectory.json") {
		return nil
	}
	result, err := j.neighbourJSON(filepath.Join("..", "result.json"))
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
		if rewards, err = j.neighbourJSON(filepath.Join("..", "verifier", "reward.json")); err != nil {
			return err
		}
	}
	r.Outcome.Reward = harborReward(rewards)
	if r.Outcome.Reward == nil {
		from = "verifier/reward.txt"
		text, err := j.neighbour(filepath.Join("..", "verifier", "reward.txt"))
		if err != nil {
			return err
		}
		if f, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil && f-f == 0 {
			r.Outcome.Reward = &f
		}
	}
	if r.Outcome.Reward != nil {
		j.note("joined", 0, "the reward comes from %s", from)
	}
	if rewards.Len() > 1 {
		keep(&r.Metadata, "rewards", rewards)
	}
	j.harborException(r, result.Get("exception_info"))
	return nil
}

// harborReward is the reward of that name, or the only one.
func harborReward(v value) *float64 {
	if f := number(v.Get("reward")); f != nil || v.Len() != 1 {
		return f
	}
	for _, x := range v.Members() {
		return number(x)
	}
	return number(v)
}

// harborException says how a trial ended that ended by an exception: one that
// has a reward all the same ran to where it was judged.
func (j *fileReader) harborException(r *rollout.Rollout, v value) {
	kind := v.Get("exception_type").String()
	if kind == "" {
		return
	}
	r.ExitStatus = kind
	switch {
	case kind == "AgentTimeoutError":
		r.Status = rollout.StatusTruncated
	case r.Outcome.Reward == nil:
		r.Status = rollout.StatusFailed
		r.Failure = &rollout.Failure{Reason: kind, Detail: v.Get("exception_message").String()}
	}
}

// neighbourJSON reads a JSON file of the folder, as an absent value when there is
// none or it is broken, which is noted.
func (j *fileReader) neighbourJSON(name string) (value, error) {
	text, err := j.neighbour(name)
	if err != nil || text == nil {
		return value{}, err
	}
	var d jsonscan.Doc
	v, err := d.Parse(text, jsonscan.Options{NonFinite: true})
	if err != nil {
		j.note("meta_unreadable", 0, "%s is not JSON: %s", filepath.Base(name), err)
		return value{}, nil
	}
	return v, nil
}
