package traj

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// tau-bench keeps one object per attempt: "traj" is an OpenAI chat with a
// simulated user, task and trial make natural groups.

func isTauBench(v value, _ *fileReader) bool {
	return v.Get("traj").Kind() == jsonscan.Array && v.Get("task_id").Kind() != jsonscan.Absent && v.Get("reward").Kind() != jsonscan.Absent
}

func readTauBench(j *fileReader, v value) error {
	messages, err := j.chatMessages(v.Get("traj"), "/traj")
	if err != nil {
		return err
	}
	sampleAll(messages, rollout.SampledByPolicy)
	task := identifier(v.Get("task_id"))
	r := &rollout.Rollout{
		Group:    "task-" + task,
		Instance: task,
		Index:    noIndex,
		Messages: messages,
		Turns:    turns(messages),
		Outcome:  rollout.Outcome{Reward: j.reward(v.Get("reward"))},
	}
	if detail := v.Path("info", "error").String(); detail != "" {
		// The harness writes a reward of 0 for a run that it could not make.
		r.Status = rollout.StatusFailed
		r.Failure = &rollout.Failure{Reason: "run_error", Detail: detail}
	}
	if n, ok := v.Get("trial").Int(); ok && n >= 0 {
		r.Index = n
		r.ID = "task-" + task + "/trial-" + identifier(v.Get("trial"))
	}
	if known := v.Path("info", "task"); !known.IsNull() {
		j.task = taskOf("", known)
	}
	j.note("tools_not_recorded", 0, "the tools the model saw are not in the file")
	j.leftover(r, v, "traj", "task_id", "reward", "trial")
	return j.emit(r)
}
