package finetuning

import (
	"slices"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Alpaca reads instructions with the answer that somebody wrote, as LLaMA-Factory and
// ms-swift have them.
func Alpaca() format.Importer {
	return format.Importer{Name: "alpaca", Match: isAlpaca, Read: readAlpaca, Stateless: true}
}

// answered are the columns of a question and of its answer.
var answered = [][2]string{{"instruction", "output"}, {"instruction", "response"}, {"query", "response"}}

func isAlpaca(v format.Value, _ *format.File) bool {
	if !v.Get("messages").IsNull() || !v.Get("conversations").IsNull() || !v.Get("trajectory").IsNull() {
		return false
	}
	_, ok := answerOf(v)
	return ok && pairsOnly(v.Get("history"))
}

func answerOf(v format.Value) (pair [2]string, ok bool) {
	for _, p := range answered {
		if v.Get(p[0]).Kind() == jsonscan.String && v.Get(p[1]).Kind() == jsonscan.String {
			return p, true
		}
	}
	return pair, false
}

// pairsOnly knows a history of questions with their answers.
func pairsOnly(v format.Value) bool {
	for _, x := range v.Items() {
		if x.Kind() != jsonscan.Array || x.Len() != 2 {
			return false
		}
	}
	return v.IsNull() || v.Kind() == jsonscan.Array
}

// readAlpaca reads a record, whose replies are demonstrations: nobody says that the
// policy sampled them.
func readAlpaca(in *format.File, v format.Value) error {
	pair, ok := answerOf(v)
	if !ok {
		return in.Want(v.Get("output"), 0, "/output", "the text of an answer beside an instruction")
	}
	r := &rollout.Rollout{ID: format.FirstID(v, "id", "uuid"), Instance: format.FirstID(v, "instance_id", "task_id"), Index: format.NoIndex, Outcome: rollout.Outcome{Reward: in.Reward(v.Get("reward"))}}
	say := func(role rollout.Role, x format.Value, field string) {
		i := len(r.Messages)
		m := rollout.Message{Role: role, Content: in.Text(x, rollout.At(i), "/"+field)}
		if role == rollout.RoleAssistant {
			m.Sampled = rollout.SampledDemonstration
		}
		r.Messages = append(r.Messages, m)
	}
	for _, x := range v.Get("history").Items() {
		for k, y := range x.Items() {
			if y.Kind() != jsonscan.String {
				return in.Want(y, rollout.At(len(r.Messages)), "/history", "a text")
			}
			say([]rollout.Role{rollout.RoleUser, rollout.RoleAssistant}[k], y, "history")
		}
	}
	say(rollout.RoleUser, v.Get(pair[0]), pair[0])
	if more := v.Get("input"); more.Kind() == jsonscan.String && !more.Is("") {
		m := &r.Messages[len(r.Messages)-1]
		m.Content += "\n" + in.Text(more, rollout.At(len(r.Messages)-1), "/input")
	} else if more.Kind() != jsonscan.String && !more.IsNull() {
		return in.Want(more, 0, "/input", "a text")
	}
	say(rollout.RoleAssistant, v.Get(pair[1]), pair[1])
	if _, err := systemPrompt(in, r, v); err != nil {
		return err
	}
	if err := in.TemplateKwargs(r, v); err != nil {
		return err
	}
	r.Outcome.Resolved = in.Resolved(v.Get("resolved"))
	if err := media(in, r, v); err != nil {
		return err
	}
	in.Note("demonstrations", 0, "the answers of an instruction set were written by somebody, not sampled by the policy: they are not trained unless they are marked as sampled")
	in.Leftover(r, v, append(slices.Clone(systemKeys), "id", pair[0], pair[1], "input", "history", "reward", "resolved", "chat_template_kwargs", "template_kwargs")...)
	return in.Emit(r)
}
