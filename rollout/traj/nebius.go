package traj

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// SWE-agent runs as exported by nebius: "trajectory" entries with text,
// system_prompt and mask. mask is true on the turns to train, the opposite of
// what the word says elsewhere.

func isNebius(v value, _ *fileReader) bool {
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

func readNebius(j *fileReader, v value) error {
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
		word, ok := x.Get("role").Text()
		if !ok {
			return j.fail(at, "/role", "the message has no role")
		}
		role, err := j.speaker(word, i, "/role")
		if err != nil {
			return err
		}
		body := value{}
		for _, key := range []string{"text", "system_prompt"} {
			if b := x.Get(key); body.Kind() == jsonscan.Absent && b.Kind() == jsonscan.String {
				body = b
			}
		}
		m, err := j.message(x, i, role, body)
		if err != nil {
			return err
		}
		drop(&m.Extra, "text", "system_prompt", "mask", "cutoff_date")
		if role == rollout.RoleAssistant {
			m.Sampled = rollout.SampledByPolicy
			if train, ok := x.Get("mask").Bool(); ok && !train {
				m.Sampled = rollout.SampledUnknown
				j.note("not_to_train", at, "the set marks this reply as not to be trained and does not say why")
			}
		}
		r.Messages = append(r.Messages, m)
	}
	r.Turns = turns(r.Messages)
	j.leftover(r, v, "instance_id", "exit_status", "target", "generated_patch", "trajectory")
	return j.emit(r)
}
