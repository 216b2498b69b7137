package traj

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// SWE-agent runs as exported by nebius: "trajectory" entries with text,
// system_prompt and mask. mask is true on the turns to train, the opposite of
// what the word says elsewhere.

func isNebius(v value, _ *job) bool {
	t := v.Get("trajectory")
	if t.Kind() != jsonscan.Array {
		return false
	}
	for _, m := range t.Items() {
		return m.Get("role").Kind() == jsonscan.String && m.Get("content").Kind() == jsonscan.Absent &&
			(m.Get("text").Kind() != jsonscan.Absent || m.Get("system_prompt").Kind() != jsonscan.Absent)
	}
	return v.Get("generated_patch").Kind() != jsonscan.Absent && v.Get("eval_logs").Kind() != jsonscan.Absent
}

func readNebius(j *job, v value) error {
	if err := j.wantList(v.Get("trajectory"), "/trajectory"); err != nil {
		return err
	}
	r := &rollout.Rollout{
		Instance:   identifier(v.Get("instance_id")),
		Index:      noIndex,
		ExitStatus: v.Get("exit_status").String(),
		Outcome:    rollout.Outcome{Resolved: j.resolved(v.Get("target")), Submission: text(v.Get("generated_patch"))},
	}
	r.Status = statusOf(r.ExitStatus)
	for i, x := range v.Get("trajectory").Items() {
		at := rollout.At(i)
		m := rollout.Message{NoContent: true}
		switch role, ok := x.Get("role").Text(); {
		case !ok:
			return j.fail(at, "/role", "the message has no role")
		case role == "ai":
			m.Role = rollout.RoleAssistant
			m.Sampled = rollout.SampledByPolicy
			if train, ok := x.Get("mask").Bool(); ok && !train {
				m.Sampled = rollout.SampledUnknown
				j.note("not_to_train", at, "the set marks this reply as not to be trained and does not say why")
			}
		default:
			m.Role = rollout.Role(role)
		}
		for _, key := range []string{"text", "system_prompt"} {
			if m.NoContent && x.Get(key).Kind() == jsonscan.String {
				m.Content, m.NoContent = j.text(x.Get(key), at, "/"+key), false
			}
		}
		r.Messages = append(r.Messages, m)
	}
	r.Turns = turns(r.Messages)
	j.leftover(r, v, "instance_id", "exit_status", "target", "generated_patch", "trajectory")
	return j.emit(r)
}
