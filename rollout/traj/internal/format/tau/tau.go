package tau

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Importer reads attempts of tau-bench.
func Importer() format.Importer {
	return format.Importer{Name: "tau-bench", Match: isTauBench, Read: readTauBench}
}

func isTauBench(v format.Value, _ *format.File) bool {
	return v.Get("traj").Kind() == jsonscan.Array && v.Get("task_id").Kind() != jsonscan.Absent && v.Get("reward").Kind() != jsonscan.Absent
}

func readTauBench(in *format.File, v format.Value) error {
	messages := in.ChatMessages(v.Get("traj"), "/traj")
	format.MarkReplies(messages, rollout.SampledByPolicy)
	task := format.Identifier(v.Get("task_id"))
	r := &rollout.Rollout{
		Group:    "task-" + task,
		Instance: task,
		Index:    format.NoIndex,
		Messages: messages,
		Turns:    format.TurnsOf(messages),
		Outcome:  rollout.Outcome{Reward: in.Reward(v.Get("reward"))},
	}
	if detail := v.Path("info", "error").String(); detail != "" {
		// The harness writes a reward of 0 for a run that could not be carried out.
		r.Status = rollout.StatusFailed
		r.Failure = &rollout.Failure{Reason: "run_error", Detail: detail}
	}
	if n, ok := v.Get("trial").Int(); ok && n >= 0 {
		r.Index = n
		r.ID = "task-" + task + "/trial-" + format.Identifier(v.Get("trial"))
	}
	if known := v.Path("info", "task"); !known.IsNull() {
		in.Task = format.TaskOf("", known)
	}
	in.Note("tools_not_recorded", 0, "the tools the model saw are not in the file")
	in.Leftover(r, v, "traj", "task_id", "reward", "trial")
	return in.Emit(r)
}
