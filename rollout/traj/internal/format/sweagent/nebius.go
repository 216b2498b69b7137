package sweagent

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Nebius reads the rows of the published sets.
func Nebius() format.Importer {
	return format.Importer{Name: "swe-agent-nebius", Match: isNebius, Read: readNebius, Stateless: true}
}

func isNebius(v format.Value, _ *format.File) bool {
	t := v.Get("trajectory")
	if m := t.First(); t.Kind() != jsonscan.Array || t.Len() > 0 {
		return m.Get("role").Kind() == jsonscan.String && m.Get("content").Kind() == jsonscan.Absent &&
			(m.Get("text").Kind() != jsonscan.Absent || m.Get("system_prompt").Kind() != jsonscan.Absent)
	}
	return v.Get("generated_patch").Kind() != jsonscan.Absent && v.Get("eval_logs").Kind() != jsonscan.Absent
}

func readNebius(in *format.File, v format.Value) error {
	in.WantList(v.Get("trajectory"), "/trajectory")
	r := &rollout.Rollout{
		Instance:   format.Identifier(v.Get("instance_id")),
		Index:      format.NoIndex,
		ExitStatus: v.Get("exit_status").String(),
		Outcome:    rollout.Outcome{Resolved: in.Resolved(v.Get("target")), Submission: format.Text(v.Get("generated_patch"))},
	}
	r.Status = format.StatusOf(r.ExitStatus)
	for i, x := range v.Get("trajectory").Items() {
		at := rollout.At(i)
		word, ok := x.Get("role").Text()
		if !ok {
			return in.Fail(at, "/role", "the message has no role")
		}
		role, err := in.Speaker(word, i, "/role")
		if err != nil {
			return err
		}
		body := format.Value{}
		for _, key := range []string{"text", "system_prompt"} {
			if b := x.Get(key); body.Kind() == jsonscan.Absent && b.Kind() == jsonscan.String {
				body = b
			}
		}
		m, err := in.Message(x, i, role, body)
		if err != nil {
			return err
		}
		format.Drop(&m.Extra, "text", "system_prompt", "mask", "cutoff_date")
		if role == rollout.RoleAssistant {
			m.Sampled = rollout.SampledByPolicy
			if train, ok := x.Get("mask").Bool(); ok && !train {
				m.Sampled = rollout.SampledUnknown
				in.Note("not_to_train", at, "the set marks this reply as not to be trained and does not say why")
			}
		}
		r.Messages = append(r.Messages, m)
	}
	r.Turns = format.TurnsOf(r.Messages)
	leaveClosing(in, r)
	in.Leftover(r, v, "instance_id", "exit_status", "target", "generated_patch", "trajectory")
	return in.Emit(r)
}
